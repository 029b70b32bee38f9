//! Go's `regexp` dialect, rewritten for the `regex` crate.
//!
//! Both engines are RE2's children, so only spelling differs: Perl classes and
//! `\b` are ASCII in Go, braces and class punctuation are literal more often,
//! and some extras of each side are unknown to the other.

use std::fmt::Write as _;

/// Rewrites a Go pattern, or says why Go would refuse it.
pub fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    let mut after_repeat = false;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        let mut repeat = false;
        rest = match c {
            '\\' if tail.starts_with('Q') => {
                let body = &tail[1..];
                let end = body.find("\\E");
                for literal in body[..end.unwrap_or(body.len())].chars() {
                    push_literal(&mut out, literal);
                }
                end.map_or("", |at| &body[at + 2..])
            }
            '\\' => escape(tail, &mut out)?,
            '[' => class(tail, &mut out)?,
            '(' if tail.starts_with('?') => group(tail, &mut out)?,
            '{' => match counted(tail)? {
                Some(after) => {
                    out.push_str(&rest[..rest.len() - after.len()]);
                    repeat = true;
                    after
                }
                None => {
                    out.push_str("\\{");
                    tail
                }
            },
            '*' | '+' | '?' => {
                out.push(c);
                repeat = true;
                tail
            }
            '}' | ']' => {
                push_literal(&mut out, c);
                tail
            }
            _ => {
                out.push(c);
                tail
            }
        };
        if repeat {
            if after_repeat {
                return Err("invalid nested repetition operator".into());
            }
            if let Some(lazy) = rest.strip_prefix('?') {
                out.push('?');
                rest = lazy;
            }
        }
        after_repeat = repeat;
    }
    Ok(out)
}

fn push_literal(out: &mut String, c: char) {
    if c.is_ascii() && !c.is_ascii_alphanumeric() {
        write!(out, "\\x{{{:X}}}", u32::from(c)).expect("writing to a string");
    } else {
        out.push(c);
    }
}

const SPACE: &str = "\\t\\n\\f\\r ";

fn perl_class(c: char) -> Option<(bool, &'static str)> {
    Some(match c {
        'd' => (false, "0-9"),
        'D' => (true, "0-9"),
        's' => (false, SPACE),
        'S' => (true, SPACE),
        'w' => (false, "0-9A-Za-z_"),
        'W' => (true, "0-9A-Za-z_"),
        _ => return None,
    })
}

/// An escape outside a class; `tail` starts after the backslash.
fn escape<'a>(tail: &'a str, out: &mut String) -> Result<&'a str, String> {
    let c = tail.chars().next().ok_or("trailing backslash at end of expression")?;
    if let Some((negated, body)) = perl_class(c) {
        out.push_str(if negated { "[^" } else { "[" });
        out.push_str(body);
        out.push(']');
        return Ok(&tail[1..]);
    }
    match c {
        'b' | 'B' => out.push_str(if c == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" }),
        'A' | 'z' => {
            out.push('\\');
            out.push(c);
        }
        'p' | 'P' => return property(tail, out),
        _ => {
            let (value, after) = character(tail)?;
            push_literal(out, value);
            return Ok(after);
        }
    }
    Ok(&tail[1..])
}

/// `\pN`, `\p{Greek}` and `\p{^Greek}`; `tail` starts at the `p`.
fn property<'a>(tail: &'a str, out: &mut String) -> Result<&'a str, String> {
    let bad = || "invalid character class range".to_owned();
    let body = &tail[1..];
    let (name, after) = match body.strip_prefix('{') {
        Some(braced) => braced.split_once('}').ok_or_else(bad)?,
        None => body.split_at(body.chars().next().ok_or_else(bad)?.len_utf8()),
    };
    let (name, inverted) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
    // Rust knows more: properties by `name=value`, and an `Is` before any name.
    let foreign = name.contains(['=', ':', '^']) || name.to_ascii_lowercase().starts_with("is");
    if name.is_empty() || foreign {
        return Err(format!("invalid character class range: `\\p{{{name}}}`"));
    }
    let negated = tail.starts_with('P') != inverted;
    out.push_str(if negated { "\\P{" } else { "\\p{" });
    out.push_str(name);
    out.push('}');
    Ok(after)
}

/// A single escaped character: punctuation, C escapes, hex and octal.
fn character(tail: &str) -> Result<(char, &str), String> {
    let bad = || format!("invalid escape sequence: `\\{}`", tail.chars().take(3).collect::<String>());
    let c = tail.chars().next().ok_or_else(bad)?;
    let after = &tail[c.len_utf8()..];
    let simple = match c {
        'a' => '\u{7}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '0'..='7' => {
            if c != '0' && !after.starts_with(|d: char| ('0'..='7').contains(&d)) {
                return Err(bad());
            }
            let len = 1 + after.chars().take(2).take_while(|d| ('0'..='7').contains(d)).count();
            let code = u32::from_str_radix(&tail[..len], 8).map_err(|_| bad())?;
            return Ok((char::from_u32(code).ok_or_else(bad)?, &tail[len..]));
        }
        'x' => {
            let (digits, after) = match after.strip_prefix('{') {
                Some(body) => {
                    let end = body.find('}').ok_or_else(bad)?;
                    (&body[..end], &body[end + 1..])
                }
                None => (after.get(..2).ok_or_else(bad)?, &after[2.min(after.len())..]),
            };
            if digits.is_empty() || !digits.bytes().all(|d| d.is_ascii_hexdigit()) {
                return Err(bad());
            }
            let code = u32::from_str_radix(digits, 16).map_err(|_| bad())?;
            return Ok((char::from_u32(code).ok_or_else(bad)?, after));
        }
        _ if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
        _ => return Err(bad()),
    };
    Ok((simple, after))
}

/// `{n}`, `{n,}` or `{n,m}`: what follows it, or `None` when Go reads a literal brace.
fn counted(tail: &str) -> Result<Option<&str>, String> {
    let Some(end) = tail.find('}') else { return Ok(None) };
    let body = &tail[..end];
    let (low, high) = body.split_once(',').unwrap_or((body, body));
    let number = |s: &str| -> Option<u64> {
        let plain =
            !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()) && (s == "0" || !s.starts_with('0'));
        plain.then(|| s.parse().unwrap_or(u64::MAX))
    };
    let (Some(low), high_ok) = (number(low), high.is_empty() || number(high).is_some()) else {
        return Ok(None);
    };
    if !high_ok {
        return Ok(None);
    }
    let high = number(high);
    if low > 1000 || high.is_some_and(|h| h > 1000 || h < low) {
        return Err(format!("invalid repeat count: `{{{body}}}`"));
    }
    Ok(Some(&tail[end + 1..]))
}

/// A `(?…` group; `tail` starts at the question mark.
fn group<'a>(tail: &'a str, out: &mut String) -> Result<&'a str, String> {
    let bad = || "invalid or unsupported Perl syntax".to_owned();
    let body = &tail[1..];
    if let Some(name) = body.strip_prefix("P<").or_else(|| body.strip_prefix('<')) {
        let end = name.find('>').ok_or_else(bad)?;
        if end == 0 || !name[..end].bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            return Err("invalid named capture".into());
        }
        out.push_str("(?P<");
        // Rust's names may not start with a digit.
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            out.push('_');
        }
        out.push_str(&name[..=end]);
        return Ok(&name[end + 1..]);
    }
    let end = body.find([':', ')']).ok_or_else(bad)?;
    let flags = &body[..end];
    let well_formed = flags.bytes().all(|b| b"imsU-".contains(&b))
        && flags.matches('-').count() <= 1
        && !flags.ends_with('-')
        && !(flags.is_empty() && body.as_bytes()[end] == b')');
    if !well_formed {
        return Err(bad());
    }
    // Rust refuses a flag said twice; Go does not mind.
    let mut seen = String::new();
    for c in flags.chars().filter(|c| *c != '-') {
        if seen.contains(c) {
            return Err(bad());
        }
        seen.push(c);
    }
    out.push_str("(?");
    out.push_str(&body[..=end]);
    Ok(&body[end + 1..])
}

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// A bracketed class; `tail` starts after `[`.
fn class<'a>(tail: &'a str, out: &mut String) -> Result<&'a str, String> {
    let bad = |what: &str| format!("invalid character class range: `{what}`");
    let mut rest = tail;
    out.push('[');
    if let Some(negated) = rest.strip_prefix('^') {
        out.push('^');
        rest = negated;
    }
    let mut first = true;
    loop {
        if rest.is_empty() {
            return Err("missing closing ]".into());
        }
        if let (Some(after), false) = (rest.strip_prefix(']'), first) {
            out.push(']');
            return Ok(after);
        }
        first = false;
        if rest.starts_with("[:")
            && let Some(end) = rest[2..].find(":]")
        {
            let name = &rest[2..2 + end];
            if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                return Err(bad(name));
            }
            out.push_str(&rest[..end + 4]);
            rest = &rest[end + 4..];
            continue;
        }
        if let Some(escaped) = rest.strip_prefix('\\') {
            let c = escaped.chars().next().ok_or("trailing backslash at end of expression")?;
            if let Some((negated, body)) = perl_class(c) {
                if negated {
                    out.push_str("[^");
                    out.push_str(body);
                    out.push(']');
                } else {
                    out.push_str(body);
                }
                rest = &escaped[1..];
                continue;
            }
            if c == 'p' || c == 'P' {
                rest = property(escaped, out)?;
                continue;
            }
        }
        let (low, after) = class_char(rest)?;
        let (high, after) = match after.strip_prefix('-') {
            Some(more) if !more.starts_with(']') && !more.is_empty() => class_char(more)?,
            _ => (low, after),
        };
        if high < low {
            return Err(bad(&rest[..rest.len() - after.len()]));
        }
        push_literal(out, low);
        if high != low {
            out.push('-');
            push_literal(out, high);
        }
        rest = after;
    }
}

fn class_char(rest: &str) -> Result<(char, &str), String> {
    let c = rest.chars().next().ok_or("missing closing ]")?;
    match rest.strip_prefix('\\') {
        Some(escaped) => character(escaped),
        None => Ok((c, &rest[c.len_utf8()..])),
    }
}

//! Plain words read as the types that fields want (FACTS 2.1). A quoted word is always text.

/// Whether a plain word stands for nothing.
pub(crate) fn is_null(word: &str) -> bool {
    matches!(word, "" | "~" | "null" | "Null" | "NULL")
}

/// A truth value, in the words of YAML 1.1 too.
pub(crate) fn boolean(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => Some(true),
        "false" | "no" | "off" | "n" => Some(false),
        _ => None,
    }
}

/// A whole number; `2.0` is one and `2.5` is not.
pub(crate) fn integer(word: &str) -> Option<i64> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    let radix = |prefix: &str, base| {
        word.strip_prefix(prefix)
            .filter(|digits| !digits.starts_with(['+', '-']))
            .and_then(|digits| i64::from_str_radix(digits, base).ok())
    };
    radix("0x", 16).or_else(|| radix("0o", 8)).or_else(|| whole(float(word)?))
}

fn whole(number: f64) -> Option<i64> {
    // Up to here every whole number is a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// A number.
pub(crate) fn float(word: &str) -> Option<f64> {
    match word {
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    // The library also reads `nan` and `infinity`, which are words in YAML.
    let numeric = |b: u8| b.is_ascii_digit() || b"+-.eE".contains(&b);
    (word.bytes().all(numeric) && word.bytes().any(|b| b.is_ascii_digit())).then(|| word.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_as_numbers_where_they_are_numbers() {
        for (word, number) in [
            ("12", Some(12)),
            ("-3", Some(-3)),
            ("+3", Some(3)),
            ("2.0", Some(2)),
            ("2e2", Some(200)),
            ("0x1F", Some(31)),
            ("0o17", Some(15)),
            ("2.5", None),
            ("1e300", None),
            ("9223372036854775808", None),
            ("0x-1", None),
            ("1_000", None),
            ("nan", None),
            ("", None),
        ] {
            assert_eq!(integer(word), number, "{word}");
        }
        for (word, number) in [
            ("0.5", Some(0.5)),
            ("3", Some(3.0)),
            (".5", Some(0.5)),
            ("1e-2", Some(0.01)),
            ("inf", None),
            ("infinity", None),
            ("e", None),
        ] {
            assert_eq!(float(word), number, "{word}");
        }
        assert!(float(".nan").is_some_and(f64::is_nan) && float("-.inf") == Some(f64::NEG_INFINITY));
    }

    #[test]
    fn words_read_as_truth_in_either_version() {
        for word in ["true", "True", "yes", "on", "y"] {
            assert_eq!(boolean(word), Some(true));
        }
        for word in ["false", "no", "OFF", "n"] {
            assert_eq!(boolean(word), Some(false));
        }
        assert_eq!((boolean("1"), boolean("truth")), (None, None));
    }
}

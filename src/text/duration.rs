//! Go's durations: the grammar of `timeout:` and the two printed forms (FACTS 2.3).
//!
//! Parsing is signed, because `-5s` is a well-formed duration that a check refuses in its own words. Days, weeks
//! and words are not in the grammar. Knows no bound of any field.

use std::time::Duration;

/// A parsed duration with its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signed {
    nanos: i64,
}

impl Signed {
    /// The time, or `None` when it is negative.
    pub fn non_negative(self) -> Option<Duration> {
        u64::try_from(self.nanos).ok().map(Duration::from_nanos)
    }

    /// The time, or `None` when it is negative or nothing.
    pub fn positive(self) -> Option<Duration> {
        self.non_negative().filter(|time| !time.is_zero())
    }
}

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number without a unit, as in `30`.
    #[error("the unit is missing")]
    NoUnit,
    /// A unit that the grammar does not know, as in `1d`.
    #[error("the unit is not one of ns, us, ms, s, m and h")]
    UnknownUnit,
    /// A time past 292 years.
    #[error("it is too long")]
    TooLong,
    /// Anything else.
    #[error("it is not a number with a unit")]
    Malformed,
}

/// Reads Go's grammar: an optional sign, then numbers with a unit each; `0` alone needs none.
pub fn parse(text: &str) -> Result<Signed, DurationError> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(Signed { nanos: 0 });
    }
    if rest.is_empty() {
        return Err(DurationError::Malformed);
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (part, after) = term(rest)?;
        total += part;
        rest = after;
        if total > 1 << 63 {
            return Err(DurationError::TooLong);
        }
    }
    let total = i128::try_from(total).expect("the sum is bounded above");
    let nanos = i64::try_from(if negative { -total } else { total }).map_err(|_| DurationError::TooLong)?;
    Ok(Signed { nanos })
}

/// One number with its unit, in nanoseconds, and what follows it.
fn term(text: &str) -> Result<(u128, &str), DurationError> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Malformed);
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let unit = match &rest[..end] {
        "" => return Err(DurationError::NoUnit),
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(DurationError::UnknownUnit),
    };
    let whole: u128 = match whole.trim_start_matches('0') {
        "" => 0,
        significant if significant.len() > 19 => return Err(DurationError::TooLong),
        significant => significant.parse().map_err(|_| DurationError::Malformed)?,
    };
    Ok((whole * unit + fraction_of(fraction, unit), &rest[end..]))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// `0.<fraction>` of `unit`, rounded down.
fn fraction_of(fraction: &str, unit: u128) -> u128 {
    // Digits past the fifteenth are worth less than a nanosecond even of an hour.
    let kept = &fraction[..fraction.len().min(15)];
    let Ok(value) = kept.parse::<u128>() else { return 0 };
    let scale = 10_u128.pow(u32::try_from(kept.len()).unwrap_or(0));
    value * unit / scale
}

/// Formats as Go does, rounded to milliseconds: `235ms`, `1m2.5s`, `0s`.
pub fn format(time: Duration) -> String {
    let millis = (time.as_nanos() + 500_000) / 1_000_000;
    print(millis * 1_000_000)
}

/// Formats exactly as Go prints a duration: `1h0m0s`, `2m0s`, `1.5s`, `300ms`, `1.5µs`.
pub fn exact(time: Duration) -> String {
    print(time.as_nanos())
}

fn print(nanos: u128) -> String {
    const SECOND: u128 = 1_000_000_000;
    match nanos {
        0 => return "0s".to_owned(),
        1..1_000 => return format!("{nanos}ns"),
        1_000..1_000_000 => return format!("{}µs", decimal(nanos, 1_000)),
        1_000_000..SECOND => return format!("{}ms", decimal(nanos, 1_000_000)),
        _ => {}
    }
    let minutes = nanos / (60 * SECOND);
    let seconds = decimal(nanos % (60 * SECOND), SECOND);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// `amount / unit` without trailing zeros; `unit` is a power of ten.
fn decimal(amount: u128, unit: u128) -> String {
    let (whole, fraction) = (amount / unit, amount % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let digits = unit.ilog10() as usize;
    let fraction = format!("{fraction:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        let cases: [(&str, i64); 19] = [
            ("1h30m", 5_400_000_000_000),
            ("500ms", 500_000_000),
            ("2m", 120_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("1h30m5.25s", 5_405_250_000_000),
            ("0", 0),
            ("+0", 0),
            ("-0", 0),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1h1h", 7_200_000_000_000),
            ("+5m", 300_000_000_000),
            ("-5m", -300_000_000_000),
            ("1us", 1_000),
            ("1\u{b5}s", 1_000),
            ("1\u{3bc}s", 1_000),
            ("7ns", 7),
            ("2562047h47m16.854775807s", i64::MAX),
            ("-2562047h47m16.854775808s", i64::MIN),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse(text), Ok(Signed { nanos }), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        use DurationError::{Malformed, NoUnit, TooLong, UnknownUnit};
        let cases = [
            ("", Malformed),
            ("-", Malformed),
            (".s", Malformed),
            (".", Malformed),
            ("s", Malformed),
            ("five", Malformed),
            (" 1s", Malformed),
            ("--1s", Malformed),
            ("30", NoUnit),
            ("1h30", NoUnit),
            ("00", NoUnit),
            ("1d", UnknownUnit),
            ("1w", UnknownUnit),
            ("1h 30m", UnknownUnit),
            ("5 minutes", UnknownUnit),
            ("1M", UnknownUnit),
            ("1s ", UnknownUnit),
            ("2562047h47m16.854775808s", TooLong),
            ("99999999999999999999999999999999999999999999s", TooLong),
            ("9999999999999999999h", TooLong),
        ];
        for (text, error) in cases {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn prints_as_go_does() {
        let cases = [
            (0, "0s", "0s"),
            (234_650_880, "235ms", "234.65088ms"),
            (4_135_400_000, "4.135s", "4.1354s"),
            (62_500_000_000, "1m2.5s", "1m2.5s"),
            (3_600_000_000_000, "1h0m0s", "1h0m0s"),
            (120_000_000_000, "2m0s", "2m0s"),
            (90_061_000_000_000, "25h1m1s", "25h1m1s"),
            (1_500, "0s", "1.5µs"),
            (7, "0s", "7ns"),
            (999_600_000, "1s", "999.6ms"),
        ];
        for (nanos, rounded, whole) in cases {
            let time = Duration::from_nanos(nanos);
            assert_eq!((format(time), exact(time)), (rounded.to_owned(), whole.to_owned()));
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_reads_back(nanos in 0_u64..=i64::MAX as u64) {
            let time = Duration::from_nanos(nanos);
            proptest::prop_assert_eq!(parse(&exact(time)).map(Signed::non_negative), Ok(Some(time)));
        }

        #[test]
        fn no_text_panics(text in "[-+.0-9a-zµ ]{0,12}") {
            parse(&text).ok();
        }
    }
}

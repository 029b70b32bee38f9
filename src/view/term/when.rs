//! Moments as a person reads them: local, and always with the offset (case D14).
//!
//! The feed keeps UTC; nothing is ever ordered by what is printed here.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::text::sanitize;

/// The moment that a feed wrote as `ts`, in `zone`; as it stands when it is none.
pub fn local(ts: &str, zone: &TimeZone) -> String {
    match ts.parse::<Timestamp>() {
        Ok(at) => at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%:z").to_string(),
        Err(_) => sanitize::one_line(ts).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d14_a_moment_is_local_and_carries_its_offset() {
        let st_johns = TimeZone::posix("NST3:30NDT,M3.2.0,M11.1.0").expect("a zone");
        let seoul = TimeZone::posix("KST-9").expect("a zone");
        for (ts, zone, shown) in [
            ("2026-01-02T03:04:05.678901234Z", &TimeZone::UTC, "2026-01-02 03:04:05+00:00"),
            ("2026-01-02T15:04:05Z", &seoul, "2026-01-03 00:04:05+09:00"),
            ("2026-03-08T05:29:59Z", &st_johns, "2026-03-08 01:59:59-03:30"),
            ("2026-03-08T05:30:00Z", &st_johns, "2026-03-08 03:00:00-02:30"),
            ("yester\u{1b}day", &seoul, "yester␛day"),
            ("", &seoul, ""),
        ] {
            assert_eq!(local(ts, zone), shown);
        }
    }
}

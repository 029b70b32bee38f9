//! When a spent limit ends, as a moment: from the claude CLI's own prose (CLI-PROTOCOL 2.6).
//!
//! Known forms: `8:05am (UTC)`, `3pm`, `Dec 3, 6:41pm (America/New_York)`. The zone is the child's own; without one it is
//! this machine's.

use std::sync::LazyLock;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ZonedDateTime};
use regex::Regex;

static FORM: LazyLock<Regex> = LazyLock::new(|| {
    let form = r"(?i)\bresets?\s+(?:at\s+)?(?:([a-z]{3})[a-z]*\s+(\d{1,2}),?\s+(?:at\s+)?)?(\d{1,2})(?::(\d{2}))?\s*([ap]m)(?:\s*\(([^)]+)\))?";
    Regex::new(form).expect("a pattern")
});
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The moment that `words` name, the first one not before `now`; `None` when they name none.
pub fn moment(words: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let found = FORM.captures(words)?;
    let part = |at: usize| found.get(at).map(|part| part.as_str());
    let zone = match part(6) {
        Some(name) => TimeZone::get(name.trim()).ok()?,
        None => local.clone(),
    };
    let hour: i8 = part(3)?.parse().ok().filter(|hour| (1..=12).contains(hour))?;
    let hour = hour % 12 + if part(5)?.eq_ignore_ascii_case("pm") { 12 } else { 0 };
    let minute: i8 = part(4).map_or(Some(0), |minute| minute.parse().ok())?;
    let time = Time::new(hour, minute, 0, 0).ok()?;
    let today = now.to_zoned_datetime(zone.clone());
    let at = match part(1) {
        Some(month) => on(month, part(2)?, time, &today)?,
        None => next(time, &today)?,
    };
    Some(at.timestamp())
}

/// How long ago a named minute may lie and still be meant: the CLI names minutes, and takes its time to say them.
const JUST_NOW: i64 = 10;

/// The next time that the clock shows `time`, or the one that has just begun.
fn next(time: Time, now: &ZonedDateTime) -> Option<ZonedDateTime> {
    let today = now.date().to_datetime(time).to_zoned_datetime(now.time_zone().clone()).ok()?;
    let just_now = now.checked_sub(Span::new().minutes(JUST_NOW)).ok()?;
    if today >= just_now { Some(today) } else { today.checked_add(Span::new().days(1)).ok() }
}

/// A day of this year, or of the next one when it is long past.
fn on(month: &str, day: &str, time: Time, now: &ZonedDateTime) -> Option<ZonedDateTime> {
    let month = MONTHS.iter().position(|known| month.to_ascii_lowercase().starts_with(known))?;
    let month = i8::try_from(month + 1).ok()?;
    let day: i8 = day.parse().ok()?;
    let of = |year: i16| {
        Date::new(year, month, day).ok()?.to_datetime(time).to_zoned_datetime(now.time_zone().clone()).ok()
    };
    let this_year = of(now.year())?;
    let long_past = now.checked_sub(Span::new().days(180)).ok()?;
    if this_year < long_past { of(now.year() + 1) } else { Some(this_year) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, moment_utc: Option<&str>) {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().expect("a moment");
        let found = moment(words, now, &TimeZone::UTC).map(|at| at.to_string());
        assert_eq!(found.as_deref(), moment_utc, "{words}");
    }

    #[test]
    fn every_known_form_is_a_moment() {
        check("You've hit your session limit · resets 11:05am (UTC)", Some("2026-11-30T11:05:00Z"));
        check("limit · resets 9:58am (UTC)", Some("2026-11-30T09:58:00Z"));
        check("limit · resets 8:05am (UTC)", Some("2026-12-01T08:05:00Z"));
        check("limit · resets 3pm", Some("2026-11-30T15:00:00Z"));
        check("limit · resets 12am (UTC)", Some("2026-12-01T00:00:00Z"));
        check("limit · resets Dec 3, 6:41pm (UTC)", Some("2026-12-03T18:41:00Z"));
        check("limit · resets Jan 2, 1am (UTC)", Some("2027-01-02T01:00:00Z"));
        check("limit · resets 6:00am (America/New_York)", Some("2026-11-30T11:00:00Z"));
        check("limit reached", None);
        check("resets 99pm", None);
        check("resets 3pm (Nowhere/At_All)", None);
    }
}

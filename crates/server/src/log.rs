//! The node's log: one line per event on standard error, from a minimum level on, as text or as JSON. `serve`
//! configures it once; every thread may write. A failed write is ignored: the node keeps serving.

use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use settings::{LogFormat, LogLevel};

static HOW: OnceLock<(LogLevel, LogFormat)> = OnceLock::new();

/// Sets level and format for all lines from now on. Only the first call has an effect.
pub fn set(level: LogLevel, format: LogFormat) {
    let _ = HOW.set((level, format));
}

/// Logs a failure of this node.
pub fn error(area: &str, message: &str) {
    write(LogLevel::Error, area, message);
}

/// Logs a problem elsewhere, or one that may arise.
pub fn warn(area: &str, message: &str) {
    write(LogLevel::Warn, area, message);
}

/// Logs an occasional event.
pub fn info(area: &str, message: &str) {
    write(LogLevel::Info, area, message);
}

/// Logs a frequent event.
pub fn debug(area: &str, message: &str) {
    write(LogLevel::Debug, area, message);
}

fn write(level: LogLevel, area: &str, message: &str) {
    let (least, format) = HOW.get().copied().unwrap_or((LogLevel::Info, LogFormat::Text));
    if level > least {
        return;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let line = line(format, level, &stamp(now), area, message);
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn line(format: LogFormat, level: LogLevel, time: &str, area: &str, message: &str) -> String {
    let level = level.word();
    match format {
        LogFormat::Text => format!("{time} {level:5} {area}: {message}\n"),
        LogFormat::Json => {
            let object = json!({ "time": time, "level": level, "area": area, "message": message });
            format!("{object}\n")
        }
    }
}

/// Formats a time since 1970 as 2026-11-15T17:04:05.678Z.
fn stamp(since: Duration) -> String {
    let seconds = since.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Returns the date of a day counted from 1970. The calculation uses years that begin in March, so that the
/// leap day comes last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // Days since March 1 of the year 0.
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told_as_dates_leap_days_and_ends_of_years_too() {
        for (seconds, told) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_704_067_199, "2023-12-31T23:59:59.000Z"),
            (1_794_762_245, "2026-11-15T17:04:05.000Z"),
        ] {
            assert_eq!(stamp(Duration::from_secs(seconds)), told);
        }
    }

    #[test]
    fn a_line_is_text_or_an_object_and_always_one_line() {
        let message = "b \"joins\"\nhere";
        let text = line(LogFormat::Text, LogLevel::Warn, "T", "map", "b joins");
        assert_eq!(text, "T warn  map: b joins\n");
        let object = line(LogFormat::Json, LogLevel::Error, "T", "map", message);
        assert_eq!(object.lines().count(), 1);
        let read: serde_json::Value = serde_json::from_str(&object).unwrap();
        assert_eq!((&read["level"], &read["message"]), (&json!("error"), &json!(message)));
    }
}

//! Conversion of the cluster's settings to and from text, as `opencluster settings` shows and accepts
//! them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::map::{Ack, ClusterSettings, CrossSlot, Setting, SplitLargerThan};

/// Returns all settings by name.
pub fn settings(settings: &ClusterSettings) -> BTreeMap<String, String> {
    let all = [
        Setting::Backups(settings.backups),
        Setting::Ack(settings.ack),
        Setting::MinCopies(settings.min_copies),
        Setting::MinBuckets(settings.min_buckets),
        Setting::SplitLargerThan(settings.split_larger_than),
        Setting::Lease(settings.lease),
        Setting::PendingAfter(settings.pending_after),
        Setting::LostAfter(settings.lost_after),
        Setting::FillRate(settings.fill_rate),
        Setting::TwoNodeTakeover(settings.two_node_takeover),
        Setting::LeaveTimeout(settings.leave_timeout),
        Setting::CrossSlot(settings.cross_slot),
    ];
    let format_setting = all.iter().map(format_setting);
    format_setting.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns a setting's name and its value.
pub(super) fn format_setting(setting: &Setting) -> (&'static str, String) {
    match setting {
        Setting::Backups(backups) => ("backups", backups.to_string()),
        Setting::Ack(Ack::Backup) => ("ack", "backup".to_owned()),
        Setting::Ack(Ack::Primary) => ("ack", "primary".to_owned()),
        Setting::MinCopies(copies) => ("min-copies", copies.to_string()),
        Setting::MinBuckets(buckets) => ("min-buckets", buckets.to_string()),
        Setting::SplitLargerThan(SplitLargerThan { times_the_median, bytes }) => {
            ("split-larger-than", format!("{times_the_median}x,{}", format_bytes(*bytes)))
        }
        Setting::Lease(lease) => ("lease", format_duration(*lease)),
        Setting::PendingAfter(after) => ("pending-after", format_duration(*after)),
        Setting::LostAfter(after) => ("lost-after", after.map_or("never".into(), format_duration)),
        Setting::FillRate(rate) => ("fill-rate", rate.map_or("unlimited".into(), format_bytes)),
        Setting::TwoNodeTakeover(true) => ("two-node-takeover", "yes".to_owned()),
        Setting::TwoNodeTakeover(false) => ("two-node-takeover", "no".to_owned()),
        Setting::LeaveTimeout(timeout) => ("leave-timeout", format_duration(*timeout)),
        Setting::CrossSlot(CrossSlot::OneMember) => ("cross-slot", "one-member".to_owned()),
        Setting::CrossSlot(CrossSlot::Never) => ("cross-slot", "never".to_owned()),
    }
}

/// The reason a setting cannot be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingError {
    Unknown(String),
    Value { name: String, value: String, wanted: &'static str },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingError::Unknown(name) => {
                let known: Vec<String> =
                    settings(&ClusterSettings::default()).into_keys().collect();
                write!(f, "unknown cluster setting {name:?}; the settings are {}", known.join(", "))
            }
            SettingError::Value { name, value, wanted } => {
                write!(f, "{name} must be {wanted}, not {value:?}")
            }
        }
    }
}

/// Parses a setting from its name and value.
pub fn parse_setting(name: &str, value: &str) -> Result<Setting, SettingError> {
    let lower = value.to_ascii_lowercase();
    let (setting, wanted) = match name.to_ascii_lowercase().as_str() {
        "backups" => (number(&lower, 0, 3).map(Setting::Backups), "a number from 0 to 3"),
        "ack" => (ack(&lower).map(Setting::Ack), "backup or primary"),
        "min-copies" => (number(&lower, 1, 4).map(Setting::MinCopies), "a number from 1 to 4"),
        "min-buckets" => {
            (number(&lower, 1, 1_024).map(Setting::MinBuckets), "a number from 1 to 1024")
        }
        "split-larger-than" => (
            larger_than(&lower).map(Setting::SplitLargerThan),
            "a factor and a size, as in 8x,64mib",
        ),
        "lease" => (between(&lower, 200, 60_000).map(Setting::Lease), "a time from 200ms to 60s"),
        "pending-after" => {
            (between(&lower, 100, 60_000).map(Setting::PendingAfter), "a time from 100ms to 60s")
        }
        "lost-after" => (
            or_none(&lower, "never", duration).map(Setting::LostAfter),
            "a time as in 30s, or never",
        ),
        "fill-rate" => (
            or_none(&lower, "unlimited", |text| bytes(text).filter(|rate| *rate > 0))
                .map(Setting::FillRate),
            "a size per second as in 50mib, or unlimited",
        ),
        "two-node-takeover" => (yes_no(&lower).map(Setting::TwoNodeTakeover), "yes or no"),
        "leave-timeout" => {
            (between(&lower, 0, 86_400_000).map(Setting::LeaveTimeout), "a time from 0s to 24h")
        }
        "cross-slot" => (cross_slot(&lower).map(Setting::CrossSlot), "one-member or never"),
        _ => return Err(SettingError::Unknown(name.to_owned())),
    };
    let (name, value) = (name.to_ascii_lowercase(), value.to_owned());
    setting.ok_or(SettingError::Value { name, value, wanted })
}

fn number<T: std::str::FromStr + PartialOrd>(text: &str, least: T, most: T) -> Option<T> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

fn ack(text: &str) -> Option<Ack> {
    match text {
        "backup" => Some(Ack::Backup),
        "primary" => Some(Ack::Primary),
        _ => None,
    }
}

fn cross_slot(text: &str) -> Option<CrossSlot> {
    match text {
        "one-member" => Some(CrossSlot::OneMember),
        "never" => Some(CrossSlot::Never),
        _ => None,
    }
}

fn yes_no(text: &str) -> Option<bool> {
    match text {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

fn or_none<T>(text: &str, none: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    if text == none { Some(None) } else { parse(text).map(Some) }
}

fn larger_than(text: &str) -> Option<SplitLargerThan> {
    let (factor, size) = text.split_once(',')?;
    let times_the_median = number(factor.trim().strip_suffix('x')?, 2, 1_000_000)?;
    Some(SplitLargerThan { times_the_median, bytes: bytes(size.trim())? })
}

fn between(text: &str, least: u64, most: u64) -> Option<Duration> {
    let range = Duration::from_millis(least)..=Duration::from_millis(most);
    duration(text).filter(|time| range.contains(time))
}

const TIMES: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Parses a time as people write it: 200ms, 90s, 5m, 2h.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, millis) = with_unit(text, &TIMES)?;
    number.checked_mul(millis).map(Duration::from_millis)
}

fn format_duration(time: Duration) -> String {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    format_with_unit(millis, &TIMES)
}

const SIZES: [(&str, u64); 4] = [("", 1), ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30)];
/// Units that are accepted as well; in this file a thousand is always 1024.
const SIZES_TOO: [(&str, u64); 3] = [("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30)];

fn bytes(text: &str) -> Option<u64> {
    let (number, bytes) = with_unit(text, &SIZES).or_else(|| with_unit(text, &SIZES_TOO))?;
    number.checked_mul(bytes)
}

fn format_bytes(bytes: u64) -> String {
    format_with_unit(bytes, &SIZES)
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<(u64, u64)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(known, _)| *known == unit)?;
    Some((number.parse().ok()?, *factor))
}

/// Formats a number in the largest unit that divides it.
fn format_with_unit(number: u64, units: &[(&str, u64)]) -> String {
    let fits = |(_, factor): &&(&str, u64)| number >= *factor && number.is_multiple_of(*factor);
    let (unit, factor) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    format!("{}{unit}", number / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read_back_as_it_is_shown() {
        let defaults = settings(&ClusterSettings::default());
        assert_eq!(defaults.len(), 12);
        assert_eq!(defaults["split-larger-than"], "8x,64mib");
        assert_eq!((&*defaults["lease"], &*defaults["lost-after"]), ("1s", "30s"));
        for (name, value) in &defaults {
            let setting = parse_setting(name, value).expect("a default is a value");
            assert_eq!(format_setting(&setting), (name.as_str(), value.clone()));
        }
    }

    #[test]
    fn values_may_be_written_in_several_ways() {
        for (name, value, setting) in [
            ("BACKUPS", "2", Setting::Backups(2)),
            ("ack", "Primary", Setting::Ack(Ack::Primary)),
            ("fill-rate", "50mb", Setting::FillRate(Some(50 << 20))),
            ("fill-rate", "unlimited", Setting::FillRate(None)),
            ("lost-after", "never", Setting::LostAfter(None)),
            ("lease", "1500ms", Setting::Lease(Duration::from_millis(1500))),
            ("two-node-takeover", "false", Setting::TwoNodeTakeover(false)),
            ("leave-timeout", "0s", Setting::LeaveTimeout(Duration::ZERO)),
        ] {
            assert_eq!(parse_setting(name, value), Ok(setting), "{name} {value}");
        }
    }

    #[test]
    fn a_wrong_value_is_told_what_is_wanted() {
        for (name, value, told) in [
            ("backups", "4", "backups must be a number from 0 to 3, not \"4\""),
            ("lease", "1", "lease must be a time from 200ms to 60s, not \"1\""),
            ("lease", "100ms", "lease must be a time from 200ms to 60s, not \"100ms\""),
            ("leave-timeout", "25h", "leave-timeout must be a time from 0s to 24h, not \"25h\""),
            ("ack", "none", "ack must be backup or primary, not \"none\""),
            (
                "fill-rate",
                "99999999999gib",
                "fill-rate must be a size per second as in 50mib, or unlimited, not \"99999999999gib\"",
            ),
        ] {
            assert_eq!(parse_setting(name, value).unwrap_err().to_string(), told);
        }
        let unknown = parse_setting("replicas", "2").unwrap_err().to_string();
        assert!(
            unknown.starts_with("unknown cluster setting \"replicas\"; the settings are ack, ")
        );
    }
}

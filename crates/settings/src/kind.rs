//! Parses and formats the values of each kind of setting.
//!
//! `table.rs` gives each setting its [`SettingKind`]; the trait [`SettingValue`] connects a kind with the type of its
//! field. Values with a grammar of their own are in `choices.rs`, `addresses.rs`, `notify.rs`, `output_limits.rs` and
//! `secret.rs`.

use core::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The valid texts of a setting, as data: documentation and error messages are generated from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    YesNo,
    Integer {
        min: i64,
        max: i64,
    },
    /// A number of bytes, or one with a unit: `100mb`, `1gb`.
    Bytes {
        min: u64,
        max: u64,
    },
    /// A number of `unit`, or a number with its own unit: `500ms`, `5m`.
    Duration {
        unit: SettingUnit,
        min: i64,
        max: i64,
    },
    OneOf(&'static [&'static str]),
    Address,
    HostPort,
    HostPorts,
    /// A port that is opened only if it is configured.
    ExtraPort,
    /// A port that is derived from the client port unless it is given: `auto`, `off` or a number.
    SidePort {
        offset: u16,
    },
    Name,
    Path,
    Secret,
    NotifyClasses,
    OutputLimits,
    /// Networks and addresses, separated by commas.
    Networks,
    /// Host names, separated by commas.
    HostNames,
}

/// The unit of a duration that is given as a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingUnit {
    Microseconds,
    Milliseconds,
    Seconds,
}

impl SettingUnit {
    fn word(self) -> &'static str {
        match self {
            SettingUnit::Microseconds => "microseconds",
            SettingUnit::Milliseconds => "milliseconds",
            SettingUnit::Seconds => "seconds",
        }
    }

    fn micros(self) -> i64 {
        match self {
            SettingUnit::Microseconds => 1,
            SettingUnit::Milliseconds => 1_000,
            SettingUnit::Seconds => 1_000_000,
        }
    }
}

impl SettingKind {
    /// Returns a description of the valid values, to follow "must be".
    pub fn allowed(&self) -> String {
        match *self {
            SettingKind::YesNo => "yes or no".to_owned(),
            SettingKind::Integer { min, max } => format!("a number{}", range(min, max)),
            SettingKind::Bytes { min, max } => {
                let least =
                    if min == 0 { String::new() } else { format!(", at least {}", size(min)) };
                let has_most = max < i64::MAX as u64;
                let most =
                    if has_most { format!(", at most {}", size(max)) } else { String::new() };
                format!("a size such as 1048576, 100mb or 1gb{least}{most}")
            }
            SettingKind::Duration { unit, min, max } => {
                format!(
                    "a number of {}{}, or one with a unit such as 500ms, 30s or 5m",
                    unit.word(),
                    range(min, max)
                )
            }
            SettingKind::OneOf(words) => format!("one of {}", words.join(", ")),
            SettingKind::Address => "an IP address such as 127.0.0.1, 0.0.0.0 or ::1".to_owned(),
            SettingKind::HostPort => "HOST or HOST:PORT".to_owned(),
            SettingKind::HostPorts => "HOST:PORT, or several of them joined by commas".to_owned(),
            SettingKind::ExtraPort => "a port from 0 to 65535, or off".to_owned(),
            SettingKind::SidePort { offset } => {
                format!("a port from 0 to 65535, auto (port + {offset}) or off")
            }
            SettingKind::Name => "1 to 64 letters, digits, dots, dashes, underscores or colons".to_owned(),
            SettingKind::Path => "a path".to_owned(),
            SettingKind::Secret => "a text of at most 512 bytes".to_owned(),
            SettingKind::Networks => {
                "networks and addresses such as 10.0.0.0/8, 192.0.2.7 joined by commas, local, any, \
                 empty for none, or auto (local if only this machine reaches the node, else none)"
                    .to_owned()
            }
            SettingKind::HostNames => "host names joined by commas".to_owned(),
            SettingKind::NotifyClasses => "letters out of Ag$lshzxeKEtmdn, or empty for none".to_owned(),
            SettingKind::OutputLimits => {
                "CLASS HARD SOFT SECONDS, once or more, with CLASS normal, replica or pubsub \
                 (such as 'pubsub 32mb 8mb 60')"
                    .to_owned()
            }
        }
    }

    /// Formats a value for people: sizes with their unit, all other values unchanged.
    pub fn friendly(&self, text: &str) -> String {
        match self {
            SettingKind::Bytes { .. } => text.parse().map_or_else(|_| text.to_owned(), size),
            SettingKind::YesNo
            | SettingKind::Integer { .. }
            | SettingKind::Duration { .. }
            | SettingKind::OneOf(_)
            | SettingKind::Address
            | SettingKind::HostPort
            | SettingKind::HostPorts
            | SettingKind::ExtraPort
            | SettingKind::SidePort { .. }
            | SettingKind::Name
            | SettingKind::Path
            | SettingKind::Secret
            | SettingKind::NotifyClasses
            | SettingKind::OutputLimits
            | SettingKind::Networks
            | SettingKind::HostNames => text.to_owned(),
        }
    }
}

fn range(min: i64, max: i64) -> String {
    // Omit huge limits such as 9223372036854775807.
    if max >= i64::from(u32::MAX >> 1) {
        format!(", {min} or more")
    } else {
        format!(" from {min} to {max}")
    }
}

/// Formats a number of bytes with the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [(30, "gb"), (20, "mb"), (10, "kb")];
    let fits = |(shift, _): &(u32, &str)| bytes > 0 && bytes.trailing_zeros() >= *shift;
    match units.into_iter().find(fits) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// The type of a field: parses and formats the texts of its kind.
pub(super) trait SettingValue {
    /// Sets the value from `text`. An error holds Redis's text for it, and leaves the value unchanged.
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String>;
    fn show(&self, kind: &SettingKind) -> String;
}

macro_rules! number {
    ($type:ty) => {
        impl SettingValue for $type {
            fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
                let number = whole_number(text, kind)?;
                *self = <$type>::try_from(number).expect("the kind's range fits the field");
                Ok(())
            }
            fn show(&self, _: &SettingKind) -> String {
                self.to_string()
            }
        }
    };
}
number!(u8);
number!(u16);
number!(u32);
number!(u64);

/// Parses a count or a size within the range of its kind.
fn whole_number(text: &str, kind: &SettingKind) -> Result<i128, String> {
    if let SettingKind::Bytes { min, max } = *kind {
        let bytes = parse_bytes(text).ok_or("argument must be a memory value")?;
        return within(i128::from(bytes), i128::from(min), i128::from(max));
    }
    let SettingKind::Integer { min, max } = *kind else {
        unreachable!("{kind:?} is not a kind of number")
    };
    within(parse_integer(text)?, i128::from(min), i128::from(max))
}

fn within(number: i128, min: i128, max: i128) -> Result<i128, String> {
    if (min..=max).contains(&number) {
        return Ok(number);
    }
    Err(format!("argument must be between {min} and {max} inclusive"))
}

fn parse_integer(text: &str) -> Result<i128, String> {
    let number: Result<i64, _> = text.parse();
    number.map(i128::from).map_err(|_| "argument couldn't be parsed into an integer".to_owned())
}

/// Parses a size as Redis does: `k`, `m` and `g` are powers of 1000, `kb`, `mb` and `gb` of 1024.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1000 * 1000,
        "mb" => 1 << 20,
        "g" => 1000 * 1000 * 1000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Parses a duration into microseconds. A number without a unit has the unit of its kind.
fn parse_micros(text: &str, plain: SettingUnit) -> Result<i128, String> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'-').count();
    let (number, unit) = text.split_at(digits);
    let factor: i64 = match unit {
        "" => plain.micros(),
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60 * 1_000_000,
        "h" => 3600 * 1_000_000,
        "d" => 24 * 3600 * 1_000_000,
        _ => return Err("argument couldn't be parsed into an integer".to_owned()),
    };
    Ok(parse_integer(number)? * i128::from(factor))
}

/// Parses a duration; `None` for a negative number, which means "off".
fn duration(text: &str, kind: &SettingKind) -> Result<Option<Duration>, String> {
    let SettingKind::Duration { unit, min, max } = *kind else {
        unreachable!("{kind:?} is not a kind of duration")
    };
    let factor = i128::from(unit.micros());
    let micros = parse_micros(text, unit)?;
    within(micros.div_euclid(factor), i128::from(min), i128::from(max))?;
    let Ok(micros) = u128::try_from(micros) else { return Ok(None) };
    let seconds = u64::try_from(micros / 1_000_000).expect("the largest range ends at i64::MAX");
    let rest = u64::try_from(micros % 1_000_000).expect("a remainder is below its divisor");
    Ok(Some(Duration::from_secs(seconds) + Duration::from_micros(rest)))
}

fn show_duration(duration: Duration, kind: &SettingKind) -> String {
    let SettingKind::Duration { unit, .. } = *kind else {
        unreachable!("{kind:?} is not a kind of duration")
    };
    (duration.as_micros() / u128::from(unit.micros().unsigned_abs())).to_string()
}

impl SettingValue for Duration {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        *self = duration(text, kind)?.expect("the kind's range has no negative numbers");
        Ok(())
    }
    fn show(&self, kind: &SettingKind) -> String {
        show_duration(*self, kind)
    }
}

impl SettingValue for Option<Duration> {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        *self = duration(text, kind)?;
        Ok(())
    }
    fn show(&self, kind: &SettingKind) -> String {
        self.map_or_else(|| "-1".to_owned(), |duration| show_duration(duration, kind))
    }
}

impl SettingValue for bool {
    fn assign(&mut self, text: &str, _: &SettingKind) -> Result<(), String> {
        *self = match text.to_ascii_lowercase().as_str() {
            "yes" | "true" => true,
            "no" | "false" => false,
            _ => return Err("argument must be 'yes' or 'no'".to_owned()),
        };
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl SettingValue for IpAddr {
    fn assign(&mut self, text: &str, _: &SettingKind) -> Result<(), String> {
        let text = if text == "localhost" { "127.0.0.1" } else { text };
        *self = text.parse().map_err(|_| "Invalid bind address".to_owned())?;
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.to_string()
    }
}

/// The node's name, the only free text.
impl SettingValue for String {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        if text.is_empty() || text.len() > 64 || !text.bytes().all(fits) {
            return Err(format!("argument must be {}", kind.allowed()));
        }
        text.clone_into(self);
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.clone()
    }
}

impl SettingValue for Option<PathBuf> {
    fn assign(&mut self, text: &str, _: &SettingKind) -> Result<(), String> {
        *self = (!text.is_empty()).then(|| PathBuf::from(text));
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    }
}

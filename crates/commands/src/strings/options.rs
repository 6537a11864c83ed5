//! The options of SET and GETEX: conditions and lifetimes.

use store::{Found, UnixMillis};

use super::{string_of, with_bytes};
use crate::{Args, Error};

/// The condition under which SET sets the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SetCondition<'a> {
    Always,
    /// `NX`
    IfMissing,
    /// `XX`
    IfPresent,
    /// `IFEQ`: if the key holds this string.
    IfEqual(&'a [u8]),
}

impl SetCondition<'_> {
    /// Returns whether the condition holds for what the key holds. An error if it should be compared and is no string.
    pub(super) fn allows(self, present: Option<&Found<'_>>) -> Result<bool, Error> {
        Ok(match (self, present) {
            (SetCondition::Always, _) => true,
            (SetCondition::IfMissing, _) => present.is_none(),
            (SetCondition::IfPresent, _) => present.is_some(),
            (SetCondition::IfEqual(_), None) => false,
            (SetCondition::IfEqual(expected), Some(found)) => is_equal(found, expected)?,
        })
    }
}

/// Returns whether the key holds this string; an error if it holds another type.
pub(super) fn is_equal(found: &Found<'_>, expected: &[u8]) -> Result<bool, Error> {
    Ok(with_bytes(string_of(found)?, |bytes| bytes == expected))
}

/// The change to a key's expiry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lifetime<'a> {
    /// No option was given: SET clears the expiry, GETEX keeps it.
    Unsaid,
    /// `KEEPTTL`
    Keep,
    /// `PERSIST`
    Persist,
    Until(Deadline<'a>),
}

impl<'a> Lifetime<'a> {
    /// Adds one option. Only one of the options that set a lifetime is allowed, but it may be repeated: the last
    /// counts.
    pub(crate) fn set(&mut self, new: Lifetime<'a>) -> Result<(), Error> {
        let agrees = match (&self, &new) {
            (Lifetime::Unsaid, _)
            | (Lifetime::Keep, Lifetime::Keep)
            | (Lifetime::Persist, Lifetime::Persist) => true,
            (Lifetime::Until(old), Lifetime::Until(new)) => old.clock == new.clock,
            (Lifetime::Keep | Lifetime::Persist | Lifetime::Until(_), _) => false,
        };
        *self = new;
        if agrees { Ok(()) } else { Err(Error::SYNTAX) }
    }

    /// Returns the expiry time, if the option sets one.
    pub(super) fn resolve(
        self,
        now: UnixMillis,
        full_name: &str,
    ) -> Result<Option<UnixMillis>, Error> {
        match self {
            Lifetime::Unsaid | Lifetime::Keep | Lifetime::Persist => Ok(None),
            Lifetime::Until(deadline) => deadline.resolve(now, full_name).map(Some),
        }
    }
}

/// The unit and base of a deadline's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeadlineUnit {
    /// `EX`: relative to now.
    Seconds,
    /// `PX`
    Millis,
    /// `EXAT`: since 1970.
    UnixSeconds,
    /// `PXAT`
    UnixMillis,
}

impl DeadlineUnit {
    pub(crate) fn named(word: &[u8]) -> Option<DeadlineUnit> {
        let names: [(&[u8], DeadlineUnit); 4] = [
            (b"ex", DeadlineUnit::Seconds),
            (b"px", DeadlineUnit::Millis),
            (b"exat", DeadlineUnit::UnixSeconds),
            (b"pxat", DeadlineUnit::UnixMillis),
        ];
        names.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, clock)| *clock)
    }

    pub(super) fn is_absolute(self) -> bool {
        match self {
            DeadlineUnit::Seconds | DeadlineUnit::Millis => false,
            DeadlineUnit::UnixSeconds | DeadlineUnit::UnixMillis => true,
        }
    }

    /// Returns the time that a number in this unit means; `None` if it is out of range.
    pub(crate) fn time(self, number: i64, now: UnixMillis) -> Option<UnixMillis> {
        u64::try_from(self.millis(number, now)?).ok().map(UnixMillis)
    }

    /// Same as `time`, as milliseconds since 1970, possibly negative.
    pub(crate) fn millis(self, number: i64, now: UnixMillis) -> Option<i64> {
        let start = if self.is_absolute() { 0 } else { now.0 };
        number.checked_mul(self.factor())?.checked_add_unsigned(start)
    }

    /// Returns a time as a number in this unit, not negative. Rounded as in Redis, so that TTL right after EXPIRE returns
    /// the same number.
    pub(crate) fn number(self, at: UnixMillis, now: UnixMillis) -> i64 {
        let millis = if self.is_absolute() { at.0 } else { at.0.saturating_sub(now.0) };
        let half = self.factor().unsigned_abs() / 2;
        (millis.saturating_add(half) / self.factor().unsigned_abs()).cast_signed()
    }

    fn factor(self) -> i64 {
        match self {
            DeadlineUnit::Seconds | DeadlineUnit::UnixSeconds => 1_000,
            DeadlineUnit::Millis | DeadlineUnit::UnixMillis => 1,
        }
    }
}

/// An expiry time as the client wrote it. Redis parses the number after the option words, and reports the first of
/// several errors, so the number is kept as text until [`Deadline::resolve`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deadline<'a> {
    pub(crate) clock: DeadlineUnit,
    pub(crate) number: &'a [u8],
}

impl Deadline<'_> {
    pub(crate) fn resolve(self, now: UnixMillis, full_name: &str) -> Result<UnixMillis, Error> {
        let number = resp::parse_integer(self.number).ok_or(Error::NOT_AN_INTEGER)?;
        Some(number)
            .filter(|number| *number > 0)
            .and_then(|number| self.clock.time(number, now))
            .ok_or_else(|| Error::invalid_expire(full_name))
    }
}

/// All options after `SET key value`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SetOptions<'a> {
    pub(super) condition: SetCondition<'a>,
    pub(super) lifetime: Lifetime<'a>,
    /// `GET`: the reply is the old value.
    pub(super) returns_old: bool,
}

impl<'a> SetOptions<'a> {
    /// Parses the options from the argument `first` on.
    pub(super) fn parse(args: Args<'a>, first: usize) -> Result<SetOptions<'a>, Error> {
        let mut options = SetOptions {
            condition: SetCondition::Always,
            lifetime: Lifetime::Unsaid,
            returns_old: false,
        };
        let mut words = args.from(first);
        while let Some(word) = words.next() {
            if let Some(condition) = condition(word, &mut words)? {
                // A condition may be repeated, except for a comparison.
                let agrees = options.condition == SetCondition::Always
                    || options.condition == condition
                        && !matches!(condition, SetCondition::IfEqual(_));
                if !agrees {
                    return Err(Error::SYNTAX);
                }
                options.condition = condition;
            } else if word.eq_ignore_ascii_case(b"get") {
                options.returns_old = true;
            } else if word.eq_ignore_ascii_case(b"keepttl") {
                options.lifetime.set(Lifetime::Keep)?;
            } else {
                options.lifetime.set(deadline(word, &mut words)?)?;
            }
        }
        Ok(options)
    }
}

/// Parses a word that may be a condition, with the string after it.
fn condition<'a>(
    word: &[u8],
    rest: &mut impl Iterator<Item = &'a [u8]>,
) -> Result<Option<SetCondition<'a>>, Error> {
    Ok(if word.eq_ignore_ascii_case(b"nx") {
        Some(SetCondition::IfMissing)
    } else if word.eq_ignore_ascii_case(b"xx") {
        Some(SetCondition::IfPresent)
    } else if word.eq_ignore_ascii_case(b"ifeq") {
        Some(SetCondition::IfEqual(rest.next().ok_or(Error::SYNTAX)?))
    } else {
        None
    })
}

/// Parses the options after `GETEX key`.
pub(super) fn getex_lifetime(args: Args<'_>) -> Result<Lifetime<'_>, Error> {
    let mut lifetime = Lifetime::Unsaid;
    let mut words = args.from(2);
    while let Some(word) = words.next() {
        let new = if word.eq_ignore_ascii_case(b"persist") {
            Lifetime::Persist
        } else {
            deadline(word, &mut words)?
        };
        lifetime.set(new)?;
    }
    Ok(lifetime)
}

/// Parses a word that must name a clock, with the number after it.
pub(crate) fn deadline<'a>(
    word: &[u8],
    rest: &mut impl Iterator<Item = &'a [u8]>,
) -> Result<Lifetime<'a>, Error> {
    let clock = DeadlineUnit::named(word).ok_or(Error::SYNTAX)?;
    let number = rest.next().ok_or(Error::SYNTAX)?;
    Ok(Lifetime::Until(Deadline { clock, number }))
}

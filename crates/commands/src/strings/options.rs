//! The options of SET and GETEX: conditions and lifetimes.

use store::UnixMillis;

use crate::{Args, Error};

/// The condition under which SET sets the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SetCondition {
    Always,
    /// `NX`
    IfMissing,
    /// `XX`
    IfPresent,
}

impl SetCondition {
    pub(super) fn allows(self, present: bool) -> bool {
        match self {
            SetCondition::Always => true,
            SetCondition::IfMissing => !present,
            SetCondition::IfPresent => present,
        }
    }
}

/// The change to a key's expiry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lifetime<'a> {
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
    fn set(&mut self, new: Lifetime<'a>) -> Result<(), Error> {
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
pub(super) enum DeadlineUnit {
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
    fn named(word: &[u8]) -> Option<DeadlineUnit> {
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
pub(super) struct Deadline<'a> {
    pub(super) clock: DeadlineUnit,
    pub(super) number: &'a [u8],
}

impl Deadline<'_> {
    pub(super) fn resolve(self, now: UnixMillis, full_name: &str) -> Result<UnixMillis, Error> {
        let number = resp::parse_integer(self.number).ok_or(Error::NOT_AN_INTEGER)?;
        let start = if self.clock.is_absolute() { 0 } else { now.0 };
        Some(number)
            .filter(|number| *number > 0)
            .and_then(|number| number.checked_mul(self.clock.factor()))
            .and_then(|millis| millis.checked_add_unsigned(start))
            .and_then(|at| u64::try_from(at).ok())
            .map(UnixMillis)
            .ok_or_else(|| Error::invalid_expire(full_name))
    }
}

/// All options after `SET key value`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SetOptions<'a> {
    pub(super) condition: SetCondition,
    pub(super) lifetime: Lifetime<'a>,
    /// `GET`: the reply is the old value.
    pub(super) returns_old: bool,
}

impl<'a> SetOptions<'a> {
    pub(super) fn parse(args: Args<'a>) -> Result<SetOptions<'a>, Error> {
        let mut options = SetOptions {
            condition: SetCondition::Always,
            lifetime: Lifetime::Unsaid,
            returns_old: false,
        };
        let mut words = args.from(3);
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"nx") && options.condition != SetCondition::IfPresent {
                options.condition = SetCondition::IfMissing;
            } else if word.eq_ignore_ascii_case(b"xx")
                && options.condition != SetCondition::IfMissing
            {
                options.condition = SetCondition::IfPresent;
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
fn deadline<'a>(
    word: &[u8],
    rest: &mut impl Iterator<Item = &'a [u8]>,
) -> Result<Lifetime<'a>, Error> {
    let clock = DeadlineUnit::named(word).ok_or(Error::SYNTAX)?;
    let number = rest.next().ok_or(Error::SYNTAX)?;
    Ok(Lifetime::Until(Deadline { clock, number }))
}

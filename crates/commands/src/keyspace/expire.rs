//! Expiry of keys: EXPIRE and its variants set it, TTL and its variants read it, PERSIST removes it.

use settings::NotifyClasses;
use store::{Effect, UnixMillis};

use crate::Error;
use crate::context::Context;
use crate::error::repeated;
use crate::spec::{BLANK, Flag, Flags, KeySpec, Spec};
use crate::strings::DeadlineUnit;

/// The common part of EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
const SETTER: Spec =
    Spec { arity: -3, flags: Flags::of(&[Flag::Write, Flag::Fast]), keys: KeySpec::FIRST, ..BLANK };

/// The common part of TTL, PTTL, EXPIRETIME and PEXPIRETIME.
const GETTER: Spec = Spec {
    arity: 2,
    flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
    keys: KeySpec::FIRST,
    ..BLANK
};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "expire",
        full_name: "expire",
        summary: "Sets the expiry of a key in seconds.",
        syntax: "key seconds [NX | XX | GT | LT]",
        run: Some(expire),
        ..SETTER
    },
    Spec {
        name: "pexpire",
        full_name: "pexpire",
        summary: "Sets the expiry of a key in milliseconds.",
        syntax: "key milliseconds [NX | XX | GT | LT]",
        since: "2.6.0",
        run: Some(pexpire),
        ..SETTER
    },
    Spec {
        name: "expireat",
        full_name: "expireat",
        summary: "Sets the expiry of a key to a Unix time in seconds.",
        syntax: "key unix-time-seconds [NX | XX | GT | LT]",
        since: "1.2.0",
        run: Some(expireat),
        ..SETTER
    },
    Spec {
        name: "pexpireat",
        full_name: "pexpireat",
        summary: "Sets the expiry of a key to a Unix time in milliseconds.",
        syntax: "key unix-time-milliseconds [NX | XX | GT | LT]",
        since: "2.6.0",
        run: Some(pexpireat),
        ..SETTER
    },
    Spec {
        name: "ttl",
        full_name: "ttl",
        summary: "Returns the time to live of a key in seconds.",
        syntax: "key",
        run: Some(ttl),
        ..GETTER
    },
    Spec {
        name: "pttl",
        full_name: "pttl",
        summary: "Returns the time to live of a key in milliseconds.",
        syntax: "key",
        since: "2.6.0",
        run: Some(pttl),
        ..GETTER
    },
    Spec {
        name: "expiretime",
        full_name: "expiretime",
        summary: "Returns the Unix time in seconds at which a key expires.",
        syntax: "key",
        since: "7.0.0",
        run: Some(expiretime),
        ..GETTER
    },
    Spec {
        name: "pexpiretime",
        full_name: "pexpiretime",
        summary: "Returns the Unix time in milliseconds at which a key expires.",
        syntax: "key",
        since: "7.0.0",
        run: Some(pexpiretime),
        ..GETTER
    },
    Spec {
        name: "persist",
        full_name: "persist",
        summary: "Removes the expiry of a key.",
        syntax: "key",
        since: "2.2.0",
        arity: 2,
        run: Some(persist),
        ..SETTER
    },
];

fn expire(context: &mut Context<'_>) -> Result<(), Error> {
    set_expiry(context, DeadlineUnit::Seconds)
}

fn pexpire(context: &mut Context<'_>) -> Result<(), Error> {
    set_expiry(context, DeadlineUnit::Millis)
}

fn expireat(context: &mut Context<'_>) -> Result<(), Error> {
    set_expiry(context, DeadlineUnit::UnixSeconds)
}

fn pexpireat(context: &mut Context<'_>) -> Result<(), Error> {
    set_expiry(context, DeadlineUnit::UnixMillis)
}

fn set_expiry(context: &mut Context<'_>, unit: DeadlineUnit) -> Result<(), Error> {
    let condition = ExpireCondition::parse(context.args.from(3))?;
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    // Possibly negative: that is past.
    let at = unit.millis(context.integer(2)?, now);
    let at = at.ok_or_else(|| Error::invalid_expire(context.spec.full_name))?;
    let Some(found) = context.keys.find(&key) else {
        context.reply.integer(0);
        return Ok(());
    };
    if !condition.allows(found.expires_at, at) {
        context.reply.integer(0);
        return Ok(());
    }
    match u64::try_from(at).map(UnixMillis) {
        Ok(at) if at > now => {
            context.keys.apply(&Effect::Expire { key, at: Some(at) });
            context.keys.notify(NotifyClasses::GENERIC, "expire", key.bytes());
        }
        // A time in the past deletes the key, with the event of a deletion.
        Ok(_) | Err(_) => {
            context.keys.remove(&key);
            context.keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
        }
    }
    context.reply.integer(1);
    Ok(())
}

/// The condition on the present expiry of a key or a field for setting a new one: NX, XX, GT, LT.
#[derive(Default)]
pub(crate) struct ExpireCondition {
    only_without: bool,
    only_with: bool,
    only_later: bool,
    only_sooner: bool,
}

impl ExpireCondition {
    pub(crate) fn parse<'a>(
        words: impl Iterator<Item = &'a [u8]>,
    ) -> Result<ExpireCondition, Error> {
        let mut condition = ExpireCondition::default();
        for option in words {
            match option.to_ascii_lowercase().as_slice() {
                b"nx" => condition.only_without = true,
                b"xx" => condition.only_with = true,
                b"gt" => condition.only_later = true,
                b"lt" => condition.only_sooner = true,
                _ => {
                    let option = repeated(option, option.len());
                    return Err(Error::new(format!("ERR Unsupported option {option}")));
                }
            }
        }
        condition.checked()
    }

    fn checked(self) -> Result<ExpireCondition, Error> {
        if self.only_without && (self.only_with || self.only_later || self.only_sooner) {
            return Err(Error::fixed(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if self.only_later && self.only_sooner {
            return Err(Error::fixed("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(self)
    }

    /// Checks the condition. No expiry counts as infinite: nothing is later, everything is sooner.
    pub(crate) fn allows(&self, present: Option<UnixMillis>, at: i64) -> bool {
        match present.map(|present| present.0.cast_signed()) {
            None => !self.only_with && !self.only_later,
            Some(present) => {
                !self.only_without
                    && (!self.only_later || at > present)
                    && (!self.only_sooner || at < present)
            }
        }
    }
}

fn ttl(context: &mut Context<'_>) -> Result<(), Error> {
    tell_expiry(context, DeadlineUnit::Seconds);
    Ok(())
}

fn pttl(context: &mut Context<'_>) -> Result<(), Error> {
    tell_expiry(context, DeadlineUnit::Millis);
    Ok(())
}

fn expiretime(context: &mut Context<'_>) -> Result<(), Error> {
    tell_expiry(context, DeadlineUnit::UnixSeconds);
    Ok(())
}

fn pexpiretime(context: &mut Context<'_>) -> Result<(), Error> {
    tell_expiry(context, DeadlineUnit::UnixMillis);
    Ok(())
}

/// The replies if there is no time to return.
const NO_KEY: i64 = -2;
const NO_EXPIRY: i64 = -1;

fn tell_expiry(context: &mut Context<'_>, unit: DeadlineUnit) {
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let told = match context.keys.inspect(&key).map(|found| found.expires_at) {
        None => NO_KEY,
        Some(None) => NO_EXPIRY,
        Some(Some(at)) => unit.number(at, now),
    };
    context.reply.integer(told);
}

fn persist(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let expires = context.keys.find(&key).is_some_and(|found| found.expires_at.is_some());
    if expires {
        context.keys.apply(&Effect::Expire { key, at: None });
        context.keys.notify(NotifyClasses::GENERIC, "persist", key.bytes());
    }
    context.reply.integer(i64::from(expires));
    Ok(())
}

#[cfg(test)]
mod skewed;
#[cfg(test)]
mod tests;

//! DUMP serialises a value in Redis's format, RESTORE creates a key from it.

use settings::NotifyClasses;
use store::{AccessMark, AccessTracking, Effect, UnixMillis};

use crate::Error;
use crate::context::Context;
use crate::rdb::{self, PayloadError, RestoredValue};
use crate::spec::{BLANK, Flag, Flags, KeySpec, Spec};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "dump",
        full_name: "dump",
        summary: "Returns the value of a key in serialised form.",
        syntax: "key",
        since: "2.6.0",
        complexity: "O(N) where N is the size of the value.",
        arity: 2,
        flags: Flags::of(&[Flag::ReadOnly]),
        keys: KeySpec::FIRST,
        run: Some(dump),
        ..BLANK
    },
    Spec {
        name: "restore",
        full_name: "restore",
        summary: "Creates a key from a value in serialised form.",
        syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
        since: "2.6.0",
        complexity: "O(N) where N is the size of the value.",
        arity: -4,
        flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Dangerous]),
        keys: KeySpec::FIRST,
        run: Some(restore),
        ..BLANK
    },
];

fn dump(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    match context.keys.read(&key) {
        Some(found) => context.reply.bulk(&rdb::dump(found.value(), now)),
        None => context.reply.null(),
    }
    Ok(())
}

fn restore(context: &mut Context<'_>) -> Result<(), Error> {
    let options = RestoreOptions::parse(context)?;
    let key = context.key(1);
    if !options.replace && context.keys.find(&key).is_some() {
        return Err(Error::fixed("BUSYKEY Target key name already exists."));
    }
    let ttl = context.integer(2)?;
    if ttl < 0 {
        return Err(Error::fixed("ERR Invalid TTL value, must be >= 0"));
    }
    let value = value_of(context)?;
    let now = context.keys.now_in(key.slot());
    match options.expiry(ttl, now) {
        Expiry::Past => {
            if context.keys.remove(&key) {
                context.keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
            }
        }
        Expiry::Never => restore_as(context, &value, None, options.mark),
        Expiry::At(at) => restore_as(context, &value, Some(at), options.mark),
    }
    context.reply.ok();
    Ok(())
}

fn restore_as(
    context: &mut Context<'_>,
    value: &RestoredValue<'_>,
    expires_at: Option<UnixMillis>,
    mark: Option<AccessMark>,
) {
    let key = context.key(1);
    context.keys.replace_key(key, value.new_value(), expires_at);
    if let Some(mark) = mark {
        context.keys.apply(&Effect::Mark { key, mark });
    }
    context.keys.notify(NotifyClasses::GENERIC, "restore", key.bytes());
}

fn value_of<'a>(context: &Context<'a>) -> Result<RestoredValue<'a>, Error> {
    let bytes_max = context.keys.env().string_bytes_max;
    rdb::restore(context.args.at(3), bytes_max).map_err(|error| match error {
        PayloadError::WrongChecksum => {
            Error::fixed("ERR DUMP payload version or checksum are wrong")
        }
        PayloadError::BadFormat => Error::fixed("ERR Bad data format"),
    })
}

#[derive(Default)]
struct RestoreOptions {
    replace: bool,
    /// True if the time to live is an absolute time since 1970.
    absolute: bool,
    /// The access mark of the key, in the terms of the present eviction policy.
    mark: Option<AccessMark>,
}

enum Expiry {
    Never,
    At(UnixMillis),
    Past,
}

impl RestoreOptions {
    fn parse(context: &Context<'_>) -> Result<RestoreOptions, Error> {
        let args = context.args;
        let (mut options, mut idle, mut frequency) = (RestoreOptions::default(), None, None);
        let mut index = 4;
        while index < args.len() {
            let has_value = index + 1 < args.len();
            match args.at(index).to_ascii_lowercase().as_slice() {
                b"replace" => options.replace = true,
                b"absttl" => options.absolute = true,
                b"idletime" if has_value && frequency.is_none() => {
                    index += 1;
                    idle = Some(idle_seconds(context.integer(index)?)?);
                }
                b"freq" if has_value && idle.is_none() => {
                    index += 1;
                    frequency = Some(counter(context.integer(index)?)?);
                }
                _ => return Err(Error::SYNTAX),
            }
            index += 1;
        }
        let env = context.keys.env();
        options.mark = match env.access {
            AccessTracking::Lru => idle.map(|seconds| AccessMark::idle_for(env.now, seconds)),
            AccessTracking::Lfu(_) => {
                frequency.map(|count| AccessMark::with_frequency(env.now, count))
            }
        };
        Ok(options)
    }

    fn expiry(&self, ttl: i64, now: UnixMillis) -> Expiry {
        if ttl == 0 {
            return Expiry::Never;
        }
        // A sum beyond 64 bits counts as past, as in Redis.
        let base = if self.absolute { 0 } else { now.0.cast_signed() };
        match u64::try_from(ttl.wrapping_add(base)).map(UnixMillis) {
            Ok(at) if at > now => Expiry::At(at),
            Ok(_) | Err(_) => Expiry::Past,
        }
    }
}

/// Maximum of an idle time, which has 24 bits.
const IDLE_SECONDS_MAX: u32 = (1 << 24) - 1;

fn idle_seconds(number: i64) -> Result<u32, Error> {
    let number = u64::try_from(number)
        .map_err(|_| Error::fixed("ERR Invalid IDLETIME value, must be >= 0"))?;
    Ok(u32::try_from(number).unwrap_or(IDLE_SECONDS_MAX).min(IDLE_SECONDS_MAX))
}

fn counter(number: i64) -> Result<u8, Error> {
    u8::try_from(number)
        .map_err(|_| Error::fixed("ERR Invalid FREQ value, must be >= 0 and <= 255"))
}

#[cfg(test)]
mod tests;

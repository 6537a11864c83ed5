//! SETBIT, GETBIT: a single bit.

use settings::NotifyClasses;
use store::Effect;

use super::parse_bit;
use crate::Error;
use crate::context::Context;
use crate::strings::{string_of, with_bytes};

pub(super) fn getbit(context: &mut Context<'_>) -> Result<(), Error> {
    let bit = parse_bit(&context.keys, context.args.at(2), None)?;
    let key = context.key(1);
    let byte = match context.keys.read(&key) {
        Some(found) => byte_at(string_of(&found)?, bit / 8),
        None => None,
    };
    context.reply.integer((byte.unwrap_or(0) & mask(bit) != 0).into());
    Ok(())
}

pub(super) fn setbit(context: &mut Context<'_>) -> Result<(), Error> {
    let bit = parse_bit(&context.keys, context.args.at(2), None)?;
    let on = match context.args.at(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(Error::fixed("ERR bit is not an integer or out of range")),
    };
    let key = context.key(1);
    let old = match context.keys.find(&key) {
        Some(found) => byte_at(string_of(&found)?, bit / 8),
        None => None,
    };
    let new = old.unwrap_or(0) & !mask(bit) | if on { mask(bit) } else { 0 };
    // A string too short for this bit grows even if the bit is zero.
    if old != Some(new) {
        context.keys.apply(&Effect::Overwrite { key, offset: bit / 8, bytes: &[new] });
        context.keys.notify(NotifyClasses::STRING, "setbit", key.bytes());
    }
    context.reply.integer((old.unwrap_or(0) & mask(bit) != 0).into());
    Ok(())
}

fn byte_at(value: store::StringValue<'_>, place: usize) -> Option<u8> {
    with_bytes(value, |bytes| bytes.get(place).copied())
}

/// Returns the mask of the bit within its byte.
fn mask(bit: usize) -> u8 {
    0x80 >> (bit % 8)
}

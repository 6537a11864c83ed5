//! The library `bit`: operations on 32-bit integers, as LuaBitOp 1.0.2 has them.

use mlua::{Lua, MultiValue, Result, Table};

use crate::args::number;

/// Returns a number modulo 2 to the 32nd, rounded to the nearest integer.
fn to_bits(number: f64) -> u32 {
    if !number.is_finite() {
        return 0;
    }
    // Numbers are rounded to the nearest integer, halves to even.
    number.round_ties_even().rem_euclid(4_294_967_296.0) as u32
}

fn bits(lua: &Lua, args: &MultiValue, index: usize, function: &str) -> Result<u32> {
    number(lua, args, index, function).map(to_bits)
}

/// Returns a result as the signed number that scripts see.
fn signed(bits: u32) -> f64 {
    f64::from(bits.cast_signed())
}

fn unary(lua: &Lua, name: &'static str, compute: fn(u32) -> u32) -> Result<mlua::Function> {
    lua.create_function(move |lua, args: MultiValue| {
        Ok(signed(compute(bits(lua, &args, 0, name)?)))
    })
}

fn folded(lua: &Lua, name: &'static str, join: fn(u32, u32) -> u32) -> Result<mlua::Function> {
    lua.create_function(move |lua, args: MultiValue| {
        let mut all = bits(lua, &args, 0, name)?;
        for index in 1..args.len() {
            all = join(all, bits(lua, &args, index, name)?);
        }
        Ok(signed(all))
    })
}

fn shift(lua: &Lua, name: &'static str, compute: fn(u32, u32) -> u32) -> Result<mlua::Function> {
    lua.create_function(move |lua, args: MultiValue| {
        let (number, by) = (bits(lua, &args, 0, name)?, bits(lua, &args, 1, name)?);
        Ok(signed(compute(number, by & 31)))
    })
}

fn to_hex(lua: &Lua, args: &MultiValue) -> Result<String> {
    let number = bits(lua, args, 0, "tohex")?;
    let digits = if args.len() > 1 { bits(lua, args, 1, "tohex")?.cast_signed() } else { 8 };
    let count = usize::try_from(digits.unsigned_abs()).unwrap_or(8).min(8);
    let text = if digits < 0 { format!("{number:08X}") } else { format!("{number:08x}") };
    Ok(text[8 - count..].to_owned())
}

pub(crate) fn library(lua: &Lua) -> Result<Table> {
    let bit = lua.create_table()?;
    bit.raw_set("tobit", unary(lua, "tobit", |bits| bits)?)?;
    bit.raw_set("bnot", unary(lua, "bnot", |bits| !bits)?)?;
    bit.raw_set("bswap", unary(lua, "bswap", u32::swap_bytes)?)?;
    bit.raw_set("band", folded(lua, "band", |a, b| a & b)?)?;
    bit.raw_set("bor", folded(lua, "bor", |a, b| a | b)?)?;
    bit.raw_set("bxor", folded(lua, "bxor", |a, b| a ^ b)?)?;
    bit.raw_set("lshift", shift(lua, "lshift", |bits, by| bits << by)?)?;
    bit.raw_set("rshift", shift(lua, "rshift", |bits, by| bits >> by)?)?;
    let arshift = |bits: u32, by: u32| (bits.cast_signed() >> by).cast_unsigned();
    bit.raw_set("arshift", shift(lua, "arshift", arshift)?)?;
    bit.raw_set("rol", shift(lua, "rol", u32::rotate_left)?)?;
    bit.raw_set("ror", shift(lua, "ror", u32::rotate_right)?)?;
    bit.raw_set("tohex", lua.create_function(|lua, args: MultiValue| to_hex(lua, &args))?)?;
    Ok(bit)
}

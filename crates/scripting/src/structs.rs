//! The library `struct`: values in C structures, as `struct` 0.2 of Roberto Ierusalimschy with Redis's checks has them.

use mlua::{IntoLua, Lua, LuaString, MultiValue, Result, Table, Value};

use crate::args::{integer, number, string};
use crate::raise::{bad_argument, raise};

/// Maximum size of an integer.
const INTEGER_BYTES_MAX: usize = 32;
/// The alignment that `!` asks for without a number.
const NATIVE_ALIGNMENT: usize = 8;
/// Maximum length of a packed string and number of unpacked values: the format can be written shorter than its result.
const RESULT_BYTES_MAX: usize = 64 << 20;
/// Lua's stack takes a few thousand results of a function.
const RESULTS_MAX: usize = 7000;

/// The rest of a format, and the settings so far.
struct Format<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    is_big: bool,
    align: usize,
}

/// One element of a format: its letter and its size.
struct Element {
    letter: u8,
    size: usize,
}

impl<'a> Format<'a> {
    fn new(lua: &'a Lua, text: &'a [u8]) -> Format<'a> {
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        Format { lua, rest: &text[..end], is_big: false, align: 1 }
    }

    fn next(&mut self) -> Result<Option<Element>> {
        let Some((&letter, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let size = match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_BYTES_MAX {
                    let what =
                        format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(raise(self.lua, what));
                }
                size
            }
            _ => 0,
        };
        Ok(Some(Element { letter, size }))
    }

    /// Reads a number of the format, which may be missing.
    fn number(&mut self, default: usize) -> Result<usize> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return Ok(default);
        }
        let mut number = 0_i32;
        while let Some((digit @ b'0'..=b'9', rest)) = self.rest.split_first() {
            let next =
                number.checked_mul(10).and_then(|it| it.checked_add(i32::from(digit - b'0')));
            number = next.ok_or_else(|| raise(self.lua, "integral size overflow"))?;
            self.rest = rest;
        }
        Ok(usize::try_from(number).unwrap_or(0))
    }

    /// Returns the bytes before an element at this position.
    fn padding(&self, at: usize, element: &Element) -> usize {
        if element.size == 0 || element.letter == b'c' {
            return 0;
        }
        let size = element.size.min(self.align);
        // As in C, also for sizes that are no power of two.
        (size.wrapping_sub(at & (size - 1))) & (size - 1)
    }

    /// Applies a letter that describes no value.
    fn control(&mut self, letter: u8, function: &str) -> Result<()> {
        match letter {
            b' ' => {}
            b'>' => self.is_big = true,
            b'<' => self.is_big = false,
            b'!' => {
                let align = self.number(NATIVE_ALIGNMENT)?;
                if !align.is_power_of_two() {
                    return Err(raise(self.lua, format!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            _ => {
                let what = [b"invalid format option '", &[letter][..], b"'"].concat();
                let what = String::from_utf8_lossy(&what).into_owned();
                return Err(bad_argument(self.lua, 1, function, &what));
            }
        }
        Ok(())
    }
}

fn pack(lua: &Lua, args: &MultiValue) -> Result<LuaString> {
    // A missing argument counts as nil, in errors.
    let args = &args.iter().cloned().chain([Value::Nil]).collect::<MultiValue>();
    let text = string(lua, args, 0, "pack")?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, &text);
    let mut packed = Vec::new();
    let mut arg = 1;
    let mut total = 0_usize;
    while let Some(element) = format.next()? {
        let padding = format.padding(total, &element);
        packed.resize(packed.len() + padding, 0);
        let before = packed.len();
        let mut size = element.size;
        match element.letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                put_integer(&mut packed, number(lua, args, arg, "pack")?, size, format.is_big);
                arg += 1;
            }
            b'x' => packed.push(0),
            b'f' | b'd' => {
                let number = number(lua, args, arg, "pack")?;
                let mut bytes = match element.letter {
                    b'f' => (number as f32).to_le_bytes().to_vec(),
                    _ => number.to_le_bytes().to_vec(),
                };
                if format.is_big {
                    bytes.reverse();
                }
                packed.extend(bytes);
                arg += 1;
            }
            b'c' | b's' => {
                let text = string(lua, args, arg, "pack")?;
                arg += 1;
                let text = text.as_bytes();
                if size == 0 {
                    size = text.len();
                }
                if text.len() < size {
                    return Err(bad_argument(lua, arg + 1, "pack", "string too short"));
                }
                packed.extend_from_slice(&text[..size]);
                if element.letter == b's' {
                    packed.push(0);
                }
            }
            letter => format.control(letter, "pack")?,
        }
        total += padding + (packed.len() - before);
        if packed.len() > RESULT_BYTES_MAX {
            return Err(raise(lua, "the result is too long"));
        }
    }
    lua.create_string(packed)
}

/// Appends the low bytes of an integer; those beyond the eighth are 0.
fn put_integer(packed: &mut Vec<u8>, number: f64, size: usize, is_big: bool) {
    let value = if number < 0.0 {
        crate::number::to_integer(number) as u64
    } else if number < 18_446_744_073_709_551_616.0 {
        number as u64
    } else {
        0
    };
    let mut bytes: Vec<u8> = value.to_le_bytes().to_vec();
    bytes.resize(size.max(8), 0);
    bytes.truncate(size);
    if is_big {
        bytes.reverse();
    }
    packed.extend(bytes);
}

fn integer_at(bytes: &[u8], is_big: bool, is_signed: bool) -> f64 {
    let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let mut value =
        if is_big { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) };
    if !is_signed {
        return value as f64;
    }
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32 * 8).wrapping_sub(1));
    if value & mask != 0 {
        value |= mask;
    }
    value.cast_signed() as f64
}

fn float_at(bytes: &[u8], is_big: bool) -> f64 {
    let mut bytes = bytes.to_vec();
    if is_big {
        bytes.reverse();
    }
    match bytes.as_slice() {
        [a, b, c, d] => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
        _ => 0.0,
    }
}

fn unpack(lua: &Lua, args: &MultiValue) -> Result<MultiValue> {
    let text = string(lua, args, 0, "unpack")?;
    let text = text.as_bytes();
    let data = string(lua, args, 1, "unpack")?;
    let data = data.as_bytes();
    let first = match args.get(2) {
        None | Some(Value::Nil) => 1,
        Some(_) => integer(lua, args, 2, "unpack")?,
    };
    // As in C, a negative position is a great one.
    let mut at = usize::try_from(first).unwrap_or(usize::MAX);
    if at == 0 {
        return Err(bad_argument(lua, 3, "unpack", "offset must be 1 or greater"));
    }
    at -= 1;
    let mut format = Format::new(lua, &text);
    let mut values: Vec<Value> = Vec::new();
    let too_short = || bad_argument(lua, 2, "unpack", "data string too short");
    let slice = |at: usize, size: usize| {
        at.checked_add(size).and_then(|end| data.get(at..end)).ok_or_else(too_short)
    };
    while let Some(element) = format.next()? {
        at = at.saturating_add(format.padding(at, &element));
        let mut size = element.size;
        let bytes = slice(at, size)?;
        if values.len() >= RESULTS_MAX {
            return Err(raise(lua, "stack overflow (too many results)"));
        }
        match element.letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let is_signed = element.letter.is_ascii_lowercase();
                values.push(Value::Number(integer_at(bytes, format.is_big, is_signed)));
            }
            b'x' => {}
            b'f' | b'd' => values.push(Value::Number(float_at(bytes, format.is_big))),
            b'c' => {
                if size == 0 {
                    size = previous_size(lua, values.pop())?;
                }
                values.push(lua.create_string(slice(at, size)?)?.into_lua(lua)?);
            }
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let Some(end) = rest.iter().position(|byte| *byte == 0) else {
                    return Err(raise(lua, "unfinished string in data"));
                };
                values.push(lua.create_string(&rest[..end])?.into_lua(lua)?);
                size = end + 1;
            }
            letter => format.control(letter, "unpack")?,
        }
        at += size;
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(MultiValue::from_vec(values))
}

/// Returns the length of a string whose format is `c0`: the value before it.
fn previous_size(lua: &Lua, previous: Option<Value>) -> Result<usize> {
    let number = previous.map(|value| lua.coerce_number(value)).transpose()?.flatten();
    match number {
        Some(number) => Ok(if number < 0.0 { usize::MAX } else { number as usize }),
        None => Err(raise(lua, "format 'c0' needs a previous size")),
    }
}

fn size(lua: &Lua, args: &MultiValue) -> Result<f64> {
    let text = string(lua, args, 0, "size")?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, &text);
    let mut at = 0_usize;
    while let Some(element) = format.next()? {
        at = at.wrapping_add(format.padding(at, &element));
        let variable = match element.letter {
            b's' => Some("option 's' has no fixed size"),
            b'c' if element.size == 0 => Some("option 'c0' has no fixed size"),
            _ => None,
        };
        if let Some(what) = variable {
            return Err(bad_argument(lua, 1, "size", what));
        }
        if !element.letter.is_ascii_alphanumeric() {
            format.control(element.letter, "size")?;
        }
        at = at.wrapping_add(element.size);
    }
    Ok(at as f64)
}

pub(crate) fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(|lua, args: MultiValue| pack(lua, &args))?)?;
    table.raw_set("unpack", lua.create_function(|lua, args: MultiValue| unpack(lua, &args))?)?;
    table.raw_set("size", lua.create_function(|lua, args: MultiValue| size(lua, &args))?)?;
    Ok(table)
}

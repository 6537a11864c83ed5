//! JSON to values.

use mlua::{Lua, MultiValue, Result, Value};

use super::strtod::strtod;
use super::{DEPTH_MAX, InvalidNumbers, Options};
use crate::args::string;
use crate::raise::{bad_argument, raise};

pub(super) fn decode(lua: &Lua, args: &MultiValue, options: &Options) -> Result<Value> {
    if args.len() != 1 {
        return Err(bad_argument(lua, 1, "decode", "expected 1 argument"));
    }
    let text = string(lua, args, 0, "decode")?;
    let text = text.as_bytes();
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(raise(lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut decoder = Decoder { lua, options, text: &text, at: 0, depth: 0 };
    let first = decoder.token();
    let value = decoder.value(first)?;
    let last = decoder.token();
    match last.kind {
        Kind::End => Ok(value),
        _ => Err(decoder.unexpected("the end", &last)),
    }
}

enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Invalid(&'static str),
}

impl Kind {
    /// Returns the name of the token in errors.
    fn name(&self) -> &'static str {
        match self {
            Kind::ObjectBegin => "T_OBJ_BEGIN",
            Kind::ObjectEnd => "T_OBJ_END",
            Kind::ArrayBegin => "T_ARR_BEGIN",
            Kind::ArrayEnd => "T_ARR_END",
            Kind::String(_) => "T_STRING",
            Kind::Number(_) => "T_NUMBER",
            Kind::Boolean(_) => "T_BOOLEAN",
            Kind::Null => "T_NULL",
            Kind::Colon => "T_COLON",
            Kind::Comma => "T_COMMA",
            Kind::End => "T_END",
            Kind::Invalid(what) => what,
        }
    }
}

struct Token {
    kind: Kind,
    at: usize,
}

struct Decoder<'a> {
    lua: &'a Lua,
    options: &'a Options,
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Decoder<'_> {
    fn unexpected(&self, expected: &str, token: &Token) -> mlua::Error {
        let (found, at) = (token.kind.name(), token.at + 1);
        raise(self.lua, format!("Expected {expected} but found {found} at character {at}"))
    }

    fn value(&mut self, token: Token) -> Result<Value> {
        Ok(match token.kind {
            Kind::String(text) => Value::String(self.lua.create_string(text)?),
            Kind::Number(number) => Value::Number(number),
            Kind::Boolean(truth) => Value::Boolean(truth),
            Kind::Null => Value::NULL,
            Kind::ObjectBegin => self.object()?,
            Kind::ArrayBegin => self.array()?,
            Kind::ObjectEnd
            | Kind::ArrayEnd
            | Kind::Colon
            | Kind::Comma
            | Kind::End
            | Kind::Invalid(_) => return Err(self.unexpected("value", &token)),
        })
    }

    fn descend(&mut self) -> Result<()> {
        self.depth += 1;
        let allowed = usize::try_from(self.options.decode_depth).unwrap_or(DEPTH_MAX);
        if self.depth <= allowed.min(DEPTH_MAX) {
            return Ok(());
        }
        let (depth, at) = (self.depth, self.at);
        let what = format!("Found too many nested data structures ({depth}) at character {at}");
        Err(raise(self.lua, what))
    }

    fn object(&mut self) -> Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.token();
        while !matches!(token.kind, Kind::ObjectEnd) {
            let key = match token.kind {
                Kind::String(text) => self.lua.create_string(text)?,
                _ => return Err(self.unexpected("object key string", &token)),
            };
            let colon = self.token();
            if !matches!(colon.kind, Kind::Colon) {
                return Err(self.unexpected("colon", &colon));
            }
            let first = self.token();
            let value = self.value(first)?;
            table.raw_set(key, value)?;
            token = self.token();
            match token.kind {
                Kind::ObjectEnd => break,
                Kind::Comma => token = self.token(),
                _ => return Err(self.unexpected("comma or object end", &token)),
            }
            if matches!(token.kind, Kind::ObjectEnd) {
                return Err(self.unexpected("object key string", &token));
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn array(&mut self) -> Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.token();
        let mut index = 1;
        while !matches!(token.kind, Kind::ArrayEnd) {
            let value = self.value(token)?;
            table.raw_set(index, value)?;
            index += 1;
            token = self.token();
            match token.kind {
                Kind::ArrayEnd => break,
                Kind::Comma => token = self.token(),
                _ => return Err(self.unexpected("comma or array end", &token)),
            }
            if matches!(token.kind, Kind::ArrayEnd) {
                return Err(self.unexpected("value", &token));
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn token(&mut self) -> Token {
        while matches!(self.peek(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let at = self.at;
        let single = match self.peek(0) {
            b'{' => Some(Kind::ObjectBegin),
            b'}' => Some(Kind::ObjectEnd),
            b'[' => Some(Kind::ArrayBegin),
            b']' => Some(Kind::ArrayEnd),
            b':' => Some(Kind::Colon),
            b',' => Some(Kind::Comma),
            0 if at >= self.text.len() => return Token { kind: Kind::End, at },
            _ => None,
        };
        if let Some(kind) = single {
            self.at += 1;
            return Token { kind, at };
        }
        let kind = match self.peek(0) {
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => {
                if self.options.decode_invalid == InvalidNumbers::Refused
                    && self.is_invalid_number()
                {
                    Kind::Invalid("invalid number")
                } else {
                    self.number()
                }
            }
            _ => self.word(),
        };
        Token { kind, at }
    }

    fn word(&mut self) -> Kind {
        let rest = &self.text[self.at..];
        for (word, kind) in [
            (&b"true"[..], Kind::Boolean(true)),
            (b"false", Kind::Boolean(false)),
            (b"null", Kind::Null),
        ] {
            if rest.starts_with(word) {
                self.at += word.len();
                return kind;
            }
        }
        if self.options.decode_invalid != InvalidNumbers::Refused && self.is_invalid_number() {
            return self.number();
        }
        Kind::Invalid("invalid token")
    }

    /// Returns whether a number begins here that JSON does not allow, although C reads it.
    fn is_invalid_number(&self) -> bool {
        let rest = &self.text[self.at..];
        if rest.first() == Some(&b'+') {
            return true;
        }
        let rest = rest.strip_prefix(b"-").unwrap_or(rest);
        let begins = |word: &[u8]| rest.len() >= 3 && rest[..3].eq_ignore_ascii_case(word);
        match rest {
            [b'0', second, ..] => matches!(second, b'x' | b'X' | b'0'..=b'9'),
            [b'0'..=b'9', ..] => false,
            _ => begins(b"inf") || begins(b"nan"),
        }
    }

    fn number(&mut self) -> Kind {
        let (number, len) = strtod(&self.text[self.at..]);
        if len == 0 {
            return Kind::Invalid("invalid number");
        }
        self.at += len;
        Kind::Number(number)
    }

    fn string(&mut self) -> Token {
        let begin = self.at;
        let mut text = Vec::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0)).count();
            text.extend_from_slice(&rest[..plain]);
            self.at += plain;
            let what = match self.peek(0) {
                b'"' => {
                    self.at += 1;
                    return Token { kind: Kind::String(text), at: begin };
                }
                b'\\' if self.peek(1) == b'u' => {
                    if self.unicode_escape(&mut text).is_some() {
                        continue;
                    }
                    "invalid unicode escape code"
                }
                b'\\' => {
                    if let Some(byte) = escaped(self.peek(1)) {
                        text.push(byte);
                        self.at += 2;
                        continue;
                    }
                    "invalid escape code"
                }
                _ => "unexpected end of string",
            };
            return Token { kind: Kind::Invalid(what), at: self.at };
        }
    }

    /// Reads `\u` with four hexadecimal digits, or a pair of surrogates.
    fn unicode_escape(&mut self, text: &mut Vec<u8>) -> Option<()> {
        let mut code = self.hex4(2)?;
        let mut len = 6;
        if code & 0xF800 == 0xD800 {
            if code & 0x400 != 0 || self.peek(6) != b'\\' || self.peek(7) != b'u' {
                return None;
            }
            let low = self.hex4(8)?;
            if low & 0xFC00 != 0xDC00 {
                return None;
            }
            code = ((code & 0x3FF) << 10 | (low & 0x3FF)) + 0x10000;
            len = 12;
        }
        let character = char::from_u32(code)?;
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += len;
        Some(())
    }

    fn hex4(&self, ahead: usize) -> Option<u32> {
        (0..4).try_fold(0, |code, index| {
            Some(code * 16 + char::from(self.peek(ahead + index)).to_digit(16)?)
        })
    }
}

fn escaped(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\\' | b'/' => byte,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'f' => 12,
        b'r' => b'\r',
        _ => return None,
    })
}

//! Ids in arguments: `5-1`, `5`, `-`, `+`, `(5-1`, `5-*`. As in Redis, whose parser accepts signs, spaces in front and
//! leading zeros.

use store::StreamId;

use crate::Error;

pub(super) const INVALID_ID: Error =
    Error::fixed("ERR Invalid stream ID specified as stream command argument");

/// Longer arguments are no ids.
const ID_BYTES_MAX: usize = 127;

/// The id that XADD gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NewId {
    /// `*`
    Auto,
    /// `5-*`: the next number in this millisecond.
    InMillisecond(u64),
    Given(StreamId),
}

impl NewId {
    pub(super) fn parse(text: &[u8]) -> Result<NewId, Error> {
        if text == b"*" {
            return Ok(NewId::Auto);
        }
        let (ms, seq) = halves(text)?;
        match seq {
            Some(b"*") => Ok(NewId::InMillisecond(ms)),
            Some(seq) => Ok(NewId::Given(StreamId::new(ms, number(seq).ok_or(INVALID_ID)?))),
            None => Ok(NewId::Given(StreamId::new(ms, 0))),
        }
    }

    /// Returns the id of a new entry behind `last`; `None` if it would not be behind it.
    pub(super) fn resolve(self, last: StreamId, now: u64) -> Option<StreamId> {
        let id = match self {
            NewId::Auto if now > last.ms => StreamId::new(now, 0),
            NewId::Auto => last.next()?,
            NewId::InMillisecond(ms) if ms == last.ms => {
                StreamId::new(ms, last.seq.checked_add(1)?)
            }
            NewId::InMillisecond(ms) => StreamId::new(ms, 0),
            NewId::Given(id) => id,
        };
        (id > last).then_some(id)
    }
}

/// Parses an id whose number may be missing: then it is `missing_seq`.
pub(super) fn parse_id(text: &[u8], missing_seq: u64) -> Result<StreamId, Error> {
    let (ms, seq) = halves(text)?;
    let seq = seq.map_or(Some(missing_seq), number).ok_or(INVALID_ID)?;
    Ok(StreamId { ms, seq })
}

/// Parses an id, or `-` or `+` for the first and the last one.
pub(super) fn parse_edge(text: &[u8], missing_seq: u64) -> Result<StreamId, Error> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => parse_id(text, missing_seq),
    }
}

/// Parses the start of a range. A `(` in front excludes it.
pub(super) fn parse_start(text: &[u8]) -> Result<StreamId, Error> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => parse_id(rest, 0)?
            .next()
            .ok_or(const { Error::fixed("ERR invalid start ID for the interval") }),
        _ => parse_edge(text, 0),
    }
}

/// Parses the end of a range, as [`parse_start`] its start.
pub(super) fn parse_end(text: &[u8]) -> Result<StreamId, Error> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => parse_id(rest, u64::MAX)?
            .previous()
            .ok_or(const { Error::fixed("ERR invalid end ID for the interval") }),
        _ => parse_edge(text, u64::MAX),
    }
}

/// Parses the milliseconds of an id; returns them and the text behind the minus sign.
fn halves(text: &[u8]) -> Result<(u64, Option<&[u8]>), Error> {
    if text.len() > ID_BYTES_MAX {
        return Err(INVALID_ID);
    }
    // As in C, a zero byte ends the text.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut halves = text.splitn(2, |byte| *byte == b'-');
    let ms = halves.next().and_then(number).ok_or(INVALID_ID)?;
    Ok((ms, halves.next()))
}

/// Parses a number as C's `strtoull` does, but to the end: spaces and a sign may stand in front. A negative number
/// counts down from 2^64, but not in its shortest form.
fn number(text: &[u8]) -> Option<u64> {
    if let Some(number) = resp::parse_integer(text) {
        return u64::try_from(number).ok();
    }
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if is_negative { number.wrapping_neg() } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_parsed_as_redis_does() {
        let parsed = |text: &str| parse_id(text.as_bytes(), 7).ok().map(|id| (id.ms, id.seq));
        assert_eq!(parsed("5-1"), Some((5, 1)));
        assert_eq!(parsed("5"), Some((5, 7)));
        assert_eq!(parsed(" 05-+1"), Some((5, 1)));
        assert_eq!(parsed("18446744073709551615-18446744073709551615"), Some((u64::MAX, u64::MAX)));
        let invalid = ["", "-", "+", "5-", "-5", "5-1-1", "5-*", "a", "5 ", "18446744073709551616"];
        for text in invalid {
            assert_eq!(parsed(text), None, "{text:?}");
        }
        assert_eq!(parsed(&format!("{}5", "0".repeat(127))), None);
        assert_eq!(parse_start(b"(5-1"), Ok(StreamId::new(5, 2)));
        assert_eq!(parse_end(b"(5"), Ok(StreamId::new(5, u64::MAX - 1)));
        assert!(parse_start(b"(18446744073709551615-18446744073709551615").is_err());
        assert!(parse_end(b"(0-0").is_err() && parse_start(b"(-").is_err());
        assert_eq!(parse_start(b"(").err(), Some(INVALID_ID));
    }

    #[test]
    fn a_new_id_comes_behind_the_last_one() {
        let last = StreamId::new(10, 3);
        let resolved = |text: &str, now| {
            let id = NewId::parse(text.as_bytes()).expect("an id").resolve(last, now);
            id.map(|id| (id.ms, id.seq))
        };
        assert_eq!(resolved("*", 11), Some((11, 0)));
        assert_eq!(resolved("*", 5), Some((10, 4)));
        assert_eq!(resolved("10-*", 5), Some((10, 4)));
        assert_eq!(resolved("11-*", 5), Some((11, 0)));
        assert_eq!(resolved("9-*", 50), None);
        assert_eq!(resolved("10-3", 50), None);
        assert_eq!(resolved("10-4", 5), Some((10, 4)));
        let last = StreamId::new(7, u64::MAX);
        assert_eq!(NewId::InMillisecond(7).resolve(last, 1), None);
        assert_eq!(NewId::Auto.resolve(last, 1), Some(StreamId::new(8, 0)));
    }
}

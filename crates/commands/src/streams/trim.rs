//! XTRIM, and the options of trimming that XADD shares with it.

use store::{Key, Stream, StreamId, StreamRecord};

use super::ids::{NewId, parse_id};
use super::{Changes, notify, reply_count, stream_of};
use crate::Error;
use crate::context::Context;

/// Maximum number of entries that `~` trims at once, unless LIMIT says otherwise: as Redis with nodes of 100 entries.
const LIMIT: u64 = 100 * 100;

/// The entries to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bound {
    /// This many of them.
    Length(u64),
    /// Those from this id on.
    MinId(StreamId),
}

/// Rules for trimming a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trim {
    bound: Bound,
    /// Only whole blocks.
    is_approximate: bool,
    /// Maximum number of entries to remove; 0 for any number.
    limit: u64,
}

/// The options of XADD or XTRIM.
pub(super) struct TrimOptions {
    pub(super) trim: Option<Trim>,
    pub(super) creates: bool,
    /// The id of XADD, and its index.
    pub(super) id: Option<(NewId, usize)>,
}

/// Range that a trim removes: the entries before an id.
struct Trimmed {
    count: usize,
    from: StreamId,
    /// Also the entry with the highest id, which no id is behind.
    is_all: bool,
}

impl TrimOptions {
    /// Parses the options of XADD, up to its id, or of XTRIM.
    pub(super) fn parse(context: &Context<'_>, adds: bool) -> Result<TrimOptions, Error> {
        let args = context.args;
        let mut options = TrimOptions { trim: None, creates: true, id: None };
        let mut limit = None;
        let mut index = 2;
        while let Some(word) = args.get(index) {
            let more = args.len() - index - 1;
            if adds && word == b"*" {
                options.id = Some((NewId::Auto, index));
                break;
            }
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            if (is("maxlen") || is("minid")) && more > 0 {
                index = options.parse_bound(context, index, is("maxlen"))?;
            } else if is("limit") && more > 0 {
                let number = context.integer(index + 1)?;
                limit =
                    Some(u64::try_from(number).map_err(|_| {
                        const { Error::fixed("ERR The LIMIT argument must be >= 0.") }
                    })?);
                index += 2;
            } else if adds && is("nomkstream") {
                options.creates = false;
                index += 1;
            } else if adds {
                options.id = Some((NewId::parse(word)?, index));
                break;
            } else {
                return Err(Error::SYNTAX);
            }
        }
        options.set_limit(limit, adds)?;
        Ok(options)
    }

    /// Parses MAXLEN or MINID with its bound; returns the index behind it.
    fn parse_bound(
        &mut self,
        context: &Context<'_>,
        index: usize,
        is_length: bool,
    ) -> Result<usize, Error> {
        if self.trim.is_some() {
            return Err(Error::fixed(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ));
        }
        let args = context.args;
        let sign = args.get(index + 1).filter(|_| args.len() - index > 2);
        let is_approximate = sign == Some(b"~");
        let at = index + 1 + usize::from(is_approximate || sign == Some(b"="));
        let bound = if is_length {
            let length = u64::try_from(context.integer(at)?);
            Bound::Length(
                length.map_err(|_| Error::fixed("ERR The MAXLEN argument must be >= 0."))?,
            )
        } else {
            Bound::MinId(parse_id(args.at(at), 0)?)
        };
        self.trim = Some(Trim { bound, is_approximate, limit: 0 });
        Ok(at + 1)
    }

    fn set_limit(&mut self, limit: Option<u64>, adds: bool) -> Result<(), Error> {
        if self.trim.is_none() && limit.is_some_and(|limit| limit > 0) {
            return Err(Error::fixed(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        if self.trim.is_none() && !adds {
            return Err(Error::fixed(
                "ERR syntax error, XTRIM must be called with at least one trimming strategy",
            ));
        }
        let is_approximate = self.trim.is_some_and(|trim| trim.is_approximate);
        if limit.is_some() && !is_approximate {
            return Err(Error::fixed(
                "ERR syntax error, LIMIT cannot be used without the special ~ option",
            ));
        }
        if let Some(trim) = &mut self.trim
            && is_approximate
        {
            trim.limit = limit.unwrap_or(LIMIT);
        }
        Ok(())
    }
}

impl Trim {
    /// Trims the stream of a key, and publishes the event. Returns the number of removed entries.
    pub(super) fn apply(&self, context: &mut Context<'_>, key: Key<'_>) -> Result<usize, Error> {
        let Some(found) = context.keys.peek(&key) else { return Ok(0) };
        let trimmed = self.of(stream_of(&found)?);
        if trimmed.count == 0 {
            return Ok(0);
        }
        let mut changes = Changes::default();
        changes.add(StreamRecord::Trim { id: trimmed.from });
        if trimmed.is_all {
            changes.add(StreamRecord::RemoveEntry { id: StreamId::MAX });
        }
        changes.apply(&mut context.keys, key);
        notify(context, "xtrim", &key);
        Ok(trimmed.count)
    }

    /// Goes over the blocks, and removes those that only have entries out of bounds; then, unless only whole blocks are
    /// to go, entries of the next one.
    fn of(&self, stream: &Stream) -> Trimmed {
        let mut trimmed = Trimmed { count: 0, from: StreamId::MIN, is_all: false };
        let excess = match self.bound {
            Bound::Length(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                stream.len().saturating_sub(length)
            }
            Bound::MinId(_) => usize::MAX,
        };
        for (len, last) in stream.blocks() {
            let removed = trimmed.count + len;
            if trimmed.count >= excess || self.limit > 0 && removed as u64 > self.limit {
                return trimmed;
            }
            let is_out = match self.bound {
                Bound::Length(_) => removed <= excess,
                Bound::MinId(id) => last < id,
            };
            if !is_out {
                break;
            }
            trimmed.count = removed;
            trimmed.is_all = last == StreamId::MAX;
            trimmed.from = last.next().unwrap_or(StreamId::MAX);
        }
        if !self.is_approximate {
            self.trim_within(stream, excess, &mut trimmed);
        }
        trimmed
    }

    fn trim_within(&self, stream: &Stream, excess: usize, trimmed: &mut Trimmed) {
        let is_out = |id: StreamId, count: usize| match self.bound {
            Bound::Length(_) => count < excess,
            Bound::MinId(min) => id < min,
        };
        if trimmed.is_all {
            return;
        }
        for entry in stream.iter_from(trimmed.from) {
            trimmed.from = entry.id();
            if !is_out(entry.id(), trimmed.count) {
                return;
            }
            trimmed.count += 1;
        }
    }
}

pub(super) fn xtrim(context: &mut Context<'_>) -> Result<(), Error> {
    let options = TrimOptions::parse(context, false)?;
    let key = context.key(1);
    let trim = options.trim.ok_or(Error::SYNTAX)?;
    context.keys.find(&key);
    let count = trim.apply(context, key)?;
    reply_count(&mut context.reply, count);
    Ok(())
}

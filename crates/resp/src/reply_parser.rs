//! Parses incoming replies incrementally. Clients call [`ReplyParser::next`]. `skip.rs` reads single items; this
//! file assembles them without recursion: the server chooses the depth of a reply, and must not be able to overflow
//! our stack.

use crate::error::ProtocolError;
use crate::skip::{ItemKind, ReplyItem};
use crate::value::Value;

#[cfg(test)]
mod tests;

/// Limits on one reply that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    pub depth_max: usize,
    /// Number of values in the whole reply, at every depth.
    pub items_max: u64,
}

impl Default for ReplyLimits {
    fn default() -> ReplyLimits {
        ReplyLimits { depth_max: 64, items_max: 64 * 1024 * 1024 }
    }
}

/// Parses the replies of one connection. Keeps the parsed part of an incomplete reply.
#[derive(Debug, Default)]
pub struct ReplyParser {
    limits: ReplyLimits,
    /// Aggregates that are begun and not yet complete, the outermost first.
    open: Vec<OpenAggregate>,
    /// Number of bytes of the reply that are parsed.
    done: usize,
    /// Number of values announced in the reply so far.
    items: u64,
}

#[derive(Debug)]
struct OpenAggregate {
    kind: OpenKind,
    items: Vec<Value>,
    items_left: u64,
}

#[derive(Clone, Copy, Debug)]
enum OpenKind {
    Array,
    Set,
    Push,
    Map,
    Attribute,
}

impl ReplyParser {
    pub fn with_limits(limits: ReplyLimits) -> ReplyParser {
        ReplyParser { limits, ..ReplyParser::default() }
    }

    /// Returns the reply that begins at `at` and its end, or `None` if it is incomplete. Then call again with more
    /// bytes; the reply may have moved to another position in the meantime.
    pub fn next(&mut self, buf: &[u8], at: usize) -> Result<Option<(Value, usize)>, ProtocolError> {
        while let Some(item) = ReplyItem::read(&buf[at + self.done..])? {
            self.done += item.len;
            let Some(value) = self.begin(item.kind)? else { continue };
            if let Some(reply) = self.close(value) {
                let end = at + self.done;
                (self.done, self.items) = (0, 0);
                return Ok(Some((reply, end)));
            }
        }
        Ok(None)
    }

    /// Turns an item into its value, or opens an aggregate and returns `None`.
    fn begin(&mut self, item: ItemKind<'_>) -> Result<Option<Value>, ProtocolError> {
        let items_left = item.children();
        let kind = match item {
            ItemKind::Array(_) => OpenKind::Array,
            ItemKind::Set(_) => OpenKind::Set,
            ItemKind::Push(_) => OpenKind::Push,
            ItemKind::Map(_) => OpenKind::Map,
            ItemKind::Attribute(_) => OpenKind::Attribute,
            ItemKind::Simple(text) => return Ok(Some(Value::Simple(text.to_vec()))),
            ItemKind::Error(text) => return Ok(Some(Value::Error(text.to_vec()))),
            ItemKind::Integer(number) => return Ok(Some(Value::Integer(number))),
            ItemKind::Bulk(bytes) => return Ok(Some(Value::Bulk(bytes.to_vec()))),
            ItemKind::Null => return Ok(Some(Value::Null)),
            ItemKind::Double(text) => return double(text).map(Some),
            ItemKind::Boolean(truth) => return Ok(Some(Value::Boolean(truth))),
            ItemKind::BigNumber(digits) => return Ok(Some(Value::BigNumber(digits.to_vec()))),
            ItemKind::Verbatim(content) => return verbatim(content).map(Some),
        };
        self.items = self.items.saturating_add(items_left);
        if self.open.len() == self.limits.depth_max || self.items > self.limits.items_max {
            return Err(ProtocolError::TooBigReply);
        }
        let open = OpenAggregate { kind, items: Vec::new(), items_left };
        if items_left == 0 {
            return Ok(Some(open.finish()));
        }
        self.open.push(open);
        Ok(None)
    }

    /// Adds a complete value to the innermost open aggregate, and closes the aggregates it completes. Returns the
    /// whole reply once no aggregate is open.
    fn close(&mut self, mut value: Value) -> Option<Value> {
        while let Some(open) = self.open.last_mut() {
            open.items.push(value);
            open.items_left -= 1;
            if open.items_left > 0 {
                return None;
            }
            value = self.open.pop().expect("it was just looked at").finish();
        }
        Some(value)
    }
}

impl OpenAggregate {
    fn finish(mut self) -> Value {
        match self.kind {
            OpenKind::Array => Value::Array(self.items),
            OpenKind::Set => Value::Set(self.items),
            OpenKind::Push => Value::Push(self.items),
            OpenKind::Map => Value::Map(pairs(self.items)),
            OpenKind::Attribute => {
                let value = self.items.pop().expect("an attribute is about an answer");
                Value::Attribute { about: pairs(self.items), value: Box::new(value) }
            }
        }
    }
}

fn pairs(items: Vec<Value>) -> Vec<(Value, Value)> {
    let mut pairs = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        pairs.push((key, value));
    }
    pairs
}

fn double(text: &[u8]) -> Result<Value, ProtocolError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.map(Value::Double).ok_or(ProtocolError::InvalidReply)
}

fn verbatim(content: &[u8]) -> Result<Value, ProtocolError> {
    let (&format, text) = content.split_first_chunk().ok_or(ProtocolError::InvalidReply)?;
    Ok(Value::Verbatim { format, text: text[1..].to_vec() })
}

//! Values of the keys that patterns derive: strings, and fields of hashes.

use store::{Element, Found, Seed, StoredValue, StringValue, UnixMillis};

use super::pattern::Pattern;
use crate::context::Context;
use crate::hashes::reply_element;
use crate::strings::reply_string;

/// A value that a pattern leads to.
#[derive(Clone, Copy)]
enum Value<'a> {
    String(StringValue<'a>),
    Field(Element<'a>),
}

impl<'a> Value<'a> {
    /// Returns the value of a key; `None` if it has another type, or no such field.
    fn of(
        found: &Found<'a>,
        field: Option<&[u8]>,
        now: UnixMillis,
        seed: &Seed,
    ) -> Option<Value<'a>> {
        match (found.value(), field) {
            (StoredValue::String(string), None) => Some(Value::String(string)),
            (StoredValue::Hash(hash), Some(field)) => {
                hash.at(now).get(field, seed).map(Value::Field)
            }
            _ => None,
        }
    }
}

/// Returns the value that a pattern leads to from an element.
pub(super) fn value_of(
    context: &mut Context<'_>,
    pattern: &Pattern<'_>,
    element: &[u8],
) -> Option<Vec<u8>> {
    if pattern.is_element() {
        return Some(element.to_vec());
    }
    let (key, field) = (pattern.key(element)?, pattern.field());
    let seed = &context.keys.env().seed;
    let key = context.keys.key(&key);
    let now = context.keys.now_in(key.slot());
    let found = context.keys.read(&key)?;
    Value::of(&found, field, now, seed).map(|value| match value {
        Value::String(string) => string.to_bytes().into_owned(),
        Value::Field(element) => element.to_text().into_owned(),
    })
}

/// Writes the value that a pattern leads to from an element, or null.
pub(super) fn reply_value(context: &mut Context<'_>, pattern: &Pattern<'_>, element: &[u8]) {
    if pattern.is_element() {
        return context.reply.bulk(element);
    }
    let seed = &context.keys.env().seed;
    let key = pattern.key(element);
    let key = key.as_ref().map(|key| context.keys.key(key));
    let now = key.as_ref().map(|key| context.keys.now_in(key.slot())).unwrap_or_default();
    let found = key.as_ref().and_then(|key| context.keys.read(key));
    match found.and_then(|found| Value::of(&found, pattern.field(), now, seed)) {
        Some(Value::String(string)) => reply_string(&mut context.reply, string),
        Some(Value::Field(element)) => reply_element(&mut context.reply, element),
        None => context.reply.null(),
    }
}

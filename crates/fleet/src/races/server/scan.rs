//! Pages of a scan, as unkind as Redis may be: every other page is empty, also the first and the last, and each
//! page repeats the element before.

use resp::Value;

/// Returns the page at `cursor`; each element is a list of texts.
pub(super) fn page(elements: &[Vec<Vec<u8>>], cursor: usize) -> Value {
    let end = elements.len() * 2;
    let next = if cursor < end { cursor + 1 } else { 0 };
    let found = match cursor % 2 {
        1 => &elements[(cursor / 2).saturating_sub(1)..=cursor / 2],
        _ => &[],
    };
    let texts = found.iter().flatten().cloned().map(Value::Bulk).collect();
    Value::Array(vec![Value::Bulk(next.to_string().into_bytes()), Value::Array(texts)])
}

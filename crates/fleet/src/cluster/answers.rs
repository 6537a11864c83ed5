//! Merges several nodes' answers into one, and reads redirects.

use placement::Slot;
use resp::{Protocol, ReplyParser, Value};

use super::parcel::{CLIENT_ID_BITS, Every, cursor_at, slot_of_cursor};
use crate::config::Address;

/// Answers with the nodes they came from.
type Answers = [(usize, Vec<u8>)];

/// Returns the slot and address of a `-MOVED slot host:port`.
pub(super) fn moved(reply: &[u8]) -> Option<(Slot, Address)> {
    let text = std::str::from_utf8(reply.strip_prefix(b"-MOVED ")?).ok()?;
    let (slot, address) = text.trim_end().split_once(' ')?;
    let slot = Slot::new(slot.parse().ok()?)?;
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((slot, Address::plain(host, port.parse().ok()?)))
}

pub(super) fn value(reply: &[u8]) -> Option<Value> {
    ReplyParser::default().next(reply, 0).ok().flatten().map(|(value, _)| value)
}

/// Reads a number in any encoding.
pub(super) fn integer(reply: &[u8]) -> Option<i64> {
    let value = value(reply)?;
    if let Value::Integer(number) = value {
        return Some(number);
    }
    resp::parse_integer(value.text()?)
}

/// Concatenates the answers as they came.
pub(super) fn joined(answers: &Answers) -> Vec<u8> {
    answers.iter().flat_map(|(_, reply)| reply).copied().collect()
}

/// Builds the answers to a transaction of this many commands whose watched key has changed.
pub(super) fn aborted(commands: usize, protocol: Protocol) -> Vec<u8> {
    let mut answer = b"+OK\r\n".to_vec();
    (2..commands).for_each(|_| answer.extend_from_slice(b"+QUEUED\r\n"));
    answer.extend_from_slice(match protocol {
        Protocol::Resp2 => b"*-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
    answer
}

pub(super) fn merged(every: &Every, answers: &Answers) -> Vec<u8> {
    if let Some((_, error)) = answers.iter().find(|(_, reply)| reply.starts_with(b"-")) {
        return error.clone();
    }
    let made = match every {
        Every::First | Every::Name(_) => answers.first().map(|(_, reply)| reply.clone()),
        Every::Sum => {
            let sum = answers.iter().map(|(_, reply)| integer(reply)).sum::<Option<i64>>();
            sum.map(|sum| format!(":{sum}\r\n").into_bytes())
        }
        Every::Items => items(answers),
        Every::Clients { .. } => clients(answers),
    };
    made.unwrap_or_else(|| b"-ERR the nodes' answers cannot be merged\r\n".to_vec())
}

fn items(answers: &Answers) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for (_, reply) in answers {
        let Value::Array(items) = value(reply)? else { return None };
        all.extend(items);
    }
    Some(list(&all))
}

fn list(items: &[Value]) -> Vec<u8> {
    let mut made = format!("*{}\r\n", items.len()).into_bytes();
    for item in items {
        bulk(&mut made, item.text().unwrap_or_default());
    }
    made
}

fn bulk(to: &mut Vec<u8>, text: &[u8]) {
    to.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
    to.extend_from_slice(text);
    to.extend_from_slice(b"\r\n");
}

/// Lists all connections; each ID also encodes the connection's node.
fn clients(answers: &Answers) -> Option<Vec<u8>> {
    let mut lines = String::new();
    for (node, reply) in answers {
        let value = value(reply)?;
        for line in String::from_utf8_lossy(value.text()?).lines() {
            let (id, rest) = line.strip_prefix("id=")?.split_once(' ')?;
            let id: u64 = id.parse().ok()?;
            let id = (*node as u64) << CLIENT_ID_BITS | id;
            lines.push_str(&format!("id={id} {rest}\n"));
        }
    }
    let mut made = Vec::new();
    bulk(&mut made, lines.as_bytes());
    Some(made)
}

/// Builds a page of one node's keys: those of the slots from `first` to `last`, which all belong to that
/// node. The cursor then continues at the node of the next slot.
pub(super) fn scanned(reply: &[u8], (first, last): (Slot, Slot)) -> Vec<u8> {
    if reply.starts_with(b"-") {
        return reply.to_vec();
    }
    page(reply, first, last)
        .unwrap_or_else(|| b"-ERR a node sent an invalid answer to SCAN\r\n".to_vec())
}

fn page(reply: &[u8], first: Slot, last: Slot) -> Option<Vec<u8>> {
    let Value::Array(parts) = value(reply)? else { return None };
    let [cursor, Value::Array(keys)] = parts.as_slice() else { return None };
    let cursor: u64 = std::str::from_utf8(cursor.text()?).ok()?.parse().ok()?;
    let ours = |key: &&Value| key.text().is_some_and(|key| (first..=last).contains(&Slot::of(key)));
    let keys: Vec<Value> = keys.iter().filter(ours).cloned().collect();
    let within = cursor != 0 && slot_of_cursor(cursor) <= u64::from(last.number());
    let next = match (within, Slot::new(last.number() + 1)) {
        (true, _) => cursor,
        (false, Some(slot)) => cursor_at(slot),
        (false, None) => 0,
    };
    let mut made = b"*2\r\n".to_vec();
    bulk(&mut made, next.to_string().as_bytes());
    made.extend_from_slice(&list(&keys));
    Some(made)
}

//! Merges several answers into one. Items are forwarded unchanged; only numbers to be counted are parsed.

use std::collections::BTreeSet;

use fleet::command::Merge;
use fleet::names::is_reserved;
use resp::{Protocol, Value, skip_reply};

use crate::worker::greeting::value_of;
use crate::worker::round::encoded;

/// Merges the answers of all parts, none of which is an error. `None` if they make no sense.
pub(super) fn merged(merge: Merge, protocol: Protocol, parts: &[Vec<u8>]) -> Option<Vec<u8>> {
    match merge {
        Merge::Sum => {
            let sum = parts.iter().map(|part| integer(part)).sum::<Option<i64>>()?;
            Some(encoded(protocol, |reply| reply.integer(sum)))
        }
        Merge::Sizes => {
            let count = |pair: &[Vec<u8>]| Some(integer(&pair[0])? - integer(&pair[1])?);
            let sum = parts.chunks(2).map(count).sum::<Option<i64>>()?;
            Some(encoded(protocol, |reply| reply.integer(sum.max(0))))
        }
        Merge::AllOk | Merge::First => parts.first().cloned(),
        Merge::Union => union(parts),
        Merge::AnyKey => Some(any_key(protocol, parts)),
        Merge::AllHave => all_have(protocol, parts),
        Merge::ByKey => unreachable!("items by key are put together where the keys are known"),
    }
}

fn integer(reply: &[u8]) -> Option<i64> {
    match value_of(reply) {
        Ok(Value::Integer(number)) => Some(number),
        Ok(_) | Err(_) => None,
    }
}

/// Lists every key once, without the fleet's own. A moving key may be on two servers.
fn union(parts: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for part in parts {
        for item in array_items(part)? {
            if !is_reserved(bulk(item)?) && seen.insert(item) {
                items.push(item);
            }
        }
    }
    Some(join(&items))
}

fn any_key(protocol: Protocol, parts: &[Vec<u8>]) -> Vec<u8> {
    let a_key = |part: &&Vec<u8>| bulk(part).is_some_and(|key| !is_reserved(key));
    match parts.iter().find(a_key) {
        Some(part) => part.clone(),
        None => encoded(protocol, |reply| reply.null()),
    }
}

fn all_have(protocol: Protocol, parts: &[Vec<u8>]) -> Option<Vec<u8>> {
    let lists: Vec<Vec<&[u8]>> =
        parts.iter().map(|part| array_items(part)).collect::<Option<_>>()?;
    let len = lists.iter().map(Vec::len).min()?;
    Some(encoded(protocol, |reply| {
        reply.array(len);
        for place in 0..len {
            let all = lists.iter().all(|list| list[place] == b":1\r\n");
            reply.integer(i64::from(all));
        }
    }))
}

/// Rewrites a server's answer to SCAN with our cursor, and without the fleet's own keys.
pub(super) fn scanned(
    reply: &[u8],
    protocol: Protocol,
    following: impl Fn(u64) -> u64,
) -> Option<Vec<u8>> {
    let parts = array_items(reply)?;
    let [cursor, keys] = parts.as_slice() else { return None };
    let inner = std::str::from_utf8(bulk(cursor)?).ok()?.parse().ok()?;
    let keys = array_items(keys)?;
    let mut shown = Vec::with_capacity(keys.len());
    for key in keys {
        if !is_reserved(bulk(key)?) {
            shown.push(key);
        }
    }
    let mut made = encoded(protocol, |reply| {
        reply.array(2);
        reply.bulk(following(inner).to_string().as_bytes());
    });
    made.extend_from_slice(&join(&shown));
    Some(made)
}

/// Builds an array of these items, which are already in wire format.
pub(super) fn join(items: &[&[u8]]) -> Vec<u8> {
    let bytes: usize = items.iter().map(|item| item.len()).sum();
    let mut made = Vec::with_capacity(bytes + 16);
    made.extend_from_slice(format!("*{}\r\n", items.len()).as_bytes());
    items.iter().for_each(|item| made.extend_from_slice(item));
    made
}

/// Returns the items of an array or set, each unchanged.
pub(crate) fn array_items(reply: &[u8]) -> Option<Vec<&[u8]>> {
    if !matches!(reply.first(), Some(b'*' | b'~' | b'>')) {
        return None;
    }
    let line = reply.iter().position(|byte| *byte == b'\r')?;
    let count = usize::try_from(resp::parse_integer(&reply[1..line])?).ok()?;
    let mut items = Vec::with_capacity(count.min(reply.len() / 3));
    let mut at = line + 2;
    for _ in 0..count {
        let end = skip_reply(reply, at).ok()??;
        items.push(&reply[at..end]);
        at = end;
    }
    Some(items)
}

/// Returns the content of a bulk string; `None` for anything else, null included.
pub(crate) fn bulk(reply: &[u8]) -> Option<&[u8]> {
    if reply.first() != Some(&b'$') {
        return None;
    }
    let line = reply.iter().position(|byte| *byte == b'\r')?;
    let len = usize::try_from(resp::parse_integer(&reply[1..line])?).ok()?;
    reply.get(line + 2..line + 2 + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged_text(merge: Merge, parts: &[&str]) -> Option<String> {
        let parts: Vec<Vec<u8>> =
            parts.iter().map(|part| part.replace(' ', "\r\n").into()).collect();
        let made = merged(merge, Protocol::Resp2, &parts)?;
        Some(String::from_utf8(made).unwrap().replace("\r\n", " "))
    }

    #[test]
    fn counts_are_added_up_and_the_fleets_own_keys_taken_off() {
        assert_eq!(merged_text(Merge::Sum, &[":1 ", ":0 ", ":41 "]).unwrap(), ":42 ");
        assert_eq!(merged_text(Merge::Sizes, &[":10 ", ":5 ", ":7 ", ":6 "]).unwrap(), ":6 ");
        assert_eq!(merged_text(Merge::Sum, &[":1 ", "+OK "]), None);
    }

    #[test]
    fn every_key_is_listed_once_and_the_fleets_own_not_at_all() {
        let parts = ["*2 $1 a $14 server.config. ", "*2 $1 b $1 a ", "*0 "];
        assert_eq!(merged_text(Merge::Union, &parts).unwrap(), "*2 $1 a $1 b ");
        assert_eq!(
            merged_text(Merge::AnyKey, &["$-1 ", "$14 server.config. ", "$1 k "]).unwrap(),
            "$1 k "
        );
        assert_eq!(merged_text(Merge::AnyKey, &["$-1 "]).unwrap(), "$-1 ");
    }

    #[test]
    fn a_script_is_there_if_all_have_it() {
        let parts = ["*3 :1 :1 :0 ", "*3 :1 :0 :0 "];
        assert_eq!(merged_text(Merge::AllHave, &parts).unwrap(), "*3 :1 :0 :0 ");
    }

    #[test]
    fn a_scan_gets_a_cursor_of_ours() {
        let reply = b"*2\r\n$2\r\n17\r\n*2\r\n$1\r\nk\r\n$20\r\nserver.config.current\r\n";
        let wrong = scanned(reply, Protocol::Resp2, |inner| inner);
        assert_eq!(wrong, None, "a key whose length is a lie");
        let reply = b"*2\r\n$2\r\n17\r\n*2\r\n$1\r\nk\r\n$21\r\nserver.config.current\r\n";
        let made = scanned(reply, Protocol::Resp2, |inner| inner + 1_000).unwrap();
        assert_eq!(made, b"*2\r\n$4\r\n1017\r\n*1\r\n$1\r\nk\r\n");
    }
}

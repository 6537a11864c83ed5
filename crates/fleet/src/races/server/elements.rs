//! Commands on the elements of a key.

use std::collections::{BTreeMap, BTreeSet};

use resp::Value;

use super::{Args, Content, Entry, FakeServer, Field, integer, number, scan, wrong};

fn bulks(texts: impl IntoIterator<Item = Vec<u8>>) -> Value {
    Value::Array(texts.into_iter().map(Value::Bulk).collect())
}

fn bulk_or_null(text: Option<&Vec<u8>>) -> Value {
    text.map_or(Value::Null, |text| Value::Bulk(text.clone()))
}

impl FakeServer {
    pub(super) fn elements(&mut self, name: &str, key: &[u8], args: &Args, now_ms: u64) -> Value {
        let empty = match name {
            "RPUSH" | "LRANGE" | "LLEN" => Content::List(Vec::new()),
            "HSET" | "HSCAN" | "HLEN" | "HMGET" | "HPEXPIREAT" | "HPEXPIRETIME" => {
                Content::Hash(BTreeMap::new())
            }
            "SADD" | "SSCAN" | "SCARD" | "SISMEMBER" => Content::Set(BTreeSet::new()),
            "ZADD" | "ZSCAN" | "ZCARD" | "ZSCORE" => Content::Sorted(BTreeMap::new()),
            "APPEND" | "GETRANGE" | "STRLEN" => Content::Text(Vec::new()),
            other => panic!("this server does not know {other}"),
        };
        let entry = self.keys.get(key).cloned();
        let mut entry = entry.unwrap_or(Entry { content: empty, expires_ms: None });
        if let Some(answer) = read(name, &entry.content, args) {
            return answer;
        }
        let answer = match (name, &mut entry.content) {
            ("RPUSH", Content::List(items)) => {
                items.extend_from_slice(&args[2..]);
                integer(items.len())
            }
            ("SADD", Content::Set(items)) => {
                items.extend(args[2..].iter().cloned());
                integer(items.len())
            }
            ("ZADD", Content::Sorted(members)) => {
                members.extend(args[2..].chunks(2).map(|pair| (pair[1].clone(), pair[0].clone())));
                integer(members.len())
            }
            ("HSET", Content::Hash(fields)) => {
                let field = |value: &Vec<u8>| Field { value: value.clone(), expires_ms: None };
                fields.extend(args[2..].chunks(2).map(|pair| (pair[0].clone(), field(&pair[1]))));
                integer(fields.len())
            }
            ("HPEXPIREAT", Content::Hash(fields)) => {
                let at = number(&args[2]).unsigned_abs();
                let field = fields.get_mut(&args[5]);
                field.into_iter().for_each(|field| field.expires_ms = Some(at));
                fields.retain(|_, field| field.expires_ms.is_none_or(|at| at > now_ms));
                Value::Array(vec![Value::Integer(1)])
            }
            ("APPEND", Content::Text(text)) => {
                text.extend_from_slice(&args[2]);
                integer(text.len())
            }
            _ => return wrong("WRONGTYPE"),
        };
        self.keys.insert(key.to_vec(), entry);
        self.touch(key);
        answer
    }

    /// Removes the fields that have expired, and hashes without a field.
    pub(super) fn expire_fields(&mut self, now_ms: u64) {
        for entry in self.keys.values_mut() {
            if let Content::Hash(fields) = &mut entry.content {
                fields.retain(|_, field| field.expires_ms.is_none_or(|at| at > now_ms));
            }
        }
        let is_empty =
            |content: &Content| matches!(content, Content::Hash(fields) if fields.is_empty());
        self.keys.retain(|_, entry| !is_empty(&entry.content));
    }
}

/// Answers a command that only reads; `None` if it writes or does not fit the content.
fn read(name: &str, content: &Content, args: &Args) -> Option<Value> {
    let range = |len: usize| {
        let (first, last) = (number(&args[2]), number(&args[3]));
        let end = usize::try_from(last + 1).unwrap().min(len);
        usize::try_from(first).unwrap().min(end)..end
    };
    let cursor = || usize::try_from(number(&args[2])).unwrap();
    Some(match (name, content) {
        ("LRANGE", Content::List(items)) => bulks(items[range(items.len())].iter().cloned()),
        ("GETRANGE", Content::Text(text)) => Value::Bulk(text[range(text.len())].to_vec()),
        ("LLEN", Content::List(items)) => integer(items.len()),
        ("STRLEN", Content::Text(text)) => integer(text.len()),
        ("SCARD", Content::Set(items)) => integer(items.len()),
        ("HLEN", Content::Hash(fields)) => integer(fields.len()),
        ("ZCARD", Content::Sorted(members)) => integer(members.len()),
        ("SISMEMBER", Content::Set(items)) => integer(usize::from(items.contains(&args[2]))),
        ("ZSCORE", Content::Sorted(members)) => bulk_or_null(members.get(&args[2])),
        ("HMGET", Content::Hash(fields)) => {
            let value =
                |name: &Vec<u8>| bulk_or_null(fields.get(name).map(|field: &Field| &field.value));
            Value::Array(args[2..].iter().map(value).collect())
        }
        ("HPEXPIRETIME", Content::Hash(fields)) => {
            let time = |name: &Vec<u8>| match fields.get(name) {
                None => Value::Integer(-2),
                Some(Field { expires_ms: None, .. }) => Value::Integer(-1),
                Some(Field { expires_ms: Some(at), .. }) => Value::Integer(at.cast_signed()),
            };
            Value::Array(args[4..].iter().map(time).collect())
        }
        ("SSCAN", Content::Set(items)) => {
            let elements: Vec<_> = items.iter().map(|item| vec![item.clone()]).collect();
            scan::page(&elements, cursor())
        }
        ("HSCAN", Content::Hash(fields)) => {
            let pair = |(name, field): (&Vec<u8>, &Field)| vec![name.clone(), field.value.clone()];
            scan::page(&fields.iter().map(pair).collect::<Vec<_>>(), cursor())
        }
        ("ZSCAN", Content::Sorted(members)) => {
            let pair = |(name, score): (&Vec<u8>, &Vec<u8>)| vec![name.clone(), score.clone()];
            scan::page(&members.iter().map(pair).collect::<Vec<_>>(), cursor())
        }
        _ => return None,
    })
}

//! Moves a stream in pieces: its entries with their IDs, and then its record of deleted entries.
//!
//! Only for streams without consumer groups. No command can restore a group's pending entries (consumer,
//! time, delivery count) for entries that have been deleted meanwhile, so such a stream moves whole.

use resp::Value;

use crate::job::{Batch, items};

/// Properties of a stream, from XINFO STREAM.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Facts {
    length: i64,
    groups: i64,
    last_id: Vec<u8>,
    /// Since Redis 7: number of entries ever added, and the highest deleted ID.
    counted: Option<(i64, Vec<u8>)>,
}

impl Facts {
    pub(super) fn ask(key: &[u8], batch: &mut Batch) {
        batch.push(&[b"XINFO", b"STREAM", key]);
    }

    /// Reads the answer to XINFO STREAM; `None` if it is something else.
    pub(super) fn read(answer: &Value) -> Option<Facts> {
        let pairs: Vec<(&Value, &Value)> = if let Value::Map(pairs) = answer {
            pairs.iter().map(|(name, value)| (name, value)).collect()
        } else {
            items(Some(answer))?.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect()
        };
        let field = |name: &str| {
            let found = pairs.iter().find(|(key, _)| key.text() == Some(name.as_bytes()));
            found.map(|(_, value)| *value)
        };
        let number = |name: &str| match field(name) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        };
        let id = |name: &str| field(name).and_then(Value::text).map(<[u8]>::to_vec);
        Some(Facts {
            length: number("length")?,
            groups: number("groups")?,
            last_id: id("last-generated-id")?,
            counted: number("entries-added").zip(id("max-deleted-entry-id")),
        })
    }

    /// Returns whether the stream has entries and nothing else.
    pub(super) fn is_plain(&self) -> bool {
        self.groups == 0 && self.length > 0
    }

    pub(super) fn set(&self, key: &[u8], batch: &mut Batch) {
        let Some((added, deleted)) = &self.counted else {
            return batch.push(&[b"XSETID", key, &self.last_id]);
        };
        let added = added.to_string();
        let counts: [&[u8]; 4] = [b"ENTRIESADDED", added.as_bytes(), b"MAXDELETEDID", deleted];
        batch.push(&[&[b"XSETID", key, &self.last_id][..], &counts].concat());
    }
}

/// Flattens entries into one list: ID, number of texts that follow, the texts.
pub(super) fn flat(entries: &[Value]) -> Option<Vec<Vec<u8>>> {
    let mut flat = Vec::new();
    for entry in entries {
        let [id, fields] = items(Some(entry))? else { return None };
        let fields = items(Some(fields))?;
        flat.push(id.text()?.to_vec());
        flat.push(fields.len().to_string().into_bytes());
        for text in fields {
            flat.push(text.text()?.to_vec());
        }
    }
    Some(flat)
}

/// Returns the ID right after that of an entry.
pub(super) fn next_id(entry: &Value) -> Option<Vec<u8>> {
    let id = std::str::from_utf8(items(Some(entry))?.first()?.text()?).ok()?;
    let (millis, count) = id.split_once('-')?;
    let (millis, count): (u64, u64) = (millis.parse().ok()?, count.parse().ok()?);
    let (millis, count) = match count.checked_add(1) {
        Some(count) => (millis, count),
        None => (millis.checked_add(1)?, 0),
    };
    Some(format!("{millis}-{count}").into_bytes())
}

/// Returns the first and the last ID of flattened entries.
pub(super) fn ends(mut flat: &[Vec<u8>]) -> Option<[&[u8]; 2]> {
    let first = flat.first()?;
    let mut last = first;
    while let [id, count, rest @ ..] = flat {
        last = id;
        let count = resp::parse_integer(count).and_then(|count| usize::try_from(count).ok());
        flat = &rest[count.expect("`flat` wrote it")..];
    }
    Some([first, last])
}

/// Adds the entries that `flat` has flattened.
pub(super) fn add(data: &[u8], mut flat: &[Vec<u8>], batch: &mut Batch) {
    while let [id, count, rest @ ..] = flat {
        let count = resp::parse_integer(count).and_then(|count| usize::try_from(count).ok());
        let (fields, others) = rest.split_at(count.expect("`flat` wrote it"));
        let mut args: Vec<&[u8]> = vec![b"XADD", data, id];
        args.extend(fields.iter().map(Vec::as_slice));
        batch.push(&args);
        flat = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Server;
    use crate::job::Step;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    fn entry(id: &str) -> Value {
        Value::Array(vec![bulk(id), Value::Array(vec![bulk("f"), bulk("v")])])
    }

    #[test]
    fn ids_follow_each_other_over_the_end_of_a_millisecond() {
        assert_eq!(next_id(&entry("5-7")).unwrap(), b"5-8");
        assert_eq!(next_id(&entry("5-18446744073709551615")).unwrap(), b"6-0");
        assert_eq!(next_id(&bulk("5-7")), None);
    }

    #[test]
    fn entries_are_added_as_they_were_read() {
        let flat = flat(&[entry("1-1"), entry("2-0")]).unwrap();
        let mut batch = Batch::default();
        add(b"data", &flat, &mut batch);
        let mut expected = Vec::new();
        resp::encode_command(&mut expected, &[b"XADD", b"data", b"1-1", b"f", b"v"]);
        resp::encode_command(&mut expected, &[b"XADD", b"data", b"2-0", b"f", b"v"]);
        let Step::Ask(ask) = batch.ask(Server(0)) else { panic!("it asks") };
        assert_eq!((ask.bytes, ask.answers), (expected, 2));
    }

    #[test]
    fn a_stream_with_groups_travels_whole() {
        let info = |groups: i64| {
            Value::Array(vec![
                bulk("length"),
                Value::Integer(3),
                bulk("groups"),
                Value::Integer(groups),
                bulk("last-generated-id"),
                bulk("9-1"),
            ])
        };
        assert!(Facts::read(&info(0)).unwrap().is_plain());
        assert!(!Facts::read(&info(1)).unwrap().is_plain());
        assert_eq!(Facts::read(&bulk("x")), None);
    }
}

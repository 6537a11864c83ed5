//! `DEBUG DIGEST` and `DEBUG DIGEST-VALUE`: fingerprints of the content, computed as in Redis, so that a node and a
//! Redis server with the same keys return the same.

use std::collections::BTreeMap;

use store::{Database, Found, StoredValue, StreamId, UnixMillis, deadline_of};

use super::sha1::{Sha1Digest, sha1};
use crate::Error;
use crate::context::Context;
use crate::keyspace::walk::Walk;
use crate::strings::with_bytes;

/// Redis's number for the type string.
const TYPE_STRING: u32 = 0;
/// Redis's number for the type hash.
const TYPE_HASH: u32 = 4;
const TYPE_LIST: u32 = 1;
const TYPE_SORTED_SET: u32 = 3;
/// Redis's number for the type stream.
const TYPE_STREAM: u32 = 6;
/// Redis's number for the type set.
const TYPE_SET: u32 = 2;

pub(super) fn digest(context: &mut Context<'_>) -> Result<(), Error> {
    let mut sums: BTreeMap<Database, Sha1Digest> = BTreeMap::new();
    let mut walk = Walk::new().anywhere();
    while let Some(slot) = walk.next(&mut context.keys) {
        context.keys.table(slot).for_each(|found| {
            let mut item = Sha1Digest::default();
            mix(&mut item, found.item.key());
            mix_value(&mut item, &found);
            add(sums.entry(found.database).or_default(), &item);
        });
    }
    let mut all = Sha1Digest::default();
    for (database, sum) in &sums {
        mix(&mut all, &u32::from(database.number()).to_be_bytes());
        xor(&mut all, sum);
    }
    context.reply.simple(&hex(&all));
    Ok(())
}

pub(super) fn digest_value(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.array(context.args.len() - 2);
    for index in 2..context.args.len() {
        let key = context.key(index);
        let mut item = Sha1Digest::default();
        if let Some(found) = context.keys.peek(&key) {
            mix_value(&mut item, &found);
        }
        context.reply.simple(&hex(&item));
    }
    Ok(())
}

fn mix_value(sum: &mut Sha1Digest, found: &Found<'_>) {
    match found.value() {
        StoredValue::String(value) => {
            mix(sum, &TYPE_STRING.to_be_bytes());
            with_bytes(value, |bytes| mix(sum, bytes));
        }
        StoredValue::Hash(hash) => {
            mix(sum, &TYPE_HASH.to_be_bytes());
            // At that time nothing is due: it is a fingerprint of all that is in memory.
            let hash = hash.at(UnixMillis::default());
            for (entry, (field, value)) in hash.entries().zip(hash.pairs()) {
                let mut pair = Sha1Digest::default();
                if deadline_of(entry).is_some() {
                    mix(&mut pair, b"!!hexpire!!");
                }
                field.with_text(|text| mix(&mut pair, text));
                value.with_text(|text| mix(&mut pair, text));
                add(sum, &pair);
            }
        }
        StoredValue::List(list) => {
            mix(sum, &TYPE_LIST.to_be_bytes());
            for element in list.iter_from(0) {
                element.with_text(|text| mix(sum, text));
            }
        }
        StoredValue::SortedSet(set) => {
            mix(sum, &TYPE_SORTED_SET.to_be_bytes());
            for it in set.iter_from(0) {
                let mut pair = Sha1Digest::default();
                it.member.with_text(|text| mix(&mut pair, text));
                let mut score = Vec::new();
                resp::write_double(&mut score, it.score.get());
                mix(&mut pair, &score);
                add(sum, &pair);
            }
        }
        StoredValue::Set(set) => {
            mix(sum, &TYPE_SET.to_be_bytes());
            for member in set.members() {
                member.with_text(|text| add(sum, text));
            }
        }
        StoredValue::Stream(stream) => {
            mix(sum, &TYPE_STREAM.to_be_bytes());
            for entry in stream.iter_from(StreamId::MIN) {
                let id = entry.id();
                mix(sum, format!("{}.{}", id.ms, id.seq).as_bytes());
                for (field, value) in entry.fields() {
                    field.with_text(|text| mix(sum, text));
                    value.with_text(|text| mix(sum, text));
                }
            }
        }
    }
    if found.expires_at.is_some() {
        add(sum, b"!!expire!!");
    }
}

/// Adds bytes independently of their order.
fn add(sum: &mut Sha1Digest, bytes: &[u8]) {
    xor(sum, &sha1(bytes));
}

/// Adds bytes in a way that depends on their order.
fn mix(sum: &mut Sha1Digest, bytes: &[u8]) {
    add(sum, bytes);
    *sum = sha1(sum);
}

fn xor(sum: &mut Sha1Digest, term: &Sha1Digest) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term);
}

pub(super) fn hex(hash: &Sha1Digest) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Commands on the keyspace as a whole: DBSIZE, RANDOMKEY, FLUSHALL, FLUSHDB.

use placement::Slot;

use crate::Error;
use crate::context::Context;
use crate::keys::Keys;
use crate::keyspace::walk::Walk;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "dbsize",
        full_name: "dbsize",
        summary: "Counts the keys of the database.",
        group: Group::Server,
        arity: 1,
        flags: Flags::of(&[Flag::ReadOnly, Flag::Fast, Flag::WholeKeyspace]),
        run: Some(dbsize),
        ..BLANK
    },
    Spec {
        name: "randomkey",
        full_name: "randomkey",
        summary: "Returns a random key of the database.",
        arity: 1,
        flags: Flags::of(&[Flag::ReadOnly, Flag::WholeKeyspace]),
        run: Some(randomkey),
        ..BLANK
    },
    Spec {
        name: "flushall",
        full_name: "flushall",
        summary: "Removes all keys of all databases.",
        syntax: "[ASYNC | SYNC]",
        complexity: "O(1) for each slot that holds keys; they are freed in the background.",
        ..FLUSH
    },
    Spec {
        name: "flushdb",
        full_name: "flushdb",
        summary: "Removes all keys of the database.",
        syntax: "[ASYNC | SYNC]",
        complexity: "O(1) for each slot that holds keys of this database only; O(N) for the N keys in other slots.",
        run: Some(flush_database),
        ..FLUSH
    },
];

const FLUSH: Spec = Spec {
    group: Group::Server,
    arity: -1,
    flags: Flags::of(&[Flag::Write, Flag::WholeKeyspace, Flag::Dangerous]),
    run: Some(flush),
    ..BLANK
};

fn dbsize(context: &mut Context<'_>) -> Result<(), Error> {
    let count = context.keys.key_count();
    context.reply.integer(i64::try_from(count).expect("keys take memory"));
    Ok(())
}

fn flush(context: &mut Context<'_>) -> Result<(), Error> {
    flush_slots(context, Walk::anywhere, |keys, slot| keys.clear(slot))
}

fn flush_database(context: &mut Context<'_>) -> Result<(), Error> {
    flush_slots(context, |walk| walk, |keys, slot| keys.clear_database(slot))
}

fn flush_slots(
    context: &mut Context<'_>,
    over: impl Fn(Walk) -> Walk,
    clear: impl Fn(&mut Keys<'_>, Slot),
) -> Result<(), Error> {
    // Both modes free memory in the background: honouring SYNC would only delay other clients.
    match (context.args.len(), context.args.get(1)) {
        (1, None) => {}
        (2, Some(mode)) if mode.eq_ignore_ascii_case(b"sync") => {}
        (2, Some(mode)) if mode.eq_ignore_ascii_case(b"async") => {}
        _ => return Err(Error::SYNTAX),
    }
    // A flush that had to stop at a slot continues there: each slot is emptied once.
    let mut walk = over(Walk::starting_at(context.session.flush_from.take()));
    while let Some(slot) = walk.next(&mut context.keys) {
        clear(&mut context.keys, slot);
        if context.keys.has_left_out() {
            context.session.flush_from = Some(slot);
            break;
        }
    }
    context.reply.ok();
    Ok(())
}

fn randomkey(context: &mut Context<'_>) -> Result<(), Error> {
    // A round that finds an expired key removes it, if the slot may be changed.
    for _ in 0..ROUNDS_MAX {
        let Some(name) = random_name(&mut context.keys) else { break };
        let key = context.keys.key(&name);
        if context.keys.exists(&key) {
            context.reply.bulk(&name);
            return Ok(());
        }
    }
    context.reply.null();
    Ok(())
}

/// Maximum number of expired keys tried before the reply is null.
const ROUNDS_MAX: usize = 100_000;

/// Up to this number of keys, every key has exactly the same chance.
const COUNTED_MAX: usize = 1_024;
/// Above that number, this many slots are sampled, weighted by their number of keys.
const SLOTS_TRIED: usize = 8;

/// Returns some key of the selected database, expired or not.
fn random_name(keys: &mut Keys<'_>) -> Option<Vec<u8>> {
    let slot = if keys.key_count() <= COUNTED_MAX { counted_slot(keys) } else { tried_slot(keys) }?;
    let (roll, database) = (keys.roll(), keys.database);
    keys.table(slot).random_in(database, roll).map(|found| found.item.key().to_vec())
}

/// Returns a slot with a chance in proportion to its keys.
fn counted_slot(keys: &mut Keys<'_>) -> Option<Slot> {
    let mut slots = Vec::new();
    let mut walk = Walk::new();
    while let Some(slot) = walk.next(keys) {
        slots.push(slot);
    }
    by_weight(keys, &slots)
}

/// Same as `counted_slot`, among a few slots, so that millions of keys cost no more than thousands.
fn tried_slot(keys: &mut Keys<'_>) -> Option<Slot> {
    let slots: Vec<Slot> = (0..SLOTS_TRIED).filter_map(|_| any_slot(keys)).collect();
    by_weight(keys, &slots)
}

/// Returns an occupied slot at or after a random position, wrapping around once.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is below COUNT, a u16")]
fn any_slot(keys: &mut Keys<'_>) -> Option<Slot> {
    let number = (keys.roll() % u64::from(Slot::COUNT)) as u16;
    let start = Slot::new(number).expect("below COUNT");
    keys.occupied(start).or_else(|| Walk::new().next(keys))
}

fn by_weight(keys: &mut Keys<'_>, slots: &[Slot]) -> Option<Slot> {
    let database = keys.database;
    let lens: Vec<u64> =
        slots.iter().map(|slot| keys.table(*slot).len_in(database) as u64).collect();
    let mut rest = keys.roll().checked_rem(lens.iter().sum())?;
    for (slot, len) in slots.iter().zip(lens) {
        if rest < len {
            return Some(*slot);
        }
        rest -= len;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::testing::{TestNode, check};

    #[test]
    fn all_keys_are_counted_and_flushed() {
        check(
            r"
            > DBSIZE
            (integer) 0
            > SET a 1
            OK
            > SET b 2
            OK
            > SET c 3
            OK
            > DBSIZE
            (integer) 3
            > FLUSHALL NOW
            (error) ERR syntax error
            > FLUSHALL SYNC ASYNC
            (error) ERR syntax error
            > DBSIZE
            (integer) 3
            > FLUSHDB async
            OK
            > DBSIZE
            (integer) 0
            > SET a 1
            OK
            > FLUSHALL
            OK
            > EXISTS a
            (integer) 0
            ",
        );
    }

    #[test]
    fn every_key_is_named_by_chance_sooner_or_later() {
        for count in [1, 3, 3_000] {
            let mut node = TestNode::default();
            for number in 0..count {
                node.run(&format!("SET key:{number} x"));
            }
            let named: BTreeSet<String> = (0..count * 20).map(|_| node.run("RANDOMKEY")).collect();
            assert!(named.len() > count * 9 / 10, "{} of {count}", named.len());
        }
    }

    #[test]
    fn an_expired_key_is_not_named() {
        check(
            r"
            > SET a 1
            OK
            > PEXPIRE a 10
            (integer) 1
            +11ms
            > DBSIZE
            (integer) 1
            > RANDOMKEY
            (nil)
            > DBSIZE
            (integer) 0
            ",
        );
    }
}

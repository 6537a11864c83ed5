//! What becomes of a command on the any-port.

use std::collections::BTreeMap;

use commands::{Args, Flag, Spec, Table};
use placement::Slot;

/// Where a command goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    /// Any node will do: the one the client is connected to.
    Here,
    /// The node that serves this slot.
    To(Slot),
    /// Each part to the node of its slot; the answers are merged.
    Scatter(Merge, Vec<Part>),
    /// The connection becomes a listener: from now on it is tied to this node.
    Listen,
    Begin,
    /// EXEC or DISCARD.
    End,
    /// WATCH: the next transaction runs where these keys are.
    Watch(Slot),
    Refuse(&'static str),
}

/// A part of a scattered command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub slot: Slot,
    pub args: Vec<Vec<u8>>,
    /// The places of its keys among those of the whole.
    pub places: Vec<usize>,
}

/// How answers of parts become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Merge {
    /// All of them OK.
    Ok,
    /// Their sum.
    Sum,
    /// Each value at its place.
    Values,
}

const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";

pub(super) fn plan(table: &Table, args: Args<'_>) -> Plan {
    let Some(spec) = table.find(args.at(0)) else { return Plan::Here };
    match spec.name {
        "multi" => return Plan::Begin,
        "exec" | "discard" => return Plan::End,
        "subscribe" | "psubscribe" | "monitor" => return Plan::Listen,
        "ssubscribe" => {
            return Plan::Refuse("ERR SSUBSCRIBE works on the cluster's own ports, not here");
        }
        _ => {}
    }
    let keys: Vec<usize> = spec.keys.indices(args.len()).collect();
    let Some(first) = keys.first() else { return Plan::Here };
    let slot_of = |index: usize| Slot::of(args.at(index));
    let slot = slot_of(*first);
    if keys.iter().all(|index| slot_of(*index) == slot) {
        return if spec.name == "watch" { Plan::Watch(slot) } else { Plan::To(slot) };
    }
    match merge_of(spec) {
        // MSET has a value for every key; if not, any node can say so.
        Some(Merge::Ok) if args.len().is_multiple_of(2) => Plan::Here,
        Some(merge) if spec.accepts(args.len()) => Plan::Scatter(merge, parts(spec, args, &keys)),
        // What is wrong with it, any node can tell.
        Some(_) => Plan::Here,
        None => Plan::Refuse(CROSS_SLOT),
    }
}

fn merge_of(spec: &Spec) -> Option<Merge> {
    match spec.name {
        "mset" => Some(Merge::Ok),
        "mget" => Some(Merge::Values),
        "del" | "unlink" | "exists" | "touch" => Some(Merge::Sum),
        _ => None,
    }
}

/// One part for each slot, with the command's name, its keys and what belongs to them.
fn parts(spec: &Spec, args: Args<'_>, keys: &[usize]) -> Vec<Part> {
    let with_values = spec.has(Flag::Write) && spec.name == "mset";
    let mut parts: BTreeMap<Slot, Part> = BTreeMap::new();
    for (place, index) in keys.iter().enumerate() {
        let slot = Slot::of(args.at(*index));
        let part = parts.entry(slot).or_insert_with(|| Part {
            slot,
            args: vec![args.at(0).to_vec()],
            places: Vec::new(),
        });
        part.args.push(args.at(*index).to_vec());
        if with_values {
            part.args.push(args.at(index + 1).to_vec());
        }
        part.places.push(place);
    }
    parts.into_values().collect()
}

#[cfg(test)]
mod tests {
    use commands::OwnedArgs;

    use super::*;

    fn planned(line: &str) -> Plan {
        let args = OwnedArgs::new(line.split_whitespace().map(str::as_bytes));
        plan(&Table::default(), args.args())
    }

    #[test]
    fn a_command_goes_where_its_keys_are() {
        assert_eq!(planned("PING"), Plan::Here);
        assert_eq!(planned("GET a"), Plan::To(Slot::of(b"a")));
        assert_eq!(planned("MGET {t}a {t}b"), Plan::To(Slot::of(b"t")));
        assert_eq!(planned("nosuch a"), Plan::Here);
        assert_eq!(planned("MSETNX a 1 b 2"), Plan::Refuse(CROSS_SLOT));
        assert_eq!(planned("RENAME a b"), Plan::Refuse(CROSS_SLOT));
        assert_eq!(planned("WATCH a"), Plan::Watch(Slot::of(b"a")));
    }

    #[test]
    fn what_can_be_scattered_is_cut_by_slot_and_remembers_its_places() {
        let Plan::Scatter(Merge::Values, parts) = planned("MGET a b {a}x") else { panic!() };
        let of_a = parts.iter().find(|part| part.slot == Slot::of(b"a")).unwrap();
        assert_eq!(of_a.places, [0, 2]);
        assert_eq!(of_a.args, [b"MGET".to_vec(), b"a".to_vec(), b"{a}x".to_vec()]);
        let Plan::Scatter(Merge::Ok, parts) = planned("MSET a 1 b 2") else { panic!() };
        assert!(parts.iter().all(|part| part.args.len() == 3));
        assert!(matches!(planned("DEL a b"), Plan::Scatter(Merge::Sum, _)));
        assert_eq!(planned("MSET a 1 b"), Plan::Here, "the node says what is wrong");
    }
}

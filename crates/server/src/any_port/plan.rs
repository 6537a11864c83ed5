//! The route of a command on the any-port: to one node, in parts to several, or to none.

use std::collections::BTreeMap;
use std::time::Duration;

use commands::{Args, Flag, Spec, Table, remaining_timeout, timeout_index};
use placement::Slot;
use resp::encode_command;

use super::introduction::{Statement, statements};

/// The route of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ForwardPlan {
    /// Any node will do: use the one the client is connected to.
    Here,
    /// The node that serves this slot.
    To(Slot),
    /// The node that serves this slot; the command may wait there for keys.
    Block(Slot, BlockingRequest),
    /// Each part goes to the node of its slot; the replies are merged.
    Scatter(Merge, Vec<CommandPart>),
    /// The keys are in several slots, and the command cannot be split.
    CrossSlot,
    /// The connection becomes a subscriber: from now on it is tied to this node.
    Listen,
    /// UNSUBSCRIBE and the like: a node replies once for each channel.
    Unsubscribe {
        replies: usize,
    },
    /// The connection changes its properties, on every node.
    Introduce(Vec<Statement>),
    /// MULTI.
    Begin,
    Exec,
    Discard,
    /// WATCH: the next transaction runs on the node of these keys.
    Watch(Slot),
    Unwatch,
    Reset,
    Quit,
    Refuse(&'static str),
}

/// A command that may wait for keys, in a form in which its timeout can be shortened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BlockingRequest {
    args: Vec<Vec<u8>>,
    /// The index of its timeout.
    timeout: usize,
}

impl BlockingRequest {
    /// Returns the encoded command with the rest of its timeout.
    pub(super) fn after(&self, waited: Duration) -> Vec<u8> {
        let rest = remaining_timeout(&self.args[self.timeout], waited);
        let mut words: Vec<&[u8]> = self.args.iter().map(Vec::as_slice).collect();
        if let Some(rest) = &rest {
            words[self.timeout] = rest.as_bytes();
        }
        let mut command = Vec::new();
        encode_command(&mut command, &words);
        command
    }
}

/// A part of a scattered command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CommandPart {
    pub slot: Slot,
    pub args: Vec<Vec<u8>>,
    /// True if it changes data.
    pub writes: bool,
    /// Positions of its keys among those of the whole command.
    pub places: Vec<usize>,
}

/// The rule for merging the replies of the parts into one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Merge {
    /// There is one part; its reply is the reply.
    Pass,
    /// All of them are OK.
    Ok,
    /// Their sum.
    Sum,
    /// Each value at its position.
    Values,
}

pub(super) fn plan(table: &Table, args: Args<'_>) -> ForwardPlan {
    // Any node can report a malformed command.
    let Some(spec) = find(table, args) else { return ForwardPlan::Here };
    if spec.full_name == "exec" {
        return ForwardPlan::Exec; // With any arguments: a node ends the transaction even if it refuses the command.
    }
    if !spec.accepts(args.len()) {
        return ForwardPlan::Here;
    }
    if let Some(statements) = statements(spec, args) {
        return ForwardPlan::Introduce(statements);
    }
    match spec.full_name {
        "multi" => ForwardPlan::Begin,
        "discard" => ForwardPlan::Discard,
        "unwatch" => ForwardPlan::Unwatch,
        "reset" => ForwardPlan::Reset,
        "quit" => ForwardPlan::Quit,
        "subscribe" | "psubscribe" | "monitor" | "cluster|watch" => ForwardPlan::Listen,
        "unsubscribe" | "punsubscribe" | "sunsubscribe" => {
            ForwardPlan::Unsubscribe { replies: (args.len() - 1).max(1) }
        }
        "ssubscribe" => ForwardPlan::Refuse(
            "ERR SSUBSCRIBE is not supported on the any-port; connect to a node's client port",
        ),
        "client|reply" if !args.at(2).eq_ignore_ascii_case(b"on") => {
            let text = "ERR CLIENT REPLY OFF and SKIP are not supported on the any-port; connect \
                        to a node's client port";
            ForwardPlan::Refuse(text)
        }
        _ => by_keys(spec, args),
    }
}

/// Returns the command, or the subcommand if there is one.
fn find(table: &Table, args: Args<'_>) -> Option<&'static Spec> {
    let spec = table.find(args.at(0))?;
    match args.get(1) {
        Some(name) if !spec.subcommands.is_empty() => spec.subcommand(name),
        Some(_) | None => Some(spec),
    }
}

fn by_keys(spec: &Spec, args: Args<'_>) -> ForwardPlan {
    let keys: Vec<usize> = spec.key_indices(args).collect();
    let Some(first) = keys.first() else { return ForwardPlan::Here };
    let slot_of = |index: usize| Slot::of(args.at(index));
    let slot = slot_of(*first);
    if keys.iter().all(|index| slot_of(*index) == slot) {
        if let Some(timeout) = timeout_index(spec, args) {
            let args = args.iter().map(<[u8]>::to_vec).collect();
            return ForwardPlan::Block(slot, BlockingRequest { args, timeout });
        }
        return if spec.name == "watch" { ForwardPlan::Watch(slot) } else { ForwardPlan::To(slot) };
    }
    match merge_of(spec) {
        // MSET has a value for every key; if not, any node can report it.
        Some(Merge::Ok) if args.len().is_multiple_of(2) => ForwardPlan::Here,
        Some(merge) => ForwardPlan::Scatter(merge, parts(spec, args, &keys)),
        None => ForwardPlan::CrossSlot,
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

/// Returns one part for each slot: the command's name, its keys and their values.
fn parts(spec: &Spec, args: Args<'_>, keys: &[usize]) -> Vec<CommandPart> {
    let with_values = spec.name == "mset";
    let mut parts: BTreeMap<Slot, CommandPart> = BTreeMap::new();
    for (place, index) in keys.iter().enumerate() {
        let slot = Slot::of(args.at(*index));
        let part = parts.entry(slot).or_insert_with(|| CommandPart {
            slot,
            args: vec![args.at(0).to_vec()],
            writes: spec.has(Flag::Write),
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

    fn planned(line: &str) -> ForwardPlan {
        let args = OwnedArgs::new(line.split_whitespace().map(str::as_bytes));
        plan(&Table::default(), args.args())
    }

    #[test]
    fn a_command_goes_where_its_keys_are() {
        assert_eq!(planned("PING"), ForwardPlan::Here);
        assert_eq!(planned("GET a"), ForwardPlan::To(Slot::of(b"a")));
        assert_eq!(planned("MGET {t}a {t}b"), ForwardPlan::To(Slot::of(b"t")));
        assert_eq!(planned("nosuch a"), ForwardPlan::Here);
        assert_eq!(planned("MSETNX a 1 b 2"), ForwardPlan::CrossSlot);
        assert_eq!(planned("RENAME a b"), ForwardPlan::CrossSlot);
        assert_eq!(planned("WATCH a"), ForwardPlan::Watch(Slot::of(b"a")));
        assert_eq!(planned("OBJECT ENCODING a"), ForwardPlan::To(Slot::of(b"a")));
        assert_eq!(planned("GET"), ForwardPlan::Here, "the node says what is wrong");
    }

    #[test]
    fn a_command_that_waits_can_be_sent_again_with_the_rest_of_its_timeout() {
        for (line, expected) in [
            ("BLPOP a {a}b 5", "BLPOP a {a}b 3.500"),
            ("BZPOPMIN a 1.5", "BZPOPMIN a 0.001"),
            ("BRPOP a 0", "BRPOP a 0"),
            ("BLMOVE a a LEFT LEFT x", "BLMOVE a a LEFT LEFT x"),
            ("BLMPOP 2 1 a LEFT", "BLMPOP 0.500 1 a LEFT"),
            ("BZMPOP 2.25 2 a {a}b MIN", "BZMPOP 0.750 2 a {a}b MIN"),
        ] {
            let ForwardPlan::Block(slot, request) = planned(line) else { panic!("{line}") };
            assert_eq!(slot, Slot::of(b"a"));
            let words: Vec<&[u8]> = expected.split(' ').map(str::as_bytes).collect();
            let mut encoded = Vec::new();
            encode_command(&mut encoded, &words);
            assert_eq!(request.after(Duration::from_millis(1_500)), encoded, "{expected}");
        }
        assert_eq!(planned("BLPOP a b 0"), ForwardPlan::CrossSlot);
        assert_eq!(planned("LPOP a"), ForwardPlan::To(Slot::of(b"a")));
    }

    #[test]
    fn commands_about_the_connection_are_known() {
        assert_eq!(
            planned("EXEC now"),
            ForwardPlan::Exec,
            "a node ends the transaction in any case"
        );
        assert_eq!(planned("DISCARD now"), ForwardPlan::Here);
        assert_eq!(planned("UNSUBSCRIBE"), ForwardPlan::Unsubscribe { replies: 1 });
        assert_eq!(planned("UNSUBSCRIBE a b"), ForwardPlan::Unsubscribe { replies: 2 });
        assert_eq!(planned("CLUSTER WATCH"), ForwardPlan::Listen);
        assert!(matches!(planned("client setname me"), ForwardPlan::Introduce(_)));
        assert!(matches!(planned("HELLO"), ForwardPlan::Introduce(said) if said.is_empty()));
        assert!(matches!(planned("CLIENT REPLY off"), ForwardPlan::Refuse(_)));
        assert_eq!(planned("CLIENT REPLY ON"), ForwardPlan::Here);
    }

    #[test]
    fn what_can_be_scattered_is_cut_by_slot_and_remembers_its_places() {
        let ForwardPlan::Scatter(Merge::Values, parts) = planned("MGET a b {a}x") else { panic!() };
        let of_a = parts.iter().find(|part| part.slot == Slot::of(b"a")).unwrap();
        assert_eq!(of_a.places, [0, 2]);
        assert_eq!(of_a.args, [b"MGET".to_vec(), b"a".to_vec(), b"{a}x".to_vec()]);
        let ForwardPlan::Scatter(Merge::Ok, parts) = planned("MSET a 1 b 2") else { panic!() };
        assert!(parts.iter().all(|part| part.args.len() == 3));
        assert!(matches!(planned("DEL a b"), ForwardPlan::Scatter(Merge::Sum, _)));
        assert_eq!(planned("MSET a 1 b"), ForwardPlan::Here, "the node says what is wrong");
    }
}

//! Commands, split into parcels that are sent together: one command, or all from MULTI to EXEC. Each parcel
//! knows its destination and how its answers are merged.

use placement::Slot;
use resp::{Limits, Parsed, RequestParser, Span};

use crate::command::Command;
use crate::names;

/// Destination of a parcel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aim {
    /// Any node; the first one is used.
    Home,
    Slot(Slot),
    Node(usize),
    Every,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Plain,
    Watch,
    Unwatch,
    /// MULTI to EXEC. `watched` is true if keys were watched when it was sent.
    Block {
        watched: bool,
    },
    /// SCAN of one node's slots from the cursor's slot on; `last` is determined when it is sent.
    Scan {
        first: Slot,
        last: Slot,
    },
    Every(Every),
}

/// Rule for merging the answers of all nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Every {
    /// The first error, or the first answer.
    First,
    /// Like `First`; from now on this is the name of every connection.
    Name(Vec<u8>),
    Sum,
    Items,
    /// CLIENT LIST. The list of nodes is refreshed before they are asked.
    Clients {
        listed: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Parcel {
    pub bytes: Vec<u8>,
    pub commands: usize,
    pub aim: Aim,
    pub kind: Kind,
    /// Number of times it was redirected.
    pub hops: u32,
    pub expected: usize,
    /// Answers received so far, with the nodes they came from.
    pub answers: Vec<(usize, Vec<u8>)>,
    /// The answer for the sender, once it is known.
    pub answer: Option<Vec<u8>>,
}

impl Parcel {
    fn new(bytes: Vec<u8>, aim: Aim, kind: Kind) -> Parcel {
        let (answers, answer) = (Vec::new(), None);
        Parcel { bytes, commands: 1, aim, kind, hops: 0, expected: 1, answers, answer }
    }

    /// Creates a parcel that is answered here.
    fn answered(answer: impl Into<Vec<u8>>) -> Parcel {
        let answer = Some(answer.into());
        Parcel { answer, ..Parcel::new(Vec::new(), Aim::Home, Kind::Plain) }
    }

    pub(super) fn is_watched(&self) -> bool {
        matches!(self.kind, Kind::Block { watched: true })
    }
}

/// Number of bits below the slot in a node's cursor: the position within the slot.
const CURSOR_SLOT_SHIFT: u32 = 34;
/// Number of bits of a node's own connection ID in our CLIENT LIST; the node's number is above them.
pub(super) const CLIENT_ID_BITS: u32 = 40;

/// Splits commands into parcels; keeps a transaction that is not complete.
#[derive(Default)]
pub(super) struct Parcels {
    block: Option<Block>,
}

#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    commands: usize,
    slot: Option<Slot>,
    flushes: bool,
}

impl Parcels {
    pub(super) fn read(&mut self, commands: &[u8]) -> Result<Vec<Parcel>, String> {
        let mut bytes = commands.to_vec();
        let mut parser = RequestParser::default();
        let mut spans: Vec<Span> = Vec::new();
        let mut parcels = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            spans.clear();
            match parser.next(&mut bytes, at, &Limits::FULL, &mut spans) {
                Ok(Parsed::Request { end, args: 0 }) => at = end,
                Ok(Parsed::Request { end, .. }) => {
                    let args: Vec<&[u8]> = spans.iter().map(|span| span.of(&bytes)).collect();
                    parcels.extend(self.take(&args, &bytes[at..end]));
                    at = end;
                }
                Ok(Parsed::Incomplete { .. }) => return Err("incomplete command".to_owned()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(parcels)
    }

    fn take(&mut self, args: &[&[u8]], raw: &[u8]) -> Option<Parcel> {
        let name = args[0].to_ascii_lowercase();
        let (slot, bytes) = routed(args, raw);
        if name == b"multi" && self.block.is_none() {
            let commands = 1;
            self.block = Some(Block { bytes, commands, ..Block::default() });
            return None;
        }
        let Some(block) = &mut self.block else { return Some(single(&name, args, (slot, bytes))) };
        block.bytes.extend_from_slice(&bytes);
        block.commands += 1;
        block.slot = block.slot.or(slot);
        block.flushes |= matches!(name.as_slice(), b"flushall" | b"flushdb");
        if matches!(name.as_slice(), b"exec" | b"discard") {
            return Some(self.block.take().expect("it is open").close());
        }
        None
    }
}

impl Block {
    fn close(self) -> Parcel {
        if self.flushes {
            return self.refused("ERR FLUSHALL must be sent to the cluster's own nodes");
        }
        let aim = self.slot.map_or(Aim::Home, Aim::Slot);
        let kind = Kind::Block { watched: false };
        Parcel { commands: self.commands, ..Parcel::new(self.bytes, aim, kind) }
    }

    fn refused(self, text: &str) -> Parcel {
        let mut answer = b"+OK\r\n".to_vec();
        for _ in 2..self.commands {
            answer.extend_from_slice(format!("-{text}\r\n").as_bytes());
        }
        answer
            .extend_from_slice(b"-EXECABORT Transaction discarded because of previous errors.\r\n");
        Parcel::answered(answer)
    }
}

/// Returns the slot of a command's keys, and its bytes with the fleet's own keys renamed as in a cluster.
fn routed(args: &[&[u8]], raw: &[u8]) -> (Option<Slot>, Vec<u8>) {
    let places = Command::find(args[0]).and_then(|command| command.key_places(args).ok());
    let places: Vec<usize> = places.map(|places| places.iter().collect()).unwrap_or_default();
    let names: Vec<(usize, Vec<u8>)> = places
        .iter()
        .filter_map(|place| Some((*place, names::in_cluster(args[*place])?)))
        .collect();
    if names.is_empty() {
        return (places.first().map(|place| Slot::of(args[*place])), raw.to_vec());
    }
    let mut renamed = args.to_vec();
    for (place, name) in &names {
        renamed[*place] = name;
    }
    let mut bytes = Vec::with_capacity(raw.len() + 8 * names.len());
    resp::encode_command(&mut bytes, &renamed);
    (places.first().map(|place| Slot::of(renamed[*place])), bytes)
}

fn single(name: &[u8], args: &[&[u8]], (slot, bytes): (Option<Slot>, Vec<u8>)) -> Parcel {
    let every = |every| Parcel::new(bytes.clone(), Aim::Every, Kind::Every(every));
    match (name, args) {
        (b"client", [_, sub, rest @ ..]) => client(&sub.to_ascii_lowercase(), rest, bytes),
        (b"auth" | b"hello" | b"script", _) => every(Every::First),
        (b"dbsize", _) => every(Every::Sum),
        (b"keys", _) => every(Every::Items),
        (b"flushall" | b"flushdb", _) => {
            Parcel::answered("-ERR FLUSHALL must be sent to the cluster's own nodes\r\n")
        }
        (b"watch", _) => Parcel::new(bytes, slot.map_or(Aim::Home, Aim::Slot), Kind::Watch),
        (b"unwatch", _) => Parcel::new(bytes, Aim::Home, Kind::Unwatch),
        (b"scan", [_, cursor, ..]) => scan(cursor, bytes),
        _ => Parcel::new(bytes, slot.map_or(Aim::Home, Aim::Slot), Kind::Plain),
    }
}

fn client(sub: &[u8], rest: &[&[u8]], bytes: Vec<u8>) -> Parcel {
    match (sub, rest) {
        (b"setname", [name]) => {
            Parcel::new(bytes, Aim::Every, Kind::Every(Every::Name(name.to_vec())))
        }
        (b"list", []) => {
            Parcel::new(bytes, Aim::Every, Kind::Every(Every::Clients { listed: false }))
        }
        (b"kill", [word, id]) if word.eq_ignore_ascii_case(b"id") => kill(id),
        // Each node has its own ID for our connection.
        (b"id", []) => Parcel::answered("-ERR CLIENT ID is not supported for a cluster\r\n"),
        _ => Parcel::new(bytes, Aim::Home, Kind::Plain),
    }
}

/// Builds a CLIENT KILL for an ID from our CLIENT LIST.
fn kill(id: &[u8]) -> Parcel {
    let number = resp::parse_integer(id).and_then(|id| u64::try_from(id).ok()).unwrap_or(0);
    let inner = number & ((1 << CLIENT_ID_BITS) - 1);
    let mut bytes = Vec::new();
    resp::encode_command(&mut bytes, &[b"CLIENT", b"KILL", b"ID", inner.to_string().as_bytes()]);
    let node = usize::try_from(number >> CLIENT_ID_BITS).unwrap_or(0);
    Parcel::new(bytes, Aim::Node(node), Kind::Plain)
}

fn scan(cursor: &[u8], bytes: Vec<u8>) -> Parcel {
    let number = std::str::from_utf8(cursor).ok().and_then(|text| text.parse::<u64>().ok());
    let slot = number.and_then(|number| u16::try_from(number >> CURSOR_SLOT_SHIFT).ok());
    match slot.and_then(Slot::new) {
        Some(first) => Parcel::new(bytes, Aim::Slot(first), Kind::Scan { first, last: first }),
        None => Parcel::answered("-ERR invalid cursor\r\n"),
    }
}

/// Returns the cursor at the beginning of a slot.
pub(super) fn cursor_at(slot: Slot) -> u64 {
    u64::from(slot.number()) << CURSOR_SLOT_SHIFT
}

/// Returns the slot a cursor is in.
pub(super) fn slot_of_cursor(cursor: u64) -> u64 {
    cursor >> CURSOR_SLOT_SHIFT
}

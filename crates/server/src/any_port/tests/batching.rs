//! The promise of the any-port: any batching of the same requests gives the replies of one request at a time,
//! whatever moves or breaks meanwhile. Requests, batches, chunks and faults are random; the expected replies
//! come from one simulated node that serves every slot.

use std::collections::BTreeMap;
use std::time::Duration;

use commands::Table;
use placement::Slot;
use proptest::collection::vec;
use proptest::prelude::*;
use resp::skip_reply;

use super::nodes::{Connection, Nodes, Words, keys, node_at, owned, slot, take_request, words};
use crate::any_port::pipeline::{OUTPUT_BYTES_MAX, Pipeline};
use crate::any_port::upstream::UpstreamId;

const KEYS: [&str; 5] = ["a", "b", "c", "{a}x", "{b}y"];
/// Each fault costs a command at most two retries: all together fewer than it has.
const FAULTS_MAX: usize = 7;

/// A small random number generator for the choices of one run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == 0
    }
}

/// Returns a request whose reply depends on neither the map nor the time. `number` makes values distinct.
fn request(kind: u8, first: usize, second: usize, number: usize) -> Words {
    let (a, b) = (KEYS[first % KEYS.len()], KEYS[second % KEYS.len()]);
    words(&match kind {
        0..=2 => format!("GET {a}"),
        3..=5 => format!("SET {a} v{number}"),
        6..=8 => format!("APPEND {a} +{number}"),
        9 => format!("DEL {a} {b}"),
        10 => format!("MSET {a} m{number} {b} n{number}"),
        11 => format!("MGET {a} {b} {a}"),
        12 => format!("EXISTS {a} {b}"),
        13 => "PING".to_owned(),
        14 => format!("CLIENT SETNAME name{number}"),
        15 => "CLIENT GETNAME".to_owned(),
        16 => "MULTI".to_owned(),
        17 => "EXEC".to_owned(),
        18 => "DISCARD".to_owned(),
        19 => format!("RENAME {a} {b}"),
        20 => "RESET".to_owned(),
        21 => "CLIENT REPLY OFF".to_owned(),
        22 => format!("WATCH {a}"),
        _ => "UNWATCH".to_owned(),
    })
}

fn requests() -> impl Strategy<Value = Vec<Words>> {
    vec((0..24u8, 0..5usize, 0..5usize), 1..40).prop_map(|drawn| {
        let numbered = drawn.into_iter().enumerate();
        numbered
            .map(|(number, (kind, first, second))| request(kind, first, second, number))
            .collect()
    })
}

/// One connection between the pipeline and a node.
struct Wire {
    node: usize,
    connection: Connection,
    to_node: Vec<u8>,
    to_pipeline: Vec<u8>,
}

struct Run {
    table: Table,
    pipeline: Pipeline,
    nodes: Nodes,
    wires: BTreeMap<UpstreamId, Wire>,
    chance: Chance,
    faults_left: usize,
    breaks: bool,
    has_broken: bool,
    said: Vec<u8>,
}

impl Run {
    fn new(seed: u64, breaks: bool) -> Run {
        let mut nodes = Nodes::new(3);
        for (node, key) in ["c", "a", "b"].iter().enumerate() {
            nodes.give(slot(key), node, true);
        }
        Run {
            table: Table::default(),
            pipeline: Pipeline::default(),
            nodes,
            wires: BTreeMap::new(),
            chance: Chance(seed),
            faults_left: FAULTS_MAX,
            breaks,
            has_broken: false,
            said: Vec::new(),
        }
    }

    /// Runs all requests, in batches of up to `batch`, to the end.
    fn go(&mut self, requests: &[Words], batch: usize) {
        let (mut arrived, mut taken) = (0, 0);
        for _ in 0..200_000 {
            let is_served = taken == arrived && self.pipeline.is_idle();
            if self.pipeline.is_finished() || is_served && taken == requests.len() {
                return self.read();
            }
            if arrived < requests.len() && (is_served || self.chance.one_in(10)) {
                let more = if batch == 1 && !is_served { 0 } else { self.chance.below(batch) + 1 };
                arrived = (arrived + more).min(requests.len());
            }
            if taken < arrived && self.pipeline.wants_request() {
                let args = owned(&requests[taken]);
                self.pipeline.request(&self.table, args.args(), &self.nodes);
                taken += 1;
            }
            self.connect();
            self.act();
            let held = self.pipeline.reply_bytes();
            assert!(held < OUTPUT_BYTES_MAX, "{held} bytes are held");
        }
        panic!("it hangs: {taken} of {} requests taken", requests.len());
    }

    fn connect(&mut self) {
        while let Some((id, address)) = self.pipeline.next_unconnected() {
            let (to_node, to_pipeline) = (Vec::new(), Vec::new());
            let (node, connection) = (node_at(&address), Connection::default());
            self.wires.insert(id, Wire { node, connection, to_node, to_pipeline });
        }
    }

    /// Takes one random action.
    fn act(&mut self) {
        let ids: Vec<UpstreamId> = self.wires.keys().copied().collect();
        let id = ids.get(self.chance.below(ids.len().max(1))).copied();
        match (self.chance.below(8), id) {
            (0 | 1, Some(id)) => self.carry(id),
            (2 | 3, Some(id)) => self.serve(id),
            (4 | 5, _) => self.deliver(),
            (6, _) if self.pipeline.is_pausing() => {
                self.pipeline.retry(Duration::ZERO, &self.nodes);
            }
            (6, _) => self.read(),
            (7, _) => self.change(id),
            _ => {}
        }
    }

    /// Delivers some bytes to the node.
    fn carry(&mut self, id: UpstreamId) {
        let Some(wire) = self.wires.get_mut(&id) else { return };
        let Some(upstream) = self.pipeline.upstream(id) else {
            self.wires.remove(&id); // The pipeline has closed it.
            return;
        };
        let output = &mut upstream.unsent;
        let count = self.chance.below(output.len() + 1);
        wire.to_node.extend(output.chunks(output.mark()).flatten().take(count).copied());
        output.advance(count);
    }

    /// Lets the node serve or refuse a request.
    fn serve(&mut self, id: UpstreamId) {
        let Some(wire) = self.wires.get_mut(&id) else { return };
        let Some(words) = take_request(&mut wire.to_node) else { return };
        let is_data = !keys(&words).is_empty();
        let reply = if is_data && self.faults_left > 0 && self.chance.one_in(12) {
            self.faults_left -= 1;
            // A refusal inside MULTI breaks the transaction: the node must know of it.
            let other = self.chance.below(self.nodes.count);
            match self.chance.below(2) {
                0 => wire.connection.refuse(b"-TRYAGAIN by chance\r\n"),
                _ => wire.connection.refuse(format!("-ASK 1 node{other}:{other}\r\n").as_bytes()),
            }
        } else {
            self.nodes.serve(wire.node, &mut wire.connection, &words)
        };
        wire.to_pipeline.extend_from_slice(&reply);
    }

    /// Delivers some bytes of the wanted reply to the pipeline.
    fn deliver(&mut self) {
        let Some(id) = self.pipeline.reads_from() else { return };
        let Some(wire) = self.wires.get_mut(&id) else { return };
        let count = self.chance.below(wire.to_pipeline.len() + 1);
        let bytes: Vec<u8> = wire.to_pipeline.drain(..count).collect();
        self.pipeline.receive(id, &bytes, &self.nodes);
    }

    /// Moves a slot, updates the any-port's map, or breaks a connection.
    fn change(&mut self, id: Option<UpstreamId>) {
        let moved = slot(KEYS[self.chance.below(KEYS.len())]);
        if self.chance.one_in(3) {
            self.nodes.believed.insert(moved, self.nodes.owner(moved));
        } else if self.faults_left > 0 && self.chance.one_in(8) {
            self.faults_left -= 1;
            let node = self.chance.below(self.nodes.count);
            self.nodes.give(moved, node, false);
        } else if let Some(id) = id
            && self.breaks
            && self.chance.one_in(60)
        {
            // Requests that have reached the node may still run.
            while self.chance.one_in(2) {
                self.serve(id);
            }
            self.wires.remove(&id);
            self.has_broken = true;
            self.pipeline.lost(id, &self.nodes);
        }
    }

    fn read(&mut self) {
        let output = &mut self.pipeline.output;
        self.said.extend(output.chunks(output.mark()).flatten());
        let count = output.len();
        output.advance(count);
    }

    fn replies(&self) -> Vec<&[u8]> {
        let (mut replies, mut at) = (Vec::new(), 0);
        while at < self.said.len() {
            let end = skip_reply(&self.said, at).unwrap();
            // A reply cut off by the end of the connection is not checked.
            let Some(end) = end else { break };
            replies.push(&self.said[at..end]);
            at = end;
        }
        replies
    }
}

/// Compares replies with those of one node that serves everything, one request at a time. The any-port differs
/// in three ways: inside MULTI a redirect is a valid reply, and then EXEC runs nothing; it refuses some
/// commands by itself; and keys of several nodes cannot be watched.
fn judge(requests: &[Words], replies: &[&[u8]]) -> Nodes {
    let (mut plain, mut connection) = (Nodes::new(1), Connection::default());
    let mut in_transaction = false;
    for (number, (request, reply)) in requests.iter().zip(replies).enumerate() {
        let line = request.join(&b' ');
        let shown = format!("request {number}: {}", line.escape_ascii());
        let name = request[0].as_slice();
        let own: Option<&[u8]> = match name {
            b"CLIENT" if request[1] == b"REPLY" => Some(b"-ERR CLIENT REPLY"),
            b"CLIENT" if in_transaction && request.len() == 3 => Some(b"-ERR this command"),
            _ => None,
        };
        if let Some(own) = own {
            assert!(reply.starts_with(own), "{shown}: {}", reply.escape_ascii());
            connection.refuse(b"");
            continue;
        }
        if name == b"WATCH" && reply.starts_with(b"-ERR all watched keys") {
            continue;
        }
        let is_redirected = in_transaction && is_redirection(reply);
        if is_redirected {
            connection.refuse(b"");
            if name != b"EXEC" {
                continue;
            }
        }
        let expected = plain.serve(0, &mut connection, request);
        let is_same = expected == **reply || is_redirected;
        assert!(is_same, "{shown}: {} for {}", reply.escape_ascii(), expected.escape_ascii());
        in_transaction = match name {
            b"MULTI" => true,
            b"EXEC" | b"DISCARD" | b"RESET" => false,
            _ => in_transaction,
        };
    }
    plain
}

fn is_redirection(reply: &[u8]) -> bool {
    [&b"-MOVED"[..], b"-TRYAGAIN", b"-ASK"].iter().any(|start| reply.starts_with(start))
}

/// Checks that writes of each slot ran in the client's order, none of them twice, each under the name that the
/// client had.
fn check_order(requests: &[Words], nodes: &Nodes) {
    let mut last: BTreeMap<Slot, usize> = BTreeMap::new();
    for ran in &nodes.log {
        let Some(number) = number_of(&ran.words) else { continue };
        let before = last.insert(Slot::of(&ran.words[1]), number);
        assert!(before.is_none_or(|before| before < number), "{before:?} ran before {number}");
        let mut before = requests[..number].iter().rev();
        let named = before.find(|words| is_naming(words));
        let expected = named.and_then(|words| words.get(2)).map_or(&b""[..], Vec::as_slice);
        let is_known = expected == ran.name || named.is_some_and(|words| in_multi(requests, words));
        assert!(is_known, "request {number} ran under the name {}", ran.name.escape_ascii());
    }
}

fn is_naming(words: &Words) -> bool {
    words[0] == b"RESET" || words[0] == b"CLIENT" && words[1] == b"SETNAME"
}

/// Returns true if the naming may have been refused inside MULTI.
fn in_multi(requests: &[Words], naming: &Words) -> bool {
    let before = requests.iter().take_while(|words| *words != naming);
    let bounds: [&[u8]; 4] = [b"MULTI", b"EXEC", b"DISCARD", b"RESET"];
    let last = before.filter(|words| bounds.contains(&words[0].as_slice())).last();
    naming[0] == b"CLIENT" && last.is_some_and(|words| words[0] == b"MULTI")
}

/// Returns the number of the request that has written this value.
fn number_of(words: &Words) -> Option<usize> {
    let value = match words[0].as_slice() {
        b"SET" | b"APPEND" | b"MSET" => std::str::from_utf8(&words[2]).unwrap(),
        _ => return None,
    };
    value.get(1..)?.parse().ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_batching_gives_the_replies_of_one_by_one(
        requests in requests(), batch in 1..40usize, seed: u64,
    ) {
        let mut run = Run::new(seed, false);
        run.go(&requests, batch);
        let replies = run.replies();
        prop_assert_eq!(replies.len(), requests.len());
        let plain = judge(&requests, &replies);
        prop_assert_eq!(&plain.store, &run.nodes.store);
        check_order(&requests, &run.nodes);
    }

    #[test]
    fn after_a_break_the_client_has_a_true_beginning_and_the_end(
        requests in requests(), batch in 1..40usize, seed: u64,
    ) {
        let mut run = Run::new(seed, true);
        run.go(&requests, batch);
        let replies = run.replies();
        prop_assert!(replies.len() == requests.len() || run.has_broken && run.pipeline.is_finished());
        judge(&requests, &replies);
        check_order(&requests, &run.nodes);
    }
}

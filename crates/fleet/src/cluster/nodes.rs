//! The nodes of a cluster as one session knows them: the slots they serve, the bytes to send to each, and the
//! answers due from each.

use std::collections::VecDeque;

use placement::Slot;
use resp::Protocol;

use super::{answers, epoch_in};
use crate::config::{Address, EPOCH, Epoch};
use crate::names;

pub(super) struct Nodes {
    /// All nodes ever seen, never removed: a node's index is its number.
    nodes: Vec<Node>,
    serving: Vec<Option<usize>>,
    auth: Option<Vec<u8>>,
    hello: Option<Vec<u8>>,
    protocol: Protocol,
    name: Option<Vec<u8>>,
}

struct Node {
    address: Address,
    state: State,
    outgoing: Vec<u8>,
    awaited: VecDeque<Awaited>,
    /// True if a command waits for this node.
    needed: bool,
    /// True if the cluster lists the node among its members.
    listed: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Not connected, for this reason.
    Away(String),
    /// To be connected.
    Wanted,
    /// Connected, but without an epoch in the connection's name yet.
    Unnamed {
        asked: bool,
    },
    /// The fleet has a newer map than the user of this session knows.
    Ahead(Epoch),
    Up,
}

/// The request that a node's next answer belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Awaited {
    Parcel(u64),
    /// An OK to an introductory command on a new connection.
    Hello,
    /// The answer to CLUSTER NODES.
    Nodes,
    /// The same, before this parcel is sent to all nodes.
    Listed(u64),
    /// The answer to naming the connection with epoch 0.
    Unnamed,
    /// The fleet's epoch, read for the connection to the node `of`.
    Epoch {
        of: usize,
    },
}

impl Nodes {
    pub(super) fn new(seed: &Address, auth: Option<Vec<u8>>) -> Nodes {
        let mut nodes = Nodes {
            nodes: Vec::new(),
            serving: vec![None; usize::from(Slot::COUNT)],
            auth,
            hello: None,
            protocol: Protocol::Resp2,
            name: None,
        };
        nodes.number_of(seed);
        nodes
    }

    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn address(&self, node: usize) -> &Address {
        &self.nodes[node].address
    }

    pub(super) fn listed(&self) -> impl Iterator<Item = &Address> {
        self.nodes.iter().filter(|node| node.listed).map(|node| &node.address)
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn number_of(&mut self, address: &Address) -> usize {
        if let Some(number) = self.nodes.iter().position(|node| node.address == *address) {
            return number;
        }
        self.nodes.push(Node {
            address: address.clone(),
            state: State::Wanted,
            outgoing: Vec::new(),
            awaited: VecDeque::new(),
            needed: false,
            listed: true,
        });
        self.nodes.len() - 1
    }

    // Slots.

    pub(super) fn serving(&self, slot: Slot) -> usize {
        self.serving[usize::from(slot.number())].unwrap_or_else(|| self.home())
    }

    /// Returns the node for commands that any node can serve.
    pub(super) fn home(&self) -> usize {
        self.nodes.iter().position(|node| node.state == State::Up).unwrap_or(0)
    }

    pub(super) fn assign(&mut self, slot: Slot, address: &Address) {
        let node = self.number_of(address);
        self.serving[usize::from(slot.number())] = Some(node);
        if self.nodes[node].state == State::Up {
            // If one slot has moved, its neighbours have too; this node knows which.
            self.ask_for_nodes(node, Awaited::Nodes);
        }
    }

    /// Returns the last slot of the run of slots from `first` on that one node serves.
    pub(super) fn run_end(&self, first: Slot) -> Slot {
        let node = self.serving(first);
        let same = |slot: &Slot| self.serving(*slot) == node;
        let behind = Slot::all().skip(usize::from(first.number()));
        behind.take_while(same).last().unwrap_or(first)
    }

    /// Takes the answer to CLUSTER NODES. Returns whether the assignment of slots changed.
    pub(super) fn learn(&mut self, reply: &[u8]) -> Result<bool, String> {
        let value = answers::value(reply);
        let text = value.as_ref().and_then(resp::Value::text);
        let text = text.ok_or("its answer to CLUSTER NODES is not a list of nodes")?;
        let before = self.serving.clone();
        self.nodes.iter_mut().for_each(|node| node.listed = false);
        for line in String::from_utf8_lossy(text).lines() {
            let Some((address, ranges)) = member(line) else { continue };
            let node = self.number_of(&address);
            self.nodes[node].listed = true;
            if let State::Away(_) = self.nodes[node].state {
                self.nodes[node].state = State::Wanted;
            }
            for slot in ranges.into_iter().flatten() {
                self.serving[usize::from(slot)] = Some(node);
            }
        }
        Ok(before != self.serving)
    }

    // Connecting.

    pub(super) fn wanted(&self) -> Option<(usize, Address)> {
        let node = self.nodes.iter().position(|node| node.state == State::Wanted)?;
        Some((node, self.nodes[node].address.clone()))
    }

    /// Repeats the introduction (AUTH, HELLO, name) on a new connection. The first connection asks for the nodes.
    pub(super) fn introduce(&mut self, node: usize, nodes_known: bool) {
        self.nodes[node].state = State::Up;
        for command in [self.auth.clone(), self.hello.clone()].into_iter().flatten() {
            self.send(node, &command, (1, Awaited::Hello));
        }
        if !nodes_known {
            self.ask_for_nodes(node, Awaited::Nodes);
        }
        let Some(name) = self.name.clone() else { return };
        match epoch_in(&name).filter(|epoch| *epoch > Epoch::NONE) {
            None => self.say_name(node, &name, Awaited::Hello),
            Some(_) => {
                self.nodes[node].state = State::Unnamed { asked: false };
                let unnamed = names::without_epoch(&name);
                self.say_name(node, &unnamed, Awaited::Unnamed);
            }
        }
    }

    fn say_name(&mut self, node: usize, name: &[u8], awaited: Awaited) {
        let mut bytes = Vec::new();
        resp::encode_command(&mut bytes, &[b"CLIENT", b"SETNAME", name]);
        self.send(node, &bytes, (1, awaited));
    }

    /// Reads the fleet's epoch for a node whose connection is named with epoch 0.
    pub(super) fn ask_epoch(&mut self, of: usize) {
        if let State::Unnamed { asked } = &mut self.nodes[of].state {
            *asked = false;
        }
        let key = names::in_cluster(EPOCH.as_bytes()).expect("it is one of the fleet's keys");
        // Any connection may read it; prefer that of the slot's node if there is one.
        let at = self.serving(Slot::of(&key));
        let connected = |state: &State| matches!(state, State::Up | State::Unnamed { .. });
        if !connected(&self.nodes[at].state) {
            return; // `ask_epochs` tries again later.
        }
        let mut bytes = Vec::new();
        resp::encode_command(&mut bytes, &[b"GET", &key]);
        self.send(at, &bytes, (1, Awaited::Epoch { of }));
        if let State::Unnamed { asked } = &mut self.nodes[of].state {
            *asked = true;
        }
    }

    /// Reads the fleet's epoch for the nodes for which that was not possible yet.
    pub(super) fn ask_epochs(&mut self) {
        for node in 0..self.nodes.len() {
            let named_zero = !self.nodes[node].awaited.contains(&Awaited::Unnamed);
            if self.nodes[node].state == (State::Unnamed { asked: false }) && named_zero {
                self.ask_epoch(node);
            }
        }
    }

    pub(super) fn on_epoch(&mut self, node: usize, fleet: Epoch) {
        let Some(name) = self.name.clone() else { return };
        if epoch_in(&name).is_some_and(|ours| fleet > ours) {
            self.nodes[node].state = State::Ahead(fleet);
            return;
        }
        self.nodes[node].state = State::Up;
        self.say_name(node, &name, Awaited::Hello);
    }

    /// Sets the name of all connections from now on; connections that were ahead may be used again.
    pub(super) fn rename(&mut self, name: &[u8]) {
        self.name = Some(name.to_vec());
        let epoch = epoch_in(name);
        for node in &mut self.nodes {
            if let State::Ahead(fleet) = node.state
                && epoch.is_none_or(|epoch| epoch >= fleet)
            {
                node.state = State::Up;
            }
        }
    }

    /// Returns whether some nodes are still being connected.
    pub(super) fn are_coming(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.state, State::Wanted | State::Unnamed { .. }))
    }

    /// Returns a member that cannot be reached, and the reason.
    pub(super) fn away(&self) -> Option<String> {
        self.nodes.iter().find_map(|node| match &node.state {
            State::Away(why) if node.listed => {
                Some(format!("{} is unreachable: {why}", node.address))
            }
            State::Away(_)
            | State::Wanted
            | State::Unnamed { .. }
            | State::Ahead(_)
            | State::Up => None,
        })
    }

    /// Returns whether the node takes commands. If not, it will be connected.
    pub(super) fn is_up(&mut self, node: usize) -> bool {
        let node = &mut self.nodes[node];
        if node.state == State::Up {
            return true;
        }
        node.needed = true;
        if let State::Away(_) = node.state {
            node.state = State::Wanted;
        }
        false
    }

    /// Disconnects a node. Returns whether somebody waits for it.
    pub(super) fn lose(&mut self, node: usize, why: &str) -> bool {
        let node = &mut self.nodes[node];
        let asked = |awaited: &Awaited| !matches!(awaited, Awaited::Hello | Awaited::Unnamed);
        let waited_for = node.needed || node.awaited.iter().any(asked);
        node.state = State::Away(why.to_owned());
        node.awaited.clear();
        node.outgoing.clear();
        waited_for
    }

    // Sending and receiving.

    pub(super) fn take_outgoing(&mut self, node: usize) -> Vec<u8> {
        std::mem::take(&mut self.nodes[node].outgoing)
    }

    pub(super) fn pop_awaited(&mut self, node: usize) -> Option<Awaited> {
        self.nodes[node].awaited.pop_front()
    }

    pub(super) fn send(&mut self, node: usize, bytes: &[u8], (count, awaited): (usize, Awaited)) {
        let node = &mut self.nodes[node];
        node.needed = false;
        node.outgoing.extend_from_slice(bytes);
        node.awaited.extend(std::iter::repeat_n(awaited, count));
    }

    /// Sends to all connected nodes and returns their number. New connections will get the same introduction.
    pub(super) fn send_to_all(&mut self, bytes: &[u8], number: u64) -> usize {
        self.note_introduction(bytes);
        let up: Vec<usize> =
            (0..self.nodes.len()).filter(|node| self.nodes[*node].state == State::Up).collect();
        for node in &up {
            self.send(*node, bytes, (1, Awaited::Parcel(number)));
        }
        up.len()
    }

    fn note_introduction(&mut self, bytes: &[u8]) {
        let says = |word: &[u8]| bytes.windows(word.len()).take(16).any(|window| window == word);
        if says(b"HELLO") {
            self.hello = Some(bytes.to_vec());
            self.protocol = Protocol::Resp3;
        } else if says(b"AUTH") {
            self.auth = Some(bytes.to_vec());
        }
    }

    fn ask_for_nodes(&mut self, node: usize, awaited: Awaited) {
        if awaited == Awaited::Nodes && self.nodes[node].awaited.contains(&Awaited::Nodes) {
            return;
        }
        let mut bytes = Vec::new();
        resp::encode_command(&mut bytes, &[b"CLUSTER", b"NODES"]);
        self.send(node, &bytes, (1, awaited));
    }

    /// Asks every node for the nodes; returns how many were asked.
    pub(super) fn ask_all_for_nodes(&mut self, number: u64) -> usize {
        let up: Vec<usize> =
            (0..self.nodes.len()).filter(|node| self.nodes[*node].state == State::Up).collect();
        up.iter().for_each(|node| self.ask_for_nodes(*node, Awaited::Listed(number)));
        up.len()
    }
}

/// Reads a line of CLUSTER NODES: the node's address, and the slots it serves.
fn member(line: &str) -> Option<(Address, Vec<std::ops::RangeInclusive<u16>>)> {
    let mut words = line.split(' ');
    let at = words.nth(1)?;
    let flags = words.next()?;
    if flags.split(',').any(|flag| matches!(flag, "noaddr" | "handshake" | "fail")) {
        return None;
    }
    let (host, port) = at.split_once('@')?.0.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = Address::plain(host, port.parse().ok()?);
    let ranges = words.skip(5).filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < Slot::COUNT).then_some(first..=last)
    });
    Some((address, ranges.collect()))
}

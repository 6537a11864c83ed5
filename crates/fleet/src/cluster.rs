//! A cluster that acts like one server of the fleet: commands come in as at any server and go out to the node
//! that serves their slot; answers come back in the order of the commands. The session follows `MOVED` redirects.
//!
//! The shells (`proxy::stream` and through it `proxy::servers::Control`) hold the sockets: they pass in
//! commands with [`Session::push`] and each node's answers with [`Session::on_reply`], connect to the nodes
//! that [`Session::next_to_connect`] names, and send what [`Session::take_outgoing`] returns. So the jobs of
//! this crate need not know that a server is a cluster, with two exceptions: keys that share a transaction
//! must share a slot (`names.rs` ensures that for a key and its marker, `MoveJob::by_slot` for batches), and
//! the fleet's own keys have names there that share one slot (`names::in_cluster`).
//!
//! The order of commands on a key is kept: after a `MOVED` nothing new is sent before everything in flight is
//! answered. A connection's name means the same as at a plain server: each node's connection carries it, a
//! connection made later first says epoch 0 and checks the fleet's epoch, and `CLIENT LIST` asks every node
//! that any node knows.

mod answers; // Merges several nodes' answers into one.
mod nodes; //   The nodes, and the slots each one serves.
mod parcel; //  Splits commands into units that are sent together.
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use placement::Slot;

use self::nodes::{Awaited, Nodes};
use self::parcel::{Aim, Every, Kind, Parcel, Parcels};
use crate::config::{Address, Epoch};
use crate::names;

/// Maximum number of times a command follows its slot before its client gets the redirect itself.
const HOPS_MAX: u32 = 200;

/// One connection to a cluster.
pub struct Session {
    nodes: Nodes,
    reader: Parcels,
    /// Parcels not yet answered in their turn, the oldest first.
    parcels: VecDeque<Parcel>,
    /// Number of the first of them; numbers are never reused.
    first: u64,
    /// Number of them that have been sent, or need not be.
    begun: usize,
    /// Number of parcels in flight.
    under_way: usize,
    /// True after a parcel was redirected: nothing new is sent before all in flight are answered.
    settling: bool,
    /// Parcels to be sent again, in this order.
    again: VecDeque<u64>,
    /// The node at which keys are watched.
    watching: Option<usize>,
    /// True once the nodes are known.
    ready: bool,
    output: Vec<u8>,
}

impl Session {
    /// Starts with any node; `auth` is the command to authenticate, if one is needed.
    pub fn new(seed: &Address, auth: Option<Vec<u8>>) -> Session {
        Session {
            nodes: Nodes::new(seed, auth),
            reader: Parcels::default(),
            parcels: VecDeque::new(),
            first: 0,
            begun: 0,
            under_way: 0,
            settling: false,
            again: VecDeque::new(),
            watching: None,
            ready: false,
            output: Vec::new(),
        }
    }

    /// Takes complete commands. An error means that the session is unusable.
    pub fn push(&mut self, commands: &[u8]) -> Result<(), String> {
        for parcel in self.reader.read(commands)? {
            self.parcels.push_back(parcel);
        }
        self.go_on();
        Ok(())
    }

    /// Returns a node to connect to. Its outgoing bytes may be sent as soon as the connection is made.
    pub fn next_to_connect(&mut self) -> Option<(usize, Address)> {
        let (node, address) = self.nodes.wanted()?;
        self.nodes.introduce(node, self.ready);
        self.go_on();
        Some((node, address))
    }

    /// Returns the bytes to send to a node.
    pub fn take_outgoing(&mut self, node: usize) -> Vec<u8> {
        self.nodes.take_outgoing(node)
    }

    /// Returns the answers in order; the shell takes them from the beginning.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Returns all known nodes.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.nodes.listed()
    }

    /// Handles a node that cannot be reached or was lost. Returns an error if somebody waits for it.
    pub fn on_lost(&mut self, node: usize, why: &str) -> Result<(), String> {
        let address = self.nodes.address(node).clone();
        if self.nodes.lose(node, why) || !self.ready {
            return Err(format!("{address}: {why}"));
        }
        self.go_on();
        Ok(())
    }

    /// Handles one complete answer of a node.
    pub fn on_reply(&mut self, node: usize, reply: &[u8]) -> Result<(), String> {
        let address = self.nodes.address(node).clone();
        let awaited = self.nodes.pop_awaited(node);
        match awaited.ok_or_else(|| format!("{address} sent an unexpected reply"))? {
            Awaited::Parcel(number) => self.on_answer(number, (node, reply)),
            Awaited::Hello if reply.starts_with(b"-") => {
                let text = String::from_utf8_lossy(&reply[1..]);
                return Err(format!("{address}: {}", text.trim_end()));
            }
            Awaited::Hello => {}
            Awaited::Nodes => self.learn(reply)?,
            Awaited::Listed(number) => {
                self.learn(reply)?;
                self.on_listed(number);
            }
            Awaited::Unnamed => self.nodes.ask_epoch(node),
            Awaited::Epoch { of } => self.on_epoch(of, reply)?,
        }
        self.go_on();
        Ok(())
    }

    fn learn(&mut self, reply: &[u8]) -> Result<(), String> {
        let changed = self.nodes.learn(reply)?;
        self.settling |= changed && self.ready;
        self.ready = true;
        Ok(())
    }

    /// Takes the fleet's epoch for a connection that was made late, to check that its name will be up to date.
    fn on_epoch(&mut self, node: usize, reply: &[u8]) -> Result<(), String> {
        if let Some((slot, address)) = answers::moved(reply) {
            self.nodes.assign(slot, &address);
            self.nodes.ask_epoch(node);
            return Ok(());
        }
        let said = answers::integer(reply).and_then(|number| u64::try_from(number).ok());
        let epoch = said.ok_or("its server.config.* keys are missing")?;
        self.nodes.on_epoch(node, Epoch::new(epoch));
        Ok(())
    }

    // Sending.

    fn go_on(&mut self) {
        self.nodes.ask_epochs();
        self.send_again();
        loop {
            self.drain();
            if !self.ready || self.settling && self.under_way > 0 || self.is_everywhere() {
                return;
            }
            self.settling = false;
            if self.begun >= self.parcels.len() || !self.begin(self.begun) {
                return;
            }
            self.begun += 1;
        }
    }

    /// Returns whether the oldest parcel was started and goes to every node: then nothing may overtake it.
    fn is_everywhere(&self) -> bool {
        self.begun > 0 && self.parcels.front().is_some_and(|parcel| parcel.aim == Aim::Every)
    }

    /// Outputs the answers whose turn has come.
    fn drain(&mut self) {
        while let Some(Parcel { answer: Some(answer), .. }) = self.parcels.front() {
            self.output.extend_from_slice(answer);
            self.parcels.pop_front();
            self.first += 1;
            self.begun = self.begun.saturating_sub(1);
        }
    }

    /// Sends a parcel for the first time; returns false if it has to wait.
    fn begin(&mut self, index: usize) -> bool {
        if self.parcels[index].answer.is_some() {
            return true;
        }
        match self.parcels[index].aim {
            Aim::Every => self.begin_everywhere(index),
            Aim::Home | Aim::Slot(_) | Aim::Node(_) => {
                let node = self.node_for(index);
                if !self.nodes.is_up(node) {
                    return false;
                }
                self.send(index, node);
                true
            }
        }
    }

    fn node_for(&mut self, index: usize) -> usize {
        let parcel = &mut self.parcels[index];
        let watched = match parcel.kind {
            Kind::Block { .. } | Kind::Unwatch => self.watching,
            Kind::Plain | Kind::Watch | Kind::Scan { .. } | Kind::Every(_) => None,
        };
        match (watched, parcel.aim) {
            (Some(node), _) => node,
            (None, Aim::Slot(slot)) => self.nodes.serving(slot),
            (None, Aim::Node(node)) => node.min(self.nodes.count() - 1),
            (None, Aim::Home | Aim::Every) => self.nodes.home(),
        }
    }

    fn send(&mut self, index: usize, node: usize) {
        let number = self.first + index as u64;
        let parcel = &mut self.parcels[index];
        match &mut parcel.kind {
            Kind::Watch => self.watching = Some(node),
            Kind::Unwatch => self.watching = None,
            Kind::Block { watched } => *watched = self.watching.is_some(),
            Kind::Scan { first, last } => *last = self.nodes.run_end(*first),
            Kind::Plain | Kind::Every(_) => {}
        }
        parcel.answers.clear();
        parcel.expected = parcel.commands;
        self.under_way += 1;
        self.nodes.send(node, &parcel.bytes, (parcel.commands, Awaited::Parcel(number)));
    }

    /// Sends a parcel to every node; earlier commands are answered first, later ones wait.
    fn begin_everywhere(&mut self, index: usize) -> bool {
        if index > 0 {
            return false;
        }
        let number = self.first;
        let parcel = &mut self.parcels[index];
        let Kind::Every(every) = &mut parcel.kind else { unreachable!("it goes to every node") };
        if let Every::Clients { listed: listed @ false } = every {
            *listed = true;
            parcel.expected = self.nodes.ask_all_for_nodes(number);
            self.under_way += 1;
            return true;
        }
        if self.nodes.are_coming() {
            return false;
        }
        if let (Every::Clients { .. } | Every::Sum | Every::Items, Some(away)) =
            (&every, self.nodes.away())
        {
            parcel.answer = Some(format!("-ERR node {away}\r\n").into_bytes());
            return true;
        }
        if let Every::Name(name) = every {
            self.nodes.rename(name);
        }
        parcel.answers.clear();
        let bytes = parcel.bytes.clone();
        parcel.expected = self.nodes.send_to_all(&bytes, number);
        self.under_way += 1;
        true
    }

    fn send_again(&mut self) {
        while let Some(number) = self.again.front() {
            let index = usize::try_from(number - self.first).expect("it is one of those here");
            let node = self.node_for(index);
            if !self.nodes.is_up(node) {
                return;
            }
            self.again.pop_front();
            self.under_way -= 1; // `send` counts it again.
            self.send(index, node);
        }
    }

    // Receiving.

    fn on_answer(&mut self, number: u64, (node, reply): (usize, &[u8])) {
        let index = usize::try_from(number - self.first).expect("it is one of those here");
        let parcel = &mut self.parcels[index];
        parcel.answers.push((node, reply.to_vec()));
        if parcel.answers.len() < parcel.expected {
            return;
        }
        let may_go_on = matches!(parcel.aim, Aim::Home | Aim::Slot(_))
            && !parcel.is_watched()
            && parcel.hops < HOPS_MAX;
        let moved = parcel.answers.iter().find_map(|(_, reply)| answers::moved(reply));
        let is_early = parcel.answers.iter().any(|(_, reply)| reply.starts_with(b"-TRYAGAIN"));
        match moved {
            Some((slot, address)) if may_go_on => {
                parcel.hops += 1;
                self.follow(number, slot, &address);
            }
            // Its slot is being moved right now.
            None if is_early && may_go_on => {
                parcel.hops += 1;
                self.settling = true;
                self.again.push_back(number);
            }
            Some(_) | None => {
                self.under_way -= 1;
                self.end(index);
            }
        }
    }

    /// Sends a parcel to its slot's new node.
    fn follow(&mut self, number: u64, slot: Slot, address: &Address) {
        let index = usize::try_from(number - self.first).expect("it is one of those here");
        self.nodes.assign(slot, address);
        self.parcels[index].aim = Aim::Slot(slot);
        self.settling = true;
        self.again.push_back(number);
    }

    fn end(&mut self, index: usize) {
        let protocol = self.nodes.protocol();
        let parcel = &mut self.parcels[index];
        let answers = std::mem::take(&mut parcel.answers);
        parcel.answer = Some(match &parcel.kind {
            Kind::Plain | Kind::Watch | Kind::Unwatch => answers::joined(&answers),
            Kind::Block { watched } => {
                let aborted = *watched && answers.iter().any(|(_, reply)| is_moved(reply));
                self.watching = None;
                match aborted {
                    // The watched keys may have changed while they moved: answer as if they had.
                    true => answers::aborted(answers.len(), protocol),
                    false => answers::joined(&answers),
                }
            }
            Kind::Scan { first, last } => answers::scanned(&answers[0].1, (*first, *last)),
            Kind::Every(every) => answers::merged(every, &answers),
        });
    }

    /// Asks the actual question once every node has listed the nodes it knows.
    fn on_listed(&mut self, number: u64) {
        let index = usize::try_from(number - self.first).expect("it is one of those here");
        self.parcels[index].expected -= 1;
        if self.parcels[index].expected == 0 {
            self.under_way -= 1;
            self.begun = 0;
        }
    }
}

fn is_moved(reply: &[u8]) -> bool {
    answers::moved(reply).is_some()
}

/// Returns the epoch in a connection's name, if it is one of the fleet's that touches keys.
fn epoch_in(name: &[u8]) -> Option<Epoch> {
    names::epoch_of(std::str::from_utf8(name).ok()?)
}

//! A cluster as if it were one server of the fleet: commands go in as to any server, and out to the
//! node that serves their slot; answers come back in the order of the commands. Who is told `MOVED`
//! goes where it says.
//!
//! The shells (`proxy::stream` and through it `proxy::servers::Control`) hold the sockets: they hand
//! in commands with [`Session::push`] and each node's answers with [`Session::on_reply`], connect to
//! whom [`Session::next_to_connect`] names and send what [`Session::take_outgoing`] gives. So the jobs of
//! this crate need not know that a server is a cluster, but for two things: keys that share a
//! transaction must share a slot (`names.rs` sees to that for a key and its marker, `MoveJob::by_slot`
//! for batches), and the fleet's own keys have names there that share one (`names::in_cluster`).
//!
//! The order of commands on a key is kept: after a `MOVED` nothing new is sent before all that is
//! under way is answered. The name of a connection means what it means at a plain server: each node's
//! connection carries it, one that is made later first says epoch 0 and looks at the fleet's epoch,
//! and `CLIENT LIST` asks every node that any node knows of.

mod answers; // Several nodes' answers become one.
mod nodes; //   The nodes, and who serves which slot.
mod parcel; //  Commands, cut into what is sent together.
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use placement::Slot;

use self::nodes::{Awaited, Nodes};
use self::parcel::{Aim, Every, Kind, Parcel, Parcels};
use crate::config::{Address, Epoch};
use crate::names;

/// So often a command is sent after its slot before its client is told to look itself.
const HOPS_MAX: u32 = 200;

/// One connection to a cluster.
pub struct Session {
    nodes: Nodes,
    reader: Parcels,
    /// Not answered in their turn yet, the oldest first.
    parcels: VecDeque<Parcel>,
    /// The number of the first of them; numbers are never used again.
    first: u64,
    /// How many of them have been sent, or need not be.
    begun: usize,
    /// Sent, and not answered.
    under_way: usize,
    /// Some were sent elsewhere again: nothing new before all are answered.
    settling: bool,
    /// To be sent again, in this order.
    again: VecDeque<u64>,
    /// The node at which something is watched.
    watching: Option<usize>,
    /// The nodes are known.
    ready: bool,
    output: Vec<u8>,
}

impl Session {
    /// Begins with any node; `auth` is the command to show who we are, if one is needed.
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

    /// Takes commands, each of them whole. An error means that the session is of no use.
    pub fn push(&mut self, commands: &[u8]) -> Result<(), String> {
        for parcel in self.reader.read(commands)? {
            self.parcels.push_back(parcel);
        }
        self.go_on();
        Ok(())
    }

    /// A node to be connected to. What it is to be told may be sent as soon as the connection is made.
    pub fn next_to_connect(&mut self) -> Option<(usize, Address)> {
        let (node, address) = self.nodes.wanted()?;
        self.nodes.introduce(node, self.ready);
        self.go_on();
        Some((node, address))
    }

    /// What is to be sent to a node.
    pub fn take_outgoing(&mut self, node: usize) -> Vec<u8> {
        self.nodes.take_outgoing(node)
    }

    /// Answers in their order; the shell takes from its beginning.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// All nodes there are, as far as is known.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.nodes.listed()
    }

    /// A node cannot be reached, or is lost. An error if somebody waits for it.
    pub fn on_lost(&mut self, node: usize, why: &str) -> Result<(), String> {
        let address = self.nodes.address(node).clone();
        if self.nodes.lose(node, why) || !self.ready {
            return Err(format!("{address}: {why}"));
        }
        self.go_on();
        Ok(())
    }

    /// One whole answer of a node.
    pub fn on_reply(&mut self, node: usize, reply: &[u8]) -> Result<(), String> {
        let address = self.nodes.address(node).clone();
        let awaited = self.nodes.pop_awaited(node);
        match awaited.ok_or_else(|| format!("{address} said what nobody had asked for"))? {
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

    /// A connection that was made late: does it act on the map that its name will say?
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

    /// Whether what was begun last goes to every node: then nothing overtakes it.
    fn is_everywhere(&self) -> bool {
        self.begun > 0 && self.parcels.front().is_some_and(|parcel| parcel.aim == Aim::Every)
    }

    /// Answers whose turn has come.
    fn drain(&mut self) {
        while let Some(Parcel { answer: Some(answer), .. }) = self.parcels.front() {
            self.output.extend_from_slice(answer);
            self.parcels.pop_front();
            self.first += 1;
            self.begun = self.begun.saturating_sub(1);
        }
    }

    /// Sends a parcel for the first time; false if it has to wait.
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

    /// To every node; earlier commands are answered first, later ones wait.
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
            self.under_way -= 1; // `send` counts it once more.
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
            // Its slot is just changing hands.
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

    /// Sends a parcel to where its slot is now.
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
                    // What was watched may have changed on the way: as if it had.
                    true => answers::aborted(answers.len(), protocol),
                    false => answers::joined(&answers),
                }
            }
            Kind::Scan { first, last } => answers::scanned(&answers[0].1, (*first, *last)),
            Kind::Every(every) => answers::merged(every, &answers),
        });
    }

    /// All nodes that were asked have named all that they know: now the question itself.
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

/// The epoch in a connection's name, if it is one of the fleet's that touches keys.
fn epoch_in(name: &[u8]) -> Option<Epoch> {
    names::epoch_of(std::str::from_utf8(name).ok()?)
}

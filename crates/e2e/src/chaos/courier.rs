//! A cluster client that knows the fate of every command: answered, surely not done, or unknown. It follows
//! `MOVED`, keeps a map of slots as clients do, and goes to another node when one does not answer. Requests
//! that stay without a reply are handed to `silences.rs`.
//!
//! Used by all of `clients/`, and by `figures.rs`.
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use load::slots::ranges;
use placement::Slot;
use resp::Value;

use super::load::Desk;
use super::silences::Silence;
use crate::{Client, Rng};

/// Timeout for a reply. A primary whose backup dies answers after about a lease.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Time over which a command that was surely not done is retried, and for which a patient client waits.
const PATIENCE: Duration = Duration::from_secs(30);
/// A request counts as hung after this long in calm time with neither a reply nor the end of its connection.
const HUNG_AFTER: Duration = Duration::from_secs(30);
/// Pause after an error or a refused connection.
const AGAIN_AFTER: Duration = Duration::from_millis(10);
/// Minimum interval between two reads of the slot map.
const REFRESH_EVERY: Duration = Duration::from_millis(200);
/// Time for which a node that did not answer is avoided, if there are others.
const SUSPECT_FOR: Duration = Duration::from_secs(2);

/// The outcome of a command, as far as the client can know it.
#[derive(Clone, PartialEq, Debug)]
pub enum Fate {
    Answered(Value),
    /// Every node that was asked replied that the command was not done.
    NotDone,
    /// The command was sent, and no reply arrived.
    Unknown,
}

#[derive(Debug)]
pub struct Courier {
    desk: Desk,
    rng: Rng,
    /// The node at which each slot was last found.
    places: Vec<Option<SocketAddr>>,
    lines: BTreeMap<SocketAddr, Client>,
    /// Nodes that did not answer, with the time of the failure.
    suspects: BTreeMap<SocketAddr, Instant>,
    refreshed: Option<Instant>,
    connect_within: Duration,
    answer_within: Duration,
    retry_for: Duration,
}

/// A command of a pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    pub slot: Slot,
    pub words: Vec<Vec<u8>>,
}

impl Command {
    pub fn new(slot: Slot, words: &[&[u8]]) -> Command {
        Command { slot, words: words.iter().map(|word| word.to_vec()).collect() }
    }
}

impl Courier {
    pub fn new(desk: &Desk, rng: Rng) -> Courier {
        Courier {
            desk: desk.clone(),
            rng,
            places: vec![None; usize::from(Slot::COUNT)],
            lines: BTreeMap::new(),
            suspects: BTreeMap::new(),
            refreshed: None,
            connect_within: ANSWER_WITHIN,
            answer_within: ANSWER_WITHIN,
            retry_for: PATIENCE,
        }
    }

    /// Makes the client wait long for a reply instead of asking again, and give up soon on
    /// connecting to a machine that is gone. So it measures the time until the reply.
    pub fn patient(self) -> Courier {
        Courier { connect_within: REFRESH_EVERY, answer_within: PATIENCE, ..self }
    }

    /// Limits retries: no command is sent again later than this after its first attempt.
    pub fn retrying_for(self, retry_for: Duration) -> Courier {
        Courier { retry_for, ..self }
    }

    /// Sends a command on `key`. It takes effect at most once: it is retried only if it was surely not done.
    pub fn send(&mut self, key: &str, words: &[&[u8]]) -> Fate {
        self.deliver(key, &label(words), &|line| line.send(words))
    }

    /// Like `send`, for a request that `write` puts on the connection itself; `label` names it in reports.
    pub fn deliver(
        &mut self,
        key: &str,
        label: &str,
        write: &dyn Fn(&mut Client) -> io::Result<()>,
    ) -> Fate {
        let slot = Slot::of(key.as_bytes());
        let until = Instant::now() + self.retry_for;
        let mut hops = 0;
        while Instant::now() < until {
            let Some(at) = self.place(slot) else {
                thread::sleep(AGAIN_AFTER);
                continue;
            };
            let Ok(line) = self.line(at) else {
                self.lose(at, "unreachable");
                thread::sleep(AGAIN_AFTER);
                continue;
            };
            let sent = Instant::now();
            if write(line).is_err() {
                self.lose(at, "closed");
                return Fate::Unknown;
            }
            let reply = match line.receive() {
                Ok(reply) => reply.value,
                Err(error) => {
                    self.give_up(at, &error, (label, 1, sent));
                    return Fate::Unknown;
                }
            };
            let Value::Error(text) = &reply else { return Fate::Answered(reply) };
            hops += 1;
            self.on_error(slot, &String::from_utf8_lossy(text), hops);
        }
        Fate::NotDone
    }

    /// Sends an idempotent command until it is answered.
    pub fn ask(&mut self, key: &str, words: &[&[u8]]) -> Option<Value> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Fate::Answered(reply) = self.send(key, words) {
                return Some(reply);
            }
        }
        None
    }

    /// Sends all commands to one node without waiting in between; returns the fate of each. None is
    /// retried: those answered with `MOVED` are not done.
    pub fn pipeline(&mut self, at: SocketAddr, commands: &[Command]) -> Vec<Fate> {
        let mut bytes = Vec::new();
        for command in commands {
            let words: Vec<&[u8]> = command.words.iter().map(Vec::as_slice).collect();
            resp::encode_command(&mut bytes, &words);
        }
        let Ok(line) = self.line(at) else {
            self.lose(at, "unreachable");
            return vec![Fate::NotDone; commands.len()];
        };
        let sent = Instant::now();
        if line.send_raw(&bytes).is_err() {
            self.lose(at, "closed");
            return vec![Fate::Unknown; commands.len()];
        }
        let (mut replies, mut failure) = (Vec::new(), None);
        while replies.len() < commands.len() && failure.is_none() {
            match line.receive() {
                Ok(reply) => replies.push(reply.value),
                Err(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure {
            self.give_up(at, &error, ("a pipeline", commands.len() - replies.len(), sent));
        }
        self.fates(commands, replies)
    }

    fn fates(&mut self, commands: &[Command], replies: Vec<Value>) -> Vec<Fate> {
        let (mut fates, mut first_error) = (Vec::new(), None);
        for (command, reply) in commands.iter().zip(replies) {
            if let Value::Error(text) = reply {
                self.places[command.slot.index()] = None;
                first_error.get_or_insert((command.slot, text));
                fates.push(Fate::NotDone);
            } else {
                fates.push(Fate::Answered(reply));
            }
        }
        // One error is enough to read the slot map again.
        if let Some((slot, text)) = first_error {
            self.on_error(slot, &String::from_utf8_lossy(&text), 1);
        }
        fates.resize(commands.len(), Fate::Unknown);
        fates
    }

    /// Returns the node that should serve a slot, or else any of those that answer.
    pub fn place(&mut self, slot: Slot) -> Option<SocketAddr> {
        if let Some(at) = self.places[slot.index()] {
            return Some(at);
        }
        let all = self.desk.town.addresses();
        let (suspects, sound): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|at| self.is_suspect(*at));
        let from = if sound.is_empty() { suspects } else { sound };
        if from.is_empty() { None } else { Some(from[self.rng.index(from.len())]) }
    }

    fn is_suspect(&self, at: SocketAddr) -> bool {
        self.suspects.get(&at).is_some_and(|since| since.elapsed() < SUSPECT_FOR)
    }

    /// Returns a connection that the other end has not closed; opens one if necessary.
    fn line(&mut self, at: SocketAddr) -> io::Result<&mut Client> {
        if self.lines.get(&at).is_some_and(|line| !line.is_open()) {
            self.lines.remove(&at);
        }
        match self.lines.entry(at) {
            std::collections::btree_map::Entry::Occupied(line) => Ok(line.into_mut()),
            std::collections::btree_map::Entry::Vacant(place) => Ok(
                place.insert(Client::connect_within(self.connect_within, at, self.answer_within)?)
            ),
        }
    }

    /// Ends the wait for a reply. A connection that is silent but open remains watched.
    fn give_up(
        &mut self,
        at: SocketAddr,
        error: &io::Error,
        (request, replies_due, sent): (&str, usize, Instant),
    ) {
        let is_silent = is_timeout(error);
        if let Some(line) = self.lines.remove(&at).filter(|_| is_silent) {
            let request = request.to_owned();
            let deadline = HUNG_AFTER;
            let silence = Silence { line, at, replies_due, request, sent, deadline };
            self.desk.silences.watch(silence);
        }
        self.lose(at, if is_silent { "timeout" } else { "closed" });
    }

    /// Drops the connection to a node, and avoids the node for a while.
    fn lose(&mut self, at: SocketAddr, why: &str) {
        self.desk.book.error(why);
        self.lines.remove(&at);
        self.suspects.insert(at, Instant::now());
        for place in &mut self.places {
            place.take_if(|place| *place == at);
        }
    }

    fn on_error(&mut self, slot: Slot, text: &str, hops: u32) {
        let words: Vec<&str> = text.split(' ').collect();
        let target = words.get(2).and_then(|at| at.parse::<SocketAddr>().ok());
        let (Some(&"MOVED"), Some(at)) = (words.first(), target) else {
            self.desk.book.error(text);
            self.places[slot.index()] = None;
            thread::sleep(AGAIN_AFTER);
            return;
        };
        if self.is_suspect(at) {
            self.places[slot.index()] = None; // Other nodes will soon know the new primary.
            thread::sleep(AGAIN_AFTER);
            return;
        }
        self.places[slot.index()] = Some(at);
        if hops > 3 {
            thread::sleep(AGAIN_AFTER); // Two nodes disagree for now.
        }
        if self.refreshed.is_none_or(|then| then.elapsed() > REFRESH_EVERY) {
            self.refreshed = Some(Instant::now());
            self.refresh(at);
        }
    }

    /// Reads the whole slot map, as clients do after a `MOVED`.
    fn refresh(&mut self, at: SocketAddr) {
        let Ok(line) = self.line(at) else { return };
        let asked = line.send(&["CLUSTER", "SLOTS"]).and_then(|()| line.receive());
        match asked {
            Ok(answer) => {
                for (first, last, at) in ranges(&answer.value) {
                    self.places[first..=last].fill(Some(at));
                }
            }
            Err(_) => drop(self.lines.remove(&at)),
        }
    }
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Returns the command and its key.
fn label(words: &[&[u8]]) -> String {
    let words = words.iter().take(2).map(|word| String::from_utf8_lossy(word));
    words.collect::<Vec<_>>().join(" ")
}

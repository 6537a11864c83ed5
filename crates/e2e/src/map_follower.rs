//! A client that keeps the map of the cluster from pushes alone: what docs/protocol.md asks of such a client, and no
//! more. It reads the whole map once, at its start.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

use resp::Value;

use crate::client::Client;
use crate::server::Server;

const SLOTS: usize = 16_384;

pub struct MapFollower {
    client: Client,
    epoch: u64,
    history: String,
    /// Address and id of each node, by its name.
    nodes: BTreeMap<String, String>,
    /// For every slot the line of its bucket, without the first word.
    slots: Vec<String>,
    /// Texts of pushes that came while a reply was awaited.
    waiting: VecDeque<String>,
    /// Number of times it has asked for the changes since an epoch, because it had missed a push.
    pub gaps: usize,
    /// Number of pushes that it has applied.
    pub steps: usize,
}

impl MapFollower {
    /// Watches the map at this node.
    pub fn at(node: &Server) -> MapFollower {
        let mut client = node.client();
        client.run("HELLO 3");
        let mut follower = MapFollower {
            client,
            epoch: 0,
            history: String::new(),
            nodes: BTreeMap::new(),
            slots: vec![String::new(); SLOTS],
            waiting: VecDeque::new(),
            gaps: 0,
            steps: 0,
        };
        follower.watch();
        let whole = follower.ask("CLUSTER HASHMASKS SINCE 0");
        follower.apply(&whole);
        follower
    }

    /// Subscribes to the changes. Returns the epoch of the map.
    pub fn watch(&mut self) -> i64 {
        let answer = self.reply_to("CLUSTER WATCH");
        let Value::Integer(epoch) = answer else { panic!("no epoch: {answer}") };
        epoch
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Follows the pushes until none comes for a while.
    pub fn follow(&mut self, quiet: Duration) {
        while let Some(text) = self.next_push(quiet) {
            self.take(&text);
        }
    }

    /// Loses the pushes that come until none comes for a while.
    pub fn lose(&mut self, quiet: Duration) {
        while self.next_push(quiet).is_some() {}
    }

    /// Returns its buckets: hashmask, first and last slot, epoch and names of the holders.
    pub fn buckets(&self) -> BTreeSet<String> {
        self.slots.iter().cloned().collect()
    }

    /// Returns the id and the address of each node.
    pub fn nodes(&self) -> BTreeSet<String> {
        self.nodes.values().cloned().collect()
    }

    fn take(&mut self, text: &str) {
        let (epoch, after) = epochs(text);
        if epoch <= self.epoch {
            return; // The reply to an earlier question had it already.
        }
        if after <= self.epoch {
            self.steps += 1;
            return self.apply(text);
        }
        self.gaps += 1;
        let missed = self.ask(&format!("CLUSTER HASHMASKS SINCE {} {}", self.epoch, self.history));
        self.apply(&missed);
        self.take(text);
    }

    fn apply(&mut self, text: &str) {
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["gone", name] => drop(self.nodes.remove(*name)),
                ["node", name, host, port, id] => {
                    self.nodes.insert((*name).to_owned(), format!("{id} {host}:{port}"));
                }
                ["bucket", bucket @ ..] => {
                    let slot = |at: usize| bucket[at].parse::<usize>().expect("a slot");
                    self.slots[slot(1)..=slot(2)].fill(bucket.join(" "));
                }
                _ => panic!("{line:?} in {text}"),
            }
        }
        self.epoch = epochs(text).0;
        let first = text.lines().next().expect("a first line");
        first.rsplit(' ').next().expect("a word").clone_into(&mut self.history);
    }

    fn ask(&mut self, command: &str) -> String {
        let answer = self.reply_to(command);
        String::from_utf8_lossy(answer.text().unwrap_or_else(|| panic!("{command}: {answer}")))
            .into_owned()
    }

    /// Returns the reply to a command; pushes that come before it are kept.
    fn reply_to(&mut self, command: &str) -> Value {
        let words: Vec<&str> = command.split(' ').collect();
        self.client.send(&words).expect("the node reads");
        loop {
            let answer = self.client.receive().expect("the node answers").value;
            match push_text(&answer) {
                Some(text) => self.waiting.push_back(text),
                None => return answer,
            }
        }
    }

    fn next_push(&mut self, quiet: Duration) -> Option<String> {
        if let Some(text) = self.waiting.pop_front() {
            return Some(text);
        }
        let answer: io::Result<_> = self.client.receive_within(quiet);
        let answer = answer.expect("the connection stands")?;
        Some(push_text(&answer.value).unwrap_or_else(|| panic!("no push: {}", answer.value)))
    }
}

/// Returns the text of a push about the map.
fn push_text(answer: &Value) -> Option<String> {
    let Value::Push(parts) = answer else { return None };
    let [_, channel, text] = parts.as_slice() else { panic!("{answer}") };
    assert_eq!(channel.text(), Some(b"__cluster__:map".as_slice()));
    Some(String::from_utf8_lossy(text.text().expect("a text")).into_owned())
}

/// Returns the epoch of a text, and the one that it follows on.
fn epochs(text: &str) -> (u64, u64) {
    let mut words = text.split_whitespace().map(str::parse::<u64>);
    match (words.next(), words.next()) {
        (Some(Ok(epoch)), Some(Ok(after))) => (epoch, after),
        _ => panic!("no epochs: {text}"),
    }
}

//! A small cluster client, like those of the libraries: it knows which node serves a slot, follows `MOVED`,
//! and retries when a node is gone. Used by the writers of `load.rs`.

use std::collections::BTreeMap;
use std::io;
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use cluster::status::Status;
use placement::Slot;
use resp::Value;

use super::herd::Reachable;
use crate::status_cmd;
use crate::talk::{NodeArgs, Talk};

/// Time limit of a command; without an answer by then it is an error for the user.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// Timeout of one request; after it the client asks any reachable node for the owners of the slots.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Route {
    seeds: Reachable,
    /// Address of the node that serves each slot.
    owners: Vec<Option<String>>,
    connections: BTreeMap<String, Talk>,
}

/// Meaning of a node's answer for the client.
enum Answer {
    Done(Value),
    /// Another node serves the slot.
    Moved(String),
    /// Retry later.
    Later(String),
}

impl Route {
    pub(super) fn new(seeds: Reachable) -> Route {
        let owners = vec![None; usize::from(Slot::COUNT)];
        let mut route = Route { seeds, owners, connections: BTreeMap::new() };
        route.refresh();
        route
    }

    /// Runs a command on the node that serves its key. Retries until it is answered or time is up, so it may
    /// run twice: only for idempotent commands.
    pub(super) fn run(&mut self, key: &str, words: &[&str]) -> Result<Value, String> {
        let slot = Slot::of(key.as_bytes()).index();
        let begun = Instant::now();
        loop {
            let trouble = match self.attempt(slot, words) {
                Ok(Answer::Done(Value::Error(text))) => {
                    return Err(String::from_utf8_lossy(&text).into_owned());
                }
                Ok(Answer::Done(value)) => return Ok(value),
                Ok(Answer::Moved(address)) => {
                    let trouble = format!("redirected to {address} repeatedly");
                    self.owners[slot] = Some(address);
                    trouble
                }
                Ok(Answer::Later(text)) => {
                    thread::sleep(PAUSE);
                    text
                }
                Err(error) => {
                    thread::sleep(PAUSE);
                    self.refresh();
                    error.to_string()
                }
            };
            if begun.elapsed() > GIVE_UP_AFTER {
                return Err(trouble);
            }
        }
    }

    fn attempt(&mut self, slot: usize, words: &[&str]) -> io::Result<Answer> {
        let nobody = || io::Error::other("no node is known to serve it");
        let address = self.owners[slot].clone().ok_or_else(nobody)?;
        let mut talk = match self.connections.remove(&address) {
            Some(talk) => talk,
            None => {
                let args = NodeArgs::own(address.clone()).within(PATIENCE);
                Talk::to(&args).map_err(|_| io::Error::other(format!("{address} is gone")))?
            }
        };
        // A connection that failed is not kept.
        let value = talk.exchange(words)?;
        self.connections.insert(address, talk);
        Ok(answer(value))
    }

    /// Asks any reachable node for the owners of all slots.
    fn refresh(&mut self) {
        let seeds = self.seeds.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let status = seeds.iter().find_map(|seed| status_cmd::of_node(seed).ok());
        if let Some(status) = status {
            self.owners = owners(&status);
            self.connections
                .retain(|address, _| self.owners.iter().flatten().any(|it| it == address));
        }
    }
}

fn answer(value: Value) -> Answer {
    let Value::Error(text) = &value else { return Answer::Done(value) };
    let text = String::from_utf8_lossy(text).into_owned();
    let mut words = text.split(' ');
    match (words.next(), words.nth(1)) {
        (Some("MOVED"), Some(address)) => Answer::Moved(address.to_owned()),
        (Some("CLUSTERDOWN" | "TRYAGAIN" | "LOADING" | "MASTERDOWN"), _) => Answer::Later(text),
        _ => Answer::Done(value),
    }
}

fn owners(status: &Status) -> Vec<Option<String>> {
    let addresses: BTreeMap<&str, String> = status
        .members
        .iter()
        .map(|member| (member.name.as_str(), status_cmd::address(member)))
        .collect();
    let mut owners = vec![None; usize::from(Slot::COUNT)];
    for bucket in &status.buckets {
        let primary = bucket.holders.first().and_then(|name| addresses.get(name.as_str()));
        for slot in bucket.first_slot..=bucket.last_slot {
            owners[usize::from(slot)] = primary.cloned();
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(text: &str) -> Answer {
        answer(Value::Error(text.as_bytes().to_vec()))
    }

    #[test]
    fn moved_names_the_node_and_down_means_later() {
        assert!(
            matches!(describe("MOVED 7 127.0.0.1:7"), Answer::Moved(at) if at == "127.0.0.1:7")
        );
        assert!(matches!(describe("CLUSTERDOWN Hash slot not served"), Answer::Later(_)));
        assert!(matches!(describe("ERR value is not an integer"), Answer::Done(Value::Error(_))));
        assert!(matches!(answer(Value::Integer(1)), Answer::Done(Value::Integer(1))));
    }
}

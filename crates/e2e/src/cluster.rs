//! A private cluster for one test: several of our nodes as processes. The test starts them, stops
//! them gracefully, or kills them.
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::server::Server;
use crate::wait::wait_until;

/// Time limit for balancing, on a busy machine.
const EVEN_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Cluster {
    pub nodes: Vec<Server>,
    flags: Vec<String>,
    backups: usize,
    /// Parent of the nodes' data directories, if they have any.
    home: Option<PathBuf>,
    started: usize,
}

/// A member's share of the copies, as a node reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    pub name: String,
    pub primaries: u64,
    pub backups: u64,
}

impl Cluster {
    /// Starts `count` nodes with these flags, and waits until they are balanced.
    pub fn of(count: usize, flags: &[&str]) -> Cluster {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let backups = flags.iter().skip_while(|flag| *flag != "--backups").nth(1);
        let backups = backups.map_or(1, |count| count.parse().expect("a number of backups"));
        let nodes = Vec::new();
        let mut cluster = Cluster { nodes, flags, backups, home: None, started: 0 };
        cluster.grow_to(count);
        cluster
    }

    /// Like `of`, each node with a data directory.
    pub fn with_directories(count: usize, flags: &[&str]) -> Cluster {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (id, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = std::env::temp_dir().join(format!("opencluster-e2e-home-{id}-{number}"));
        let mut cluster = Cluster::of(0, flags);
        cluster.home = Some(home);
        cluster.grow_to(count);
        cluster
    }

    fn grow_to(&mut self, count: usize) {
        for _ in 0..count {
            self.join();
        }
        if count > 0 {
            self.wait_until_even();
            self.wait_until_all_vote();
        }
    }

    /// Removes a node that is already ending by itself, and waits until the others are balanced.
    pub fn part_with(&mut self, index: usize) -> Server {
        let mut node = self.nodes.remove(index);
        node.wait_until_it_ends();
        self.wait_until_even();
        node
    }

    /// Starts one more node. It accepts clients when this returns; balancing goes on.
    pub fn join(&mut self) -> &Server {
        let mut flags = self.flags.clone();
        self.started += 1;
        if let Some(home) = &self.home {
            let directory = home.join(self.started.to_string());
            flags.extend(["--data-dir".to_owned(), directory.display().to_string()]);
        }
        if let Some(first) = self.nodes.first() {
            flags.extend(["--join".to_owned(), format!("127.0.0.1:{}", first.port())]);
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.nodes.push(Server::node_with(&flags));
        self.nodes.last().expect("pushed a moment ago")
    }

    /// Asks a node to leave, and waits until it has left.
    pub fn leave(&mut self, index: usize) {
        self.nodes.remove(index).terminate();
    }

    /// Kills a node.
    pub fn kill(&mut self, index: usize) {
        drop(self.nodes.remove(index));
    }

    /// Returns the addresses of all nodes, in the form that cluster clients take.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("redis://127.0.0.1:{}/", node.port())).collect()
    }

    /// Returns the members' shares according to the first node's status.
    pub fn shares(&self) -> Vec<Share> {
        let status = self.nodes[0].client().status();
        let members = status["members"].as_array().cloned().unwrap_or_default();
        let number = |member: &serde_json::Value, name: &str| member[name].as_u64().unwrap_or(0);
        let share = |member: &serde_json::Value| Share {
            name: member["name"].as_str().unwrap_or_default().to_owned(),
            primaries: number(member, "primaries"),
            backups: number(member, "backups"),
        };
        members.iter().map(share).collect()
    }

    /// Returns whether all nodes are members, all copies exist, and no member holds more than one
    /// copy or one primary more than another.
    pub fn is_even(&self) -> bool {
        let shares = self.shares();
        let spread = |of: &dyn Fn(&Share) -> u64| {
            let counts = shares.iter().map(of);
            counts.clone().max().unwrap_or(0) - counts.min().unwrap_or(0)
        };
        let total: u64 = shares.iter().map(|share| share.primaries + share.backups).sum();
        let primaries: u64 = shares.iter().map(|share| share.primaries).sum();
        let copies = primaries * self.nodes.len().min(1 + self.backups) as u64;
        shares.len() == self.nodes.len()
            && total == copies
            && spread(&|share| share.primaries) <= 1
            && spread(&|share| share.primaries + share.backups) <= 1
    }

    /// Waits until as many members vote as should: a member that was killed before would be missed in another way.
    fn wait_until_all_vote(&self) {
        let expected = voters_of(self.nodes.len());
        wait_until("enough members vote", EVEN_WITHIN, || {
            let status = self.nodes[0].client().status();
            let members = status["members"].as_array().cloned().unwrap_or_default();
            members.iter().filter(|member| member["vote"] == "voter").count() == expected
        });
    }

    pub fn wait_until_even(&self) {
        let begun = Instant::now();
        while !self.is_even() {
            let shares = self.shares();
            assert!(begun.elapsed() < EVEN_WITHIN, "never even: {shares:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Returns the number of voters of a cluster with this many members.
pub fn voters_of(members: usize) -> usize {
    match members {
        0..=2 => members,
        3 | 4 => 3,
        _ => 5,
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.clear();
        if let Some(home) = &self.home {
            let _ = std::fs::remove_dir_all(home);
        }
    }
}

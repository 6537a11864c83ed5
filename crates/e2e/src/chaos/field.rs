//! The cluster under test: its nodes, on whichever ground they run (`ground.rs`), and the check that it is whole.
//! Faults hit only a whole cluster, so that they never take more than it promises to tolerate.
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::ground::{Ground, Node, Plan};
use super::town::{Resident, Town};
use crate::Rng;

/// Time limit for a cluster to become whole again.
const WHOLE_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Interval between messages about what is still missing.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
const COPIES: usize = 2;

/// The kinds of nodes in a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    /// All alike: reached directly, with nothing on disk.
    Plain,
    /// Some behind a relay, some with a data directory.
    Mixed,
}

#[derive(Debug)]
pub struct Field {
    pub nodes: Vec<Node>,
    pub town: Town,
    ground: Ground,
    mix: Mix,
    /// Directory of the nodes' logs and saved data.
    dir: PathBuf,
    rng: Rng,
    started: u16,
}

impl Field {
    /// Starts a cluster of `count` nodes with these settings, and waits until it is whole.
    pub fn of(
        ground: Ground,
        mix: Mix,
        count: usize,
        settings: &[(&str, &str)],
        rng: Rng,
    ) -> io::Result<Field> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count_of_fields = COUNT.fetch_add(1, Ordering::Relaxed);
        let own = format!("opencluster-chaos-{}-{count_of_fields}", std::process::id());
        let dir = std::env::temp_dir().join(own);
        let (nodes, town) = (Vec::new(), Town::default());
        let mut field = Field { nodes, town, ground, mix, dir, rng, started: 0 };
        for _ in 0..count {
            field.join()?;
        }
        for (name, value) in settings {
            let mut client = field.nodes[0].client()?;
            client.send(&["CLUSTER", "SETTINGS", name, value])?;
            client.receive()?;
        }
        field.wait_until_whole()?;
        Ok(field)
    }

    /// Starts one more node.
    pub fn join(&mut self) -> io::Result<()> {
        self.started += 1;
        // On loopback, only a relay can cut a node off.
        let directly_of_three = match self.ground {
            Ground::Namespaces => 2,
            Ground::Loopback => 1,
        };
        let is_mixed = self.mix == Mix::Mixed;
        let plan = Plan {
            number: self.started,
            is_relayed: self.rng.below(3) >= directly_of_three && is_mixed,
            keeps_data: self.rng.one_in(2) && is_mixed,
            flags: Vec::new(),
        };
        let dir = self.dir.join(format!("n{}", plan.number));
        self.start(plan, dir)
    }

    pub fn start(&mut self, plan: Plan, dir: PathBuf) -> io::Result<()> {
        let join: Vec<SocketAddr> = self.nodes.iter().map(|node| node.address).take(3).collect();
        self.nodes.push(self.ground.start(plan, &join, dir)?);
        self.tell();
        Ok(())
    }

    /// Removes a node from the cluster under test, and returns it.
    pub fn take(&mut self, index: usize) -> Node {
        let node = self.nodes.remove(index);
        self.tell();
        node
    }

    /// Updates the nodes that clients may use.
    fn tell(&self) {
        let resident = |node: &Node| Resident { address: node.address, started: node.started };
        self.town.set(self.nodes.iter().map(resident).collect());
    }

    /// Returns the position in `nodes` of the node with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name() == name)
    }

    /// Returns the names of the holders of some bucket, drawn by `chance`.
    pub fn holders(&self, chance: u64) -> Vec<String> {
        let status = self.nodes.first().and_then(status).unwrap_or_default();
        let buckets = status["buckets"].as_array().map_or(&[][..], Vec::as_slice);
        if buckets.is_empty() {
            return Vec::new();
        }
        let index = usize::try_from(chance % buckets.len() as u64).expect("below a length");
        let holders = buckets[index]["holders"].as_array().cloned().unwrap_or_default();
        holders.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    pub fn ground(&self) -> Ground {
        self.ground
    }

    pub fn others(&self, index: usize) -> Vec<&Node> {
        let all = self.nodes.iter().enumerate();
        all.filter(|(place, _)| *place != index).map(|(_, node)| node).collect()
    }

    /// Waits until all nodes agree that all are members and that every bucket has all its copies.
    pub fn wait_until_whole(&mut self) -> io::Result<Duration> {
        let begun = Instant::now();
        let mut told = begun;
        while !self.is_whole() {
            if told.elapsed() > PROGRESS_EVERY {
                told = Instant::now();
                println!("{:>9} cluster is not whole yet: {}", "", self.describe());
            }
            for node in &mut self.nodes {
                if node.has_ended() {
                    let (name, log) = (node.name(), node.log());
                    let text = format!("{name} ended unexpectedly; its log:\n{log}");
                    return Err(io::Error::other(text));
                }
            }
            if begun.elapsed() > WHOLE_WITHIN {
                return Err(io::Error::other(format!(
                    "the cluster did not become whole in time: {}",
                    self.describe()
                )));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(begun.elapsed())
    }

    fn is_whole(&self) -> bool {
        let all: Option<Vec<Json>> = self.nodes.iter().map(status).collect();
        let Some(all) = all else { return false };
        let agree = all.windows(2).all(|two| two[0]["epoch"] == two[1]["epoch"]);
        agree && all.first().is_some_and(|status| is_whole(status, self.nodes.len()))
    }

    /// Describes the members as each node sees them, for a message.
    fn describe(&self) -> String {
        let told = self.nodes.iter().map(|node| {
            let Some(status) = status(node) else { return format!("{}: no answer", node.name()) };
            let members = status["members"].as_array().cloned().unwrap_or_default();
            let member = |member: &Json| {
                let (name, vote) = (&member["name"], &member["vote"]);
                format!("{name} {}+{} {vote}", member["primaries"], member["backups"])
            };
            let members: Vec<String> = members.iter().map(member).collect();
            let buckets = status["buckets"].as_array().cloned().unwrap_or_default();
            let copies = |count: usize| {
                let has =
                    |bucket: &&Json| bucket["holders"].as_array().map_or(0, Vec::len) == count;
                buckets.iter().filter(has).count()
            };
            format!(
                "{} of epoch {}, led by {}: {}; {} buckets lost, {} with one copy",
                node.name(),
                status["epoch"],
                status["leader"],
                members.join(", "),
                copies(0),
                copies(1)
            )
        });
        told.collect::<Vec<_>>().join("; ")
    }

    /// Returns the buckets that started again empty, as the nodes report. Their data is lost, and the loss reported.
    pub fn begun_again(&self) -> Vec<String> {
        let told = |node: &Node| {
            let changes = status(node).map(|status| status["changes"].clone());
            let changes = changes.and_then(|changes| changes.as_array().cloned());
            changes.unwrap_or_default().into_iter()
        };
        let what = |change: Json| change["what"].as_str().map(str::to_owned);
        let all = self.nodes.iter().flat_map(told).filter_map(what);
        let mut found: Vec<String> = all.filter(|what| what.ends_with(", empty")).collect();
        found.sort();
        found.dedup();
        found
    }

    /// Ends the cluster and deletes the logs of its nodes. Not to be called while they are needed.
    pub fn clear_away(self) {
        drop(self.nodes);
        let _ = std::fs::remove_dir_all(&self.dir);
    }

    /// Returns the directory of the nodes' logs.
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }
}

/// Returns a node's status, or None if it does not answer in time.
pub fn status(node: &Node) -> Option<Json> {
    let mut client = node.client().ok()?;
    client.send(&["CLUSTER", "STATUS"]).ok()?;
    let answer = client.receive().ok()?.value;
    let (resp::Value::Bulk(text) | resp::Value::Verbatim { text, .. }) = answer else {
        return None;
    };
    serde_json::from_slice(&text).ok()
}

fn is_whole(status: &Json, nodes: usize) -> bool {
    let members = status["members"].as_array().map_or(0, Vec::len);
    let has_all = |bucket: &Json| {
        bucket["holders"].as_array().is_some_and(|holders| holders.len() >= COPIES.min(nodes))
    };
    members == nodes && status["buckets"].as_array().is_some_and(|all| all.iter().all(has_all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_lacks_a_member_or_a_copy_is_not_whole() {
        let with = |members: usize, holders: &[&str]| {
            serde_json::json!({
                "members": vec![0; members],
                "buckets": [{"holders": ["a", "b"]}, {"holders": holders}],
            })
        };
        assert!(is_whole(&with(3, &["a", "c"]), 3));
        assert!(!is_whole(&with(2, &["a", "c"]), 3));
        assert!(!is_whole(&with(3, &["a"]), 3));
        assert!(!is_whole(&with(3, &[]), 3));
        assert!(!is_whole(&Json::Null, 3));
    }
}

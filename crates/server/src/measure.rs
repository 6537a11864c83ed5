//! A node and its client in one process, for counting instructions: `cargo xtask instructions` runs
//! `crates/opencluster/examples/instructions.rs` under callgrind, and that calls this.
//!
//! The node is a real one with one worker. As a member of three it has links to two nodes that do not exist: a
//! `Backup` reads the worker's frames to one of them and acknowledges them. Each batch takes the same steps
//! every time, so the counts of two runs agree.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cluster::map::{Boot, Change, ChangeOutcome, Endpoints, LogIndex, Map, Member, NodeId, Zone};
use cluster::replication::{Frame, Inbox};
use placement::{Hashmask, Mask, Slot};
use resp::encode_command;
use settings::{Settings, SidePort};

use crate::data::boottime;
use crate::data_plane::follow;
use crate::shared::Shared;
use crate::{Node, NodeOptions};

/// Number of keys that exist while commands are counted.
const KEYS: usize = 16_384;
const VALUE: [u8; 64] = [b'v'; 64];
/// The step from one key of a run to the next; coprime to [`KEYS`].
const STRIDE: usize = 7_919;
/// The longest wait for any byte. It does not affect the measurement.
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// The cluster around the measured node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeasuredCluster {
    Alone,
    /// Primary of a third of the buckets, each with one backup.
    OfThree,
}

/// The command that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Get,
    Set,
}

/// A node, one client of it, and the nodes beside it.
pub struct Bench {
    node: Node,
    client: TcpStream,
    others: Option<Others>,
    keys: Vec<Vec<u8>>,
    next_key: usize,
}

/// The two nodes beside the measured one.
struct Others {
    backup: Backup,
    /// Kept open as long as the bench; no write goes there.
    _idle: Backup,
}

/// The other end of a link.
struct Backup {
    stream: TcpStream,
    inbox: Inbox,
    unread: Vec<u8>,
}

impl Bench {
    /// Starts a node and writes all keys once.
    pub fn start(place: MeasuredCluster) -> io::Result<Bench> {
        let settings = Settings {
            port: 0,
            http_port: SidePort::Off,
            peer_port: SidePort::Off,
            io_threads: 1,
            ..Settings::default()
        };
        let memory = Arc::new(AtomicU64::new(0));
        let node = Node::start(NodeOptions { settings, memory, config_file: None });
        let node = node.map_err(|error| io::Error::other(format!("{error:?}")))?;
        let others = match place {
            MeasuredCluster::Alone => None,
            MeasuredCluster::OfThree => Some(join_three(node.shared())?),
        };
        let client = TcpStream::connect(node.client_addr())?;
        client.set_nodelay(true)?;
        client.set_read_timeout(Some(PATIENCE))?;
        let keys = keys_served_by(node.shared());
        let mut bench = Bench { node, client, others, keys, next_key: 0 };
        bench.run(Operation::Set, 64, KEYS)?;
        Ok(bench)
    }

    /// Runs `count` commands, `pipeline` at a time.
    pub fn run(&mut self, operation: Operation, pipeline: usize, count: usize) -> io::Result<()> {
        for _ in 0..count.div_ceil(pipeline) {
            self.run_batch(operation, pipeline)?;
        }
        Ok(())
    }

    fn run_batch(&mut self, operation: Operation, pipeline: usize) -> io::Result<()> {
        let (mut requests, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..pipeline {
            let key = self.keys[self.next_key].as_slice();
            self.next_key = (self.next_key + STRIDE) % self.keys.len();
            match operation {
                Operation::Get => {
                    encode_command(&mut requests, &[b"GET".as_slice(), key]);
                    write!(expected, "${}\r\n", VALUE.len())?;
                    expected.extend_from_slice(&VALUE);
                    expected.extend_from_slice(b"\r\n");
                }
                Operation::Set => {
                    encode_command(&mut requests, &[b"SET".as_slice(), key, &VALUE]);
                    expected.extend_from_slice(b"+OK\r\n");
                }
            }
        }
        self.client.write_all(&requests)?;
        if let Some(others) = self.others.as_mut().filter(|_| operation == Operation::Set) {
            others.backup.acknowledge(pipeline)?;
        }
        let mut replies = vec![0; expected.len()];
        self.client.read_exact(&mut replies)?;
        if replies != expected {
            let replies = String::from_utf8_lossy(&replies).into_owned();
            return Err(io::Error::other(format!("unexpected replies: {replies}")));
        }
        Ok(())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.node.shutdown();
        self.node.wait();
    }
}

impl Backup {
    /// Reads until `writes` more writes have arrived, then acknowledges all of them at once.
    fn acknowledge(&mut self, writes: usize) -> io::Result<()> {
        let mut missing = writes;
        let mut buffer = [0; 16 * 1024];
        loop {
            let mut at = 0;
            while let Some((_, frame, length)) = self.inbox.peek(&self.unread[at..]).map_err(bad)? {
                let is_write = usize::from(matches!(frame, Frame::Effects { .. }));
                missing = missing.checked_sub(is_write).ok_or_else(too_many)?;
                self.inbox.done();
                at += length;
            }
            self.unread.drain(..at);
            if missing == 0 {
                break;
            }
            match self.stream.read(&mut buffer)? {
                0 => return Err(io::Error::other("the node closed the link")),
                count => self.unread.extend_from_slice(&buffer[..count]),
            }
        }
        let mut answer = Vec::new();
        if let Some(ack) = self.inbox.ack() {
            ack.write(&mut answer);
        }
        self.stream.write_all(&answer)
    }
}

fn too_many() -> io::Error {
    io::Error::other("the node sent more writes than it was asked for")
}

fn bad(error: cluster::replication::BadFrame) -> io::Error {
    io::Error::other(format!("{error:?}"))
}

/// Makes the node a member of three, with links to the two others.
fn join_three(shared: &Shared) -> io::Result<Others> {
    let map = map_of_three(&shared.map());
    follow(shared, &map);
    shared.data.lease.set(boottime::now() + LEASE);
    let served = map.buckets().find(|bucket| bucket.primary() == Some(shared.data.me));
    let backs_up = |member: &Member| served.is_some_and(|bucket| bucket.is_held_by(member.id));
    let mut others = map.members().iter().filter(|member| member.id != shared.data.me);
    let (Some(one), Some(other)) = (others.next(), others.next()) else {
        return Err(io::Error::other("the map has fewer than three members"));
    };
    let (backup, idle) = if backs_up(one) { (one, other) } else { (other, one) };
    Ok(Others { backup: connect(shared, backup)?, _idle: connect(shared, idle)? })
}

fn connect(shared: &Shared, member: &Member) -> io::Result<Backup> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address: SocketAddr = listener.local_addr()?;
    let to_it = TcpStream::connect(address)?;
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let connected = shared.data.outgoing(member.peer(), to_it, 1);
    connected.map_err(|_| io::Error::other("the node refused a link to a member"))?;
    Ok(Backup { stream, inbox: Inbox::default(), unread: Vec::new() })
}

/// Returns the map after two nodes have joined: every third bucket stays, with the second node as its backup.
fn map_of_three(alone: &Map) -> Arc<Map> {
    let founder = alone.members()[0].clone();
    let other = |number: u64| Member {
        id: NodeId(founder.id.0.wrapping_add(number)),
        boot: Boot(number),
        name: format!("absent-{number}"),
        weight: founder.weight,
        zone: Zone::default(),
        at: Endpoints::default(),
    };
    let (second, third) = (other(1), other(2));
    let mut map = Map::found(founder, Mask::M00FF, alone.settings().clone());
    let mut index = LogIndex::FIRST;
    let mut apply = |map: &mut Map, change: &Change| {
        index = LogIndex(index.0 + 1);
        assert_eq!(map.apply(index, change), ChangeOutcome::Applied, "{change:?} fits the map");
    };
    apply(&mut map, &Change::Join(second.clone()));
    apply(&mut map, &Change::Join(third.clone()));
    for (place, bucket) in Hashmask::all(Mask::M00FF).enumerate() {
        let node = if place % 3 == 2 { third.id } else { second.id };
        let expected = map.bucket_at(place).epoch;
        apply(&mut map, &Change::AddBackup { bucket, node, expected });
        if place % 3 != 0 {
            let expected = map.bucket_at(place).epoch;
            apply(&mut map, &Change::Promote { bucket, node, expected });
        }
    }
    Arc::new(map)
}

fn keys_served_by(shared: &Shared) -> Vec<Vec<u8>> {
    let map = shared.map();
    let is_served = |key: &Vec<u8>| map.bucket_of(Slot::of(key)).primary() == Some(shared.data.me);
    let keys = (0_u64..).map(|number| format!("key:{number:012}").into_bytes());
    keys.filter(is_served).take(KEYS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_answers_alone_and_as_a_member_of_three() {
        for place in [MeasuredCluster::Alone, MeasuredCluster::OfThree] {
            let mut bench = Bench::start(place).expect("a node starts and takes writes");
            for operation in [Operation::Get, Operation::Set] {
                bench.run(operation, 16, 64).expect("expected replies");
                bench.run(operation, 1, 4).expect("expected replies");
            }
        }
    }

    #[test]
    fn a_third_of_the_buckets_stays_with_one_backup_each() {
        let mut bench = Bench::start(MeasuredCluster::OfThree).expect("a node starts");
        let map = bench.node.shared().map();
        let me = bench.node.shared().data.me;
        let mine: Vec<_> = map.buckets().filter(|bucket| bucket.primary() == Some(me)).collect();
        assert_eq!(mine.len(), 86);
        assert!(mine.iter().all(|bucket| bucket.backups().len() == 1));
        bench.run(Operation::Set, 64, 64).expect("the backup acknowledges");
    }
}

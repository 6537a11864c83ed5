//! The topology commands for clients: CLUSTER SLOTS, SHARDS, NODES, INFO, MYID. The replies of the first three
//! depend only on the map, so they are written once for each map and protocol, as is HASHMASKS (`ours.rs`).
//! Neighbouring slots with the same holders are one range in them.
//!
//! Every node is primary of some buckets and backup of others, but clients know only masters and replicas: so every
//! node is shown as a master. SLOTS, which clients that read from backups use, begins with one slot of each primary
//! alone, because some clients (redis-py) keep a node in the role in which it first occurs.

use core::fmt::Write as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use cluster::map::{Map, Member, NodeId};
use placement::{Slot, SplitMix64};
use resp::{Output, Protocol, Reply, SHARED_BYTES_MIN};

use super::View;
use crate::Error;
use crate::context::Context;

/// Cache of the replies, each written on first use. It belongs to one `View`, and so to one epoch of the map.
#[derive(Default)]
pub(super) struct Topology {
    slots: CachedReply,
    shards: CachedReply,
    nodes: CachedReply,
    pub(super) hashmasks: CachedReply,
}

/// One reply, in either protocol.
#[derive(Default)]
pub(super) struct CachedReply([OnceLock<Bytes>; 2]);

/// A reply, and the name for this node's own host in it.
struct Bytes {
    host: String,
    bytes: Arc<Vec<u8>>,
}

#[cfg(test)]
impl Topology {
    /// Returns how many replies are cached.
    pub(super) fn written(&self) -> usize {
        let all = [&self.slots, &self.shards, &self.nodes, &self.hashmasks];
        all.iter().flat_map(|written| &written.0).filter(|reply| reply.get().is_some()).count()
    }
}

pub(super) fn slots(context: &mut Context<'_>) -> Result<(), Error> {
    let host = own_host(context);
    tell(context, &host, |topology| &topology.slots, write_slots);
    Ok(())
}

pub(super) fn shards(context: &mut Context<'_>) -> Result<(), Error> {
    let host = own_host(context);
    tell(context, &host, |topology| &topology.shards, write_shards);
    Ok(())
}

pub(super) fn nodes(context: &mut Context<'_>) -> Result<(), Error> {
    let host = own_host(context);
    tell(context, &host, |topology| &topology.nodes, write_nodes);
    Ok(())
}

/// Returns the host at which clients reach this node. If the node has no advertised host and listens on all
/// addresses, each client gets the address it connected to.
fn own_host(context: &Context<'_>) -> String {
    match context.keys.env().cluster.myself() {
        Some(member) if !member.at.host.is_empty() => member.at.host.clone(),
        Some(_) | None => context.host.identity().host,
    }
}

pub(super) fn my_id(context: &mut Context<'_>) -> Result<(), Error> {
    let id = format_node_id(context.keys.env().cluster.me());
    context.reply.bulk(id.as_bytes());
    Ok(())
}

pub(super) fn info(context: &mut Context<'_>) -> Result<(), Error> {
    let map = context.keys.env().cluster.map();
    let lost: usize = map.lost().map(|(hashmask, _)| hashmask.slots().len()).sum();
    let state = if lost == 0 { "ok" } else { "fail" };
    let all = usize::from(Slot::COUNT);
    let served = all - lost;
    let (members, epoch) = (map.members().len(), map.epoch());
    let primaries = map.loads().iter().filter(|load| load.primaries > 0).count();
    let text = format!(
        "cluster_state:{state}\r\ncluster_slots_assigned:{all}\r\ncluster_slots_ok:{served}\r\n\
         cluster_slots_pfail:0\r\ncluster_slots_fail:{lost}\r\ncluster_known_nodes:{members}\r\n\
         cluster_size:{primaries}\r\ncluster_current_epoch:{epoch}\r\ncluster_my_epoch:{epoch}\r\n"
    );
    context.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// Returns a node's id as Redis writes ids: forty hexadecimal digits. The first sixteen are the id itself, the
/// others are derived from it.
pub fn format_node_id(node: NodeId) -> String {
    let mut rng = SplitMix64::new(node.0);
    let (second, third) = (rng.draw(), rng.draw() >> 32);
    format!("{:016x}{second:016x}{third:08x}", node.0)
}

/// A function that writes a reply; the second argument is this node's own host.
pub(super) type Write = fn(&View, &str, &mut Reply<'_>);

/// Replies from the cache, which is filled first if it is empty. The reply for the first host asked for is
/// cached; one for another host is written anew.
pub(super) fn tell(
    context: &mut Context<'_>,
    host: &str,
    written: fn(&Topology) -> &CachedReply,
    write: Write,
) {
    let view = &context.keys.env().cluster;
    let protocol = context.reply.protocol;
    let written = &written(&view.topology).0[usize::from(protocol == Protocol::Resp3)];
    let cached = written.get_or_init(|| {
        let mut output = Output::default();
        write(view, host, &mut Reply::new(&mut output, protocol));
        let bytes = output.chunks(output.mark()).flatten().copied().collect();
        Bytes { host: host.to_owned(), bytes: Arc::new(bytes) }
    });
    if cached.host != host {
        write(view, host, &mut context.reply);
    } else if cached.bytes.len() < SHARED_BYTES_MIN {
        context.reply.output().extend_from_slice(&cached.bytes);
    } else {
        context.reply.output().push_shared(&cached.bytes);
    }
}

/// A run of neighbouring slots with the same holders.
struct SlotRun<'m> {
    first: u16,
    last: u16,
    holders: &'m [NodeId],
}

/// Returns all runs that have a holder, in the order of their slots.
fn runs(map: &Map) -> Vec<SlotRun<'_>> {
    let mut runs: Vec<SlotRun<'_>> = Vec::new();
    for bucket in map.places_by_slot().map(|place| map.bucket_at(place)) {
        let (first, last) = (bucket.hashmask.slots().start, bucket.hashmask.slots().end - 1);
        let holders = bucket.holders.as_slice();
        match runs.last_mut().filter(|run| are_same(run.holders, holders)) {
            Some(run) => run.last = last,
            None => runs.push(SlotRun { first, last, holders }),
        }
    }
    runs.retain(|run| !run.holders.is_empty());
    runs
}

/// Returns whether two buckets have the same primary and the same backups, in any order.
fn are_same(holders: &[NodeId], others: &[NodeId]) -> bool {
    holders.first() == others.first()
        && holders.len() == others.len()
        && holders.iter().all(|holder| others.contains(holder))
}

fn write_slots(view: &View, host: &str, reply: &mut Reply<'_>) {
    let (heads, rest) = heads_and_rest(runs(view.map()));
    reply.array(heads.len() + rest.len());
    for run in heads.iter().chain(&rest) {
        let holders = useful_holders(view.map(), run.holders);
        reply.array(2 + holders.len());
        reply.integer(i64::from(run.first));
        reply.integer(i64::from(run.last));
        for member in holders {
            reply.array(4);
            reply.bulk(host_of(view, member, host).as_bytes());
            reply.integer(i64::from(member.at.client));
            reply.bulk(format_node_id(member.id).as_bytes());
            reply.map(0);
        }
    }
}

/// Returns the primary, and the backups that are not about to leave: a client keeps connections to all nodes in the
/// reply, and a connection to a leaving node would break while a command is in flight.
fn useful_holders<'m>(map: &'m Map, holders: &[NodeId]) -> Vec<&'m Member> {
    let member = |node: &NodeId| map.member(*node).expect("a holder is a member");
    let (primary, backups) = holders.split_at(1);
    let staying = backups.iter().map(member).filter(|member| member.weight > 0);
    primary.iter().map(member).chain(staying).collect()
}

/// Returns one slot of every primary alone (the heads), and then all other slots with their backups. There are no
/// heads if no slot has a backup, since the roles are unambiguous then.
fn heads_and_rest(runs: Vec<SlotRun<'_>>) -> (Vec<SlotRun<'_>>, Vec<SlotRun<'_>>) {
    if runs.iter().all(|run| run.holders.len() == 1) {
        return (Vec::new(), runs);
    }
    let mut known = BTreeSet::new();
    let mut heads = Vec::new();
    let mut rest = Vec::new();
    for mut run in runs {
        if known.insert(run.holders[0]) {
            heads.push(SlotRun { last: run.first, holders: &run.holders[..1], ..run });
            if run.first == run.last {
                continue;
            }
            run.first += 1;
        }
        rest.push(run);
    }
    (heads, rest)
}

fn write_shards(view: &View, host: &str, reply: &mut Reply<'_>) {
    let map = view.map();
    reply.array(map.members().len());
    let mut all = ranges(map);
    for member in map.members() {
        let ranges = all.remove(&member.id).unwrap_or_default();
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2 * ranges.len());
        for (first, last) in ranges {
            reply.integer(i64::from(first));
            reply.integer(i64::from(last));
        }
        reply.bulk(b"nodes");
        reply.array(1);
        write_shard_node(member, host_of(view, member, host), reply);
    }
}

fn write_shard_node(member: &Member, host: &str, reply: &mut Reply<'_>) {
    reply.map(7);
    reply.bulk(b"id");
    reply.bulk(format_node_id(member.id).as_bytes());
    reply.bulk(b"port");
    reply.integer(i64::from(member.at.client));
    for (name, value) in [("ip", host), ("endpoint", host), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"replication-offset");
    reply.integer(0);
    reply.bulk(b"health");
    reply.bulk(b"online");
}

fn write_nodes(view: &View, host: &str, reply: &mut Reply<'_>) {
    let map = view.map();
    let epoch = map.epoch();
    let mut text = String::new();
    let mut all = ranges(map);
    for member in map.members() {
        let id = format_node_id(member.id);
        let host = host_of(view, member, host);
        let (client, peer) = (member.at.client, member.at.peer);
        let flags = if member.id == view.me() { "myself,master" } else { "master" };
        let _ = write!(text, "{id} {host}:{client}@{peer} {flags} - 0 0 {epoch} connected");
        for (first, last) in all.remove(&member.id).unwrap_or_default() {
            let _ = match first == last {
                true => write!(text, " {first}"),
                false => write!(text, " {first}-{last}"),
            };
        }
        text.push('\n');
    }
    reply.verbatim("txt", text.as_bytes());
}

/// Returns the slots that each node is primary of, as runs: first and last.
fn ranges(map: &Map) -> BTreeMap<NodeId, Vec<(u16, u16)>> {
    let mut all: BTreeMap<NodeId, Vec<(u16, u16)>> = BTreeMap::new();
    for run in runs(map) {
        let ranges = all.entry(run.holders[0]).or_default();
        match ranges.last_mut().filter(|range| range.1 + 1 == run.first) {
            Some(range) => range.1 = run.last,
            None => ranges.push((run.first, run.last)),
        }
    }
    all
}

fn host_of<'a>(view: &View, member: &'a Member, mine: &'a str) -> &'a str {
    if member.id == view.me() { mine } else { &member.at.host }
}

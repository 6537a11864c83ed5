//! The topology commands for clients: CLUSTER SLOTS, SHARDS, NODES, INFO, MYID. The replies of the first three
//! depend only on the map (NODES also on the port), so they are written once for each map and protocol, as is
//! HASHMASKS (`ours.rs`). Neighbouring slots with the same holders are one range in them. `roles.rs` decides which
//! node is shown in which role.

use core::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use cluster::map::{Map, Member, NodeId};
use placement::Slot;
use resp::{Output, Protocol, Reply, SHARED_BYTES_MIN};

use super::View;
use super::roles::{format_node_id, format_replica_id, master_of, shards as shards_in, slot_rows};
use crate::Error;
use crate::context::Context;

/// Cache of the replies, each written on first use. It belongs to one `View`, and so to one epoch of the map.
#[derive(Default)]
pub(super) struct Topology {
    slots: CachedReply,
    shards: CachedReply,
    nodes: CachedReply,
    /// NODES on the replica port, where this node is a replica.
    nodes_of_replica: CachedReply,
    pub(super) hashmasks: CachedReply,
    /// The answer of `View::has_whole_shards`.
    pub(super) has_whole_shards: OnceLock<bool>,
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
        let nodes = [&self.nodes, &self.nodes_of_replica];
        let all = [&self.slots, &self.shards, &self.hashmasks].into_iter().chain(nodes);
        all.flat_map(|written| &written.0).filter(|reply| reply.get().is_some()).count()
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
    if context.session.is_on_replica_port() {
        tell(context, &host, |topology| &topology.nodes_of_replica, write_nodes_of_replica);
    } else {
        tell(context, &host, |topology| &topology.nodes, write_nodes);
    }
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
    let master = own_master(context);
    let view = &context.keys.env().cluster;
    let shown = ShownNode { node: view.me(), master: master.map(|master| master.id) };
    context.reply.bulk(shown.id().as_bytes());
    Ok(())
}

/// Returns the master of this node as a replica, on the replica port. None if it backs up nothing, or on the
/// ordinary port.
pub(crate) fn own_master(context: &Context<'_>) -> Option<Member> {
    if !context.session.is_on_replica_port() {
        return None;
    }
    let view = &context.keys.env().cluster;
    view.map().member(master_of(view.map(), view.me())?).cloned()
}

pub(super) fn info(context: &mut Context<'_>) -> Result<(), Error> {
    let map = context.keys.env().cluster.map();
    let lost: usize = map.lost().map(|(hashmask, _)| hashmask.slots().len()).sum();
    let is_failing = lost > 0 || context.host.cluster_health().fails_cluster();
    let state = if is_failing { "fail" } else { "ok" };
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

/// A node in one of its roles.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ShownNode {
    node: NodeId,
    /// None if it is shown as a master.
    master: Option<NodeId>,
}

impl ShownNode {
    fn master(node: NodeId) -> ShownNode {
        ShownNode { node, master: None }
    }

    fn replica(node: NodeId, master: NodeId) -> ShownNode {
        ShownNode { node, master: Some(master) }
    }

    fn id(self) -> String {
        self.master.map_or_else(
            || format_node_id(self.node),
            |master| format_replica_id(self.node, master),
        )
    }

    fn member(self, map: &Map) -> &Member {
        map.member(self.node).expect("a holder is a member")
    }

    fn port(self, map: &Map) -> u16 {
        let at = &self.member(map).at;
        if self.master.is_none() { at.client } else { at.replica }
    }
}

/// Returns the primary, then its replicas.
fn shown(primary: NodeId, replicas: &[NodeId]) -> impl Iterator<Item = ShownNode> {
    let replicas = replicas.iter().map(move |node| ShownNode::replica(*node, primary));
    core::iter::once(ShownNode::master(primary)).chain(replicas)
}

fn write_slots(view: &View, host: &str, reply: &mut Reply<'_>) {
    let rows = slot_rows(view.map());
    reply.array(rows.len());
    for row in rows {
        reply.array(3 + row.replicas.len());
        reply.integer(i64::from(row.first));
        reply.integer(i64::from(row.last));
        for node in shown(row.primary, &row.replicas) {
            reply.array(4);
            reply.bulk(host_of(view, node.member(view.map()), host).as_bytes());
            reply.integer(i64::from(node.port(view.map())));
            reply.bulk(node.id().as_bytes());
            reply.map(0);
        }
    }
}

fn write_shards(view: &View, host: &str, reply: &mut Reply<'_>) {
    let map = view.map();
    reply.array(map.members().len());
    let mut all = shards_in(map);
    for member in map.members() {
        let shard = all.remove(&member.id).unwrap_or_default();
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2 * shard.ranges.len());
        for (first, last) in shard.ranges {
            reply.integer(i64::from(first));
            reply.integer(i64::from(last));
        }
        reply.bulk(b"nodes");
        reply.array(1 + shard.replicas.len());
        for node in shown(member.id, &shard.replicas) {
            write_shard_node(map, node, host_of(view, node.member(map), host), reply);
        }
    }
}

fn write_shard_node(map: &Map, node: ShownNode, host: &str, reply: &mut Reply<'_>) {
    let role = if node.master.is_none() { "master" } else { "replica" };
    reply.map(7);
    reply.bulk(b"id");
    reply.bulk(node.id().as_bytes());
    reply.bulk(b"port");
    reply.integer(i64::from(node.port(map)));
    for (name, value) in [("ip", host), ("endpoint", host), ("role", role)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"replication-offset");
    reply.integer(0);
    reply.bulk(b"health");
    reply.bulk(b"online");
}

fn write_nodes(view: &View, host: &str, reply: &mut Reply<'_>) {
    write_nodes_as(view, ShownNode::master(view.me()), host, reply);
}

fn write_nodes_of_replica(view: &View, host: &str, reply: &mut Reply<'_>) {
    let myself = ShownNode { node: view.me(), master: master_of(view.map(), view.me()) };
    write_nodes_as(view, myself, host, reply);
}

/// Writes one line for each master and each replica, with `myself` at the node that replies.
fn write_nodes_as(view: &View, myself: ShownNode, host: &str, reply: &mut Reply<'_>) {
    let map = view.map();
    let mut text = String::new();
    let mut all = shards_in(map);
    for member in map.members() {
        let shard = all.remove(&member.id).unwrap_or_default();
        for node in shown(member.id, &shard.replicas) {
            write_node(view, node, node == myself, host, &mut text);
            for (first, last) in shard.ranges.iter().filter(|_| node.master.is_none()) {
                let _ = match first == last {
                    true => write!(text, " {first}"),
                    false => write!(text, " {first}-{last}"),
                };
            }
            text.push('\n');
        }
    }
    reply.verbatim("txt", text.as_bytes());
}

/// Writes a node's line without its slots.
fn write_node(view: &View, node: ShownNode, is_myself: bool, host: &str, text: &mut String) {
    let map = view.map();
    let member = node.member(map);
    let (id, host, port) = (node.id(), host_of(view, member, host), node.port(map));
    let (peer, epoch) = (member.at.peer, map.epoch());
    let myself = if is_myself { "myself," } else { "" };
    let (role, master) = match node.master {
        None => ("master", "-".to_owned()),
        Some(master) => ("slave", format_node_id(master)),
    };
    let _ = write!(text, "{id} {host}:{port}@{peer} {myself}{role} {master} 0 0 {epoch} connected");
}

fn host_of<'a>(view: &View, member: &'a Member, mine: &'a str) -> &'a str {
    if member.id == view.me() { mine } else { &member.at.host }
}

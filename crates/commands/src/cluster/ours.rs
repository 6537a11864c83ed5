//! Commands that Redis does not have: HASHMASKS and LOADLEVELS for clients that need details about the cluster, PEERS
//! for nodes that want to join it, STATUS for people.

use std::collections::BTreeSet;
use std::sync::Arc;

use cluster::map::{Bucket, Map, NodeId};
use cluster::status::name;
use placement::{Hashmask, Slot};
use resp::Reply;

use crate::Error;
use crate::context::Context;
use crate::host::LinkDirection;

use super::changes::hashmasks_since;
use super::topology::tell;
use super::{View, format_node_id};

/// Replies with, for each hashmask: its first and last slot, its epoch, its holders by name, the primary first,
/// and `pending` if this node is a backup and has not heard from the primary for a while. Buckets with the same
/// holders and epoch that make up a larger hashmask are that hashmask; with ALL, every bucket is listed. With SINCE,
/// replies with the changes since an epoch.
pub(super) fn hashmasks(context: &mut Context<'_>) -> Result<(), Error> {
    let is_option = |word: &[u8]| context.args.at(2).eq_ignore_ascii_case(word);
    let all = match context.args.len() {
        2 => false,
        3 if is_option(b"all") => true,
        4 | 5 if is_option(b"since") => return hashmasks_since(context),
        _ => return Err(Error::SYNTAX),
    };
    let pending = context.host.pending_primaries();
    if !all && pending.is_empty() {
        tell(
            context,
            "",
            |topology| &topology.hashmasks,
            |view, _, reply| {
                write_hashmasks(view, &joined(view.map()), &BTreeSet::new(), reply);
            },
        );
        return Ok(());
    }
    let view = &context.keys.env().cluster;
    let map = view.map();
    let lines = if all { map.buckets().map(HashmaskLine::of).collect() } else { joined(map) };
    write_hashmasks(view, &lines, &pending, &mut context.reply);
    Ok(())
}

/// One line of HASHMASKS.
struct HashmaskLine<'m> {
    hashmask: Hashmask,
    /// A bucket of the hashmask; the others have the same epoch and holders.
    bucket: &'m Bucket,
}

impl HashmaskLine<'_> {
    fn of(bucket: &Bucket) -> HashmaskLine<'_> {
        HashmaskLine { hashmask: bucket.hashmask, bucket }
    }

    fn is_like(&self, other: &HashmaskLine<'_>) -> bool {
        self.hashmask.mask() == other.hashmask.mask()
            && self.bucket.epoch == other.bucket.epoch
            && self.bucket.holders == other.bucket.holders
    }
}

/// Returns as few lines as say the same about every slot: where all parts of a larger hashmask are alike, they are
/// one line.
fn joined(map: &Map) -> Vec<HashmaskLine<'_>> {
    let mut lines: Vec<HashmaskLine<'_>> = Vec::new();
    for bucket in map.places_by_slot().map(|place| map.bucket_at(place)) {
        lines.push(HashmaskLine::of(bucket));
        while let Some((whole, parts)) = lines.last().and_then(whole_of) {
            let Some(first) = lines.len().checked_sub(parts) else { break };
            let starts_there = lines[first].hashmask.slots().start == whole.slots().start;
            if !starts_there || !lines[first..].iter().all(|line| line.is_like(&lines[first])) {
                break;
            }
            lines.truncate(first + 1);
            lines[first].hashmask = whole;
        }
    }
    lines.sort_unstable_by_key(|line| line.hashmask);
    lines
}

/// Returns the next larger hashmask that a line is the last part of, and the number of its parts.
fn whole_of(line: &HashmaskLine<'_>) -> Option<(Hashmask, usize)> {
    let mask = line.hashmask.mask().previous()?;
    let whole = Hashmask::of_slot(mask, Slot::new(line.hashmask.slots().start)?);
    let parts = mask.slots() / line.hashmask.mask().slots();
    (whole.slots().end == line.hashmask.slots().end).then_some((whole, usize::from(parts)))
}

fn write_hashmasks(
    view: &View,
    lines: &[HashmaskLine<'_>],
    pending: &BTreeSet<NodeId>,
    reply: &mut Reply<'_>,
) {
    reply.array(lines.len());
    for HashmaskLine { hashmask, bucket } in lines {
        let slots = hashmask.slots();
        let silent = bucket.primary().is_some_and(|primary| pending.contains(&primary));
        let is_pending = silent && bucket.backups().contains(&view.me());
        reply.array(if is_pending { 6 } else { 5 });
        reply.bulk(hashmask.to_string().as_bytes());
        reply.integer(i64::from(slots.start));
        reply.integer(i64::from(slots.end - 1));
        reply.integer(number(bucket.epoch.0));
        reply.array(bucket.holders.len());
        for holder in &bucket.holders {
            reply.bulk(name(view.map(), *holder).as_bytes());
        }
        if is_pending {
            reply.bulk(b"pending");
        }
    }
}

/// Replies with, for each member: the buckets it holds and should hold by the map, and its last report about
/// itself.
pub(super) fn load_levels(context: &mut Context<'_>) -> Result<(), Error> {
    let members = context.host.cluster_status().members;
    let reply = &mut context.reply;
    reply.array(members.len());
    for member in members {
        let levels = member.levels;
        reply.map(if levels.is_some() { 10 } else { 5 });
        reply.bulk(b"name");
        reply.bulk(member.name.as_bytes());
        let mut pair = |name: &str, value: i64| {
            reply.bulk(name.as_bytes());
            reply.integer(value);
        };
        pair("primaries", i64::from(member.primaries));
        pair("backups", i64::from(member.backups));
        pair("ideal", i64::from(member.ideal));
        pair("weight", i64::from(member.weight));
        if let Some(levels) = levels {
            pair("bytes", number(levels.bytes));
            pair("ops-per-second", number(levels.ops_per_second));
            pair("busy", i64::from(levels.busy));
            pair("sick", i64::from(levels.sick));
            pair("full", i64::from(levels.full));
        }
    }
    Ok(())
}

/// Replies with the cluster's id, then host and peer port of each member: all that a joining node needs if it knows
/// the address of one member.
pub(super) fn peers(context: &mut Context<'_>) -> Result<(), Error> {
    let id = context.host.cluster_status().cluster;
    let map = Arc::clone(context.keys.env().cluster.map());
    let reachable = || map.members().iter().filter(|member| !member.at.host.is_empty());
    let reply = &mut context.reply;
    reply.array(1 + reachable().count());
    reply.bulk(id.as_bytes());
    for member in reachable() {
        reply.array(2);
        reply.bulk(member.at.host.as_bytes());
        reply.integer(i64::from(member.at.peer));
    }
    Ok(())
}

/// Replies with the document behind `opencluster status`, as JSON.
pub(super) fn status(context: &mut Context<'_>) -> Result<(), Error> {
    let status = context.host.cluster_status();
    let text = serde_json::to_vec(&status).expect("numbers and texts can be written");
    context.reply.bulk_shared(&Arc::new(text));
    Ok(())
}

/// Replies with the keys that were changed on both sides of a split, one JSON document each: those that this node
/// serves.
pub(super) fn conflicts(context: &mut Context<'_>) -> Result<(), Error> {
    let conflicts = context.host.conflicts();
    let reply = &mut context.reply;
    reply.array(conflicts.len());
    for conflict in conflicts {
        reply.bulk(conflict.as_bytes());
    }
    Ok(())
}

pub(super) fn links(context: &mut Context<'_>) -> Result<(), Error> {
    let links = context.host.links();
    let reply = &mut context.reply;
    reply.array(links.len());
    for link in links {
        reply.map(4);
        reply.bulk(b"direction");
        reply.bulk(match link.direction {
            LinkDirection::To => b"to",
            LinkDirection::From => b"from",
        });
        reply.bulk(b"node");
        reply.bulk(format_node_id(link.node).as_bytes());
        reply.bulk(b"events");
        reply.bulk(b"rw");
        reply.bulk(b"send-buffer-used");
        reply.integer(number(link.unsent_bytes));
    }
    Ok(())
}

pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

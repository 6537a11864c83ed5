//! CLUSTER: members, slot ownership, and operator commands. Cluster-aware clients use it to find the right node for
//! a slot; a client that contacts the wrong node gets a redirect (`route.rs`).

mod view; //     Start here: the map as this node sees it, and the owner of a slot.
mod route; //    Checks whether a command may run on this node.
mod roles; //    The roles in which clients see the nodes.
mod topology; // SLOTS, SHARDS, NODES, INFO: the topology for clients.
mod of_keys; //  KEYSLOT, COUNTKEYSINSLOT, GETKEYSINSLOT.
mod ours; //     HASHMASKS, LOADLEVELS, STATUS: commands that Redis does not have.
mod changes; //  WATCH, HASHMASKS SINCE, EVENTS: for clients that follow the cluster.
mod operate; //  LEAVE, SPLIT, SETTINGS.
mod instead; //  Redis commands for manual administration.
#[cfg(test)]
mod tests;

pub use changes::{MAP_CHANNEL, describe};
pub use roles::{format_node_id, format_replica_id};
pub use route::{NeededCopy, route};
pub(crate) use topology::own_master;
pub use view::{LocalCopy, Route, View};

use crate::Error;
use crate::context::Context;
use crate::help::help;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};

const STALE: Flags = Flags::of(&[Flag::Stale]);
const CLUSTER: Spec = Spec { group: Group::Cluster, flags: STALE, since: "3.0.0", ..BLANK };
const READ_MODE: Spec =
    Spec { arity: 1, flags: Flags::of(&[Flag::Loading, Flag::Stale, Flag::Fast]), ..CLUSTER };
const ADMIN: Flags = Flags::of(&[Flag::Admin, Flag::Stale]);
const OF_NODES: &str = "O(N) where N is the total number of Cluster nodes";

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "cluster",
        full_name: "cluster",
        summary: "Shows and operates the cluster.",
        complexity: "Depends on subcommand.",
        arity: -2,
        flags: Flags::NONE,
        subcommands: SUBCOMMANDS,
        ..CLUSTER
    },
    Spec {
        name: "asking",
        full_name: "asking",
        summary: "Accepted without effect: no slot is ever served by two nodes.",
        flags: Flags::of(&[Flag::Fast]),
        run: Some(asking),
        ..READ_MODE
    },
    Spec {
        name: "readonly",
        full_name: "readonly",
        summary: "Allows reads from a backup on this connection.",
        run: Some(read_only),
        ..READ_MODE
    },
    Spec {
        name: "readwrite",
        full_name: "readwrite",
        summary: "Ends the effect of READONLY.",
        run: Some(read_write),
        ..READ_MODE
    },
];

const SUBCOMMANDS: &[Spec] = &[
    instead::ADDSLOTS,
    instead::ADDSLOTSRANGE,
    instead::BUMPEPOCH,
    instead::DELSLOTS,
    instead::DELSLOTSRANGE,
    instead::FAILOVER,
    instead::FLUSHSLOTS,
    instead::FORGET,
    instead::MEET,
    instead::REPLICATE,
    instead::RESET,
    instead::SAVECONFIG,
    instead::SET_CONFIG_EPOCH,
    instead::SETSLOT,
    Spec {
        name: "conflicts",
        full_name: "cluster|conflicts",
        summary: "Lists the keys that both sides of a split cluster had changed before the merge.",
        complexity: "O(N) where N is the number of conflicts",
        arity: 2,
        flags: ADMIN,
        run: Some(ours::conflicts),
        ..CLUSTER
    },
    Spec {
        name: "countkeysinslot",
        full_name: "cluster|countkeysinslot",
        summary: "Returns the number of keys in a slot.",
        syntax: "slot",
        arity: 3,
        flags: Flags::of(&[Flag::WholeKeyspace]).and(STALE),
        run: Some(of_keys::count_keys),
        ..CLUSTER
    },
    Spec {
        name: "events",
        full_name: "cluster|events",
        summary: "Makes this connection's subscriptions hear events of all keys, whatever \
                  notify-scope is.",
        syntax: "ALL",
        arity: 3,
        // It only marks the connection. The any-port sends it for its clients, before they may have authenticated.
        flags: Flags::of(&[Flag::Stale, Flag::NoAuth]),
        run: Some(changes::events),
        ..CLUSTER
    },
    Spec {
        name: "getkeysinslot",
        full_name: "cluster|getkeysinslot",
        summary: "Returns some keys of a slot.",
        syntax: "slot count",
        complexity: "O(log(N)) where N is the number of requested keys",
        arity: 4,
        flags: Flags::of(&[Flag::WholeKeyspace]).and(STALE),
        run: Some(of_keys::get_keys),
        ..CLUSTER
    },
    Spec {
        name: "help",
        full_name: "cluster|help",
        summary: "Shows this text.",
        since: "5.0.0",
        arity: 2,
        flags: Flags::of(&[Flag::Loading, Flag::Stale]),
        run: Some(help),
        ..CLUSTER
    },
    Spec {
        name: "info",
        full_name: "cluster|info",
        summary: "Returns the state of the cluster.",
        arity: 2,
        run: Some(topology::info),
        ..CLUSTER
    },
    Spec {
        name: "keyslot",
        full_name: "cluster|keyslot",
        summary: "Returns the slot of a key.",
        syntax: "key",
        complexity: "O(N) where N is the number of bytes in the key",
        arity: 3,
        run: Some(of_keys::key_slot),
        ..CLUSTER
    },
    Spec {
        name: "myid",
        full_name: "cluster|myid",
        summary: "Returns the id of this node.",
        arity: 2,
        run: Some(topology::my_id),
        ..CLUSTER
    },
    Spec {
        name: "nodes",
        full_name: "cluster|nodes",
        summary: "Lists the nodes, one per line, with the slots of each.",
        complexity: OF_NODES,
        arity: 2,
        run: Some(topology::nodes),
        ..CLUSTER
    },
    Spec {
        name: "shards",
        full_name: "cluster|shards",
        summary: "Returns the slots, and the nodes that hold them.",
        since: "7.0.0",
        complexity: "O(N) where N is the total number of cluster nodes",
        arity: 2,
        run: Some(topology::shards),
        ..CLUSTER
    },
    Spec {
        name: "slots",
        full_name: "cluster|slots",
        summary: "Returns the ranges of slots, and the holders of each.",
        complexity: OF_NODES,
        arity: 2,
        run: Some(topology::slots),
        ..CLUSTER
    },
    Spec {
        name: "hashmasks",
        full_name: "cluster|hashmasks",
        summary: "Lists the hashmasks: first and last slot, epoch and holders; with ALL, every \
                  bucket; with SINCE, what has changed since an epoch of the map.",
        syntax: "[ALL | SINCE epoch [history]]",
        complexity: "O(N) where N is the number of buckets",
        arity: -2,
        run: Some(ours::hashmasks),
        ..CLUSTER
    },
    Spec {
        name: "leave",
        full_name: "cluster|leave",
        summary: "Makes this node stop when others have copies of all its buckets; FOR keeps its \
                  places for that time, QUICK does not wait for the copies.",
        arity: -2,
        flags: ADMIN,
        run: Some(operate::leave),
        ..CLUSTER
    },
    Spec {
        name: "links",
        full_name: "cluster|links",
        summary: "Lists the connections to other nodes.",
        since: "7.0.0",
        complexity: OF_NODES,
        arity: 2,
        run: Some(ours::links),
        ..CLUSTER
    },
    Spec {
        name: "loadlevels",
        full_name: "cluster|loadlevels",
        summary: "Lists the current and ideal number of buckets of each node, and its load.",
        complexity: OF_NODES,
        arity: 2,
        run: Some(ours::load_levels),
        ..CLUSTER
    },
    Spec {
        name: "peers",
        full_name: "cluster|peers",
        summary: "Returns the peer addresses of the members, for a node that wants to join.",
        complexity: OF_NODES,
        arity: 2,
        run: Some(ours::peers),
        ..CLUSTER
    },
    Spec {
        name: "settings",
        full_name: "cluster|settings",
        summary: "Shows the settings of the cluster, shows one, or changes it.",
        syntax: "[name [value]]",
        arity: -2,
        flags: ADMIN,
        run: Some(operate::settings_command),
        ..CLUSTER
    },
    Spec {
        name: "split",
        full_name: "cluster|split",
        summary: "Splits a bucket, or all of the largest ones.",
        syntax: "[hashmask]",
        complexity: "O(N) where N is the number of buckets",
        arity: -2,
        flags: ADMIN,
        run: Some(operate::split),
        ..CLUSTER
    },
    Spec {
        name: "status",
        full_name: "cluster|status",
        summary: "Returns the complete status of the cluster as JSON.",
        complexity: "O(N) where N is the number of buckets",
        arity: 2,
        run: Some(ours::status),
        ..CLUSTER
    },
    Spec {
        name: "takeover",
        full_name: "cluster|takeover",
        summary: "Continues without permanently lost nodes after the loss of the quorum.",
        arity: 2,
        flags: ADMIN,
        run: Some(operate::takeover),
        ..CLUSTER
    },
    Spec {
        name: "watch",
        full_name: "cluster|watch",
        summary: "Sends this connection every change of the map.",
        arity: 2,
        run: Some(changes::watch),
        ..CLUSTER
    },
];

fn asking(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.ok();
    Ok(())
}

fn read_only(context: &mut Context<'_>) -> Result<(), Error> {
    context.session.reads_backups = true;
    context.reply.ok();
    Ok(())
}

fn read_write(context: &mut Context<'_>) -> Result<(), Error> {
    context.session.reads_backups = false;
    context.reply.ok();
    Ok(())
}

//! CLUSTER, READONLY and READWRITE for a node alone: all slots are here. Clients that know clusters
//! ask these to find out whom to talk to, and are told: to this node.

use placement::Slot;

use crate::Error;
use crate::context::Context;
use crate::help::help;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};

const STALE: Flags = Flags::of(&[Flag::Stale]);
const CLUSTER: Spec = Spec { group: Group::Cluster, flags: STALE, since: "3.0.0", ..BLANK };
const READ_MODE: Spec = Spec {
    arity: 1,
    flags: Flags::of(&[Flag::Loading, Flag::Stale, Flag::Fast]),
    run: Some(read_mode),
    ..CLUSTER
};
const OF_NODES: &str = "O(N) where N is the total number of Cluster nodes";

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "cluster",
        full_name: "cluster",
        summary: "Tells which node holds which slots.",
        complexity: "Depends on subcommand.",
        arity: -2,
        flags: Flags::NONE,
        subcommands: SUBCOMMANDS,
        ..CLUSTER
    },
    Spec {
        name: "readonly",
        full_name: "readonly",
        summary: "Allows reads from a backup on this connection; a node alone has none.",
        ..READ_MODE
    },
    Spec {
        name: "readwrite",
        full_name: "readwrite",
        summary: "Ends what READONLY began.",
        ..READ_MODE
    },
];

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "countkeysinslot",
        full_name: "cluster|countkeysinslot",
        summary: "Returns how many keys a slot holds.",
        syntax: "slot",
        arity: 3,
        flags: Flags::of(&[Flag::WholeKeyspace]).and(STALE),
        run: Some(count_keys),
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
        run: Some(get_keys),
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
        summary: "Tells how the cluster is.",
        arity: 2,
        run: Some(info),
        ..CLUSTER
    },
    Spec {
        name: "keyslot",
        full_name: "cluster|keyslot",
        summary: "Returns the slot of a key.",
        syntax: "key",
        complexity: "O(N) where N is the number of bytes in the key",
        arity: 3,
        run: Some(key_slot),
        ..CLUSTER
    },
    Spec {
        name: "myid",
        full_name: "cluster|myid",
        summary: "Returns the id of this node.",
        arity: 2,
        run: Some(my_id),
        ..CLUSTER
    },
    Spec {
        name: "nodes",
        full_name: "cluster|nodes",
        summary: "Lists the nodes, one a line, with the slots of each.",
        complexity: OF_NODES,
        arity: 2,
        run: Some(nodes),
        ..CLUSTER
    },
    Spec {
        name: "shards",
        full_name: "cluster|shards",
        summary: "Returns the slots, and the nodes that hold them.",
        since: "7.0.0",
        complexity: "O(N) where N is the total number of cluster nodes",
        arity: 2,
        run: Some(shards),
        ..CLUSTER
    },
    Spec {
        name: "slots",
        full_name: "cluster|slots",
        summary: "Returns the runs of slots, and for each the nodes that hold it.",
        complexity: OF_NODES,
        arity: 2,
        run: Some(slots),
        ..CLUSTER
    },
];

const LAST_SLOT: i64 = Slot::COUNT as i64 - 1;

fn read_mode(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.ok();
    Ok(())
}

fn key_slot(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.integer(i64::from(Slot::of(context.args.at(2)).number()));
    Ok(())
}

fn my_id(context: &mut Context<'_>) -> Result<(), Error> {
    let identity = context.host.identity();
    context.reply.bulk(identity.id.as_bytes());
    Ok(())
}

fn info(context: &mut Context<'_>) -> Result<(), Error> {
    let slots = Slot::COUNT;
    let text = format!(
        "cluster_state:ok\r\ncluster_slots_assigned:{slots}\r\ncluster_slots_ok:{slots}\r\n\
         cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\n\
         cluster_size:1\r\ncluster_current_epoch:0\r\ncluster_my_epoch:0\r\n\
         cluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\n\
         total_cluster_links_buffer_limit_exceeded:0\r\n"
    );
    context.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn nodes(context: &mut Context<'_>) -> Result<(), Error> {
    let identity = context.host.identity();
    let (id, host, port, peer) = (&identity.id, &identity.host, identity.port, identity.peer_port);
    let line = format!("{id} {host}:{port}@{peer} myself,master - 0 0 0 connected 0-{LAST_SLOT}\n");
    context.reply.verbatim("txt", line.as_bytes());
    Ok(())
}

fn slots(context: &mut Context<'_>) -> Result<(), Error> {
    let identity = context.host.identity();
    let reply = &mut context.reply;
    reply.array(1);
    reply.array(3);
    reply.integer(0);
    reply.integer(LAST_SLOT);
    reply.array(4);
    reply.bulk(identity.host.as_bytes());
    reply.integer(i64::from(identity.port));
    reply.bulk(identity.id.as_bytes());
    reply.map(0);
    Ok(())
}

fn shards(context: &mut Context<'_>) -> Result<(), Error> {
    let identity = context.host.identity();
    let reply = &mut context.reply;
    reply.array(1);
    reply.map(2);
    reply.bulk(b"slots");
    reply.array(2);
    reply.integer(0);
    reply.integer(LAST_SLOT);
    reply.bulk(b"nodes");
    reply.array(1);
    reply.map(7);
    reply.bulk(b"id");
    reply.bulk(identity.id.as_bytes());
    reply.bulk(b"port");
    reply.integer(i64::from(identity.port));
    for (name, value) in [("ip", identity.host.as_str()), ("endpoint", &identity.host)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"replication-offset");
    reply.integer(0);
    reply.bulk(b"health");
    reply.bulk(b"online");
    Ok(())
}

fn slot_at(context: &Context<'_>, index: usize) -> Result<Option<Slot>, Error> {
    let number = context.integer(index)?;
    Ok(u16::try_from(number).ok().and_then(Slot::new))
}

fn count_keys(context: &mut Context<'_>) -> Result<(), Error> {
    let slot = slot_at(context, 2)?.ok_or(Error::fixed("ERR Invalid slot"))?;
    let count = context.keys.table(slot).len();
    context.reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

fn get_keys(context: &mut Context<'_>) -> Result<(), Error> {
    let slot = slot_at(context, 2)?;
    let count = usize::try_from(context.integer(3)?).ok();
    let (Some(slot), Some(count)) = (slot, count) else {
        return Err(Error::fixed("ERR Invalid slot or number of keys"));
    };
    let mut keys: Vec<Vec<u8>> = Vec::new();
    context.keys.table(slot).for_each(|found| {
        if keys.len() < count {
            keys.push(found.item.key().to_vec());
        }
    });
    context.reply.array(keys.len());
    keys.iter().for_each(|key| context.reply.bulk(key));
    Ok(())
}

#[cfg(test)]
mod tests;

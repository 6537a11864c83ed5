//! MEMORY STATS: the figures under Redis's names, as far as they apply here.

use crate::context::Context;
use crate::keyspace::walk::Walk;
use crate::{Error, MemoryFigures};

/// All figures that MEMORY reports.
pub(super) struct MemoryStats {
    pub(super) node: MemoryFigures,
    pub(super) keys: u64,
    /// Memory of the slots' tables, without the items.
    pub(super) tables: u64,
}

impl MemoryStats {
    pub(super) fn gather(context: &mut Context<'_>) -> MemoryStats {
        let mut stats = MemoryStats { node: context.host.memory(), keys: 0, tables: 0 };
        let mut walk = Walk::new();
        while let Some(slot) = walk.next(&mut context.keys) {
            let table = context.keys.table(slot);
            stats.keys += table.len() as u64;
            stats.tables += table.index_bytes() as u64;
        }
        stats
    }

    /// Returns the memory that is not data.
    fn overhead(&self) -> u64 {
        self.node.startup + self.node.links + self.node.clients + self.tables
    }

    pub(super) fn dataset(&self) -> u64 {
        self.node.allocated.saturating_sub(self.overhead())
    }
}

/// One figure of the reply.
enum Figure {
    Bytes(u64),
    /// The difference of two figures, which may be negative.
    Gap(u64, u64),
    Ratio(u64, u64),
    Percent(u64, u64),
}

use Figure::{Bytes, Gap, Percent, Ratio};

pub(super) fn stats(context: &mut Context<'_>) -> Result<(), Error> {
    let stats = MemoryStats::gather(context);
    let MemoryFigures { allocated, peak, startup, active, resident, process, links, clients } =
        stats.node;
    let since_startup = allocated.saturating_sub(startup);
    let before = [
        ("peak.allocated", Bytes(peak)),
        ("total.allocated", Bytes(allocated)),
        ("startup.allocated", Bytes(startup)),
        ("replication.backlog", Bytes(0)),
        ("clients.slaves", Bytes(0)),
        ("clients.normal", Bytes(clients)),
        ("cluster.links", Bytes(links)),
        ("aof.buffer", Bytes(0)),
        ("lua.caches", Bytes(0)),
        ("functions.caches", Bytes(0)),
    ];
    let behind = [
        ("overhead.total", Bytes(stats.overhead())),
        ("keys.count", Bytes(stats.keys)),
        ("keys.bytes-per-key", Bytes(since_startup.checked_div(stats.keys).unwrap_or(0))),
        ("dataset.bytes", Bytes(stats.dataset())),
        ("dataset.percentage", Percent(stats.dataset(), since_startup)),
        ("peak.percentage", Percent(allocated, peak)),
        ("allocator.allocated", Bytes(allocated)),
        ("allocator.active", Bytes(active)),
        ("allocator.resident", Bytes(resident)),
        ("allocator-fragmentation.ratio", Ratio(active, allocated)),
        ("allocator-fragmentation.bytes", Gap(active, allocated)),
        ("allocator-rss.ratio", Ratio(resident, active)),
        ("allocator-rss.bytes", Gap(resident, active)),
        ("rss-overhead.ratio", Ratio(process, resident)),
        ("rss-overhead.bytes", Gap(process, resident)),
        ("fragmentation", Ratio(process, allocated)),
        ("fragmentation.bytes", Gap(process, allocated)),
    ];
    context.reply.map(before.len() + usize::from(stats.keys > 0) + behind.len());
    before.iter().for_each(|(name, figure)| tell(context, name, figure));
    if stats.keys > 0 {
        tell_database(context, stats.tables);
    }
    behind.iter().for_each(|(name, figure)| tell(context, name, figure));
    Ok(())
}

/// Writes the entry of the only database. Its tables hold the expiry times as well as the keys.
fn tell_database(context: &mut Context<'_>, tables: u64) {
    context.reply.bulk(b"db.0");
    context.reply.map(3);
    tell(context, "overhead.hashtable.main", &Bytes(tables));
    tell(context, "overhead.hashtable.expires", &Bytes(0));
    tell(context, "overhead.hashtable.slot-to-keys", &Bytes(0));
}

fn tell(context: &mut Context<'_>, name: &str, figure: &Figure) {
    context.reply.bulk(name.as_bytes());
    match figure {
        Bytes(bytes) => context.reply.integer(bytes.cast_signed()),
        Gap(more, less) => context.reply.integer(more.cast_signed() - less.cast_signed()),
        Ratio(part, whole) => context.reply.double(ratio(*part, *whole)),
        Percent(part, whole) => context.reply.double(ratio(*part, *whole) * 100.0),
    }
}

/// Returns `part / whole`, or 0 if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "shares are told in a few digits")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

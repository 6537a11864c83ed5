//! What is the same for the whole cluster and may be changed while it runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// How many backups a bucket has, nodes permitting.
    pub backups: u8,
    pub ack: Ack,
    /// Writes to a bucket with fewer copies than this wait.
    pub min_copies: u8,
    /// All buckets are split when the average node would hold fewer copies than this.
    pub min_buckets: u32,
    pub split_larger_than: SplitLargerThan,
    pub lease: Duration,
    pub pending_after: Duration,
    /// How long a lost bucket waits for one of its last holders; for ever if `None`.
    pub lost_after: Option<Duration>,
    /// Bytes a second that a node sends for fills at most; as fast as it goes if `None`.
    pub fill_rate: Option<u64>,
    pub two_node_takeover: bool,
    pub cross_slot: CrossSlot,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ack {
    /// When every backup has it.
    Backup,
    /// When the primary has it. Such a write can be lost.
    Primary,
}

/// Whether a command may name keys of several slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CrossSlot {
    /// While the cluster has one member.
    OneMember,
    Never,
}

/// A bucket is split alone when it exceeds both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SplitLargerThan {
    pub times_the_median: u32,
    pub bytes: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            backups: 1,
            ack: Ack::Backup,
            min_copies: 1,
            min_buckets: 6,
            split_larger_than: SplitLargerThan { times_the_median: 8, bytes: 64 << 20 },
            lease: Duration::from_secs(1),
            pending_after: Duration::from_secs(1),
            lost_after: Some(Duration::from_secs(30)),
            fill_rate: None,
            two_node_takeover: true,
            cross_slot: CrossSlot::OneMember,
        }
    }
}

/// One setting with its new value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Setting {
    Backups(u8),
    Ack(Ack),
    MinCopies(u8),
    MinBuckets(u32),
    SplitLargerThan(SplitLargerThan),
    Lease(Duration),
    PendingAfter(Duration),
    LostAfter(Option<Duration>),
    FillRate(Option<u64>),
    TwoNodeTakeover(bool),
    CrossSlot(CrossSlot),
}

impl Settings {
    pub(super) fn set(&mut self, setting: &Setting) {
        match *setting {
            Setting::Backups(backups) => self.backups = backups,
            Setting::Ack(ack) => self.ack = ack,
            Setting::MinCopies(copies) => self.min_copies = copies,
            Setting::MinBuckets(buckets) => self.min_buckets = buckets,
            Setting::SplitLargerThan(limit) => self.split_larger_than = limit,
            Setting::Lease(lease) => self.lease = lease,
            Setting::PendingAfter(after) => self.pending_after = after,
            Setting::LostAfter(after) => self.lost_after = after,
            Setting::FillRate(rate) => self.fill_rate = rate,
            Setting::TwoNodeTakeover(takeover) => self.two_node_takeover = takeover,
            Setting::CrossSlot(cross_slot) => self.cross_slot = cross_slot,
        }
    }
}

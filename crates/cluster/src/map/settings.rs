//! Cluster-wide settings that can change at run time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClusterSettings {
    /// Number of backups of a bucket, if there are enough nodes.
    pub backups: u8,
    pub ack: Ack,
    /// Writes to a bucket with fewer copies than this wait.
    pub min_copies: u8,
    /// All buckets are split when the average node would hold fewer copies than this.
    pub min_buckets: u32,
    pub split_larger_than: SplitLargerThan,
    pub lease: Duration,
    pub pending_after: Duration,
    /// Time a lost bucket waits for one of its last holders; forever if `None`.
    pub lost_after: Option<Duration>,
    /// Maximum bytes per second that a node sends for fills; unlimited if `None`.
    pub fill_rate: Option<u64>,
    pub two_node_takeover: bool,
    /// Time for which a leaving node waits until others have copies of all it holds; then it leaves the
    /// quick way.
    pub leave_timeout: Duration,
    pub cross_slot: CrossSlot,
}

/// The point at which a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ack {
    /// Every backup has the write.
    Backup,
    /// The primary has the write. Such a write can be lost.
    Primary,
}

/// Permission for commands with keys of several slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CrossSlot {
    /// Allowed while the cluster has one member.
    OneMember,
    Never,
}

/// The size limits of a single bucket: it is split alone when it exceeds both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SplitLargerThan {
    pub times_the_median: u32,
    pub bytes: u64,
}

impl Default for ClusterSettings {
    fn default() -> ClusterSettings {
        ClusterSettings {
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
            leave_timeout: Duration::from_secs(30),
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
    LeaveTimeout(Duration),
    CrossSlot(CrossSlot),
}

impl ClusterSettings {
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
            Setting::LeaveTimeout(timeout) => self.leave_timeout = timeout,
            Setting::CrossSlot(cross_slot) => self.cross_slot = cross_slot,
        }
    }
}

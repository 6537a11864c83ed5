//! The status of a cluster for people and tools: one document, the same for `opencluster status
//! --json`, `CLUSTER STATUS` and `/api/cluster`. This module fills in the data of the map; the server
//! adds the data of a running node (moves in flight, past changes, load of the others).

mod settings; //  Conversion of settings to and from text.
mod chronicle; // Past changes, and their reasons.
mod picture; //   A table with nodes as columns and buckets as rows.
mod sync; //      Copies that are incomplete or behind.
mod health; //    The verdict: what is wrong, what it means, what to do.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use chronicle::{CHANGES_KEPT, Chronicle};
pub use health::{Health, NodeFacts, Problem, ProblemKind, SKEW_MAX, Severity};
pub use picture::{BUCKETS_MAX, picture, role, summary, total};
pub use settings::{SettingError, duration as parse_duration, parse_setting, settings};
pub use sync::SyncStatus;

use crate::balance::share::shares;
use crate::balance::{Condition, Engagement, LoadLevels, MoveRole, Offered, Reason, Vitals};
use crate::fill::Sent;
use crate::map::{Away, Bucket, Map, Member, NodeId};
use crate::merge::Tally;

/// The status document. It refers to every node by its name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The cluster's id, in hexadecimal digits; empty if the node is in none yet.
    pub cluster: String,
    pub generation: u64,
    pub epoch: u64,
    /// The node that reports this status.
    pub node: String,
    /// The leader of the log of map changes, as far as the node knows.
    pub leader: Option<String>,
    pub members: Vec<MemberStatus>,
    pub buckets: Vec<BucketStatus>,
    #[serde(default)]
    pub bucket_count: usize,
    /// Number of buckets without a holder.
    #[serde(default)]
    pub lost: usize,
    /// Number of buckets with a primary and no backup, unless the cluster is set to have no backups.
    #[serde(default)]
    pub single_copies: usize,
    /// Number of buckets with fewer copies than they should have, and at least one.
    #[serde(default)]
    pub short_of_copies: usize,
    /// Nodes with reserved places: they are away for a while, or back and not yet filled.
    #[serde(default)]
    pub away: Vec<AwayStatus>,
    /// Totals of the fills from this node since its process began.
    #[serde(default)]
    pub fills: FillStatus,
    /// Copies on this node that are not complete or lack changes of their primaries.
    #[serde(default)]
    pub sync: Vec<SyncStatus>,
    /// The moves that this node takes part in.
    pub moves: Vec<MoveStatus>,
    /// The last changes of the map, the newest first.
    pub changes: Vec<ChangeStatus>,
    /// Recently departed members, the latest first.
    #[serde(default)]
    pub gone: Vec<GoneStatus>,
    pub settings: BTreeMap<String, String>,
    /// Merge results of keys that another side of the cluster had changed and that this node serves.
    #[serde(default)]
    pub merged: Tally,
    /// Names of the members before a takeover that have not come back: this side still looks for them.
    #[serde(default)]
    pub estranged: Vec<String>,
    /// Number of buckets that were recreated without their data and whose former holders may still
    /// return with it.
    #[serde(default)]
    pub awaited: usize,
    /// True if this side ends in favour of another: it serves no clients and hands over its writes.
    #[serde(default)]
    pub yields: bool,
    #[serde(default)]
    pub health: Health,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberStatus {
    pub name: String,
    /// Sixteen hexadecimal digits: the beginning of the id in `CLUSTER NODES`.
    pub id: String,
    pub host: String,
    pub client_port: u16,
    pub peer_port: u16,
    pub http_port: u16,
    pub zone: String,
    pub weight: u32,
    pub vote: Vote,
    pub primaries: u32,
    pub backups: u32,
    /// Number of copies it should hold, rounded down.
    pub ideal: u32,
    /// The bucket it received last.
    pub last_received: Option<String>,
    /// Its latest report about itself. `None` if this node has not asked it.
    pub levels: Option<LevelsStatus>,
    /// Time for which it has been silent though it should have spoken; `None` if all is well.
    #[serde(default)]
    pub silent_millis: Option<u64>,
    /// Milliseconds by which its wall clock is ahead of that of the reporting node (negative: behind).
    /// The leader knows it of all members, every other node only of the leader.
    #[serde(default)]
    pub clock_ahead_millis: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vote {
    Voter,
    /// It follows the log without a vote.
    Learner,
    #[default]
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LevelsStatus {
    pub bytes: u64,
    pub ops_per_second: u64,
    /// True if it takes part in a move.
    pub busy: bool,
    /// True if it should get nothing more.
    pub sick: bool,
    /// True if it is near its limit of memory and takes no more copies.
    #[serde(default)]
    pub full: bool,
    /// True if it is above its limit of memory and may not evict: it refuses writes that need memory.
    #[serde(default)]
    pub out_of_memory: bool,
    /// Bytes that its backups have not acknowledged yet.
    #[serde(default)]
    pub lag_bytes: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BucketStatus {
    /// The hashmask: `00FF/0014`.
    pub bucket: String,
    pub first_slot: u16,
    pub last_slot: u16,
    pub epoch: u64,
    /// The primary, then the backups; empty if the bucket is lost.
    pub holders: Vec<String>,
    /// True if the backup on the reporting node has heard nothing from its primary for `pending-after`.
    #[serde(default)]
    pub pending: bool,
}

/// A node with reserved places.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AwayStatus {
    pub name: String,
    /// Number of buckets it held and does not hold again.
    pub places: usize,
    /// Seconds for which they are reserved.
    pub seconds: u64,
}

impl AwayStatus {
    fn of(away: &Away) -> AwayStatus {
        let Away { name, absence, buckets } = away;
        AwayStatus { name: name.clone(), places: buckets.len(), seconds: absence.as_secs() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FillStatus {
    pub bytes: u64,
    pub items: u64,
    /// Keys that a taker had to delete.
    pub gone: u64,
    /// Slots that were sent completely.
    pub whole_slots: u64,
    /// Slots of which only the delta was sent.
    pub newer_slots: u64,
}

impl From<Sent> for FillStatus {
    fn from(sent: Sent) -> FillStatus {
        let Sent { bytes, items, gone, whole_slots, newer_slots } = sent;
        FillStatus { bytes, items, gone, whole_slots, newer_slots }
    }
}

/// One member's report about itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sight {
    pub vitals: Vitals,
    /// The move it takes part in, if any.
    pub moving: Option<MoveStatus>,
}

/// A move in flight.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveStatus {
    pub bucket: String,
    /// One word or two: `fill`, `give primary`, `promote`.
    pub kind: String,
    pub giver: String,
    /// The primary, the source of the data.
    pub source: String,
    pub taker: String,
    /// The rule of balancing behind it; empty if the reporting node has not decided on it.
    pub rule: String,
    /// Number of bytes copied so far. 0 on a node that is not the source: only the source knows.
    pub sent_bytes: u64,
    /// Progress by slots.
    pub percent: u8,
    pub millis: u64,
}

/// A past change of the map.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangeStatus {
    /// The map's epoch after the change.
    pub epoch: u64,
    /// Time at which this node learned of it, in milliseconds since 1970.
    pub at: u64,
    pub what: String,
    pub why: String,
}

/// A departed member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GoneStatus {
    pub name: String,
    /// Time at which this node learned of it, in milliseconds since 1970.
    pub at: u64,
    pub how: Going,
    /// Its load at the end.
    pub primaries: u32,
    pub backups: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Going {
    /// It handed everything on first.
    Left,
    /// Its lease expired.
    Dead,
}

impl Status {
    /// Returns the status by the map, as reported by one of its nodes.
    pub fn of(map: &Map, me: NodeId) -> Status {
        let buckets = map.buckets().map(|bucket| bucket_status(map, bucket)).collect();
        Status { buckets, ..Status::without_buckets(map, me) }
    }

    /// Returns the same without the buckets, which are many.
    pub fn without_buckets(map: &Map, me: NodeId) -> Status {
        Status {
            cluster: String::new(),
            generation: map.generation().counter,
            epoch: map.epoch().0,
            node: name(map, me),
            leader: None,
            members: members(map),
            buckets: Vec::new(),
            bucket_count: map.bucket_count(),
            lost: map.lost().count(),
            single_copies: single_copies(map),
            short_of_copies: short_of_copies(map),
            away: map.away().map(|(_, away)| AwayStatus::of(away)).collect(),
            fills: FillStatus::default(),
            sync: Vec::new(),
            moves: Vec::new(),
            changes: Vec::new(),
            gone: Vec::new(),
            settings: settings(map.settings()),
            merged: Tally::default(),
            estranged: map.partitioned_members().iter().map(|member| member.name.clone()).collect(),
            awaited: map.begun_anew().count(),
            yields: map.yielded_to().is_some(),
            health: Health::default(),
        }
    }

    /// Adds a member's load levels.
    pub fn add_levels(&mut self, node: NodeId, levels: &LoadLevels) {
        if let Some(member) = self.member_mut(node) {
            member.levels = Some(LevelsStatus::of(&levels.vitals, levels.busy));
        }
    }

    /// Adds a member's report for viewers; a move that several nodes report is listed once.
    pub fn add_sight(&mut self, node: NodeId, sight: &Sight) {
        if let Some(member) = self.member_mut(node) {
            member.levels = Some(LevelsStatus::of(&sight.vitals, sight.moving.is_some()));
        }
        let Some(told) = &sight.moving else { return };
        let same = |it: &&mut MoveStatus| it.bucket == told.bucket && it.taker == told.taker;
        match self.moves.iter_mut().find(same) {
            Some(known) => known.complete(told),
            None => self.moves.push(told.clone()),
        }
    }

    pub fn member_mut(&mut self, node: NodeId) -> Option<&mut MemberStatus> {
        let id = digits(node);
        self.members.iter_mut().find(|member| member.id == id)
    }
}

/// Returns the number of buckets whose loss of one node would lose data, though there should be backups.
fn single_copies(map: &Map) -> usize {
    let wants_backups = map.settings().backups > 0;
    map.buckets().filter(|bucket| wants_backups && bucket.holders.len() == 1).count()
}

fn short_of_copies(map: &Map) -> usize {
    let wanted = map.copies_wanted();
    let is_short = |bucket: &&Bucket| (1..wanted).contains(&bucket.holders.len());
    map.buckets().filter(is_short).count()
}

impl LevelsStatus {
    fn of(vitals: &Vitals, busy: bool) -> LevelsStatus {
        LevelsStatus {
            bytes: vitals.bytes,
            ops_per_second: vitals.ops_per_second,
            busy,
            sick: vitals.condition == Condition::Sick,
            full: vitals.memory.is_crowded(),
            out_of_memory: vitals.memory.refuses_writes(),
            lag_bytes: vitals.lag_bytes,
        }
    }
}

impl Status {
    /// Marks the buckets that the reporting node backs up for these primaries.
    pub fn mark_pending(&mut self, map: &Map, me: NodeId, primaries: &BTreeSet<NodeId>) {
        for (status, bucket) in self.buckets.iter_mut().zip(map.buckets()) {
            let silent = bucket.primary().is_some_and(|primary| primaries.contains(&primary));
            status.pending = silent && bucket.backups().contains(&me);
        }
    }
}

impl MoveStatus {
    /// Completes this move with the report of another participant: the giver knows the rule, the source
    /// the progress.
    fn complete(&mut self, other: &MoveStatus) {
        if self.rule.is_empty() && !other.rule.is_empty() {
            self.rule.clone_from(&other.rule);
            self.kind.clone_from(&other.kind);
        }
        self.sent_bytes = self.sent_bytes.max(other.sent_bytes);
        self.percent = self.percent.max(other.percent);
    }

    /// Returns the status of a move that a node takes part in. Only the giver knows the rule.
    pub fn of(map: &Map, engagement: &Engagement, rule: Option<Reason>) -> MoveStatus {
        let bucket = engagement.bucket();
        let primary = map.bucket(bucket).and_then(Bucket::primary);
        MoveStatus {
            bucket: bucket.to_string(),
            kind: kind(&engagement.role),
            giver: name(map, engagement.move_id.giver),
            source: primary.map_or_else(String::new, |primary| name(map, primary)),
            taker: name(map, engagement.taker),
            rule: rule.map_or_else(String::new, |rule| rule.to_string()),
            sent_bytes: 0,
            percent: 0,
            millis: 0,
        }
    }
}

impl MemberStatus {
    pub fn copies(&self) -> u32 {
        self.primaries + self.backups
    }
}

fn kind(part: &MoveRole) -> String {
    match part {
        MoveRole::AwaitingTaker { decision } | MoveRole::AwaitingSource { decision } => {
            decision.step.kind.to_string()
        }
        MoveRole::Giving { step, .. } => step.kind.to_string(),
        MoveRole::Taking { what: Offered::Promotion } => "promote".to_owned(),
        MoveRole::Taking { what: Offered::Fill | Offered::Gift } | MoveRole::Sourcing { .. } => {
            "fill".to_owned()
        }
    }
}

/// Returns a node's name, or its id if it is not a member (any more).
pub fn name(map: &Map, node: NodeId) -> String {
    map.member(node).map_or_else(|| digits(node), |member| member.name.clone())
}

/// Returns an id in sixteen hexadecimal digits.
pub fn digits(node: NodeId) -> String {
    format!("{:016x}", node.0)
}

fn members(map: &Map) -> Vec<MemberStatus> {
    let weights: Vec<u32> = map.members().iter().map(|member| member.weight).collect();
    let shares = shares(&weights, map.bucket_count(), map.copies_wanted());
    let ideals = shares.iter().map(|share| *share.totals().start());
    map.members()
        .iter()
        .zip(ideals)
        .map(|(member, ideal)| member_status(map, member, ideal))
        .collect()
}

fn member_status(map: &Map, member: &Member, ideal: u32) -> MemberStatus {
    let load = map.load(member.id);
    MemberStatus {
        name: member.name.clone(),
        id: digits(member.id),
        host: member.at.host.clone(),
        client_port: member.at.client,
        peer_port: member.at.peer,
        http_port: member.at.http,
        zone: member.zone.0.clone(),
        weight: member.weight,
        vote: Vote::Unknown,
        primaries: load.primaries,
        backups: load.backups,
        ideal,
        last_received: load.last_received.map(|hashmask| hashmask.to_string()),
        levels: None,
        silent_millis: None,
        clock_ahead_millis: None,
    }
}

fn bucket_status(map: &Map, bucket: &Bucket) -> BucketStatus {
    let slots = bucket.hashmask.slots();
    BucketStatus {
        bucket: bucket.hashmask.to_string(),
        first_slot: slots.start,
        last_slot: slots.end - 1,
        epoch: bucket.epoch.0,
        holders: bucket.holders.iter().map(|holder| name(map, *holder)).collect(),
        pending: false,
    }
}

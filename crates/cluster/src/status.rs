//! A cluster as people and tools look at it: one document, the same for `opencluster status --json`,
//! `CLUSTER STATUS` and `/api/cluster`. What the map says is filled in here; what only a running node
//! knows (moves in flight, the past, how busy the others are) is added by the server.

mod settings; //  The settings in words, both ways.
mod chronicle; // What has changed, and why.
mod picture; //   Nodes as columns, buckets as rows.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use chronicle::{CHANGES_KEPT, Chronicle};
pub use picture::{BUCKETS_MAX, picture, role, summary, total};
pub use settings::{SettingError, duration as parse_duration, parse_setting, settings};

use crate::balance::share::shares;
use crate::balance::{Condition, Engagement, LoadLevels, Offered, Part, Rule, Vitals};
use crate::control::Sight;
use crate::fill::Sent;
use crate::map::{Away, Bucket, Map, Member, NodeId};
use crate::merge::Tally;

/// A node is named by its name everywhere in here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The cluster's id, in hexadecimal digits; empty if the node is in none yet.
    pub cluster: String,
    pub generation: u64,
    pub epoch: u64,
    /// The node that tells all this.
    pub node: String,
    /// Who keeps the log of map changes, as far as the node knows.
    pub leader: Option<String>,
    pub members: Vec<MemberStatus>,
    pub buckets: Vec<BucketStatus>,
    /// Nodes whose places are kept: they are away for a while, or back and not yet done.
    #[serde(default)]
    pub away: Vec<AwayStatus>,
    /// What fills from this node have sent since its process began.
    #[serde(default)]
    pub fills: FillStatus,
    /// The moves that this node takes part in.
    pub moves: Vec<MoveStatus>,
    /// The last changes of the map, the newest first.
    pub changes: Vec<ChangeStatus>,
    /// Who was a member lately and is none any more, the last one first.
    #[serde(default)]
    pub gone: Vec<GoneStatus>,
    pub settings: BTreeMap<String, String>,
    /// What became of keys that another side of the cluster had changed and that this node serves.
    #[serde(default)]
    pub merged: Tally,
    /// Whom this side still looks for, by name: members before a takeover that have not come back.
    #[serde(default)]
    pub estranged: Vec<String>,
    /// How many buckets began again without what they had, which somebody who held them may still bring.
    #[serde(default)]
    pub awaited: usize,
    /// This side ends in favour of another: it serves nobody and hands over what it wrote.
    #[serde(default)]
    pub yields: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberStatus {
    pub name: String,
    /// Sixteen hexadecimal digits: those the id in `CLUSTER NODES` begins with.
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
    /// How many copies it should hold, rounded down.
    pub ideal: u32,
    /// The bucket it received last.
    pub last_received: Option<String>,
    /// What it last said of itself. `None` if this node has not asked it.
    pub levels: Option<LevelsStatus>,
    /// For how long it has said nothing though it should have; `None` if all is well.
    #[serde(default)]
    pub silent_millis: Option<u64>,
    /// By how much its wall clock is ahead of that of the node that tells this (negative: behind). The leader
    /// knows it of all, every other node of the leader.
    #[serde(default)]
    pub clock_ahead_millis: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vote {
    Voter,
    /// It follows the log without a voice.
    Learner,
    #[default]
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LevelsStatus {
    pub bytes: u64,
    pub ops_per_second: u64,
    /// It takes part in a move.
    pub busy: bool,
    /// It should get nothing more.
    pub sick: bool,
    /// What its backups have not acknowledged yet.
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
    /// The primary, then the backups; nobody if it is lost.
    pub holders: Vec<String>,
    /// Whether the backup on the node that tells has heard nothing of its primary for `pending-after`.
    #[serde(default)]
    pub pending: bool,
}

/// A node whose places are kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AwayStatus {
    pub name: String,
    /// How many buckets it held and does not hold again.
    pub places: usize,
    /// How long they are kept.
    pub seconds: u64,
}

impl AwayStatus {
    fn of(away: &Away) -> AwayStatus {
        let Away { name, long, buckets } = away;
        AwayStatus { name: name.clone(), places: buckets.len(), seconds: long.as_secs() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FillStatus {
    pub bytes: u64,
    pub items: u64,
    /// Keys that a taker was told to take away.
    pub gone: u64,
    /// Slots of which everything was sent.
    pub whole_slots: u64,
    /// Slots of which only what the taker did not have was sent.
    pub newer_slots: u64,
}

impl From<Sent> for FillStatus {
    fn from(sent: Sent) -> FillStatus {
        let Sent { bytes, items, gone, whole_slots, newer_slots } = sent;
        FillStatus { bytes, items, gone, whole_slots, newer_slots }
    }
}

/// A move in flight.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveStatus {
    pub bucket: String,
    /// In one word or two: `fill`, `give primary`, `promote`.
    pub kind: String,
    pub giver: String,
    /// The primary, from which the bytes come.
    pub source: String,
    pub taker: String,
    /// The rule of balancing it follows; empty if the node that tells has not decided on it.
    pub rule: String,
    /// How much has been copied. 0 for a node that is not the source: only that one knows.
    pub sent_bytes: u64,
    /// How far it is, by slots.
    pub percent: u8,
    pub millis: u64,
}

/// A change of the map that has happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangeStatus {
    /// The map's epoch after it.
    pub epoch: u64,
    /// When this node learned of it, in milliseconds since 1970.
    pub at: u64,
    pub what: String,
    pub why: String,
}

/// A member that is none any more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GoneStatus {
    pub name: String,
    /// When this node learned of it, in milliseconds since 1970.
    pub at: u64,
    pub how: Going,
    /// What it held at the end.
    pub primaries: u32,
    pub backups: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Going {
    /// It handed everything on first.
    Left,
    /// Its lease ran out.
    Dead,
}

impl Status {
    /// What the map says, as told by one of its nodes.
    pub fn of(map: &Map, me: NodeId) -> Status {
        let buckets = map.buckets().map(|bucket| bucket_status(map, bucket)).collect();
        Status { buckets, ..Status::without_buckets(map, me) }
    }

    /// The same without the buckets, which are many.
    pub fn without_buckets(map: &Map, me: NodeId) -> Status {
        Status {
            cluster: String::new(),
            generation: map.generation().counter,
            epoch: map.epoch().0,
            node: name(map, me),
            leader: None,
            members: members(map),
            buckets: Vec::new(),
            away: map.away().map(|(_, away)| AwayStatus::of(away)).collect(),
            fills: FillStatus::default(),
            moves: Vec::new(),
            changes: Vec::new(),
            gone: Vec::new(),
            settings: settings(map.settings()),
            merged: Tally::default(),
            estranged: map.estranged().iter().map(|member| member.name.clone()).collect(),
            awaited: map.begun_anew().count(),
            yields: map.yielded_to().is_some(),
        }
    }

    /// Adds what a member has said of itself.
    pub fn add_levels(&mut self, node: NodeId, levels: &LoadLevels) {
        if let Some(member) = self.member_mut(node) {
            member.levels = Some(LevelsStatus::of(&levels.vitals, levels.busy));
        }
    }

    /// Adds what a member has said to whoever looks; a move that several tell of is told once.
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

impl LevelsStatus {
    fn of(vitals: &Vitals, busy: bool) -> LevelsStatus {
        LevelsStatus {
            bytes: vitals.bytes,
            ops_per_second: vitals.ops_per_second,
            busy,
            sick: vitals.condition == Condition::Sick,
            lag_bytes: vitals.lag_bytes,
        }
    }
}

impl Status {
    /// Marks what the node that tells backs up for these primaries.
    pub fn mark_pending(&mut self, map: &Map, me: NodeId, primaries: &BTreeSet<NodeId>) {
        for (status, bucket) in self.buckets.iter_mut().zip(map.buckets()) {
            let silent = bucket.primary().is_some_and(|primary| primaries.contains(&primary));
            status.pending = silent && bucket.backups().contains(&me);
        }
    }
}

impl MoveStatus {
    /// Takes over what another node that takes part knows better: the giver the rule, the source how far
    /// it is.
    fn complete(&mut self, other: &MoveStatus) {
        if self.rule.is_empty() && !other.rule.is_empty() {
            self.rule.clone_from(&other.rule);
            self.kind.clone_from(&other.kind);
        }
        self.sent_bytes = self.sent_bytes.max(other.sent_bytes);
        self.percent = self.percent.max(other.percent);
    }

    /// A move that a node takes part in. Only the giver knows by which rule.
    pub fn of(map: &Map, engagement: &Engagement, rule: Option<Rule>) -> MoveStatus {
        let primary = map.bucket(engagement.bucket).and_then(Bucket::primary);
        MoveStatus {
            bucket: engagement.bucket.to_string(),
            kind: kind(&engagement.part),
            giver: name(map, engagement.attempt.giver),
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

fn kind(part: &Part) -> String {
    match part {
        Part::Offering { decision } | Part::Fetching { decision } => decision.step.kind.to_string(),
        Part::Giving { step, .. } => step.kind.to_string(),
        Part::Taking { what: Offered::Promotion } => "promote".to_owned(),
        Part::Taking { what: Offered::Fill | Offered::Gift } | Part::Sourcing { .. } => {
            "fill".to_owned()
        }
    }
}

/// A node's name; its id if it is no member (any more).
pub fn name(map: &Map, node: NodeId) -> String {
    map.member(node).map_or_else(|| digits(node), |member| member.name.clone())
}

/// An id in sixteen hexadecimal digits.
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

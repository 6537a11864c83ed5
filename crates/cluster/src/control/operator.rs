//! Operator requests to any node: leave, split, set. Bad input gets one clear line.

use std::time::Duration;

use placement::Hashmask;

use super::documents::objection_to_write;
use super::lease::patience;
use super::membership::{AWAY_MAX, Absence, JoinRequester};
use super::{Answer, Control, OperatorRequest};
use crate::consensus::LogEntry;
use crate::map::{Bucket, Change, LeaveWay, Map, RecreateSource, Setting};

const LEASE_RANGE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));
const BACKUPS_MAX: u8 = 3;
const FILL_RATE_MIN: u64 = 64 << 10;

impl Control {
    pub(super) fn on_ask(&mut self, id: u64, ask: OperatorRequest) {
        if !self.is_member() {
            let text = "this node is not a member of a cluster yet";
            return self.answer(id, Answer::Refused(text.into()));
        }
        match ask {
            OperatorRequest::Leave(way) => self.on_ask_leave(id, Absence::ForGood, way),
            OperatorRequest::LeaveFor { absence, way } => self.on_ask_leave_for(id, absence, way),
            OperatorRequest::Split(bucket) => self.on_ask_split(id, bucket),
            OperatorRequest::Set(setting) => self.on_ask_set(id, setting),
            OperatorRequest::Write(request) => self.on_ask_write(id, request),
            OperatorRequest::Takeover => self.on_ask_takeover(id),
            OperatorRequest::Join(request) => self.on_join_ask(*request, JoinRequester::Here(id)),
            OperatorRequest::Recreate(from) => self.on_ask_recreate(id, from),
        }
    }

    fn on_ask_leave_for(&mut self, id: u64, absence: Duration, way: LeaveWay) {
        match objection_to_absence(absence) {
            None => self.on_ask_leave(id, Absence::For(absence), way),
            Some(text) => self.answer(id, Answer::Refused(text)),
        }
    }

    fn on_ask_split(&mut self, id: u64, bucket: Option<Hashmask>) {
        let map = self.map.clone().expect("a member has a map");
        match split_of(&map, bucket) {
            Ok(split) => self.propose_for(id, vec![split]),
            Err(text) => self.answer(id, Answer::Refused(text)),
        }
    }

    fn on_ask_set(&mut self, id: u64, setting: Setting) {
        let map = self.map.clone().expect("a member has a map");
        match objection_to(&map, &setting) {
            None => self.propose_for(id, vec![Change::Set(setting)]),
            Some(text) => self.answer(id, Answer::Refused(text)),
        }
    }

    fn on_ask_recreate(&mut self, id: u64, from: RecreateSource) {
        let map = self.map.clone().expect("a member has a map");
        if map.members().len() > 1 {
            let text = "there are other members, which may still have the missing data";
            return self.answer(id, Answer::Refused(text.into()));
        }
        let node = self.me.id;
        // Other nodes may still return with the buckets they held last.
        let mine = map.lost().filter(|(_, last)| last.contains(&node));
        let lost = mine.filter_map(|(hashmask, _)| map.bucket(hashmask));
        let recreate = |Bucket { hashmask, epoch, .. }: &Bucket| Change::Recreate {
            bucket: *hashmask,
            node,
            from,
            expected: *epoch,
        };
        let changes: Vec<Change> = lost.map(recreate).collect();
        if changes.is_empty() {
            return self.answer(id, Answer::Done);
        }
        self.propose_for(id, changes);
    }

    /// Handles a new lease length at the leader. A shorter one is granted from now on, but becomes the
    /// cluster's only when every longer one has expired: a later leader, which may know of none of the
    /// longer ones, counts by the map's value.
    pub(super) fn on_set_lease(&mut self, lease: Duration, entry: LogEntry) {
        let (now, current) = (self.now, self.lease());
        let Some(leader) = &mut self.leader else { return };
        if lease < current {
            leader.shorten_lease(lease, now + patience(current));
        }
        if lease >= current || leader.is_shortened(lease, now) {
            self.put_into_log(entry);
        }
    }
}

fn split_of(map: &Map, bucket: Option<Hashmask>) -> Result<Change, String> {
    let mask = map.coarsest_mask();
    let buckets: Vec<_> = match bucket {
        Some(hashmask) => map.bucket(hashmask).into_iter().collect(),
        None => map.buckets().filter(|bucket| bucket.hashmask.mask() == mask).collect(),
    };
    if let (Some(hashmask), true) = (bucket, buckets.is_empty()) {
        return Err(format!("there is no bucket {hashmask}"));
    }
    if buckets.iter().any(|bucket| bucket.hashmask.mask().next().is_none()) {
        return Err("a bucket of one slot cannot be split".into());
    }
    Ok(Change::Split(buckets.iter().map(|bucket| (bucket.hashmask, bucket.epoch)).collect()))
}

/// Returns the reason an operator's request cannot be carried out, as far as the map tells. A node that
/// passes a request on can answer with it at once.
pub fn objection(map: &Map, ask: &OperatorRequest) -> Option<String> {
    match ask {
        OperatorRequest::Split(bucket) => split_of(map, *bucket).err(),
        OperatorRequest::Set(setting) => objection_to(map, setting),
        OperatorRequest::Write(request) => objection_to_write(map, request),
        OperatorRequest::LeaveFor { absence, .. } => objection_to_absence(*absence),
        OperatorRequest::Leave(_)
        | OperatorRequest::Takeover
        | OperatorRequest::Join(_)
        | OperatorRequest::Recreate(_) => None,
    }
}

fn objection_to_absence(absence: Duration) -> Option<String> {
    let fits = !absence.is_zero() && absence <= AWAY_MAX;
    (!fits).then(|| "a node can be away for 1s to 24h".into())
}

/// Returns the reason a setting cannot have this value.
fn objection_to(map: &Map, setting: &Setting) -> Option<String> {
    let settings = map.settings();
    match setting {
        Setting::Backups(backups) if *backups > BACKUPS_MAX => {
            Some(format!("backups must be 0 to {BACKUPS_MAX}"))
        }
        Setting::Backups(backups) if *backups + 1 < settings.min_copies => {
            let copies = settings.min_copies;
            Some(format!("backups = {backups} is too low for min-copies = {copies}"))
        }
        Setting::MinCopies(copies) if *copies == 0 || *copies > settings.backups + 1 => {
            Some(format!(
                "min-copies must be 1 to {} with backups = {}",
                settings.backups + 1,
                settings.backups
            ))
        }
        Setting::MinBuckets(buckets) if *buckets == 0 || *buckets > 1024 => {
            Some("min-buckets must be 1 to 1024".into())
        }
        Setting::Lease(lease) if *lease < LEASE_RANGE.0 || *lease > LEASE_RANGE.1 => {
            Some("lease must be 200ms to 60s".into())
        }
        Setting::PendingAfter(after) if after.is_zero() => {
            Some("pending-after must be above 0".into())
        }
        Setting::FillRate(Some(rate)) if *rate < FILL_RATE_MIN => {
            Some("fill-rate must be at least 64 KiB per second".into())
        }
        Setting::LeaveTimeout(timeout) if *timeout > AWAY_MAX => {
            Some("leave-timeout must be at most 24h".into())
        }
        Setting::SplitLargerThan(limit) if limit.times_the_median == 0 || limit.bytes == 0 => {
            Some("split-larger-than must be above 0".into())
        }
        Setting::Backups(_)
        | Setting::Ack(_)
        | Setting::MinCopies(_)
        | Setting::MinBuckets(_)
        | Setting::SplitLargerThan(_)
        | Setting::Lease(_)
        | Setting::PendingAfter(_)
        | Setting::LostAfter(_)
        | Setting::FillRate(_)
        | Setting::TwoNodeTakeover(_)
        | Setting::LeaveTimeout(_)
        | Setting::CrossSlot(_) => None,
    }
}

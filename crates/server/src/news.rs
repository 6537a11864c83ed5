//! What a node knows of its cluster beyond the map: what changed and why, who leads, which move it
//! takes part in. Written by the control thread, read by whoever asks for the status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::balance::{Engagement, LoadLevels, Rule};
use cluster::control::{Ask, Control, MapChanged, objection};
use cluster::map::{ClusterId, Map, NodeId};
use cluster::status::{Chronicle, MoveStatus, Status, Vote, digits, name};
use commands::cluster::MAP_CHANNEL;
use commands::{Post, Space};
use parking_lot::Mutex;

use crate::clock;
use crate::data::vitals;
use crate::merge::merged;
use crate::pubsub::Outbox;
use crate::shared::Shared;

/// Of the changes it remembers, so many are told.
const CHANGES_TOLD: usize = 32;

#[derive(Default)]
pub(crate) struct News {
    chronicle: Mutex<Chronicle>,
    known: Mutex<Known>,
}

/// What the control plane knew when it was last looked at.
#[derive(Default)]
struct Known {
    cluster: Option<ClusterId>,
    leader: Option<NodeId>,
    voters: BTreeSet<NodeId>,
    /// What the others last said of themselves.
    levels: BTreeMap<NodeId, LoadLevels>,
    engaged: Option<Engaged>,
}

/// The move this node takes part in.
struct Engaged {
    engagement: Engagement,
    /// Why, if this node has decided on it.
    rule: Option<Rule>,
    since: Instant,
}

/// Passes on what an operator wants. It is carried out in the control plane's own time; what is plainly
/// wrong is refused here.
pub(crate) fn ask(shared: &Shared, ask: Ask) -> Result<(), String> {
    objection(&shared.map(), &ask).map_or(Ok(()), Err)?;
    if matches!(ask, Ask::LeaveFor(_)) && !shared.kept.has_directory() {
        let text = "this node has no data directory to keep its copies in; start it with --data-dir, \
                    or let it leave for good";
        return Err(text.to_owned());
    }
    shared.control.ask(ask, |_| {});
    Ok(())
}

/// Looks at the control plane again. Called every so often; nobody waits for it.
pub(crate) fn refresh(shared: &Arc<Shared>) {
    let from = Arc::clone(shared);
    shared.control.look(move |control| from.news.known.lock().update(control));
}

/// The node goes by another map now: that is remembered, and told to those who watch.
pub(crate) fn map_changed(shared: &Shared, before: &Map, changed: &MapChanged) {
    let map = &changed.map;
    if let Some(entry) = &changed.entry {
        let (changes, outcomes) = (&entry.changes, &changed.outcomes);
        shared.news.chronicle.lock().note((before, map), changes, outcomes, clock::now().0);
    }
    let mut outbox = Outbox::new(shared.mailboxes.len());
    let epoch = map.epoch().to_string();
    let channel = MAP_CHANNEL.as_bytes();
    let post = Post { space: Space::Global, channel, payload: epoch.as_bytes() };
    if outbox.publish_here(&shared.exchange, None, post) > 0 {
        outbox.post(shared, None);
    }
}

impl Known {
    fn update(&mut self, control: &Control) {
        self.cluster = Some(control.cluster());
        self.leader = control.leader();
        self.voters.clone_from(&control.configuration().voters);
        self.levels.clone_from(control.heard());
        let before = self.engaged.take();
        self.engaged = control.engagement().map(|engagement| {
            let same = before.filter(|before| before.engagement.attempt == engagement.attempt);
            let decided = control.history().decisions().map(|(_, decision)| decision);
            let mut mine = decided.filter(|decision| decision.step.giver == control.me().id);
            let decision = mine.find(|decision| decision.step.bucket == engagement.bucket);
            Engaged {
                engagement: engagement.clone(),
                rule: decision.map(|decision| decision.rule),
                since: same.map_or_else(Instant::now, |same| same.since),
            }
        });
    }
}

/// All there is to tell.
pub(crate) fn status(shared: &Shared) -> Status {
    let view = shared.cluster.load_full();
    let (map, me) = (view.map(), view.me());
    let mut status = Status::of(map, me);
    let known = shared.news.known.lock();
    status.cluster = known.cluster.map_or_else(String::new, |id| format!("{:016x}", id.0));
    status.leader = known.leader.map(|leader| name(map, leader));
    if !known.voters.is_empty() {
        let voters: BTreeSet<String> = known.voters.iter().map(|voter| digits(*voter)).collect();
        for member in &mut status.members {
            let votes = voters.contains(&member.id);
            member.vote = if votes { Vote::Voter } else { Vote::Learner };
        }
    }
    status.moves = known.engaged.iter().map(|engaged| engaged.told(shared, map)).collect();
    let busy = known.engaged.is_some();
    known.levels.iter().for_each(|(node, levels)| status.add_levels(*node, levels));
    drop(known);
    status.add_levels(me, &levels(shared, map, busy));
    status.merged = merged(shared);
    status.yields |= shared.merging.yields().is_some();
    status.fills = (*shared.data.sent.lock()).into();
    status.changes = shared.news.chronicle.lock().latest(CHANGES_TOLD);
    status
}

impl Engaged {
    fn told(&self, shared: &Shared, map: &Map) -> MoveStatus {
        let mut told = MoveStatus::of(map, &self.engagement, self.rule);
        told.millis = millis(self.since.elapsed());
        if let Some(progress) = shared.data.progress(self.engagement.bucket) {
            told.sent_bytes = progress.sent_bytes;
            told.percent = progress.percent;
        }
        told
    }
}

/// What this node says of itself.
fn levels(shared: &Shared, map: &Map, busy: bool) -> LoadLevels {
    let load = map.load(shared.data.me);
    let (primaries, backups) = (load.primaries, load.backups);
    LoadLevels { epoch: map.epoch(), primaries, backups, vitals: vitals(shared), busy }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

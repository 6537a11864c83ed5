//! A node's knowledge of its cluster beyond the map: changes and their reasons, the leader, and the move this
//! node takes part in. Written by the applier (changes) and the control
//! thread (the rest), read by status requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::balance::{LoadLevels, Vitals};
use cluster::control::{Control, Input, MapChanged, OperatorRequest, objection};
use cluster::map::{
    Change, ChangeOutcome, ClusterId, Epoch, Map, MapJournal, MapStep, NodeId, StepError,
};
use cluster::status::{Chronicle, MoveStatus, Sight, Status, Vote, digits, name};
use commands::cluster::{MAP_CHANNEL, describe};
use commands::{Post, Space};
use parking_lot::Mutex;

use crate::clock;
use crate::data::{Data, Links};
use crate::log;
use crate::mailbox::Mailboxes;
use crate::merge::Merging;
use crate::peer::ControlHandle;
use crate::published::Audience;
use crate::pubsub::{Exchange, PubsubOutbox};

/// Maximum number of changes in `status`.
const CHANGES_TOLD: usize = 32;
/// Time for which departed members stay in `status`.
const GONE_TOLD_FOR: Duration = Duration::from_secs(15 * 60);
/// Time for which a status request counts as an active viewer.
const LOOKS_FOR: Duration = Duration::from_secs(5);
const ASKS_EVERY: Duration = Duration::from_millis(900);

#[derive(Default)]
pub(crate) struct ClusterView {
    chronicle: Mutex<Chronicle>,
    /// The changes of the map, for clients that follow it; `None` until there is a map.
    journal: Mutex<Option<MapJournal>>,
    known: Arc<Mutex<ControlView>>,
    looks: Mutex<Looks>,
}

/// Viewers of the cluster's status through this node.
#[derive(Default)]
struct Looks {
    last: Option<Instant>,
    /// Time of the last query to the other nodes on behalf of a viewer.
    asked: Option<Instant>,
}

/// The control plane's knowledge at the last refresh.
#[derive(Default)]
struct ControlView {
    cluster: Option<ClusterId>,
    leader: Option<NodeId>,
    voters: BTreeSet<NodeId>,
    /// The last load levels that the others reported.
    levels: BTreeMap<NodeId, LoadLevels>,
    sights: BTreeMap<NodeId, Sight>,
    silent: BTreeMap<NodeId, Duration>,
    /// Lead of the other nodes' clocks, in milliseconds.
    skews: BTreeMap<NodeId, i64>,
    /// The move this node takes part in.
    moving: Option<MoveStatus>,
    /// Time at which each known move was first seen.
    since: BTreeMap<MoveName, Instant>,
}

/// Bucket and taker: only one move of a bucket to a node can exist at a time.
type MoveName = (String, String);

fn move_name(it: &MoveStatus) -> MoveName {
    (it.bucket.clone(), it.taker.clone())
}

/// Passes on an operator's request. The control plane carries it out asynchronously; an obviously invalid
/// request is refused here.
pub(crate) fn ask(
    data: &Data,
    control: &ControlHandle,
    ask: OperatorRequest,
) -> Result<(), String> {
    objection(&data.map(), &ask).map_or(Ok(()), Err)?;
    if matches!(ask, OperatorRequest::LeaveFor { .. }) && !data.kept.has_directory() {
        let text = "this node has no data directory to keep its copies in; start it with --data-dir, \
                    or let it leave for good";
        return Err(text.to_owned());
    }
    control.ask(ask, |_| {});
    Ok(())
}

impl ClusterView {
    /// Refreshes the knowledge of the control plane. Called periodically; nothing waits for it.
    pub(crate) fn refresh(&self, control: &ControlHandle) {
        if self.looks.lock().is_time_to_ask() {
            control.tell(Input::LookAround);
        }
        let known = Arc::clone(&self.known);
        control.look(move |control| known.lock().update(control));
    }

    /// Records a map change and notifies the subscribers of the map channel.
    pub(crate) fn map_changed(
        &self,
        before: &Map,
        changed: &MapChanged,
        exchange: &Exchange,
        links: &Links,
        mailboxes: &Mailboxes,
    ) {
        let map = &changed.map;
        if let Some(entry) = &changed.entry {
            let (changes, outcomes) = (&entry.changes, &changed.outcomes);
            let mut chronicle = self.chronicle.lock();
            chronicle.note(before, map, changes, outcomes, clock::now().0);
            say(&chronicle, changes, outcomes);
        }
        // Under the lock: CLUSTER WATCH subscribes first, and then reads an epoch that no push has missed.
        let mut journal = self.journal.lock();
        let journal = journal.get_or_insert_with(|| MapJournal::new(Arc::clone(map)));
        let Some(step) = journal.follow(map) else { return };
        let channel = MAP_CHANNEL.as_bytes();
        if exchange.route(Space::Global, channel).is_none() {
            return; // Nobody watches.
        }
        let text = describe(&step);
        let post = Post { space: Space::Global, channel, payload: text.as_bytes() };
        let mut outbox = PubsubOutbox::new(mailboxes.len());
        outbox.publish_here(exchange, None, post, Audience::All);
        outbox.post(links, mailboxes, None);
    }

    /// Returns the epoch of the last map that subscribers of the map channel were told of.
    pub(crate) fn map_epoch(&self) -> Epoch {
        self.journal.lock().as_ref().map_or(Epoch(0), |journal| journal.map().epoch())
    }

    /// Returns the changes of the map since an epoch of this history.
    pub(crate) fn map_since(
        &self,
        epoch: Epoch,
        history: Option<&str>,
    ) -> Result<MapStep, StepError> {
        let journal = self.journal.lock();
        let journal = journal.as_ref().ok_or(StepError::Ahead { epoch: Epoch(0) })?;
        journal.since(epoch, history)
    }

    /// Returns the full status.
    pub(crate) fn status(&self, data: &Data, merging: &Merging, vitals: Vitals) -> Status {
        self.note_viewer();
        let view = data.view.load_full();
        let status = Status::of(view.map(), view.me());
        self.complete(view.map(), status, data, merging, vitals)
    }

    /// Returns the status without the buckets, for a caller that has them already.
    pub(crate) fn status_without_buckets(
        &self,
        data: &Data,
        merging: &Merging,
        vitals: Vitals,
    ) -> Status {
        self.note_viewer();
        self.known_status(data, merging, vitals)
    }

    /// Returns the same as far as it is known already: this causes no questions to the other nodes.
    pub(crate) fn known_status(&self, data: &Data, merging: &Merging, vitals: Vitals) -> Status {
        let view = data.view.load_full();
        let status = Status::without_buckets(view.map(), view.me());
        self.complete(view.map(), status, data, merging, vitals)
    }

    fn note_viewer(&self) {
        self.looks.lock().last = Some(Instant::now());
    }

    /// Adds the facts that are not in the map.
    fn complete(
        &self,
        map: &Map,
        mut status: Status,
        data: &Data,
        merging: &Merging,
        vitals: Vitals,
    ) -> Status {
        let me = data.me;
        let known = self.known.lock();
        status.cluster = known.cluster.map_or_else(String::new, |id| format!("{:016x}", id.0));
        status.leader = known.leader.map(|leader| name(map, leader));
        if !known.voters.is_empty() {
            let voters: BTreeSet<String> =
                known.voters.iter().map(|voter| digits(*voter)).collect();
            for member in &mut status.members {
                let votes = voters.contains(&member.id);
                member.vote = if votes { Vote::Voter } else { Vote::Learner };
            }
        }
        known.levels.iter().for_each(|(node, levels)| status.add_levels(*node, levels));
        known.sights.iter().for_each(|(node, sight)| status.add_sight(*node, sight));
        let mut mine = Sight { vitals, moving: known.moving.clone() };
        if let (Some(told), Some(fill)) = (&mut mine.moving, mine.vitals.fill)
            && told.bucket == fill.bucket.to_string()
        {
            (told.sent_bytes, told.percent) = (fill.sent_bytes, fill.percent);
        }
        status.add_sight(me, &mine);
        for (node, silent) in &known.silent {
            if let Some(member) = status.member_mut(*node) {
                member.silent_millis = Some(millis(*silent));
            }
        }
        for (node, millis) in &known.skews {
            if let Some(member) = status.member_mut(*node) {
                member.clock_ahead_millis = Some(*millis);
            }
        }
        status.moves.iter_mut().for_each(|it| {
            let since = known.since.get(&move_name(it));
            it.millis = since.map_or(0, |since| millis(since.elapsed()));
        });
        drop(known);
        status.merged = merging.tally();
        status.yields |= merging.yields().is_some();
        status.mark_pending(map, me, &data.pending.load());
        status.fills = (*data.sent.lock()).into();
        data.add_sync(map, &mut status);
        let chronicle = self.chronicle.lock();
        status.changes = chronicle.latest(CHANGES_TOLD);
        status.gone = chronicle.gone(map, clock::now().0.saturating_sub(millis(GONE_TOLD_FOR)));
        status
    }
}

impl Looks {
    /// Returns whether the other nodes are to be queried now: at intervals, and only while there is a viewer.
    fn is_time_to_ask(&mut self) -> bool {
        let within = |time: Option<Instant>, long| time.is_some_and(|at| at.elapsed() < long);
        let due = within(self.last, LOOKS_FOR) && !within(self.asked, ASKS_EVERY);
        if due {
            self.asked = Some(Instant::now());
        }
        due
    }
}

/// Logs changes: those of members at `info` or `warn`, those of buckets only at `debug`.
fn say(chronicle: &Chronicle, changes: &[Change], outcomes: &[ChangeOutcome]) {
    let applied = changes.iter().zip(outcomes).filter(|(_, is)| **is == ChangeOutcome::Applied);
    let applied: Vec<&Change> = applied.map(|(change, _)| change).collect();
    // The chronicle lists the newest change first.
    for (told, change) in chronicle.latest(applied.len()).iter().rev().zip(applied) {
        let line = format!("{}: {}", told.what, told.why);
        match change {
            Change::AddBackup { .. } | Change::Promote { .. } | Change::DropBackup { .. } => {
                log::debug("map", &line);
            }
            Change::Dead(_) | Change::Recreate { .. } | Change::Yield(_) => log::warn("map", &line),
            Change::Join(_)
            | Change::Leave { .. }
            | Change::Away { .. }
            | Change::Forget(_)
            | Change::Split(_)
            | Change::Set(_)
            | Change::KeptCopiesHandedOver { .. }
            | Change::Write { .. } => log::info("map", &line),
        }
    }
}

impl ControlView {
    fn update(&mut self, control: &Control) {
        self.cluster = Some(control.cluster());
        self.leader = control.leader();
        self.voters.clone_from(&control.configuration().voters);
        self.levels.clone_from(control.levels_of_others());
        self.sights.clone_from(control.sights());
        self.moving = control.moving();
        let members = control.map().map(|map| map.members()).unwrap_or_default();
        let silent = members.iter().filter_map(|it| Some((it.id, control.silence_of(it.id)?)));
        self.silent = silent.collect();
        self.skews = control.skews().collect();
        let others = self.sights.values().filter_map(|sight| sight.moving.as_ref());
        let moves: BTreeSet<MoveName> = self.moving.iter().chain(others).map(move_name).collect();
        self.since.retain(|name, _| moves.contains(name));
        for name in moves {
            self.since.entry(name).or_insert_with(Instant::now);
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

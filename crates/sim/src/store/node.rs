//! One process: the work of a server's threads, one step at a time. Nothing is decided here; where the server
//! has a file for the same work, a comment names it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::Moment;
use cluster::consensus::Saved;
use cluster::control::{Action, Control, Input};
use cluster::data::{ApplyContext, FrameOutcome, Intake, Mover, MoverInput, Plane, follow};
use cluster::map::{LogIndex, Map, Member, Peer};
use cluster::replication::{BackFrame, Role, first_answer};
use cluster::serving::ServingPlane;
use placement::Slot;
use sim_engine::StreamId;
use store::{Touch, Version};

use super::Sabotage;
use super::applying::Applier;
use super::clients::{Request, Told};
use super::clock::Clock;
use super::merging::Merging;
use super::plane::SimPlane;
use super::serving::Counter;

pub(super) struct Node {
    pub me: Peer,
    pub clock: Clock,
    pub control: Control,
    pub plane: SimPlane,
    pub mover: Mover,
    pub mover_inputs: Vec<MoverInput>,
    /// Time of the next run of the mover's thread, by the true time.
    pub mover_due: Moment,
    intakes: BTreeMap<Peer, Intake>,
    /// Intakes of processes that are no longer members: their connections last until somebody closes them.
    former_intakes: BTreeMap<Peer, Intake>,
    /// Bytes that arrived on a stream and are not taken in yet.
    incoming: BTreeMap<StreamId, Vec<u8>>,
    /// Incomplete answers.
    answers: BTreeMap<StreamId, Vec<u8>>,
    pub lease_until: Moment,
    pub disk: Saved,
    /// Time that its disk takes for a write.
    pub disk_takes: Duration,
    /// Effects to carry out when the disk is done, if it is writing.
    pub waits_to_do: Option<Vec<Action>>,
    pub applier: Applier,
    pub is_stopped: bool,
    /// Time since which it has not been stopped.
    pub runs_since: Moment,
    /// Input that arrived while the process was stopped, or its control thread waited for the disk.
    pub inbox: Vec<Input>,
    pub requests: Vec<Request>,
    pub counter: Counter,
    pub sabotage: Option<Sabotage>,
    /// Answers to be sent to clients.
    pub told: Vec<(Request, Told)>,
    /// Writes that are being acknowledged now.
    pub acknowledged: Vec<Written>,
    /// Input to be given to the control plane.
    pub inputs: Vec<Input>,
    pub broken: Option<String>,
    pub merging: Merging,
}

/// State of a slot after a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub slot: Slot,
    pub reign: LogIndex,
    pub version: Version,
    /// Number of nodes that counted as copies at the time of the write.
    pub copies: usize,
}

impl Node {
    pub(super) fn new(
        me: &Member,
        clock: Clock,
        now: Moment,
        control: Control,
        disk: Saved,
    ) -> Node {
        let shown = clock.at(now);
        Node {
            me: me.peer(),
            clock,
            control,
            plane: SimPlane::new(me.peer(), shown),
            mover: Mover::new(shown),
            mover_inputs: Vec::new(),
            mover_due: now,
            intakes: BTreeMap::new(),
            former_intakes: BTreeMap::new(),
            incoming: BTreeMap::new(),
            answers: BTreeMap::new(),
            lease_until: Moment::START,
            disk,
            disk_takes: Duration::ZERO,
            waits_to_do: None,
            applier: Applier::default(),
            is_stopped: false,
            runs_since: now,
            inbox: Vec::new(),
            requests: Vec::new(),
            counter: Counter::default(),
            sabotage: None,
            told: Vec::new(),
            acknowledged: Vec::new(),
            inputs: Vec::new(),
            broken: None,
            merging: Merging::default(),
        }
    }

    pub(super) fn has_lease(&self, now: Moment) -> bool {
        self.clock.at(now) < self.lease_until
    }

    /// Returns whether it answers for the slot at this moment.
    pub(super) fn serves(&self, slot: Slot, now: Moment) -> bool {
        self.has_lease(now) && self.plane.with_slot(slot, |it| it.replica().is_serving())
    }

    /// Returns whether it is the old primary in a handover of the slot's bucket.
    pub(super) fn is_handing_over(&self, slot: Slot) -> bool {
        self.plane.with_slot(slot, |it| it.replica().role() == Role::Paused)
    }

    pub(super) fn map(&self) -> Option<Arc<Map>> {
        self.plane.known_map()
    }

    /// Returns whether its control thread waits for the disk.
    pub(super) fn is_writing(&self) -> bool {
        self.waits_to_do.is_some()
    }

    pub(super) fn breaks(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    // ---- A new map (`data/follow.rs`).

    pub(super) fn follow(&mut self, map: &Arc<Map>) {
        let others: Vec<Peer> = map.members().iter().map(Member::peer).collect();
        let others: Vec<Peer> = others.into_iter().filter(|peer| peer.id != self.me.id).collect();
        self.plane.follow_members(&others);
        let before = self.plane.known_map();
        follow(&self.plane, map, before.as_deref(), |_| {});
        let plane = &self.plane;
        let former = self.intakes.extract_if(.., |peer, intake| {
            let touch = Touch::Nothing;
            let mut apply_context = ApplyContext { plane, touch, applied: |_| {} };
            intake.follow(peer.id, map, &mut apply_context);
            let is_over = intake.is_over(Some(*peer).filter(|peer| others.contains(peer)));
            if is_over {
                intake.end(&mut apply_context);
            }
            is_over
        });
        self.former_intakes.extend(former);
        self.mover_inputs.push(MoverInput::MapChanged);
    }

    /// Describes its links and the bytes that have arrived, for debugging.
    pub(super) fn wires(&self) -> String {
        let links = self.plane.links.borrow();
        let out = links.living().map(|(.., link)| {
            let outbox = link.backlog.outbox();
            let (acked, last) = (outbox.acked().0, outbox.last().0);
            format!("  to {:?} on {:?}: acked {acked} of {last}\n", link.peer, link.stream)
        });
        let come = self
            .incoming
            .iter()
            .map(|(stream, unread)| format!("  on {stream:?}: {} bytes wait\n", unread.len()));
        let known = self
            .intakes
            .iter()
            .map(|(peer, intake)| format!("  from {peer:?}: next {:?}\n", intake.inbox.next()));
        out.chain(come).chain(known).collect()
    }

    pub(super) fn has_parked(&self) -> bool {
        self.counter.has_parked()
    }

    // ---- Streams (`worker/links.rs`).

    /// Accepts a connection of another process. Returns the number of the next frame wanted from it.
    pub(super) fn accept(&mut self, from: Peer, stream: StreamId) -> u64 {
        self.former_intakes.remove(&from);
        let intake = self.intakes.entry(from).or_default();
        intake.connect();
        self.incoming.insert(stream, Vec::new());
        intake.inbox.next().0
    }

    pub(super) fn forget_stream(&mut self, stream: StreamId) {
        self.incoming.remove(&stream);
        self.answers.remove(&stream);
        for (.., link) in self.plane.links.borrow_mut().living_mut() {
            link.stream = link.stream.filter(|known| *known != stream);
        }
    }

    /// Takes in frames that have arrived. Returns the bytes to answer.
    pub(super) fn on_frames(&mut self, stream: StreamId, from: Peer, bytes: &[u8]) -> Vec<u8> {
        let mut back = Vec::new();
        let Some(mut unread) = self.incoming.remove(&stream) else { return back };
        unread.extend_from_slice(bytes);
        let former = self.former_intakes.get_mut(&from);
        let intake = former.unwrap_or_else(|| self.intakes.entry(from).or_default());
        let mut at = 0;
        loop {
            let peeked = match intake.inbox.peek(&unread[at..]) {
                Ok(peeked) => peeked,
                Err(error) => {
                    self.broken = Some(format!("a frame that makes no sense: {error:?}"));
                    return back;
                }
            };
            let Some((number, frame, length)) = peeked else { break };
            let (plane, touch) = (&self.plane, Touch::Nothing);
            let mut apply_context = ApplyContext { plane, touch, applied: |_| {} };
            match intake.take(number, &frame, &mut apply_context) {
                FrameOutcome::Done | FrameOutcome::Pubsub(_) => {}
                FrameOutcome::AnnouncePromotion { bucket, epoch } => {
                    self.mover_inputs.push(MoverInput::AnnouncePromotion { bucket, epoch });
                }
                FrameOutcome::NotYet => break,
                FrameOutcome::Garbled => {
                    self.broken = Some(format!("a frame with garbage: {frame:?}"));
                    return back;
                }
            }
            intake.inbox.done();
            self.plane.heard.borrow_mut().insert(from.id, self.plane.now.get());
            at += length;
        }
        unread.drain(..at);
        intake.answer(&mut back);
        self.incoming.insert(stream, unread);
        back
    }

    /// Returns the streams with bytes that wait for a newer map.
    pub(super) fn waiting_streams(&self) -> Vec<StreamId> {
        let waits = self.incoming.iter().filter(|(_, unread)| !unread.is_empty());
        waits.map(|(stream, _)| *stream).collect()
    }

    pub(super) fn on_answers(&mut self, stream: StreamId, bytes: &[u8]) {
        let mut unread = self.answers.remove(&stream).unwrap_or_default();
        unread.extend_from_slice(bytes);
        let mut at = 0;
        while let Ok(Some((answer, length))) = first_answer(&unread[at..]) {
            at += length;
            self.on_answer(stream, answer);
        }
        unread.drain(..at);
        self.answers.insert(stream, unread);
    }

    fn on_answer(&mut self, stream: StreamId, answer: BackFrame) {
        let now = self.plane.now.get();
        let id = {
            let links = self.plane.links.borrow();
            let found = links.living().find(|(.., link)| link.stream == Some(stream));
            let Some((id, ..)) = found else { return };
            id
        };
        match answer {
            BackFrame::Ack(through) => {
                let mut links = self.plane.links.borrow_mut();
                let link = links.get_mut(id).expect("found above");
                if link.backlog.acknowledge(now, through).is_err() {
                    self.broken = Some(format!("{} acked {through:?}, never sent", link.peer.id));
                }
                self.mover_inputs.push(MoverInput::Acked);
            }
            BackFrame::Refused { frame, slot, reign } => {
                self.plane.refused_by(id, slot, frame);
                self.inputs.push(Input::NewerReignSeen { slot, reign });
            }
            BackFrame::FillRefused { fill } => {
                self.mover_inputs.push(MoverInput::FillRefused { fill });
            }
            BackFrame::StaleCopy { fill, slot, position } => {
                self.mover_inputs.push(MoverInput::StaleCopy { fill, slot, position });
            }
        }
    }

    /// Frees the copies that are being filled, as if the connection they came on was lost (a rule broken on
    /// purpose).
    pub(super) fn free_what_came(&mut self) {
        for slot in Slot::all() {
            self.plane.with_slot(slot, |state| state.abandon_filling(self.plane.seed()));
        }
    }

    /// Ends the process. Returns the waiting requests, which are never answered.
    pub(super) fn end(&mut self) -> Vec<Request> {
        self.counter.end()
    }
}

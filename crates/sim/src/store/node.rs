//! One process: what a server's threads do, one thing at a time. Nothing is decided here; where the
//! server has a file for it, it is named.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::consensus::Saved;
use cluster::control::{Control, Input};
use cluster::data::{Intake, Mover, Order, Plane, SlotState, Surface, Taken, follow};
use cluster::fill::ship;
use cluster::map::{LogIndex, Map, Member, Peer};
use cluster::replication::{BackFrame, Passage, Role, Standing, Subject, Ticket, first_answer};
use placement::Slot;
use store::{Cause, Effect, Key, NewValue, Recorded, SlotTable, Touch, UnixMillis, Version};

use super::Sabotage;
use super::bending::bend_rules;
use super::clients::{BRIEF, Request, Told};
use super::clock::Clock;
use super::linear::{Answer, Op};
use super::merging::Merging;
use super::network::StreamId;
use super::plane::SimPlane;

pub(super) struct Node {
    pub me: Peer,
    pub clock: Clock,
    pub control: Control,
    pub plane: SimPlane,
    pub mover: Mover,
    pub orders: Vec<Order>,
    /// When the mover's thread looks next, by the true time.
    pub mover_due: Duration,
    intakes: BTreeMap<Peer, Intake>,
    /// What came on a stream and is not taken in yet.
    incoming: BTreeMap<StreamId, Vec<u8>>,
    /// Answers that are not whole yet.
    answers: BTreeMap<StreamId, Vec<u8>>,
    pub lease_until: Duration,
    pub disk: Saved,
    pub is_stopped: bool,
    /// Since when it has not been stopped.
    pub runs_since: Duration,
    /// What came while the process was stopped.
    pub inbox: Vec<Input>,
    pub requests: Vec<Request>,
    held: Vec<Held>,
    parked: Vec<Request>,
    pub sabotage: Option<Sabotage>,
    /// What clients are to be told.
    pub told: Vec<(Request, Told)>,
    /// Writes that are being acknowledged now.
    pub acknowledged: Vec<Written>,
    /// What the control plane is to be told.
    pub inputs: Vec<Input>,
    pub broken: Option<String>,
    pub merging: Merging,
}

struct Held {
    request: Request,
    answer: Answer,
    ticket: Ticket,
    written: Option<Written>,
}

/// What a write made of its slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub slot: Slot,
    pub reign: LogIndex,
    pub version: Version,
}

impl Node {
    pub(super) fn new(
        (me, clock): (&Member, Clock),
        now: Duration,
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
            orders: Vec::new(),
            mover_due: now,
            intakes: BTreeMap::new(),
            incoming: BTreeMap::new(),
            answers: BTreeMap::new(),
            lease_until: Duration::ZERO,
            disk,
            is_stopped: false,
            runs_since: now,
            inbox: Vec::new(),
            requests: Vec::new(),
            held: Vec::new(),
            parked: Vec::new(),
            sabotage: None,
            told: Vec::new(),
            acknowledged: Vec::new(),
            inputs: Vec::new(),
            broken: None,
            merging: Merging::default(),
        }
    }

    pub(super) fn has_lease(&self, now: Duration) -> bool {
        self.clock.at(now) < self.lease_until
    }

    /// Whether it answers for the slot at this moment.
    pub(super) fn serves(&self, slot: Slot, now: Duration) -> bool {
        self.has_lease(now) && self.plane.with_slot(slot, |it| it.duty.role == Role::Serving)
    }

    pub(super) fn map(&self) -> Option<Arc<Map>> {
        self.plane.known_map()
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
        if self.breaks(Sabotage::NoComparison) {
            self.serve_unsettled();
        }
        let plane = &self.plane;
        self.intakes.retain(|peer, intake| {
            let touch = Touch::Nothing;
            let mut surface = Surface { plane, touch, applied: |_| {} };
            intake.follow(map, &mut surface);
            let is_over = intake.is_over(Some(*peer).filter(|peer| others.contains(peer)));
            if is_over {
                intake.end(&mut surface);
            }
            !is_over
        });
        self.orders.push(Order::MapChanged);
        self.release(MapChanged::Yes);
    }

    /// Tries again what waited for a handover.
    pub(super) fn unpark(&mut self, now: Duration) {
        for request in core::mem::take(&mut self.parked) {
            self.execute(now, request);
        }
    }

    /// Its links and what has come in, for who looks for a mistake.
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
        !self.parked.is_empty()
    }

    // ---- Streams (`worker/links.rs`).

    /// Another process has dialled; the number of the frame that is wanted from it.
    pub(super) fn accept(&mut self, from: Peer, stream: StreamId) -> u64 {
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

    /// Frames have come; the bytes to answer.
    pub(super) fn on_frames(&mut self, stream: StreamId, from: Peer, bytes: &[u8]) -> Vec<u8> {
        let mut back = Vec::new();
        let Some(mut unread) = self.incoming.remove(&stream) else { return back };
        unread.extend_from_slice(bytes);
        let intake = self.intakes.entry(from).or_default();
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
            bend_rules(self.sabotage, &self.plane, &frame);
            let (plane, touch) = (&self.plane, Touch::Nothing);
            let mut surface = Surface { plane, touch, applied: |_| {} };
            match intake.take(number, &frame, &mut surface) {
                Taken::Done | Taken::News(_) => {}
                Taken::NotYet => break,
                Taken::Garbled => {
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

    /// Streams with something that waits for the map.
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
        self.release(MapChanged::No);
    }

    fn on_answer(&mut self, stream: StreamId, answer: BackFrame) {
        let now = self.plane.now.get();
        let mut links = self.plane.links.borrow_mut();
        let mut living = links.living_mut().map(|(.., link)| link);
        let Some(link) = living.find(|link| link.stream == Some(stream)) else { return };
        match answer {
            BackFrame::Ack(through) => {
                if link.backlog.acknowledge(now, through).is_err() {
                    self.broken = Some(format!("{} acked {through:?}, never sent", link.peer.id));
                }
                self.orders.push(Order::Acked);
            }
            BackFrame::Refused { frame, slot, reign } => {
                link.refusals.note(slot, frame);
                self.inputs.push(Input::Reigned { slot, reign });
            }
            BackFrame::FillRefused { fill } => self.orders.push(Order::FillRefused { fill }),
            BackFrame::Kept { fill, slot, position } => {
                self.orders.push(Order::Kept { fill, slot, position });
            }
        }
    }

    /// The process has lost the connection on which this one had sent (a rule broken on purpose).
    pub(super) fn free_what_came(&mut self) {
        for slot in Slot::all() {
            self.plane.with_slot(slot, |state| {
                if state.duty.role == Role::Taking {
                    let _ = state.table.begin_copy(Version::ZERO, self.plane.seed());
                    state.duty.role = Role::Absent;
                }
            });
        }
    }

    /// A new primary serves without having asked the other backups what they have (a rule broken on
    /// purpose).
    fn serve_unsettled(&mut self) {
        for slot in Slot::all() {
            self.plane.with_slot(slot, |state| {
                if state.duty.role == Role::Settling {
                    state.duty.role = Role::Serving;
                }
            });
        }
    }

    /// A backup goes by its own clock (a rule broken on purpose).
    pub(super) fn expire_as_backup(&mut self, now: Duration) {
        let wall = UnixMillis(self.clock.wall_millis(now));
        let key = self.plane.seed().key(BRIEF.as_bytes());
        self.plane.with_slot(key.slot(), |state| {
            let has_expired = state.table.peek(&key).is_some_and(|found| found.is_expired(wall));
            if state.duty.role == Role::Backup && has_expired {
                let effect = Effect::Remove { key, cause: Cause::Expired };
                let version = state.table.version();
                let _ = state.table.apply(&effect, version, Touch::Nothing, self.plane.seed());
            }
        });
    }

    // ---- Commands (`worker/execute.rs`).

    pub(super) fn execute(&mut self, now: Duration, request: Request) {
        let slot = Slot::of(request.key.as_bytes());
        let role = self.plane.with_slot(slot, |state| state.duty.role);
        let pauses = role == Role::Paused && !self.breaks(Sabotage::ServesWhilePaused);
        match role {
            _ if pauses => self.parked.push(request),
            Role::Heir | Role::Settling => self.parked.push(request),
            Role::Serving | Role::Paused => self.run(now, slot, request),
            Role::Backup | Role::Absent | Role::Taking | Role::Kept => {
                let primary = self.map().and_then(|map| map.bucket_of(slot).primary());
                let told = match primary.filter(|primary| *primary != self.me.id) {
                    Some(primary) => Told::Moved(primary),
                    None => Told::NotNow,
                };
                self.told.push((request, told));
            }
        }
    }

    fn run(&mut self, now: Duration, slot: Slot, request: Request) {
        let wall = UnixMillis(self.clock.wall_millis(now));
        let plane = &self.plane;
        let (answer, written, ticket) = plane.with_slot(slot, |state| {
            let (answer, unit) = run_op(&mut state.table, &request, wall, plane.seed());
            if let Some(unit) = &unit {
                let SlotState { table, duty } = state;
                ship(table, duty, unit, plane.seed(), |link, frame| {
                    plane.with_outbox(link, |outbox| outbox.push(frame))
                });
            }
            let (reign, version) = (state.duty.reign, state.table.version());
            let written = unit.map(|_| Written { slot, reign, version });
            let waits = state.duty.unsettled(|link| plane.acked_for(link, slot));
            (answer, written, Ticket { of: Subject::Slot(slot, reign), waits })
        });
        let ticket = self.without_takers(slot, ticket);
        // `Worker::answer`: what ran while somebody else may have served is not told.
        if !self.has_lease(now) && !self.breaks(Sabotage::NoLeaseCheck) {
            let sabotaged = self.breaks(Sabotage::ErrorForUnacked);
            let told = if sabotaged { Told::NotDone } else { Told::Closed };
            return self.told.push((request, told));
        }
        let held = Held { request, answer, ticket, written };
        if held.ticket.waits.is_empty() || self.breaks(Sabotage::RepliesAtOnce) {
            self.tell(held);
        } else {
            self.held.push(held);
        }
    }

    /// A rule broken on purpose: only those in the map are waited for.
    fn without_takers(&self, slot: Slot, mut ticket: Ticket) -> Ticket {
        if self.breaks(Sabotage::NoWaitSet)
            && let Some(map) = self.map()
        {
            let bucket = map.bucket_of(slot);
            let backups = bucket.backups().iter();
            let links: Vec<_> = backups.filter_map(|it| self.plane.link_to(*it)).collect();
            ticket.waits.retain(|wait| links.contains(&wait.link));
        }
        ticket
    }

    fn tell(&mut self, held: Held) {
        self.acknowledged.extend(held.written);
        self.told.push((held.request, Told::Answer(held.answer)));
    }

    /// Sends the replies that need wait no longer (`worker/hold.rs`).
    fn release(&mut self, map_changed: MapChanged) {
        self.release_merged();
        for held in core::mem::take(&mut self.held) {
            match self.judge(&held.ticket, map_changed) {
                Passage::Free => self.tell(held),
                Passage::Waiting => self.held.push(held),
                Passage::Barred if self.breaks(Sabotage::ErrorForUnacked) => {
                    self.told.push((held.request, Told::NotDone));
                }
                Passage::Barred => self.told.push((held.request, Told::Closed)),
            }
        }
    }

    /// Whether what waits with this ticket may leave by all that is known now.
    pub(super) fn judge_now(&self, ticket: &Ticket) -> Passage {
        self.judge(ticket, MapChanged::Yes)
    }

    /// `data/judge.rs`.
    fn judge(&self, ticket: &Ticket, map_changed: MapChanged) -> Passage {
        let acked = |link, slot: Option<Slot>| match slot {
            Some(slot) => self.plane.acked_for(link, slot),
            None => self.plane.acked(link),
        };
        if ticket.is_acked(acked) {
            return Passage::Free;
        }
        match (map_changed, ticket.slot()) {
            (MapChanged::Yes, Some(slot)) => {
                let standing = self.plane.with_slot(slot, |state| Standing {
                    reign: state.duty.is_primary().then_some(state.duty.reign),
                    wait_set: state.duty.wait_set().collect(),
                });
                ticket.passage(&standing, acked)
            }
            (MapChanged::Yes | MapChanged::No, _) => Passage::Waiting,
        }
    }

    /// The process ends: what waits is never answered.
    pub(super) fn end(&mut self) -> Vec<Request> {
        let held = core::mem::take(&mut self.held).into_iter().map(|held| held.request);
        held.chain(core::mem::take(&mut self.parked)).collect()
    }
}

/// How long a key is there that expires.
const LENT_FOR_MILLIS: u64 = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum MapChanged {
    Yes,
    No,
}

/// Runs an operation as its command does: the answer, and the effects if there are any.
fn run_op(
    table: &mut SlotTable,
    request: &Request,
    wall: UnixMillis,
    seed: &store::Seed,
) -> (Answer, Option<Vec<u8>>) {
    let key: Key<'_> = seed.key(request.key.as_bytes());
    let found = table.peek(&key);
    let has_expired = found.is_some_and(|found| found.is_expired(wall));
    let found = found.filter(|_| !has_expired);
    let value = found.map(|found| found.value().to_bytes().into_owned());
    let value = value.map(|bytes| String::from_utf8(bytes).expect("clients write text"));
    let number = |value: &Option<String>| value.as_ref().map_or(0, |it| it.parse().unwrap_or(0));
    let put = |value| Effect::Put { key, value, expires_at: None };
    let (answer, effect) = match &request.op {
        Op::Get if has_expired => {
            (Answer::Value(None), Some(Effect::Remove { key, cause: Cause::Expired }))
        }
        Op::Get => (Answer::Value(value), None),
        Op::Lend(new) => {
            let expires_at = Some(UnixMillis(wall.0 + LENT_FOR_MILLIS));
            let value = NewValue::Raw(new.as_bytes());
            (Answer::Done, Some(Effect::Put { key, value, expires_at }))
        }
        Op::Set(new) => (Answer::Done, Some(put(NewValue::Raw(new.as_bytes())))),
        Op::Del if value.is_none() => (Answer::Count(0), None),
        Op::Del => (Answer::Count(1), Some(Effect::Remove { key, cause: Cause::Deleted })),
        Op::Append(tail) => {
            let length = value.as_ref().map_or(0, String::len) + tail.len();
            let effect = match value {
                Some(_) => Effect::Append { key, tail: tail.as_bytes() },
                None => put(NewValue::Raw(tail.as_bytes())),
            };
            (Answer::Count(i64::try_from(length).expect("short")), Some(effect))
        }
        Op::Incr => {
            let next: i64 = number(&value) + 1;
            (Answer::Count(next), Some(put(NewValue::Integer(next))))
        }
    };
    let unit = effect.map(|effect| {
        let mut unit = Vec::new();
        let version = table.next_version(wall);
        Recorded::write(key.slot(), (table.version(), version), &effect, &mut unit);
        let _ = table.apply(&effect, version, Touch::Nothing, seed);
        unit
    });
    (answer, unit)
}

//! The control thread: it feeds `cluster::control::Control` with messages from its links, with inputs from
//! other threads and with the time, and carries out the resulting actions (`carry.rs`). It waits for nothing
//! but the disk: another thread applies the actions that need a slot's lock (`applier.rs`).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use cluster::Moment;
use cluster::consensus::Saved;
use cluster::control::{Action, Answer, Control, Gone, Input, Message, Start};
use cluster::map::{NodeId, Peer};
use mio::Events;
use net::{Poller, WAKER};

use super::applier::Applier;
use super::dialer::{self, Dialed};
use super::dials::{DialTarget, Dials};
use super::handle::{ControlEvent, ControlHandle};
use super::hello::{HandshakeRefusal, HelloError, Purpose};
use super::links::{ControlLinks, LinkFailure, MadeBy};
use super::{PeerContext, StartupPhase, StartupState, Unwanted};
use crate::clock;
use crate::data::boottime;
use crate::disk::SharedDirectory;

const EVENTS_MAX: usize = 256;
/// Timeout of leaving without a lease: after this time the node will not get one any more.
const CUT_OFF_MAX: Duration = Duration::from_secs(10);
/// Interval at which nodes tell each other the time of their wall clocks.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum sleep: below this, the system would not sleep anyway.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// A control thread that does not run yet.
pub(super) struct PreparedThread {
    poller: Poller,
    events: Receiver<ControlEvent>,
}

pub(super) fn prepare() -> io::Result<(ControlHandle, PreparedThread)> {
    let (poller, waker) = Poller::new()?;
    let (control_handle, events) = ControlHandle::new(waker);
    Ok((control_handle, PreparedThread { poller, events }))
}

pub(super) struct ControlThread {
    pub(super) control: Control,
    pub(super) context: Arc<PeerContext>,
    pub(super) applier: Applier,
    pub(super) directory: Option<SharedDirectory>,
    pub(super) startup: Arc<StartupState>,
    pub(super) links: ControlLinks,
    pub(super) dials: Dials,
    /// Callbacks that wait for an answer, by the number of their question.
    pub(super) asked: BTreeMap<u64, Box<dyn FnOnce(Answer) + Send>>,
    last_ask: u64,
    poller: Poller,
    events: Receiver<ControlEvent>,
    /// Links with more to read than fits in one turn.
    unread: Vec<NodeId>,
    me: Peer,
    pub(super) lease_until: Moment,
    leaving_since: Option<Moment>,
    /// The time at which the wall clock is read next.
    clock_due: Moment,
    stopping: bool,
}

impl ControlThread {
    pub(super) fn new(
        prepared: PreparedThread,
        start: Start,
        context: Arc<PeerContext>,
        applier: Applier,
        directory: Option<SharedDirectory>,
        startup: Arc<StartupState>,
    ) -> ControlThread {
        let PreparedThread { poller, events } = prepared;
        let me = start.me.peer();
        ControlThread {
            control: Control::new(boottime::now(), start),
            context,
            applier,
            directory,
            startup,
            links: ControlLinks::default(),
            dials: Dials::default(),
            asked: BTreeMap::new(),
            last_ask: 0,
            poller,
            events,
            unread: Vec::new(),
            me,
            lease_until: Moment::START,
            leaving_since: None,
            clock_due: Moment::START,
            stopping: false,
        }
    }

    /// Runs until it is asked to stop. Returns the state that the next life of this process needs.
    pub(super) fn run(mut self) -> Saved {
        let mut ready = Events::with_capacity(EVENTS_MAX);
        let roster = self.context.roster.load_full().expect("a node starts with its roster");
        self.dials.follow(boottime::now(), &roster);
        self.handle(Input::Tick);
        while !self.stopping {
            self.dial();
            self.flush();
            self.look_around();
            let timeout = self.sleep();
            self.poller.wait(&mut ready, Some(timeout));
            let polled_at = boottime::now();
            self.read_links(&ready);
            while let Ok(event) = self.events.try_recv() {
                self.on_event(event);
            }
            if self.unread.is_empty() {
                self.control.note_read_until(polled_at);
            }
            if boottime::now() >= self.control.wake_at() {
                self.handle(Input::Tick);
            }
            self.tell_clock();
            self.keep_alive();
        }
        self.control.to_saved()
    }

    /// Passes the wall clock on: other nodes compare theirs with it.
    fn tell_clock(&mut self) {
        let now = boottime::now();
        if now >= self.clock_due {
            self.clock_due = now + CLOCK_INTERVAL;
            self.handle(Input::Clock(clock::now()));
        }
    }

    fn sleep(&self) -> Duration {
        if !self.unread.is_empty() {
            return Duration::ZERO;
        }
        let due = [Some(self.control.wake_at()), self.dials.next_due(), self.links.next_due()];
        let due = due.into_iter().flatten().fold(self.clock_due, Moment::min);
        let is_awaited = self.startup.is_awaited() && !self.applier.has_caught_up();
        if is_awaited { SLEEP_MIN } else { due.since(boottime::now()).max(SLEEP_MIN) }
    }

    /// Passes one input to the core, and carries out the resulting actions.
    pub(super) fn handle(&mut self, input: Input) {
        let mut actions: Vec<Action> = Vec::new();
        self.control.handle(boottime::now(), input, &mut actions);
        self.carry_out(actions);
    }

    fn on_event(&mut self, event: ControlEvent) {
        match event {
            ControlEvent::Input(input) => self.handle(input),
            // Dropping the callback tells the requester that there is no answer.
            ControlEvent::OperatorRequest { .. } if self.control.is_gone() => {}
            ControlEvent::OperatorRequest { ask, then } => {
                self.last_ask += 1;
                self.asked.insert(self.last_ask, then);
                self.handle(Input::OperatorRequest { id: self.last_ask, ask });
            }
            ControlEvent::Look(look) => look(&self.control),
            ControlEvent::Accepted { peer, stream } => self.add_link(peer, MadeBy::Them, stream),
            ControlEvent::Dialed { target, dialed } => self.on_dialed(&target, dialed),
            ControlEvent::DataLost(peer) => {
                self.dials.lost(boottime::now(), self.me, peer, Purpose::Data);
            }
            ControlEvent::Stop => self.stopping = true,
        }
    }

    // ---- Links.

    fn dial(&mut self) {
        let due = self.dials.due(boottime::now());
        if due.is_empty() {
            return;
        }
        let roster = self.context.roster.load_full().expect("only a roster's nodes are dialed");
        for target in due {
            dialer::dial(target, &roster, &self.context.secret, &self.context.control_handle);
        }
    }

    fn on_dialed(&mut self, target: &DialTarget, dialed: Dialed) {
        let (now, wanted) = (boottime::now(), target.to.peer);
        let (standing, stream) = match dialed {
            Ok(made) => made,
            Err(error) => {
                self.complain(target, &error);
                self.dials.failed(now, wanted, target.purpose);
                if let HelloError::Refused(refusal) = error {
                    self.on_refused(wanted, refusal);
                }
                return;
            }
        };
        let DialTarget { to, purpose } = target;
        match purpose {
            Purpose::Control => self.add_link(standing.me, MadeBy::Me, stream),
            Purpose::Data if standing.me != to.peer => self.dials.failed(now, wanted, *purpose),
            Purpose::Data => match self.context.data.outgoing(to.peer, stream, standing.expects) {
                Ok(()) => self.dials.up(to.peer, *purpose),
                Err(Unwanted) => self.dials.failed(now, wanted, *purpose),
            },
            // The node is of this very generation: it will be in the map in a moment.
            Purpose::Meet => self.dials.failed(now, wanted, *purpose),
            Purpose::Merge => unreachable!("who hands over makes its own link"),
            Purpose::Timers => unreachable!("timers make their own links"),
            Purpose::Join => unreachable!("a member asks nobody to join"),
        }
    }

    /// Handles a refused dial. A node that was away for long learns in this way that it was declared dead, or
    /// that the others have gone on without it.
    fn on_refused(&mut self, by: Peer, refusal: HandshakeRefusal) {
        match (refusal, self.control.generation()) {
            (HandshakeRefusal::NoMember(index), Some(generation)) => {
                let message = Message::LeaseRefused { generation, index };
                self.handle(Input::Message { from: by, message });
            }
            (HandshakeRefusal::OtherGeneration(there), _) => self.handle(Input::Met(there)),
            (HandshakeRefusal::NoMember(_), None)
            | (
                HandshakeRefusal::SecretDiffers
                | HandshakeRefusal::OtherCluster
                | HandshakeRefusal::OtherNode(_)
                | HandshakeRefusal::OtherBoot
                | HandshakeRefusal::NotJoined,
                _,
            ) => {}
        }
    }

    fn add_link(&mut self, peer: Peer, made_by: MadeBy, stream: std::net::TcpStream) {
        let (now, registry) = (boottime::now(), self.poller.registry());
        match self.links.add(now, self.me.id, peer, made_by, stream, registry) {
            // This link is up, or a better one was there already.
            Ok(_) => {
                self.dials.up(peer, Purpose::Control);
                self.handle(Input::LinkUp(peer.id));
            }
            Err(_) => self.dials.failed(now, peer, Purpose::Control),
        }
        // A new link may have brought messages already.
        self.unread.push(peer.id);
    }

    fn read_links(&mut self, ready: &Events) {
        let tokens = ready.iter().map(mio::event::Event::token).filter(|token| *token != WAKER);
        let readable = tokens.filter_map(|token| self.links.by_token(token));
        let mut nodes: Vec<NodeId> = readable.chain(std::mem::take(&mut self.unread)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let mut messages = Vec::new();
            let read = self.links.read(boottime::now(), node, |from, message| {
                messages.push(Input::Message { from, message });
            });
            messages.into_iter().for_each(|message| self.handle(message));
            match read {
                Ok(true) => self.unread.push(node),
                Ok(false) => {}
                Err(broken) => self.close(node, broken),
            }
        }
    }

    fn flush(&mut self) {
        for (peer, broken) in self.links.flush(boottime::now()) {
            self.close(peer.id, broken);
        }
    }

    fn keep_alive(&mut self) {
        for (peer, broken) in self.links.keep_alive(boottime::now()) {
            self.close(peer.id, broken);
        }
    }

    fn close(&mut self, node: NodeId, broken: LinkFailure) {
        let Some(peer) = self.links.remove(node) else { return };
        match broken {
            LinkFailure::Garbled => {
                let line = format!("node {node} sent an invalid message; closed its link");
                self.context.complaints.say(&line);
            }
            // The other system has closed it: the process has ended, or begins a new life.
            LinkFailure::Lost => self.handle(Input::HungUp(node)),
            LinkFailure::Silent => {}
        }
        self.dials.lost(boottime::now(), self.me, peer, Purpose::Control);
        self.handle(Input::Unreachable(node));
    }

    fn complain(&self, target: &DialTarget, error: &HelloError) {
        let at = &target.to.at;
        match error {
            // These pass by themselves: a node has just come, or has just gone.
            HelloError::Io(_) | HelloError::NoNode => {}
            HelloError::Refused(refusal) if refusal.is_passing() => {}
            HelloError::Version { .. } | HelloError::Refused(_) | HelloError::Unproven(_) => {
                let line = format!("cannot link with {}:{}: {error}", at.host, at.peer);
                self.context.complaints.say(&line);
            }
        }
    }

    /// Publishes the progress of this node, and schedules dials to lost members.
    fn look_around(&mut self) {
        let now = boottime::now();
        self.dials.look_for(now, self.control.partitioned_members());
        let (up, of) = self.dials.standing();
        self.startup.set(match (self.control.is_member(), up == of) {
            (false, _) => StartupPhase::Joining,
            (true, false) => StartupPhase::Linking { up, of },
            (true, true) if self.lease_until <= now || !self.applier.has_caught_up() => {
                StartupPhase::Leaseless
            }
            (true, true) => StartupPhase::Ready,
        });
        self.give_up_leaving();
    }

    /// Stops a leaving node that gets no lease. Leaving takes as long as the copying does, but a node that nobody
    /// answers stops without handing over.
    fn give_up_leaving(&mut self) {
        if !self.control.is_leaving() {
            return;
        }
        let now = boottime::now();
        let since = *self.leaving_since.get_or_insert(now);
        if now.since(since.max(self.lease_until)) > CUT_OFF_MAX {
            let line = "no contact with the other nodes for 10 s while leaving; stopped without \
                        handing over";
            self.go(Gone::Refused(line.to_owned()));
        }
    }
}

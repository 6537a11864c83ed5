//! The node, as a running command sees it: the implementation of `commands::Host`. `worker/execute.rs` creates one for
//! each command. Actions on another worker's connection go there by mail; changed settings are picked up by all workers
//! at their next round.

use core::sync::atomic::Ordering::Relaxed;
use core::task::Waker;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cluster::control::{Answer, OperatorRequest, WriteRequest};
use cluster::map::{DocumentWrite, Epoch, LeaveWay, MapStep, NodeId, StepError};
use cluster::serving::{WaitNumber, Waiter, WrittenSlots};
use cluster::status::{Health, Status};
use commands::{
    Acknowledged, ActiveExpiry, Asked, Block, ClientFacts, ClientNumbers, CommandCounts,
    DocumentsChange, Host, Identity, LatencyEvent, LinkDirection, LinkFacts, MemoryFigures,
    NodeFacts, Pause, Post, ScriptLog, Session, SettingsChange, SlowCommand, Space, Spec,
    StallFacts, SubscriptionKind, Traffic, Unblock,
};
use settings::{ExtraPort, Settings, ValidChanges};
use store::UnixMillis;
use timers::{TimerAnswer, TimerRefusal, TimerRequest};
use tokio::sync::oneshot;

use crate::clients::{ClientInfo, ConnectionRef};
use crate::data::Link;
use crate::mailbox::Mail;
use crate::published::Author;
use crate::pubsub::{Branch, listen, stop_listening};
use crate::question::{PendingAnswer, PendingChange, Question, Resume};
use crate::shared::Shared;
use crate::timers::judge_now;
use crate::wait_until::WaitUntil;
use crate::watching::Monitor;
use crate::{cluster_settings, cluster_view, log, system};

pub(crate) struct NodeHost<'a> {
    pub shared: &'a Shared,
    /// State of the connection whose command runs.
    pub client: &'a ClientInfo,
    /// The command that runs.
    pub spec: &'static Spec,
    pub now: UnixMillis,
    /// The worker's part of pub/sub.
    pub branch: &'a mut Branch,
    /// The question whose answer this connection's command waits for.
    pub question: &'a mut Option<Question>,
    /// Slots that this connection has written.
    pub written: &'a WrittenSlots,
    /// The deadline of this connection's WAIT.
    pub wait_until: &'a mut Option<WaitUntil>,
    pub has_lease: bool,
}

impl Host for NodeHost<'_> {
    // Connections.

    fn this_client(&self, session: &Session) -> ClientFacts {
        let outer = self.client.outer_facts(self.now);
        ClientFacts {
            address: outer.address,
            local_address: outer.local_address,
            descriptor: outer.descriptor,
            age_seconds: outer.age_seconds,
            input_bytes: outer.input_bytes,
            output_bytes: outer.output_bytes,
            output_capacity: outer.output_capacity,
            total_bytes: outer.total_bytes,
            last_command: Some(self.spec.full_name),
            ..ClientFacts::of_session(session)
        }
    }

    fn clients(&self, session: &Session) -> Vec<ClientFacts> {
        let clients = self.shared.clients.all();
        let facts = clients.iter().map(|client| {
            if client.id == session.id {
                self.this_client(session)
            } else {
                client.facts(self.now, &self.shared.table)
            }
        });
        facts.collect()
    }

    fn kill_client(&mut self, id: u64) -> bool {
        let Some(client) = self.shared.clients.find(id) else { return false };
        self.shared.mailboxes[client.place.worker]
            .send(Mail::Close { id, index: client.place.index });
        true
    }

    fn pause_clients(&mut self, pause: Pause) {
        self.shared.pauses.begin(pause, self.now);
    }

    fn unpause_clients(&mut self) {
        self.shared.pauses.end();
        self.shared.mailboxes.wake_all();
    }

    fn unblock_client(&mut self, id: u64, how: Unblock) -> bool {
        let Some(client) = self.shared.clients.find(id) else { return false };
        let Some(number) = client.take_key_wait() else { return false };
        let ConnectionRef { worker, index } = client.place;
        self.shared.mailboxes[worker].send(Mail::Unblock { index, number, how });
        true
    }

    fn waiter(&self) -> Waiter {
        let ConnectionRef { worker, index } = self.client.place;
        let narrow = |number: usize| u32::try_from(number).expect("descriptors are fewer");
        Waiter { client: self.client.id, worker: narrow(worker), index: narrow(index) }
    }

    fn next_wait_number(&mut self) -> WaitNumber {
        self.shared.data.key_lines.next_number()
    }

    fn start_monitor(&mut self, session: &mut Session) {
        session.is_monitor = true;
        let monitor = Monitor { id: session.id, place: self.client.place };
        self.shared.watching.monitors.enter(monitor);
    }

    // Subscriptions and messages, on the worker's thread.

    fn subscribe(&mut self, session: &Session, kind: SubscriptionKind, name: &Arc<[u8]>) {
        // The connection must not receive what it published before.
        let (links, mailboxes) = (&self.shared.data.links, &self.shared.mailboxes);
        self.branch.post(links, mailboxes, self.client.place.worker);
        // Read the number before the entry: in between, the connection may receive too much, never too little.
        let from = self.shared.mailboxes[self.client.place.worker].messages();
        listen(&self.shared.exchange, links, self.client.place.worker, session, kind, name);
        self.branch.subscribe(self.client.place.index, kind, name, from);
    }

    fn unsubscribe(&mut self, session: &Session, kind: SubscriptionKind, name: &[u8]) {
        let (exchange, links) = (&self.shared.exchange, &self.shared.data.links);
        stop_listening(exchange, links, self.client.place.worker, session, kind, name);
        self.branch.unsubscribe(self.client.place.index, kind, name);
    }

    fn publish(&mut self, session: &Session, post: Post<'_>) -> usize {
        let author = Some(Author(session.id));
        self.branch.outbox.publish(&self.shared.exchange, author, post)
    }

    fn count_receivers(&self, post: Post<'_>) -> usize {
        let route = self.shared.exchange.route(post.space, post.channel);
        route.map_or(0, |route| route.receivers)
    }

    fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        self.shared.exchange.channels(space, pattern)
    }

    fn subscribers(&self, space: Space, channel: &[u8]) -> usize {
        self.shared.exchange.subscribers(space, channel)
    }

    fn pattern_count(&self) -> usize {
        self.shared.exchange.names(SubscriptionKind::Pattern)
    }

    // Settings.

    fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    fn may_log_in(&self) -> bool {
        self.is_forwarded() || self.shared.guesses.may_try(self.client.address.ip(), Instant::now())
    }

    fn note_wrong_password(&mut self) {
        let from = self.client.address.ip();
        if self.is_forwarded() {
            return;
        }
        if let Some(count) = self.shared.guesses.note_wrong(from, Instant::now()) {
            let line =
                format!("wrong password from {from} ({count} wrong guesses since the last line)");
            log::warn("auth", &line);
        }
    }

    fn change_settings(&mut self, changes: &[(&str, &str)], block: Block) -> SettingsChange {
        if let Some(Question::Cluster(pending)) = self.question.take() {
            return self.follow_change(pending);
        }
        let (cluster, own) = match ValidChanges::check(changes) {
            Ok(changes) => changes.split(),
            Err(refused) => return SettingsChange::Refused(refused),
        };
        let shared = self.shared;
        let documents = cluster_settings::writes_of(&shared.settings.load(), &cluster);
        if documents.is_empty() {
            return self.change_own_settings(&own);
        }
        let (answer, pending) = oneshot::channel();
        let request = OperatorRequest::Write(WriteRequest { documents, only_at: None });
        shared.control.ask(request, move |it| {
            let _ = answer.send(it); // The connection may be gone.
        });
        match block {
            Block::Not => self.change_own_settings(&own),
            Block::For(_) | Block::ForEver => {
                self.follow_change(PendingChange { answer: PendingAnswer(pending), own })
            }
        }
    }

    fn write_documents(&mut self, writes: Vec<DocumentWrite>, block: Block) -> DocumentsChange {
        if let Some(Question::Documents(answer)) = self.question.take() {
            return self.follow_documents(answer);
        }
        let (answer, pending) = oneshot::channel();
        let request = OperatorRequest::Write(WriteRequest { documents: writes, only_at: None });
        self.shared.control.ask(request, move |it| {
            let _ = answer.send(it); // The connection may be gone.
        });
        match block {
            Block::Not => DocumentsChange::Done,
            Block::For(_) | Block::ForEver => self.follow_documents(PendingAnswer(pending)),
        }
    }

    fn log_script(&mut self, level: ScriptLog, text: &str) {
        match level {
            ScriptLog::Debug | ScriptLog::Verbose => log::debug("script", text),
            ScriptLog::Notice => log::info("script", text),
            ScriptLog::Warning => log::warn("script", text),
        }
    }

    fn rewrite_settings(&mut self) -> Result<(), String> {
        let shared = self.shared;
        shared.config.rewrite(&shared.settings, shared.config_file.as_deref())
    }

    // Facts and statistics.

    fn facts(&self) -> NodeFacts {
        NodeFacts {
            identity: self.identity(),
            uptime: self.shared.started.elapsed(),
            clients: client_numbers(self.shared, self.now),
            memory: self.memory(),
            machine_bytes: system::machine_bytes(),
            traffic: traffic(self.shared),
            keyspace: self.shared.data.keyspace.numbers(self.now),
            cpu: system::cpu_times(),
        }
    }

    fn identity(&self) -> Identity {
        let cluster = self.shared.data.view.load();
        let (host, port) = address(self.shared, self.client.local_address);
        Identity {
            id: self.shared.id.clone(),
            version: env!("CARGO_PKG_VERSION"),
            os: system::os_name(),
            process: std::process::id(),
            executable: path_text(std::env::current_exe().ok()),
            config_file: path_text(self.shared.config_file.clone()),
            host,
            port,
            peer_port: cluster.myself().map_or(0, |me| me.at.peer),
            io_threads: self.shared.mailboxes.len(),
        }
    }

    fn memory(&self) -> MemoryFigures {
        let gauge = &self.shared.data.keyspace.memory;
        let report = self.shared.data.refresh_memory();
        let clients = self.shared.clients.all();
        MemoryFigures {
            allocated: report.allocated,
            peak: gauge.peak(),
            startup: gauge.startup(),
            active: report.active,
            resident: report.resident,
            process: system::resident_bytes(),
            links: gauge.buffered(),
            clients: clients
                .iter()
                .map(|client| client.outer_facts(self.now).total_bytes as u64)
                .sum(),
        }
    }

    fn command_counts(&self) -> Vec<CommandCounts> {
        self.shared.watching.command_counts(&self.shared.table)
    }

    fn error_counts(&self) -> Vec<(String, u64)> {
        self.shared.watching.errors.all()
    }

    fn reset_statistics(&mut self) {
        self.shared.watching.reset(&self.shared.counters, &self.shared.table);
    }

    fn time_of_day(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    // Slow commands.

    fn slow_commands(&self, count: usize) -> Vec<SlowCommand> {
        self.shared.watching.slow_log.newest(count)
    }

    fn slow_command_count(&self) -> usize {
        self.shared.watching.slow_log.len()
    }

    fn forget_slow_commands(&mut self) {
        self.shared.watching.slow_log.clear();
    }

    fn latency_events(&self) -> Vec<LatencyEvent> {
        self.shared.watching.latency.events()
    }

    fn forget_latency_event(&mut self, name: &str) -> bool {
        self.shared.watching.latency.forget(name)
    }

    // The cluster.

    fn cluster_status(&self) -> Status {
        self.shared.status()
    }

    fn cluster_health(&self) -> Health {
        self.shared.health()
    }

    fn ask_cluster(&mut self, request: OperatorRequest) -> Result<(), String> {
        cluster_view::ask(&self.shared.data, &self.shared.control, request)
    }

    fn conflicts(&self) -> Vec<String> {
        self.shared.merging.conflicts()
    }

    fn map_epoch(&self) -> Epoch {
        self.shared.cluster_view.map_epoch()
    }

    fn map_since(&self, epoch: Epoch, history: Option<&str>) -> Result<MapStep, StepError> {
        self.shared.cluster_view.map_since(epoch, history)
    }

    fn pending_primaries(&self) -> BTreeSet<NodeId> {
        BTreeSet::clone(&self.shared.data.pending.load())
    }

    fn count_acknowledged(&mut self, wanted: i64, block: Block) -> Acknowledged {
        let backups = self.written.backups(&self.shared.data, self.has_lease);
        let is_enough = i64::try_from(backups).is_ok_and(|backups| backups >= wanted);
        let until = self.wait_until.take().or(match block {
            Block::Not => None,
            Block::For(long) => Instant::now().checked_add(long).map(WaitUntil::At),
            Block::ForEver => Some(WaitUntil::ForEver),
        });
        *self.wait_until = until.filter(|until| !is_enough && !until.is_over());
        if self.wait_until.is_some() { Acknowledged::Waiting } else { Acknowledged::By(backups) }
    }

    fn handover_stalls(&self) -> StallFacts {
        let stalls = &self.shared.data.handover_waits;
        StallFacts {
            count: stalls.count.load(Relaxed),
            longest_micros: stalls.longest_micros.load(Relaxed),
            total_micros: stalls.total_micros.load(Relaxed),
        }
    }

    fn links(&self) -> Vec<LinkFacts> {
        let links = self.shared.data.links.living();
        let fact = |link: &Arc<Link>| LinkFacts {
            direction: LinkDirection::To,
            node: link.peer.id,
            unsent_bytes: link.unacknowledged_bytes() as u64,
        };
        let to = links.iter().map(fact);
        let from = self.shared.data.sources().into_iter().map(|peer| LinkFacts {
            direction: LinkDirection::From,
            node: peer.id,
            unsent_bytes: 0,
        });
        to.chain(from).collect()
    }

    // Timers.

    fn ask_timers(&mut self, wish: TimerRequest) -> Asked {
        let hub = &self.shared.timers;
        if self.question.is_none() {
            if let TimerRequest::Create { spec, .. } | TimerRequest::Put { spec, .. } = &wish
                && let Err(why) = judge_now(hub, &spec.callback)
            {
                return Asked::Forbidden(why);
            }
            *self.question = Some(Question::Timers(PendingAnswer(hub.begin(wish))));
        }
        // A node alone has answered already.
        let Some(Question::Timers(pending)) = self.question.take() else {
            unreachable!("asked above, if not before")
        };
        match pending.answer(&self.waker()) {
            Ok(Some(answer)) => Asked::Answered(answer),
            // The node stops. Other nodes may have begun to carry the request out.
            Ok(None) => Asked::Answered(TimerAnswer::Refused(TimerRefusal::Unknown)),
            Err(pending) => {
                *self.question = Some(Question::Timers(pending));
                Asked::Waiting
            }
        }
    }

    // The process.

    fn shut_down(&mut self) {
        self.shared.control.ask(OperatorRequest::Leave(LeaveWay::Safe), |_| {});
    }

    fn sleep(&mut self, pause: Duration) {
        std::thread::sleep(pause);
    }

    fn set_active_expiry(&mut self, active: ActiveExpiry) {
        self.shared.expires_actively.store(active == ActiveExpiry::On, Relaxed);
    }
}

impl NodeHost<'_> {
    /// Returns whether the connection may come from this node's any-port, whose clients would all pay for one that
    /// guesses.
    fn is_forwarded(&self) -> bool {
        let is_own = self.client.address.ip() == self.client.local_address.ip();
        is_own && self.shared.settings.load().any_port != ExtraPort::Off
    }

    /// Returns a waker that has this connection's command run again.
    fn waker(&self) -> Waker {
        let place = self.client.place;
        let mailbox = Arc::clone(&self.shared.mailboxes[place.worker]);
        Waker::from(Arc::new(Resume { mailbox, id: self.client.id, index: place.index }))
    }

    /// Looks whether the cluster has decided on a change of its settings. If so, changes this node's own as well.
    fn follow_change(&mut self, pending: PendingChange) -> SettingsChange {
        let PendingChange { answer, own } = pending;
        match answer.answer(&self.waker()) {
            Err(answer) => {
                *self.question = Some(Question::Cluster(PendingChange { answer, own }));
                SettingsChange::Waiting
            }
            Ok(Some(Answer::Done)) => self.change_own_settings(&own),
            Ok(Some(Answer::Refused(text) | Answer::Unknown(text))) => SettingsChange::Failed(text),
            Ok(Some(Answer::Join(_)) | None) => {
                let text = "this node is stopping; the change may still take effect";
                SettingsChange::Failed(text.to_owned())
            }
        }
    }

    fn follow_documents(&mut self, answer: PendingAnswer<Answer>) -> DocumentsChange {
        match answer.answer(&self.waker()) {
            Err(answer) => {
                *self.question = Some(Question::Documents(answer));
                DocumentsChange::Waiting
            }
            Ok(Some(Answer::Done)) => DocumentsChange::Done,
            Ok(Some(Answer::Refused(text) | Answer::Unknown(text))) => {
                DocumentsChange::Failed(text)
            }
            Ok(Some(Answer::Join(_)) | None) => {
                let text = "this node is stopping; the change may still take effect";
                DocumentsChange::Failed(text.to_owned())
            }
        }
    }

    /// Changes settings that concern this node alone.
    fn change_own_settings(&self, own: &ValidChanges) -> SettingsChange {
        let shared = self.shared;
        shared.config.change(&shared.settings, &shared.timers, own);
        SettingsChange::Done
    }
}

fn path_text(path: Option<std::path::PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// Returns the address where clients reach this node: the advertised one, or the one this client has used.
fn address(shared: &Shared, reached: SocketAddr) -> (String, u16) {
    let settings = shared.settings.load();
    match &settings.advertise {
        Some(advertise) => {
            let port = advertise.port.unwrap_or(shared.client_addr.port());
            (advertise.host.clone(), port)
        }
        None => (reached.ip().to_string(), shared.client_addr.port()),
    }
}

fn client_numbers(shared: &Shared, now: UnixMillis) -> ClientNumbers {
    let infos = shared.clients.all();
    let waits = || infos.iter().map(|client| client.is_blocked());
    let clients: Vec<ClientFacts> =
        infos.iter().map(|client| client.facts(now, &shared.table)).collect();
    let listens =
        |client: &&ClientFacts| client.channels + client.patterns + client.sharded_channels > 0;
    ClientNumbers {
        connected: clients.len(),
        max: u64::from(shared.settings.load().maxclients),
        pubsub: clients.iter().filter(listens).count(),
        blocked: waits().filter(|(is_blocked, _)| *is_blocked).count(),
        with_timeout: waits().filter(|(_, has_timeout)| *has_timeout).count(),
        input_bytes_max: clients.iter().map(|client| client.input_bytes).max().unwrap_or(0),
        output_bytes_max: clients.iter().map(|client| client.output_bytes).max().unwrap_or(0),
    }
}

fn traffic(shared: &Shared) -> Traffic {
    let sums = shared.watching.counters(&shared.counters);
    let rates = shared.watching.rates.per_second();
    Traffic {
        connections_accepted: sums.accepted,
        connections_rejected: sums.rejected,
        commands: sums.commands,
        commands_per_second: rates.commands,
        bytes_in: sums.bytes_in,
        bytes_out: sums.bytes_out,
        bytes_in_per_second: rates.bytes_in,
        bytes_out_per_second: rates.bytes_out,
        expired: sums.expired,
        evicted: sums.evicted,
        hits: sums.hits,
        misses: sums.misses,
        changes: shared.counters.total(|counters| &counters.changes),
        errors: shared.watching.errors.total(),
        channels: shared.exchange.names(SubscriptionKind::Channel),
        patterns: shared.exchange.names(SubscriptionKind::Pattern),
        sharded_channels: shared.exchange.names(SubscriptionKind::ShardChannel),
    }
}

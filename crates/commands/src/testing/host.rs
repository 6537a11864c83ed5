//! The node's interface for commands in tests: it records the calls for inspection.

use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Arc;

use cluster::control::OperatorRequest;
use cluster::map::{DocumentWrite, Epoch, MapJournal, MapStep, NodeId, StepError};
use cluster::serving::{WaitNumber, Waiter};
use cluster::status::{Health, Status};
use settings::Settings;
use store::UnixMillis;

use super::Bus;
use crate::{
    Acknowledged, ActiveExpiry, Asked, Block, ClientFacts, CommandCounts, DocumentsChange, Host,
    Identity, LatencyEvent, LinkFacts, MemoryFigures, NodeFacts, Pause, Post, ScriptLog, Session,
    SettingsChange, SlowCommand, Space, StallFacts, SubscriptionKind, Unblock,
};

#[derive(Default)]
pub struct TestHost {
    pub now: UnixMillis,
    pub settings: Settings,
    /// Wrong passwords so far, and the number from which on none is judged.
    pub wrong_passwords: usize,
    pub wrong_passwords_max: usize,
    /// Connections besides those that run commands.
    pub others: Vec<ClientFacts>,
    pub paused: Option<Pause>,
    /// The connection whose command runs.
    pub connection: u64,
    /// The last place in line that was given out.
    pub wait_numbers: u64,
    /// The connections that wait for keys, and those whose wait CLIENT UNBLOCK has ended.
    pub blocked: BTreeSet<u64>,
    pub unblocked: Vec<(u64, Unblock)>,
    pub bus: Bus,
    pub memory: MemoryFigures,
    pub slept: Duration,
    pub active_expiry: ActiveExpiry,
    pub facts: NodeFacts,
    pub statistics_reset: usize,
    /// Entries of the slow log, the oldest first.
    pub slow_commands: Vec<SlowCommand>,
    pub latency_events: Vec<LatencyEvent>,
    pub is_shut_down: bool,
    /// The cluster's status to return.
    pub status: Option<Status>,
    pub health: Health,
    /// The changes of the map; a test that asks for them sets it.
    pub journal: Option<MapJournal>,
    pub links: Vec<LinkFacts>,
    pub pending: BTreeSet<NodeId>,
    /// Number of backups that have acknowledged everything.
    pub backups: usize,
    /// The requests to the cluster; all of them are accepted, unless there is an objection.
    pub asked: Vec<OperatorRequest>,
    pub objection: Option<String>,
    /// The requests to the timers, and their answer; `None`: the answer is still pending.
    pub wishes: Vec<timers::TimerRequest>,
    pub timers_answer: Option<timers::TimerAnswer>,
    /// The documents that were written, and the lines that scripts have logged.
    pub written: Vec<DocumentWrite>,
    pub script_log: Vec<String>,
    /// The reason for refusing callback targets.
    pub callback_objection: Option<String>,
}

impl Host for TestHost {
    fn this_client(&self, session: &Session) -> ClientFacts {
        ClientFacts {
            id: session.id,
            address: format!("127.0.0.1:{}", 50_000 + session.id),
            local_address: "127.0.0.1:6379".to_owned(),
            ..ClientFacts::of_session(session)
        }
    }

    fn clients(&self, session: &Session) -> Vec<ClientFacts> {
        let mut clients = self.others.clone();
        clients.push(self.this_client(session));
        clients.sort_by_key(|client| client.id);
        clients
    }

    fn kill_client(&mut self, id: u64) -> bool {
        let before = self.others.len();
        self.others.retain(|client| client.id != id);
        self.others.len() < before
    }

    fn pause_clients(&mut self, pause: Pause) {
        self.paused = Some(pause);
    }

    fn unpause_clients(&mut self) {
        self.paused = None;
    }

    fn unblock_client(&mut self, id: u64, how: Unblock) -> bool {
        let is_blocked = self.blocked.remove(&id);
        if is_blocked {
            self.unblocked.push((id, how));
        }
        is_blocked
    }

    fn waiter(&self) -> Waiter {
        Waiter { client: self.connection, worker: 0, index: 0 }
    }

    fn next_wait_number(&mut self) -> WaitNumber {
        self.wait_numbers += 1;
        WaitNumber(self.wait_numbers)
    }

    fn start_monitor(&mut self, session: &mut Session) {
        session.is_monitor = true;
    }

    fn subscribe(&mut self, session: &Session, kind: SubscriptionKind, name: &Arc<[u8]>) {
        self.bus.subscribe(session.id, kind, name);
    }

    fn unsubscribe(&mut self, session: &Session, kind: SubscriptionKind, name: &[u8]) {
        self.bus.unsubscribe(session.id, kind, name);
    }

    fn publish(&mut self, _: &Session, post: Post<'_>) -> usize {
        self.bus.publish(post)
    }

    fn count_receivers(&self, post: Post<'_>) -> usize {
        self.bus.count_receivers(post)
    }

    fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        self.bus.channels(space, pattern)
    }

    fn subscribers(&self, space: Space, channel: &[u8]) -> usize {
        self.bus.subscribers(space, channel)
    }

    fn pattern_count(&self) -> usize {
        self.bus.pattern_count()
    }

    fn settings(&self) -> Arc<Settings> {
        Arc::new(self.settings.clone())
    }

    fn may_log_in(&self) -> bool {
        self.wrong_passwords < self.wrong_passwords_max
    }

    fn note_wrong_password(&mut self) {
        self.wrong_passwords += 1;
    }

    fn change_settings(&mut self, changes: &[(&str, &str)], _block: Block) -> SettingsChange {
        match self.settings.with_changes(changes) {
            Ok(changed) => self.settings = changed,
            Err(refused) => return SettingsChange::Refused(refused),
        }
        SettingsChange::Done
    }

    fn write_documents(&mut self, writes: Vec<DocumentWrite>, _block: Block) -> DocumentsChange {
        self.written.extend(writes);
        DocumentsChange::Done
    }

    fn log_script(&mut self, _level: ScriptLog, text: &str) {
        self.script_log.push(text.to_owned());
    }

    fn rewrite_settings(&mut self) -> Result<(), String> {
        Err("ERR The server is running without a config file".to_owned())
    }

    fn facts(&self) -> NodeFacts {
        self.facts.clone()
    }

    fn identity(&self) -> Identity {
        self.facts.identity.clone()
    }

    fn memory(&self) -> MemoryFigures {
        self.memory
    }

    fn command_counts(&self) -> Vec<CommandCounts> {
        Vec::new()
    }

    fn error_counts(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    fn reset_statistics(&mut self) {
        self.statistics_reset += 1;
    }

    fn time_of_day(&self) -> Duration {
        Duration::from_millis(self.now.0)
    }

    fn slow_commands(&self, count: usize) -> Vec<SlowCommand> {
        self.slow_commands.iter().rev().take(count).cloned().collect()
    }

    fn slow_command_count(&self) -> usize {
        self.slow_commands.len()
    }

    fn forget_slow_commands(&mut self) {
        self.slow_commands.clear();
    }

    fn latency_events(&self) -> Vec<LatencyEvent> {
        self.latency_events.clone()
    }

    fn forget_latency_event(&mut self, name: &str) -> bool {
        let before = self.latency_events.len();
        self.latency_events.retain(|event| event.name != name);
        self.latency_events.len() < before
    }

    fn cluster_status(&self) -> Status {
        self.status.clone().expect("a test that asks for the status says what it is")
    }

    fn cluster_health(&self) -> Health {
        self.health.clone()
    }

    fn ask_cluster(&mut self, request: OperatorRequest) -> Result<(), String> {
        self.objection.clone().map_or(Ok(()), Err)?;
        self.asked.push(request);
        Ok(())
    }

    fn map_epoch(&self) -> Epoch {
        self.journal.as_ref().map_or(Epoch::FIRST, |journal| journal.map().epoch())
    }

    fn map_since(&self, epoch: Epoch, history: Option<&str>) -> Result<MapStep, StepError> {
        self.journal.as_ref().expect("the test has set it").since(epoch, history)
    }

    fn pending_primaries(&self) -> BTreeSet<NodeId> {
        self.pending.clone()
    }

    fn links(&self) -> Vec<LinkFacts> {
        self.links.clone()
    }

    fn conflicts(&self) -> Vec<String> {
        vec![r#"{"key":"k"}"#.to_owned()]
    }

    fn count_acknowledged(&mut self, _wanted: i64, _block: Block) -> Acknowledged {
        Acknowledged::By(self.backups)
    }

    fn handover_stalls(&self) -> StallFacts {
        StallFacts::default()
    }

    fn ask_timers(&mut self, wish: timers::TimerRequest) -> Asked {
        if let Some(why) = &self.callback_objection {
            return Asked::Forbidden(why.clone());
        }
        self.wishes.push(wish);
        self.timers_answer.clone().map_or(Asked::Waiting, Asked::Answered)
    }

    fn shut_down(&mut self) {
        self.is_shut_down = true;
    }

    fn sleep(&mut self, pause: Duration) {
        self.slept += pause;
    }

    fn set_active_expiry(&mut self, active: ActiveExpiry) {
        self.active_expiry = active;
    }
}

//! Requests on moving keys. The jobs of `fleet` decide which servers are asked what, and in which order; this
//! module sends their questions and passes in the answers.
//!
//! A request on a key waits for its client's earlier jobs on that key, so that the client's requests keep
//! their order. Two writes of one key wait for each other, whoever sent them: at the server they would only
//! disturb each other.

mod flush;
mod task;

pub(crate) use self::task::Task;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use fleet::command::Access;
use fleet::plan::Bring;
use fleet::{Answer, Ask, Command, Epoch, Lane, Route, Server, Step};
use resp::Protocol;
use slab::Slab;

use super::Worker;
use super::dispatch::Ran;
use super::gather::array_items;
use super::greeting::value_of;
use super::link::{Awaiter, Holder, LinkState};
use super::links::Way;
use super::replies::Ticket;

#[derive(Default)]
pub(crate) struct Jobs {
    running: Slab<Running>,
    /// Running jobs on each key.
    keys: BTreeMap<Vec<u8>, OnKey>,
    /// True if something has changed that jobs without a link may be waiting for.
    pub stirred: bool,
    serial: u32,
}

/// Users of a key.
#[derive(Default)]
struct OnKey {
    clients: Vec<usize>,
    writers: usize,
}

struct Running {
    task: Task,
    waiter: Waiter,
    /// The client whose request it is part of.
    client: usize,
    keys: Vec<Vec<u8>>,
    epoch: Epoch,
    protocol: Protocol,
    state: State,
    /// Answers to the last ask received so far, as they came.
    answers: Vec<Vec<u8>>,
    expected: usize,
    /// Its own link, if it has one: the server and the link's index.
    own: Option<(Server, usize)>,
}

enum State {
    /// Waits for another job that writes the same key.
    Behind,
    /// To be sent as soon as there is a link.
    Unasked(Ask),
    /// The ask with this number is in flight.
    Asked(u32),
    Waiting(Instant),
}

/// Receiver of a job's result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiter {
    Client {
        client: usize,
        ticket: Ticket,
    },
    Part {
        gather: usize,
        part: usize,
    },
    /// A client whose next request could not run before the job.
    Resume {
        client: usize,
    },
}

impl Jobs {
    /// Returns whether a job of this client is running on one of these keys.
    pub(crate) fn are_on_any(&self, client: usize, keys: &[Vec<u8>]) -> bool {
        let on = |key: &Vec<u8>| self.keys.get(key).is_some_and(|on| on.clients.contains(&client));
        self.are_on_keys() && keys.iter().any(on)
    }

    /// Returns whether jobs are running on any keys.
    #[inline]
    pub(crate) fn are_on_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns whether a job of an earlier epoch is still running.
    pub(crate) fn any_before(&self, epoch: Epoch) -> bool {
        self.running.iter().any(|(_, running)| running.epoch != epoch)
    }

    /// Returns the time at which the next waiting job is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let due = |(_, running): (usize, &Running)| match running.state {
            State::Waiting(until) => Some(until),
            State::Behind | State::Unasked(_) | State::Asked(_) => None,
        };
        self.running.iter().filter_map(due).min()
    }

    fn is_written(&self, keys: &[Vec<u8>]) -> bool {
        keys.iter().any(|key| self.keys.get(key).is_some_and(|on_key| on_key.writers > 0))
    }

    fn enter(&mut self, job: usize) {
        let running = &self.running[job];
        for key in &running.keys {
            let on_key = self.keys.entry(key.clone()).or_default();
            on_key.clients.push(running.client);
            on_key.writers += usize::from(running.task.writes());
        }
    }

    fn leave(&mut self, running: &Running) {
        for key in &running.keys {
            let on_key = self.keys.get_mut(key).expect("it was entered");
            let place = on_key.clients.iter().position(|client| *client == running.client);
            on_key.clients.swap_remove(place.expect("it was entered"));
            on_key.writers -= usize::from(running.task.writes());
            if on_key.clients.is_empty() {
                self.keys.remove(key);
            }
        }
    }
}

impl Worker<'_> {
    /// Returns whether a request must wait for a job on one of its keys.
    pub(super) fn must_wait_for_jobs(&self, index: usize, args: &[&[u8]]) -> bool {
        let Some(command) = Command::find(args[0]) else { return false };
        let Ok(places) = command.key_places(args) else { return false };
        let writes = command.access == Access::Write;
        places.iter().any(|place| {
            self.jobs.keys.get(args[place]).is_some_and(|on_key| {
                on_key.clients.contains(&index) || writes && on_key.writers > 0
            })
        })
    }

    pub(super) fn begin_read(
        &mut self,
        index: usize,
        key: usize,
        route: Route,
        args: &[&[u8]],
    ) -> Ran {
        let ticket = self.clients[index].replies.expect();
        let task = Task::read(route, args[key], args);
        self.begin_job(index, task, Waiter::Client { client: index, ticket });
        Ran::Done
    }

    pub(super) fn begin_write(&mut self, index: usize, bring: &Bring, args: &[&[u8]]) -> Ran {
        if bring.keys.len() > 1 && self.clients[index].replies.awaited() > 0 {
            return Ran::NotYet; // Earlier requests may be using its keys.
        }
        let ticket = self.clients[index].replies.expect();
        let task = Task::write(bring, self.shared.token(), args);
        self.begin_job(index, task, Waiter::Client { client: index, ticket });
        Ran::Done
    }

    /// Moves the keys of a client's next request to their new server; then the request runs.
    pub(super) fn bring_first(&mut self, index: usize, bring: &Bring, args: &[&[u8]]) -> Ran {
        if self.clients[index].replies.awaited() > 0 {
            return Ran::NotYet;
        }
        self.clients[index].busy = true;
        let task = Task::bring(bring, self.shared.token(), args);
        self.begin_job(index, task, Waiter::Resume { client: index });
        Ran::NotYet
    }

    pub(super) fn begin_job(&mut self, client: usize, task: Task, waiter: Waiter) {
        let keys = task.keys();
        let counts = &self.shared.counts;
        let count = if task.writes() { &counts.moving_writes } else { &counts.moving_reads };
        count.fetch_add(1, Relaxed);
        let behind = task.writes() && self.jobs.is_written(&keys);
        let job = self.jobs.running.insert(Running {
            task,
            waiter,
            client,
            keys,
            epoch: self.fleet.view.epoch(),
            protocol: self.clients[client].protocol,
            state: State::Behind,
            answers: Vec::new(),
            expected: 0,
            own: None,
        });
        if behind {
            return;
        }
        self.start_job(job);
    }

    fn start_job(&mut self, job: usize) {
        self.jobs.enter(job);
        let step = self.jobs.running[job].task.job().start();
        self.follow(job, step);
    }

    fn follow(&mut self, job: usize, step: Step) {
        match step {
            Step::Ask(ask) => self.ask_for_job(job, ask),
            Step::Wait(millis) => {
                let until = self.now + Duration::from_millis(millis);
                self.jobs.running[job].state = State::Waiting(until);
            }
            Step::Done(answer) => self.end_job(job, Ok(answer)),
            Step::Failed(text) => self.end_job(job, Err(text)),
        }
    }

    fn ask_for_job(&mut self, job: usize, ask: Ask) {
        let link = match self.link_for_job(job, &ask) {
            Ok(link) => link,
            Err(Way::Wait) => {
                self.jobs.running[job].state = State::Unasked(ask);
                return;
            }
            Err(Way::Refuse(text)) => return self.end_job(job, Err(text)),
        };
        self.jobs.serial = self.jobs.serial.wrapping_add(1);
        let serial = self.jobs.serial;
        let running = &mut self.jobs.running[job];
        if self.links[link].epoch != running.epoch {
            let text = "TRYAGAIN the fleet's map was changed while this key was moving; retry";
            return self.end_job(job, Err(text.to_owned()));
        }
        running.state = State::Asked(serial);
        running.answers.clear();
        running.expected = ask.answers;
        let awaiter = Awaiter::Job { job: job as u32, serial };
        self.links[link].push_several(self.now, &ask.bytes, ask.answers, awaiter);
        self.touch_link(link);
    }

    fn link_for_job(&mut self, job: usize, ask: &Ask) -> Result<usize, Way> {
        let running = &self.jobs.running[job];
        let protocol = running.protocol;
        match (ask.lane, running.own) {
            (Lane::Shared, _) => self.shared_link(ask.server, protocol),
            (Lane::Own, Some((server, link))) if server == ask.server => self.own_if_up(link),
            (Lane::Own, held) => {
                if let Some((_, link)) = held {
                    self.release_own(link);
                }
                let link = self.take_own(ask.server, protocol, Holder::Job(job as u32))?;
                self.jobs.running[job].own = Some((ask.server, link));
                self.own_if_up(link)
            }
        }
    }

    pub(super) fn own_if_up(&self, link: usize) -> Result<usize, Way> {
        match self.links[link].state {
            LinkState::Up => Ok(link),
            LinkState::Greeting => Err(Way::Wait),
        }
    }

    pub(super) fn on_job_answer(&mut self, job: u32, serial: u32, reply: &[u8]) {
        let job = job as usize;
        let Some(running) = self.jobs.running.get_mut(job) else { return };
        if !matches!(running.state, State::Asked(asked) if asked == serial) {
            return;
        }
        running.answers.push(reply.to_vec());
        if running.answers.len() < running.expected {
            return;
        }
        let values: Result<Vec<_>, String> =
            running.answers.iter().map(|answer| value_of(answer)).collect();
        let step = match values {
            Ok(values) => running.task.job().on_answers(&values),
            Err(text) => Step::Failed(format!("ERR {text}")),
        };
        self.follow(job, step);
    }

    pub(super) fn on_job_lost(&mut self, job: u32, serial: u32, text: &str) {
        let asked =
            |running: &Running| matches!(running.state, State::Asked(asked) if asked == serial);
        if self.jobs.running.get(job as usize).is_some_and(asked) {
            self.end_job(job as usize, Err(text.to_owned()));
        }
    }

    /// Handles the loss of an own link before anything was asked on it.
    pub(super) fn holder_lost(&mut self, holder: Holder, text: &str) {
        match holder {
            Holder::Job(job) => {
                let job = job as usize;
                if let Some(running) = self.jobs.running.get_mut(job) {
                    running.own = None;
                    if matches!(running.state, State::Unasked(_)) {
                        self.end_job(job, Err(text.to_owned()));
                    }
                }
            }
            Holder::Client(client) => self.own_failed_early(client as usize, text),
        }
    }

    /// Continues jobs that waited for a link or for a time.
    pub(super) fn run_waiting_jobs(&mut self) {
        let stirred = std::mem::take(&mut self.jobs.stirred);
        if self.jobs.running.is_empty() {
            return;
        }
        let now = self.now;
        let due = |running: &Running| match running.state {
            State::Waiting(until) => until <= now,
            State::Unasked(_) | State::Behind => stirred,
            State::Asked(_) => false,
        };
        let jobs = self.jobs.running.iter().filter(|(_, running)| due(running));
        for job in jobs.map(|(job, _)| job).collect::<Vec<_>>() {
            self.go_on(job);
        }
    }

    fn go_on(&mut self, job: usize) {
        let Some(running) = self.jobs.running.get_mut(job) else { return };
        match std::mem::replace(&mut running.state, State::Behind) {
            State::Waiting(_) => {
                let step = running.task.job().on_waited();
                self.follow(job, step);
            }
            State::Unasked(ask) => self.ask_for_job(job, ask),
            State::Behind => {
                if !self.jobs.is_written(&self.jobs.running[job].keys) {
                    self.start_job(job);
                }
            }
            State::Asked(serial) => running.state = State::Asked(serial),
        }
    }

    fn end_job(&mut self, job: usize, end: Result<Answer, String>) {
        let running = self.jobs.running.remove(job);
        self.jobs.leave(&running);
        if let Some((_, link)) = running.own {
            // A job that failed half-way may have left a WATCH there.
            match &end {
                Ok(_) => self.release_own(link),
                Err(_) => self.close_own(link),
            }
        }
        if end.is_ok() && running.epoch == self.fleet.view.epoch() {
            running.task.learnt(&mut self.known);
        }
        self.stirred = true;
        self.jobs.stirred = true;
        let reply = match end {
            Ok(answer) => picked(answer, &running.answers),
            Err(text) => Err(text),
        };
        self.tell(running.waiter, reply);
    }

    fn tell(&mut self, waiter: Waiter, reply: Result<Vec<u8>, String>) {
        match waiter {
            Waiter::Client { client, ticket } => match reply {
                Ok(reply) => self.answer_client(client, ticket, &reply),
                Err(text) => self.answer_error(client, ticket, text),
            },
            Waiter::Part { gather, part } => {
                let error = |text: String| format!("-{}\r\n", text.replace(['\r', '\n'], " "));
                let reply = reply.unwrap_or_else(|text| error(text).into_bytes());
                self.gathered(gather, part, &reply);
            }
            Waiter::Resume { client } => {
                let resumed = &mut self.clients[client];
                resumed.busy = false;
                resumed.failed = reply.err();
                if resumed.gone {
                    self.forget_if_done(client);
                }
            }
        }
    }
}

/// Returns the bytes that a job has picked for an answer.
fn picked(answer: Answer, answers: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let wrong = || "ERR the server sent an invalid answer".to_owned();
    match answer {
        Answer::Nothing => Ok(b"+OK\r\n".to_vec()),
        Answer::Picked { answer, item: None } => answers.get(answer).cloned().ok_or_else(wrong),
        Answer::Picked { answer, item: Some(item) } => {
            let items = answers.get(answer).and_then(|answer| array_items(answer));
            let item = items.as_ref().and_then(|items| items.get(item));
            item.map(|item| item.to_vec()).ok_or_else(wrong)
        }
    }
}

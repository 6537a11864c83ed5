//! The nodes of a demo: processes of this very executable on free ports of this machine. They end with the
//! [`Herd`]; if the demo itself is killed, the kernel ends them (`serve --ends-with`).

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cluster::status::Status;
use rustix::process::{Pid, Signal, kill_process};

use super::Stop;
use crate::Failure;
use crate::talk::{NodeArgs, Talk};

/// Maximum time until a started node answers.
const START_WITHIN: Duration = Duration::from_secs(30);
/// Attempts to start a node: another process may take a port between our check and the node's start.
const ATTEMPTS: usize = 3;
/// Timeout of a request; short, so that a frozen node is skipped quickly.
const PATIENCE: Duration = Duration::from_millis(500);

/// The nodes that run, shared with the threads that query them.
pub(crate) type Reachable = Arc<Mutex<Vec<NodeArgs>>>;

pub(super) struct Herd {
    pub(super) nodes: Vec<Node>,
    reachable: Reachable,
    buckets: String,
    /// Directory of the nodes' log files.
    dir: PathBuf,
    /// Number of nodes ever named: names are not used twice.
    named: usize,
}

pub(super) struct Node {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) state: State,
    child: Child,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Not a member yet.
    Starting,
    Running,
    /// Frozen by SIGSTOP.
    Stopped,
    /// Asked to hand over its buckets and leave.
    Leaving,
    /// Ended by SIGKILL; the other nodes may not know yet.
    Killed,
}

impl Herd {
    pub(super) fn new(buckets: &str) -> Result<Herd, Failure> {
        let dir = std::env::temp_dir().join(format!("opencluster-demo-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|error| {
            Failure::Refused(format!("cannot write to {}: {error}", dir.display()))
        })?;
        let (nodes, reachable) = (Vec::new(), Reachable::default());
        Ok(Herd { nodes, reachable, buckets: buckets.to_owned(), dir, named: 0 })
    }

    pub(super) fn reachable(&self) -> Reachable {
        Arc::clone(&self.reachable)
    }

    /// Starts one more node, and does not wait for it.
    pub(super) fn add(&mut self) -> Result<(), Failure> {
        let name = name(self.named);
        self.named += 1;
        let ports = free_ports().map_err(|error| cannot("find free ports", &error))?;
        let child = self.start(&name, ports).map_err(|error| cannot("start a node", &error))?;
        let address = format!("127.0.0.1:{}", ports[0]);
        self.nodes.push(Node { name, address, state: State::Starting, child });
        Ok(())
    }

    fn start(&self, name: &str, [port, http, peer]: [u16; 3]) -> io::Result<Child> {
        let log = File::create(self.dir.join(format!("{name}.log")))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--bind", "127.0.0.1", "--name", name, "--io-threads", "1"]);
        for (flag, port) in [("--port", port), ("--http-port", http), ("--peer-port", peer)] {
            command.args([flag, &port.to_string()]);
        }
        command.args(["--ends-with", &std::process::id().to_string()]);
        let others = self.addresses();
        match others.as_slice() {
            [] => command.args(["--buckets", &self.buckets]),
            others => command.args(["--join", &others.join(",")]),
        };
        // Settings in the user's environment are meant for the user's own nodes, not for these.
        let names = std::env::vars_os().map(|(name, _)| name);
        for ours in names.filter(|name| name.to_string_lossy().starts_with("OPENCLUSTER_")) {
            command.env_remove(ours);
        }
        // A process group of its own, so that Ctrl-C on the terminal reaches only the demo.
        command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
    }

    /// Waits until the node started last accepts clients.
    pub(super) fn wait_for_the_last(&mut self, stop: &Stop) -> Result<(), Failure> {
        let mut words = String::new();
        for _ in 0..ATTEMPTS {
            let node = self.nodes.last_mut().expect("one was started");
            if answers(node, stop)? {
                node.state = State::Running;
                self.publish();
                return Ok(());
            }
            // It has exited: another process took its port, or it cannot run here at all.
            let log = self.dir.join(format!("{}.log", node.name));
            words = fs::read_to_string(log).unwrap_or_default();
            self.nodes.pop();
            self.named -= 1;
            self.add()?;
        }
        Err(Failure::Refused(format!("a demo node failed to start: {}", words.trim())))
    }

    /// Updates the state of nodes that have joined or exited. Removes nodes that have exited and are no
    /// longer members.
    pub(super) fn tend(&mut self, status: Option<&Status>) {
        let is_member = |name: &str| {
            status.is_some_and(|status| status.members.iter().any(|member| member.name == name))
        };
        self.nodes.retain_mut(|node| {
            let has_ended = !matches!(node.child.try_wait(), Ok(None));
            if has_ended {
                node.state = State::Killed;
            } else if node.state == State::Starting && is_member(&node.name) {
                node.state = State::Running;
            }
            !has_ended || is_member(&node.name)
        });
        self.publish();
    }

    pub(super) fn kill(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        end(&mut node.child);
        node.state = State::Killed;
        self.publish();
    }

    /// Asks a node to hand over its buckets and leave, as Ctrl-C does.
    pub(super) fn leave(&mut self, index: usize) {
        self.signal(index, Signal::TERM, State::Leaving);
    }

    /// Freezes a node, or resumes it.
    pub(super) fn stop_or_go_on(&mut self, index: usize) {
        match self.nodes[index].state {
            State::Stopped => self.signal(index, Signal::CONT, State::Running),
            State::Starting | State::Running | State::Leaving => {
                self.signal(index, Signal::STOP, State::Stopped);
            }
            State::Killed => {}
        }
    }

    fn signal(&mut self, index: usize, signal: Signal, state: State) {
        let node = &mut self.nodes[index];
        // Fails if the node has just exited; `tend` notices that.
        if kill_process(Pid::from_child(&node.child), signal).is_ok() {
            node.state = state;
        }
        self.publish();
    }

    /// Returns the number of members that run and will stay.
    pub(super) fn running(&self) -> usize {
        self.nodes.iter().filter(|node| node.state == State::Running).count()
    }

    fn addresses(&self) -> Vec<String> {
        let running = self.nodes.iter().filter(|node| node.state == State::Running);
        running.map(|node| node.address.clone()).collect()
    }

    fn publish(&self) {
        let own = |address| NodeArgs::own(address).within(PATIENCE);
        let reachable = self.addresses().into_iter().map(own).collect();
        *self.reachable.lock().unwrap_or_else(PoisonError::into_inner) = reachable;
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            end(&mut node.child);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn end(child: &mut Child) {
    // Both fail only if the process has exited and was waited for already.
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits until the node accepts clients; returns `false` if it has exited.
fn answers(node: &mut Node, stop: &Stop) -> Result<bool, Failure> {
    let args = NodeArgs::own(node.address.clone()).within(PATIENCE);
    let begun = Instant::now();
    while begun.elapsed() < START_WITHIN {
        if stop.is_wanted() {
            return Err(Failure::Refused("stopped before the cluster was up".to_owned()));
        }
        if !matches!(node.child.try_wait(), Ok(None)) {
            return Ok(false);
        }
        if Talk::to(&args).and_then(|mut talk| talk.ask(&["PING"])).is_ok() {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(Failure::Refused(format!("node {} does not answer at {}", node.name, node.address)))
}

/// A, B, ... Z, A2, B2, ...
fn name(number: usize) -> String {
    const LETTERS: &[u8; 26] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let letter = char::from(LETTERS[number % LETTERS.len()]);
    match number / LETTERS.len() {
        0 => letter.to_string(),
        round => format!("{letter}{}", round + 1),
    }
}

/// Returns ports that nobody listens on right now.
fn free_ports() -> io::Result<[u16; 3]> {
    let held = [
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    ];
    let port = |listener: &TcpListener| listener.local_addr().map(|addr| addr.port());
    Ok([port(&held[0])?, port(&held[1])?, port(&held[2])?])
}

fn cannot(what: &str, error: &io::Error) -> Failure {
    Failure::Refused(format!("cannot {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_on_after_the_last_letter() {
        assert_eq!([0, 25, 26, 53].map(name), ["A", "Z", "A2", "B3"]);
    }
}

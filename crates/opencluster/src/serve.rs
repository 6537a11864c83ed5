//! `opencluster serve`: a node from start to exit. Read from top to bottom; the node itself is
//! `server::Node`.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use server::{Gone, Life, Node, NodeOptions, StartError, log};
use settings::{Settings, SidePort};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::Failure;
use crate::banner::{Facts, banner};
use crate::cli::ServeArgs;
use crate::config;
use crate::memory::Jemalloc;
use crate::status_cmd::now;
use crate::taken::{free_port_after, who_answers};

/// Environment variable of a process that has started over: end of its membership, in seconds since 1970.
const WAS_MEMBER: &str = "_OPENCLUSTER_WAS_MEMBER";
/// Time during which such a process retries to join.
const LATELY: Duration = Duration::from_secs(600);
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Exit code that a shell reports for a process ended by Ctrl-C.
const EXIT_INTERRUPTED: i32 = 130;
/// Reason to start over without data.
const OTHER_SIDE_WON: &str = "another side of the cluster won the split brain";

/// Starts a node, and returns when it has stopped as requested.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    if let Some(parent) = args.ends_with {
        end_with(parent)?;
    }
    // 1) The settings, before anything is touched.
    let layers = config::layers(args)?;
    let mut settings = config::settings(&layers)?;
    config::fill_in(&mut settings)?;
    log::set(settings.log_level, settings.log_format);
    if let Some(warning) = config::refuse_exposure(&settings)? {
        log::warn("start", &warning);
    }
    for warning in config::weak_secrets(&settings) {
        log::warn("start", &warning);
    }
    // 2) Signals first, so that a signal during the start is neither lost nor kills the process halfway.
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let signals = signals.map_err(|error| refused(format!("cannot listen to signals: {error}")))?;
    // 3) The node.
    let memory = Jemalloc::prepare();
    let memory = memory
        .map_err(|error| refused(format!("cannot read the allocator's statistics: {error}")))?;
    let options = NodeOptions {
        settings: settings.clone(),
        memory: Arc::new(memory),
        config_file: layers.file.map(|file| file.path),
    };
    let running = Arc::new(Mutex::new(Running::Starts));
    stop_on_signal(Arc::clone(&running), signals);
    let node = start(options.clone(), &settings)?;
    live(node, &options, &running)
}

/// The state of the process, for the signal handler.
enum Running {
    Starts,
    Runs(Arc<Node>),
    /// The node is coming back; setting the flag cancels that.
    ComesBack(Arc<AtomicBool>),
}

/// Waits for the end of a node, and restarts it in this process each time it was declared dead.
fn live(mut node: Node, options: &NodeOptions, running: &Mutex<Running>) -> Result<(), Failure> {
    let mut settings = options.settings.clone();
    loop {
        let shown = Arc::new(node);
        set(running, Running::Runs(Arc::clone(&shown)));
        // 4) Print the banner only now, when its facts are true.
        settings.name = shown.name();
        let (client_addr, http_addr) = (shown.client_addr(), shown.http_addr());
        let members = shown.members();
        say(&banner(&Facts { settings: &settings, client_addr, http_addr, members }));
        match shown.wait() {
            None | Some(Gone::Left | Gone::LeftFor(_) | Gone::LeftAsTheLast) => {
                say("opencluster: stopped\n");
                return Ok(());
            }
            Some(Gone::Removed) => {}
            Some(Gone::Yielded(_)) => {
                let (others, carried) = (shown.others(), shown.carried());
                return Err(start_over(others, carried, OTHER_SIDE_WON));
            }
            Some(Gone::Refused(reason)) => return Err(refused(reason)),
        }
        // 5) The other nodes have declared this one dead: it comes back with all its data.
        let Some(life) = shown.next_life() else {
            let line = "the other nodes have declared this node dead; start it again to join";
            return Err(refused(line.to_owned()));
        };
        let stop = Arc::clone(&life.stop);
        set(running, Running::ComesBack(Arc::clone(&stop)));
        release(shown);
        let Some(back) = come_back(options, life)? else {
            say("opencluster: stopped\n");
            return Ok(());
        };
        node = back;
        if stop.load(Ordering::Acquire) {
            node.leave();
        }
    }
}

fn set(running: &Mutex<Running>, to: Running) {
    *running.lock().expect("nobody panics with it") = to;
}

/// Waits until nobody else has a reference to the node, and drops it: its ports are needed again.
fn release(node: Arc<Node>) {
    let mut node = Some(node);
    while let Some(shared) = node.take() {
        match Arc::try_unwrap(shared) {
            Ok(node) => drop(node),
            Err(shared) => {
                thread::sleep(Duration::from_millis(1));
                node = Some(shared);
            }
        }
    }
}

/// Starts the node again in this process, and retries until it is a member or must stop. It gives up none of
/// its data meanwhile.
fn come_back(options: &NodeOptions, life: Life) -> Result<Option<Node>, Failure> {
    let line = "the other nodes have declared this node dead; it keeps its data and rejoins";
    log::warn("cluster", line);
    let mut life = Box::new(life);
    loop {
        match Node::start_again(options.clone(), *life) {
            Ok(node) => {
                log::info("cluster", "this node is a member again");
                return Ok(Some(node));
            }
            Err((StartError::Stopped, _)) => return Ok(None),
            Err((StartError::Refused(line), _)) => return Err(refused(line)),
            Err((StartError::Yielded, life)) => {
                return Err(start_over(life.others(), None, OTHER_SIDE_WON));
            }
            Err((error @ (StartError::LeftBehind | StartError::Address { .. }), again)) => {
                let why = explain(&error, &options.settings);
                log::warn("join", &format!("{why}; retrying to rejoin"));
                thread::sleep(AGAIN_AFTER);
                life = again;
            }
        }
    }
}

/// Starts a node. A node that its cluster removed without its knowledge finds out only when the others are
/// up: then this process executes itself again, and joins like any new node.
fn start(options: NodeOptions, settings: &Settings) -> Result<Node, Failure> {
    match Node::start(options) {
        Err(StartError::LeftBehind) => {
            log::warn("join", "the cluster has removed this node; joining again as a new node");
            let error = execute_again();
            Err(refused(format!(
                "the cluster has removed this node, and it cannot restart itself ({error}); \
                 start it again"
            )))
        }
        Err(error) if was_member_lately() => Err(try_again(&explain(&error, settings))),
        started => started.map_err(|error| refused(explain(&error, settings))),
    }
}

/// Returns whether this process was a member until recently, and has started over.
fn was_member_lately() -> bool {
    let until = std::env::var(WAS_MEMBER).ok().and_then(|seconds| seconds.parse().ok());
    until.is_some_and(|until| now().as_secs().saturating_sub(until) < LATELY.as_secs())
}

/// Retries the start of a member that has started over. It may be cut off once more before it is in, and
/// nobody would start it again. Returns only if no retry is possible.
fn try_again(why: &str) -> Failure {
    log::warn("join", &format!("{why}; this node was a member recently; retrying"));
    thread::sleep(AGAIN_AFTER);
    let error = execute_again();
    refused(format!("{why}; cannot retry ({error}); start it again"))
}

/// Executes this process again as it was started. Returns only on failure.
fn execute_again() -> io::Error {
    let (mut again, arguments) = this_program();
    again.args(arguments).exec()
}

/// Returns this program, to be executed again, and the arguments it was started with.
fn this_program() -> (Command, impl Iterator<Item = OsString>) {
    let mut arguments = std::env::args_os();
    let program = arguments.next();
    // If the file was replaced since, its old name is gone, but this process still has it open.
    let file = std::env::current_exe().unwrap_or_default();
    let file = if file.exists() { file } else { PathBuf::from("/proc/self/exe") };
    let mut command = Command::new(&file);
    command.arg0(program.unwrap_or_else(|| file.into_os_string()));
    (command, arguments)
}

/// Makes the kernel end this process when its parent ends. This survives a start over.
fn end_with(parent: u32) -> Result<(), Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| refused(format!("cannot follow process {parent}: {error}")))?;
    // The parent may have ended before the call.
    let is_there = getppid().is_some_and(|pid| pid.as_raw_nonzero().get().unsigned_abs() == parent);
    if is_there { Ok(()) } else { Err(refused(format!("process {parent} is not my parent"))) }
}

/// Starts this process over without data: another side of the cluster won, and has all that this process had.
/// Returns only on failure.
fn start_over(
    mut addresses: Vec<String>,
    carried: Option<(&'static str, String)>,
    because: &str,
) -> Failure {
    log::warn("cluster", &format!("{because}; this node drops its data and joins again"));
    let (mut again, arguments) = this_program();
    // The addresses given at the start may belong to nodes long gone: the known members come first.
    let (arguments, given) = without_join(arguments);
    again.args(arguments);
    addresses.extend(given);
    if !addresses.is_empty() {
        again.env("OPENCLUSTER_JOIN", addresses.join(","));
    }
    again.envs(carried);
    again.env(WAS_MEMBER, now().as_secs().to_string());
    let error = again.exec();
    refused(format!(
        "{because}, and this node cannot start over ({error}); start it again to join anew"
    ))
}

/// Returns the arguments without `--join`, and the value of `--join`.
fn without_join(arguments: impl Iterator<Item = OsString>) -> (Vec<OsString>, Option<String>) {
    let mut kept = Vec::new();
    let mut given = None;
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().unwrap_or_default();
        let (name, value) = text.split_once('=').map_or((text, None), |(a, b)| (a, Some(b)));
        if name != "--join" {
            kept.push(argument);
            continue;
        }
        let value = value.map(str::to_owned);
        given = value.or_else(|| arguments.next().and_then(|it| it.into_string().ok()));
    }
    (kept, given)
}

/// Prints `text`, ignoring errors: output that nobody reads is no reason to stop serving.
fn say(text: &str) {
    use std::io::Write;
    let mut out = anstream::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Handles signals. The first one asks the node to hand over its data and leave; a second one, or one before
/// there is a node, stops the process at once.
fn stop_on_signal(running: Arc<Mutex<Running>>, mut signals: Signals) {
    let wait = move || {
        let mut asked = false;
        // Ignore SIGHUP: a closed terminal is no reason to lose data that is only in memory.
        for _ in signals.forever().filter(|signal| *signal != SIGHUP) {
            let node = match &*running.lock().expect("nobody panics with it") {
                Running::Runs(node) if !asked => Arc::clone(node),
                Running::ComesBack(stop) if !asked => {
                    asked = true;
                    stop.store(true, Ordering::Release);
                    continue;
                }
                Running::Starts | Running::Runs(_) | Running::ComesBack(_) => {
                    log::info("stop", "stopped at once");
                    exit(EXIT_INTERRUPTED);
                }
            };
            asked = true;
            if node.members() > 1 {
                log::info(
                    "stop",
                    "handing over all data to the other nodes; send the signal again to stop at \
                     once",
                );
            }
            node.leave();
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
    thread.expect("a process that just started its node can start one more thread");
}

/// Returns one line about why the node did not start, and what to do about it.
fn explain(error: &StartError, settings: &Settings) -> String {
    let (addr, error) = match error {
        StartError::Address { addr, error } => (addr, error),
        StartError::Refused(line) => return line.clone(),
        StartError::LeftBehind => return "the cluster has removed this node".to_owned(),
        StartError::Yielded => return OTHER_SIDE_WON.to_owned(),
        StartError::Stopped => return "a stop was requested".to_owned(),
    };
    let flag = match Some(addr.port()) {
        port if port == Some(settings.port) => "port",
        port if port == settings.effective_peer_port() => "peer-port",
        port if port == settings.effective_replica_port() => "replica-port",
        _ => "http-port",
    };
    if error.kind() == ErrorKind::AddrInUse {
        return explain_taken(*addr, flag, settings);
    }
    if error.kind() == ErrorKind::PermissionDenied && addr.port() < 1024 {
        return format!(
            "{addr}: ports below 1024 need special rights; choose another with --{flag}"
        );
    }
    if error.kind() == ErrorKind::AddrNotAvailable {
        return format!("{addr}: this machine does not have that address; choose one with --bind");
    }
    format!("cannot serve on {addr}: {error}")
}

fn explain_taken(addr: SocketAddr, flag: &str, settings: &Settings) -> String {
    let neighbour = who_answers(addr);
    // If other ports follow the client port, suggest one whose followers are free as well.
    let sides = [
        (settings.http_port, SidePort::HTTP_OFFSET),
        (settings.peer_port, SidePort::PEER_OFFSET),
        (settings.replica_port, SidePort::REPLICA_OFFSET),
    ];
    let follows = |(side, _): &(SidePort, u16)| flag == "port" && *side == SidePort::Offset;
    let beside: Vec<u16> = sides.into_iter().filter(follows).map(|(_, offset)| offset).collect();
    let free = free_port_after(addr, &beside).unwrap_or(0);
    let without = match flag {
        "port" => String::new(),
        side => format!(", or go without with --{side} off"),
    };
    format!("{addr} is taken: {neighbour}; choose another port with --{flag} {free}{without}")
}

fn refused(line: String) -> Failure {
    Failure::Refused(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_starts_over_keeps_all_flags_but_where_to_join() {
        let arguments = [
            "--port",
            "1",
            "--join",
            "a:1,b:2",
            "--backups",
            "2",
            "--name=x",
            "--ack=primary",
            "--join=c:3",
        ];
        let (kept, given) = without_join(arguments.into_iter().map(OsString::from));
        assert_eq!(kept, ["--port", "1", "--backups", "2", "--name=x", "--ack=primary"]);
        assert_eq!(given.as_deref(), Some("c:3"));
    }
}

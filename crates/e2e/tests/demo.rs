//! `opencluster demo` by itself: the tour ends well and says so, and leaves nothing behind, however
//! it ends.
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use e2e::{node_binary, opencluster};
use rustix::process::{Pid, Signal, kill_process};

/// Timeout, for a busy machine.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn the_tour_joins_kills_and_leaves_and_loses_nothing() {
    let flags = ["demo", "--no-tty", "--seconds", "8", "--rate", "400"];
    let output = opencluster(&flags);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    for wanted in [
        "3 nodes started; writers begin",
        "a node joins",
        "4 nodes, 16 buckets: 8 copies each, 4 of them primaries",
        "A is killed with -9",
        "3 nodes, 16 buckets: 10 to 11 copies each, 5 to 6 of them primaries",
        "B is asked to leave",
        "2 nodes, 16 buckets: 16 copies each, 8 of them primaries",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is missing in\n{text}");
    }
    let last = text.lines().last().unwrap_or_default();
    let numbers: Vec<u64> =
        last.split(", ").filter_map(|part| part.split(' ').nth(1)?.parse().ok()).collect();
    let [acknowledged, lost, errors] = numbers[..] else { panic!("no counts in {last:?}") };
    assert_eq!(last, format!("acknowledged {acknowledged}, lost {lost}, errors {errors}"));
    assert!(acknowledged > 100 && lost == 0, "{last}");
}

#[test]
fn an_interrupted_demo_leaves_no_process_behind() {
    assert_ends_with_all_nodes(Signal::INT);
}

#[test]
fn a_killed_demo_leaves_no_process_behind() {
    assert_ends_with_all_nodes(Signal::KILL);
}

#[test]
fn what_cannot_be_asked_for_is_told_in_one_line() {
    let output = opencluster(&["demo", "--nodes", "99"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("must be a number from 1 to 26"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

fn assert_ends_with_all_nodes(signal: Signal) {
    let mut demo = running_demo();
    let nodes = children(demo.id());
    assert_eq!(nodes.len(), 3, "the nodes of a demo");
    kill_process(Pid::from_child(&demo), signal).expect("it is running");
    let status = demo.wait().expect("a child can be waited for");
    assert!(!status.success());
    let begun = Instant::now();
    while nodes.iter().any(|pid| is_alive(*pid)) {
        assert!(begun.elapsed() < SOON, "nodes have outlived the demo");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a demo, and waits until its writers have begun.
fn running_demo() -> Child {
    let mut command = Command::new(node_binary());
    command.args(["demo", "--no-tty", "--seconds", "300", "--rate", "100"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut demo = command.spawn().expect("our own binary can be started");
    let words = BufReader::new(demo.stdout.take().expect("its output is piped to us"));
    let begins = words.lines().map_while(Result::ok).any(|line| line.contains("writers begin"));
    assert!(begins, "it ended before its writers began");
    demo
}

/// Returns the processes that `parent` has started.
fn children(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").expect("Linux").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z")
}

/// Returns a process's state and its parent.
fn stat(pid: u32) -> Option<(String, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain spaces.
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

//! Losses beyond what a cluster can repair, or just within it: a witness, lost buckets, two nodes
//! that may not continue alone.
use std::thread;
use std::time::Duration;

use e2e::{Client, Cluster, Server};
use placement::Slot;
use resp::Value;

use crate::load::client;

const KEYS: u64 = 300;
/// Generous timeout: the machine may be busy.
const SOON: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
pub(crate) fn soon(claim: &str, holds: impl FnMut() -> bool) {
    e2e::wait_until(claim, SOON, holds);
}

pub(crate) fn fill(cluster: &Cluster) {
    let mut connection = client(&cluster.urls()).get_connection().expect("a node answers");
    for number in 0..KEYS {
        let set = redis::cmd("SET").arg(number).arg(number).query::<()>(&mut connection);
        set.expect("a write is taken");
    }
}

/// Returns the answer of `node` itself to a GET of a key: its value, "" for none, or the error.
fn status_line(node: &Server, number: u64) -> String {
    let Ok(mut client) = Client::try_connect(node.port()) else { return "unreachable".to_owned() };
    let asked = client.send(&["GET", &number.to_string()]).and_then(|()| client.receive());
    match asked.map(|answer| answer.value) {
        Ok(Value::Bulk(text) | Value::Error(text)) => String::from_utf8_lossy(&text).into_owned(),
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// Returns whether one of these nodes answers each key with the value written.
pub(crate) fn has_all(nodes: &[Server]) -> bool {
    (0..KEYS).all(|number| nodes.iter().any(|node| status_line(node, number) == number.to_string()))
}

/// Returns the number of keys that these nodes report as changed on both sides.
pub(crate) fn conflicts<'a>(nodes: impl IntoIterator<Item = &'a Server>) -> usize {
    let status_line = nodes.into_iter().map(|node| {
        let Value::Array(all) = node.client().run("CLUSTER CONFLICTS") else { panic!("a list") };
        all.len()
    });
    status_line.sum()
}

/// Returns whether a node serves nothing: it refuses its own keys, and redirects to the other for the rest.
fn is_down(node: &Server) -> bool {
    let answers: Vec<String> = (0..KEYS).map(|number| status_line(node, number)).collect();
    let is_refused = |answer: &String| answer.starts_with("CLUSTERDOWN this node is cut off");
    let names_other = |answer: &String| answer.starts_with("MOVED ");
    answers.iter().any(is_refused)
        && answers.iter().all(|answer| is_refused(answer) || names_other(answer))
}

pub(crate) fn set(node: &Server, name: &str, value: &str) {
    let answer = node.client().run(&format!("CLUSTER SETTINGS {name} {value}"));
    assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
    soon("the setting is decided", || node.client().status()["settings"][name] == value);
}

#[test]
fn two_nodes_and_a_witness_fail_over_by_majority() {
    let mut cluster = Cluster::of(2, &[]);
    let join = format!("127.0.0.1:{}", cluster.nodes[0].port());
    let witness = Server::node_with(&["--weight", "0", "--join", &join]);
    soon("all three vote", || {
        let status = witness.client().status();
        let members = status["members"].as_array().cloned().unwrap_or_default();
        members.iter().filter(|member| member["vote"] == "voter").count() == 3
    });
    fill(&cluster);
    cluster.kill(0);
    soon("the other serves everything", || has_all(&cluster.nodes));
    let status = witness.client().status();
    assert_eq!(status["generation"], 1, "a majority decided it, and nobody took over");
    let members = status["members"].as_array().cloned().unwrap_or_default();
    let of_witness = members.iter().find(|member| member["weight"] == 0).expect("it is a member");
    assert_eq!((&of_witness["primaries"], &of_witness["backups"]), (&0.into(), &0.into()));
}

#[test]
fn a_bucket_that_lost_both_holders_is_refused_then_begun_again_and_reported() {
    let mut cluster = Cluster::of(5, &["--buckets", "16"]);
    fill(&cluster);
    set(&cluster.nodes[0], "lost-after", "never");
    // Both holders of one bucket, whichever nodes they are.
    let status = cluster.nodes[0].client().status();
    let key = 7_u64;
    let slot = u64::from(Slot::of(key.to_string().as_bytes()).number());
    let buckets = status["buckets"].as_array().cloned().unwrap_or_default();
    let has_slot = |bucket: &&serde_json::Value| {
        let bound = |name: &str| bucket[name].as_u64().expect("a slot");
        (bound("first_slot")..=bound("last_slot")).contains(&slot)
    };
    let holders = buckets.iter().find(has_slot).expect("every slot has one")["holders"].clone();
    let name = |node: &Server| node.client().status()["node"].clone();
    let held = |node: &Server| holders.as_array().is_some_and(|all| all.contains(&name(node)));
    let (both, mut rest): (Vec<Server>, Vec<Server>) = cluster.nodes.drain(..).partition(held);
    assert_eq!(both.len(), 2);
    drop(both);
    soon("the others give them up", || {
        rest[0].client().status()["members"].as_array().is_some_and(|all| all.len() == 3)
    });
    let refused = |rest: &[Server]| {
        rest.iter().all(|node| status_line(node, key) == "CLUSTERDOWN Hash slot not served")
    };
    soon("nobody serves it, and says so", || refused(&rest));
    thread::sleep(Duration::from_secs(3));
    assert!(refused(&rest), "never is never");
    set(&rest[0], "lost-after", "1s");
    soon("it begins again, empty", || rest.iter().any(|node| status_line(node, key).is_empty()));
    let changes = rest[0].client().status()["changes"].clone();
    let reported = changes.as_array().is_some_and(|changes| {
        let is_one = |change: &serde_json::Value| {
            change["what"].as_str().is_some_and(|what| what.ends_with(", empty"))
        };
        changes.iter().any(is_one)
    });
    assert!(reported, "{changes}");
    cluster.nodes.append(&mut rest);
    cluster.wait_until_even();
}

#[test]
fn without_takeover_two_nodes_serve_again_when_the_other_returns() {
    let mut cluster = Cluster::with_directories(2, &[]);
    set(&cluster.nodes[0], "two-node-takeover", "no");
    fill(&cluster);
    let away = cluster.nodes.remove(1);
    away.kill();
    soon("it says that it may not serve", || is_down(&cluster.nodes[0]));
    thread::sleep(Duration::from_secs(3));
    assert!(is_down(&cluster.nodes[0]), "clients that ask change nothing");
    assert_eq!(cluster.nodes[0].client().status()["generation"], 1);
    cluster.nodes.push(away.start_again());
    soon("everything is served again", || has_all(&cluster.nodes));
    cluster.wait_until_even();
}

#[test]
fn the_only_holder_that_was_given_up_brings_its_buckets_back() {
    brings_its_buckets_back(&Cluster::with_directories(3, &["--backups", "0"]));
}

#[test]
fn it_brings_them_back_from_memory_without_a_data_directory() {
    brings_its_buckets_back(&Cluster::of(3, &["--backups", "0"]));
}

fn brings_its_buckets_back(cluster: &Cluster) {
    fill(cluster);
    let [rest @ .., sleeper] = cluster.nodes.as_slice() else { panic!("there are three") };
    sleeper.stop();
    let member_count =
        |node: &Server| node.client().status()["members"].as_array().map_or(0, Vec::len);
    soon("the others give it up", || rest.iter().all(|node| member_count(node) == 2));
    assert!(!has_all(rest), "its buckets are lost");
    sleeper.go_on();
    soon("it is a member again", || member_count(&rest[0]) == 3);
    soon("and all it had is served", || has_all(&cluster.nodes));
    cluster.wait_until_even();
    assert!(has_all(&cluster.nodes), "nothing was begun anew");
}

#[test]
fn the_only_holder_that_is_back_too_late_is_merged_and_reported() {
    let cluster = Cluster::with_directories(3, &["--backups", "0"]);
    set(&cluster.nodes[0], "lost-after", "2s");
    fill(&cluster);
    let [rest @ .., sleeper] = cluster.nodes.as_slice() else { panic!("there are three") };
    let own: Vec<u64> =
        (0..KEYS).filter(|number| status_line(sleeper, *number) == number.to_string()).collect();
    sleeper.stop();
    let serves = |number: u64| rest.iter().find(|node| status_line(node, number).is_empty());
    soon("its buckets begin again", || own.iter().all(|number| serves(*number).is_some()));
    // Of three of its keys, the first is written, the second is written and deleted.
    let [written, removed, untouched, ..] = own[..] else { panic!("it had few keys: {own:?}") };
    let server = |number| serves(number).expect("somebody serves it").client();
    server(removed).run(&format!("SET {removed} again"));
    let of_removed = |node: &&Server| status_line(node, removed) == "again";
    let by = rest.iter().find(of_removed).expect("it was written");
    assert_eq!(by.client().run(&format!("DEL {removed}")), Value::Integer(1));
    server(written).run(&format!("SET {written} again"));
    sleeper.go_on();
    let anybody = |number: u64, wanted: &str| {
        cluster.nodes.iter().any(|node| status_line(node, number) == wanted)
    };
    soon("what it had is served", || anybody(untouched, &untouched.to_string()));
    cluster.wait_until_even();
    let kept = own.iter().filter(|number| ![written, removed].contains(number));
    for number in kept {
        assert!(anybody(*number, &number.to_string()), "{number} is gone");
    }
    assert!(anybody(written, "again"), "what was written since stands");
    assert!(!anybody(removed, &removed.to_string()), "what was taken away since stays away");
    assert_eq!(conflicts(&cluster.nodes), 2, "both are reported");
}

//! Reports of every tool about a cluster that is not well: `status`, `status --check`, `CLUSTER INFO`, `/readyz`,
//! `/metrics`, `/api/cluster` and the log agree.
use std::time::Duration;

use e2e::{Cluster, Server, http, opencluster, wait_until};
use resp::Value;

use crate::losses::{fill, set};

const PATIENCE: Duration = Duration::from_secs(60);

/// What the tools say when they are asked at one node.
struct Verdict {
    exit_code: i32,
    /// The kinds of problems, in the order of the document.
    kinds: Vec<String>,
    cluster_state: String,
    is_ready: bool,
    text: String,
    metrics: String,
}

impl Verdict {
    fn of(node: &Server) -> Verdict {
        let at = format!("127.0.0.1:{}", node.port());
        let checked = opencluster(&["status", "--check", "--node", &at]);
        let document: serde_json::Value =
            serde_json::from_str(&http::get(node.http_port(), "/api/cluster")).expect("JSON");
        let problems = document["health"]["problems"].as_array().cloned().unwrap_or_default();
        let kind =
            |problem: &serde_json::Value| problem["kind"].as_str().expect("a name").to_owned();
        Verdict {
            exit_code: checked.status.code().expect("it ended"),
            kinds: problems.iter().map(kind).collect(),
            cluster_state: cluster_state(node),
            is_ready: http::ask(node.http_port(), "GET", "/readyz", "").status == 200,
            text: String::from_utf8_lossy(&checked.stdout).into_owned(),
            metrics: http::get(node.http_port(), "/metrics"),
        }
    }

    fn has(&self, kind: &str) -> bool {
        self.kinds.iter().any(|it| it == kind)
    }
}

fn cluster_state(node: &Server) -> String {
    let Value::Bulk(text) = node.client().run("CLUSTER INFO") else { panic!("it is answered") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("cluster_state:"));
    line.unwrap_or_else(|| panic!("no state in {text}")).to_owned()
}

/// What is expected of all tools at a node with one problem.
struct Expected {
    kind: &'static str,
    severity: u8,
    cluster_state: &'static str,
    is_ready: bool,
    /// Words in the output of `status --check`, and in the log.
    says: &'static str,
    is_logged: bool,
}

/// Waits until the node has this problem; then all tools must agree about it.
fn assert_all_say(node: &Server, expected: &Expected) {
    let Expected { kind, severity, cluster_state, is_ready, says, is_logged } = *expected;
    let mut verdict = Verdict::of(node);
    wait_until(kind, PATIENCE, || {
        verdict = Verdict::of(node);
        // One of the tools may have been asked before the problem began.
        verdict.has(kind) && verdict.exit_code == i32::from(severity) && verdict.text.contains(says)
    });
    let verdict = Verdict::of(node);
    let Verdict { exit_code, text, metrics, .. } = &verdict;
    assert_eq!(*exit_code, i32::from(severity), "{kind}: {text}");
    assert!(text.contains(says) && text.contains("what to do: "), "{kind}: {text}");
    assert_eq!(verdict.cluster_state, cluster_state, "{kind}");
    assert_eq!(verdict.is_ready, is_ready, "{kind}");
    let gauge = format!("\nopencluster_health {severity}\n");
    assert!(metrics.contains(&gauge), "{kind}: {metrics}");
    let of_kind = metrics.lines().find(|line| line.contains(&format!("{{kind=\"{kind}\"")));
    assert!(of_kind.is_some_and(|line| line.ends_with(" 1")), "{kind}: {of_kind:?}");
    if is_logged {
        wait_until("the log says it", PATIENCE, || node.log().contains(says));
    }
}

fn assert_all_is_well(node: &Server) {
    wait_until("it is well", PATIENCE, || Verdict::of(node).exit_code == 0);
    let verdict = Verdict::of(node);
    assert_eq!((verdict.text.as_str(), verdict.kinds.len()), ("healthy\n", 0));
    assert_eq!((verdict.cluster_state.as_str(), verdict.is_ready), ("ok", true));
    assert!(verdict.metrics.contains("\nopencluster_health 0\n"), "{}", verdict.metrics);
}

#[test]
fn a_majority_that_is_gone_is_told_by_every_tool_and_its_end_too() {
    let cluster = Cluster::of(3, &["--buckets", "16"]);
    let [survivor, others @ ..] = cluster.nodes.as_slice() else { panic!("there are three") };
    assert_all_is_well(survivor);
    others.iter().for_each(Server::stop);
    let expected = Expected {
        kind: "lease-lost",
        severity: 2,
        cluster_state: "fail",
        is_ready: false,
        says: "has no lease",
        is_logged: true,
    };
    assert_all_say(survivor, &expected);
    let silent = || Verdict::of(survivor).text.contains("2 of 3 voters do not answer");
    wait_until("it says who does not answer", PATIENCE, silent);
    others.iter().for_each(Server::go_on);
    assert_all_is_well(survivor);
    let over = || survivor.log().contains("lease-lost of node");
    wait_until("the log says that it is over", PATIENCE, over);
}

#[test]
fn one_of_two_that_may_not_go_on_says_why() {
    let mut cluster = Cluster::of(2, &["--buckets", "16"]);
    set(&cluster.nodes[0], "two-node-takeover", "no");
    cluster.kill(1);
    let expected = Expected {
        kind: "lease-lost",
        severity: 2,
        cluster_state: "fail",
        is_ready: false,
        says: "1 of 2 voters do not answer",
        is_logged: false,
    };
    assert_all_say(&cluster.nodes[0], &expected);
    let advice = Verdict::of(&cluster.nodes[0]).text;
    assert!(advice.contains("opencluster takeover"), "{advice}");
}

#[test]
fn a_bucket_without_a_holder_fails_the_cluster_but_no_node() {
    let mut cluster = Cluster::of(5, &["--buckets", "16", "--backups", "0"]);
    fill(&cluster);
    set(&cluster.nodes[0], "lost-after", "never");
    cluster.kill(4);
    let expected = Expected {
        kind: "buckets-lost",
        severity: 2,
        cluster_state: "fail",
        is_ready: true,
        says: "no holder (",
        is_logged: false,
    };
    assert_all_say(&cluster.nodes[0], &expected);
    let is_logged = || cluster.nodes[0].log().contains("no holder: their keys are refused");
    wait_until("the log says it", PATIENCE, is_logged);
}

#[test]
fn a_node_out_of_memory_fails_and_is_still_ready_for_reads() {
    let node = Server::node_with(&["--maxmemory", "30mb"]);
    assert_all_is_well(&node);
    let (mut client, value) = (node.client(), "v".repeat(64 * 1024));
    let refused = (0..2_000)
        .find(|number| matches!(client.run(&format!("SET key:{number} {value}")), Value::Error(_)));
    assert!(refused.is_some(), "some write is refused");
    let expected = Expected {
        kind: "out-of-memory",
        severity: 2,
        cluster_state: "ok",
        is_ready: true,
        says: "is out of memory",
        is_logged: true,
    };
    assert_all_say(&node, &expected);
    client.run("FLUSHALL");
    assert_all_is_well(&node);
}

#[test]
fn a_node_whose_thread_hangs_is_told_by_the_others_and_not_ready() {
    let cluster = Cluster::of(3, &["--io-threads", "3", "--enable-debug-command", "yes"]);
    let [hangs, other, _] = cluster.nodes.as_slice() else { panic!("there are three") };
    let mut sleeper = hangs.client();
    sleeper.send(&["DEBUG", "SLEEP", "14"]).expect("it reads");
    let is_unready = || http::ask(hangs.http_port(), "GET", "/readyz", "").status == 503;
    wait_until("it is not ready", PATIENCE, is_unready);
    let told = http::ask(hangs.http_port(), "GET", "/readyz", "");
    assert!(told.body.contains("is sick: thread io-"), "{}", told.body);
    wait_until("another node says it", PATIENCE, || Verdict::of(other).has("sick"));
    sleeper.receive().expect("the end of the sleep");
    assert_all_is_well(other);
}

#[test]
fn a_node_that_does_not_answer_is_the_worst_verdict() {
    let checked = opencluster(&["status", "--check", "--node", "127.0.0.1:1"]);
    assert_eq!(checked.status.code(), Some(2));
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(text.starts_with("failing: "), "{text}");
}

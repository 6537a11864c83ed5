//! Two sides of a cluster that continued separately meet again: the lesser side yields, its writes are merged, and
//! there is one cluster. The tests separate the sides by stopping processes in turn, so that no side reaches the
//! other.
use std::thread;
use std::time::{Duration, Instant};

use e2e::{Client, Cluster, Server, opencluster, voters_of};
use resp::Value;
use serde_json::Value as Json;

use crate::load::client;
use crate::losses::conflicts;

/// Timeout for everything that happens by itself, on a busy machine.
const WITHIN: Duration = Duration::from_secs(90);

/// Returns a node's status of the cluster, if it answers.
fn status(node: &Server) -> Option<Json> {
    let mut client = Client::try_connect(node.port()).ok()?;
    client.send(&["CLUSTER", "STATUS"]).ok()?;
    let reply = client.receive_within(Duration::from_secs(3)).ok()??.value;
    serde_json::from_slice(reply.text()?).ok()
}

fn members(status: &Json) -> usize {
    status["members"].as_array().map_or(0, Vec::len)
}

/// Summarizes a node's status in a line.
fn brief(node: &Server) -> String {
    let Some(told) = status(node) else { return "no answer".to_owned() };
    let names = told["members"].as_array().into_iter().flatten().map(|it| it["name"].to_string());
    let copies = told["buckets"].as_array().into_iter().flatten();
    let copies: usize = copies.map(|it| it["holders"].as_array().map_or(0, Vec::len)).sum();
    let names: Vec<String> = names.collect();
    let of = |name: &str| told[name].to_string();
    let (generation, epoch, estranged) = (of("generation"), of("epoch"), of("estranged"));
    let (yields, merged) = (of("yields"), of("merged"));
    format!(
        "{} generation {generation} epoch {epoch} of {names:?}, {copies} copies, without {estranged}, \
         yields {yields}, merged {merged}",
        of("node")
    )
}

fn eventually(claim: &str, nodes: &[&Server], mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        let told = || nodes.iter().map(|node| brief(node)).collect::<Vec<_>>();
        assert!(begun.elapsed() < WITHIN, "{claim}; {:#?}", told());
        thread::sleep(Duration::from_millis(100));
    }
}

/// Sends requests to the survivor until it has taken over alone.
fn goes_on_alone(node: &Server) {
    eventually("it takes over", &[node], || {
        let mut client = node.client();
        client.send(&["GET", "somebody's"]).and_then(|()| client.receive()).ok();
        status(node).is_some_and(|told| members(&told) == 1)
    });
}

fn set(node: &Server, key: &str, value: &str) {
    let answer = node.client().call(&["SET", key, value]).value;
    assert_eq!(answer, Value::Simple(b"OK".to_vec()), "SET {key}");
}

fn delete(node: &Server, key: &str) {
    assert_eq!(node.client().call(&["DEL", key]).value, Value::Integer(1), "DEL {key}");
}

/// Returns whether all of these are members of one cluster, and every bucket has its copies.
fn is_whole(nodes: &[&Server]) -> bool {
    let told: Vec<Option<Json>> = nodes.iter().map(|node| status(node)).collect();
    let full = |it: &Json| {
        let buckets = it["buckets"].as_array();
        buckets.is_some_and(|all| {
            all.iter().all(|bucket| bucket["holders"].as_array().is_some_and(|it| it.len() == 2))
        })
    };
    let vote = |it: &Json| {
        let members = it["members"].as_array();
        let voters = |all: &Vec<Json>| all.iter().filter(|it| it["vote"] == "voter").count();
        members.is_some_and(|all| voters(all) == voters_of(nodes.len()))
    };
    let whole = |it: &Option<Json>| {
        it.as_ref().is_some_and(|it| members(it) == nodes.len() && full(it) && vote(it))
    };
    let epoch = |it: &Option<Json>| it.as_ref().map(|it| it["epoch"].clone());
    told.iter().all(whole) && told.iter().all(|it| epoch(it) == epoch(&told[0]))
}

fn get(connection: &mut redis::cluster::ClusterConnection, key: &str) -> Option<String> {
    redis::cmd("GET").arg(key).query(connection).expect("an answer")
}

/// Returns the number of keys that the nodes have merged in this way.
fn merged(nodes: &[&Server], what: &str) -> u64 {
    let of = |node: &&Server| status(node).and_then(|told| told["merged"][what].as_u64());
    nodes.iter().filter_map(of).sum()
}

#[test]
fn a_node_that_slept_while_the_other_took_over_yields_and_comes_back() {
    let cluster = Cluster::of(2, &[]);
    let [survivor, sleeper] = [&cluster.nodes[0], &cluster.nodes[1]];
    let mut connection = client(&cluster.urls()).get_connection().unwrap();
    for number in 0..100 {
        redis::cmd("SET").arg(number).arg("before").query::<()>(&mut connection).unwrap();
    }
    sleeper.stop();
    goes_on_alone(survivor);
    for number in 50..150 {
        set(survivor, &number.to_string(), "since");
    }
    delete(survivor, "0");
    sleeper.go_on();
    eventually("it comes back", &[survivor], || is_whole(&[survivor, sleeper]));
    let mut connection = client(&cluster.urls()).get_connection().unwrap();
    for number in 1..150 {
        let expected = if number < 50 { "before" } else { "since" };
        assert_eq!(get(&mut connection, &number.to_string()).as_deref(), Some(expected));
    }
    assert_eq!(get(&mut connection, "0"), None);
    assert_eq!(merged(&[survivor, sleeper], "taken"), 0, "it had nothing that the other lacked");
    assert_eq!(status(survivor).unwrap()["estranged"], serde_json::json!([]));
}

#[test]
fn if_both_went_on_alone_everything_either_wrote_is_there_and_conflicts_are_told() {
    let directory = std::env::temp_dir().join(format!("opencluster-meet-{}", std::process::id()));
    let paths: Vec<String> =
        ["one", "two"].iter().map(|it| directory.join(it).display().to_string()).collect();
    let one = Server::node_with(&["--data-dir", &paths[0]]);
    let join = format!("127.0.0.1:{}", one.port());
    let two = Server::node_with(&["--data-dir", &paths[1], "--join", &join]);
    let (one, two) = (&one, &two);
    eventually("they are even", &[one, two], || is_whole(&[one, two]));
    let urls: Vec<String> =
        [one, two].iter().map(|it| format!("redis://127.0.0.1:{}/", it.port())).collect();
    let mut connection = client(&urls).get_connection().unwrap();
    let large = "x".repeat(300_000);
    for number in 0..300 {
        redis::cmd("SET").arg(number).arg("before").query::<()>(&mut connection).unwrap();
    }
    two.stop();
    goes_on_alone(one);
    for number in 0..100 {
        set(one, &number.to_string(), "one");
    }
    set(one, "large of one", &format!("one{large}"));
    set(one, "only one", "one");
    delete(one, "200");
    delete(one, "299");
    one.stop();
    two.go_on();
    goes_on_alone(two);
    for number in 50..150 {
        set(two, &number.to_string(), "two");
    }
    set(two, "large of two", &format!("two{large}"));
    set(two, "299", "two");
    delete(two, "201");
    one.go_on();
    eventually("they are one", &[one, two], || is_whole(&[one, two]));
    let mut connection = client(&urls).get_connection().unwrap();
    for number in 0..299 {
        let expected = match number {
            200 | 201 => None,
            0..50 => Some("one"),
            50..150 => Some("two"),
            _ => Some("before"),
        };
        assert_eq!(get(&mut connection, &number.to_string()).as_deref(), expected, "{number}");
    }
    assert_eq!(get(&mut connection, "299").as_deref(), Some("two"), "written after it was deleted");
    assert_eq!(get(&mut connection, "only one").as_deref(), Some("one"));
    assert_eq!(get(&mut connection, "large of one"), Some(format!("one{large}")));
    assert_eq!(get(&mut connection, "large of two"), Some(format!("two{large}")));
    // Both sides wrote 50 to 99 and 299; for each of these, one side's write is lost.
    let lost = merged(&[one, two], "lost_here") + merged(&[one, two], "lost_there");
    assert_eq!((lost, merged(&[one, two], "unsure")), (51, 0));
    conflicts_are_told(&[one, two], &paths, 51);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn what_a_side_has_taken_away_it_still_knows_after_a_restart() {
    let directory = std::env::temp_dir().join(format!("opencluster-again-{}", std::process::id()));
    let path = |name: &str| directory.join(name).display().to_string();
    let mut one = Server::node_with(&["--data-dir", &path("one")]);
    let join = |to: &Server| format!("127.0.0.1:{}", to.port());
    let two = Server::node_with(&["--data-dir", &path("two"), "--join", &join(&one)]);
    eventually("they are even", &[&one, &two], || is_whole(&[&one, &two]));
    let urls = [&one, &two].map(|it| format!("redis://127.0.0.1:{}/", it.port()));
    let mut connection = client(&urls).get_connection().unwrap();
    for number in 0..30 {
        redis::cmd("SET").arg(number).arg("before").query::<()>(&mut connection).unwrap();
    }
    two.stop();
    goes_on_alone(&one);
    (0..20).for_each(|number| delete(&one, &number.to_string()));
    one.ask_to_end();
    one.wait_until_it_ends();
    two.go_on();
    goes_on_alone(&two);
    // The side that has grown is the greater: the other one yields, and reports what it has changed.
    let three = Server::node_with(&["--join", &join(&two)]);
    eventually("they are even", &[&two, &three], || is_whole(&[&two, &three]));
    let one = one.start_again();
    eventually("they are one", &[&one, &two, &three], || is_whole(&[&one, &two, &three]));
    let mut connection = client(&urls).get_connection().unwrap();
    for number in 0..30 {
        let expected = (number >= 20).then_some("before");
        assert_eq!(get(&mut connection, &number.to_string()).as_deref(), expected, "{number}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Checks that `count` conflicts are in the files and in the command's answer, with both versions and the winner.
fn conflicts_are_told(nodes: &[&Server], paths: &[String], count: usize) {
    let reports = paths.iter().filter_map(|path| {
        std::fs::read_to_string(std::path::Path::new(path).join("conflicts")).ok()
    });
    let lines: Vec<Json> = reports
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| serde_json::from_str(&line).expect("a line of JSON"))
        .collect();
    assert_eq!(lines.len(), count, "every one of them is in the file");
    let line = lines.iter().find(|line| line["key"] == "50").expect("a conflict of 50");
    let (standing, yielding) = (&line["standing"], &line["yielding"]);
    assert_eq!((&standing["bytes"], &yielding["bytes"]), (&3.into(), &3.into()));
    let later = standing["version"].as_u64() > yielding["version"].as_u64();
    let winner = if later { "the surviving side" } else { "the losing side" };
    assert_eq!(line["winner"], winner);
    assert_eq!(conflicts(nodes.iter().copied()), count);
}

/// Has a node that has lost the majority take over, by the operator's command.
fn takes_over_by_word(node: &Server) {
    let address = format!("127.0.0.1:{}", node.port());
    eventually("it takes over by the operator's word", &[node], || {
        opencluster(&["takeover", "--node", &address]);
        thread::sleep(Duration::from_millis(300));
        status(node).is_some_and(|told| members(&told) == 1)
    });
}

/// Returns the four nodes with the voters first.
fn voters_first(nodes: &[Server]) -> Vec<&Server> {
    let told = status(&nodes[0]).expect("it answers");
    let all = told["members"].as_array().expect("members are a list");
    let votes = |node: &&Server| {
        let port = u64::from(node.port());
        all.iter().any(|it| it["client_port"] == port && it["vote"] == "voter")
    };
    let (voters, others): (Vec<&Server>, Vec<&Server>) = nodes.iter().partition(votes);
    voters.into_iter().chain(others).collect()
}

#[test]
fn both_halves_of_four_that_went_on_by_the_operators_word_become_one() {
    let cluster = Cluster::of(4, &["--buckets", "16"]);
    cluster.nodes[0].client().run("CLUSTER SETTINGS lost-after 1s");
    let mut connection = client(&cluster.urls()).get_connection().unwrap();
    for number in 0..200 {
        redis::cmd("SET").arg(number).arg("before").query::<()>(&mut connection).unwrap();
    }
    eventually("three vote", &[], || {
        let told = status(&cluster.nodes[0]).unwrap_or_default();
        let members = told["members"].as_array().cloned().unwrap_or_default();
        members.iter().filter(|it| it["vote"] == "voter").count() == 3
    });
    let order = voters_first(&cluster.nodes);
    let (first, second) = ([order[0], order[3]], [order[1], order[2]]);
    // One voter of three is left: only the operator can let it continue.
    second.iter().for_each(|node| node.stop());
    takes_over_by_word(first[0]);
    eventually("its neighbour follows", &first, || is_whole(&first));
    write(&first, 0..60, "first");
    first.iter().for_each(|node| node.stop());
    second[0].go_on();
    takes_over_by_word(second[0]);
    second[1].go_on();
    eventually("its neighbour follows", &second, || is_whole(&second));
    write(&second, 50..120, "second");
    first.iter().for_each(|node| node.go_on());
    eventually("all are one", &order, || is_whole(&order));
    let mut connection = client(&cluster.urls()).get_connection().unwrap();
    for number in 0..200 {
        let expected = match number {
            0..50 => "first",
            50..120 => "second",
            _ => "before",
        };
        assert_eq!(
            get(&mut connection, &number.to_string()).as_deref(),
            Some(expected),
            "{number}"
        );
    }
}

fn write(nodes: &[&Server], numbers: std::ops::Range<u32>, value: &str) {
    let urls: Vec<String> =
        nodes.iter().map(|it| format!("redis://127.0.0.1:{}/", it.port())).collect();
    let mut connection = client(&urls).get_connection().expect("a node answers");
    for number in numbers {
        redis::cmd("SET")
            .arg(number)
            .arg(value)
            .query::<()>(&mut connection)
            .expect("it is written");
    }
}

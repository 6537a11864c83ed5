//! Tests the plan of every class of command for keys at rest, held by an announced map, moving, and known.

use super::*;
use crate::config::{Address, Config, Status};

fn config() -> Config {
    let servers = Address::list("a:1,b:1").unwrap();
    let mut config = Config::first(servers, "1.1".parse().unwrap());
    config.previous = "0.1".parse().unwrap();
    config
}

/// Returns a view under which keys move from server 1 to server 0, or stay on 1.
fn migrating() -> View {
    View::of(&Config { status: Status::InProgress, ..config() })
}

fn settled() -> View {
    View::of(&Config { previous: config().current, ..config() })
}

fn announced() -> View {
    View::of(&Config { next: Some("0.1".parse().unwrap()), previous: config().current, ..config() })
}

/// Returns names whose hash tags put them on server 0 and on server 1 under the current map.
fn names() -> (String, String) {
    let on = |server| {
        let mut names = (0..).map(|number| format!("{{t{number}}}"));
        names.find(|name| settled().place(name.as_bytes()) == Place::At(Server(server))).unwrap()
    };
    (on(0), on(1))
}

fn plan(view: &View, known: &Known, line: &str) -> Plan {
    let (zero, one) = names();
    let line = line.replace("ZERO", &zero).replace("ONE", &one);
    let args: Vec<&str> = line.split(' ').collect();
    decide(view, known, &args)
}

fn at_rest(line: &str) -> Plan {
    plan(&settled(), &Known::default(), line)
}

fn moving(line: &str) -> Plan {
    plan(&migrating(), &Known::default(), line)
}

const ROUTE: Route = Route { from: Server(1), to: Server(0) };

#[test]
fn at_rest_a_command_goes_where_its_keys_are() {
    assert_eq!(at_rest("get ZERO"), Plan::Forward(Server(0)));
    assert_eq!(at_rest("SET ONE v"), Plan::Forward(Server(1)));
    assert_eq!(at_rest("RENAME ZEROa ZEROb"), Plan::Forward(Server(0)));
    assert_eq!(at_rest("MGET ONEa ONEb"), Plan::Forward(Server(1)));
    assert_eq!(at_rest("BLPOP ONE 0"), Plan::ForwardWaiting(Server(1)));
    assert_eq!(at_rest("XREAD STREAMS ONE 0"), Plan::Forward(Server(1)));
    assert_eq!(at_rest("EVAL s 1 ZERO"), Plan::Forward(Server(0)));
}

#[test]
fn keys_on_two_servers_are_scattered_or_refused() {
    let Plan::Scatter(scatter) = at_rest("MSET ZEROa 1 ONE 2 ZEROb 3") else { panic!() };
    assert_eq!(scatter.merge, Merge::AllOk);
    let args = ["MSET", "a", "1", "b", "2", "c", "3"];
    let parts: Vec<_> = scatter.parts.iter().map(|part| (part.run, part.args(&args))).collect();
    let bytes =
        |words: &[&'static str]| words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>();
    assert_eq!(
        parts,
        [
            (PartRun::Forward(Server(0)), bytes(&["MSET", "a", "1", "c", "3"])),
            (PartRun::Forward(Server(1)), bytes(&["MSET", "b", "2"])),
        ]
    );
    assert_eq!(at_rest("RENAME ZERO ONE"), Plan::Refuse(Refusal::SeveralServers));
    assert_eq!(at_rest("EVAL s 2 ZERO ONE"), Plan::Refuse(Refusal::SeveralServers));
    assert_eq!(at_rest("MSETNX ZERO 1 ONE 1"), Plan::Refuse(Refusal::SeveralServers));
}

#[test]
fn a_moving_key_needs_a_job_until_enough_is_known() {
    assert_eq!(moving("GET ZERO"), Plan::Read { key: 1, route: ROUTE });
    assert_eq!(moving("GET ONE"), Plan::Forward(Server(1)));
    let bring =
        |known| Bring { to: Server(0), keys: vec![MovingKey { place: 1, from: Server(1), known }] };
    for line in ["SET ZERO v", "EXPIRE ZERO 1", "INCR ZERO"] {
        assert_eq!(moving(line), Plan::Write(bring(Knowledge::Nothing)), "{line}");
    }
    let Plan::Scatter(found) = moving("DEL ZERO") else { panic!() };
    assert_eq!(found.parts[0].run, PartRun::Write { route: ROUTE, known: Knowledge::Nothing });
    assert!(matches!(moving("BLPOP ZERO 0"), Plan::WriteWaiting(_)));
    let mut known = Known::default();
    known.learn(names().0.as_bytes(), Knowledge::Gone);
    assert_eq!(plan(&migrating(), &known, "GET ZERO"), Plan::Forward(Server(0)));
    assert_eq!(plan(&migrating(), &known, "INCR ZERO"), Plan::Write(bring(Knowledge::Gone)));
    known.learn(names().0.as_bytes(), Knowledge::Settled);
    assert_eq!(plan(&migrating(), &known, "INCR ZERO"), Plan::Forward(Server(0)));
    assert_eq!(plan(&migrating(), &known, "DEL ZERO"), Plan::Forward(Server(0)));
}

#[test]
fn a_read_of_several_keys_brings_those_that_move() {
    let Plan::Write(bring) = moving("SINTER ZEROa ZEROb") else { panic!() };
    assert_eq!(bring.keys.len(), 2);
    let Plan::Scatter(scatter) = moving("MGET ZEROa ONEa ZEROb ONEb") else { panic!() };
    let runs: Vec<_> = scatter.parts.iter().map(|part| part.run).collect();
    assert_eq!(runs, [PartRun::Read(ROUTE), PartRun::Forward(Server(1)), PartRun::Read(ROUTE)]);
}

#[test]
fn keys_an_announced_map_moves_are_held_and_no_others() {
    let known = Known::default();
    for line in ["GET ZERO", "SET ZERO v", "MGET ZERO ONE", "BLPOP ZERO 0"] {
        assert_eq!(plan(&announced(), &known, line), Plan::Hold, "{line}");
    }
    assert_eq!(plan(&announced(), &known, "GET ONE"), Plan::Forward(Server(1)));
}

#[test]
fn what_cannot_work_is_refused_in_clear_words() {
    let text = |line: &str| {
        let Plan::Refuse(refusal) = at_rest(line) else { panic!("{line} is not refused") };
        refusal.to_string()
    };
    assert_eq!(text("NONSENSE"), "ERR unknown command 'NONSENSE'");
    assert_eq!(text("GET"), "ERR wrong number of arguments for 'get' command");
    assert_eq!(
        text("GET server.config.epoch"),
        "ERR keys that begin with 'server.config.' belong to the fleet"
    );
    assert_eq!(
        text("DEL a server.config.lock"),
        "ERR keys that begin with 'server.config.' belong to the fleet"
    );
    assert_eq!(
        text("EVAL s 0"),
        "ERR 'eval' needs at least one key, so that the fleet knows where to run it"
    );
    assert_eq!(
        text("SAVE"),
        "ERR 'save' is not possible through the fleet's proxy: it concerns a single server; send it to that server directly"
    );
    assert_eq!(text("EVAL s 5 a"), "ERR Number of keys can't be greater than number of args");
}

#[test]
fn a_command_without_keys_goes_to_all_or_to_any() {
    let servers = vec![Server(0), Server(1)];
    assert_eq!(at_rest("DBSIZE"), Plan::Everywhere { servers, merge: Merge::Sizes });
    assert_eq!(at_rest("SCAN 0"), Plan::Scan);
    assert_eq!(at_rest("TIME"), Plan::Anywhere);
    assert_eq!(at_rest("PING"), Plan::Local);
    assert_eq!(at_rest("MULTI"), Plan::Transaction);
    assert_eq!(at_rest("SUBSCRIBE c"), Plan::Channel);
}

#[test]
fn a_script_exists_if_all_servers_have_it() {
    let merge = |line: &str| {
        let Plan::Everywhere { merge, .. } = at_rest(line) else { panic!("{line} asks all") };
        merge
    };
    assert_eq!(merge("SCRIPT EXISTS a b"), Merge::AllHave);
    assert_eq!(merge("SCRIPT LOAD x"), Merge::First);
}

#[test]
fn sort_by_keys_of_other_servers_and_copies_to_other_databases_are_refused() {
    let is_refused =
        |line: &str| matches!(at_rest(line), Plan::Refuse(Refusal::NotInAFleet { .. }));
    for line in ["SORT {a}k BY w_*", "SORT {a}k GET # GET w_*", "SORT_RO k BY w_* LIMIT 0 1"] {
        assert!(is_refused(line), "{line}");
    }
    for line in ["SORT k BY nosort GET #", "SORT {a}k BY w_{a}* GET v_{a}*", "SORT k LIMIT 0 1"] {
        assert!(!is_refused(line), "{line}");
    }
    assert!(is_refused("SORT {a}k BY w_{*}"), "any tag fits this");
    assert!(matches!(moving("SORT ONEk BY w_*"), Plan::Refuse(_)));
    assert!(is_refused("COPY {a}k {a}l DB 3"));
    assert!(!is_refused("COPY {a}k {a}l DB 0 REPLACE"));
}

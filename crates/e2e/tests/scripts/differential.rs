//! The corpus, at Redis and at our node.

use e2e::{Client, Server};

const CORPUS: &str = include_str!("corpus.txt");

/// Scripts whose answers differ on purpose: the beginning of the script, and the reason.
const DIFFERS: [(&str, &str); 4] = [
    ("return string.rep('',1000000000)", "the answer is the same, but Redis takes seconds"),
    ("return {unpack({},0,2147483647)}", "Redis 7.0.15 has CVE-2025-46817"),
    ("return {unpack({},-2147483648,2147483647)}", "Redis 7.0.15 has CVE-2025-46817"),
    ("return {map={a=1}}", "an order of keys"),
];

fn scripts() -> impl Iterator<Item = String> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.replace("\\n", "\n"))
}

fn answer(client: &mut Client, script: &str, command: &str) -> Vec<u8> {
    let args = [command, script, "2", "{a}", "{b}:{a}", "x", "10", ""];
    // The second key must be in the slot of the first.
    let args = args.map(|arg| if arg == "{b}:{a}" { "b:{a}" } else { arg });
    let answer = client.call(&args);
    answer.raw
}

fn play(resp3: bool) {
    let (redis, node) = (Server::redis(), Server::node());
    let (mut theirs, mut ours) = (redis.client(), node.client());
    if resp3 {
        theirs.run("HELLO 3");
        ours.run("HELLO 3");
    }
    let mut wrong = Vec::new();
    let mut count = 0;
    for script in scripts() {
        if DIFFERS.iter().any(|(begin, _)| script.starts_with(begin)) {
            answer(&mut ours, &script, "EVAL"); // It must not end the node.
            continue;
        }
        count += 1;
        let expected = answer(&mut theirs, &script, "EVAL");
        let told = answer(&mut ours, &script, "EVAL");
        if told != expected {
            wrong.push(format!(
                "{script}\n  redis: {}\n  ours:  {}",
                expected.escape_ascii(),
                told.escape_ascii()
            ));
        }
    }
    assert!(count > 200, "only {count} scripts");
    assert!(wrong.is_empty(), "{} scripts differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn scripts_are_answered_as_redis_answers_them_in_resp2() {
    play(false);
}

#[test]
fn scripts_are_answered_as_redis_answers_them_in_resp3() {
    play(true);
}

#[test]
fn commands_about_scripts_are_answered_as_redis_answers_them() {
    let (redis, node) = (Server::redis(), Server::node());
    let (mut theirs, mut ours) = (redis.client(), node.client());
    let requests: &[&[&str]] = &[
        &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"],
        &["SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "x"],
        &["SCRIPT", "LOAD", "return 1"],
        &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"],
        &["EVALSHA", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"],
        &["SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"],
        &["SCRIPT", "LOAD", "return x x"],
        &["SCRIPT", "FLUSH", "x"],
        &["SCRIPT", "FLUSH", "SYNC"],
        &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"],
        &["SCRIPT", "KILL"],
        &["SCRIPT", "NOSUCH"],
        &["EVAL", "return 1"],
        &["EVAL", "return 1", "x"],
        &["EVAL", "return 1", "-1"],
        &["EVAL", "return 1", "1"],
        &["EVALSHA", "x", "0"],
        &["EVAL_RO", "return redis.call('set','k','v')", "1", "k"],
        &["EVAL_RO", "return redis.call('get','k')", "1", "k"],
        &["EVAL", "#!lua flags=no-writes\nreturn redis.call('set','k','v')", "1", "k"],
        &["EVAL", "#!lua\nreturn redis.call('set','k','v')", "1", "k"],
        &["EVAL_RO", "#!lua\nreturn 1", "0"],
        &["EVAL", "#!lua flags=nosuch\nreturn 1", "0"],
        &["EVAL", "#!lua nosuch=1\nreturn 1", "0"],
        &["EVAL", "#!python\nreturn 1", "0"],
        &["EVAL", "#!lua", "0"],
        &["EVAL", "#!lua\n\nerror('line 3')", "0"],
        &["MULTI"],
        &["EVAL", "return redis.call('incr',KEYS[1])", "1", "n"],
        &["EVAL", "return redis.call('incr','n')", "0"],
        &["EXEC"],
        &["EVAL", "return redis.call('incr','n')", "0"],
        &[
            "EVAL",
            "redis.call('set','m',1) return {redis.call('get','n'), redis.call('dbsize')}",
            "0",
        ],
        &["EVAL", "return #redis.call('keys','*')", "0"],
    ];
    let mut wrong = Vec::new();
    for request in requests {
        let (expected, told) = (theirs.call(request).raw, ours.call(request).raw);
        if told != expected {
            let (expected, told) = (expected.escape_ascii(), told.escape_ascii());
            wrong.push(format!("{request:?}\n  redis: {expected}\n  ours:  {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

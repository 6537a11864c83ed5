//! Scripts as dialogues.

use crate::testing::{TestNode, check, check_on};

#[test]
fn a_script_calls_commands_and_returns_values() {
    check(
        r#"
        > EVAL "return redis.call('set', KEYS[1], ARGV[1])" 1 k v
        OK
        > EVAL "return redis.call('get', KEYS[1])" 1 k
        "v"
        > EVAL "return {1, 2.9, 'x', {true, false}, redis.status_reply('FINE')}" 0
        1) (integer) 1
        2) (integer) 2
        3) "x"
        4) 1) (integer) 1
           2) (nil)
        5) FINE
        > EVAL "return redis.call('incr', KEYS[1])" 1 k
        (error) ERR value is not an integer or out of range script: 2bab3b661081db58bd2341920e0ba7cf5dc77b25, on @user_script:1.
        > EVAL "return redis.pcall('incr', KEYS[1])" 1 k
        (error) ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn a_reply_that_would_never_end_is_refused() {
    let mut node = TestNode::default();
    let script = "local t = {} for i = 1, 1000 do t[i] = t end return t";
    let replies = node.args(1, &[b"EVAL", script.as_bytes(), b"0"]);
    let text = replies.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(text.len() < 1_000, "{} bytes", text.len());
    assert!(text.contains("the reply of the script is too long"), "{text}");
}

#[test]
fn a_database_that_a_script_selects_is_its_own() {
    check(
        r#"
        > EVAL "redis.call('select', 3) redis.call('set', KEYS[1], 'there') return redis.call('get', KEYS[1])" 1 k
        "there"
        > GET k
        (nil)
        > EVAL "redis.call('select', 3) error('no')" 0
        (error) ERR user_script:1: no script: 0239239976886fe01f93890e0b9e69fab6df8d1f, on @user_script:1.
        > GET k
        (nil)
        > SELECT 3
        OK
        > GET k
        "there"
        "#,
    );
}

#[test]
fn scripts_are_run_by_their_hash() {
    check(
        r#"
        > EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
        (error) NOSCRIPT No matching script. Please use EVAL.
        > SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db
        1) (integer) 0
        > SCRIPT LOAD "return 1"
        "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
        > EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0
        (integer) 1
        > SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8db
        "return 1"
        > SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db x
        1) (integer) 1
        2) (integer) 0
        > SCRIPT FLUSH
        OK
        > EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
        (error) NOSCRIPT No matching script. Please use EVAL.
        > SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8db
        (error) NOSCRIPT No matching script.
        > SCRIPT FLUSH SOON
        (error) ERR SCRIPT FLUSH only support SYNC|ASYNC option
        > SCRIPT KILL
        (error) NOTBUSY No scripts in execution right now.
        > SCRIPT LOAD "return return"
        (error) ERR Error compiling script (new function): user_script:1: unexpected symbol near 'return'
        > SCRIPT DEBUG YES
        (error) ERR SCRIPT DEBUG is not supported: debug the script on a redis-server of your own
        "#,
    );
}

#[test]
fn the_number_of_keys_is_checked() {
    check(
        r#"
        > EVAL "return 1" x
        (error) ERR value is not an integer or out of range
        > EVAL "return 1" -1
        (error) ERR Number of keys can't be negative
        > EVAL "return 1" 1
        (error) ERR Number of keys can't be greater than number of args
        > EVAL "return {#KEYS, #ARGV}" 1 a b c
        1) (integer) 1
        2) (integer) 2
        "#,
    );
}

#[test]
fn a_read_only_script_writes_nothing() {
    check(
        r#"
        > EVAL_RO "return redis.call('set', KEYS[1], 'v')" 1 k
        (error) ERR Write commands are not allowed from read-only scripts. script: b1a9e4c4cc8a2bdd2bc4a0ef03c10bb1ab5ff4cb, on @user_script:1.
        > EXISTS k
        (integer) 0
        > EVAL_RO "return redis.call('exists', KEYS[1])" 1 k
        (integer) 0
        "#.replace("b1a9e4c4cc8a2bdd2bc4a0ef03c10bb1ab5ff4cb", id("return redis.call('set', KEYS[1], 'v')").text()).as_str(),
    );
}

fn id(script: &str) -> scripting::ScriptId {
    scripting::ScriptId::of(script.as_bytes())
}

#[test]
fn a_script_may_use_any_key_of_a_node_alone() {
    check(
        r#"
        > EVAL "redis.call('set', 'a', 1) redis.call('set', 'b', 2) return redis.call('dbsize')" 0
        (integer) 2
        > EVAL "redis.call('set', 'a', 1) redis.call('set', 'b', 2) return redis.call('dbsize')" 0
        (integer) 2
        > MULTI
        OK
        > EVAL "return redis.call('incr', 'a')" 0
        QUEUED
        > INCR b
        QUEUED
        > EXEC
        1) (integer) 2
        2) (integer) 3
        "#,
    );
}

#[test]
fn a_script_that_declared_its_keys_so_far_runs_again_with_others() {
    let mut node = TestNode::default();
    let script =
        "if ARGV[1] then return redis.call('incr', ARGV[1]) end return redis.call('incr', KEYS[1])";
    let id = id(script);
    check_on(
        &mut node,
        &format!(
            r#"
            > EVAL "{script}" 1 a
            (integer) 1
            > EVAL "{script}" 1 a b
            (integer) 1
            > GET a
            "1"
            "#
        ),
    );
    assert!(!node.env.scripts.declares_its_keys(&id), "it is known to use others");
}

#[test]
fn without_memory_a_script_only_reads() {
    let mut node = TestNode::default();
    node.run("SET k v");
    node.env.out_of_memory = true;
    let write = "return redis.call('set', KEYS[1], 'w')";
    assert!(node.run(&format!("EVAL \"{write}\" 1 k")).starts_with("(error) OOM "));
    assert_eq!(node.run("EVAL \"return redis.call('get', KEYS[1])\" 1 k"), "\"v\"");
    let flagged = |flags: &str| {
        let script = format!("#!lua flags={flags}\n{write}");
        node.args(1, &[b"EVAL", script.as_bytes(), b"1", b"k"])[0].to_string()
    };
    let mut flagged = flagged;
    assert_eq!(flagged("allow-oom"), "OK");
    assert!(flagged("").starts_with("(error) OOM allow-oom flag is not set"));
}

#[test]
fn lines_of_a_script_reach_the_log() {
    let mut node = TestNode::default();
    node.run(r#"EVAL "redis.log(redis.LOG_WARNING, 'one', 2)" 0"#);
    assert_eq!(node.host.script_log, ["one 2"]);
}

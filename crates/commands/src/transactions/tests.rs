//! Tests of transactions: atomicity, aborts, watched keys.

use crate::testing::{TestNode, check, check_on};
use store::{Recorded, Seed};

#[test]
fn queued_commands_run_together_and_an_error_stops_none() {
    check(
        r#"
        > EXEC
        (error) ERR EXEC without MULTI
        > MULTI
        OK
        > SET a 1
        QUEUED
        > EXPIRE a ten
        QUEUED
        > GET a
        QUEUED
        > DBSIZE
        QUEUED
        2> GET a
        (nil)
        > EXEC
        1) OK
        2) (error) ERR value is not an integer or out of range
        3) "1"
        4) (integer) 1
        > EXEC
        (error) ERR EXEC without MULTI
        > MULTI
        OK
        > EXEC
        (empty array)
        "#,
    );
}

#[test]
fn a_command_that_cannot_be_queued_breaks_the_transaction() {
    check(
        r#"
        > MULTI
        OK
        > SET a
        (error) ERR wrong number of arguments for 'set' command
        > SET a 1
        QUEUED
        > EXEC
        (error) EXECABORT Transaction discarded because of previous errors.
        > MULTI
        OK
        > NOSUCH
        (error) ERR unknown command 'NOSUCH', with args beginning with:
        > EXEC
        (error) EXECABORT Transaction discarded because of previous errors.
        > MULTI
        OK
        > DISCARD x
        (error) ERR wrong number of arguments for 'discard' command
        > EXEC
        (error) EXECABORT Transaction discarded because of previous errors.
        > GET a
        (nil)
        "#,
    );
}

#[test]
fn an_exec_that_is_refused_ends_the_transaction() {
    check(
        r#"
        > MULTI
        OK
        > EXEC x
        (error) EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
        > SET a 5
        OK
        > DISCARD
        (error) ERR DISCARD without MULTI
        "#,
    );
}

#[test]
fn nesting_and_watching_inside_are_refused_and_break_nothing() {
    check(
        r#"
        > MULTI
        OK
        > MULTI
        (error) ERR MULTI calls can not be nested
        > WATCH a
        (error) ERR WATCH inside MULTI is not allowed
        > SET a 1
        QUEUED
        > EXEC
        1) OK
        "#,
    );
}

#[test]
fn what_is_discarded_never_runs() {
    check(
        r#"
        > DISCARD
        (error) ERR DISCARD without MULTI
        > WATCH a
        OK
        > SET a 1
        OK
        > MULTI
        OK
        > SET a 2
        QUEUED
        > DISCARD
        OK
        > MULTI
        OK
        > GET a
        QUEUED
        > EXEC
        1) "1"
        "#,
    );
}

/// Runs `between` between WATCH and EXEC, and returns whether EXEC ran.
fn runs_after(before: &str, between: &str) -> bool {
    let mut node = TestNode::default();
    check_on(&mut node, before);
    node.run("WATCH w");
    check_on(&mut node, between);
    node.run("MULTI");
    node.run("SET ran yes");
    let reply = node.run("EXEC");
    assert!(reply == "(nil)" || reply == "1) OK", "{reply}");
    assert_eq!(node.run("EXISTS ran") == "(integer) 1", reply == "1) OK");
    reply == "1) OK"
}

#[test]
fn exec_runs_while_the_watched_key_is_untouched() {
    let set = "> SET w 1\nOK";
    assert!(runs_after("", ""));
    assert!(runs_after(set, ""));
    assert!(runs_after(set, "2> GET w\n\"1\""));
    assert!(runs_after(set, "2> TOUCH w\n(integer) 1"));
    assert!(runs_after(set, "2> PERSIST w\n(integer) 0"));
    assert!(runs_after(set, "2> DEL other\n(integer) 0"));
    assert!(runs_after("", "2> DEL w\n(integer) 0"));
    assert!(runs_after("", "2> FLUSHALL\nOK"));
    assert!(runs_after(set, "2> SET w 2\nOK\n> UNWATCH\nOK"));
}

#[test]
fn exec_does_not_run_after_any_change_of_a_watched_key() {
    let set = "> SET w 1\nOK";
    assert!(!runs_after(set, "2> SET w 1\nOK"));
    assert!(!runs_after(set, "> SET w 1\nOK"));
    assert!(!runs_after(set, "2> DEL w\n(integer) 1"));
    assert!(!runs_after(set, "2> DEL w\n(integer) 1\n2> SET w 1\nOK"));
    assert!(!runs_after(set, "2> EXPIRE w 10\n(integer) 1"));
    assert!(!runs_after(set, "2> FLUSHALL\nOK"));
    assert!(!runs_after("", "2> SET w 1\nOK"));
    assert!(!runs_after("", "2> SET w 1\nOK\n2> DEL w\n(integer) 1"));
    assert!(!runs_after("", "2> SET w 1\nOK\n2> FLUSHALL\nOK"));
}

#[test]
fn a_watched_key_that_expires_has_changed_and_an_expired_one_has_not() {
    let short = "> SET w 1\nOK\n> PEXPIRE w 10\n(integer) 1";
    assert!(runs_after(short, "+9ms"));
    assert!(!runs_after(short, "+10ms"));
    assert!(runs_after(&format!("{short}\n+10ms"), "+10ms"));
}

#[test]
fn a_key_watched_twice_counts_as_it_was_first() {
    check(
        r#"
        > WATCH w
        OK
        > SET w 1
        OK
        > WATCH w
        OK
        > MULTI
        OK
        > EXEC
        (nil)
        "#,
    );
}

#[test]
fn unwatch_inside_comes_too_late() {
    check(
        r#"
        > WATCH w
        OK
        > SET w 1
        OK
        > MULTI
        OK
        > UNWATCH
        QUEUED
        > EXEC
        (nil)
        "#,
    );
}

#[test]
fn one_exec_is_one_unit_of_effects() {
    let mut node = TestNode::default();
    node.run("MULTI");
    node.run("SET a 1");
    node.run("SET b 2");
    node.run("DEL a");
    assert!(node.log.is_empty());
    node.run("EXEC");
    let seed = Seed::new(1);
    let (mut rest, mut count) = (node.log.as_slice(), 0);
    while !rest.is_empty() {
        (_, rest) = Recorded::read(rest, &seed).unwrap();
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn without_memory_nothing_is_queued_and_nothing_that_writes_is_executed() {
    let mut node = TestNode::default();
    check_on(&mut node, "> MULTI\nOK\n> SET a 1\nQUEUED");
    node.env.out_of_memory = true;
    check_on(
        &mut node,
        r#"
        > EXEC
        (error) EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.
        > MULTI
        OK
        > GET a
        (error) OOM command not allowed when used memory > 'maxmemory'.
        > EXEC
        (error) EXECABORT Transaction discarded because of previous errors.
        "#,
    );
}

#[test]
fn where_slots_may_not_be_crossed_a_transaction_stays_in_one() {
    let mut node = TestNode::default();
    node.env.one_slot_only = true;
    check_on(
        &mut node,
        r#"
        > MULTI
        OK
        > SET {a}1 x
        QUEUED
        > SET {a}2 x
        QUEUED
        > EXEC
        1) OK
        2) OK
        > MULTI
        OK
        > SET a x
        QUEUED
        > SET b x
        QUEUED
        > EXEC
        (error) CROSSSLOT Keys in request don't hash to the same slot
        > EXEC
        (error) ERR EXEC without MULTI
        > MULTI
        OK
        > DEL a b
        (error) CROSSSLOT Keys in request don't hash to the same slot
        > EXEC
        (error) EXECABORT Transaction discarded because of previous errors.
        "#,
    );
}

/// Runs a transaction of these commands, and returns the reply of EXEC.
fn transact(node: &mut TestNode, commands: impl IntoIterator<Item = String>) -> String {
    assert_eq!(node.run("MULTI"), "OK");
    for command in commands {
        assert_eq!(node.run(&command), "QUEUED");
    }
    node.run("EXEC")
}

const TOO_LARGE: &str = "(error) EXECABORT Transaction discarded because it may write more than 1 \
                         GiB at once, split it";

#[test]
fn a_transaction_that_would_record_too_much_changes_nothing() {
    let mut node = TestNode::default();
    let large = vec![b'x'; 1 << 20];
    node.args(1, &[b"SET", b"{t}v", &large]);
    let before = node.slots.digest();
    let copies =
        |from: &'static str| (0..1_100).map(move |number| format!("COPY {from} {{t}}{number}"));
    assert_eq!(transact(&mut node, copies("{t}v")), TOO_LARGE);
    assert_eq!(node.run("GET {t}0"), "(nil)");
    // The same transaction creates the value, in every possible way.
    for maker in ["SETRANGE {t}w 1048576 x", "SETBIT {t}w 8388608 1", "BITOP NOT {t}w {t}v"] {
        let commands = [maker.to_owned()].into_iter().chain(copies("{t}w"));
        assert_eq!(transact(&mut node, commands), TOO_LARGE, "{maker}");
    }
    let field = "BITFIELD {t}w SET u8 8388608 1".to_owned();
    assert_eq!(transact(&mut node, [field].into_iter().chain(copies("{t}w"))), TOO_LARGE);
    let chain = (0..1_100).map(|number| match number % 2 {
        0 => "RENAME {t}v {t}w".to_owned(),
        _ => "RENAME {t}w {t}v".to_owned(),
    });
    assert_eq!(transact(&mut node, chain), TOO_LARGE);
    assert_eq!(node.slots.digest(), before);
    assert_eq!(node.run("EXEC"), "(error) ERR EXEC without MULTI", "it is discarded");
}

#[test]
fn what_was_given_counts_once_and_small_values_may_be_copied_often() {
    let mut node = TestNode::default();
    let large = vec![b'x'; 1 << 20];
    node.run("MULTI");
    for number in 0..100 {
        node.args(1, &[b"SET", format!("{{t}}{number}").as_bytes(), &large]);
        node.run(&format!("COPY {{t}}{number} {{t}}copy{number}"));
    }
    assert!(node.run("EXEC").ends_with("200) (integer) 1"));
    assert_eq!(node.slots.digest(), node.replayed().digest());
    node.run("SET {t}small 1");
    let copies = (0..5_000).map(|number| format!("COPY {{t}}small {{t}}s{number}"));
    assert!(transact(&mut node, copies).ends_with("5000) (integer) 1"));
    // A field at the beginning does not create a long string.
    let field = ["BITFIELD {t}f SET u32 0 4000000000 INCRBY u8 #3 1".to_owned()].into_iter();
    let copies = (0..9).map(|number| format!("COPY {{t}}f {{t}}f{number}"));
    assert!(transact(&mut node, field.chain(copies)).ends_with("10) (integer) 1"));
}

#[test]
fn a_long_key_is_not_recorded_again_and_again_without_end() {
    let mut node = TestNode::default();
    let key = "k".repeat(100_000);
    let mut words = vec!["BITFIELD".to_owned(), key];
    for _ in 0..11_000 {
        words.extend(["SET", "u8", "0", "1"].map(str::to_owned));
    }
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let reply = node.args(1, &words);
    let error = "ERR too many operations for a key of this length; split the command";
    assert_eq!(reply, [resp::Value::Error(error.as_bytes().to_vec())]);
    assert_eq!(node.run("DBSIZE"), "(integer) 0");
}

#[test]
fn sorted_values_and_hyperloglogs_count_by_their_limits() {
    let mut node = TestNode::default();
    node.run("RPUSH {t}l 1 2");
    let sorts = |count: u32| {
        (0..count).map(|number| format!("SORT {{t}}l GET {{t}}v_* STORE {{t}}d{number}"))
    };
    assert!(transact(&mut node, sorts(17)).contains("EXECABORT"));
    assert!(transact(&mut node, sorts(10)).ends_with("10) (integer) 2"));
    let adds = |count: u32| (0..count).map(|number| format!("PFADD {{t}}h {number}"));
    assert!(transact(&mut node, adds(50_000)).contains("EXECABORT"));
    assert_eq!(node.run("EXISTS {t}h"), "(integer) 0");
    assert!(transact(&mut node, adds(100)).ends_with("100) (integer) 1"));
}

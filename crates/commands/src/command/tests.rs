//! Tests of COMMAND and its subcommands as scripts.

use crate::Table;
use crate::testing::{TestNode, check};

#[test]
fn commands_are_counted_listed_and_found_by_pattern() {
    let mut node = TestNode::default();
    let count = Table::default().len();
    assert_eq!(node.run("COMMAND COUNT"), format!("(integer) {count}"));
    assert_eq!(node.run("COMMAND LIST").lines().count(), count);
    assert_eq!(node.run("COMMAND LIST FILTERBY PATTERN echo"), "1) \"echo\"");
    assert_eq!(
        node.run("COMMAND LIST FILTERBY PATTERN *|kill"),
        "1) \"client|kill\"\n2) \"script|kill\""
    );
    assert!(node.run("COMMAND LIST FILTERBY ACLCAT connection").contains("\"client|id\""));
    check(
        "
        > COMMAND LIST FILTERBY MODULE json
        (empty array)
        > COMMAND LIST FILTERBY COLOUR red
        (error) ERR syntax error
        > COMMAND NOSUCH
        (error) ERR unknown subcommand 'NOSUCH'. Try COMMAND HELP.
        ",
    );
}

#[test]
fn an_entry_has_the_ten_parts_of_redis_7() {
    check(
        r#"
        > COMMAND INFO get nosuch
        1)  1) "get"
            2) (integer) 2
            3) 1) readonly
               2) fast
            4) (integer) 1
            5) (integer) 1
            6) (integer) 1
            7) 1) @read
               2) @string
               3) @fast
            8) (empty array)
            9) 1) 1) "flags"
                  2) 1) RO
                     2) access
                  3) "begin_search"
                  4) 1) "type"
                     2) "index"
                     3) "spec"
                     4) 1) "index"
                        2) (integer) 1
                  5) "find_keys"
                  6) 1) "type"
                     2) "range"
                     3) "spec"
                     4) 1) "lastkey"
                        2) (integer) 0
                        3) "keystep"
                        4) (integer) 1
                        5) "limit"
                        6) (integer) 0
           10) (empty array)
        2) (nil)
        "#,
    );
}

#[test]
fn docs_tell_arguments_for_hints() {
    check(
        r#"
        > COMMAND DOCS echo nosuch
        1) "echo"
        2)  1) "summary"
            2) "Returns the given message."
            3) "since"
            4) "1.0.0"
            5) "group"
            6) "connection"
            7) "complexity"
            8) "O(1)"
            9) "arguments"
           10) 1) 1) "name"
                  2) "message"
                  3) "type"
                  4) "string"
        "#,
    );
}

#[test]
fn keys_of_a_full_command_are_found() {
    check(
        r#"
        > COMMAND GETKEYS MGET a b
        1) "a"
        2) "b"
        > COMMAND GETKEYS PING a
        (error) ERR The command has no key arguments
        > COMMAND GETKEYS SPUBLISH channel message
        (error) ERR The command has no key arguments
        > COMMAND GETKEYS NOSUCH a
        (error) ERR Invalid command specified
        > COMMAND GETKEYS SET a
        (error) ERR Invalid number of arguments specified for command
        > COMMAND GETKEYSANDFLAGS SET a b
        1) 1) "a"
           2) 1) OW
              2) update
        > COMMAND GETKEYSANDFLAGS SET a b GET
        1) 1) "a"
           2) 1) RW
              2) access
              3) update
        "#,
    );
}

#[test]
fn every_command_is_described() {
    let mut node = TestNode::default();
    for spec in crate::Table::default().iter() {
        let reply = node.run(&format!("COMMAND INFO {}", spec.name));
        assert!(reply.contains(spec.name), "{reply}");
    }
    let counted = node.run("COMMAND INFO lmpop");
    assert!(counted.contains("keynum") && counted.contains("movablekeys"), "{counted}");
    assert_eq!(node.run("COMMAND GETKEYS LMPOP 2 a b LEFT"), "1) \"a\"\n2) \"b\"");
}

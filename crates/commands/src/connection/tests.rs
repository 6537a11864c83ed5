//! Tests of HELLO, AUTH, SELECT and related commands as scripts.

use settings::Secret;

use crate::testing::{TestNode, check, check_on};

#[test]
fn a_connection_pings_echoes_and_selects() {
    check(
        r#"
        > PING
        PONG
        > PING hello
        "hello"
        > PING a b
        (error) ERR wrong number of arguments for 'ping' command
        > ECHO hello
        "hello"
        > SELECT 0
        OK
        > SELECT 16
        (error) ERR DB index is out of range
        > SELECT x
        (error) ERR value is not an integer or out of range
        > SELECT 99999999999
        (error) ERR value is out of range, value must between -2147483648 and 2147483647
        "#,
    );
}

#[test]
fn hello_chooses_the_protocol_and_tells_of_the_node() {
    let mut node = TestNode::default();
    let told = node.run("HELLO 3 SETNAME me");
    assert_eq!(
        told,
        "1# \"server\" => \"redis\"\n2# \"version\" => \"7.0.15\"\n3# \"proto\" => (integer) 3\n\
         4# \"id\" => (integer) 1\n5# \"mode\" => \"standalone\"\n6# \"role\" => \"master\"\n\
         7# \"modules\" => (empty array)"
    );
    check_on(
        &mut node,
        r#"
        > CLIENT GETNAME
        "me"
        > HELLO 4
        (error) NOPROTO unsupported protocol version
        > HELLO x
        (error) ERR Protocol version is not an integer or out of range
        > HELLO 2 AUTH
        (error) ERR Syntax error in HELLO option 'AUTH'
        > HELLO 2 AUTH nobody secret
        (error) WRONGPASS invalid username-password pair or user is disabled.
        "#,
    );
}

#[test]
fn without_the_password_only_a_few_commands_are_run() {
    let mut node = TestNode::default();
    node.host.settings.requirepass = Secret::new("secret");
    node.env.password_required = true;
    check_on(
        &mut node,
        r#"
        > GET k
        (error) NOAUTH Authentication required.
        > HELLO 3
        (error) NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time
        > AUTH secre
        (error) WRONGPASS invalid username-password pair or user is disabled.
        > AUTH somebody secret
        (error) WRONGPASS invalid username-password pair or user is disabled.
        > AUTH a b c
        (error) ERR syntax error
        > AUTH secret
        OK
        > GET k
        (nil)
        > RESET
        RESET
        > GET k
        (error) NOAUTH Authentication required.
        > AUTH default secret
        OK
        > GET k
        (nil)
        "#,
    );
}

#[test]
fn auth_without_a_password_set_is_a_mistake_worth_telling() {
    check(
        r#"
        > AUTH secret
        (error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
        > AUTH default anything
        OK
        "#,
    );
}

#[test]
fn quit_answers_and_closes() {
    let mut node = TestNode::default();
    assert_eq!(node.run("QUIT"), "OK");
    assert!(node.session(1).closing);
}

#[test]
fn after_many_wrong_passwords_none_is_judged() {
    let mut node = TestNode::default();
    node.host.settings.requirepass = Secret::new("secret");
    node.host.wrong_passwords_max = 3;
    for guess in ["AUTH a", "AUTH default b", "HELLO 3 AUTH default c"] {
        assert!(node.run(guess).starts_with("(error) WRONGPASS"), "{guess}");
    }
    assert_eq!(node.host.wrong_passwords, 3);
    let refused = "(error) ERR too many wrong passwords from this address, wait ten seconds";
    for guess in ["AUTH secret", "AUTH d", "HELLO 3 AUTH default secret"] {
        assert_eq!(node.run(guess), refused, "{guess}");
    }
    assert_eq!(node.host.wrong_passwords, 3);
}

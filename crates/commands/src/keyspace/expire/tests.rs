//! Tests of expiry: setting, reading, removing, and keys that expire.

use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};

#[test]
fn a_key_is_gone_when_its_time_has_come() {
    check(
        r"
        > SET k v
        OK
        > TTL k
        (integer) -1
        > EXPIRE k 10
        (integer) 1
        > TTL k
        (integer) 10
        > PTTL k
        (integer) 10000
        > EXPIRETIME k
        (integer) 1700000010
        > PEXPIRETIME k
        (integer) 1700000010000
        +9999ms
        > EXISTS k
        (integer) 1
        > PTTL k
        (integer) 1
        > TTL k
        (integer) 0
        +1ms
        > EXISTS k
        (integer) 0
        > TTL k
        (integer) -2
        > EXPIRE k 10
        (integer) 0
        > PERSIST k
        (integer) 0
        ",
    );
}

#[test]
fn a_key_that_persists_does_not_expire() {
    check(
        r"
        > SET k v
        OK
        > PERSIST k
        (integer) 0
        > PEXPIRE k 1500
        (integer) 1
        > TTL k
        (integer) 2
        > PERSIST k
        (integer) 1
        +2s
        > TTL k
        (integer) -1
        ",
    );
}

#[test]
fn a_time_in_the_past_deletes() {
    check(
        r"
        > SET a 1
        OK
        > SET b 2
        OK
        > SET c 3
        OK
        > SET d 4
        OK
        > EXPIRE a 0
        (integer) 1
        > EXPIRE b -1
        (integer) 1
        > EXPIREAT c 1699999999
        (integer) 1
        > PEXPIREAT d -5
        (integer) 1
        > DBSIZE
        (integer) 0
        ",
    );
}

#[test]
fn conditions_look_at_the_present_expiry() {
    check(
        r"
        > SET k v
        OK
        > EXPIRE k 10 XX
        (integer) 0
        > EXPIRE k 10 GT
        (integer) 0
        > EXPIRE k 10 LT
        (integer) 1
        > EXPIRE k 20 NX
        (integer) 0
        > EXPIRE k 20 LT
        (integer) 0
        > EXPIRE k 10 gt xx
        (integer) 0
        > EXPIRE k 20 xx GT
        (integer) 1
        > TTL k
        (integer) 20
        > PERSIST k
        (integer) 1
        > PEXPIRE k 1 NX
        (integer) 1
        ",
    );
}

#[test]
fn bad_times_and_options_change_nothing() {
    check(
        r"
        > SET k v
        OK
        > EXPIRE k ten
        (error) ERR value is not an integer or out of range
        > EXPIRE k 10 NX GT
        (error) ERR NX and XX, GT or LT options at the same time are not compatible
        > EXPIRE k 10 GT LT
        (error) ERR GT and LT options at the same time are not compatible
        > EXPIRE k ten AB
        (error) ERR Unsupported option AB
        > EXPIRE k 9223372036854775807
        (error) ERR invalid expire time in 'expire' command
        > EXPIRE k -9223372036854775807
        (error) ERR invalid expire time in 'expire' command
        > PEXPIRE k 9223372036854775807
        (error) ERR invalid expire time in 'pexpire' command
        > EXPIREAT k 9223372036854775807
        (error) ERR invalid expire time in 'expireat' command
        > TTL k
        (integer) -1
        > PEXPIREAT k 9223372036854775807
        (integer) 1
        > PEXPIRETIME k
        (integer) 9223372036854775807
        ",
    );
}

#[test]
fn events_tell_of_expiry_set_taken_back_and_come() {
    let mut node = TestNode::default();
    node.env.notify = NotifyClasses::ALL.union(NotifyClasses::KEYEVENT);
    check_on(
        &mut node,
        r"
        > SET k v
        OK
        > EXPIRE k 10
        (integer) 1
        > PERSIST k
        (integer) 1
        > PEXPIRE k 10
        (integer) 1
        +20ms
        > TTL k
        (integer) -2
        > SET k v
        OK
        > EXPIRE k -1
        (integer) 1
        ",
    );
    let told: Vec<&str> = node.events().iter().map(|event| event.name).collect();
    assert_eq!(told, ["set", "expire", "persist", "expire", "expired", "set", "del"]);
}

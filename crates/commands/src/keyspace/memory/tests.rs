//! Tests of MEMORY.

use resp::{Protocol, Value};

use crate::MemoryFigures;
use crate::testing::{TestNode, check};

#[test]
fn a_key_takes_what_its_block_takes() {
    check(
        r"
        > SET 0123456789abcdef 0123456789abcdef0123456789abcdef
        OK
        > MEMORY USAGE 0123456789abcdef
        (integer) 72
        > EXPIRE 0123456789abcdef 100
        (integer) 1
        > MEMORY USAGE 0123456789abcdef SAMPLES 0
        (integer) 80
        > MEMORY USAGE missing
        (nil)
        > MEMORY USAGE k SAMPLES
        (error) ERR syntax error
        > MEMORY USAGE k SAMPLES -1
        (error) ERR syntax error
        > MEMORY USAGE k SAMPLES x
        (error) ERR value is not an integer or out of range
        > MEMORY USAGE k SIMPLES 1
        (error) ERR syntax error
        > MEMORY
        (error) ERR wrong number of arguments for 'memory' command
        > MEMORY LOSS
        (error) ERR unknown subcommand 'LOSS'. Try MEMORY HELP.
        ",
    );
}

#[test]
fn a_large_value_is_counted_too() {
    let mut node = TestNode::default();
    node.args(1, &[b"SET", b"k", &[b'x'; 100_000]]);
    let replies = node.args(1, &[b"MEMORY", b"USAGE", b"k"]);
    let [Value::Integer(bytes)] = replies.as_slice() else { panic!("{replies:?}") };
    assert!((100_000..130_000).contains(bytes), "{bytes}");
}

#[test]
fn figures_of_the_node_and_of_its_keys_stand_side_by_side() {
    let mut node = TestNode::default();
    node.host.memory = MemoryFigures {
        allocated: 5_000,
        peak: 10_000,
        startup: 1_000,
        ..MemoryFigures::default()
    };
    node.session(1).protocol = Protocol::Resp3;
    assert!(!node.run("MEMORY STATS").contains("db.0"));
    node.run("SET a 1");
    node.run("SET b 2");
    let told = node.run("MEMORY STATS");
    for part in ["peak.allocated", "10000", "keys.count", "db.0", "peak.percentage", "(double) 50"]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
    let Some(Value::Map(pairs)) = node.args(1, &[b"MEMORY", b"STATS"]).pop() else {
        panic!("a map in RESP3")
    };
    let figure = |name: &str| {
        let pair = pairs.iter().find(|(key, _)| key.text() == Some(name.as_bytes()));
        pair.map(|(_, value)| value.clone()).unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(figure("keys.count"), Value::Integer(2));
    assert_eq!(figure("keys.bytes-per-key"), Value::Integer(2_000));
}

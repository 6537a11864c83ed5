//! Tests of `reply_parser.rs` and `skip.rs`: they read back the output of `reply.rs`, cut at any byte.

use super::*;
use crate::{Output, Protocol, Reply, ReplySkipper, skip_reply};
use proptest::prelude::*;

fn parse(bytes: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
    ReplyParser::default().next(bytes, 0)
}

fn value(bytes: &[u8]) -> Value {
    let (value, end) = parse(bytes).unwrap().expect("the reply is complete");
    assert_eq!(end, bytes.len());
    value
}

fn write(value: &Value, reply: &mut Reply<'_>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match value {
        Value::Simple(bytes) => reply.simple(&text(bytes)),
        Value::Error(bytes) => reply.error(bytes),
        Value::Integer(number) => reply.integer(*number),
        Value::Bulk(bytes) => reply.bulk(bytes),
        Value::Null => reply.null(),
        Value::Double(number) => reply.double(*number),
        Value::Boolean(truth) => reply.boolean(*truth),
        Value::BigNumber(digits) => reply.big_number(&text(digits)),
        Value::Verbatim { format, text: bytes } => reply.verbatim(&text(format), bytes),
        Value::Array(items) => {
            reply.array(items.len());
            items.iter().for_each(|item| write(item, reply));
        }
        Value::Set(items) => {
            reply.set(items.len());
            items.iter().for_each(|item| write(item, reply));
        }
        Value::Push(items) => {
            reply.push(items.len());
            items.iter().for_each(|item| write(item, reply));
        }
        Value::Map(pairs) => {
            reply.map(pairs.len());
            write_pairs(pairs, reply);
        }
        Value::Attribute { about, value } => {
            reply.attribute(about.len());
            write_pairs(about, reply);
            write(value, reply);
        }
    }
}

fn write_pairs(pairs: &[(Value, Value)], reply: &mut Reply<'_>) {
    for (key, value) in pairs {
        write(key, reply);
        write(value, reply);
    }
}

fn bytes_of(value: &Value, protocol: Protocol) -> Vec<u8> {
    let mut out = Output::default();
    write(value, &mut Reply::new(&mut out, protocol));
    out.chunks(out.mark()).flatten().copied().collect()
}

/// Converts a value to the form in which a RESP2 client receives it.
fn in_resp2(value: &Value) -> Value {
    let all = |items: &[Value]| items.iter().map(in_resp2).collect();
    match value {
        Value::Double(number) => {
            let mut text = Vec::new();
            crate::write_double(&mut text, *number);
            Value::Bulk(text)
        }
        Value::Boolean(truth) => Value::Integer(i64::from(*truth)),
        Value::BigNumber(text) | Value::Verbatim { text, .. } => Value::Bulk(text.clone()),
        Value::Array(items) | Value::Set(items) | Value::Push(items) => Value::Array(all(items)),
        Value::Map(pairs) => Value::Array(
            pairs.iter().flat_map(|(key, value)| [in_resp2(key), in_resp2(value)]).collect(),
        ),
        Value::Attribute { value, .. } => in_resp2(value),
        Value::Simple(_) | Value::Error(_) | Value::Integer(_) | Value::Bulk(_) | Value::Null => {
            value.clone()
        }
    }
}

#[test]
fn every_kind_of_reply_is_read() {
    assert_eq!(value(b"$-1\r\n"), Value::Null);
    assert_eq!(value(b"*-1\r\n"), Value::Null);
    assert_eq!(value(b"*0\r\n"), Value::Array(vec![]));
    assert_eq!(value(b"!5\r\nERR x\r\n"), Value::Error(b"ERR x".to_vec()));
    assert_eq!(value(b",inf\r\n"), Value::Double(f64::INFINITY));
    assert_eq!(value(b",1e3\r\n"), Value::Double(1000.0));
    assert_eq!(
        value(b"|1\r\n+ttl\r\n:3\r\n*1\r\n_\r\n"),
        Value::Attribute {
            about: vec![(Value::Simple(b"ttl".to_vec()), Value::Integer(3))],
            value: Box::new(Value::Array(vec![Value::Null])),
        }
    );
}

#[test]
fn malformed_replies_are_refused() {
    for bytes in [
        "?\r\n",
        "GET\r\n",
        ":\r\n",
        ":1x\r\n",
        ":01\r\n",
        "$x\r\n",
        "$-2\r\n",
        "*-2\r\n",
        "$1\r\nabc",
        "+a\rb",
        "#x\r\n",
        "_x\r\n",
        ",x\r\n",
        "=2\r\nab\r\n",
        "*1\r\n?\r\n",
        "$536870913\r\n",
        "*4294967296\r\n",
        "%-1\r\n",
    ] {
        assert!(parse(bytes.as_bytes()).is_err(), "{bytes:?}");
    }
}

#[test]
fn a_server_cannot_make_a_client_hold_more_than_it_will() {
    let nested = "*1\r\n".repeat(64);
    assert_eq!(parse(nested.as_bytes()), Ok(None));
    assert_eq!(parse(format!("{nested}*1\r\n").as_bytes()), Err(ProtocolError::TooBigReply));

    let limits = ReplyLimits { items_max: 4, ..ReplyLimits::default() };
    let read = |bytes: &[u8]| ReplyParser::with_limits(limits).next(bytes, 0);
    assert_eq!(read(b"*2\r\n%1\r\n"), Ok(None));
    assert_eq!(read(b"*2\r\n*3\r\n"), Err(ProtocolError::TooBigReply));
    assert_eq!(skip_reply("*4294967295\r\n".repeat(3).as_bytes(), 0), Ok(None));
    let line = "+".repeat(64 * 1024);
    assert_eq!(parse(line.as_bytes()), Err(ProtocolError::TooBigReply));
}

#[test]
fn replies_are_shown_as_redis_cli_shows_them() {
    let shown = |bytes: &str| value(bytes.as_bytes()).to_string();
    assert_eq!(shown("+OK\r\n"), "OK");
    assert_eq!(shown("-ERR no\r\n"), "(error) ERR no");
    assert_eq!(shown(":3\r\n"), "(integer) 3");
    assert_eq!(shown("$-1\r\n"), "(nil)");
    assert_eq!(shown("$4\r\na\"\n\u{1}\r\n"), r#""a\"\n\x01""#);
    assert_eq!(shown("*0\r\n"), "(empty array)");
    assert_eq!(
        shown("*2\r\n*2\r\n:1\r\n:2\r\n$1\r\na\r\n"),
        "1) 1) (integer) 1\n   2) (integer) 2\n2) \"a\""
    );
    assert_eq!(shown("%1\r\n$1\r\na\r\n:1\r\n"), "1# \"a\" => (integer) 1");
}

fn any_value() -> impl Strategy<Value = Value> {
    let line = || "[ -~]{0,20}".prop_map(String::into_bytes);
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let leaf = prop_oneof![
        line().prop_map(Value::Simple),
        line().prop_map(Value::Error),
        any::<i64>().prop_map(Value::Integer),
        bytes().prop_map(Value::Bulk),
        Just(Value::Null),
        prop::num::f64::ANY.prop_filter("equal to itself", |n| !n.is_nan()).prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        "-?[1-9][0-9]{0,40}".prop_map(|digits| Value::BigNumber(digits.into_bytes())),
        bytes().prop_map(|text| Value::Verbatim { format: *b"txt", text }),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let items = prop::collection::vec(inner.clone(), 0..6);
        let pairs = prop::collection::vec((inner.clone(), inner), 0..4);
        prop_oneof![
            items.clone().prop_map(Value::Array),
            items.clone().prop_map(Value::Set),
            items.prop_map(Value::Push),
            pairs.prop_map(Value::Map),
        ]
    })
}

/// Returns all the replies in `bytes` when they arrive in two pieces, parsed and skipped side by side.
fn read_cut(bytes: &[u8], cut: usize) -> Vec<Value> {
    let (mut parser, mut skipper) = (ReplyParser::default(), ReplySkipper::default());
    let (mut values, mut at) = (Vec::new(), 0);
    for received in [&bytes[..cut], bytes] {
        loop {
            let read = parser.next(received, at).unwrap();
            let skipped = skipper.next(received, at).unwrap();
            assert_eq!(skipped, read.as_ref().map(|(_, end)| *end));
            let Some((value, end)) = read else { break };
            values.push(value);
            at = end;
        }
    }
    assert_eq!(at, bytes.len());
    values
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_is_read_back(value in any_value()) {
        let resp3 = bytes_of(&value, Protocol::Resp3);
        prop_assert_eq!(skip_reply(&resp3, 0), Ok(Some(resp3.len())));
        prop_assert_eq!(parse(&resp3), Ok(Some((value.clone(), resp3.len()))));
        let resp2 = bytes_of(&value, Protocol::Resp2);
        prop_assert_eq!(parse(&resp2), Ok(Some((in_resp2(&value), resp2.len()))));
    }

    #[test]
    fn any_split_of_the_bytes_gives_the_same_replies(
        values in prop::collection::vec(any_value(), 1..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| bytes_of(v, Protocol::Resp3)).collect();
        prop_assert_eq!(read_cut(&bytes, cut.index(bytes.len())), values);
    }

    #[test]
    fn garbage_is_skipped_as_far_as_it_is_read(bytes in "[*$+:_%|,=~>#!(\\-0-3tf\r\n]{0,40}") {
        let read = parse(bytes.as_bytes());
        let skipped = skip_reply(bytes.as_bytes(), 0);
        // Skipping checks neither the digits of doubles nor the depth limit.
        if let Ok(read) = read {
            prop_assert_eq!(skipped, Ok(read.map(|(_, end)| end)));
        }
    }
}

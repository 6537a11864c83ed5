//! Tests of `request.rs`: it accepts and refuses what Redis does, however the bytes are cut. Results marked as
//! Redis's were checked against redis-server 7.0.15.

use super::*;
use crate::encode_command;
use proptest::prelude::*;

type Args = Vec<Vec<u8>>;

/// Returns all the requests in `bytes` when they arrive in pieces of these sizes (the rest in one), and the error
/// that ended the stream, if any. Bytes move to the front of a new buffer before each read, as the server may do.
fn read(bytes: &[u8], pieces: &[usize], limits: &Limits) -> (Vec<Args>, Option<ProtocolError>) {
    let mut parser = RequestParser::default();
    let (mut requests, mut buf, mut rest) = (Vec::new(), Vec::new(), bytes);
    let mut pieces = pieces.iter();
    while !rest.is_empty() {
        let size = pieces.next().map_or(rest.len(), |size| (*size).min(rest.len()));
        buf.extend_from_slice(&rest[..size]);
        rest = &rest[size..];
        let mut at = 0;
        loop {
            // Spans already in the vector must not matter.
            let mut spans = vec![Span { start: 7, len: 7 }; requests.len() % 3];
            let spans_before = spans.len();
            match parser.next(&mut buf, at, limits, &mut spans) {
                Ok(Parsed::Request { end, args }) => {
                    assert!(end > at, "a request has bytes");
                    let spans = &spans[spans_before..];
                    assert_eq!(spans.len(), args);
                    requests.push(spans.iter().map(|span| span.of(&buf).to_vec()).collect());
                    at = end;
                }
                Ok(Parsed::Incomplete { missing_hint }) => {
                    assert!(missing_hint > 0);
                    assert_eq!(spans.len(), spans_before);
                    break;
                }
                Err(error) => return (requests, Some(error)),
            }
        }
        buf.drain(..at);
    }
    (requests, None)
}

fn read_whole(bytes: &[u8]) -> (Vec<Args>, Option<ProtocolError>) {
    read(bytes, &[], &Limits::FULL)
}

/// Parses one request and returns its arguments.
fn args(bytes: &[u8]) -> Args {
    let (requests, error) = read_whole(bytes);
    assert_eq!(error, None, "{:?}", String::from_utf8_lossy(bytes));
    assert_eq!(requests.len(), 1, "{:?}", String::from_utf8_lossy(bytes));
    requests.into_iter().next().unwrap()
}

fn error(bytes: &[u8], limits: &Limits) -> String {
    let (requests, error) = read(bytes, &[], limits);
    assert_eq!(requests, Vec::<Args>::new());
    let reply = error.expect("this is malformed").reply();
    String::from_utf8_lossy(&reply).into_owned()
}

#[test]
fn an_array_of_bulk_strings_is_a_request() {
    assert_eq!(args(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"), [&b"SET"[..], b"k", b""]);
    let long = [b'x'; 12345];
    let mut bytes = Vec::new();
    encode_command(&mut bytes, &[b"SET", &long[..10], &long[..100], &long]);
    assert_eq!(args(&bytes), [&b"SET"[..], &long[..10], &long[..100], &long]);
}

#[test]
fn a_pipeline_is_read_one_request_at_a_time() {
    let (requests, error) =
        read_whole(b"*1\r\n$4\r\nPING\r\nGET a\r\n\r\n*1\r\n$4\r\nQUIT\r\n*1\r\n$4");
    assert_eq!(error, None);
    let words = |text: &str| text.split_whitespace().map(|word| word.into()).collect::<Args>();
    assert_eq!(requests, [words("PING"), words("GET a"), words(""), words("QUIT")]);
}

#[test]
fn empty_requests_are_passed_over() {
    for empty in ["*0\r\n", "*-1\r\n", "*-5\r\n", "\r\n", "\n", "   \r\n"] {
        assert_eq!(args(empty.as_bytes()), Args::new(), "{empty:?}");
    }
}

#[test]
fn line_ends_are_taken_on_trust_as_redis_does() {
    let (requests, error) = read_whole(b"*1\rx$4\ryPINGzz*1\r\n$4\r\nPING\r\n");
    assert_eq!((requests.len(), error), (2, None));
}

#[test]
fn lines_of_words_are_split_as_redis_does() {
    let split: &[(&[u8], &[&[u8]])] = &[
        (b"PING\n", &[b"PING"]),
        (b" SET  k\tv \r\n", &[b"SET", b"k", b"v"]),
        (b"$4\r\n", &[b"$4"]),
        (b"ECHO \"a\\x41\\n\\r\\t\\b\\a\\q\\xzz\"\r\n", &[b"ECHO", b"aA\n\r\t\x08\x07qxzz"]),
        (b"ECHO 'a\\'b\\n' \"\\\"\"\r\n", &[b"ECHO", b"a'b\\n", b"\""]),
        (b"ECHO foo\"bar\" x\r\n", &[b"ECHO", b"foobar", b"x"]),
        (b"ECHO a\x0bb \x0bc\r\n", &[b"ECHO", b"a\x0bb", b"c"]),
        (b"ECHO a\rb\r\n", &[b"ECHO", b"a", b"b"]),
        (b"ECHO \"\" ''\r\n", &[b"ECHO", b"", b""]),
        (b"ECHO \"a\"\x0bb\r\n", &[b"ECHO", b"a", b"b"]),
        (b"ECHO a\x00b\r\n", &[b"ECHO", b"a\x00b"]), // Ours: Redis would wait forever.
    ];
    for (line, words) in split {
        assert_eq!(args(line), *words, "{:?}", String::from_utf8_lossy(line));
    }
}

#[test]
fn each_mistake_has_redis_s_own_words() {
    let cases: &[(&[u8], &str)] = &[
        (b"*abc\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*03\r\n", "invalid multibulk length"),
        (b"*-0\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"* 1\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*9999999999999999999999999\r\n", "invalid multibulk length"),
        (b"*1\r\nfoo\r\n", "expected '$', got 'f'"),
        (b"*1\r\n*1\r\n", "expected '$', got '*'"),
        (b"*1\r\n$abc\r\n", "invalid bulk length"),
        (b"*1\r\n$\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$04\r\nPING\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n$9999999999999999999999999\r\n", "invalid bulk length"),
        (b"PING \"a\r\n", "unbalanced quotes in request"),
        (b"PING \"a\"b\r\n", "unbalanced quotes in request"),
        (b"PING 'a\r\n", "unbalanced quotes in request"),
        (b"PING 'a'b\r\n", "unbalanced quotes in request"),
        (b"PING \"a\\\r\n", "unbalanced quotes in request"),
    ];
    for (bytes, text) in cases {
        let got = error(bytes, &Limits::FULL);
        assert_eq!(
            got,
            format!("ERR Protocol error: {text}"),
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
    let not_utf8 = read_whole(b"*1\r\n\xff\r\n").1.unwrap().reply();
    assert_eq!(not_utf8, b"ERR Protocol error: expected '$', got '\xff'");
}

#[test]
fn a_line_may_be_64_kib_long_and_no_longer() {
    let max = Limits::FULL.inline_bytes_max;
    for (prefix, text) in [
        ("", "too big inline request"),
        ("*", "too big mbulk count string"),
        ("*1\r\n$", "too big bulk count string"),
    ] {
        let line_start = prefix.rfind('\n').map_or(0, |newline| newline + 1);
        let mut bytes = prefix.as_bytes().to_vec();
        bytes.resize(line_start + max, b'1');
        assert_eq!(read_whole(&bytes), (vec![], None));
        bytes.push(b'1');
        assert_eq!(error(&bytes, &Limits::FULL), format!("ERR Protocol error: {text}"));
        bytes.extend_from_slice(b"\r\n");
        assert_eq!(error(&bytes, &Limits::FULL), format!("ERR Protocol error: {text}"));
    }
    let mut longest = vec![b'1'; max];
    longest.push(b'\n');
    assert_eq!(args(&longest), [vec![b'1'; max]]);
}

#[test]
fn a_request_may_be_large_but_not_before_authentication() {
    let unfinished = (vec![], None);
    for (bytes, limits) in [
        (&b"*1048576\r\n"[..], &Limits::FULL),
        (b"*1\r\n$536870912\r\n", &Limits::FULL),
        (b"*10\r\n", &Limits::BEFORE_AUTH),
        (b"*1\r\n$16384\r\n", &Limits::BEFORE_AUTH),
    ] {
        assert_eq!(read(bytes, &[], limits), unfinished);
    }
    let before = &Limits::BEFORE_AUTH;
    assert_eq!(
        error(b"*1048577\r\n", &Limits::FULL),
        "ERR Protocol error: invalid multibulk length"
    );
    assert_eq!(error(b"*11\r\n", before), "ERR Protocol error: unauthenticated multibulk length");
    assert_eq!(
        error(b"*1\r\n$16385\r\n", before),
        "ERR Protocol error: unauthenticated bulk length"
    );
    assert_eq!(error(b"*1\r\n$536870913\r\n", before), "ERR Protocol error: invalid bulk length");
}

#[test]
fn what_is_missing_of_an_argument_is_known() {
    let mut parser = RequestParser::default();
    let mut buf = b"*2\r\n$3\r\nGET\r\n$1000\r\nab".to_vec();
    let parsed = parser.next(&mut buf, 0, &Limits::FULL, &mut Vec::new());
    assert_eq!(parsed, Ok(Parsed::Incomplete { missing_hint: 1000 }));
}

/// Takes milliseconds if each byte is examined once, and minutes if every piece starts over.
#[test]
fn a_huge_request_in_small_pieces_costs_only_its_bytes() {
    const ARGS: usize = 1024 * 1024;
    let mut bytes = format!("*{ARGS}\r\n").into_bytes();
    for _ in 0..ARGS {
        bytes.extend_from_slice(b"$1\r\nx\r\n");
    }
    let mut parser = RequestParser::default();
    let mut spans = Vec::new();
    for received in (1..bytes.len()).step_by(1024) {
        let parsed = parser.next(&mut bytes[..received], 0, &Limits::FULL, &mut spans);
        assert!(matches!(parsed, Ok(Parsed::Incomplete { .. })));
    }
    let end = bytes.len();
    let parsed = parser.next(&mut bytes, 0, &Limits::FULL, &mut spans);
    assert_eq!(parsed, Ok(Parsed::Request { end, args: ARGS }));
    assert!(spans.iter().all(|span| span.of(&bytes) == b"x"));
}

fn array() -> impl Strategy<Value = Vec<u8>> {
    let arg = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..12),
        1 => (0usize..200_000).prop_map(|len| vec![b'\r'; len]),
    ];
    prop::collection::vec(arg, 0..6).prop_map(|args| {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, &args.iter().map(Vec::as_slice).collect::<Vec<_>>());
        bytes
    })
}

/// Generates invalid bytes close to the grammar, so that they reach every branch of it.
fn near_misses() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "*", "$", "\r\n", "\r", "\n", "0", "1", "2", "-", "12", "a", " ", "\"", "'", "\\", "\\x",
        "4f", "*1\r\n", "*2\r\n", "$1\r\n", "$10\r\n", "*0\r\n", "*-1\r\n", "\"a\"", "\0",
    ]);
    prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat().into_bytes())
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let line = "[ -~\t\u{b}]{0,30}\r?\n".prop_map(String::into_bytes);
    let part = prop_oneof![5 => array(), 2 => line, 2 => near_misses()];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![4 => 1usize..8, 2 => 1usize..600, 1 => 1usize..70_000], 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_the_bytes_gives_the_same_requests(bytes in stream(), pieces in pieces()) {
        prop_assert_eq!(read(&bytes, &pieces, &Limits::FULL), read_whole(&bytes));
    }

    #[test]
    fn one_byte_at_a_time_gives_the_same_requests(bytes in near_misses()) {
        let ones = vec![1; bytes.len()];
        let limits = Limits { inline_bytes_max: 6, args_max: 10, ..Limits::FULL };
        prop_assert_eq!(read(&bytes, &ones, &limits), read(&bytes, &[], &limits));
    }

    #[test]
    fn what_was_encoded_is_read_back(args in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20)) {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, &args.iter().map(Vec::as_slice).collect::<Vec<_>>());
        prop_assert_eq!(read_whole(&bytes), (vec![args], None));
    }
}

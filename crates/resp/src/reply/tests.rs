//! Tests of `reply.rs`: the bytes of every type of reply in both protocols.

use super::*;

/// Returns the output of `write` in RESP2 and in RESP3.
fn written(write: impl Fn(&mut Reply<'_>)) -> [String; 2] {
    [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
        let mut out = Output::default();
        write(&mut Reply::new(&mut out, protocol));
        let bytes = out.chunks(out.mark()).flatten().copied().collect();
        String::from_utf8(bytes).unwrap()
    })
}

fn check(write: impl Fn(&mut Reply<'_>), resp2: &str, resp3: &str) {
    assert_eq!(written(write), [resp2, resp3]);
}

fn check_both(write: impl Fn(&mut Reply<'_>), bytes: &str) {
    check(write, bytes, bytes);
}

#[test]
fn what_both_protocols_have_is_the_same_in_both() {
    check_both(|r| r.ok(), "+OK\r\n");
    check_both(|r| r.pong(), "+PONG\r\n");
    check_both(|r| r.queued(), "+QUEUED\r\n");
    check_both(|r| r.simple("string"), "+string\r\n");
    check_both(|r| r.error("ERR no"), "-ERR no\r\n");
    check_both(|r| r.integer(0), ":0\r\n");
    check_both(|r| r.integer(1), ":1\r\n");
    check_both(|r| r.integer(i64::MIN), ":-9223372036854775808\r\n");
    check_both(|r| r.bulk(b""), "$0\r\n\r\n");
    check_both(|r| r.bulk(b"a\r\n"), "$3\r\na\r\n\r\n");
    check_both(|r| r.bulk_integer(-12), "$3\r\n-12\r\n");
    check_both(|r| r.array(12), "*12\r\n");
}

#[test]
fn what_resp2_lacks_becomes_what_redis_makes_of_it() {
    check(|r| r.null(), "$-1\r\n", "_\r\n");
    check(|r| r.null_array(), "*-1\r\n", "_\r\n");
    check(|r| r.map(3), "*6\r\n", "%3\r\n");
    check(|r| r.set(3), "*3\r\n", "~3\r\n");
    check(|r| r.push(2), "*2\r\n", ">2\r\n");
    check(|r| r.double(2.5), "$3\r\n2.5\r\n", ",2.5\r\n");
    check(|r| r.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    check(|r| r.boolean(true), ":1\r\n", "#t\r\n");
    check(|r| r.boolean(false), ":0\r\n", "#f\r\n");
    check(|r| r.big_number("123456789"), "$9\r\n123456789\r\n", "(123456789\r\n");
    check(|r| r.verbatim("txt", b"text"), "$4\r\ntext\r\n", "=8\r\ntxt:text\r\n");
}

#[test]
fn every_length_has_its_digits() {
    for len in [0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 16_383, 16_384, 100_000] {
        let value = vec![b'x'; len];
        let expected = format!("${len}\r\n{}\r\n", "x".repeat(len));
        assert_eq!(written(|r| r.bulk(&value))[0], expected);
        assert_eq!(written(|r| r.bulk_shared(&Arc::new(value.clone())))[0], expected);
    }
}

#[test]
fn a_large_value_is_shared_and_a_small_one_copied() {
    for (len, holders) in [(SHARED_BYTES_MIN - 1, 1), (SHARED_BYTES_MIN, 2)] {
        let (mut out, value) = (Output::default(), Arc::new(vec![b'x'; len]));
        Reply::new(&mut out, Protocol::Resp2).bulk_shared(&value);
        assert_eq!(Arc::strong_count(&value), holders);
    }
}

#[test]
fn a_line_break_in_an_error_cannot_end_it() {
    check_both(|r| r.error("ERR unknown command 'a\r\n+OK'"), "-ERR unknown command 'a  +OK'\r\n");
    check_both(|r| r.simple("a\nb"), "+a b\r\n");
}

#[test]
fn an_array_can_be_counted_afterwards() {
    let large = Arc::new(vec![b'x'; SHARED_BYTES_MIN]);
    let [bytes, _] = written(|r| {
        r.ok();
        let mark = r.output().mark();
        r.integer(7);
        r.bulk_shared(&large);
        r.array_since(mark, 2);
    });
    let expected =
        format!("+OK\r\n*2\r\n:7\r\n${}\r\n{}\r\n", large.len(), "x".repeat(large.len()));
    assert_eq!(bytes, expected);
}

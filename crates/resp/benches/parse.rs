//! Benchmarks of reading requests and writing replies: `cargo bench -p resp`. Times are for a pipeline of 16.

use divan::{Bencher, black_box, counter::ItemsCount};
use resp::{Limits, Output, Parsed, Protocol, Reply, RequestParser, encode_command, skip_reply};

const PIPELINE: usize = 16;

fn main() {
    divan::main();
}

fn pipeline(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..PIPELINE {
        encode_command(&mut bytes, args);
    }
    bytes
}

fn parse(bencher: Bencher, args: &[&[u8]]) {
    let mut bytes = pipeline(args);
    let mut parser = RequestParser::default();
    let mut spans = Vec::new();
    bencher.counter(ItemsCount::new(PIPELINE)).bench_local(|| {
        spans.clear();
        let (buf, mut at) = (black_box(&mut bytes), 0);
        while let Ok(Parsed::Request { end, .. }) = parser.next(buf, at, &Limits::FULL, &mut spans)
        {
            at = end;
        }
        black_box(spans.len())
    });
}

#[divan::bench]
fn get_key_16(bencher: Bencher) {
    parse(bencher, &[b"GET", b"key:000000000042"]);
}

#[divan::bench]
fn set_key_16_value_64(bencher: Bencher) {
    parse(bencher, &[b"SET", b"key:000000000042", &[b'x'; 64]]);
}

#[divan::bench]
fn set_key_16_value_1024(bencher: Bencher) {
    parse(bencher, &[b"SET", b"key:000000000042", &[b'x'; 1024]]);
}

fn answer(bencher: Bencher, write: impl Fn(&mut Reply<'_>)) {
    let mut out = Output::default();
    bencher.counter(ItemsCount::new(PIPELINE)).bench_local(|| {
        for _ in 0..PIPELINE {
            write(&mut Reply::new(black_box(&mut out), Protocol::Resp2));
        }
        out.advance(out.len());
    });
}

#[divan::bench]
fn answer_ok(bencher: Bencher) {
    answer(bencher, |reply| reply.ok());
}

#[divan::bench]
fn answer_bulk_64(bencher: Bencher) {
    answer(bencher, |reply| reply.bulk(black_box(&[b'x'; 64])));
}

#[divan::bench]
fn skip_bulk_64(bencher: Bencher) {
    let mut out = Vec::new();
    for _ in 0..PIPELINE {
        out.extend_from_slice(b"$64\r\n");
        out.extend_from_slice(&[b'x'; 64]);
        out.extend_from_slice(b"\r\n");
    }
    bencher.counter(ItemsCount::new(PIPELINE)).bench_local(|| {
        let (buf, mut at) = (black_box(&out), 0);
        while let Ok(Some(end)) = skip_reply(buf, at) {
            at = end;
        }
        black_box(at)
    });
}

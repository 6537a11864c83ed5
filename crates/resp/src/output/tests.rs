//! Tests of `output.rs`: after any mix of writes, sends, undos and insertions, the bytes come out in order.

use super::*;
use proptest::prelude::*;

fn unsent(out: &Output) -> Vec<u8> {
    out.chunks(out.mark()).flatten().copied().collect()
}

#[test]
fn a_shared_value_is_sent_from_where_it_lies() {
    let value = Arc::new(vec![b'v'; 100]);
    let mut out = Output::default();
    out.extend_from_slice(b"before");
    out.push_shared(&value);
    out.extend_from_slice(b"after");
    let chunks: Vec<&[u8]> = out.chunks(out.mark()).collect();
    assert_eq!(chunks, [&b"before"[..], &value, b"after"]);
    assert_eq!(chunks[1].as_ptr(), value.as_ptr());
    assert_eq!(out.len(), 111);
    out.advance(106);
    assert_eq!(Arc::strong_count(&value), 1, "a sent value is let go");
    assert_eq!(unsent(&out), b"after");
}

#[test]
fn sending_stops_at_a_mark() {
    let mut out = Output::default();
    out.extend_from_slice(b"acknowledged");
    let mark = out.mark();
    out.push_shared(&Arc::new(b"not yet".to_vec()));
    assert_eq!(out.chunks(mark).collect::<Vec<_>>(), [b"acknowledged"]);
    out.advance(12);
    assert_eq!(out.chunks(mark).count(), 0);
    assert_eq!((out.sent(), out.len()), (mark, 7));
}

#[test]
fn memory_is_given_back_only_when_nothing_waits() {
    let mut out = Output::default();
    out.extend_from_slice(&[0; 10_000]);
    out.trim(1000);
    assert!(out.capacity() >= 10_000);
    out.advance(10_000);
    out.trim(100_000);
    assert!(out.capacity() >= 10_000);
    out.trim(1000);
    assert_eq!(out.capacity(), 0);
}

#[test]
fn a_client_that_is_always_behind_does_not_make_the_buffer_grow() {
    let mut out = Output::default();
    out.extend_from_slice(&[0; 1000]);
    for _ in 0..10_000 {
        out.extend_from_slice(&[0; 1000]);
        out.advance(1000);
    }
    assert!(out.capacity() < 512 * 1024, "{}", out.capacity());
}

#[test]
#[should_panic(expected = "what has been sent cannot be changed")]
fn what_has_been_sent_cannot_be_undone() {
    let mut out = Output::default();
    let mark = out.mark();
    out.extend_from_slice(b"abc");
    out.advance(1);
    out.truncate(mark);
}

#[derive(Clone, Debug)]
enum Step {
    Own(u8, usize),
    Share(u8, usize),
    /// Percentage of the unsent bytes.
    Send(usize),
    Mark,
    Undo,
    Insert(u8),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (any::<u8>(), prop_oneof![0usize..20, 0usize..50_000]).prop_map(|(b, n)| Step::Own(b, n)),
        3 => (any::<u8>(), 0usize..300).prop_map(|(b, n)| Step::Share(b, n)),
        3 => (0usize..=100).prop_map(Step::Send),
        3 => Just(Step::Mark),
        2 => Just(Step::Undo),
        2 => any::<u8>().prop_map(Step::Insert),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 0..60)
}

/// A simple model of an output: the whole stream, and the number of bytes sent.
#[derive(Default)]
struct Model {
    stream: Vec<u8>,
    sent: usize,
    mark: Option<(Mark, usize)>,
}

impl Model {
    /// Returns the last mark made, if nothing after it has been sent and it has not been undone.
    fn mark(&self) -> Option<(Mark, usize)> {
        self.mark.filter(|(_, at)| (self.sent..=self.stream.len()).contains(at))
    }

    fn step(&mut self, out: &mut Output, step: &Step) {
        match *step {
            Step::Own(byte, len) => {
                out.extend_from_slice(&vec![byte; len]);
                self.stream.resize(self.stream.len() + len, byte);
            }
            Step::Share(byte, len) => {
                out.push_shared(&Arc::new(vec![byte; len]));
                self.stream.resize(self.stream.len() + len, byte);
            }
            Step::Send(hundredths) => {
                let count = out.len() * hundredths / 100;
                out.advance(count);
                self.sent += count;
            }
            Step::Mark => self.mark = Some((out.mark(), self.stream.len())),
            Step::Undo => {
                let Some((mark, at)) = self.mark() else { return };
                out.truncate(mark);
                self.stream.truncate(at);
            }
            Step::Insert(byte) => {
                let Some((mark, at)) = self.mark() else { return };
                out.insert(mark, &[byte; 3]);
                self.stream.splice(at..at, [byte; 3]);
            }
            Step::Clear => {
                out.clear();
                self.sent = self.stream.len();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_bytes_come_out_as_they_went_in(steps in steps()) {
        let (mut out, mut model) = (Output::default(), Model::default());
        for step in &steps {
            model.step(&mut out, step);
            prop_assert_eq!(out.len(), model.stream.len() - model.sent);
            prop_assert!(out.chunks(out.mark()).all(|chunk| !chunk.is_empty()));
            prop_assert!(unsent(&out) == model.stream[model.sent..], "after {step:?}");
            if let Some((mark, at)) = model.mark() {
                let until: usize = out.chunks(mark).map(<[u8]>::len).sum();
                prop_assert_eq!(until, at - model.sent);
            }
        }
    }
}

//! Prints the memory per element of large containers, beside the targets of the project. Computed by the containers'
//! own accounting. Run: `cargo run --release -p containers --example bytes`.

use core::hash::{BuildHasher, Hasher};

use containers::{
    Element, HashBytes, List, Score, SortedSet, Stream, StreamId, StreamRecord, StreamRecords,
    Table,
};

const COUNT: usize = 200_000;

struct Fold;

impl HashBytes for Fold {
    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = foldhash::quality::FixedState::with_seed(1).build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }
}

fn print(name: &str, bytes: usize, target: f64) {
    println!("{name:<36} {:>6.1} B   target {target:>5.1}", bytes as f64 / COUNT as f64);
}

fn main() {
    let member = |number: usize| format!("m:{number:010}");
    let mut hash = Table::new(2);
    let mut strings = Table::new(1);
    let mut numbers = Table::new(1);
    let mut list = List::default();
    let mut sorted = SortedSet::default();
    for number in 0..COUNT {
        let (name, value) = (member(number), format!("v:{number:014}"));
        let (name, value) = (Element::of(name.as_bytes()), Element::of(value.as_bytes()));
        hash.set(&Fold, name, value);
        strings.add(&Fold, name);
        numbers.add(&Fold, Element::Integer(number as i64));
        list.push_back(value);
        let score = Score::new(((number * 7_919) % COUNT) as f64).expect("a number");
        sorted.insert(&Fold, score, name);
    }
    let (stream, pending) = stream_and_pending();
    print("hash big (12B field, 16B value)", hash.bytes(), 58.0);
    print("list big 16B items", list.bytes(), 18.5);
    print("set big ints", numbers.bytes(), 16.0);
    print("set big (12B member)", strings.bytes(), 28.0);
    print("zset big (12B member, int score)", sorted.bytes(), 42.0);
    print("stream big (2 fields, 8+16B each)", stream, 46.0);
    print("stream pending entry", pending, 48.0);
}

fn change(stream: &mut Stream, records: &[StreamRecord<'_>]) {
    let mut row = Vec::new();
    records.iter().for_each(|record| record.write(&mut row));
    drop(stream.change(StreamRecords::new(&row)));
}

/// Returns the memory of a stream, and that of its entries as pending ones of ten consumers.
fn stream_and_pending() -> (usize, usize) {
    let mut stream = Stream::default();
    let ids = (0..COUNT)
        .map(|number| StreamId::new(1_700_000_000_000 + number as u64 / 20, number as u64 % 20));
    for (number, id) in ids.clone().enumerate() {
        let mut pairs = Vec::new();
        for field in ["field:01", "field:02"] {
            Element::of(field.as_bytes()).write(&mut pairs);
            Element::of(format!("v:{number:014}").as_bytes()).write(&mut pairs);
        }
        change(&mut stream, &[StreamRecord::Entry { id, pairs: &pairs }]);
    }
    let entries = stream.bytes();
    for (number, id) in ids.enumerate() {
        let consumer = format!("consumer{}", number % 10);
        let of = StreamRecord::OfConsumer { name: consumer.as_bytes() };
        let delivered_at = id.ms.cast_signed() + 60_000;
        let pending = StreamRecord::Pending { id, delivered_at, deliveries: 1 };
        change(&mut stream, &[StreamRecord::InGroup { name: b"group" }, of, pending]);
    }
    (entries, stream.bytes() - entries)
}

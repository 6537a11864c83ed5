//! Benchmarks of the lookups: slot of a key, replicas of a timer, server of a key. `cargo bench -p placement`.

use divan::{Bencher, black_box};
use placement::{Ranking, ServerMap, Slot};

fn main() {
    divan::main();
}

#[divan::bench(args = [8, 16, 32, 64])]
fn slot_of_a_key(bencher: Bencher, bytes: usize) {
    let key = vec![b'k'; bytes];
    bencher.bench(|| Slot::of(black_box(&key)));
}

#[divan::bench]
fn slot_of_a_key_with_a_hash_tag(bencher: Bencher) {
    bencher.bench(|| Slot::of(black_box(b"{user:1000042}:session:basket")));
}

#[divan::bench(args = [3, 32])]
fn replicas_of_a_timer(bencher: Bencher, servers: usize) {
    let names: Vec<String> = (0..servers).map(|server| format!("10.0.0.{server}:7253")).collect();
    let ranking = Ranking::new(&names);
    bencher.bench(|| ranking.replicas(black_box(123_456_789), 2));
}

#[divan::bench(args = [4, 32])]
fn server_of_a_key(bencher: Bencher, servers: usize) {
    let map = ServerMap::new(vec![4; servers]).expect("weights that are not 0");
    bencher.bench(|| map.server_of(black_box(b"customer:45543:details")));
}

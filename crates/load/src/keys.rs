//! The choice of the next key: uniform, Zipf, or sequential. Pure: the seed is an argument.
//!
//! `request.rs` asks for a number and writes it into the key `key:000000000042`, 16 bytes, the same
//! form that redis-benchmark uses.

use std::ops::RangeInclusive;

use placement::{Slot, SplitMix64};

use crate::request::key_of;

/// The skew of YCSB and of most papers since: of a million keys, the hottest gets 6.5 percent of the requests.
pub const ZIPF_THETA: f64 = 0.99;

/// The number of keys, and the popularity of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeySpace {
    pub keys: u64,
    pub popularity: Popularity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popularity {
    /// All keys are equally popular.
    Uniform,
    /// The i-th most popular key in proportion to `1 / i^0.99`, popular ones spread over the space.
    Zipf,
    /// 0, 1, 2, ...: each key once, to fill a server.
    Sequence,
    /// All keys of these slots are equally popular, no others are used: the slots of one node of a cluster.
    Served(&'static ServedSlots),
}

/// The slots that one node serves.
#[derive(Debug, PartialEq, Eq)]
pub struct ServedSlots(Vec<bool>);

impl ServedSlots {
    /// Builds the set. It is never freed, because a load is described by `Copy` values.
    pub fn of(ranges: impl Iterator<Item = RangeInclusive<usize>>) -> &'static ServedSlots {
        let mut served = vec![false; usize::from(Slot::COUNT)];
        ranges.for_each(|range| served[range].fill(true));
        assert!(served.contains(&true), "a node that is measured serves something");
        Box::leak(Box::new(ServedSlots(served)))
    }

    fn has(&self, key: u64) -> bool {
        self.0[Slot::of(&key_of(key)).index()]
    }
}

/// Draws key numbers below `KeySpace::keys`, without end.
#[derive(Clone, Debug)]
pub struct KeyDraw {
    keys: u64,
    rng: Rng,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Uniform,
    Zipf { zipf: Zipf, stride: u64 },
    Sequence { next: u64 },
    Served(&'static ServedSlots),
}

impl KeyDraw {
    pub fn new(space: KeySpace, seed: u64) -> KeyDraw {
        assert!(space.keys > 0, "a key space has at least one key");
        let how = match space.popularity {
            Popularity::Uniform => How::Uniform,
            Popularity::Zipf => {
                How::Zipf { zipf: Zipf::new(space.keys, ZIPF_THETA), stride: stride(space.keys) }
            }
            Popularity::Sequence => How::Sequence { next: 0 },
            Popularity::Served(slots) => How::Served(slots),
        };
        KeyDraw { keys: space.keys, rng: Rng::new(seed), how }
    }

    #[inline]
    pub fn draw(&mut self) -> u64 {
        match &mut self.how {
            How::Uniform => self.rng.below(self.keys),
            How::Zipf { zipf, stride } => {
                let rank = zipf.rank(self.rng.unit());
                rank.wrapping_mul(*stride) % self.keys
            }
            How::Sequence { next } => {
                let key = *next;
                *next = if key + 1 == self.keys { 0 } else { key + 1 };
                key
            }
            How::Served(slots) => loop {
                let key = self.rng.below(self.keys);
                if slots.has(key) {
                    break key;
                }
            },
        }
    }
}

/// Returns a number coprime to `keys`, so that `rank * stride % keys` reaches every key and
/// neighbours in rank are far apart. Small enough that the product fits 64 bits.
fn stride(keys: u64) -> u64 {
    const FAR_APART: u64 = 2_654_435_761;
    (FAR_APART % keys.max(2)..).find(|s| gcd(*s, keys) == 1).expect("the next prime is one")
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Draws ranks by the closed form of Gray et al. ("Quickly generating billion-record synthetic
/// databases", 1994): exact for the first two ranks, a close fit for the rest.
#[derive(Clone, Debug)]
pub struct Zipf {
    ranks: f64,
    zeta: f64,
    second: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    pub fn new(ranks: u64, theta: f64) -> Zipf {
        let n = ranks as f64;
        let zeta: f64 = (1..=ranks).map(|i| (i as f64).powf(-theta)).sum();
        let second = 1.0 + 0.5f64.powf(theta);
        let eta = (1.0 - (2.0 / n).powf(1.0 - theta)) / (1.0 - second / zeta);
        Zipf { ranks: n, zeta, second, alpha: 1.0 / (1.0 - theta), eta }
    }

    /// Returns the rank, from 0, for `unit`, which is uniform over 0..1.
    #[inline]
    pub fn rank(&self, unit: f64) -> u64 {
        let reached = unit * self.zeta;
        if reached < 1.0 {
            return 0;
        }
        if reached < self.second {
            return 1;
        }
        let rank = self.ranks * (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        rank.min(self.ranks - 1.0) as u64
    }
}

/// Random numbers to choose keys with.
#[derive(Clone, Debug)]
pub struct Rng(SplitMix64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(SplitMix64::new(seed))
    }

    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number uniform over `0..limit`.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// Returns a number uniform over 0..1, 1 excluded.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(keys: u64, popularity: Popularity, draws: u64) -> Vec<u64> {
        let mut draw = KeyDraw::new(KeySpace { keys, popularity }, 7);
        let mut counts = vec![0; keys as usize];
        for _ in 0..draws {
            counts[draw.draw() as usize] += 1;
        }
        counts
    }

    #[test]
    fn keys_of_a_node_are_keys_of_its_slots() {
        let served = ServedSlots::of([0..=5_000, 9_000..=9_000].into_iter());
        let counts = counts(1_000, Popularity::Served(served), 100_000);
        let is_served = |key: usize| {
            let slot = Slot::of(&key_of(key as u64)).number();
            slot <= 5_000 || slot == 9_000
        };
        assert!(counts.iter().enumerate().all(|(key, count)| is_served(key) == (*count > 0)));
    }

    #[test]
    fn uniform_keys_come_equally_often() {
        for count in counts(100, Popularity::Uniform, 1_000_000) {
            assert!((9_500..10_500).contains(&count), "expected about 10,000, got {count}");
        }
    }

    #[test]
    fn zipf_ranks_come_as_often_as_the_law_says() {
        let ranks = 10_000;
        let zipf = Zipf::new(ranks, ZIPF_THETA);
        let mut rng = Rng::new(1);
        let mut counts = vec![0u64; ranks as usize];
        let draws = 2_000_000;
        for _ in 0..draws {
            counts[zipf.rank(rng.unit()) as usize] += 1;
        }
        let zeta: f64 = (1..=ranks).map(|i| (i as f64).powf(-ZIPF_THETA)).sum();
        // The two exact ranks one by one, the others by decades, where the closed form fits well.
        for (from, to, slack) in [(0, 1, 0.02), (1, 2, 0.02), (10, 100, 0.1), (100, 1000, 0.1)] {
            let seen = counts[from..to].iter().sum::<u64>() as f64 / draws as f64;
            let law: f64 =
                (from..to).map(|r| ((r + 1) as f64).powf(-ZIPF_THETA)).sum::<f64>() / zeta;
            assert!((seen / law - 1.0).abs() < slack, "ranks {from}..{to}: {seen} for {law}");
        }
    }

    #[test]
    fn every_zipf_rank_has_its_own_key() {
        for keys in [1, 2, 3, 10, 1000, 10_000, 1_000_000] {
            let stride = stride(keys);
            let mut seen = vec![false; keys as usize];
            for rank in 0..keys {
                let key = (rank.wrapping_mul(stride) % keys) as usize;
                assert!(!seen[key], "{keys} keys: rank {rank} shares key {key}");
                seen[key] = true;
            }
        }
    }

    #[test]
    fn the_hottest_zipf_keys_are_not_neighbours() {
        let counts = counts(1000, Popularity::Zipf, 200_000);
        let mut by_heat: Vec<usize> = (0..counts.len()).collect();
        by_heat.sort_by_key(|key| std::cmp::Reverse(counts[*key]));
        assert!(by_heat[0].abs_diff(by_heat[1]) > 10);
        assert!(counts[by_heat[0]] > 20_000, "the hottest of 1000 gets about an eighth");
    }

    #[test]
    fn zipf_over_one_or_two_keys_stays_inside() {
        for keys in [1, 2, 3] {
            assert_eq!(counts(keys, Popularity::Zipf, 1000).iter().sum::<u64>(), 1000);
        }
    }

    #[test]
    fn a_sequence_gives_each_key_once_and_then_starts_over() {
        assert_eq!(counts(10, Popularity::Sequence, 30), vec![3; 10]);
    }
}

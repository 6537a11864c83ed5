//! Messages that arrive late, twice or never, and in any order. The world pushes their arrivals; this file decides
//! how many there are, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add;
use std::time::Duration;

use crate::Rng;

/// Delays and losses between all nodes.
#[derive(Clone, Copy, Debug)]
pub struct Quality {
    /// The shortest and the longest delay, in microseconds.
    pub delay_us: (u64, u64),
    /// Lost messages, and doubled ones, of a thousand.
    pub lost: u64,
    pub doubled: u64,
    /// Deliveries on a stream, of ten thousand, after which it breaks.
    pub broken: u64,
}

/// The ways between nodes `N`, and their faults. `T` is a point in virtual time.
pub struct Network<N, T = Duration> {
    pub quality: Quality,
    /// Pairs of nodes: nothing from the first reaches the second.
    pub cut: BTreeSet<(N, N)>,
    /// Extra delay of messages from the first to the second.
    pub slow: BTreeMap<(N, N), Duration>,
    /// True if messages wait while their way is cut, as on a connection; else they are lost.
    pub queues: bool,
    /// Time of the last `mend`.
    mended_at: T,
}

impl<N: Copy + Ord, T: Copy + Ord + Default + Add<Duration, Output = T>> Network<N, T> {
    pub fn new(quality: Quality) -> Network<N, T> {
        let (cut, slow) = (BTreeSet::new(), BTreeMap::new());
        Network { quality, cut, slow, queues: false, mended_at: T::default() }
    }

    pub fn is_cut(&self, from: N, to: N) -> bool {
        self.cut.contains(&(from, to))
    }

    /// Cuts every way between two groups of nodes, in both directions.
    pub fn cut_apart(&mut self, some: &[N], others: &[N]) {
        let pairs = some.iter().flat_map(|one| others.iter().map(move |other| (*one, *other)));
        self.cut.extend(pairs.flat_map(|(one, other)| [(one, other), (other, one)]));
    }

    /// Opens all ways again.
    pub fn mend(&mut self, now: T) {
        self.cut.clear();
        self.slow.clear();
        self.mended_at = now;
    }

    /// Returns whether no way was cut or slow for the last `duration`.
    pub fn is_whole_for(&self, duration: Duration, now: T) -> bool {
        self.cut.is_empty() && self.slow.is_empty() && self.mended_at + duration <= now
    }

    /// Draws whether a message gets on its way: it may be lost, and a cut loses it unless messages wait.
    pub fn accepts(&self, rng: &mut Rng, from: N, to: N) -> bool {
        let is_lost = rng.chance(self.quality.lost, 1000);
        !is_lost && (self.queues || !self.is_cut(from, to))
    }

    /// Draws the delays of a message that is on its way: one, or two if the message is doubled.
    pub fn delays(
        &self,
        rng: &mut Rng,
        from: N,
        to: N,
    ) -> impl Iterator<Item = Duration> + use<N, T> {
        let is_doubled = rng.chance(self.quality.doubled, 1000);
        let first = self.delay(rng, from, to);
        let second = is_doubled.then(|| self.delay(rng, from, to));
        std::iter::once(first).chain(second)
    }

    /// Draws one delay.
    pub fn delay(&self, rng: &mut Rng, from: N, to: N) -> Duration {
        let (least, most) = self.quality.delay_us;
        let extra = self.slow.get(&(from, to)).copied().unwrap_or_default();
        Duration::from_micros(least + rng.draw() % (most - least + 1)) + extra
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUALITY: Quality = Quality { delay_us: (100, 300), lost: 0, doubled: 0, broken: 0 };

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Sends this many messages from 1 to 2; returns the delays of those that arrive.
    fn send(network: &Network<u32>, count: usize) -> Vec<Duration> {
        let mut rng = Rng::new(9);
        let mut arrive = |_| {
            let accepted = network.accepts(&mut rng, 1, 2);
            let delays = accepted.then(|| network.delays(&mut rng, 1, 2));
            delays.into_iter().flatten().collect::<Vec<_>>()
        };
        (0..count).flat_map(&mut arrive).collect()
    }

    #[test]
    fn of_a_good_network_all_messages_arrive_once_and_in_time() {
        let delays = send(&Network::new(QUALITY), 1_000);
        assert_eq!(delays.len(), 1_000);
        assert_eq!((delays.iter().min(), delays.iter().max()), (Some(&us(100)), Some(&us(300))));
    }

    #[test]
    fn messages_are_lost_and_doubled_as_often_as_the_quality_says() {
        let lossy = send(&Network::new(Quality { lost: 200, ..QUALITY }), 10_000).len();
        assert!((7_700..8_300).contains(&lossy), "{lossy}");
        let doubling = send(&Network::new(Quality { doubled: 200, ..QUALITY }), 10_000).len();
        assert!((11_700..12_300).contains(&doubling), "{doubling}");
    }

    #[test]
    fn a_cut_holds_in_its_direction_only_and_may_let_messages_wait() {
        let mut network = Network::new(QUALITY);
        network.cut.insert((2, 1));
        assert_eq!(send(&network, 10).len(), 10);
        network.cut.insert((1, 2));
        assert_eq!(send(&network, 10).len(), 0);
        network.queues = true;
        assert_eq!(send(&network, 10).len(), 10);
    }

    #[test]
    fn groups_that_are_cut_apart_reach_only_themselves() {
        let mut network = Network::<u32>::new(QUALITY);
        network.cut_apart(&[1], &[2, 3]);
        let is_cut = |from, to| network.is_cut(from, to);
        assert!(is_cut(1, 2) && is_cut(2, 1) && is_cut(1, 3) && is_cut(3, 1));
        assert!(!is_cut(2, 3) && !is_cut(3, 2));
    }

    #[test]
    fn a_slow_way_delays_and_a_mended_network_is_whole_a_while_later() {
        let mut network = Network::new(QUALITY);
        network.slow.insert((1, 2), us(5_000));
        assert!(send(&network, 100).into_iter().all(|delay| delay >= us(5_100)));
        assert!(!network.is_whole_for(us(10), us(1_000_000)));
        network.mend(us(2_000));
        assert!(send(&network, 100).into_iter().all(|delay| delay <= us(300)));
        assert!(
            !network.is_whole_for(us(10), us(2_009)) && network.is_whole_for(us(10), us(2_010))
        );
    }
}

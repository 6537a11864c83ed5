//! The servers that keep a timer: rendezvous hashing that uses both ends of the ranking.
//!
//! Each server's own hash is the seed for hashing the timer's id. The lowest result is the primary, the highest the
//! first backup, the second highest the next backup. The two lists grow towards each other, so a server that joins
//! or leaves never turns another server from primary into backup. Called by `timers`.

use crate::murmur3;

/// The servers to rank, in the order of the member list. Every node must use the same order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ranking {
    /// Each server's hash, unique: the seed for hashing timer ids.
    seeds: Vec<u32>,
}

impl Ranking {
    pub fn new<Name: AsRef<[u8]>>(servers: &[Name]) -> Ranking {
        Ranking::with_hash(servers, murmur3)
    }

    /// Returns the servers for `id` as indices into the list: the primary first, then the backups. Fewer than
    /// `replicas` if there are fewer servers.
    pub fn replicas(&self, id: u64, replicas: usize) -> Vec<usize> {
        self.replicas_with_hash(id, replicas, murmur3)
    }

    fn with_hash<Name: AsRef<[u8]>>(servers: &[Name], hash: impl Fn(&[u8], u32) -> u32) -> Ranking {
        Ranking { seeds: made_unique(servers.iter().map(|name| hash(name.as_ref(), 0))) }
    }

    fn replicas_with_hash(
        &self,
        id: u64,
        replicas: usize,
        hash: impl Fn(&[u8], u32) -> u32,
    ) -> Vec<usize> {
        let id = id.to_le_bytes();
        let results = made_unique(self.seeds.iter().map(|seed| hash(&id, *seed)));
        let mut order: Vec<usize> = (0..results.len()).collect();
        order.sort_unstable_by_key(|server| results[*server]);
        let Some((primary, others)) = order.split_first() else { return Vec::new() };
        std::iter::once(primary).chain(others.iter().rev()).take(replicas).copied().collect()
    }
}

/// Makes all values unique: equal values would leave the order undefined, so the later one is incremented until it
/// is unique.
fn made_unique(values: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut unique: Vec<u32> = Vec::with_capacity(values.size_hint().0);
    for mut value in values {
        while unique.contains(&value) {
            value = value.wrapping_add(1);
        }
        unique.push(value);
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test setup with given hashes instead of computed ones.
    struct Told<'a> {
        servers: &'a [(&'a str, u32)],
        results: &'a [(u32, u32)],
    }

    impl Told<'_> {
        /// Returns the names of all servers in the order in which they would keep a timer.
        fn order(&self) -> String {
            let names: Vec<&str> = self.servers.iter().map(|(name, _)| *name).collect();
            let of_name = |bytes: &[u8], _| self.find(bytes);
            let ranking = Ranking::with_hash(&names, of_name);
            let of_seed = |_: &[u8], seed| pick(self.results, |(known, _)| *known == seed).1;
            let order = ranking.replicas_with_hash(100, names.len(), of_seed);
            order.into_iter().map(|server| names[server]).collect::<Vec<_>>().join(" ")
        }

        fn find(&self, bytes: &[u8]) -> u32 {
            pick(self.servers, |(name, _)| name.as_bytes() == bytes).1
        }
    }

    fn pick<T: Copy>(list: &[T], wanted: impl Fn(&T) -> bool) -> T {
        *list.iter().find(|entry| wanted(entry)).expect("the test tells every hash it needs")
    }

    #[test]
    fn the_lowest_is_primary_and_the_highest_the_first_backup() {
        let servers = [("A", 1000), ("B", 2000), ("C", 3000)];
        let results = [(1000, 7777), (2000, 9999), (3000, 8888)];
        assert_eq!(Told { servers: &servers, results: &results }.order(), "A B C");
    }

    #[test]
    fn a_new_server_takes_over_without_moving_anything_among_the_others() {
        let servers = [("A", 1000), ("B", 2000), ("C", 3000), ("D", 4000)];
        let results = [(1000, 7777), (2000, 9999), (3000, 8888), (4000, 6666)];
        assert_eq!(Told { servers: &servers, results: &results }.order(), "D B C A");
    }

    #[test]
    fn servers_with_one_hash_are_told_apart_by_raising_the_later() {
        let servers = [("A1", 1000), ("A2", 1000), ("B", 2000), ("C", 3000)];
        let results = [(1000, 7777), (1001, 9000), (2000, 9999), (3000, 8888)];
        assert_eq!(Told { servers: &servers, results: &results }.order(), "A1 B A2 C");
        // Without A1 nothing collides any more: A2 gets A1's seed, and so its place.
        let servers = [("A2", 1000), ("B", 2000), ("C", 3000)];
        assert_eq!(Told { servers: &servers, results: &results }.order(), "A2 B C");
    }

    #[test]
    fn of_two_equal_results_the_earlier_server_wins() {
        let servers = [("A", 1000), ("B", 2000), ("C", 3000)];
        let results = [(1000, 800), (2000, 800), (3000, 900)];
        assert_eq!(Told { servers: &servers, results: &results }.order(), "A C B");
    }

    #[test]
    fn collisions_skip_values_that_are_taken_and_wrap_around() {
        let unique = |values: &[u32]| made_unique(values.iter().copied());
        assert_eq!(unique(&[5, 6, 5, 5]), [5, 6, 7, 8]);
        assert_eq!(unique(&[u32::MAX, u32::MAX]), [u32::MAX, 0]);
    }

    #[test]
    fn a_fourth_server_gets_a_quarter_of_the_timers_and_nothing_else_moves() {
        let three = Ranking::new(&["10.0.0.1:7253", "10.0.0.2:7253", "10.0.0.3:7253"]);
        let names = ["10.0.0.1:7253", "10.0.0.2:7253", "10.0.0.3:7253", "10.0.0.4:7253"];
        let four = Ranking::new(&names);
        let mut moved = 0;
        for id in 0..100_000 {
            let (before, after) = (three.replicas(id, 2), four.replicas(id, 2));
            moved += usize::from(before[0] != after[0]);
            assert!(
                after[0] == before[0] || after[0] == 3,
                "a primary only moves onto the new one"
            );
            assert_ne!(after[1], before[0], "a primary never becomes a backup");
        }
        assert!((24_000..26_000).contains(&moved), "{moved}");
    }

    #[test]
    fn there_are_never_more_replicas_than_servers() {
        assert_eq!(Ranking::new::<&str>(&[]).replicas(1, 2), Vec::<usize>::new());
        assert_eq!(Ranking::new(&["a"]).replicas(1, 2), [0]);
        assert_eq!(Ranking::new(&["a", "b"]).replicas(1, 1).len(), 1);
    }
}

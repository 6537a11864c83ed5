//! Messages that keep their order, on links that break: what is on its way then is lost. A partition lets nothing
//! pass between its two sides.

use std::collections::{BTreeMap, BTreeSet};

/// The links between nodes `N`, one for each direction. `T` is a point in virtual time.
pub struct Links<N, T> {
    links: BTreeMap<(N, N), Link<T>>,
    /// Nodes on the far side of a partition: they reach each other, and nobody else.
    pub apart: BTreeSet<N>,
}

#[derive(Default)]
struct Link<T> {
    /// Arrival of the last message.
    last: T,
    breaks: u64,
}

impl<N: Copy + Ord, T: Copy + Ord + Default> Links<N, T> {
    /// Returns the arrival of a message that would arrive at this time if it were alone on its link.
    pub fn arrival(&mut self, link: (N, N), alone: T) -> T {
        let link = self.links.entry(link).or_default();
        link.last = link.last.max(alone);
        link.last
    }

    /// Returns the number of breaks of a link so far. A message keeps it until its arrival, for `delivers`.
    pub fn breaks(&self, link: (N, N)) -> u64 {
        self.links.get(&link).map_or(0, |link| link.breaks)
    }

    /// Returns whether a message arrives that was sent after this number of breaks.
    pub fn delivers(&self, link: (N, N), breaks: u64) -> bool {
        self.breaks(link) == breaks && !self.is_cut(link)
    }

    /// Returns whether a partition separates the two ends of a link.
    pub fn is_cut(&self, (from, to): (N, N)) -> bool {
        self.apart.contains(&from) != self.apart.contains(&to)
    }

    /// Breaks the links between two nodes.
    pub fn break_between(&mut self, one: N, other: N) {
        for link in [(one, other), (other, one)] {
            self.links.entry(link).or_default().breaks += 1;
        }
    }

    /// Breaks all links of a node.
    pub fn break_all_of(&mut self, node: N) {
        for ((from, to), link) in &mut self.links {
            link.breaks += u64::from(*from == node || *to == node);
        }
    }
}

impl<N, T> Default for Links<N, T> {
    fn default() -> Links<N, T> {
        Links { links: BTreeMap::new(), apart: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_does_not_overtake_another_of_its_link() {
        let mut links = Links::default();
        assert_eq!(links.arrival((1, 2), 50), 50);
        assert_eq!(links.arrival((1, 2), 20), 50);
        assert_eq!(links.arrival((2, 1), 20), 20, "the way back is another link");
        assert_eq!(links.arrival((1, 2), 60), 60);
    }

    #[test]
    fn a_break_loses_what_is_on_its_way_and_nothing_that_follows() {
        let mut links: Links<u32, u64> = Links::default();
        let before = links.breaks((1, 2));
        assert!(links.delivers((1, 2), before));
        links.break_between(2, 1);
        assert!(!links.delivers((1, 2), before));
        assert!(links.delivers((1, 2), links.breaks((1, 2))));
    }

    #[test]
    fn the_links_of_a_node_break_together_and_no_others() {
        let mut links = Links::default();
        let all = [(1, 2), (3, 1), (2, 3)];
        for link in all {
            links.arrival(link, 10);
        }
        links.break_all_of(1);
        assert_eq!(all.map(|link| links.breaks(link)), [1, 1, 0]);
    }

    #[test]
    fn a_partition_separates_its_sides_until_it_ends() {
        let mut links: Links<u32, u64> = Links { apart: [1, 2].into(), ..Links::default() };
        assert!(links.is_cut((1, 3)) && links.is_cut((3, 2)));
        assert!(!links.is_cut((1, 2)) && !links.is_cut((3, 4)));
        assert!(!links.delivers((1, 3), 0));
        links.apart.clear();
        assert!(links.delivers((1, 3), 0));
    }
}

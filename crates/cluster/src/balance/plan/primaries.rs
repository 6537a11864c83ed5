//! The primary each bucket shall have in the end: even, with few promotions.
//!
//! The present primary stays primary if it may; a node that takes a bucket from its primary inherits
//! the role. Then primaries are passed on from nodes with too many to nodes with too few: directly if
//! two share a bucket, else along a chain of nodes, each of which passes one on and gets one.
//!
//! A solution always exists: if each holder of a bucket had an equal part of it, every node would have
//! `total / copies` primaries; and if a flow exists in fractions, it exists in whole numbers, each
//! rounded up or down.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::table::{Node, Table};

/// Evens out `primary`, which names a node of `table.target` for every bucket that is not lost.
pub(super) fn even_out(table: &Table, primary: &mut [Node]) {
    let mut state = State::of(table, primary);
    state.pass_on_directly();
    while let Some(chain) = state.chain() {
        for (bucket, to) in chain {
            state.promote(bucket, to);
        }
    }
}

struct State<'a> {
    table: &'a Table,
    primary: &'a mut [Node],
    count: Vec<u32>,
    bounds: Vec<RangeInclusive<u32>>,
}

impl<'a> State<'a> {
    fn of(table: &'a Table, primary: &'a mut [Node]) -> State<'a> {
        let bounds = table.shares.iter().map(|share| share.primaries(table.copies)).collect();
        let mut count = vec![0; table.nodes()];
        for bucket in table.buckets() {
            count[usize::from(primary[bucket])] += 1;
        }
        State { table, primary, count, bounds }
    }

    fn promote(&mut self, bucket: usize, to: Node) {
        self.count[usize::from(self.primary[bucket])] -= 1;
        self.count[usize::from(to)] += 1;
        self.primary[bucket] = to;
    }

    fn has_too_many(&self, node: Node) -> bool {
        self.count[usize::from(node)] > *self.bounds[usize::from(node)].end()
    }

    fn has_too_few(&self, node: Node) -> bool {
        self.count[usize::from(node)] < *self.bounds[usize::from(node)].start()
    }

    fn may_give(&self, node: Node) -> bool {
        self.count[usize::from(node)] > *self.bounds[usize::from(node)].start()
    }

    fn may_take(&self, node: Node) -> bool {
        self.count[usize::from(node)] < *self.bounds[usize::from(node)].end()
    }

    /// Returns whether one promotion helps: one side has too many or too few, and the other side can
    /// balance it.
    fn helps(&self, from: Node, to: Node) -> bool {
        (self.has_too_many(from) && self.may_take(to))
            || (self.may_give(from) && self.has_too_few(to))
    }

    fn pass_on_directly(&mut self) {
        // Nodes below their floor come first: nodes that may go up to their ceiling only take the rest.
        for only_to_too_few in [true, false] {
            for bucket in 0..self.table.held.len() {
                if self.table.held[bucket].is_empty() {
                    continue;
                }
                let from = self.primary[bucket];
                let wanted = |to: &Node| self.has_too_few(*to) || !only_to_too_few;
                let others = self.table.target[bucket].iter().copied().filter(|to| *to != from);
                let taker = others
                    .filter(|to| wanted(to) && self.helps(from, *to))
                    .min_by_key(|to| self.count[usize::from(*to)]);
                if let Some(to) = taker {
                    self.promote(bucket, to);
                }
            }
        }
    }

    /// Returns the shortest chain of promotions that helps: each step's bucket and its new primary.
    fn chain(&self) -> Option<Vec<(usize, Node)>> {
        let nodes = 0..self.table.nodes() as Node;
        let over: Vec<Node> = nodes.clone().filter(|node| self.has_too_many(*node)).collect();
        if !over.is_empty() {
            return Some(self.search(over, |to| self.may_take(to)).expect("even primaries exist"));
        }
        let few = |to: Node| self.has_too_few(to);
        if !nodes.clone().any(few) {
            return None;
        }
        let givers: Vec<Node> = nodes.filter(|node| self.may_give(*node)).collect();
        Some(self.search(givers, few).expect("even primaries exist"))
    }

    fn search(&self, starts: Vec<Node>, ends: impl Fn(Node) -> bool) -> Option<Vec<(usize, Node)>> {
        let mut served: Vec<Vec<usize>> = vec![Vec::new(); self.table.nodes()];
        for bucket in self.table.buckets() {
            served[usize::from(self.primary[bucket])].push(bucket);
        }
        // For each node, the bucket through which the search reached it.
        let mut reached: Vec<Option<usize>> = vec![None; self.table.nodes()];
        let mut seen = vec![false; self.table.nodes()];
        starts.iter().for_each(|start| seen[usize::from(*start)] = true);
        let mut queue = VecDeque::from(starts);
        while let Some(node) = queue.pop_front() {
            for bucket in &served[usize::from(node)] {
                for to in self.table.target[*bucket].iter().copied() {
                    if std::mem::replace(&mut seen[usize::from(to)], true) {
                        continue;
                    }
                    reached[usize::from(to)] = Some(*bucket);
                    if ends(to) {
                        return Some(self.path_to(to, &reached));
                    }
                    queue.push_back(to);
                }
            }
        }
        None
    }

    fn path_to(&self, end: Node, reached: &[Option<usize>]) -> Vec<(usize, Node)> {
        let mut path = Vec::new();
        let mut to = end;
        while let Some(bucket) = reached[usize::from(to)] {
            path.push((bucket, to));
            to = self.primary[bucket];
        }
        path
    }
}

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

use super::table::{NodeNumber, PlanTable};

/// Evens out `primary`, which names a node of `table.target` for every bucket that is not lost.
pub(super) fn even_out(table: &PlanTable, primary: &mut [NodeNumber]) {
    let mut state = SweepState::of(table, primary);
    if state.is_even() {
        return;
    }
    state.pass_on_directly();
    if state.is_even() {
        return;
    }
    let mut served = state.served();
    while let Some(chain) = state.chain(&served) {
        for (bucket, to) in chain {
            served[usize::from(state.primary[bucket])].retain(|other| *other != bucket);
            served[usize::from(to)].push(bucket);
            state.promote(bucket, to);
        }
    }
}

/// The places at which a sweep may begin a new run.
#[derive(Clone, Copy)]
enum RunStart {
    Nowhere,
    /// At the edge of a run: it costs one run more.
    AtEdges,
    /// In the middle of a run: it costs two runs more.
    Anywhere,
}

/// The direction of a sweep.
#[derive(Clone, Copy)]
enum Towards {
    Higher,
    Lower,
}

struct SweepState<'a> {
    table: &'a PlanTable,
    primary: &'a mut [NodeNumber],
    count: Vec<u32>,
    bounds: Vec<RangeInclusive<u32>>,
}

impl<'a> SweepState<'a> {
    fn of(table: &'a PlanTable, primary: &'a mut [NodeNumber]) -> SweepState<'a> {
        let bounds = table.shares.iter().map(|share| share.primaries(table.copies)).collect();
        let mut count = vec![0; table.nodes()];
        for bucket in table.buckets() {
            count[usize::from(primary[bucket])] += 1;
        }
        SweepState { table, primary, count, bounds }
    }

    fn promote(&mut self, bucket: usize, to: NodeNumber) {
        self.count[usize::from(self.primary[bucket])] -= 1;
        self.count[usize::from(to)] += 1;
        self.primary[bucket] = to;
    }

    fn has_too_many(&self, node: NodeNumber) -> bool {
        self.count[usize::from(node)] > *self.bounds[usize::from(node)].end()
    }

    fn has_too_few(&self, node: NodeNumber) -> bool {
        self.count[usize::from(node)] < *self.bounds[usize::from(node)].start()
    }

    fn may_give(&self, node: NodeNumber) -> bool {
        self.count[usize::from(node)] > *self.bounds[usize::from(node)].start()
    }

    fn may_take(&self, node: NodeNumber) -> bool {
        self.count[usize::from(node)] < *self.bounds[usize::from(node)].end()
    }

    /// Returns whether one promotion helps: one side has too many or too few, and the other side can
    /// balance it.
    fn helps(&self, from: NodeNumber, to: NodeNumber) -> bool {
        (self.has_too_many(from) && self.may_take(to))
            || (self.may_give(from) && self.has_too_few(to))
    }

    /// Passes primaries on between nodes that share a bucket. Nodes below their floor come first: nodes that
    /// may go up to their ceiling only take the rest.
    fn pass_on_directly(&mut self) {
        for only_to_too_few in [true, false] {
            let mut buckets = self.open_buckets(only_to_too_few);
            for beginning in [RunStart::Nowhere, RunStart::AtEdges, RunStart::Anywhere] {
                for towards in [Towards::Higher, Towards::Lower] {
                    self.sweep(&buckets, only_to_too_few, beginning, towards);
                    buckets.reverse();
                }
            }
        }
    }

    /// Returns the buckets of which the primary may be passed on.
    fn open_buckets(&self, only_to_too_few: bool) -> Vec<usize> {
        let nodes = || 0..self.table.nodes() as NodeNumber;
        let too_many: Vec<bool> = nodes().map(|node| self.has_too_many(node)).collect();
        let too_few: Vec<bool> = nodes().map(|node| self.has_too_few(node)).collect();
        let is_open = |bucket: &usize| {
            let target = self.table.target(*bucket);
            let helps = too_many[usize::from(self.primary[*bucket])]
                || target.iter().any(|to| too_few[usize::from(*to)]);
            helps && target.iter().any(|to| self.may_pass(*bucket, *to, only_to_too_few))
        };
        self.table.buckets().filter(is_open).collect()
    }

    fn may_pass(&self, bucket: usize, to: NodeNumber, only_to_too_few: bool) -> bool {
        let from = self.primary[bucket];
        from != to && (self.has_too_few(to) || !only_to_too_few) && self.helps(from, to)
    }

    /// Passes on run by run: where the neighbour has another primary already, that one takes the bucket,
    /// too. A new run begins only where `beginning` permits it.
    fn sweep(
        &mut self,
        buckets: &[usize],
        only_to_too_few: bool,
        beginning: RunStart,
        towards: Towards,
    ) {
        for bucket in buckets.iter().copied() {
            let neighbour = match towards {
                Towards::Higher => bucket.checked_sub(1),
                Towards::Lower => Some(bucket + 1),
            };
            let neighbour = neighbour.and_then(|neighbour| self.primary.get(neighbour)).copied();
            let target = self.table.target(bucket);
            let may_take = |to: &NodeNumber| self.may_pass(bucket, *to, only_to_too_few);
            let continues = neighbour.filter(|to| target.contains(to) && may_take(to));
            let may_begin = match beginning {
                RunStart::Nowhere => false,
                RunStart::AtEdges => neighbour != Some(self.primary[bucket]),
                RunStart::Anywhere => true,
            };
            let begins = || {
                let takers = target.iter().copied().filter(|to| may_begin && may_take(to));
                takers.min_by_key(|to| self.count[usize::from(*to)])
            };
            if let Some(to) = continues.or_else(begins) {
                self.promote(bucket, to);
            }
        }
    }

    fn is_even(&self) -> bool {
        let mut nodes = 0..self.table.nodes() as NodeNumber;
        !nodes.any(|node| self.has_too_many(node) || self.has_too_few(node))
    }

    /// Returns the buckets that each node serves, those at the edges of runs first.
    fn served(&self) -> Vec<Vec<usize>> {
        let mut served: Vec<Vec<usize>> = vec![Vec::new(); self.table.nodes()];
        let primary = |bucket: usize| self.primary.get(bucket).copied();
        for edges in [true, false] {
            for bucket in self.table.buckets() {
                let here = primary(bucket);
                let before = bucket.checked_sub(1).and_then(primary);
                if (before != here || primary(bucket + 1) != here) == edges {
                    served[usize::from(self.primary[bucket])].push(bucket);
                }
            }
        }
        served
    }

    /// Returns the shortest chain of promotions that helps: each step's bucket and its new primary.
    fn chain(&self, served: &[Vec<usize>]) -> Option<Vec<(usize, NodeNumber)>> {
        let nodes = 0..self.table.nodes() as NodeNumber;
        let over: Vec<NodeNumber> = nodes.clone().filter(|node| self.has_too_many(*node)).collect();
        if !over.is_empty() {
            return Some(
                self.search(served, over, |to| self.may_take(to)).expect("even primaries exist"),
            );
        }
        let few = |to: NodeNumber| self.has_too_few(to);
        if !nodes.clone().any(few) {
            return None;
        }
        let givers: Vec<NodeNumber> = nodes.filter(|node| self.may_give(*node)).collect();
        Some(self.search(served, givers, few).expect("even primaries exist"))
    }

    fn search(
        &self,
        served: &[Vec<usize>],
        starts: Vec<NodeNumber>,
        ends: impl Fn(NodeNumber) -> bool,
    ) -> Option<Vec<(usize, NodeNumber)>> {
        // For each node, the bucket through which the search reached it.
        let mut reached: Vec<Option<usize>> = vec![None; self.table.nodes()];
        let mut seen = vec![false; self.table.nodes()];
        starts.iter().for_each(|start| seen[usize::from(*start)] = true);
        let mut queue = VecDeque::from(starts);
        while let Some(node) = queue.pop_front() {
            for bucket in &served[usize::from(node)] {
                for to in self.table.target(*bucket).iter().copied() {
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

    fn path_to(&self, end: NodeNumber, reached: &[Option<usize>]) -> Vec<(usize, NodeNumber)> {
        let mut path = Vec::new();
        let mut to = end;
        while let Some(bucket) = reached[usize::from(to)] {
            path.push((bucket, to));
            to = self.primary[bucket];
        }
        path
    }
}

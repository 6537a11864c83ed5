//! The holders each bucket shall have in the end: the exact algorithm, for tables that `target.rs`
//! could not settle.
//!
//! The problem is a minimum-cost flow. Every bucket sends `copies` units; a unit goes through its
//! bucket's part of a zone to a node, and from there to the sink. It costs 1 to use a node that does
//! not hold the bucket yet, much more to crowd a zone, and far more to leave the floor and ceiling of a
//! node's share. A flow has minimum cost exactly when its residual graph has no cycle of negative cost.
//! So the algorithm pushes a unit around such a cycle as long as there is one. The cost only falls, so
//! it terminates.

use super::table::{NodeNumber, PlanTable};

/// Cost of making one copy.
const COPY: i64 = 1;
/// Cost of one unit in a zone that has enough of its bucket: worse than any number of copies.
const CROWD: i64 = 1 << 20;
/// Cost of one unit too many or too few on a node: worse than any number of crowded zones.
const UNEVEN: i64 = 1 << 40;

/// Changes `table.target` into an optimal one.
pub(super) fn refine(table: &mut PlanTable) {
    let graph = Graph::of(table);
    while let Some(cycle) = graph.negative_cycle(table) {
        for (from, to) in cycle {
            match (graph.vertex(from), graph.vertex(to)) {
                (Vertex::Node(node), Vertex::InZone(bucket, _)) => table.remove(bucket, node),
                (Vertex::InZone(bucket, _), Vertex::Node(node)) => table.add(bucket, node),
                (
                    Vertex::Node(_) | Vertex::Sink | Vertex::Bucket(_) | Vertex::InZone(..),
                    Vertex::Node(_) | Vertex::Sink | Vertex::Bucket(_) | Vertex::InZone(..),
                ) => {}
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Vertex {
    Node(NodeNumber),
    Sink,
    Bucket(usize),
    /// The part of a bucket's units that is in one zone.
    InZone(usize, u16),
}

struct Graph {
    nodes: usize,
    /// Number of zones; 1 if zones do not matter.
    parts: usize,
    /// For each part, its nodes with weight.
    nodes_of_part: Vec<Vec<NodeNumber>>,
    vertices: usize,
}

/// Distances so far, and the vertex through which each was reached.
struct Search {
    distance: Vec<i64>,
    parent: Vec<u32>,
    changed: Vec<u32>,
    is_changed: Vec<bool>,
}

const NOBODY: u32 = u32::MAX;

impl Graph {
    fn of(table: &PlanTable) -> Graph {
        let parts = if table.zones.matter { table.zones.count } else { 1 };
        let mut nodes_of_part = vec![Vec::new(); parts];
        for node in 0..table.nodes() {
            if *table.bounds[node].end() > 0 {
                let part = if parts == 1 { 0 } else { usize::from(table.zones.of[node]) };
                nodes_of_part[part].push(node as NodeNumber);
            }
        }
        let vertices = table.nodes() + 1 + table.held.len() * (parts + 1);
        Graph { nodes: table.nodes(), parts, nodes_of_part, vertices }
    }

    fn vertex(&self, number: u32) -> Vertex {
        let number = number as usize;
        if number < self.nodes {
            return Vertex::Node(number as NodeNumber);
        }
        if number == self.nodes {
            return Vertex::Sink;
        }
        let (bucket, part) = (
            (number - self.nodes - 1) / (self.parts + 1),
            (number - self.nodes - 1) % (self.parts + 1),
        );
        if part == 0 { Vertex::Bucket(bucket) } else { Vertex::InZone(bucket, part as u16 - 1) }
    }

    fn sink(&self) -> u32 {
        self.nodes as u32
    }

    fn bucket(&self, bucket: usize) -> u32 {
        (self.nodes + 1 + bucket * (self.parts + 1)) as u32
    }

    fn in_zone(&self, bucket: usize, zone: u16) -> u32 {
        self.bucket(bucket) + 1 + u32::from(zone)
    }

    fn zone_of(&self, table: &PlanTable, node: NodeNumber) -> u16 {
        if self.parts == 1 { 0 } else { table.zones.of[usize::from(node)] }
    }

    /// Searches with Bellman-Ford from every vertex at once. A cycle among the parents is a negative
    /// one.
    fn negative_cycle(&self, table: &PlanTable) -> Option<Vec<(u32, u32)>> {
        let holdings = holdings(table);
        let mut search = Search {
            distance: vec![0; self.vertices],
            parent: vec![NOBODY; self.vertices],
            changed: (0..self.vertices as u32).collect(),
            is_changed: vec![false; self.vertices],
        };
        while !search.changed.is_empty() {
            for from in std::mem::take(&mut search.changed) {
                search.is_changed[from as usize] = false;
                self.relax(table, &holdings, from, &mut search);
            }
            if let Some(cycle) = cycle_of_parents(&search.parent) {
                return Some(cycle);
            }
        }
        None
    }

    fn relax(&self, table: &PlanTable, holdings: &[Vec<usize>], from: u32, search: &mut Search) {
        match self.vertex(from) {
            Vertex::Node(node) => {
                for bucket in &holdings[usize::from(node)] {
                    let back = if table.is_held(*bucket, node) { 0 } else { -COPY };
                    let zone = self.zone_of(table, node);
                    search.step(from, self.in_zone(*bucket, zone), back);
                }
                let (count, bounds) = load(table, node);
                let cost = i64::from(count >= *bounds.end()) - i64::from(count < *bounds.start());
                search.step(from, self.sink(), cost * UNEVEN);
            }
            Vertex::Sink => {
                for node in self.nodes_of_part.iter().flatten() {
                    let (count, bounds) = load(table, *node);
                    let cost =
                        i64::from(count <= *bounds.start()) - i64::from(count > *bounds.end());
                    if count > 0 {
                        search.step(from, u32::from(*node), cost * UNEVEN);
                    }
                }
            }
            Vertex::Bucket(bucket) if !table.held[bucket].is_empty() && self.parts > 1 => {
                for zone in 0..self.parts as u16 {
                    let crowds = table.in_zone(bucket, zone) >= table.zones.limit;
                    search.step(from, self.in_zone(bucket, zone), i64::from(crowds) * CROWD);
                }
            }
            Vertex::Bucket(_) => {}
            Vertex::InZone(bucket, zone) if !table.held[bucket].is_empty() => {
                for node in &self.nodes_of_part[usize::from(zone)] {
                    if !table.is_target(bucket, *node) {
                        let cost = if table.is_held(bucket, *node) { 0 } else { COPY };
                        search.step(from, u32::from(*node), cost);
                    }
                }
                let here = if self.parts > 1 { table.in_zone(bucket, zone) } else { 0 };
                if here > 0 {
                    let crowds = here > table.zones.limit;
                    search.step(from, self.bucket(bucket), -i64::from(crowds) * CROWD);
                }
            }
            Vertex::InZone(..) => {}
        }
    }
}

impl Search {
    fn step(&mut self, from: u32, to: u32, cost: i64) {
        let distance = self.distance[from as usize] + cost;
        if distance < self.distance[to as usize] {
            self.distance[to as usize] = distance;
            self.parent[to as usize] = from;
            if !self.is_changed[to as usize] {
                self.is_changed[to as usize] = true;
                self.changed.push(to);
            }
        }
    }
}

fn load(table: &PlanTable, node: NodeNumber) -> (u32, &std::ops::RangeInclusive<u32>) {
    (table.count[usize::from(node)], &table.bounds[usize::from(node)])
}

/// Returns, for each node, the buckets it shall hold.
fn holdings(table: &PlanTable) -> Vec<Vec<usize>> {
    let mut holdings = vec![Vec::new(); table.nodes()];
    for bucket in table.buckets() {
        for node in table.target(bucket) {
            holdings[usize::from(*node)].push(bucket);
        }
    }
    holdings
}

/// Returns the edges of a cycle in the graph of parents, in the direction of the flow.
fn cycle_of_parents(parent: &[u32]) -> Option<Vec<(u32, u32)>> {
    // The walk that visited each vertex; 0 if none has yet.
    let mut seen_by = vec![0u32; parent.len()];
    for start in 0..parent.len() as u32 {
        let walk = start + 1;
        let mut at = start;
        while at != NOBODY && seen_by[at as usize] == 0 {
            seen_by[at as usize] = walk;
            at = parent[at as usize];
        }
        if at != NOBODY && seen_by[at as usize] == walk {
            return Some(cycle_through(parent, at));
        }
    }
    None
}

fn cycle_through(parent: &[u32], start: u32) -> Vec<(u32, u32)> {
    let mut cycle = Vec::new();
    let mut at = start;
    loop {
        let before = parent[at as usize];
        cycle.push((before, at));
        at = before;
        if at == start {
            return cycle;
        }
    }
}

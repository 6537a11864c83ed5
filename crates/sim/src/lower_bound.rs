//! The fewest copies that any plan could make to balance a map, computed without the planner.
//!
//! First by counting: no plan can keep more units than fit under the totals and the wanted copies. If a known
//! plan makes no more copies than that, the bound is exact. Otherwise by a minimum cost flow, built edge by
//! edge from the definition and solved by the textbook's successive shortest paths: slow and simple, as a
//! checker should be.

use std::collections::VecDeque;

use cluster::map::{Map, NodeId};

/// Returns the fewest copies that lead from this map to a balanced one. `known` copies are known to suffice.
pub fn lower_bound(map: &Map, known: usize) -> usize {
    let problem = Problem::of(map);
    let counted = problem.by_counting();
    if counted >= known { counted } else { problem.by_flow().copies }
}

/// Returns the optimum, computed by flow alone.
pub fn by_flow(map: &Map) -> Optimum {
    Problem::of(map).by_flow()
}

/// Cost of the best plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Optimum {
    /// Surplus copies: those in a zone that already has enough copies of their bucket.
    pub crowded: usize,
    pub copies: usize,
}

/// Returns the number of surplus copies in the present map: copies in a zone that already has enough of their
/// bucket.
pub fn crowded_units(map: &Map) -> usize {
    let problem = Problem::of(map);
    let here =
        |held: &[usize], zone| held.iter().filter(|at| problem.nodes[**at].zone == zone).count();
    let over = |held, zone| here(held, zone).saturating_sub(problem.zone_limit());
    problem
        .holders
        .iter()
        .map(|held| (0..problem.zones).map(|zone| over(held, zone)).sum::<usize>())
        .sum()
}

/// Holders and limits of all nodes, in plain numbers.
struct Problem {
    nodes: Vec<NodeInfo>,
    /// For each bucket that is not lost, the indices in `nodes` of its holders with a weight above 0.
    holders: Vec<Vec<usize>>,
    copies: usize,
    zones: usize,
}

struct NodeInfo {
    zone: usize,
    floor: usize,
    ceiling: usize,
}

impl Problem {
    fn of(map: &Map) -> Problem {
        let members: Vec<_> = map.members().iter().filter(|member| member.weight > 0).collect();
        let copies = members.len().min(1 + usize::from(map.settings().backups));
        let place = |node: &NodeId| members.iter().position(|member| member.id == *node);
        let holders: Vec<Vec<usize>> = map
            .buckets()
            .filter(|bucket| !bucket.holders.is_empty())
            .map(|bucket| bucket.holders.iter().filter_map(place).collect())
            .collect();
        let mut zones: Vec<_> = members.iter().map(|member| &member.zone).collect();
        zones.sort();
        zones.dedup();
        let weights: Vec<u64> = members.iter().map(|member| u64::from(member.weight)).collect();
        let shares = fair_shares(&weights, holders.len() as u64, copies as u64);
        let node = |place: usize| NodeInfo {
            zone: zones.iter().position(|zone| **zone == members[place].zone).unwrap_or(0),
            floor: (shares[place].0 / shares[place].1) as usize,
            ceiling: shares[place].0.div_ceil(shares[place].1) as usize,
        };
        let nodes = (0..members.len()).map(node).collect();
        Problem { nodes, holders, copies, zones: zones.len() }
    }

    fn zone_limit(&self) -> usize {
        if self.zones > 1 && self.copies > 1 {
            self.copies.div_ceil(self.zones)
        } else {
            self.copies
        }
    }

    fn by_counting(&self) -> usize {
        let units = self.holders.len() * self.copies;
        // A bucket keeps at most the wanted number of copies.
        let by_bucket: usize = self.holders.iter().map(|held| held.len().min(self.copies)).sum();
        // A node keeps at most its ceiling, and only `units - floors` nodes can be above their floor.
        let mut held = vec![0; self.nodes.len()];
        self.holders.iter().flatten().for_each(|node| held[*node] += 1);
        let floors: usize = self.nodes.iter().map(|node| node.floor).sum();
        let above = |place: usize| held[place] > self.nodes[place].floor && self.has_rest(place);
        let places = || 0..self.nodes.len();
        let extra = places().filter(|place| above(*place)).count().min(units - floors);
        let to_floor: usize = places().map(|place| held[place].min(self.nodes[place].floor)).sum();
        units - by_bucket.min(to_floor + extra)
    }

    fn has_rest(&self, place: usize) -> bool {
        self.nodes[place].ceiling > self.nodes[place].floor
    }

    fn by_flow(&self) -> Optimum {
        // `CROWD` exceeds the cost of all copies together, and `UNEVEN` that of all crowding.
        const CROWD: i64 = 1 << 20;
        const UNEVEN: i64 = 1 << 40;
        let (source, sink, first_node) = (0, 1, 2);
        let first_bucket = first_node + self.nodes.len();
        let parts = self.zones.max(1);
        let mut flow = Flow::new(first_bucket + self.holders.len() * (1 + parts));
        for (place, node) in self.nodes.iter().enumerate() {
            flow.edge(first_node + place, sink, node.floor, 0);
            flow.edge(first_node + place, sink, node.ceiling - node.floor, UNEVEN);
        }
        for (bucket, holders) in self.holders.iter().enumerate() {
            let vertex = first_bucket + bucket * (1 + parts);
            flow.edge(source, vertex, self.copies, 0);
            for zone in 0..parts {
                let limit = self.zone_limit();
                flow.edge(vertex, vertex + 1 + zone, limit, 0);
                flow.edge(vertex, vertex + 1 + zone, self.copies.saturating_sub(limit), CROWD);
            }
            for (place, node) in self.nodes.iter().enumerate() {
                let cost = i64::from(!holders.contains(&place));
                flow.edge(vertex + 1 + node.zone, first_node + place, 1, cost);
            }
        }
        let cost = flow.cheapest(source, sink, self.holders.len() * self.copies);
        let count = |cost: i64| usize::try_from(cost).expect("costs are not negative");
        Optimum { crowded: count(cost % UNEVEN / CROWD), copies: count(cost % CROWD) }
    }
}

/// Returns shares as fractions: by weight, but at most one copy of each bucket for a node.
fn fair_shares(weights: &[u64], buckets: u64, copies: u64) -> Vec<(u64, u64)> {
    let mut full = vec![false; weights.len()];
    loop {
        let open = |place: &usize| !full[*place];
        let weight: u64 = (0..weights.len()).filter(open).map(|place| weights[place]).sum();
        let left = buckets * (copies - full.iter().filter(|full| **full).count() as u64);
        let too_heavy =
            (0..weights.len()).filter(open).find(|at| left * weights[*at] > buckets * weight);
        match too_heavy {
            Some(place) => full[place] = true,
            None => {
                let share =
                    |at: usize| if full[at] { (buckets, 1) } else { (left * weights[at], weight) };
                return (0..weights.len()).map(share).collect();
            }
        }
    }
}

struct Flow {
    edges: Vec<Edge>,
    /// For each vertex, the edges that leave it. An edge and its reverse are neighbours in `edges`.
    leaving: Vec<Vec<usize>>,
}

struct Edge {
    to: usize,
    room: usize,
    cost: i64,
}

impl Flow {
    fn new(vertices: usize) -> Flow {
        Flow { edges: Vec::new(), leaving: vec![Vec::new(); vertices] }
    }

    fn edge(&mut self, from: usize, to: usize, room: usize, cost: i64) {
        self.leaving[from].push(self.edges.len());
        self.edges.push(Edge { to, room, cost });
        self.leaving[to].push(self.edges.len());
        self.edges.push(Edge { to: from, room: 0, cost: -cost });
    }

    /// Returns the least cost of moving `units` from one vertex to another.
    fn cheapest(&mut self, source: usize, sink: usize, units: usize) -> i64 {
        let mut total = 0;
        for _ in 0..units {
            let (cost, through) = self.shortest_path(source, sink);
            total += cost;
            let mut at = sink;
            while at != source {
                let edge = through[at];
                self.edges[edge].room -= 1;
                self.edges[edge ^ 1].room += 1;
                at = self.edges[edge ^ 1].to;
            }
        }
        total
    }

    fn shortest_path(&self, source: usize, sink: usize) -> (i64, Vec<usize>) {
        let mut distance = vec![i64::MAX; self.leaving.len()];
        let mut through = vec![usize::MAX; self.leaving.len()];
        let mut queued = vec![false; self.leaving.len()];
        let mut queue = VecDeque::from([source]);
        distance[source] = 0;
        while let Some(at) = queue.pop_front() {
            queued[at] = false;
            for number in &self.leaving[at] {
                let edge = &self.edges[*number];
                let reached = distance[at] + edge.cost;
                if edge.room > 0 && reached < distance[edge.to] {
                    distance[edge.to] = reached;
                    through[edge.to] = *number;
                    if !std::mem::replace(&mut queued[edge.to], true) {
                        queue.push_back(edge.to);
                    }
                }
            }
        }
        assert!(distance[sink] < i64::MAX, "there is room for every copy somewhere");
        (distance[sink], through)
    }
}

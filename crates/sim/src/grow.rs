//! A cluster that grows and shrinks, step by step, and the cost of each step.
//!
//! Called by `opencluster sim grow` and by the tests. Pictures of it: `picture.rs`, `svg.rs`.

use std::time::Duration;

use cluster::Moment;
use cluster::map::{Boot, ClusterSettings, Endpoints, Map, Member, NodeId, Zone};
use placement::Mask;

use crate::lower_bound::lower_bound;
use crate::{Moved, Weather, World};

/// An event from outside the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    Start(String),
    Join(String),
    Leave(String),
}

/// A cluster, and the steps that led to it.
pub struct Growth {
    world: World,
    steps: Vec<Step>,
    next_id: u64,
}

/// One event, and the result of the balancing after it.
pub struct Step {
    pub event: Event,
    /// The map at rest.
    pub map: Map,
    pub moved: Moved,
    /// The fewest copies that any plan could have made.
    pub lower_bound: usize,
    /// Time of the event, and the time from there until everything was at rest.
    pub began: Moment,
    pub took: Duration,
}

/// A node that joins.
#[derive(Clone, Debug)]
pub struct Newcomer {
    pub weight: u32,
    pub zone: Zone,
}

impl Default for Newcomer {
    fn default() -> Newcomer {
        Newcomer { weight: 1, zone: Zone::default() }
    }
}

impl Newcomer {
    fn member(self, id: u64) -> Member {
        let Newcomer { weight, zone } = self;
        Member {
            id: NodeId(id),
            boot: Boot(1),
            name: name(id),
            weight,
            zone,
            at: Endpoints::default(),
        }
    }
}

/// A, B, ... Z, AA, AB, ...
pub fn name(mut id: u64) -> String {
    let mut letters = Vec::new();
    while id > 0 {
        id -= 1;
        letters.push(char::from(b'A' + (id % 26) as u8));
        id /= 26;
    }
    letters.iter().rev().collect()
}

impl Growth {
    pub fn start(
        seed: u64,
        weather: Weather,
        first: Newcomer,
        mask: Mask,
        settings: ClusterSettings,
    ) -> Growth {
        let founder = first.member(1);
        let event = Event::Start(founder.name.clone());
        let map = Map::found(founder, mask, settings);
        let world = World::new(seed, weather, map.clone());
        let step = Step {
            event,
            map,
            moved: Moved::default(),
            lower_bound: 0,
            began: Moment::START,
            took: Duration::ZERO,
        };
        Growth { world, steps: vec![step], next_id: 2 }
    }

    pub fn world(&mut self) -> &mut World {
        &mut self.world
    }

    pub fn map(&self) -> &Map {
        self.world.map()
    }

    /// Returns all steps so far; the first is the start.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Adds a node and runs until everything is at rest.
    pub fn join(&mut self, newcomer: Newcomer) -> &Step {
        let began = self.world.now();
        self.world.take_moved();
        let name = self.let_in(newcomer);
        self.settle(Event::Join(name), began)
    }

    /// Adds a node, whatever else is in progress. Returns its name.
    pub fn let_in(&mut self, newcomer: Newcomer) -> String {
        let member = newcomer.member(self.next_id);
        self.next_id += 1;
        let name = member.name.clone();
        self.world.join(member);
        name
    }

    /// Makes a node leave and runs until it is gone and everything is at rest.
    pub fn leave(&mut self, node: NodeId) -> &Step {
        let event = Event::Leave(self.map().member(node).expect("a member leaves").name.clone());
        let began = self.world.now();
        self.world.take_moved();
        self.world.leave(node);
        // The cost is fixed once the plan no longer includes the node.
        while self.map().member(node).is_some_and(|member| member.weight > 0) {
            assert!(self.world.step());
        }
        let bound = self.lower_bound();
        while self.map().member(node).is_some() {
            assert!(self.world.step(), "a node that wants to leave goes on trying");
        }
        self.settle_from(event, began, bound)
    }

    fn lower_bound(&self) -> usize {
        lower_bound(self.world.map(), self.world.copies_planned())
    }

    fn settle(&mut self, event: Event, began: Moment) -> &Step {
        let bound = self.lower_bound();
        self.settle_from(event, began, bound)
    }

    fn settle_from(&mut self, event: Event, began: Moment, lower_bound: usize) -> &Step {
        self.world.run_to_rest();
        let (map, moved) = (self.world.map().clone(), self.world.take_moved());
        let took = self.world.now().since(began);
        self.steps.push(Step { event, map, moved, lower_bound, began, took });
        self.steps.last().expect("pushed just now")
    }
}

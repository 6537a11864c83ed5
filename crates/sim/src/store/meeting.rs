//! A split brain scenario: a cluster of two is partitioned, one or both sides go on alone because clients ask
//! them, one may grow; then they can reach each other, and merge. The result is judged key by key against a
//! record of what each side acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster::control::Input;
use cluster::data::Plane;
use cluster::map::{ClusterSettings, Generation, NodeId};
use placement::Slot;
use sim_engine::Quality;
use store::Version;

use super::Sabotage;
use super::clients::{Request, Told, text_of};
use super::clock::Clock;
use super::linear::{Answer, Op};
use super::run::is_at_rest;
use super::world::{World, ms, tell};
use crate::Rng;

const KEYS: [&str; 12] =
    ["a", "b{1}", "c{1}", "d", "e", "f", "g{1}", "h", "i{2}", "j{2}", "k", "l"];
/// Maximum time until the sides are one after they can reach each other.
const ONE_WITHIN: Duration = Duration::from_secs(120);

/// Result of a scenario.
#[derive(Clone, Copy, Default, Debug)]
pub struct Reunion {
    pub taken: u64,
    pub conflicts: u64,
    /// Number of sides that went on.
    pub sides: usize,
}

/// The value of a key as one side has left it; unknown without a definite answer.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Left {
    As(Option<String>),
    Unknown,
}

struct Story {
    world: World,
    rng: Rng,
    numbers: u64,
    before: BTreeMap<&'static str, Option<String>>,
    /// The changes on each side, by the node that the side began with.
    sides: BTreeMap<NodeId, BTreeMap<&'static str, Left>>,
}

/// Runs one scenario from a seed. An error says what was wrong with its result.
pub fn meet(seed: u64, sabotage: Option<Sabotage>, tells: bool) -> Result<Reunion, String> {
    let _broken = Sabotage::begin(sabotage);
    let mut story = Story::begin(seed, sabotage, tells)?;
    story.part()?;
    story.live_apart()?;
    let versions = story.versions();
    story.come_together()?;
    story.judge(&versions)
}

impl Story {
    fn begin(seed: u64, sabotage: Option<Sabotage>, tells: bool) -> Result<Story, String> {
        let mut rng = Rng::new(seed ^ 0x0002_51DE_5EED);
        let quality = Quality {
            delay_us: (100, 500 + rng.below(5_000)),
            lost: 0,
            doubled: rng.below(20),
            broken: 0,
        };
        let mut world = World::new(seed, quality, 0);
        (world.sabotage, world.tells, world.heard) = (sabotage, tells, Some(Vec::new()));
        let lost_after = Some(ms(3_000));
        let settings = ClusterSettings { min_buckets: 1, lost_after, ..ClusterSettings::default() };
        let (first, second) = (clock(&mut rng), clock(&mut rng));
        world.found(settings, first);
        world.join(2, second);
        let (numbers, before, sides) = Default::default();
        let mut story = Story { world, rng, numbers, before, sides };
        // Sometimes the partition begins before the second node has a copy of everything.
        let is_early = story.rng.below(4) == 0;
        story.wait("they are even", ms(60_000), |story| {
            is_at_rest(&story.world) || is_early && story.both_vote_and_hold()
        })?;
        for key in KEYS {
            if story.rng.below(3) > 0 {
                let value = format!("{key} before");
                story.run_op(key, NodeId(1), &Op::Set(value.clone()))?;
                story.before.insert(key, Some(value));
            }
        }
        Ok(story)
    }

    /// Returns whether both nodes are voters, and both hold something.
    fn both_vote_and_hold(&self) -> bool {
        let is_there = |node: &super::node::Node| {
            let holds = |map: &cluster::map::Map| map.load(node.me.id).total() > 0;
            node.control.configuration().voters.len() == 2
                && node.map().is_some_and(|map| holds(&map))
        };
        self.world.nodes.len() == 2 && self.world.nodes.values().all(is_there)
    }

    fn part(&mut self) -> Result<(), String> {
        self.world.network.cut.extend([(NodeId(1), NodeId(2)), (NodeId(2), NodeId(1))]);
        tell!(self.world, "-- the two are cut apart");
        let both = self.rng.below(3) > 0;
        let first = NodeId(1 + self.rng.below(2));
        let second = NodeId(3 - first.0);
        for node in [first, second].into_iter().take(1 + usize::from(both)) {
            self.wait("a side goes on alone", ms(20_000), |story| {
                story.world.give(node, Input::ClientDemand);
                story.world.nodes[&node].map().is_some_and(|map| map.members().len() == 1)
            })?;
            self.sides.insert(node, BTreeMap::new());
        }
        if self.rng.below(3) == 0 {
            self.grow(first)?;
        }
        Ok(())
    }

    /// Adds a third node to this side; the other side cannot reach it.
    fn grow(&mut self, side: NodeId) -> Result<(), String> {
        let other = NodeId(3 - side.0);
        let third = NodeId(3);
        self.world.network.cut.extend([(third, other), (other, third)]);
        let clock = clock(&mut self.rng);
        tell!(self.world, "-- 3 joins {side}");
        self.world.join_through(side, 3, clock);
        self.wait("a side grows", ms(60_000), |story| {
            let node = story.world.nodes.get(&third);
            let full = |map: &cluster::map::Map| map.buckets().all(|it| it.holders.len() == 2);
            node.and_then(|node| node.map()).is_some_and(|map| full(&map))
        })
    }

    /// Writes to the sides that went on.
    fn live_apart(&mut self) -> Result<(), String> {
        let sides: Vec<NodeId> = self.sides.keys().copied().collect();
        for step in 0..6 + self.rng.below(30) {
            let side = *self.rng.choose(&sides).expect("one goes on");
            let key = *self.rng.choose(&KEYS).expect("there are keys");
            let known = self.sides[&side].get(key).cloned();
            let now = known.unwrap_or_else(|| Left::As(self.before.get(key).cloned().flatten()));
            let op = match self.rng.below(4) {
                0 if now != Left::As(None) => Op::Del,
                _ => Op::Set(format!("{key} {step} by {side}")),
            };
            let left = match &op {
                Op::Set(value) => Left::As(Some(value.clone())),
                Op::Del | Op::Get | Op::Append(_) | Op::Incr | Op::Lend(_) => Left::As(None),
            };
            let left = match self.run_op(key, side, &op)? {
                // The key was not there: its bucket was recreated without it.
                Some(Answer::Count(0)) => continue,
                Some(Answer::Count(_) | Answer::Done | Answer::Value(_) | Answer::Granted(_)) => {
                    left
                }
                None => Left::Unknown,
            };
            self.sides.get_mut(&side).expect("chosen from the sides").insert(key, left);
            let pause = ms(self.rng.below(200));
            self.world.run_until(self.world.now + pause);
        }
        Ok(())
    }

    /// Returns the version of each key that a side has changed: of the item, or of its tombstone.
    fn versions(&self) -> BTreeMap<(NodeId, &'static str), Version> {
        let mut versions = BTreeMap::new();
        for (side, changed) in &self.sides {
            for key in changed.keys().copied() {
                let slot = Slot::of(key.as_bytes());
                let holder = self.server_of(self.world.nodes[side].control.generation(), slot);
                let Some(holder) = holder else { continue };
                let plane = &self.world.nodes[&holder].plane;
                let version = plane.with_slot(slot, |state| {
                    let found = state.table().peek(&plane.key(key));
                    let tombstone = || {
                        state
                            .table()
                            .divergence()
                            .and_then(|it| it.tombstone(&plane.key(key).name()))
                    };
                    found.map(|it| it.item.version()).or_else(|| tombstone().map(|it| it.version))
                });
                versions.extend(version.map(|version| ((*side, key), version)));
            }
        }
        versions
    }

    fn server_of(&self, generation: Option<Generation>, slot: Slot) -> Option<NodeId> {
        let is_of = |node: &&super::node::Node| {
            let theirs = node.control.generation();
            theirs.zip(generation).is_some_and(|(theirs, mine)| theirs.is_one_with(mine))
                && node.plane.with_slot(slot, |state| state.replica().is_serving())
        };
        self.world.nodes.values().find(is_of).map(|node| node.me.id)
    }

    fn come_together(&mut self) -> Result<(), String> {
        tell!(self.world, "-- they can reach each other");
        let cut = core::mem::take(&mut self.world.network.cut);
        let all: BTreeSet<u64> = self.world.nodes.keys().map(|node| node.0).collect();
        // Sometimes they lose each other again during the merge.
        let mut again = (self.rng.below(3) == 0).then(|| self.world.now + ms(self.rng.below(800)));
        let mut healed_at = None;
        self.wait("they become one", ONE_WITHIN, |story| {
            if again.take_if(|at| *at <= story.world.now).is_some() {
                story.world.network.cut.clone_from(&cut);
                healed_at = Some(story.world.now + ms(1_500));
            }
            if healed_at.take_if(|at| *at <= story.world.now).is_some() {
                story.world.network.cut.clear();
            }
            story.world.meet_partitioned();
            // A process that was declared dead comes back by itself, with its log and its vote.
            let mut gone = core::mem::take(&mut story.world.gone);
            let World { returning, nodes, .. } = &story.world;
            gone.retain(|id| !returning.contains_key(id) && !nodes.contains_key(id));
            for id in gone {
                let clock = clock(&mut story.rng);
                story.world.join(id.0, clock);
            }
            let there = story.world.nodes.keys().map(|node| node.0);
            story.world.network.cut.is_empty()
                && there.eq(all.iter().copied())
                && is_at_rest(&story.world)
        })
    }

    /// Checks the result: a key that only one side has changed is as that side left it; of a key that both
    /// have changed the later value wins, and the conflict is reported; every other key is as it was before.
    fn judge(&mut self, versions: &BTreeMap<(NodeId, &str), Version>) -> Result<Reunion, String> {
        let ledgers = self.world.nodes.values().map(|node| &node.merging.ledger);
        let mut reunion = Reunion { sides: self.sides.len(), ..Reunion::default() };
        let mut reported: BTreeSet<Vec<u8>> = BTreeSet::new();
        for ledger in ledgers {
            reunion.taken += ledger.tally.taken;
            reunion.conflicts += ledger.tally.conflicts();
            reported.extend(ledger.conflicts().map(|conflict| conflict.key.clone()));
        }
        for key in KEYS {
            let now = self.value(key)?;
            let touched: Vec<(NodeId, Left)> = self
                .sides
                .iter()
                .filter_map(|(side, changed)| Some((*side, changed.get(key)?.clone())))
                .collect();
            if touched.iter().any(|(_, left)| *left == Left::Unknown) {
                continue;
            }
            let later = touched.iter().max_by_key(|(side, _)| versions.get(&(*side, key)));
            let expected = match later {
                Some((_, Left::As(value))) => value.clone(),
                Some((_, Left::Unknown)) | None => self.before.get(key).cloned().flatten(),
            };
            // On equal versions the surviving side wins; the story does not know which one that is.
            let version_of = |side: &NodeId| versions.get(&(*side, key));
            let is_tied =
                touched.len() == 2 && version_of(&touched[0].0) == version_of(&touched[1].0);
            let is_either = touched.iter().any(|(_, left)| *left == Left::As(now.clone()));
            if now != expected && !(is_tied && is_either) {
                return Err(format!(
                    "{key} is {now:?}, not {expected:?}: {touched:?} {versions:?}"
                ));
            }
            let differ = touched.len() == 2 && touched[0].1 != touched[1].1;
            if differ && !reported.contains(key.as_bytes()) {
                return Err(format!("nobody reports that both sides changed {key}: {touched:?}"));
            }
        }
        Ok(reunion)
    }

    fn value(&self, key: &str) -> Result<Option<String>, String> {
        let slot = Slot::of(key.as_bytes());
        let map = self.world.map().ok_or("there is no map")?;
        let primary = map.bucket_of(slot).primary().ok_or(format!("nobody holds {key}"))?;
        let plane = &self.world.nodes[&primary].plane;
        Ok(plane.with_slot(slot, |state| {
            let found = state.table().peek(&plane.key(key));
            let text = found.and_then(|it| text_of(&it));
            text.map(|text| String::from_utf8_lossy(&text).into_owned())
        }))
    }

    fn wait(
        &mut self,
        claim: &str,
        limit: Duration,
        mut holds: impl FnMut(&mut Story) -> bool,
    ) -> Result<(), String> {
        let end = self.world.now + limit;
        while !holds(self) {
            if let Some(broken) = &self.world.broken {
                return Err(broken.clone());
            }
            if self.world.now >= end {
                return Err(format!(
                    "not within {limit:?}: {claim}\n{}",
                    super::run::picture(&self.world)
                ));
            }
            self.world.run_until(self.world.now + ms(100));
        }
        Ok(())
    }

    /// Runs an operation on this side. Returns `None` if it is unknown whether it ran.
    fn run_op(
        &mut self,
        key: &'static str,
        side: NodeId,
        op: &Op,
    ) -> Result<Option<Answer>, String> {
        let mut at = side;
        for _ in 0..600 {
            self.numbers += 1;
            let number = self.numbers;
            let request = Request::one(0, number, key, op.clone());
            self.world.heard = Some(Vec::new());
            self.world.request(at, request);
            let mut told = None;
            for _ in 0..600 {
                self.world.run_until(self.world.now + ms(5));
                let heard = self.world.heard.iter().flatten().find(|it| it.0 == number);
                told = heard.map(|(_, told)| told.clone());
                if told.is_some() {
                    break;
                }
            }
            match told {
                Some(Told::Answer(answers)) => return Ok(answers.into_iter().next()),
                Some(Told::Moved(node)) => at = node,
                Some(Told::NotNow | Told::NotDone | Told::Aborted) => {
                    self.world.run_until(self.world.now + ms(20));
                }
                Some(Told::Closed) | None => return Ok(None),
            }
        }
        Err(format!("nobody serves {key} on the side of {side}"))
    }
}

fn clock(rng: &mut Rng) -> Clock {
    let wall_off = i64::try_from(rng.below(1_000)).unwrap_or(0) - 500;
    Clock { rate: 950 + rng.below(101), wall_off }
}

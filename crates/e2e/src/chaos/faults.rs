//! Faults: their kinds, the choice of one that is allowed now, and the code that injects it. Faults
//! are drawn from a seed. The interleaving of nodes and clients is not, so a seed repeats the
//! faults but not the run.
//!
//! No fault takes more from the cluster than it promises to tolerate (docs/failures.md).
//! Overlapping faults stop nodes or cut them off, and these nodes come back with all their data; a
//! kill overlaps only with a stop that begins at the same moment.
use std::fmt;
use std::io;
use std::thread;
use std::time::Duration;

use super::field::Field;
use super::ground::{Ground, Node};
use super::relay::{Way, Weather};
use crate::Rng;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// kill -9.
    Kill,
    /// kill -9, and an immediate restart.
    Restart,
    /// SIGSTOP, and SIGCONT after a while.
    Stop,
    /// The node's network cable is unplugged for a while.
    Cut,
    /// Like `Cut`, for 1.3 to 3 s: about as long as it takes to declare the node dead.
    BriefCut,
    /// Everything the node sends is lost for a while; everything sent to it arrives.
    Mute,
    /// Everything sent to the node is lost for a while; everything it sends arrives.
    Deaf,
    /// The node and another cannot reach each other for a while; all others reach both.
    Part,
    /// All traffic of the node is delayed for a while, and some of it is lost.
    Slow,
    /// All connections of the node are closed once.
    Break,
    /// The node leaves gracefully.
    Leave,
    /// A node is added.
    Join,
    /// All holders of a bucket are stopped at the same time.
    StopHolders,
    /// A node is stopped while another one is stopped.
    TwoStops,
    /// A node is cut off while another one is stopped.
    StopAndCut,
    /// A node is cut off while another one is cut off.
    TwoCuts,
    /// A node is killed at the moment another one is stopped. Not later: the killed node could then
    /// have acknowledged writes alone, which would be lost with it.
    StopAndKill,
}

impl Kind {
    const ALL: [Kind; 17] = [
        Kind::Kill,
        Kind::Restart,
        Kind::Stop,
        Kind::Cut,
        Kind::BriefCut,
        Kind::Mute,
        Kind::Deaf,
        Kind::Part,
        Kind::Slow,
        Kind::Break,
        Kind::Leave,
        Kind::Join,
        Kind::StopHolders,
        Kind::TwoStops,
        Kind::StopAndCut,
        Kind::TwoCuts,
        Kind::StopAndKill,
    ];

    /// Returns whether the fault can be injected on these nodes. Not every ground supports every fault.
    fn fits(self, ground: Ground, node: &Node, other: &Node) -> bool {
        let is_in_namespace = ground == Ground::Namespaces;
        match self {
            Kind::Kill | Kind::Restart | Kind::Stop | Kind::Leave | Kind::Join => true,
            Kind::StopHolders | Kind::TwoStops | Kind::StopAndKill => true,
            Kind::Cut | Kind::BriefCut | Kind::Mute | Kind::Deaf => node.can_be_cut(),
            Kind::StopAndCut => other.can_be_cut(),
            Kind::TwoCuts => node.can_be_cut() && other.can_be_cut(),
            Kind::Part => is_in_namespace && !node.is_relayed() && !other.is_relayed(),
            Kind::Slow | Kind::Break => node.is_relayed(),
        }
    }

    /// Returns whether links are closed or slow during the fault.
    pub fn disturbs_network(self) -> bool {
        match self {
            Kind::Cut | Kind::BriefCut | Kind::Mute | Kind::Deaf | Kind::Part | Kind::Slow => true,
            Kind::StopAndCut | Kind::TwoCuts => true,
            Kind::Kill | Kind::Restart | Kind::Stop | Kind::Break | Kind::Leave => false,
            Kind::Join | Kind::StopHolders | Kind::TwoStops | Kind::StopAndKill => false,
        }
    }
}

/// A fault to inject, with the nodes it hits and its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: Kind,
    pub victim: usize,
    /// The second node, for kinds that hit two.
    other: usize,
    pub lasts: Duration,
    /// Time from the beginning of the first disruption to that of the second.
    lag: Duration,
    /// Duration of the second disruption.
    other_lasts: Duration,
}

/// Limits for the number of nodes, and for the time a node may be out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    pub nodes_min: usize,
    pub nodes_max: usize,
    pub lasts_max: Duration,
}

impl Fault {
    /// Draws a fault that this cluster, which is whole, can tolerate.
    pub fn draw(field: &Field, bounds: Bounds, rng: &mut Rng) -> Fault {
        let count = field.nodes.len();
        let victim = rng.index(count);
        let other = (victim + 1 + rng.index(count.max(2) - 1)) % count;
        let long = Duration::from_millis(200 + rng.below(bounds.lasts_max.as_millis() as u64));
        let (brief, other_brief) = (between(1_300, 3_000, rng), between(1_300, 5_000, rng));
        let (lag, chance) =
            (brief * u32::try_from(rng.below(90)).expect("small") / 100, rng.draw());
        let (node, second) = (&field.nodes[victim], &field.nodes[other]);
        let may = |kind: &Kind| {
            let has_all = count >= bounds.nodes_min && kind.fits(field.ground(), node, second);
            if *kind == Kind::Join { count < bounds.nodes_max } else { has_all }
        };
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(may).collect();
        let kind = kinds[rng.index(kinds.len())];
        let holders = (kind == Kind::StopHolders).then(|| two_holders(field, chance)).flatten();
        let (victim, other) = holders.unwrap_or((victim, other));
        let lasts = match kind {
            Kind::BriefCut | Kind::TwoStops | Kind::StopAndCut | Kind::TwoCuts => brief,
            Kind::StopHolders | Kind::StopAndKill => other_brief,
            Kind::Kill | Kind::Restart | Kind::Stop | Kind::Cut | Kind::Mute | Kind::Deaf => long,
            Kind::Part | Kind::Slow | Kind::Break | Kind::Leave | Kind::Join => long,
        };
        Fault { kind, victim, other, lasts, lag, other_lasts: other_brief }
    }

    /// Describes the fault with the names of its nodes.
    pub fn describe(&self, field: &Field) -> String {
        let lasts = format!("{:.1} s", self.lasts.as_secs_f64());
        let name = field.nodes[self.victim].name();
        let other = field.nodes[self.other].name();
        let second = format!(
            "after {:.1} s for {:.1} s",
            self.lag.as_secs_f64(),
            self.other_lasts.as_secs_f64()
        );
        match self.kind {
            Kind::Kill => format!("{name} is killed"),
            Kind::Restart => format!("{name} is killed and started again"),
            Kind::Stop => format!("{name} is stopped for {lasts}"),
            Kind::Cut | Kind::BriefCut => format!("{name} is cut off for {lasts}"),
            Kind::Mute => format!("everything {name} sends is lost for {lasts}"),
            Kind::Deaf => format!("everything sent to {name} is lost for {lasts}"),
            Kind::Part => format!("{name} and {other} do not reach each other for {lasts}"),
            Kind::Slow => format!("{name} is slow to reach for {lasts}"),
            Kind::Break => format!("{name}'s connections are closed"),
            Kind::Leave => format!("{name} leaves"),
            Kind::Join => "a node joins".to_owned(),
            Kind::StopHolders => {
                format!("{name} and {other}, holders of a bucket, are stopped for {lasts}")
            }
            Kind::TwoStops => format!("{name} is stopped for {lasts}, {other} {second}"),
            Kind::StopAndCut => {
                format!("{name} is stopped for {lasts}, {other} is cut off {second}")
            }
            Kind::TwoCuts => format!("{name} is cut off for {lasts}, {other} {second}"),
            Kind::StopAndKill => format!("{name} is stopped for {lasts} as {other} is killed"),
        }
    }

    /// Injects the fault, and ends it. Afterwards the cluster is on its way to become whole.
    pub fn strike(&self, field: &mut Field) -> io::Result<()> {
        match self.kind {
            Kind::Kill => drop(field.take(self.victim).kill()),
            Kind::Restart => {
                let (plan, dir) = field.take(self.victim).kill();
                field.start(plan, dir)?;
            }
            Kind::Stop => self.last(field, Disruption::Stop)?,
            Kind::Cut | Kind::BriefCut => self.last(field, Disruption::Cut)?,
            Kind::Mute | Kind::Deaf | Kind::Part | Kind::Slow => {
                self.disturb(field)?;
                thread::sleep(self.lasts);
                heal(field)?;
            }
            Kind::Break => field.nodes[self.victim].break_connections(),
            Kind::Leave => field.take(self.victim).leave()?,
            Kind::Join => field.join()?,
            Kind::StopHolders => {
                Fault { lag: Duration::ZERO, other_lasts: self.lasts, ..*self }
                    .overlap(field, [Disruption::Stop; 2])?;
            }
            Kind::TwoStops => self.overlap(field, [Disruption::Stop; 2])?,
            Kind::StopAndCut => self.overlap(field, [Disruption::Stop, Disruption::Cut])?,
            Kind::TwoCuts => self.overlap(field, [Disruption::Cut; 2])?,
            Kind::StopAndKill => self.stop_and_kill(field)?,
        }
        Ok(())
    }

    /// Disrupts the victim alone.
    fn last(&self, field: &Field, disruption: Disruption) -> io::Result<()> {
        disruption.begin(field, self.victim)?;
        thread::sleep(self.lasts);
        disruption.end(field, self.victim)
    }

    /// Disrupts the victim, and the other node before the victim is back.
    fn overlap(&self, field: &Field, [first, second]: [Disruption; 2]) -> io::Result<()> {
        first.begin(field, self.victim)?;
        thread::sleep(self.lag);
        second.begin(field, self.other)?;
        let first_remaining = self.lasts.saturating_sub(self.lag);
        thread::sleep(first_remaining.min(self.other_lasts));
        if first_remaining <= self.other_lasts {
            first.end(field, self.victim)?;
            thread::sleep(self.other_lasts - first_remaining);
            second.end(field, self.other)
        } else {
            second.end(field, self.other)?;
            thread::sleep(first_remaining - self.other_lasts);
            first.end(field, self.victim)
        }
    }

    fn stop_and_kill(&self, field: &mut Field) -> io::Result<()> {
        let name = field.nodes[self.victim].name();
        field.nodes[self.victim].stop()?;
        field.take(self.other).kill();
        thread::sleep(self.lasts);
        field.position(&name).map_or(Ok(()), |victim| field.nodes[victim].go_on())
    }

    fn disturb(&self, field: &Field) -> io::Result<()> {
        let (victim, others) = (&field.nodes[self.victim], field.others(self.victim));
        let (closed, clear) = (Way::Closed, Way::Clear);
        match self.kind {
            Kind::Mute if victim.is_relayed() => {
                victim.weather(Weather { to_node: clear, from_node: closed });
            }
            Kind::Deaf if victim.is_relayed() => {
                victim.weather(Weather { to_node: closed, from_node: clear });
            }
            Kind::Mute => {
                others.iter().try_for_each(|other| victim.lose_what_it_says_to(other))?;
            }
            Kind::Deaf => {
                others.iter().try_for_each(|other| other.lose_what_it_says_to(victim))?;
            }
            Kind::Part => {
                let other = &field.nodes[self.other];
                victim.lose_what_it_says_to(other)?;
                other.lose_what_it_says_to(victim)?;
            }
            Kind::Slow => {
                let delay = self.lasts.min(Duration::from_millis(1_000)) / 50;
                let slow = Way::Slow { delay, loses_one_in: 20 };
                victim.weather(Weather { to_node: slow, from_node: slow });
            }
            Kind::Kill | Kind::Restart | Kind::Stop | Kind::Cut | Kind::BriefCut => {}
            Kind::Break | Kind::Leave | Kind::Join | Kind::StopHolders => {}
            Kind::TwoStops | Kind::StopAndCut | Kind::TwoCuts | Kind::StopAndKill => {}
        }
        Ok(())
    }
}

/// The part of an overlapping fault that hits one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Disruption {
    Stop,
    Cut,
}

impl Disruption {
    fn begin(self, field: &Field, index: usize) -> io::Result<()> {
        match self {
            Disruption::Stop => field.nodes[index].stop(),
            Disruption::Cut => field.nodes[index].cut(),
        }
    }

    fn end(self, field: &Field, index: usize) -> io::Result<()> {
        match self {
            Disruption::Stop => field.nodes[index].go_on(),
            Disruption::Cut => field.nodes[index].heal(&field.others(index)),
        }
    }
}

fn between(min_millis: u64, max_millis: u64, rng: &mut Rng) -> Duration {
    Duration::from_millis(min_millis + rng.below(max_millis - min_millis))
}

/// Returns the positions of the two nodes that are all holders of a bucket.
fn two_holders(field: &Field, chance: u64) -> Option<(usize, usize)> {
    let holders = field.holders(chance);
    let [first, second] = &holders[..] else { return None };
    Some((field.position(first)?, field.position(second)?))
}

fn heal(field: &Field) -> io::Result<()> {
    for (index, node) in field.nodes.iter().enumerate() {
        node.heal(&field.others(index))?;
    }
    Ok(())
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Kill => "kill",
            Kind::Restart => "restart",
            Kind::Stop => "stop",
            Kind::Cut => "cut",
            Kind::BriefCut => "cut of 1.3 to 3 s",
            Kind::Mute => "mute",
            Kind::Deaf => "deaf",
            Kind::Part => "part",
            Kind::Slow => "slow",
            Kind::Break => "break",
            Kind::Leave => "leave",
            Kind::Join => "join",
            Kind::StopHolders => "stop of all holders",
            Kind::TwoStops => "stop during a stop",
            Kind::StopAndCut => "cut during a stop",
            Kind::TwoCuts => "cut during a cut",
            Kind::StopAndKill => "kill as another stops",
        })
    }
}

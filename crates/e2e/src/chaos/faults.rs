//! Faults: which there are, which may strike now, and how each is brought about. Drawn from a seed; how
//! nodes and clients interleave is the machine's affair, so a seed repeats the faults and not the run.
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
    /// kill -9, and started again at once.
    Restart,
    /// SIGSTOP, and SIGCONT after a while.
    Stop,
    /// Its cable is pulled out for a while.
    Cut,
    /// What it says is lost for a while; what is said to it arrives.
    Mute,
    /// What is said to it is lost for a while; what it says arrives.
    Deaf,
    /// It and another node do not reach each other for a while; all others reach both.
    Part,
    /// Everything to and from it is late for a while, and some of it is lost.
    Slow,
    /// All its connections are closed once.
    Break,
    /// It leaves as it should.
    Leave,
    /// A node is added.
    Join,
}

impl Kind {
    const ALL: [Kind; 11] = [
        Kind::Kill,
        Kind::Restart,
        Kind::Stop,
        Kind::Cut,
        Kind::Mute,
        Kind::Deaf,
        Kind::Part,
        Kind::Slow,
        Kind::Break,
        Kind::Leave,
        Kind::Join,
    ];

    /// Whether it can be brought about on this node. Not every ground has every way.
    fn fits(self, ground: Ground, node: &Node) -> bool {
        let is_in_namespace = ground == Ground::Namespaces;
        match self {
            Kind::Kill | Kind::Restart | Kind::Stop | Kind::Leave | Kind::Join => true,
            Kind::Cut | Kind::Mute | Kind::Deaf => is_in_namespace || node.is_relayed(),
            Kind::Part => is_in_namespace && !node.is_relayed(),
            Kind::Slow | Kind::Break => node.is_relayed(),
        }
    }
}

/// What is to happen, to which node, for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: Kind,
    pub victim: usize,
    /// The other one that a `Part` concerns.
    other: usize,
    pub lasts: Duration,
}

/// How many nodes there may be, and how long a node may be out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    pub nodes_min: usize,
    pub nodes_max: usize,
    pub lasts_max: Duration,
}

impl Fault {
    /// A fault that this cluster, which is whole, can bear.
    pub fn draw(field: &Field, bounds: Bounds, rng: &mut Rng) -> Fault {
        let count = field.nodes.len();
        let victim = rng.index(count);
        let other = (victim + 1 + rng.index(count.max(2) - 1)) % count;
        let lasts = Duration::from_millis(200 + rng.below(bounds.lasts_max.as_millis() as u64));
        let kind = if count < bounds.nodes_min {
            Kind::Join
        } else {
            let node = &field.nodes[victim];
            let may = |kind: &Kind| {
                kind.fits(field.ground(), node)
                    && (*kind != Kind::Join || count < bounds.nodes_max)
                    && (*kind != Kind::Part || !field.nodes[other].is_relayed())
            };
            let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(may).collect();
            kinds[rng.index(kinds.len())]
        };
        Fault { kind, victim, other, lasts }
    }

    /// In words, with the victim's name.
    pub fn told(&self, field: &Field) -> String {
        let lasts = format!("{:.1} s", self.lasts.as_secs_f64());
        let name = field.nodes[self.victim].name();
        match self.kind {
            Kind::Kill => format!("{name} is killed"),
            Kind::Restart => format!("{name} is killed and started again"),
            Kind::Stop => format!("{name} is stopped for {lasts}"),
            Kind::Cut => format!("{name} is cut off for {lasts}"),
            Kind::Mute => format!("{name} is not heard for {lasts}"),
            Kind::Deaf => format!("{name} does not hear for {lasts}"),
            Kind::Part => {
                let other = field.nodes[self.other].name();
                format!("{name} and {other} do not reach each other for {lasts}")
            }
            Kind::Slow => format!("{name} is slow to reach for {lasts}"),
            Kind::Break => format!("{name}'s connections are closed"),
            Kind::Leave => format!("{name} leaves"),
            Kind::Join => "a node joins".to_owned(),
        }
    }

    /// Brings it about, and ends it. The cluster is then on its way to be whole.
    pub fn strike(&self, field: &mut Field) -> io::Result<()> {
        match self.kind {
            Kind::Kill => drop(field.take(self.victim).kill()),
            Kind::Restart => {
                let (plan, dir) = field.take(self.victim).kill();
                field.start(plan, dir)?;
            }
            Kind::Stop => {
                field.nodes[self.victim].stop()?;
                thread::sleep(self.lasts);
                field.nodes[self.victim].go_on()?;
            }
            Kind::Cut | Kind::Mute | Kind::Deaf | Kind::Part | Kind::Slow => {
                self.disturb(field)?;
                thread::sleep(self.lasts);
                heal(field)?;
            }
            Kind::Break => field.nodes[self.victim].break_connections(),
            Kind::Leave => field.take(self.victim).leave()?,
            Kind::Join => field.join()?,
        }
        Ok(())
    }

    fn disturb(&self, field: &Field) -> io::Result<()> {
        let (victim, others) = (&field.nodes[self.victim], field.others(self.victim));
        let (closed, clear) = (Way::Closed, Way::Clear);
        match self.kind {
            Kind::Cut => victim.cut()?,
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
            Kind::Kill | Kind::Restart | Kind::Stop | Kind::Break | Kind::Leave | Kind::Join => {}
        }
        Ok(())
    }
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
            Kind::Mute => "mute",
            Kind::Deaf => "deaf",
            Kind::Part => "part",
            Kind::Slow => "slow",
            Kind::Break => "break",
            Kind::Leave => "leave",
            Kind::Join => "join",
        })
    }
}

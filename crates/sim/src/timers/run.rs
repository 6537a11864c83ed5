//! One history from a seed: a cluster, clients, faults, and then the verdict.

use timers::{TimerRule, TimerSettings};

use super::checkers::{self, BrokenRule};
use super::clients::Plan;
use super::history::{Outcome, Time};
use super::weather::{Fault, Sky, Weather};
use super::world::World;
use crate::Rng;

/// Time in which clients ask and faults happen; after it all faults are repaired, and the due timers pop.
const BUSY: Time = 60_000;
const QUIET: Time = 120_000;
const STEP: Time = 50;

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub seed: u64,
    pub sky: Sky,
    /// A rule left out on purpose.
    pub broken: Option<TimerRule>,
}

/// Result of a run.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub calls: usize,
    pub duplicates: usize,
    pub timers: usize,
}

impl Run {
    pub fn new(seed: u64, sky: Sky) -> Run {
        Run { seed, sky, broken: None }
    }

    pub fn without(self, rule: TimerRule) -> Run {
        Run { broken: Some(rule), ..self }
    }

    pub fn run(self) -> Result<Report, BrokenRule> {
        let weather = Weather::from_seed(self.seed, self.sky);
        let settings = TimerSettings { broken: self.broken, ..TimerSettings::default() };
        let mut story = Teller {
            world: World::new(self.seed, weather, settings),
            rng: Rng::new(self.seed.wrapping_mul(31)),
            made: Vec::new(),
            recovering: Vec::new(),
            next_fault: 0,
        };
        story.tell();
        self.judge(&story.world)
    }

    fn judge(self, world: &World) -> Result<Report, BrokenRule> {
        let history = &world.history;
        checkers::never_early(history)?;
        checkers::at_least_once(history, world.now)?;
        if self.sky != Sky::Torn {
            checkers::not_after_its_end(history)?;
        }
        if self.sky == Sky::Clear {
            checkers::exactly_once(history)?;
            checkers::always_done(history)?;
        }
        if !world.is_at_rest() {
            let what = "a node has not finished its handover long after the last change";
            return Err(BrokenRule { promise: "comes to rest", what: what.to_owned() });
        }
        Ok(Report {
            calls: history.called.len(),
            duplicates: checkers::duplicates(history),
            timers: history.asked.len(),
        })
    }
}

struct Teller {
    world: World,
    rng: Rng,
    /// Timers that were requested, and the changes planned for them.
    made: Vec<Made>,
    /// Pending repairs, each with its time.
    recovering: Vec<(Time, Mend)>,
    next_fault: Time,
}

struct Made {
    asked: usize,
    /// Time of the next change, if one is planned.
    touch_at: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
enum Mend {
    Restart(u64),
    Resume(u64),
    Heal,
}

impl Teller {
    fn tell(&mut self) {
        self.world.run_for(2000);
        let every = BUSY / self.world.weather.timers;
        let mut next_timer = 0;
        while self.world.now < BUSY {
            if self.world.now >= next_timer {
                next_timer = self.world.now + self.rng.below(2 * every);
                self.create();
            }
            self.touch();
            self.mend();
            if self.world.now >= self.next_fault {
                self.next_fault =
                    self.world.now + self.rng.below(2 * self.world.weather.fault_every_ms);
                self.fault();
            }
            self.world.run_for(STEP);
        }
        for _ in 0..QUIET / STEP {
            self.touch();
            self.mend();
            self.world.run_for(STEP);
        }
    }

    fn plan(&mut self) -> Plan {
        let interval = match self.rng.below(3) {
            0 => 100 + self.rng.below(2000),
            1 => 1000 + self.rng.below(10_000),
            _ => 5000 + self.rng.below(25_000),
        };
        let pops = if self.rng.below(3) == 0 { 1 + self.rng.below(3) as u32 } else { 1 };
        // One copy is enough if nothing dies.
        let fewest = if self.world.weather.sky == Sky::Clear { 1 } else { 2 };
        Plan { interval, pops, factor: fewest + self.rng.below(2) }
    }

    fn create(&mut self) {
        let plan = self.plan();
        let Some(asked) = self.world.create(plan) else { return };
        let touch_at = (self.rng.below(5) < 2).then(|| self.touch_at(plan));
        self.made.push(Made { asked, touch_at });
    }

    /// Returns the time at which a timer is to be changed: at any time, or just when it is due.
    fn touch_at(&mut self, plan: Plan) -> Time {
        let now = self.world.now;
        match self.rng.below(2) {
            0 => now + self.rng.below(plan.interval * 2),
            _ => (now + plan.interval + self.rng.below(200)).saturating_sub(150),
        }
    }

    /// Deletes or sets anew the timers whose change is due.
    fn touch(&mut self) {
        let now = self.world.now;
        let due: Vec<usize> = (0..self.made.len())
            .filter(|made| self.made[*made].touch_at.is_some_and(|at| at <= now))
            .collect();
        for made in due {
            let asked = &self.world.history.asked[self.made[made].asked];
            let (id, outcome) = (asked.id, asked.outcome);
            self.made[made].touch_at = None;
            let (Some(id), Outcome::Done { .. }) = (id, outcome) else { continue };
            if self.rng.below(3) > 0 {
                self.world.delete(id);
            } else {
                let plan = Plan { factor: id.factor.count() as u64, ..self.plan() };
                self.world.put(id, plan);
                let next = match self.rng.below(3) {
                    0 => Some(now + STEP + self.rng.below(300)),
                    1 => Some(self.touch_at(plan)),
                    _ => None,
                };
                self.made[made].touch_at = next;
            }
        }
    }

    fn mend(&mut self) {
        let now = self.world.now;
        let (due, later): (Vec<_>, Vec<_>) =
            self.recovering.drain(..).partition(|(at, _)| *at <= now || now >= BUSY);
        self.recovering = later;
        for (_, mend) in due {
            match mend {
                Mend::Restart(node) => self.world.restart(node),
                Mend::Resume(node) => self.world.resume(node),
                Mend::Heal => self.world.heal(),
            }
        }
    }

    /// Injects one fault, if nothing else is wrong at present: a timer is promised to survive fewer lost
    /// replicas than it has.
    fn fault(&mut self) {
        if !self.world.is_at_rest() || !self.recovering.is_empty() {
            return;
        }
        let fault = Fault::draw(self.world.weather.sky, &mut self.rng);
        let names = self.world.node_names();
        let node = *self.rng.choose(&names).expect("a cluster has nodes");
        let mut later = |most: u64| self.world.now + 50 + self.rng.below(most);
        match fault {
            Fault::Join if names.len() < 8 => self.world.join(),
            Fault::Leave if names.len() > 2 => self.world.leave(node),
            Fault::Crash if names.len() > 2 => {
                let back = later(8000);
                self.world.crash(node);
                self.recovering.push((back, Mend::Restart(node)));
            }
            Fault::Pause if names.len() > 2 => {
                let back = later(6000);
                self.world.pause(node);
                self.recovering.push((back, Mend::Resume(node)));
            }
            Fault::BreakLink => {
                let other = *self.rng.choose(&names).expect("a cluster has nodes");
                self.world.break_link(node, other);
            }
            Fault::Cut if names.len() > 2 => {
                let back = later(8000);
                let count = 1 + self.rng.below((names.len() as u64 - 1) / 2) as usize;
                self.world.cut(names.into_iter().take(count));
                self.recovering.push((back, Mend::Heal));
            }
            Fault::CalendarJumps => {
                let node = self.world.nodes.get_mut(&node).expect("it is one of them");
                node.calendar = 1_800_000_000_000 + self.rng.below(20_000);
            }
            Fault::Join | Fault::Leave | Fault::Crash | Fault::Pause | Fault::Cut => {}
        }
    }
}

//! The demo as a script: a node joins, one is killed, one leaves, under load, reported in plain lines. Each
//! step waits until the cluster is at rest after the one before, so that every bucket has its backup again
//! before the next event: the promise to keep acknowledged writes depends on it.

use std::thread;
use std::time::{Duration, Instant};

use cluster::status::{self, MemberStatus, Status};

use super::{Stage, Stop};
use crate::Failure;
use crate::status_cmd::figures::thousands;

/// Maximum time of balancing on a busy machine.
const REST_WITHIN: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

struct Tour<'a> {
    stage: &'a mut Stage,
    stop: &'a Stop,
    begun: Instant,
    /// Time of the last report, and the number of writes then.
    told: (Instant, u64),
}

pub(super) fn run(stage: &mut Stage, length: Duration, stop: &Stop) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut tour = Tour { stage, stop, begun, told: (begun, 0) };
    let nodes = tour.stage.herd.nodes.len();
    tour.say(&format!("{nodes} nodes started; writers begin"));
    tour.rest(nodes)?;

    tour.until(length / 4)?;
    tour.say("a node joins");
    tour.stage.herd.add()?;
    tour.rest(nodes + 1)?;

    tour.until(length / 2)?;
    let victim = tour.stage.herd.nodes[0].name.clone();
    tour.say(&format!("{victim} is killed with -9"));
    tour.stage.herd.kill(0);
    tour.rest(nodes)?;

    tour.until(length * 3 / 4)?;
    let leaver = tour.stage.herd.nodes[0].name.clone();
    if nodes > 1 {
        tour.say(&format!("{leaver} is asked to leave"));
        tour.stage.herd.leave(0);
        tour.rest(nodes - 1)?;
    }

    tour.until(length)?;
    tour.say("the writers read back all acknowledged writes");
    Ok(())
}

impl Tour<'_> {
    fn say(&self, what: &str) {
        anstream::println!("{:5.1} s  {what}", self.begun.elapsed().as_secs_f64());
    }

    /// Waits until `after` has passed since the start.
    fn until(&mut self, after: Duration) -> Result<(), Failure> {
        while self.begun.elapsed() < after {
            self.pass()?;
        }
        Ok(())
    }

    /// Waits until `nodes` nodes share everything evenly, and shows the result.
    fn rest(&mut self, nodes: usize) -> Result<(), Failure> {
        let since = Instant::now();
        loop {
            // A status from before the change proves nothing.
            let seen = self.stage.live.latest().filter(|seen| seen.at > since);
            if let Some(seen) = seen.filter(|seen| is_at_rest(&seen.status, nodes)) {
                self.say(status::summary(&seen.status).trim_end());
                if seen.status.buckets.len() <= status::BUCKETS_MAX {
                    anstream::print!("\n{}\n", status::picture(&seen.status));
                }
                return Ok(());
            }
            if since.elapsed() > REST_WITHIN {
                return Err(Failure::Refused(format!(
                    "{nodes} nodes are not balanced after {} s",
                    REST_WITHIN.as_secs()
                )));
            }
            self.pass()?;
        }
    }

    fn pass(&mut self) -> Result<(), Failure> {
        if self.stop.is_wanted() {
            return Err(Failure::Refused("stopped before the end of the tour".to_owned()));
        }
        thread::sleep(LOOK_EVERY);
        let seen = self.stage.live.latest();
        self.stage.herd.tend(seen.as_ref().map(|seen| &*seen.status));
        if self.told.0.elapsed() >= PROGRESS_EVERY {
            self.tell();
        }
        Ok(())
    }

    fn tell(&mut self) {
        let (counts, latency) = (self.stage.load.counts(), self.stage.load.latency());
        let (at, before) = self.told;
        let rate = (counts.acknowledged - before) as f64 / at.elapsed().as_secs_f64();
        let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
        let (p99, longest) = (millis(latency.p99), millis(latency.longest));
        let rate = thousands(rate as u64);
        self.say(&format!("{counts}; {rate} writes/s, p99 {p99:.1} ms, longest {longest:.1} ms"));
        self.told = (Instant::now(), counts.acknowledged);
    }
}

/// Returns whether `nodes` nodes hold all copies that are wanted, and none more than its share.
pub(super) fn is_at_rest(status: &Status, nodes: usize) -> bool {
    let wanted = copies_wanted(status, nodes);
    let spread = |count: &dyn Fn(&MemberStatus) -> u32| {
        let counts = status.members.iter().map(count);
        counts.clone().max().unwrap_or(0) - counts.min().unwrap_or(0)
    };
    status.members.len() == nodes
        && status.moves.is_empty()
        && status.buckets.iter().all(|bucket| bucket.holders.len() == wanted)
        && spread(&|member| member.primaries) <= 1
        && spread(&MemberStatus::copies) <= 1
}

fn copies_wanted(status: &Status, nodes: usize) -> usize {
    let backups = status.settings.get("backups").and_then(|text| text.parse::<usize>().ok());
    nodes.min(1 + backups.unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::testing::two_nodes;
    use placement::Mask;

    #[test]
    fn a_cluster_rests_when_every_bucket_has_its_backup_and_all_hold_the_same() {
        let mut status = two_nodes(Mask::M000F);
        assert!(!is_at_rest(&status, 2), "B holds nothing");
        status.moves.clear();
        for (number, bucket) in status.buckets.iter_mut().enumerate() {
            let [first, second] = if number % 2 == 0 { ["A", "B"] } else { ["B", "A"] };
            bucket.holders = vec![first.to_owned(), second.to_owned()];
        }
        for member in &mut status.members {
            (member.primaries, member.backups) = (8, 8);
        }
        assert!(is_at_rest(&status, 2));
        assert!(!is_at_rest(&status, 3), "one is still to come");
        status.buckets[7].holders.pop();
        assert!(!is_at_rest(&status, 2), "one has no backup");
    }
}

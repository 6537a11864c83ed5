//! The schedule of dialing. Pure: the control thread asks which dials are due and reports their results;
//! `dialer.rs` dials.
//!
//! Each node makes its own data links. Of two nodes the one with the lower id makes the control link;
//! the other one dials as well if no link has come for a while, because there are networks in which only
//! one of two can reach the other.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::Moment;
use cluster::map::{Member, NodeId, Peer};

use super::hello::Purpose;
use super::roster::{Neighbour, Roster};

/// Time that the node with the higher id waits for the other's control link.
const HIGHER_WAITS: Duration = Duration::from_secs(1);
/// Back-off after the first failure; it doubles with each further one.
const AGAIN_MIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(1);

/// Maximum number of concurrent attempts, each of which has a thread.
const ATTEMPTS_MAX: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Dials {
    dials: BTreeMap<(NodeId, Purpose), Dial>,
}

#[derive(Debug)]
struct Dial {
    to: Neighbour,
    state: DialState,
    failures: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DialState {
    Due(Moment),
    UnderWay,
    Up,
}

/// A link that is to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DialTarget {
    pub(super) to: Neighbour,
    pub(super) purpose: Purpose,
}

impl Dials {
    /// Makes the links of this roster, and no others, the wanted ones. Links that are up already stay so.
    pub(super) fn follow(&mut self, now: Moment, roster: &Roster) {
        let mut before = std::mem::take(&mut self.dials);
        let meetings = before.extract_if(.., |(_, purpose), _| *purpose == Purpose::Meet);
        self.dials.extend(meetings);
        let both = |to: Neighbour| [Purpose::Control, Purpose::Data].map(|it| (to.clone(), it));
        let members = roster.neighbours().flat_map(both);
        let voters = roster.former_voters().map(|to| (to, Purpose::Control));
        for (to, purpose) in members.chain(voters) {
            let key = (to.peer.id, purpose);
            let known = before.remove(&key).filter(|dial| dial.to.peer == to.peer);
            let first = now + patience(roster.me, to.peer, purpose);
            let state = known.as_ref().map_or(DialState::Due(first), |dial| dial.state);
            let failures = known.map_or(0, |dial| dial.failures);
            self.dials.insert(key, Dial { to, state, failures });
        }
    }

    /// Dials the members from before a takeover again and again: they may have gone on as well (split
    /// brain).
    pub(super) fn look_for(&mut self, now: Moment, partitioned_members: &[Member]) {
        let is_looked_for = |(node, purpose): &(NodeId, Purpose)| {
            *purpose != Purpose::Meet || partitioned_members.iter().any(|member| member.id == *node)
        };
        self.dials.retain(|key, _| is_looked_for(key));
        for member in partitioned_members {
            let to = Neighbour { peer: member.peer(), at: member.at.clone() };
            let dial = Dial { to, state: DialState::Due(now), failures: 0 };
            self.dials.entry((member.id, Purpose::Meet)).or_insert(dial);
        }
    }

    /// Returns the links to dial now. The caller must answer each with `up` or `failed`.
    pub(super) fn due(&mut self, now: Moment) -> Vec<DialTarget> {
        let under_way = self.under_way();
        let is_due = |dial: &Dial| matches!(dial.state, DialState::Due(at) if at <= now);
        let due = self.dials.iter_mut().filter(|(_, dial)| is_due(dial));
        due.take(ATTEMPTS_MAX - under_way)
            .map(|((_, purpose), dial)| {
                dial.state = DialState::UnderWay;
                DialTarget { to: dial.to.clone(), purpose: *purpose }
            })
            .collect()
    }

    fn under_way(&self) -> usize {
        self.dials.values().filter(|dial| dial.state == DialState::UnderWay).count()
    }

    /// Returns the time of the next dial; `None` if there is none before an attempt under way has ended.
    pub(super) fn next_due(&self) -> Option<Moment> {
        if self.under_way() >= ATTEMPTS_MAX {
            return None;
        }
        self.dials
            .values()
            .filter_map(|dial| match dial.state {
                DialState::Due(at) => Some(at),
                DialState::UnderWay | DialState::Up => None,
            })
            .min()
    }

    /// Records that a link is up, whichever end made it.
    pub(super) fn up(&mut self, peer: Peer, purpose: Purpose) {
        if let Some(dial) = self.dial(peer, purpose) {
            (dial.state, dial.failures) = (DialState::Up, 0);
        }
    }

    /// Records that an attempt failed.
    pub(super) fn failed(&mut self, now: Moment, peer: Peer, purpose: Purpose) {
        if let Some(dial) =
            self.dial(peer, purpose).filter(|dial| dial.state == DialState::UnderWay)
        {
            let wait = AGAIN_MIN.saturating_mul(1 << dial.failures.min(10)).min(AGAIN_MAX);
            dial.failures += 1;
            dial.state = DialState::Due(now + wait);
        }
    }

    /// Records that a link that was up is broken.
    pub(super) fn lost(&mut self, now: Moment, me: Peer, peer: Peer, purpose: Purpose) {
        if let Some(dial) = self.dial(peer, purpose).filter(|dial| dial.state == DialState::Up) {
            dial.state = DialState::Due(now + AGAIN_MIN + patience(me, peer, purpose));
        }
    }

    /// Returns the dial to a process. A control link belongs to a node instead: a process that has come back
    /// votes before the map knows it.
    fn dial(&mut self, peer: Peer, purpose: Purpose) -> Option<&mut Dial> {
        let dial = self.dials.get_mut(&(peer.id, purpose));
        dial.filter(|dial| purpose == Purpose::Control || dial.to.peer == peer)
    }

    /// Returns how many of the wanted links are up, and how many are wanted.
    pub(super) fn standing(&self) -> (usize, usize) {
        let wanted = self.dials.iter().filter(|((_, purpose), _)| *purpose != Purpose::Meet);
        let up = wanted.clone().filter(|(_, dial)| dial.state == DialState::Up).count();
        (up, wanted.count())
    }
}

fn patience(me: Peer, them: Peer, purpose: Purpose) -> Duration {
    match purpose {
        Purpose::Control if me.id > them.id => HIGHER_WAITS,
        Purpose::Control
        | Purpose::Data
        | Purpose::Timers
        | Purpose::Join
        | Purpose::Meet
        | Purpose::Merge => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use cluster::map::{Boot, ClusterId, Endpoints, Generation, Member, Zone};

    use super::*;

    fn member(id: u64, boot: u64) -> Member {
        let (at, zone) = (Endpoints::default(), Zone::default());
        let name = format!("n{id}");
        Member { id: NodeId(id), boot: Boot(boot), name, weight: 1, zone, at }
    }

    fn roster(me: u64, others: &[(u64, u64)]) -> Roster {
        let generation = Generation { counter: 1, founder: NodeId(1) };
        let members: Vec<Member> = others.iter().map(|(id, boot)| member(*id, *boot)).collect();
        Roster::new(member(me, me).peer(), ClusterId(1), generation, &members)
    }

    fn at(millis: u64) -> Moment {
        Moment::START + Duration::from_millis(millis)
    }

    fn due(dials: &mut Dials, millis: u64) -> Vec<(u64, Purpose)> {
        let due = dials.due(at(millis));
        due.into_iter().map(|target| (target.to.peer.id.0, target.purpose)).collect()
    }

    #[test]
    fn data_links_are_made_by_all_and_control_links_first_by_the_lower() {
        let mut dials = Dials::default();
        dials.follow(at(0), &roster(2, &[(1, 1), (3, 3)]));
        let now = vec![(1, Purpose::Data), (3, Purpose::Control), (3, Purpose::Data)];
        assert_eq!(due(&mut dials, 0), now);
        assert_eq!(due(&mut dials, 999), vec![]);
        assert_eq!(due(&mut dials, 1000), vec![(1, Purpose::Control)]);
        assert_eq!(dials.next_due(), None);
    }

    #[test]
    fn a_failed_attempt_is_made_again_later_and_later_until_it_works() {
        let mut dials = Dials::default();
        dials.follow(at(0), &roster(1, &[(2, 2)]));
        due(&mut dials, 0);
        let peer = member(2, 2).peer();
        let mut waits = Vec::new();
        for _ in 0..7 {
            dials.failed(at(0), peer, Purpose::Data);
            let again_at = dials.next_due().expect("it will be tried again");
            waits.push(again_at.since(at(0)).as_millis());
            assert_eq!(due(&mut dials, 5000), vec![(2, Purpose::Data)]);
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1000, 1000]);
        dials.up(peer, Purpose::Data);
        assert_eq!(dials.standing(), (1, 2));
        dials.lost(at(9000), member(1, 1).peer(), peer, Purpose::Data);
        assert_eq!(dials.next_due(), Some(at(9050)));
    }

    #[test]
    fn many_nodes_are_dialed_a_few_at_a_time() {
        let mut dials = Dials::default();
        let others: Vec<(u64, u64)> = (2..502).map(|id| (id, id)).collect();
        dials.follow(at(0), &roster(1, &others));
        let mut made = 0;
        while let Some(next) = dials.next_due() {
            let due = dials.due(next);
            assert!(!due.is_empty() && due.len() <= ATTEMPTS_MAX, "{}", due.len());
            made += due.len();
            due.iter().for_each(|target| dials.up(target.to.peer, target.purpose));
        }
        assert_eq!((made, dials.standing()), (1000, (1000, 1000)));
    }

    #[test]
    fn those_who_are_looked_for_are_dialed_until_they_are_back_and_nobody_waits_for_them() {
        let mut dials = Dials::default();
        dials.look_for(at(0), &[member(7, 7)]);
        dials.follow(at(0), &roster(1, &[(2, 2)]));
        assert_eq!(dials.standing(), (0, 2));
        assert!(due(&mut dials, 0).contains(&(7, Purpose::Meet)));
        dials.failed(at(0), member(7, 7).peer(), Purpose::Meet);
        dials.look_for(at(10), &[member(7, 7)]);
        assert_eq!(due(&mut dials, 49), vec![], "not before its time");
        assert_eq!(due(&mut dials, 50), vec![(7, Purpose::Meet)]);
        dials.look_for(at(60), &[]);
        dials.failed(at(60), member(7, 7).peer(), Purpose::Meet);
        assert_eq!(dials.next_due(), None);
    }

    #[test]
    fn another_process_of_a_node_is_dialed_anew_and_the_old_ones_news_is_ignored() {
        let mut dials = Dials::default();
        dials.follow(at(0), &roster(1, &[(2, 2)]));
        due(&mut dials, 0);
        dials.up(member(2, 2).peer(), Purpose::Data);
        dials.follow(at(10), &roster(1, &[(2, 7)]));
        assert_eq!(due(&mut dials, 10).len(), 2);
        dials.up(member(2, 2).peer(), Purpose::Data);
        assert_eq!(dials.standing(), (0, 2));
        dials.follow(at(20), &roster(1, &[]));
        assert_eq!(dials.standing(), (0, 0));
    }
}

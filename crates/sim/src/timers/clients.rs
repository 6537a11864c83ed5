//! Clients that set, change and delete timers, through any node that is awake.

use timers::{
    Callback, HttpTarget, ReplicationFactor, Retry, TimeSpan, TimerId, TimerRequest, TimerSpec,
};

use super::history::{Asked, Outcome, What};
use super::world::World;

/// Parameters of a new timer.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub interval: u64,
    pub pops: u32,
    pub factor: u64,
}

impl World {
    /// Asks some node for a new timer, and returns its place in the history.
    pub fn create(&mut self, plan: Plan) -> Option<usize> {
        let factor = ReplicationFactor::new(plan.factor).expect("a plan has replicas");
        let wish = TimerRequest::Create { spec: spec(plan), factor };
        let Plan { interval, pops, .. } = plan;
        self.request(None, What::Set { interval, pops }, wish)
    }

    pub fn put(&mut self, id: TimerId, plan: Plan) -> Option<usize> {
        let wish = TimerRequest::Put { id, spec: spec(plan) };
        let Plan { interval, pops, .. } = plan;
        self.request(Some(id), What::Set { interval, pops }, wish)
    }

    pub fn delete(&mut self, id: TimerId) -> Option<usize> {
        self.request(Some(id), What::Delete, TimerRequest::Delete(id))
    }

    fn request(&mut self, id: Option<TimerId>, what: What, wish: TimerRequest) -> Option<usize> {
        let mut nodes = self.awake();
        nodes.retain(|node| self.clients_of.is_none_or(|wanted| node.id == wanted));
        let node = *self.rng.choose(&nodes)?;
        self.history.asked.push(Asked { id, what, from: self.now, outcome: Outcome::Open });
        self.ask(node, wish);
        Some(self.history.asked.len() - 1)
    }
}

fn spec(plan: Plan) -> TimerSpec {
    let target = HttpTarget::parse("http://10.1.1.1:8080/pop").expect("a good URI");
    TimerSpec {
        tags: Vec::new(),
        interval: TimeSpan(plan.interval),
        repeat_for: TimeSpan(plan.interval * u64::from(plan.pops)),
        callback: Callback::Http { target, opaque: "x".into(), timeout: TimeSpan::from_secs(2) },
        retry: Retry::NONE,
    }
}

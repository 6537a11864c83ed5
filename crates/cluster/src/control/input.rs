//! Everything that can move a node's control plane, and everything it can ask for.
//!
//! `Control::handle` takes an `Input` and leaves `Effect`s, to be carried out in their order.

use std::sync::Arc;
use std::time::Duration;

use placement::{Hashmask, Slot};
use store::UnixMillis;

use super::message::{JoinAnswer, JoinRequest, Message};
use super::recreate::Offer;
use super::skew::Skew;
use crate::balance::{Attempt, Decision, Vitals};
use crate::consensus::{LogEntry, Persist};
use crate::data::Report;
use crate::map::{Epoch, Generation, LogIndex, Map, NodeId, Outcome, Peer, Setting, Source};

#[derive(Clone, Debug)]
pub enum Input {
    Message {
        from: Peer,
        message: Message,
    },
    /// Time has passed: at the latest when `Control::wake_at` says so.
    Tick,
    /// The taker is in the wait set and has acknowledged the end of the fill, which named this epoch of
    /// the bucket. Both stay as they are until the bucket has a later epoch; this node sees to that.
    FillDone {
        attempt: Attempt,
        epoch: Epoch,
    },
    FillFailed {
        attempt: Attempt,
    },
    /// Nothing runs on the paused bucket any more, and everything it did is acknowledged.
    Drained {
        bucket: Hashmask,
        epoch: Epoch,
    },
    /// A member of the wait set lags, is silent or has lost its place: at this epoch of the bucket it
    /// is to be dropped.
    OutOfSync {
        bucket: Hashmask,
        node: NodeId,
        epoch: Epoch,
    },
    /// A node acknowledges nothing of what this one sends it.
    Stuck {
        node: NodeId,
    },
    /// So many bytes for this backup are not acknowledged yet: it is told.
    Beat {
        to: NodeId,
        left: u64,
    },
    /// Another node knows of a later reign than this one does.
    Reigned {
        slot: Slot,
        reign: LogIndex,
    },
    /// A client sent a command for a key, or asked for the topology on a connection that it opened since
    /// this node lost its lease; or it waits for a timer. Never PING, INFO or our own tools.
    ClientTurned,
    /// A node of this cluster, but of another generation, has said hello.
    Met(Generation),
    /// What this process has that the other side lacks is there now: the answer to `Effect::Yield`.
    Merged,
    /// What this process had kept of these buckets is with those who serve them: the answer to
    /// `Effect::Bring`, be it that it could be done for none of them.
    Brought(Vec<Hashmask>),
    /// Copies that this process has loaded from its disk.
    Found(Vec<Offer>),
    Vitals(Vitals),
    /// Whether this node holds things besides buckets that others have yet to take over: as long as it
    /// does it does not go.
    HandsFull(bool),
    /// The bytes in the buckets that this node serves.
    Sizes(Vec<(Hashmask, u64)>),
    /// Somebody looks at the cluster through this node: the others are asked how they are.
    LookAround,
    /// What the wall clock shows, once a second.
    Clock(UnixMillis),
    /// The control link to a node has broken.
    Unreachable(NodeId),
    /// The other end has closed the control link, as a system does for a process that ends. Comes besides
    /// `Unreachable`.
    HungUp(NodeId),
    /// Somebody wants something and waits for `Effect::Answer` with the same id.
    Ask {
        id: u64,
        ask: Ask,
    },
}

/// What the data plane has done or found.
impl From<Report> for Input {
    fn from(report: Report) -> Input {
        match report {
            Report::FillDone { attempt, epoch } => Input::FillDone { attempt, epoch },
            Report::FillFailed { attempt } => Input::FillFailed { attempt },
            Report::Drained { bucket, epoch } => Input::Drained { bucket, epoch },
            Report::Beat { to, left } => Input::Beat { to, left },
            Report::OutOfSync { bucket, node, epoch } => Input::OutOfSync { bucket, node, epoch },
            Report::Stuck { node } => Input::Stuck { node },
        }
    }
}

/// What an operator can ask of any node, and a process that wants to join of any member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Hand everything on and go.
    Leave,
    /// The same, to be back with what it held in so long.
    LeaveFor(Duration),
    /// Split this bucket, or all of the largest.
    Split(Option<Hashmask>),
    Set(Setting),
    /// More than half of the voters are gone for good: go on with what is here.
    Takeover,
    Join(Box<JoinRequest>),
    /// The only member has all that can be had of the buckets nobody holds: it holds them again.
    Recreate(Source),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Done,
    /// One clear line. Nothing was changed.
    Refused(String),
    /// Nobody could decide it in time; it may still happen.
    Unknown(String),
    Join(JoinAnswer),
}

#[derive(Clone, Debug)]
pub enum Effect {
    /// To be on the disk before any message behind it leaves.
    Persist(Box<Persist>),
    Send {
        to: NodeId,
        message: Message,
    },
    /// The map this node goes by is another one.
    MapChanged(MapChanged),
    /// This node may serve until then, by its clock. An earlier time than before takes it back.
    Lease {
        until: Duration,
    },
    /// Copy the bucket from here to the taker; then `Input::FillDone` or `FillFailed`.
    StartFill {
        attempt: Attempt,
        bucket: Hashmask,
        taker: NodeId,
    },
    /// Whatever part this node has in that fill is over.
    CancelFill {
        attempt: Attempt,
    },
    /// Run nothing more on the bucket and let it wait; `Input::Drained` when all is acknowledged. It
    /// is served again here only at a later epoch in which this node is still its primary.
    Pause {
        bucket: Hashmask,
        epoch: Epoch,
        to: NodeId,
    },
    /// This node will be the bucket's primary in a moment: commands for it wait here until the bucket
    /// has a later epoch.
    TakeOver {
        bucket: Hashmask,
        epoch: Epoch,
        from: NodeId,
    },
    /// The bucket's new primary serves it: what waited here is sent there.
    Serving {
        bucket: Hashmask,
        node: NodeId,
    },
    /// This process ends in favour of that generation: what the other side lacks is to be handed over
    /// to it, then `Input::Merged`.
    Yield {
        to: Generation,
    },
    /// These buckets have begun again without what this process has kept of them: that is to be handed
    /// over to those who serve them, then `Input::Brought`.
    Bring {
        buckets: Vec<Hashmask>,
    },
    /// By this primary so many bytes are still to come.
    Beat {
        from: NodeId,
        left: u64,
    },
    Answer {
        id: u64,
        answer: Answer,
    },
    /// A move has begun, and why.
    Decided(Decision),
    /// Something to report about the wall clock of another node.
    Skew(Skew),
    /// This process is no member any more and never will be again.
    Gone(Gone),
}

#[derive(Clone, Debug)]
pub struct MapChanged {
    pub map: Arc<Map>,
    /// How far the log is applied.
    pub index: LogIndex,
    /// What changed it; nothing if the map came as a whole.
    pub entry: Option<Arc<LogEntry>>,
    /// What became of the entry's changes, as far as they were tried.
    pub outcomes: Vec<Outcome>,
}

/// Why a process is no member any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gone {
    /// It has handed everything on.
    Left,
    /// The same, but its places are kept for so long: what it held is worth saving.
    LeftFor(Duration),
    /// It wants to leave and nobody else is there: what it holds can only be saved.
    LeftAsTheLast,
    /// The others have counted it as dead, or another process has its place.
    Outcast,
    /// Another generation stands: this process holds nothing any more that the others lack.
    Yielded(Generation),
    /// It may not come back, for this reason.
    Refused(String),
}

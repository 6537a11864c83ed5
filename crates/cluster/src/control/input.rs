//! All inputs of a node's control plane, and all actions it can request.
//!
//! `Control::handle` takes an `Input` and returns `Action`s, to be carried out in their order.

use std::sync::Arc;
use std::time::Duration;

use placement::{Hashmask, Slot};
use store::UnixMillis;

use super::documents::WriteRequest;
use super::message::{JoinAnswer, JoinRequest, Message};
use super::recreate::KeptCopy;
use super::skew::Skew;
use crate::Moment;
use crate::balance::{MemoryReport, MoveId, SizeReport, Vitals};
use crate::consensus::{LogEntry, Persist};
use crate::data::{BucketLag, Order, Report};
use crate::map::{
    ChangeOutcome, Epoch, Generation, LeaveWay, LogIndex, Map, NodeId, Peer, RecreateSource,
    Setting,
};

#[derive(Clone, Debug)]
pub enum Input {
    Message {
        from: Peer,
        message: Message,
    },
    /// Time has passed. Due at `Control::wake_at` at the latest.
    Tick,
    /// The taker is in the wait set of these buckets and has acknowledged the ends of their fills, each
    /// of which named this epoch of the bucket. Both remain true until the bucket has a later epoch; this
    /// node ensures that it gets one.
    FillDone {
        move_id: MoveId,
        filled: Vec<(Hashmask, Epoch)>,
    },
    FillFailed {
        move_id: MoveId,
    },
    /// Nothing runs on these paused buckets any more, and all their effects are acknowledged.
    Drained {
        buckets: Vec<(Hashmask, Epoch)>,
    },
    /// A member of the wait set lags, is silent or has lost its position: it is to be dropped at this
    /// epoch of the bucket.
    OutOfSync {
        bucket: Hashmask,
        node: NodeId,
        epoch: Epoch,
    },
    /// A node acknowledges nothing that this one sends.
    Stuck {
        node: NodeId,
    },
    /// Number of bytes this backup has not acknowledged yet; to be sent to it.
    BackupLag {
        to: NodeId,
        remaining_bytes: u64,
        lags: Vec<BucketLag>,
    },
    /// Another node knows of a later reign than this one does.
    NewerReignSeen {
        slot: Slot,
        reign: LogIndex,
    },
    /// Client demand: a client sent a command for a key, or asked for the topology on a connection that
    /// it opened after this node lost its lease; or it waits for a timer. Never PING, INFO or our own
    /// tools.
    ClientDemand,
    /// A node of this cluster, but of another generation, has said hello.
    Met(Generation),
    /// The other side now has all data of this process that it lacked: the reply to `Action::Yield`.
    Merged,
    /// The primaries of these buckets now have the data that this process had kept: the reply to
    /// `Action::Bring`; may be empty.
    Brought(Vec<Hashmask>),
    /// Copies that this process has loaded from its disk.
    Found(Vec<KeptCopy>),
    Vitals(Vitals),
    /// The memory of this node. Repeated several times a second while the node is near its limit.
    Memory(MemoryReport),
    /// True if this node holds data besides buckets (timers) that other nodes have yet to take over:
    /// until then it does not leave.
    HoldsTimers(bool),
    /// Sizes of the buckets that this node serves.
    Sizes(SizeReport),
    /// A viewer requests the cluster's state from this node: the other members are asked for theirs.
    LookAround,
    /// The time of the wall clock, once a second.
    Clock(UnixMillis),
    /// The control link to a node stands, whichever end made it.
    LinkUp(NodeId),
    /// The control link to a node has broken.
    Unreachable(NodeId),
    /// The other end has closed the control link, as an operating system does for a process that ends.
    /// Sent in addition to `Unreachable`.
    HungUp(NodeId),
    /// A request whose sender waits for `Action::Answer` with the same id.
    OperatorRequest {
        id: u64,
        ask: OperatorRequest,
    },
}

/// Converts a report of the data plane.
impl From<Report> for Input {
    fn from(report: Report) -> Input {
        match report {
            Report::FillDone { move_id, filled } => Input::FillDone { move_id, filled },
            Report::FillFailed { move_id } => Input::FillFailed { move_id },
            Report::Drained { buckets } => Input::Drained { buckets },
            Report::BackupLag { to, remaining_bytes, lags } => {
                Input::BackupLag { to, remaining_bytes, lags }
            }
            Report::OutOfSync { bucket, node, epoch } => Input::OutOfSync { bucket, node, epoch },
            Report::Stuck { node } => Input::Stuck { node },
        }
    }
}

/// A request: of an operator to any node, or of a joining process to any member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperatorRequest {
    /// Hand everything on and leave. The safe way becomes the quick way after `leave-timeout`.
    Leave(LeaveWay),
    /// The same, to return within this time to the buckets it held.
    LeaveFor {
        absence: Duration,
        way: LeaveWay,
    },
    /// Split this bucket, or all of the largest.
    Split(Option<Hashmask>),
    Set(Setting),
    /// Write documents. The answer comes when every member follows them.
    Write(WriteRequest),
    /// More than half of the voters are gone for good: go on with the data of this node.
    Takeover,
    Join(Box<JoinRequest>),
    /// The only member has all available data of the buckets without a holder: it holds them again.
    Recreate(RecreateSource),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Done,
    /// The reason in one clear line. Nothing was changed.
    Refused(String),
    /// No majority decided it in time; it may still happen.
    Unknown(String),
    Join(JoinAnswer),
}

#[derive(Clone, Debug)]
pub enum Action {
    /// Must be on disk before any message after it is sent.
    Persist(Box<Persist>),
    Send {
        to: NodeId,
        message: Message,
    },
    /// This node has adopted another map.
    MapChanged(MapChanged),
    /// This node may serve until then, by its clock. An earlier time than before revokes the lease.
    Lease {
        until: Moment,
    },
    /// Something for the mover to do.
    Order(Order),
    /// This process ends in favour of that generation: hand over to it the data that the other side
    /// lacks, then `Input::Merged`.
    Yield {
        to: Generation,
    },
    /// These buckets were recreated without the data that this process has kept: hand that over to
    /// their present primaries, then `Input::Brought`.
    Bring {
        buckets: Vec<Hashmask>,
    },
    /// Number of bytes that this primary has yet to deliver.
    BackupLag {
        from: NodeId,
        remaining_bytes: u64,
        /// The buckets of these bytes.
        lags: Vec<BucketLag>,
    },
    /// The memory of this node is full. Make room in the buckets that have a copy there: evict so many
    /// bytes, or refuse writes that need memory. Counts for `balance::MAKE_ROOM_FOR`.
    MakeRoom {
        node: NodeId,
        bytes: u64,
    },
    Answer {
        id: u64,
        answer: Answer,
    },
    /// A finding about the wall clock of another node.
    Skew(Skew),
    /// This process is not a member any more and never will be again.
    Gone(Gone),
}

#[derive(Clone, Debug)]
pub struct MapChanged {
    pub map: Arc<Map>,
    /// Index up to which the log is applied.
    pub index: LogIndex,
    /// The entry that changed it; `None` if the map came as a whole.
    pub entry: Option<Arc<LogEntry>>,
    /// Outcomes of the entry's changes, as far as they were tried.
    pub outcomes: Vec<ChangeOutcome>,
}

/// The reason a process is not a member any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gone {
    /// It has handed everything on.
    Left,
    /// The same, but its places are reserved for this long: its data is worth saving.
    LeftFor(Duration),
    /// It wants to leave and is the only node: its data can only be saved.
    LeftAsTheLast,
    /// The others have declared it dead, or another process has its place.
    Removed,
    /// Another generation survives: this process holds nothing any more that the others lack.
    Yielded(Generation),
    /// It may not come back, for this reason.
    Refused(String),
}

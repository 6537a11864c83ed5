//! All inputs of a node's timers, and all actions they can ask for.

use std::fmt;

use crate::calls::CallLimits;
use crate::dead::DeadLetter;
use crate::ids::{
    MembersEpoch, MonotonicMillis, ReplicationFactor, Sequence, TimeSpan, TimerId, TimerPeer,
};
use crate::members::TimerMember;
use crate::message::{RequestId, TimerMessage, TimerQuery};
use crate::record::Record;
use crate::spec::{Callback, TimerSpec};
use crate::stats::Stats;

pub enum TimerInput {
    /// The map's members have changed, at this epoch.
    Members {
        epoch: MembersEpoch,
        members: Vec<TimerMember>,
    },
    /// The node may serve until this moment.
    Lease {
        until: MonotonicMillis,
    },
    Request {
        request: RequestId,
        wish: TimerRequest,
    },
    Peer {
        from: TimerPeer,
        message: TimerMessage,
    },
    CallEnded {
        call: CallId,
        result: Result<(), String>,
    },
    /// Time has passed.
    Tick,
}

/// A client's request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TimerRequest {
    /// Creates a new timer, under an id of our choice.
    Create {
        spec: TimerSpec,
        factor: ReplicationFactor,
    },
    /// Sets a timer under this id, replacing an existing one.
    Put {
        id: TimerId,
        spec: TimerSpec,
    },
    Delete(TimerId),
    See(TimerQuery),
}

/// A callback in flight, numbered by this node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CallId(pub u64);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TimerAction {
    Send {
        to: TimerPeer,
        message: TimerMessage,
    },
    Answer {
        request: RequestId,
        answer: TimerAnswer,
    },
    /// Make the callback, and report its result within its timeout.
    Call(Call),
    /// Tell the control plane that a client waits at this node, which has no lease. For the survivor of two
    /// nodes this is the condition for going on alone.
    ClientDemand,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    pub call: CallId,
    pub id: TimerId,
    pub sequence: Sequence,
    pub callback: Callback,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TimerAnswer {
    /// Every replica has the change.
    Done(TimerId),
    Timer(Option<Box<Record>>),
    Page(Seen<Page>),
    Stats(Seen<Box<Stats>>),
    Dead(Seen<Vec<DeadLetter>>),
    Refused(TimerRefusal),
}

/// Pending timers in the order of their ids, as many as requested or as fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    pub timers: Vec<Record>,
    /// The id to continue after; `None` if there are no more.
    pub next: Option<TimerId>,
}

/// The collected result, and the number of nodes that did not answer in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen<T> {
    pub found: T,
    pub silent: usize,
}

/// The reason why a request was not done, and its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerRefusal {
    /// No member of the map keeps timers, or no map is known yet. Nothing was changed.
    NotReady,
    /// Too many requests are waiting already. Nothing was changed.
    Busy,
    /// The primary holds the maximum number or size of timers. Nothing was changed.
    Full,
    /// Some replica did not answer in time. The change may have been made, or may still be made.
    Unknown,
    /// No node that answered in time has the timer, and at least one node did not answer.
    Unseen,
}

impl fmt::Display for TimerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimerRefusal::NotReady => "this node is not in a cluster yet; nothing was changed",
            TimerRefusal::Busy => "too many requests are waiting; nothing was changed; retry later",
            TimerRefusal::Full => {
                "the node that would keep this timer is full (timers.maxmemory); nothing was changed"
            }
            TimerRefusal::Unknown => {
                "a replica did not answer in time; the change may or may not take effect"
            }
            TimerRefusal::Unseen => "a node that may keep this timer did not answer in time",
        })
    }
}

/// Settings of the operator, and the rule that the simulator breaks on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerSettings {
    pub calls: CallLimits,
    /// A primary that holds this many timers and tombstones accepts no new ones. Timers handed over by other nodes
    /// are always accepted: they were promised.
    pub timers_max: usize,
    /// The same for their size: a primary whose timers, copies and tombstones take this many bytes accepts no change
    /// that adds to them.
    pub bytes_max: u64,
    /// Maximum number of requests that wait for replicas at their coordinator.
    pub requests_max: usize,
    /// A rule that a test disables. A release build keeps all rules.
    pub broken: Option<TimerRule>,
}

impl Default for TimerSettings {
    fn default() -> TimerSettings {
        TimerSettings {
            calls: CallLimits::default(),
            timers_max: 10_000_000,
            bytes_max: 1 << 30,
            requests_max: 10_000,
            broken: None,
        }
    }
}

/// Rules that the simulator disables one by one, to check that it notices. Only builds with debug assertions can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerRule {
    /// A former holder keeps a timer until every new replica has acknowledged it.
    LetGoAfterAck,
    /// A change is answered when all replicas have it.
    AnswerAfterAll,
    /// A node that is late, has no lease, or was out of the map asks before it pops.
    AskWhenInDoubt,
    /// A deleted timer leaves a tombstone.
    Tombstones,
    /// A primary accepts changes only when every member has entered its epoch.
    WaitForEntered,
    /// Changes also go to members that may still hold timers they no longer keep.
    TellFormers,
    /// A node that pops tells the other replicas.
    TellPopped,
    /// A node that starts a callback tells the other replicas.
    TellCalling,
    /// A change of a later epoch beats all changes of an earlier one.
    EpochFirst,
}

/// Interval between retries to a silent peer.
pub(crate) const AGAIN_AFTER: TimeSpan = TimeSpan(200);
/// Time after which a client is told that the outcome is unknown.
pub(crate) const REQUEST_WITHIN: TimeSpan = TimeSpan::from_secs(10);
/// Time after which a client gets the result collected so far.
pub(crate) const LOOK_WITHIN: TimeSpan = TimeSpan::from_secs(2);
/// Time that other nodes have to answer a doubt before a pop.
pub(crate) const ANSWER_WITHIN: TimeSpan = TimeSpan::from_secs(1);
/// Delay beyond which a node asks whether another node has popped in the meantime.
pub(crate) const LATE: TimeSpan = TimeSpan::from_secs(2);
/// Maximum number of timers on a page of a list.
pub(crate) const PAGE_MAX: u32 = 1000;

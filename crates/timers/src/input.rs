//! Everything that can move a node's timers, and everything they can ask for.

use std::fmt;

use crate::calls::CallLimits;
use crate::dead::DeadLetter;
use crate::ids::{Epoch, Moment, NodeId, ReplicationFactor, Sequence, Span, TimerId};
use crate::members::Member;
use crate::message::{Message, RequestId, Sight};
use crate::record::Record;
use crate::spec::{Callback, Spec};
use crate::stats::Stats;

pub enum Input {
    /// The map's members have changed, at this epoch.
    Members {
        epoch: Epoch,
        members: Vec<Member>,
    },
    /// The node may serve until then.
    Lease {
        until: Moment,
    },
    Request {
        request: RequestId,
        wish: Wish,
    },
    Peer {
        from: NodeId,
        message: Message,
    },
    CallEnded {
        call: CallId,
        result: Result<(), String>,
    },
    /// Time has passed.
    Tick,
}

/// What a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// A new timer, under an id of our choice.
    Create {
        spec: Spec,
        factor: ReplicationFactor,
    },
    /// A timer under this id, in place of what there may be.
    Put {
        id: TimerId,
        spec: Spec,
    },
    Delete(TimerId),
    See(Sight),
}

/// A callback under way, as this node counts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CallId(pub u64);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    Send {
        to: NodeId,
        message: Message,
    },
    Answer {
        request: RequestId,
        answer: Answer,
    },
    /// Make the callback, and say how it went within its timeout.
    Call(Call),
    /// Tell whoever knows the map that a client has turned to this node, which has no lease: of two
    /// nodes the one that is left goes on alone by that.
    ClientTurned,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    pub call: CallId,
    pub id: TimerId,
    pub sequence: Sequence,
    pub callback: Callback,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Every replica has it.
    Done(TimerId),
    Timer(Option<Box<Record>>),
    Page(Seen<Page>),
    Stats(Seen<Box<Stats>>),
    Dead(Seen<Vec<DeadLetter>>),
    Refused(Refusal),
}

/// Pending timers in the order of their ids, as many as asked for or as fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    pub timers: Vec<Record>,
    /// After which to ask on. `None`: there are no more.
    pub next: Option<TimerId>,
}

/// What was gathered, and from how many nodes there was no answer in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen<T> {
    pub found: T,
    pub silent: usize,
}

/// Why a request was not done, and what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No member of the map keeps timers, or none is known yet. Nothing was changed.
    NotReady,
    /// Too many requests wait already. Nothing was changed.
    Busy,
    /// The primary holds as many timers as it may. Nothing was changed.
    Full,
    /// Some replica did not answer in time. It may have been done, or may be yet.
    Unknown,
    /// Nobody who answered in time has the timer that was looked for, and somebody did not answer.
    Unseen,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NotReady => "this node is not in a cluster yet; nothing was changed",
            Refusal::Busy => "too many requests wait; nothing was changed",
            Refusal::Full => "the node that would keep this timer is full; nothing was changed",
            Refusal::Unknown => {
                "a replica did not answer in time; it may have been done, or may be yet"
            }
            Refusal::Unseen => "a node that may keep this timer did not answer in time",
        })
    }
}

/// What an operator may set, and what the simulator breaks on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    pub calls: CallLimits,
    /// A primary with as many pending timers accepts no new ones. What others hand over is always
    /// accepted: it was promised.
    pub timers_max: usize,
    /// Requests that wait for replicas, as coordinator.
    pub requests_max: usize,
    /// A rule that a test leaves out. A release build keeps all rules.
    pub broken: Option<Rule>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            calls: CallLimits::default(),
            timers_max: 10_000_000,
            requests_max: 10_000,
            broken: None,
        }
    }
}

/// Rules that the simulator leaves out one by one, to see that it notices. Only builds with debug assertions can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A former holder keeps a timer until every new replica has acknowledged it.
    LetGoAfterAck,
    /// A change is answered when all replicas have it.
    AnswerAfterAll,
    /// A node that is late, has no lease, or was out of the map asks before it pops.
    AskWhenInDoubt,
    /// What is deleted leaves a tombstone.
    Tombstones,
    /// A primary takes changes only when every member has entered its epoch.
    WaitForEntered,
    /// Changes go to members that may still hold what they no longer keep.
    TellFormers,
    /// Who pops tells the others.
    TellPopped,
    /// Who starts a callback tells the others.
    TellCalling,
    /// A change of a later epoch beats all of an earlier one.
    EpochFirst,
}

/// A silent peer is asked again after this.
pub(crate) const AGAIN_AFTER: Span = Span(200);
/// Then a client is told that the outcome is not known.
pub(crate) const REQUEST_WITHIN: Span = Span::from_secs(10);
/// Then a client is shown what was found so far.
pub(crate) const LOOK_WITHIN: Span = Span::from_secs(2);
/// How long others have to answer a doubt before a pop.
pub(crate) const ANSWER_WITHIN: Span = Span::from_secs(1);
/// Later than this, a node asks whether somebody else has popped in the meantime.
pub(crate) const LATE: Span = Span::from_secs(2);
/// A page of a list.
pub(crate) const PAGE_MAX: u32 = 1000;

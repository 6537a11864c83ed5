//! All messages between nodes about timers. Plain data: the shell writes them to a link. Links keep the order
//! of messages; they may lose messages in flight when they break.
//!
//! ~~~text
//! Following the map                 any -> all   Hello        I have entered this epoch, and reached this stage
//!
//! A change, X coordinates           X -> P       Propose      set or delete this, under epoch e
//!                                   P -> X       LookAgain    not under my epoch
//!                                   P -> R, F    Store        numbered; R stores it, a former holder F if it has it
//!                                   R, F -> P    Stored
//!                                   P -> X       Done         all of them have it
//!
//! A pop by A                        A -> others  Calling      I am calling; wait this long
//!                                   A -> others  Popped       done: this is the next one
//!                                   A -> others  Failed       you try
//!                                   R -> A       Want         I do not know that timer (A: Fill)
//!
//! A doubt before a pop              A -> others  Ask          is this its present progress?
//!                                   R -> A       Answered
//!
//! Handing over after a change       F -> R       Offer        a page of ids with their progress
//! of members                        R -> F       Wanted       these I lack; of these I have a later state
//!                                   F -> R       Fill         the records
//!                                   R -> F       Filled
//!
//! Queries                           X -> all     Look         a timer, a page of them, statistics
//!                                   R -> X       Seen
//! ~~~

use serde::{Deserialize, Serialize};

use crate::dead::DeadLetter;
use crate::ids::{MembersEpoch, Sequence, TimeSpan, TimerId, TimerVersion};
use crate::record::{Record, TimerState};
use crate::spec::TimerSpec;
use crate::stats::Stats;

/// A client's request, numbered by its coordinator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct RequestId(pub u64);

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TimerMessage {
    Hello(MembersHello),
    Propose(Propose),
    LookAgain(LookAgain),
    Done(Done),
    Store(Store),
    Stored(Stored),
    Calling(Calling),
    Popped(Popped),
    Failed(Failed),
    Want(Want),
    Ask(Ask),
    Answered(Answered),
    Offer(ResyncOffer),
    Wanted(ResyncWanted),
    Fill(Fill),
    Filled(Filled),
    Look(Look),
    LookReply(LookReply),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MembersHello {
    pub epoch: MembersEpoch,
    pub stage: Stage,
    /// True if the sender asks for the receiver's `MembersHello`.
    pub answer: bool,
}

/// A node's progress with an epoch that it has entered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Stage {
    /// It may hold timers it no longer keeps, or other nodes may lack timers it has.
    #[default]
    HandsOver,
    /// Everything is handed over, except timers that it kept through an absence and that are in doubt.
    Doubts,
    /// It holds exactly the timers it keeps.
    Settled,
}

/// The change a client asks for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TimerChange {
    Set(TimerSpec),
    Delete,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Propose {
    pub request: RequestId,
    /// The first of the sender's requests that is still open.
    pub open_from: RequestId,
    pub epoch: MembersEpoch,
    pub id: TimerId,
    pub change: TimerChange,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LookAgain {
    pub request: RequestId,
    pub epoch: MembersEpoch,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    pub request: RequestId,
    /// The epoch it was proposed under.
    pub epoch: MembersEpoch,
    pub result: ChangeResult,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ChangeResult {
    /// Every replica has the change.
    Kept,
    /// The primary holds the maximum number of timers. Nothing was changed.
    Full,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Store {
    pub epoch: MembersEpoch,
    pub record: Record,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stored {
    pub epoch: MembersEpoch,
    pub id: TimerId,
    pub version: TimerVersion,
    /// The sender's sequence number before: a primary that did not know this timer learns it here, and uses no
    /// sequence number twice.
    pub was: Sequence,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Calling {
    pub id: TimerId,
    pub progress: TimerState,
    pub place: u8,
    /// Time within which the result of the call will be sent, good or bad.
    pub within: TimeSpan,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Popped {
    pub id: TimerId,
    /// The version that popped, and the next sequence number.
    pub progress: TimerState,
    pub left: u32,
    pub due_in: TimeSpan,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failed {
    pub id: TimerId,
    pub progress: TimerState,
    pub place: u8,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Want {
    pub id: TimerId,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ask {
    pub epoch: MembersEpoch,
    pub id: TimerId,
    pub progress: TimerState,
    /// Time for which the sender was out of the map; zero if it was in it all the time.
    pub absent_for: TimeSpan,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answered {
    pub epoch: MembersEpoch,
    pub id: TimerId,
    /// The progress that was asked about, so that a late answer is not taken for one to a later question.
    pub progress: TimerState,
    pub known: TimerKnowledge,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TimerKnowledge {
    /// The timer is unknown, or was forgotten long ago.
    Nothing,
    /// The sender has the timer, with no more progress than was asked about.
    Held,
    Newer(Record),
    /// The sender has the timer in doubt as well, or was away itself while the asking node was: it may have missed
    /// how the timer ended.
    Unsure,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResyncOffer {
    pub epoch: MembersEpoch,
    pub page: u64,
    pub items: Vec<(TimerId, TimerState)>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResyncWanted {
    pub epoch: MembersEpoch,
    pub page: u64,
    pub ids: Vec<TimerId>,
    /// Timers of which the sender has a later state than it was offered.
    pub newer: Vec<Record>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fill {
    pub epoch: MembersEpoch,
    /// `None` in answer to a `Want`, which needs no acknowledgement.
    pub page: Option<u64>,
    pub records: Vec<Record>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Filled {
    pub epoch: MembersEpoch,
    pub page: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Look {
    pub request: RequestId,
    pub at: TimerQuery,
}

/// A client's query.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TimerQuery {
    Timer(TimerId),
    /// Timers in the order of their ids, after the given one.
    Page {
        after: Option<TimerId>,
        limit: u32,
    },
    Stats,
    Dead,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LookReply {
    pub request: RequestId,
    pub part: LookPart,
}

/// Tells whether something was left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ListRest {
    None,
    More,
}

/// One node's part of the result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LookPart {
    /// The requested timers that the sender holds, and whether it has more of them.
    Timers(Vec<Record>, ListRest),
    Stats(Box<Stats>),
    Dead(Vec<DeadLetter>),
}

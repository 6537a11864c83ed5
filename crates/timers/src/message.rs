//! Everything nodes say to each other about timers. Plain data: the shell writes it to a link, and
//! links keep the order of what they carry; they may lose what was on its way when they break.
//!
//! ~~~text
//! Following the map                 any -> all   Hello        this epoch has reached me; so far I am with it
//!
//! A change, X coordinates           X -> P       Propose      set or delete this, under epoch e
//!                                   P -> X       LookAgain    not under my epoch
//!                                   P -> R, F    Store        numbered; replicas keep it, former holders too if they have it
//!                                   R, F -> P    Stored
//!                                   P -> X       Done         all of them have it
//!
//! A pop by A                        A -> others  Calling      I am calling; give me so long
//!                                   A -> others  Popped       done: this is the next one
//!                                   A -> others  Failed       you try
//!                                   R -> A       Want         I have never heard of that timer (A: Fill)
//!
//! A doubt before a pop              A -> others  Ask          is this how far it is?
//!                                   R -> A       Answered
//!
//! Handing over after a change       F -> R       Offer        a page of ids, and how far each is
//! of members                        R -> F       Wanted       these I lack; of these I know better
//!                                   F -> R       Fill         here they are
//!                                   R -> F       Filled
//!
//! Looking                           X -> all     Look         a timer, a page of them, numbers
//!                                   R -> X       Seen
//! ~~~

use serde::{Deserialize, Serialize};

use crate::dead::DeadLetter;
use crate::ids::{Epoch, Sequence, Span, TimerId, Version};
use crate::record::{Progress, Record};
use crate::spec::Spec;
use crate::stats::Stats;

/// A client's request, as its coordinator counts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct RequestId(pub u64);

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message {
    Hello(Hello),
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
    Offer(Offer),
    Wanted(Wanted),
    Fill(Fill),
    Filled(Filled),
    Look(Look),
    Seen(Seen),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub epoch: Epoch,
    pub stage: Stage,
    /// Whether the sender would like to hear the same from us.
    pub answer: bool,
}

/// How far a node is with an epoch that it has entered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Stage {
    /// It may hold what it no longer keeps, or others may lack what it has.
    #[default]
    HandsOver,
    /// All is handed over, but for what it brought from an absence and does not know to be true.
    Doubts,
    /// It holds what it keeps, and nothing else.
    Settled,
}

/// What a client wants to be so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    Set(Spec),
    Delete,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Propose {
    pub request: RequestId,
    /// The first of the sender's requests that is not over.
    pub open_from: RequestId,
    pub epoch: Epoch,
    pub id: TimerId,
    pub change: Change,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LookAgain {
    pub request: RequestId,
    pub epoch: Epoch,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    pub request: RequestId,
    /// The one it was proposed under.
    pub epoch: Epoch,
    pub result: ChangeResult,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ChangeResult {
    /// Every replica has it.
    Kept,
    /// The primary holds as many timers as it may. Nothing was changed.
    Full,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Store {
    pub epoch: Epoch,
    pub record: Record,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stored {
    pub epoch: Epoch,
    pub id: TimerId,
    pub version: Version,
    /// How far the sender was before: a primary that had not heard of this timer learns it here, and
    /// uses no sequence number twice.
    pub was: Sequence,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Calling {
    pub id: TimerId,
    pub progress: Progress,
    pub place: u8,
    /// Until then there will be an answer, one way or the other.
    pub within: Span,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Popped {
    pub id: TimerId,
    /// The version that popped, and the sequence number that comes next.
    pub progress: Progress,
    pub left: u32,
    pub due_in: Span,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failed {
    pub id: TimerId,
    pub progress: Progress,
    pub place: u8,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Want {
    pub id: TimerId,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ask {
    pub epoch: Epoch,
    pub id: TimerId,
    pub progress: Progress,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answered {
    pub epoch: Epoch,
    pub id: TimerId,
    /// What was asked about, so that a late answer is not taken for one to a later question.
    pub progress: Progress,
    pub known: Known,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Known {
    /// Never heard of it, or forgotten long ago.
    Nothing,
    /// I have it, and it is no further than that.
    Held,
    Newer(Record),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Offer {
    pub epoch: Epoch,
    pub page: u64,
    pub items: Vec<(TimerId, Progress)>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wanted {
    pub epoch: Epoch,
    pub page: u64,
    pub ids: Vec<TimerId>,
    /// What the sender knows to be further than it was offered.
    pub newer: Vec<Record>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fill {
    pub epoch: Epoch,
    /// `None` in answer to a `Want`, which needs no acknowledgement.
    pub page: Option<u64>,
    pub records: Vec<Record>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Filled {
    pub epoch: Epoch,
    pub page: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Look {
    pub request: RequestId,
    pub at: Sight,
}

/// What a client wants to see.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Sight {
    Timer(TimerId),
    /// Timers in the order of their ids, after one of them.
    Page {
        after: Option<TimerId>,
        limit: u32,
    },
    Stats,
    Dead,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Seen {
    pub request: RequestId,
    pub part: Part,
}

/// Whether something was left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Rest {
    None,
    More,
}

/// What one node can contribute.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Part {
    /// The timers the sender holds of those asked for, and whether it has more of them.
    Timers(Vec<Record>, Rest),
    Stats(Box<Stats>),
    Dead(Vec<DeadLetter>),
}

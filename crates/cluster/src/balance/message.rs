//! What nodes say to each other about balance, and all that can move a balancer or be asked by it.

use std::time::Duration;

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::decide::Decision;
use super::levels::LoadLevels;
use crate::map::{Change, Epoch, NodeId};

/// How a copy of bucket b gets from the giver A to the taker C, the primary being B (often A itself):
///
/// ~~~text
/// A -> C  AskLevels    how much do you have?
/// C -> A  Levels       so much, and whether I am busy
/// A -> C  Offer b      I would like to give you b
/// C -> A  Accept       go on             (or Refuse: a transfer is already in progress)
/// A -> B  Fetch b, C   send it b         (only if A is not the primary itself)
/// B -> A  Accept       on its way        (or Refuse; then A tells C to Forget it)
/// B       fills C, and proposes AddBackup and what follows; all three see in the map that it is done
/// ~~~
///
/// A promotion is an `Offer` too, and then proposed by A. After a change of basis a move goes
/// on if the new plan has it too; otherwise all three forget it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Message {
    Ping,
    Pong,
    AskLevels {
        round: u64,
    },
    Levels {
        round: u64,
        levels: LoadLevels,
    },
    Offer {
        attempt: Attempt,
        bucket: Hashmask,
        basis: Epoch,
        what: Offered,
    },
    Fetch {
        attempt: Attempt,
        bucket: Hashmask,
        basis: Epoch,
        taker: NodeId,
    },
    Accept {
        attempt: Attempt,
        levels: LoadLevels,
    },
    Refuse {
        attempt: Attempt,
        because: Refused,
    },
    /// The attempt has come to nothing.
    Forget {
        attempt: Attempt,
    },
}

/// One try of one giver to give one thing away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Attempt {
    pub giver: NodeId,
    pub number: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Offered {
    /// A copy that the bucket lacks.
    Fill,
    /// The giver's own copy.
    Gift,
    Promotion,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Refused {
    /// A transfer is already in progress.
    Busy,
    /// The two have different maps; the one behind will catch up.
    OtherMap,
}

/// Everything that can move a balancer.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    Message {
        from: NodeId,
        message: Message,
    },
    Timer(Timer),
    /// The map this node goes by is another one now.
    MapChanged,
    /// The taker has acknowledged the end of the fill that `Effect::StartFill` asked for.
    FillDone {
        attempt: Attempt,
    },
    /// A node has acknowledged nothing of what this one sent it for a while: a fill that goes there is
    /// put off, the longer the more often it happens.
    Stuck {
        node: NodeId,
    },
    /// The operator wants this node out.
    Leave,
}

/// A timer remembers why it was set. One that no longer matters is ignored, never cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// Time to look whether there is something to give.
    Event { number: u64 },
    /// Time to decide with the load levels that have come.
    LevelsDue { round: u64 },
    /// Time to give up waiting for an answer.
    AnswerDue { attempt: Attempt },
}

/// Everything a balancer can ask for.
#[derive(Clone, Debug)]
pub enum Effect {
    Send {
        to: NodeId,
        message: Message,
    },
    SetTimer {
        timer: Timer,
        after: Duration,
    },
    /// Copy the bucket from here to the taker.
    StartFill {
        attempt: Attempt,
        bucket: Hashmask,
        taker: NodeId,
    },
    /// This node no longer takes part in a fill, as source, taker or giver: it ends, and the taker
    /// frees what it got.
    CancelFill {
        attempt: Attempt,
    },
    /// Put these changes into the log, as one entry (`Map::apply_entry`).
    Propose {
        planned_at: Option<Epoch>,
        changes: Vec<Change>,
    },
    /// A move has begun: the decision, to be kept for whoever asks why.
    Decided(Decision),
}

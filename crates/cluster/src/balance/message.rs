//! Messages between balancers, and all inputs and actions of a balancer.

use std::time::Duration;

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::decide::Decision;
use super::levels::LoadLevels;
use super::memory::MemoryReport;
use crate::map::{Change, Epoch, LeaveWay, NodeId};

/// Conversation that moves a copy of bucket b, or copies of several (`bundle.rs`), from the giver A to the
/// taker C; B is the primary (often A itself):
///
/// ~~~text
/// A -> C  AskLevels    how much do you have?
/// C -> A  Levels       my load levels, and whether I am busy
/// A -> C  Offer b      I would like to give you b
/// C -> A  Accept       agreed            (or Refuse: it is busy or full, or has another map)
/// A -> B  RequestFill b, C  send b to C       (only if A is not the primary itself)
/// B -> A  Accept       agreed            (or Refuse; then A tells C to Forget it)
/// B       fills C, and proposes AddBackup and the changes after it; all three see in the map that it is done
/// ~~~
///
/// A promotion is an `Offer` too; A then proposes it. After a change of basis a move continues if the
/// new plan contains it too; otherwise all three nodes forget it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BalanceMessage {
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
        move_id: MoveId,
        buckets: Vec<Hashmask>,
        basis: Epoch,
        what: Offered,
    },
    RequestFill {
        move_id: MoveId,
        buckets: Vec<Hashmask>,
        basis: Epoch,
        taker: NodeId,
    },
    Accept {
        move_id: MoveId,
        levels: LoadLevels,
    },
    Refuse {
        move_id: MoveId,
        because: Refused,
    },
    /// Cancels the move.
    Forget {
        move_id: MoveId,
    },
}

/// Identifies a move of one or several buckets, and its fills: the giver, and how many moves it has begun.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct MoveId {
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
    /// It cannot take part now: it is in another move, sick, without a lease, has copies to bring back, or has lately
    /// had no acknowledgement from the taker.
    Busy,
    /// The two nodes have different maps; the one behind will catch up.
    OtherMap,
    /// The taker is near its limit of memory.
    Full,
}

/// All inputs of a balancer.
#[derive(Clone, Debug)]
pub enum BalanceInput {
    Message {
        from: NodeId,
        message: BalanceMessage,
    },
    Timer(Timer),
    /// The node has adopted another map.
    MapChanged,
    /// The taker has acknowledged the ends of these fills, of those that `BalanceAction::StartFill`
    /// asked for. No others will follow.
    FillDone {
        move_id: MoveId,
        buckets: Vec<Hashmask>,
    },
    /// A node has acknowledged nothing from this one for a while: fills to it are put off, with a
    /// back-off that grows each time this happens.
    Stuck {
        node: NodeId,
    },
    /// The memory of this node, and the sizes of its copies.
    Memory(MemoryReport),
    /// The link to a node stands, for the first time or again: messages sent to it before were lost.
    LinkUp {
        node: NodeId,
    },
    /// The link to a node has broken.
    LinkDown {
        node: NodeId,
    },
    /// The operator wants this node to leave.
    Leave(LeaveWay),
}

/// A timer that carries the reason it was set. A timer that no longer matters is ignored, never
/// cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// Look for something to give.
    LookForMove { number: u64 },
    /// Decide with the load levels received so far.
    LevelsDue { round: u64 },
    /// Give up waiting for an answer.
    AnswerDue { move_id: MoveId },
}

/// All actions a balancer can request.
#[derive(Clone, Debug)]
pub enum BalanceAction {
    Send {
        to: NodeId,
        message: BalanceMessage,
    },
    SetTimer {
        timer: Timer,
        after: Duration,
    },
    /// Copy the buckets from this node to the taker, one after the other.
    StartFill {
        move_id: MoveId,
        buckets: Vec<Hashmask>,
        taker: NodeId,
    },
    /// Of this fill only these buckets are still wanted.
    NarrowFill {
        move_id: MoveId,
        buckets: Vec<Hashmask>,
    },
    /// This node no longer takes part in a fill, as source, taker or giver: the fill ends, and the
    /// taker frees the data it received.
    CancelFill {
        move_id: MoveId,
    },
    /// Append these changes to the log, as one entry (`Map::apply_entry`). They may be of many buckets.
    Propose {
        planned_at: Option<Epoch>,
        changes: Vec<Change>,
    },
    /// A move has begun. The decision is kept for the operator (`status`).
    Decided(Decision),
}

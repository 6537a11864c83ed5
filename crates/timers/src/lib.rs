//! A reliable timer service: decides when timers are due, which nodes keep them and which node pops them. It is
//! pure: no clock, no socket, no thread, no randomness. `server` feeds it real events, `sim` simulated ones.
//!
//! `docs/timers.md` describes its guarantees and how it works. All nodes run the same code over the map's members; a
//! timer is kept by the nodes that rank first for its id, and the first of them (the primary) pops it.

mod core; //     Start here: one input in, actions out.
mod input; //    All its inputs and actions.
pub mod message; // The messages between nodes, with a diagram.
mod change; //   Creating, changing and deleting a timer: coordinator, primary, replicas.
mod finished; // Results of answered requests, kept for repeated proposals.
mod pop; //      A due timer: the callback, telling the other replicas, handling a failure.
mod doubt; //    Asks the other nodes before a pop, if this node may have missed something.
mod resync; //   Hands timers over when members change.
mod follow; //   Tracks which epoch each member follows.
mod look; //     Queries: one timer, pages, statistics, dead letters.
mod lease; //    The node's lease: until when it may serve.
mod turned; //   Reports clients of a node without a lease.
mod snapshot; // Saves timers for a stop or a crash of the whole cluster.
mod members; //  Decides which nodes keep a timer.
mod record; //   A timer as it is sent between nodes.
mod table; //    All timers of a node, stored compactly.
mod wheel; //    Finds the timers that are due next.
mod calls; //    Limits the callbacks in flight.
mod stats; //    Counts, lateness, tags.
mod dead; //     Pops that were given up.
pub mod spec; // A timer as a client describes it.
pub mod json; // JSON of that description, with complete validation.
mod target; //   The target of an HTTP callback.
mod allow; //    Allowed targets of callbacks.
mod ids; //      Distinct small types for ids, versions and times.

pub use allow::{AllowRules, Forbidden, Network, NotANetwork};
pub use calls::CallLimits;
pub use core::Timers;
pub use dead::{DEAD_LETTERS_MAX, DeadLetter};
pub use ids::{
    MembersEpoch, MonotonicMillis, NotAnId, Now, ReplicationFactor, Sequence, TimeSpan, TimerId,
    TimerPeer, TimerVersion,
};
pub use input::{
    Call, CallId, Page, Seen, TimerAction, TimerAnswer, TimerInput, TimerRefusal, TimerRequest,
    TimerRule, TimerSettings,
};
pub use members::{Members, TimerMember};
pub use message::{RequestId, TimerMessage, TimerQuery};
pub use record::{Record, TimerLife, TimerState};
pub use snapshot::{Parted, SnapshotError, SnapshotWalk};
pub use spec::{BODY_BYTES_MAX, Callback, Retry, TimerSpec, TimerTag};
pub use stats::{LATENESS_BOUNDS, Lateness, Stats};
pub use table::STAGGER;
pub use target::HttpTarget;
pub use wheel::Wheel;

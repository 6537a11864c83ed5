//! What is due, whose it is, who pops it: a reliable timer service, thought through without a clock,
//! a socket, a thread or chance. `server` feeds it real events, `sim` invented ones.
//!
//! `docs/timers.md` tells what it promises and how. All nodes run the same code over the map's
//! members; a timer is kept by the nodes that rank first for its id, and the first of them pops it.

mod core; //     Start here: one input in, actions out.
mod input; //    Everything that can move it, and all it can ask for.
pub mod message; // What nodes say to each other, with arrows.
mod change; //   A timer is made, changed, deleted: coordinator, primary, replicas.
mod finished; // What was answered and may be asked for again.
mod pop; //      It comes due: the call, telling the others, what follows a failure.
mod doubt; //    Asking before popping, where something may have been missed.
mod resync; //   Handing over when members change.
mod follow; //   Who follows which epoch.
mod look; //     Showing what is there.
mod lease; //    Until when a node may serve.
mod turned; //   Clients of a node that may not serve.
mod snapshot; // Timers through a graceful stop of the whole cluster.
mod members; //  Who keeps which timer.
mod record; //   A timer as it travels.
mod table; //    All timers of a node, in few bytes.
mod wheel; //    What is due next.
mod calls; //    Which callback starts now and which waits.
mod stats; //    Counts, lateness, tags.
mod dead; //     Pops that were given up.
pub mod spec; // What a client asks for.
pub mod json; // How that is written, and everything that can be wrong with it.
mod target; //   Where an HTTP callback goes.
mod allow; //    Where callbacks may go.
mod ids; //      Ids, versions and times: small types that cannot be mixed up.

pub use allow::{AllowRules, Forbidden, Network, NotANetwork};
pub use calls::CallLimits;
pub use core::Timers;
pub use dead::{DEAD_LETTERS_MAX, DeadLetter};
pub use ids::{
    Epoch, Moment, NodeId, NotAnId, Now, ReplicationFactor, Sequence, Span, TimerId, Version,
};
pub use input::{Action, Answer, Call, CallId, Input, Page, Refusal, Rule, Seen, Settings, Wish};
pub use members::{Member, Members};
pub use message::{Message, RequestId, Sight};
pub use record::{Life, Progress, Record};
pub use snapshot::{Parted, SnapshotError};
pub use spec::{BODY_BYTES_MAX, Callback, Retry, Spec, Tag};
pub use stats::{LATENESS_BOUNDS, Lateness, Stats};
pub use table::STAGGER;
pub use target::HttpTarget;
pub use wheel::Wheel;

//! What is due, whose it is, who pops it: a reliable timer service, thought through without a clock,
//! a socket, a thread or chance. `server` feeds it real events, `sim` invented ones.

mod ids; //      Ids, versions and times: small types that cannot be mixed up.
pub mod spec; // What a client asks for.
mod target; //   Where an HTTP callback goes.
pub mod json; // How that is written, and everything that can be wrong with it.
mod wheel; //    What is due next.

pub use ids::{
    Epoch, Moment, NodeId, NotAnId, Now, ReplicationFactor, Sequence, Span, TimerId, Version,
};
pub use spec::{BODY_BYTES_MAX, Callback, Retry, Spec, Tag};
pub use target::HttpTarget;
pub use wheel::Wheel;

//! What is due, whose it is, who pops it: a reliable timer service, thought through without a clock,
//! a socket, a thread or chance. `server` feeds it real events, `sim` invented ones.

mod ids; //   Ids, versions and times: small types that cannot be mixed up.
mod wheel; // What is due next.

pub use ids::{
    Epoch, Moment, NodeId, NotAnId, Now, ReplicationFactor, Sequence, Span, TimerId, Version,
};
pub use wheel::Wheel;

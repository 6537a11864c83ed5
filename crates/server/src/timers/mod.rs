//! Timers on a real node: the shell around the `timers` crate, which decides everything.
//!
//! The core stands behind one lock, held for as long as it thinks and no longer. Whoever has something
//! for it - an HTTP request, another node's message, a callback that has ended, a new map, the time -
//! takes the lock, hands it in and carries out what comes back. One thread makes callbacks, keeps the
//! links to other nodes and wakes the core when something is due.

mod hub; //       Start here: one input in, actions carried out.
mod service; //   The thread: time, callbacks, links.
mod links; //     To and from other nodes.
mod callbacks; // Making a callback: HTTP, a message, a command.
mod routes; //    `/timers` and what is under it.
mod answers; //   What a client is shown.
mod judge; //     Where callbacks may go.
mod question; //  What a client of TIMER.* waits for.
mod metrics; //   This node's numbers, for `/metrics`.
mod keep; //      Timers through a stop of the whole cluster, and from one life to the next.

pub(crate) use hub::Hub;
pub(crate) use judge::judge_now;
pub(crate) use keep::{CARRIED, Carried};
pub(crate) use metrics::prometheus;
pub(crate) use question::{Question, Resume};
pub(crate) use routes::routes;
pub(crate) use service::{Service, prepare};

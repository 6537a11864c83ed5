//! Timers on a real node: the I/O shell around the `timers` crate, which makes all decisions.
//!
//! The core is behind one lock, held only while it computes. A caller with an input for it - an HTTP request,
//! another node's message, a finished callback, a new map, the time - takes the lock, passes the input and
//! carries out the resulting actions. One thread makes callbacks, keeps the links to other nodes and wakes the
//! core when something is due.

mod hub; //       Start here: one input in, actions carried out.
mod service; //   The thread: time, callbacks, links.
mod links; //     Links to and from other nodes.
mod callbacks; // Making a callback: HTTP, a message, a command.
mod routes; //    `/timers` and the paths under it.
mod answers; //   Replies to clients.
mod judge; //     Permitted targets of callbacks.
mod metrics; //   This node's numbers, for `/metrics`.
mod keep; //      Timers that survive a stop or crash of the whole cluster, or a new life of the process.
mod saver; //     Saves the timers of a running node every few seconds.

pub(crate) use hub::Hub;
pub(crate) use judge::judge_now;
pub(crate) use keep::{CARRIED, Carried};
pub(crate) use metrics::prometheus;
pub(crate) use routes::routes;
pub(crate) use service::{Service, prepare};

//! Sockets and event loops for the I/O threads of `server` and `proxy`: what both need, written once. It knows
//! none of our other crates.

mod poller; //      Start here: the epoll instance of a thread.
mod readiness; //   A socket's readiness in an edge-triggered poll.
mod stream; //      A non-blocking connection, with or without TLS.
mod tls; //         TLS on a non-blocking socket.
mod send_buffer; // Bytes on their way to a stream.
mod accept; //      Listening, accepting, and choosing a worker.
mod configure; //   Socket options.
mod mailbox; //     Messages from other threads to an event loop.
mod http; //        The Host header of an HTTP request.
mod guesses; //     Wrong passwords by address.
#[cfg(test)]
mod testing;

pub use accept::{Acceptor, listen, refuse, take_least_loaded};
pub use configure::{Keepalive, configure};
pub use guesses::{GUESSES_AT_ONCE, Guesses};
pub use http::{host_name, is_address_or_localhost};
pub use mailbox::Mailbox;
pub use poller::{LISTENER, Poller, SECOND_LISTENER, WAKER};
pub use readiness::Readiness;
pub use send_buffer::SendBuffer;
pub use stream::{Stream, must_wait};

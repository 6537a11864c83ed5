//! Tests of the any-port: simulated nodes around the pure pipeline, and the same nodes behind sockets.

mod batching; // Any batching of any requests, with faults.
mod nodes; //    Simulated nodes.
mod rules; //    Single rules of the pipeline.
mod sockets; //  A session with real sockets.

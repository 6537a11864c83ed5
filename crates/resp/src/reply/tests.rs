//! Tests of `reply.rs`.

//! Tests of `reply_parser.rs`.

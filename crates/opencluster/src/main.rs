//! The binary: command line, configuration, and the commands people type.
fn main() {}

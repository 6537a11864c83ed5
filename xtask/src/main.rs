//! Every chore as `cargo xtask NAME`.
fn main() {}

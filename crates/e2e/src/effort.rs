//! The amount of work a test does: set by `cargo xtask test --quick` and `cargo xtask nightly`
//! through the environment, normal otherwise.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Quick,
    Normal,
    Nightly,
}

impl Effort {
    pub fn of_this_run() -> Effort {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| value == "1");
        if is_set("OPENCLUSTER_QUICK") {
            Effort::Quick
        } else if is_set("OPENCLUSTER_NIGHTLY") {
            Effort::Nightly
        } else {
            Effort::Normal
        }
    }

    /// Returns the amount for this effort: a tenth when quick, ten times as much at night.
    pub fn of_normally(self, amount: usize) -> usize {
        match self {
            Effort::Quick => amount / 10,
            Effort::Normal => amount,
            Effort::Nightly => amount * 10,
        }
    }
}

//! The deadline of a WAIT, or of a wait for keys.

use std::time::Instant;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitUntil {
    At(Instant),
    ForEver,
}

impl WaitUntil {
    pub(crate) fn at(self) -> Option<Instant> {
        match self {
            WaitUntil::At(at) => Some(at),
            WaitUntil::ForEver => None,
        }
    }

    pub(crate) fn is_over(self) -> bool {
        self.at().is_some_and(|at| at <= Instant::now())
    }
}

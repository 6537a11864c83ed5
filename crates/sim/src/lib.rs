//! A whole cluster in one thread under virtual time, and the checkers of the invariants.

//! What a command may ask of the node around it: everything that is not keys and not its own
//! connection. The server answers; tests have a small host of their own.

/// The node, as commands see it.
pub trait Host {}

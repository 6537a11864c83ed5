//! What a command does: table entry, parse, run on locked slots, reply and effects; a connection's state. Pure.

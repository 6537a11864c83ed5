//! What a command does: table entry, parse, run on locked slots, reply and effects; a connection's state. Pure.
pub mod settings; // What a node was told: one table for flags, files, environment and CONFIG.

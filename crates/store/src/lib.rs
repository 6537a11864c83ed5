//! What a node holds: slot tables, items, expiry, eviction. No locks, no clock.

//! What a node decides: the map and its changes, balance. Pure state machines: (event, now) -> actions.

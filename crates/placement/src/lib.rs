//! Where a thing lives: slots, hashmasks, rendezvous ranking, weighted server maps. Pure functions.

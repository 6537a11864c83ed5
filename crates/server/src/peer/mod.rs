//! The other nodes: how processes find each other, prove who they are, and talk.
//!
//! Every pair of processes has one control link (Raft, leases, balancing) and, in each direction, one
//! data link (effects, fills, acknowledgements), so that a fill can delay no lease. Links are made
//! here and handed over.
mod hello; //     The first words on a link, and every way in which they can end.
mod handshake; // Saying them, from both ends.
mod proof; //     Proving to know the secret.
mod frame; //     Messages in frames.
mod boottime; //  The clock of leases, and the lease.
mod chance; //    Ids, boots and nonces.
const PROTOCOL_VERSION: u32 = 1;

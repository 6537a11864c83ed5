//! The directory of nodes that clients may use now. `field.rs` updates it, every client reads it.
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A node's process: a restarted node at the same address is another resident.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resident {
    pub address: SocketAddr,
    pub started: Instant,
}

#[derive(Clone, Default, Debug)]
pub struct Town(Arc<Mutex<Vec<Resident>>>);

impl Town {
    pub fn set(&self, residents: Vec<Resident>) {
        *self.0.lock().expect("it is only read and written") = residents;
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.residents().iter().map(|resident| resident.address).collect()
    }

    /// Returns whether the process that had this address at `then` still runs.
    pub fn has_stood_since(&self, address: SocketAddr, then: Instant) -> bool {
        let is_same = |resident: &Resident| resident.address == address && resident.started <= then;
        self.residents().iter().any(is_same)
    }

    fn residents(&self) -> Vec<Resident> {
        self.0.lock().expect("it is only read and written").clone()
    }
}

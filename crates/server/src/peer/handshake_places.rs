//! Limits on concurrent handshakes: in total, for each address, and apart for the addresses of members, so that
//! strangers who connect and say nothing do not keep members from linking again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Maximum number of concurrent handshakes of strangers; the same number for members. Every node of a large cluster
/// may dial at once after a network break. Each place is held for three seconds at most.
const HANDSHAKES_MAX: usize = 128;
/// Maximum number of concurrent handshakes from one address: several nodes of one machine may come at once.
const PER_ADDRESS_MAX: usize = 32;

/// The concurrent handshakes.
#[derive(Default)]
pub(super) struct HandshakePlaces(Mutex<PlacesTaken>);

#[derive(Default)]
struct PlacesTaken {
    strangers: HashMap<IpAddr, usize>,
    members: usize,
}

/// A place for one handshake; dropping it frees the place.
pub(super) struct HandshakePlace {
    of: Arc<HandshakePlaces>,
    /// `None` for a member's place.
    stranger: Option<IpAddr>,
}

impl HandshakePlaces {
    /// Takes a place, if there is one for this address.
    pub(super) fn take(
        places: &Arc<HandshakePlaces>,
        from: IpAddr,
        is_member: bool,
    ) -> Option<HandshakePlace> {
        let from = from.to_canonical();
        let mut taken = places.0.lock();
        if is_member && taken.members < HANDSHAKES_MAX {
            taken.members += 1;
            return Some(HandshakePlace { of: Arc::clone(places), stranger: None });
        }
        let total: usize = taken.strangers.values().sum();
        let own = taken.strangers.get(&from).copied().unwrap_or(0);
        if total >= HANDSHAKES_MAX || own >= PER_ADDRESS_MAX {
            return None;
        }
        taken.strangers.insert(from, own + 1);
        Some(HandshakePlace { of: Arc::clone(places), stranger: Some(from) })
    }
}

impl Drop for HandshakePlace {
    fn drop(&mut self) {
        let mut taken = self.of.0.lock();
        let Some(from) = self.stranger else {
            taken.members -= 1;
            return;
        };
        let own = taken.strangers.get_mut(&from).expect("this place was counted");
        *own -= 1;
        if *own == 0 {
            taken.strangers.remove(&from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn strangers_leave_places_for_others_and_for_members() {
        let places = Arc::default();
        let take = |from, is_member| HandshakePlaces::take(&places, from, is_member);
        let one: Vec<_> = (0..1_000).filter_map(|_| take(ip(1), false)).collect();
        assert_eq!(one.len(), PER_ADDRESS_MAX);
        let many: Vec<_> = (2..1_000).filter_map(|number| take(ip(number), false)).collect();
        assert_eq!(one.len() + many.len(), HANDSHAKES_MAX);
        assert!(take(ip(5_000), false).is_none());
        let members: Vec<_> = (0..1_000).filter_map(|_| take(ip(1), true)).collect();
        assert_eq!(members.len(), HANDSHAKES_MAX);
        drop((one, many, members));
        assert!(places.0.lock().strangers.is_empty());
        assert!(take(ip(1), false).is_some() && take(ip(1), true).is_some());
    }
}

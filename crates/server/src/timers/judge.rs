//! Permitted targets of callbacks: checked when a timer is accepted (`routes.rs`, `host.rs`), and again
//! when it pops (`callbacks.rs`), after its name was resolved. The rules are in `timers::AllowRules`; this file
//! adds the facts that only a real machine knows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use timers::{AllowRules, Callback, Forbidden, HttpTarget};
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::hub::Hub;

/// Timeout for resolving a name; a slower name is checked when the timer pops.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(1);

/// Checks an address in a URI, or as much as possible of a name that is not resolved yet.
pub(crate) fn check_target(rules: &AllowRules, target: &HttpTarget) -> Result<(), Forbidden> {
    match target.ip() {
        Some(ip) => check_address(rules, SocketAddr::new(ip, target.port())),
        None => rules.check_name(target.port()),
    }
}

/// Checks an address that would be connected to. If nodes listen on its port, also checks whether the address
/// is this machine's, which may have more addresses than the map knows.
pub(super) fn check_address(rules: &AllowRules, address: SocketAddr) -> Result<(), Forbidden> {
    rules.check(address)?;
    // An IPv4 address in the form of IPv6 is judged as what it is.
    if rules.is_own_port(address.port()) && is_this_machine(address.ip().to_canonical()) {
        return Err(Forbidden::OwnPort(address));
    }
    Ok(())
}

/// Returns whether the system would reach an address without leaving the machine. Sends nothing.
fn is_this_machine(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((ip, 9))?;
        socket.local_addr()
    });
    ip.is_loopback() || from.is_ok_and(|from| from.ip() == ip)
}

/// Checks whether a timer with this callback may be accepted. The error is the reason against it.
pub(super) async fn judge(hub: &Hub, target: &HttpTarget) -> Result<(), String> {
    let found: Vec<SocketAddr> = match target.ip() {
        Some(_) => Vec::new(),
        None => match timeout(LOOK_UP_WITHIN, lookup_host((target.host(), target.port()))).await {
            Ok(Ok(found)) => found.collect(),
            // Perhaps the name has no address yet; it is checked again when the timer pops.
            Ok(Err(_)) | Err(_) => Vec::new(),
        },
    };
    let rules = hub.rules.read();
    check_target(&rules, target).map_err(|forbidden| in_words(&forbidden))?;
    let forbidden = found.into_iter().find_map(|address| check_address(&rules, address).err());
    forbidden.map_or(Ok(()), |forbidden| Err(in_words(&forbidden)))
}

/// Checks like [`judge`], for a caller that cannot wait: a name is checked when the timer pops.
pub(crate) fn judge_now(hub: &Hub, callback: &Callback) -> Result<(), String> {
    match callback {
        Callback::Http { target, .. } => {
            check_target(&hub.rules.read(), target).map_err(|forbidden| in_words(&forbidden))
        }
        Callback::Publish { .. } | Callback::Command(_) => Ok(()),
    }
}

fn in_words(forbidden: &Forbidden) -> String {
    format!("callback.http.uri: {forbidden}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_the_cluster_is_its_own_under_every_address_of_this_machine() {
        let mut rules = AllowRules::parse("any").unwrap();
        // Other nodes know this node by an address that is not this machine's.
        rules.set_own(vec!["203.0.113.1:6379".parse().unwrap()]);
        let judged = |address: &str| check_address(&rules, address.parse().unwrap());
        assert!(judged("127.0.0.1:6379").is_err());
        assert!(judged("127.8.9.10:6379").is_err());
        assert!(judged("[::1]:6379").is_err());
        assert!(judged("[::ffff:127.0.0.1]:6379").is_err());
        assert!(judged("[::ffff:127.0.0.2]:6379").is_err());
        assert!(judged("203.0.113.1:6379").is_err());
        assert_eq!(judged("127.0.0.1:6380"), Ok(()));
        assert_eq!(judged("203.0.113.77:6379"), Ok(()));
    }
}

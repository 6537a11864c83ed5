//! Allowed targets of callbacks. A timer makes this machine connect to an address that its client chose, so an
//! address is checked twice: when the timer is accepted, and again when its name is resolved for the pop.
//!
//! Called by the server's shell, which resolves names; this module handles only addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Addresses with a common prefix: `10.0.0.0/8`, `fc00::/7`, or a single address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// The setting `timers.allow-callbacks`, and the addresses that no setting allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllowRules {
    networks: Vec<Network>,
    /// The addresses on which the cluster itself listens: a callback there would let a client of timers talk to
    /// nodes as if it were one of them.
    own: Vec<SocketAddr>,
}

/// The reason why an address may not be called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forbidden {
    NotAllowed(IpAddr),
    OwnPort(SocketAddr),
    /// A name with a port on which nodes listen: the name may resolve differently between the check and the call.
    NamedOwnPort(u16),
}

/// The invalid entry of the setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotANetwork(pub String);

const DEFAULT: [&str; 6] =
    ["127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

impl AllowRules {
    /// Allows loopback and private networks. Not link-local ones: clouds serve their credentials there.
    pub fn local() -> AllowRules {
        let network = |text: &&str| text.parse().expect("the defaults are networks");
        AllowRules { networks: DEFAULT.iter().map(network).collect(), own: Vec::new() }
    }

    /// Allows nothing.
    pub fn none() -> AllowRules {
        AllowRules { networks: Vec::new(), own: Vec::new() }
    }

    /// Parses networks and addresses separated by commas: `10.0.0.0/8, 192.0.2.7`. `local` means the default
    /// networks, `any` all addresses, an empty text none.
    pub fn parse(text: &str) -> Result<AllowRules, NotANetwork> {
        let mut networks = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            match entry {
                "local" => networks.extend(AllowRules::local().networks),
                "any" => networks.extend([Network::ALL_V4, Network::ALL_V6]),
                network => networks.push(network.parse()?),
            }
        }
        Ok(AllowRules { networks, own: Vec::new() })
    }

    /// Sets the addresses the cluster listens on, replacing the previous ones.
    pub fn set_own(&mut self, own: Vec<SocketAddr>) {
        self.own = own;
    }

    /// Returns whether any node of the cluster listens on this port.
    pub fn is_own_port(&self, port: u16) -> bool {
        self.own.iter().any(|own| own.port() == port)
    }

    /// Checks a name before it is resolved; its addresses are checked after that.
    pub fn check_name(&self, port: u16) -> Result<(), Forbidden> {
        if self.is_own_port(port) { Err(Forbidden::NamedOwnPort(port)) } else { Ok(()) }
    }

    pub fn check(&self, to: SocketAddr) -> Result<(), Forbidden> {
        let ip = to.ip().to_canonical();
        if self.own.iter().any(|own| is_same_place(*own, ip, to.port())) {
            return Err(Forbidden::OwnPort(to));
        }
        if !self.networks.iter().any(|network| network.contains(ip)) {
            return Err(Forbidden::NotAllowed(ip));
        }
        Ok(())
    }
}

/// Returns whether a callback would reach the cluster's own address. A node bound to every address, or to loopback,
/// answers under any name of its machine, and we do not know them all: in these cases the port alone decides.
fn is_same_place(own: SocketAddr, ip: IpAddr, port: u16) -> bool {
    let own_ip = own.ip().to_canonical();
    let is_here = own_ip.is_unspecified() || ip.is_unspecified();
    let both_loopback = own_ip.is_loopback() && ip.is_loopback();
    own.port() == port && (own_ip == ip || is_here || both_loopback)
}

impl Network {
    const ALL_V4: Network = Network { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), prefix: 0 };
    const ALL_V6: Network = Network { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), prefix: 0 };

    fn contains(&self, ip: IpAddr) -> bool {
        match (self.address, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => {
                (own.to_bits() ^ ip.to_bits()).leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(own), IpAddr::V6(ip)) => {
                (own.to_bits() ^ ip.to_bits()).leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Network, NotANetwork> {
        let wrong = || NotANetwork(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= most),
            None => Some(most),
        };
        Ok(Network { address, prefix: prefix.ok_or_else(wrong)? })
    }
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Forbidden::NotAllowed(ip) => {
                write!(f, "callbacks to {ip} are not allowed by timers.allow-callbacks")
            }
            Forbidden::NamedOwnPort(port) => {
                write!(f, "nodes of the cluster listen on port {port}: give an address, not a name")
            }
            Forbidden::OwnPort(to) => write!(f, "{to} is one of the cluster's own ports"),
        }
    }
}

impl fmt::Display for NotANetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "timers.allow-callbacks: invalid entry `{}`; use a network, an address, local or any",
            self.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rules: &AllowRules, to: &str) -> bool {
        rules.check(to.parse().expect("an address")).is_ok()
    }

    #[test]
    fn by_default_callbacks_stay_at_home() {
        let rules = AllowRules::local();
        for to in ["127.0.0.1:80", "[::1]:80", "10.255.0.1:1", "172.31.0.1:1", "192.168.9.9:1"] {
            assert!(allows(&rules, to), "{to}");
        }
        assert!(allows(&rules, "[::ffff:10.0.0.1]:1"), "an IPv4 address in IPv6 clothes");
        for to in ["8.8.8.8:80", "172.32.0.1:1", "169.254.169.254:80", "[fe80::1]:1", "[2001::]:1"]
        {
            assert!(!allows(&rules, to), "{to}");
        }
        assert!(!allows(&rules, "[::ffff:8.8.8.8]:80"));
        assert!(!allows(&rules, "0.0.0.0:80"));
    }

    #[test]
    fn the_setting_widens_and_narrows() {
        let rules = AllowRules::parse("203.0.113.0/24, 198.51.100.7").unwrap();
        assert!(allows(&rules, "203.0.113.200:80") && allows(&rules, "198.51.100.7:80"));
        assert!(!allows(&rules, "127.0.0.1:80") && !allows(&rules, "198.51.100.8:80"));
        assert!(allows(&AllowRules::parse("any").unwrap(), "[2001::]:1"));
        assert!(!allows(&AllowRules::parse("").unwrap(), "127.0.0.1:80"));
        let both = AllowRules::parse("local,192.0.2.0/24").unwrap();
        assert!(allows(&both, "127.0.0.1:80") && allows(&both, "192.0.2.1:80"));
    }

    #[test]
    fn the_clusters_own_ports_are_never_called() {
        let mut rules = AllowRules::parse("any").unwrap();
        let own = ["127.0.0.1:6379", "10.0.0.5:16379", "0.0.0.0:7379"];
        rules.set_own(own.iter().map(|own| own.parse().unwrap()).collect());
        let refused = [
            "127.0.0.1:6379",
            "127.0.0.2:6379",
            "[::1]:6379",
            "0.0.0.0:6379",
            "[::ffff:127.0.0.1]:6379",
            "10.0.0.5:16379",
            "192.168.0.1:7379",
        ];
        for to in refused {
            assert_eq!(rules.check(to.parse().unwrap()).map_err(|_| ()), Err(()), "{to}");
        }
        assert_eq!(rules.check_name(6379), Err(Forbidden::NamedOwnPort(6379)));
        assert_eq!(rules.check_name(8080), Ok(()));
        assert!(allows(&rules, "127.0.0.1:8080") && allows(&rules, "10.0.0.6:16379"));
    }

    #[test]
    fn a_setting_that_cannot_be_read_names_the_entry() {
        for wrong in ["10.0.0.0/33", "::/129", "localhost", "10.0.0.0/", "10.0.0/8"] {
            let text = format!("local, {wrong}");
            assert_eq!(AllowRules::parse(&text), Err(NotANetwork(wrong.to_owned())));
        }
    }
}

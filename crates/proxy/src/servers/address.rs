//! A server's address as an operator writes it. A server's identity is its place in the list, so a
//! list must not hold one twice.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// `host:port`. The host is a name or a number; IPv6 numbers stand in brackets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Without brackets, as certificates have it.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The first address the host's name stands for. May ask the network, and wait for it.
    pub fn resolve(&self) -> io::Result<SocketAddr> {
        let nothing = || io::Error::new(io::ErrorKind::NotFound, "the name stands for no address");
        (self.host.as_str(), self.port).to_socket_addrs()?.next().ok_or_else(nothing)
    }

    /// Reads `host:port,host:port,...`.
    pub fn list(text: &str) -> Result<Vec<Address>, AddressError> {
        let mut list: Vec<Address> = Vec::new();
        for part in text.split(',') {
            let address: Address = part.trim().parse()?;
            if list.contains(&address) {
                return Err(AddressError::Twice(address));
            }
            list.push(address);
        }
        Ok(list)
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address { host: address.ip().to_string(), port: address.port() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError::Form(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host = match host.strip_prefix('[').map(|inner| inner.strip_suffix(']')) {
            Some(Some(inner)) => inner,
            Some(None) => return Err(wrong()),
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| digits && *port > 0).ok_or_else(wrong)?;
        let odd = |letter: char| letter.is_whitespace() || letter.is_control() || letter == ',';
        if host.is_empty() || host.contains(odd) {
            return Err(wrong());
        }
        Ok(Address { host: host.to_owned(), port })
    }
}

/// Why a text names no server, or no list of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddressError {
    Form(String),
    Twice(Address),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Form(text) => {
                write!(f, "{text:?} is no server: one is written like 10.0.0.7:6379")
            }
            AddressError::Twice(address) => write!(f, "{address} stands in the list twice"),
        }
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_printed_as_it_was_read() {
        for text in ["10.0.0.7:6379", "cache-1.example:1", "[::1]:65535"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_is_quoted_back() {
        for text in [
            "",
            "host",
            "host:",
            ":6379",
            "host:0",
            "host:+7",
            "host:65536",
            "::1:7",
            "[::1:7",
            "a b:7",
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert_eq!(error, AddressError::Form(text.to_owned()));
        }
    }

    #[test]
    fn a_server_stands_in_the_list_once() {
        assert_eq!(Address::list("a:1, b:1").unwrap().len(), 2);
        assert_eq!(
            Address::list("a:1,b:1,a:1").unwrap_err().to_string(),
            "a:1 stands in the list twice"
        );
        assert!(Address::list("a:1,").is_err());
    }
}

//! The target of an HTTP callback: a URI, parsed once when it is accepted.
//!
//! Called by `json.rs`; `allow.rs` then checks the address, `calls.rs` groups calls by `authority`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::spec::URI_BYTES_MAX;

/// A URI `http://host:port/path`, and where its parts are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HttpTarget {
    uri: String,
    /// End of host and port in `uri`.
    authority_end: u16,
}

const SCHEME: &str = "http://";

impl HttpTarget {
    /// Parses a URI. The error says what is wrong with it, to be put after "callback.http.uri".
    pub fn parse(uri: &str) -> Result<HttpTarget, &'static str> {
        if uri.len() > URI_BYTES_MAX {
            return Err("is longer than 2048 bytes");
        }
        if !uri.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("contains spaces, control characters or non-ASCII characters");
        }
        let rest = uri.strip_prefix(SCHEME).ok_or("must begin with http://")?;
        let length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        if rest[length..].contains('#') {
            return Err("has a fragment, which is never sent");
        }
        check_authority(&rest[..length])?;
        let end = SCHEME.len() + length;
        let authority_end = u16::try_from(end).expect("a URI has at most URI_BYTES_MAX bytes");
        Ok(HttpTarget { uri: uri.to_owned(), authority_end })
    }

    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns host and port as written: the key by which calls are limited.
    pub fn authority(&self) -> &str {
        &self.uri[SCHEME.len()..usize::from(self.authority_end)]
    }

    /// Returns the path and query for the request line.
    pub fn path(&self) -> String {
        match &self.uri[usize::from(self.authority_end)..] {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        }
    }

    /// Returns the name or address to connect to; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        let (host, _) = split_port(self.authority());
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    pub fn port(&self) -> u16 {
        split_port(self.authority()).1.and_then(|port| port.parse().ok()).unwrap_or(80)
    }

    /// Returns the address, if the URI names one: then it can be checked without resolving a name.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host().parse().ok()
    }
}

impl fmt::Display for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri)
    }
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    }
}

fn check_authority(authority: &str) -> Result<(), &'static str> {
    if authority.contains('@') {
        return Err("contains a user name; credentials are not allowed in a timer");
    }
    let (host, port) = split_port(authority);
    if port.is_some_and(|port| !is_port(port)) {
        return Err("has a port that is not a number from 1 to 65535");
    }
    if let Some(inside) = host.strip_prefix('[') {
        let address = inside.strip_suffix(']').and_then(|inside| inside.parse::<Ipv6Addr>().ok());
        return address
            .map(|_| ())
            .ok_or("has brackets around something that is not an IPv6 address");
    }
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if host.is_empty() || host.len() > 253 || !host.bytes().all(is_name_byte) {
        return Err("has no host, or one that is neither a name nor an address");
    }
    // `http://2130706433/` and `http://0x7f.1/` are loopback to some resolvers: an address in an unusual
    // notation would pass for a name.
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let is_numeric = last.starts_with(|first: char| first.is_ascii_digit());
    if is_numeric && host.parse::<IpAddr>().is_err() {
        return Err("has a host that ends in a number and is not an IPv4 address");
    }
    Ok(())
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_taken_apart() {
        let target = HttpTarget::parse("http://example.com:8080/a/b?c=d").unwrap();
        assert_eq!((target.host(), target.port()), ("example.com", 8080));
        assert_eq!((target.authority(), target.path().as_str()), ("example.com:8080", "/a/b?c=d"));
        assert_eq!(target.ip(), None);
        let bare = HttpTarget::parse("http://[::1]?x").unwrap();
        assert_eq!((bare.host(), bare.port(), bare.path().as_str()), ("::1", 80, "/?x"));
        assert!(bare.ip().is_some());
        assert_eq!(HttpTarget::parse("http://a").unwrap().path(), "/");
    }

    #[test]
    fn what_cannot_be_called_is_refused() {
        let long = format!("http://a/{}", "x".repeat(URI_BYTES_MAX));
        let wrong = [
            "",
            "https://a/",
            "ftp://a/",
            "/path",
            "http://",
            "http:///path",
            "http://user:pass@a/",
            "http://a:0/",
            "http://a:65536/",
            "http://a:/",
            "http://a:+1/",
            "http://[::1/",
            "http://[1.2.3.4]/",
            "http://a b/",
            "http://a/\u{e9}",
            "http://a/#there",
            "http://2130706433/",
            "http://127.1/",
            "http://1.2.3.256/",
            "http://0x7f.0.0.0x1/",
            long.as_str(),
        ];
        for uri in wrong {
            assert!(HttpTarget::parse(uri).is_err(), "{uri}");
        }
    }
}

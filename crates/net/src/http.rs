//! The Host header of an HTTP request, by which a listener recognises requests that are not meant for it.
//!
//! A web page on the internet may let its own name point at 127.0.0.1 and then read the responses from there as
//! if they were its own (DNS rebinding). Such a request carries the page's name in Host.

use std::net::IpAddr;

/// Returns the Host without its port, and an IPv6 address without its brackets.
pub fn host_name(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

/// Returns whether a host name is an address or `localhost`: no page of another site can have it.
pub fn is_address_or_localhost(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_safe_with_or_without_a_port() {
        let cases = [
            ("127.0.0.1:7379", true),
            ("10.1.2.3", true),
            ("[::1]:7379", true),
            ("[::1]", true),
            ("localhost:7379", true),
            ("LOCALHOST", true),
            ("db1.example:7379", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ];
        for (host, expected) in cases {
            assert_eq!(is_address_or_localhost(host_name(host)), expected, "{host}");
        }
    }
}

//! The plain Redis server that keeps a key, chosen by weighted rendezvous hashing over a list of weights such as
//! `4.4.0.4`.
//!
//! A server's score for a key is `-weight / ln(u)`, where `u` is drawn from a hash of both; the highest score wins.
//! So shares follow weights, and changing one weight moves only keys to or from that server. Called by `fleet`.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::hash_tag;

pub const SERVERS_MAX: usize = 1024;

/// One weight per server; a server is identified by its index in the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerMap {
    /// At least one is not 0.
    weights: Vec<u32>,
}

impl ServerMap {
    pub fn new(weights: Vec<u32>) -> Result<ServerMap, ServerMapError> {
        if weights.len() > SERVERS_MAX {
            return Err(ServerMapError::TooManyServers(weights.len()));
        }
        if weights.iter().all(|weight| *weight == 0) {
            return Err(ServerMapError::NoWeight);
        }
        Ok(ServerMap { weights })
    }

    pub fn weights(&self) -> &[u32] {
        &self.weights
    }

    /// Returns the index of the server that keeps this key.
    pub fn server_of(&self, key: &[u8]) -> usize {
        let tag = hash_tag(key);
        let takes_part = self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0);
        let mut weights = takes_part.clone().map(|(_, weight)| weight);
        let first = weights.next();
        // With equal weights the higher hash has the higher score, so no logarithm is needed.
        let are_equal = weights.all(|weight| Some(weight) == first);
        let mut best = (0, f64::NEG_INFINITY);
        for (server, weight) in takes_part {
            let hash = xxh3_64_with_seed(tag, server as u64);
            let score = if are_equal {
                upper_bits(hash) as f64
            } else {
                f64::from(*weight) / -ln_of_unit(hash)
            };
            if score > best.1 {
                best = (server, score);
            }
        }
        best.0
    }
}

/// Returns the upper 53 bits of the hash: as many as the fraction of an `f64` holds.
fn upper_bits(hash: u64) -> u64 {
    hash >> 11
}

/// Returns the logarithm of a number strictly between 0 and 1, made from the upper 53 bits of a hash.
///
/// Uses `libm`, not the platform's logarithm: two proxies on different machines must agree to the last bit.
fn ln_of_unit(hash: u64) -> f64 {
    const STEPS: f64 = (1u64 << 53) as f64;
    let number = (upper_bits(hash) as f64 + 0.5) / STEPS;
    libm::log(number)
}

/// A change from one server map to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerMapChange {
    pub previous: ServerMap,
    pub current: ServerMap,
}

impl ServerMapChange {
    /// Returns the key's old and new server, if they differ.
    pub fn moves(&self, key: &[u8]) -> Option<(usize, usize)> {
        let (from, to) = (self.previous.server_of(key), self.current.server_of(key));
        (from != to).then_some((from, to))
    }
}

impl fmt::Display for ServerMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (server, weight) in self.weights.iter().enumerate() {
            if server > 0 {
                f.write_str(".")?;
            }
            weight.fmt(f)?;
        }
        Ok(())
    }
}

/// The reason why a text is not a valid server map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerMapError {
    Empty,
    /// The part with this number, counted from 1, is not a weight.
    Weight {
        part: usize,
        text: String,
    },
    NoWeight,
    TooManyServers(usize),
}

impl fmt::Display for ServerMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerMapError::Empty => {
                f.write_str("a server map is written like 4.4.0.4; this one is empty")
            }
            ServerMapError::Weight { part, text } => {
                write!(
                    f,
                    "weight {part} of the server map is {text:?}; a weight is a whole number from 0 to {}",
                    u32::MAX
                )
            }
            ServerMapError::NoWeight => {
                f.write_str("every weight of the server map is 0, so no server could keep a key")
            }
            ServerMapError::TooManyServers(servers) => {
                write!(
                    f,
                    "the server map has {servers} servers; at most {SERVERS_MAX} are possible"
                )
            }
        }
    }
}

impl std::error::Error for ServerMapError {}

impl FromStr for ServerMap {
    type Err = ServerMapError;

    fn from_str(text: &str) -> Result<ServerMap, ServerMapError> {
        if text.is_empty() {
            return Err(ServerMapError::Empty);
        }
        let parts = text.split('.').enumerate();
        ServerMap::new(
            parts.map(|(index, part)| weight(index + 1, part)).collect::<Result<_, _>>()?,
        )
    }
}

/// Parses a weight. Digits only: `parse` alone would also accept a leading `+`.
fn weight(part: usize, text: &str) -> Result<u32, ServerMapError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let wrong = || ServerMapError::Weight { part, text: text.to_owned() };
    if digits { text.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> ServerMap {
        text.parse().unwrap()
    }

    fn keys(count: usize) -> impl Iterator<Item = Vec<u8>> {
        (0..count).map(|number| format!("key:{number}").into_bytes())
    }

    fn shares(map: &ServerMap) -> Vec<f64> {
        let mut counts = vec![0; map.weights().len()];
        keys(100_000).for_each(|key| counts[map.server_of(&key)] += 1);
        counts.into_iter().map(|count| f64::from(count) / 100_000.0).collect()
    }

    #[test]
    fn a_map_is_printed_as_it_was_read() {
        for text in ["4.4.0.4", "1", "0.0.7", "4294967295.1"] {
            assert_eq!(map(text).to_string(), text);
        }
        assert_eq!(map("4.04").to_string(), "4.4");
    }

    #[test]
    fn shares_follow_weights_and_weight_0_gets_nothing() {
        let shares = shares(&map("1.2.0.5"));
        for (share, wanted) in shares.iter().zip([0.125, 0.25, 0.0, 0.625]) {
            assert!((share - wanted).abs() < 0.005, "{shares:?}");
        }
        assert_eq!(shares[2], 0.0);
    }

    #[test]
    fn one_changed_weight_moves_keys_only_to_or_from_that_server() {
        for (previous, current, changed) in
            [("4.4.0.4", "4.4.0.4.4", 4), ("4.4.4.4", "4.4.0.4", 2), ("4.4.4", "4.6.4", 1)]
        {
            let change = ServerMapChange { previous: map(previous), current: map(current) };
            let mut moved = 0;
            for (from, to) in keys(20_000).filter_map(|key| change.moves(&key)) {
                assert!(from == changed || to == changed, "{previous} -> {current}: {from}->{to}");
                moved += 1;
            }
            assert!(moved > 0);
        }
    }

    #[test]
    fn a_new_server_takes_its_share_and_no_more() {
        let change = ServerMapChange { previous: map("4.4.0.4"), current: map("4.4.0.4.4") };
        let moved = keys(100_000).filter(|key| change.moves(key).is_some()).count();
        assert!((24_500..25_500).contains(&moved), "{moved}");
    }

    #[test]
    fn keys_with_one_hash_tag_stay_together() {
        let map = map("4.4.4.4.4");
        assert_eq!(map.server_of(b"{user1}.name"), map.server_of(b"{user1}.mail"));
        assert_eq!(map.server_of(b"{user1}.name"), map.server_of(b"user1"));
    }

    /// A changed placement would make the keys of every running fleet unreachable.
    #[test]
    fn the_placement_never_changes() {
        let map = map("4.4.0.4.1");
        let servers: Vec<usize> = keys(24).map(|key| map.server_of(&key)).collect();
        assert_eq!(servers, PLACED);
    }
    const PLACED: [usize; 24] =
        [3, 0, 3, 1, 4, 1, 3, 0, 4, 1, 3, 3, 0, 3, 1, 0, 3, 0, 4, 0, 0, 1, 1, 1];

    #[test]
    fn bad_text_is_told_what_is_wrong() {
        let error = |text: &str| text.parse::<ServerMap>().unwrap_err().to_string();
        assert_eq!(error(""), "a server map is written like 4.4.0.4; this one is empty");
        for (text, part, shown) in [
            ("4.x.4", 2, "x"),
            ("-4.4", 1, "-4"),
            ("4..4", 2, ""),
            ("4.4.", 3, ""),
            ("+4", 1, "+4"),
            ("4. 4", 2, " 4"),
            ("4294967296", 1, "4294967296"),
        ] {
            let wanted = format!(
                "weight {part} of the server map is {shown:?}; a weight is a whole number from 0 to 4294967295"
            );
            assert_eq!(error(text), wanted);
        }
        assert_eq!(
            error("0.0"),
            "every weight of the server map is 0, so no server could keep a key"
        );
        let many = vec!["1"; SERVERS_MAX + 1].join(".");
        assert_eq!(error(&many), "the server map has 1025 servers; at most 1024 are possible");
        assert_eq!(map(&vec!["1"; SERVERS_MAX].join(".")).weights().len(), SERVERS_MAX);
    }
}

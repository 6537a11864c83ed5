//! Names that belong to the fleet on its servers: keys under `server.config.`, and connection names, by which
//! a switch of maps recognizes connections that still act on an older map.

use placement::{Slot, hash_tag};

use crate::config::{Epoch, KEYS};

/// Prefix of the fleet's own keys. SCAN, KEYS and DBSIZE hide them, and clients may not use them.
pub const RESERVED: &[u8] = b"server.config.";
/// The same prefix in a cluster, where keys that change together must share a slot.
const RESERVED_IN_CLUSTER: &[u8] = b"{server.config}.";

/// Pattern that matches the fleet's own keys, for SCAN and KEYS.
pub const RESERVED_PATTERN: &[u8] = b"server.config.*";

const MARKER: &[u8] = b"server.config.move.";
const DATA: &[u8] = b"server.config.data.";
const CONNECTION: &str = "fleet:";

pub fn is_reserved(key: &[u8]) -> bool {
    key.starts_with(RESERVED) || key.starts_with(RESERVED_IN_CLUSTER)
}

/// Returns the name of a configuration key in a cluster; `None` for any other key.
pub fn in_cluster(key: &[u8]) -> Option<Vec<u8>> {
    let ours = KEYS.iter().any(|name| name.as_bytes() == key);
    ours.then(|| [RESERVED_IN_CLUSTER, &key[RESERVED.len()..]].concat())
}

/// Returns the marker key at the taker. Its value is the token of the mover that is moving `key` now.
pub fn marker(key: &[u8]) -> Vec<u8> {
    beside(MARKER, key)
}

/// Returns the key at the taker that collects the elements of a large `key`.
pub fn data(key: &[u8]) -> Vec<u8> {
    beside(DATA, key)
}

/// Returns a name with this prefix in the slot of `key`. Two keys may share a name (`k` and `{k}`): then one
/// move waits for the other.
fn beside(prefix: &[u8], key: &[u8]) -> Vec<u8> {
    if hash_tag(key).len() < key.len() {
        return [prefix, key].concat();
    }
    if !key.is_empty() && !key.contains(&b'}') {
        return [prefix, b"{", key, b"}"].concat();
    }
    // The key cannot be its own hash tag (a brace that closes nothing), so use a number of the same slot.
    let slot = Slot::of(key);
    let tag = (0..u32::MAX).map(|number| number.to_string());
    let tag = tag.into_iter().find(|tag| Slot::of(tag.as_bytes()) == slot);
    let tag = tag.expect("numbers lead to every slot");
    [prefix, b"{", tag.as_bytes(), b"}", key].concat()
}

/// Returns the name of a connection that acts on the map of `epoch`. Epoch 0 means "not checked yet".
pub fn connection(id: &str, epoch: Epoch) -> String {
    format!("{CONNECTION}{id}:{}", epoch.number())
}

/// Returns the epoch in a connection's name, if the fleet owns the connection and it acts on maps.
pub fn epoch_of(name: &str) -> Option<Epoch> {
    let (_, epoch) = name.strip_prefix(CONNECTION)?.rsplit_once(':')?;
    epoch.parse().ok().map(Epoch::new)
}

/// Returns the same name with epoch 0, for a connection that has not checked the epoch yet.
pub fn without_epoch(name: &[u8]) -> Vec<u8> {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    [&name[..name.len() - digits], Epoch::NONE.number().to_string().as_bytes()].concat()
}

/// A connection of the fleet, as a server's `CLIENT LIST` reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The server's ID of the connection, as `CLIENT KILL ID` takes it.
    pub client_id: u64,
    /// The owner of the connection: the ID in its name.
    pub owner: String,
    pub epoch: Epoch,
}

/// Returns the fleet's connections in a server's `CLIENT LIST`.
pub fn connections(client_list: &str) -> Vec<Connection> {
    client_list.lines().filter_map(connection_of_line).collect()
}

fn connection_of_line(line: &str) -> Option<Connection> {
    let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name));
    let (owner, epoch) = field("name=")?.strip_prefix(CONNECTION)?.rsplit_once(':')?;
    Some(Connection {
        client_id: field("id=")?.parse().ok()?,
        owner: owner.to_owned(),
        epoch: Epoch::new(epoch.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_found_again_by_the_name_it_was_given() {
        let name = connection("proxy-1:a", Epoch::new(7));
        let list = format!(
            "id=3 addr=127.0.0.1:1 laddr=127.0.0.1:2 fd=8 name={name} age=1 cmd=get\n\
             id=4 addr=127.0.0.1:3 laddr=127.0.0.1:2 fd=9 name= age=1 cmd=get\n\
             id=5 addr=127.0.0.1:3 laddr=127.0.0.1:2 fd=9 name=fleet:x age=1 cmd=get\n"
        );
        let expected =
            Connection { client_id: 3, owner: "proxy-1:a".to_owned(), epoch: Epoch::new(7) };
        assert_eq!(connections(&list), [expected]);
    }

    #[test]
    fn the_fleets_own_keys_are_known_by_their_beginning() {
        for key in [marker(b"k"), data(b"k"), b"server.config.current".to_vec()] {
            assert!(is_reserved(&key));
        }
        assert!(!is_reserved(b"server.configuration"));
        for key in KEYS {
            let name = in_cluster(key.as_bytes()).unwrap();
            assert!(is_reserved(&name));
            assert_eq!(Slot::of(&name), Slot::of(b"server.config"));
        }
        assert_eq!(in_cluster(b"server.config.move.k"), None);
    }

    #[test]
    fn what_belongs_to_a_key_lies_in_its_slot() {
        for key in [&b"k"[..], b"{tag}k", b"a{tag}", b"{}k", b"a}b", b"a{b", b"}{", b"", b"{k}"] {
            for name in [marker(key), data(key)] {
                assert_eq!(Slot::of(&name), Slot::of(key), "{}", key.escape_ascii());
            }
        }
        assert_ne!(marker(b"k.data"), data(b"k"));
    }

    #[test]
    fn a_name_is_told_apart_from_its_epoch() {
        let name = connection("a:b", Epoch::new(12));
        assert_eq!(epoch_of(&name), Some(Epoch::new(12)));
        assert_eq!(without_epoch(name.as_bytes()), connection("a:b", Epoch::NONE).as_bytes());
        assert_eq!(epoch_of("fleet-listener:a"), None);
    }
}

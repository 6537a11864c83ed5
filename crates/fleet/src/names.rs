//! Names that belong to the fleet on its servers: keys under `server.config.`, and the names of
//! connections, by which a switch of maps knows who still acts on an older one.

use crate::config::Epoch;

/// Keys that begin so are the fleet's own: hidden from SCAN, KEYS and DBSIZE, refused to clients.
pub const RESERVED: &[u8] = b"server.config.";

/// The pattern of such keys, for SCAN and KEYS.
pub const RESERVED_PATTERN: &[u8] = b"server.config.*";

const MARKER: &[u8] = b"server.config.move.";
const DATA: &[u8] = b".data";
const CONNECTION: &str = "fleet:";

pub fn is_reserved(key: &[u8]) -> bool {
    key.starts_with(RESERVED)
}

/// The key at the taker whose value is the token of whoever is moving `key` just now.
pub fn marker(key: &[u8]) -> Vec<u8> {
    [MARKER, key].concat()
}

/// The key at the taker where the elements of a large `key` are gathered.
pub fn data(key: &[u8]) -> Vec<u8> {
    [MARKER, key, DATA].concat()
}

/// The name of a connection that acts on the map of `epoch`. Epoch 0 is "has not looked yet".
pub fn connection(id: &str, epoch: Epoch) -> String {
    format!("{CONNECTION}{id}:{}", epoch.number())
}

/// A connection of the fleet, as `CLIENT LIST` of a server tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The server's own number for it, as `CLIENT KILL ID` takes it.
    pub client_id: u64,
    /// Whose it is: the ID in its name.
    pub owner: String,
    pub epoch: Epoch,
}

/// The fleet's connections among those of a server's `CLIENT LIST`.
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
    }
}

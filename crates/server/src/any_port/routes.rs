//! Nodes by their client address, the node of a slot, and redirects.

use placement::Slot;

/// The client address of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NodeAddress {
    pub host: String,
    pub port: u16,
}

/// The part of the cluster's map that routing needs.
pub(crate) trait Routes {
    /// Returns the node that the client is connected to.
    fn here(&self) -> NodeAddress;

    /// Returns the node that serves a slot, as far as this node knows. For a slot without a primary it is this
    /// node, which replies with the right error.
    fn node_of(&self, slot: Slot) -> NodeAddress;
}

/// An error reply that says that a command did not run and should be sent again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Redirect {
    /// That node serves the slot.
    Moved(NodeAddress),
    /// That node accepts the command after ASKING.
    Ask(NodeAddress),
    /// The slot is moving between two nodes.
    TryAgain,
}

impl Redirect {
    /// Parses an error reply; returns `None` for any other error.
    pub(super) fn parse(reply: &[u8]) -> Option<Redirect> {
        let text = std::str::from_utf8(reply).ok()?.trim_end();
        if let Some(rest) = text.strip_prefix("-MOVED ") {
            return address(rest).map(Redirect::Moved);
        }
        if let Some(rest) = text.strip_prefix("-ASK ") {
            return address(rest).map(Redirect::Ask);
        }
        text.starts_with("-TRYAGAIN").then_some(Redirect::TryAgain)
    }
}

/// Parses the address in `slot host:port`.
fn address(text: &str) -> Option<NodeAddress> {
    let (host, port) = text.split_once(' ')?.1.rsplit_once(':')?;
    Some(NodeAddress { host: host.to_owned(), port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_are_read_as_nodes_write_them() {
        let at = |host: &str, port| NodeAddress { host: host.to_owned(), port };
        let parse = Redirect::parse;
        assert_eq!(
            parse(b"-MOVED 42 10.0.0.7:6380\r\n"),
            Some(Redirect::Moved(at("10.0.0.7", 6380)))
        );
        assert_eq!(parse(b"-MOVED 1 ::1:6379\r\n"), Some(Redirect::Moved(at("::1", 6379))));
        assert_eq!(parse(b"-ASK 1 a:1\r\n"), Some(Redirect::Ask(at("a", 1))));
        assert_eq!(parse(b"-TRYAGAIN later\r\n"), Some(Redirect::TryAgain));
        assert_eq!(parse(b"-MOVED nonsense\r\n"), None);
        assert_eq!(parse(b"-ERR no\r\n"), None);
    }
}

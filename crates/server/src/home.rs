//! The node, as the any-port sees it.

use commands::Table;
use placement::Slot;

use crate::any_port::{Home, NodeAddress, Routes};
use crate::shared::Shared;

impl Routes for Shared {
    fn here(&self) -> NodeAddress {
        let (ip, port) = (self.client_addr.ip(), self.client_addr.port());
        let host = if ip.is_unspecified() { "127.0.0.1".to_owned() } else { ip.to_string() };
        NodeAddress { host, port }
    }

    fn node_of(&self, slot: Slot) -> NodeAddress {
        let map = self.map();
        let primary = map.bucket_of(slot).primary().filter(|primary| *primary != self.data.me);
        let member = primary.and_then(|primary| map.member(primary));
        member.map_or_else(
            || self.here(),
            |member| NodeAddress { host: member.at.host.clone(), port: member.at.client },
        )
    }
}

impl Home for Shared {
    fn table(&self) -> &Table {
        &self.table
    }

    fn is_stopping(&self) -> bool {
        Shared::is_stopping(self)
    }

    fn wants_password(&self) -> bool {
        !self.settings.load().requirepass.is_empty()
    }

    fn clients_max(&self) -> usize {
        self.settings.load().any_maxclients as usize
    }

    fn query_bytes_max(&self) -> u64 {
        self.settings.load().client_query_buffer_limit
    }
}

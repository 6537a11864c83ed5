//! A fleet of real servers and a proxy in front of it, for one test.

use std::net::SocketAddr;

use e2e::{Client, Server};
use fleet::Address;
use proxy::{Options, Proxy};
use resp::Value;

pub(crate) struct Fleet {
    pub(crate) proxy: Proxy,
    pub(crate) servers: Vec<Server>,
}

impl Fleet {
    /// Starts this many servers of equal weight, and a proxy.
    pub(crate) fn of(servers: usize) -> Fleet {
        Fleet::with(servers, |_| {})
    }

    pub(crate) fn with(servers: usize, change: impl FnOnce(&mut Options)) -> Fleet {
        let servers: Vec<Server> = (0..servers).map(|_| Server::redis()).collect();
        let mut options = options(&servers);
        change(&mut options);
        let proxy = Proxy::start(options).unwrap_or_else(|error| panic!("{error}"));
        Fleet { proxy, servers }
    }

    pub(crate) fn client(&self) -> Client {
        Client::try_connect(self.proxy.address().port()).expect("the proxy takes connections")
    }
}

/// Returns the options of a proxy with one thread on a free port.
pub(crate) fn options(servers: &[Server]) -> Options {
    let address = |server: &Server| Address::plain("127.0.0.1", server.port());
    let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
    Options { threads: 1, ..Options::new(listen, servers.iter().map(address).collect()) }
}

pub(crate) fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// Returns the text of an error.
pub(crate) fn error(value: Value) -> String {
    let Value::Error(text) = value else { panic!("no error but {value:?}") };
    String::from_utf8(text).unwrap()
}

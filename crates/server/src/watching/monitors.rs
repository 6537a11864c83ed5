//! The connections that see every command (MONITOR). While there are none, a command pays only for reading a
//! counter.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use commands::{Args, Spec, visible_args};
use parking_lot::Mutex;
use store::Database;

use crate::clients::ConnectionRef;

#[derive(Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    list: Mutex<Vec<Monitor>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Monitor {
    pub id: u64,
    pub place: ConnectionRef,
}

impl Monitors {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    pub(crate) fn enter(&self, monitor: Monitor) {
        let mut list = self.list.lock();
        if list.iter().all(|other| other.id != monitor.id) {
            list.push(monitor);
        }
        self.count.store(list.len(), Relaxed);
    }

    pub(crate) fn leave(&self, id: u64) {
        if self.is_empty() {
            return;
        }
        let mut list = self.list.lock();
        list.retain(|monitor| monitor.id != id);
        self.count.store(list.len(), Relaxed);
    }

    pub(crate) fn all(&self) -> Vec<Monitor> {
        self.list.lock().clone()
    }
}

/// Returns the line that a monitor sees for a command in this database.
pub(crate) fn line(
    spec: &Spec,
    args: Args<'_>,
    database: Database,
    address: SocketAddr,
    now: Duration,
) -> Arc<[u8]> {
    let database = database.number();
    let (seconds, micros) = (now.as_secs(), now.subsec_micros());
    let mut line = format!("+{seconds}.{micros:06} [{database} {address}]").into_bytes();
    for arg in visible_args(spec, args) {
        line.push(b' ');
        quote(arg, &mut line);
    }
    line.extend_from_slice(b"\r\n");
    line.into()
}

/// Appends an argument in quotes, with unprintable bytes escaped.
fn quote(arg: &[u8], to: &mut Vec<u8>) {
    to.push(b'"');
    for byte in arg {
        match byte {
            b'"' | b'\\' => to.extend([b'\\', *byte]),
            b'\n' => to.extend(b"\\n"),
            b'\r' => to.extend(b"\\r"),
            b'\t' => to.extend(b"\\t"),
            0x07 => to.extend(b"\\a"),
            0x08 => to.extend(b"\\b"),
            b' '..=b'~' => to.push(*byte),
            byte => to.extend(format!("\\x{byte:02x}").bytes()),
        }
    }
    to.push(b'"');
}

#[cfg(test)]
mod tests {
    use commands::{OwnedArgs, Table};

    use super::*;

    #[test]
    fn a_line_quotes_arguments_and_hides_passwords() {
        let table = Table::default();
        let shown = |args: &[&[u8]]| {
            let owned = OwnedArgs::new(args.iter().copied());
            let spec = table.find(args[0]).expect("a command");
            let address = SocketAddr::from(([127, 0, 0, 1], 5));
            let database = Database::new(3).expect("small enough");
            let line =
                line(spec, owned.args(), database, address, Duration::from_micros(1_000_002));
            String::from_utf8(line.to_vec()).unwrap()
        };
        assert_eq!(
            shown(&[b"set", b"a\"b", b"\x00\n\xff"]),
            "+1.000002 [3 127.0.0.1:5] \"set\" \"a\\\"b\" \"\\x00\\n\\xff\"\r\n"
        );
        assert_eq!(
            shown(&[b"AUTH", b"secret"]),
            "+1.000002 [3 127.0.0.1:5] \"AUTH\" \"(redacted)\"\r\n"
        );
    }
}

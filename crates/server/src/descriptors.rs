//! Shares the limit of open files among the ports, so that strangers at one port cannot use up the descriptors that
//! the node's log, its links or another port need. Called at start, and when `maxclients` is changed.

use settings::{ExtraPort, Settings};

/// Descriptors for files, links to other nodes, and anything short-lived.
const OWN: u64 = 64;
/// Descriptors of an I/O thread: its epoll, its waker.
const PER_THREAD: u64 = 4;
/// Maximum descriptors for handshakes on the peer port, and for links.
const PEERS_MAX: u64 = 320;
/// Maximum descriptors for HTTP connections.
const HTTP_MAX: u64 = 544;
/// Descriptors that one client of the any-port needs on average: its own, and some for nodes.
const PER_ANY_CLIENT: u64 = 5;
/// Clients that are let in whatever the limit.
const CLIENTS_MIN: u64 = 16;

/// The share of each port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DescriptorShares {
    pub(crate) clients: u32,
    pub(crate) any_clients: u32,
    pub(crate) http: u32,
}

impl DescriptorShares {
    /// Divides the limit of open files.
    pub(crate) fn of(limit: u64, settings: &Settings) -> DescriptorShares {
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let http = HTTP_MAX.min(limit / 8);
        let peers = PEERS_MAX.min(limit / 8);
        let any_clients = match settings.any_port {
            ExtraPort::Off => 0,
            ExtraPort::At(_) => u64::from(settings.any_maxclients).min(limit / 4 / PER_ANY_CLIENT),
        };
        let threads = PER_THREAD * u64::from(settings.io_threads.max(1));
        let taken = OWN + threads + http + peers + any_clients * PER_ANY_CLIENT;
        DescriptorShares {
            clients: number(limit.saturating_sub(taken).max(CLIENTS_MIN)),
            any_clients: number(any_clients),
            http: number(http),
        }
    }

    /// Lowers the numbers of clients in `settings` to these shares. Returns a line for the log if that changes anything.
    pub(crate) fn fit(&self, settings: &mut Settings) -> Option<String> {
        let wanted = settings.maxclients;
        if settings.any_port != ExtraPort::Off {
            settings.any_maxclients = settings.any_maxclients.min(self.any_clients.max(1));
        }
        settings.maxclients = wanted.min(self.clients);
        (settings.maxclients < wanted).then(|| {
            format!(
                "the limit of open files allows {} clients instead of {wanted} (maxclients); raise it \
                 with ulimit -n, or LimitNOFILE= in the unit",
                self.clients
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_takes_the_descriptors_of_another() {
        for limit in [120, 200, 1_024, 4_096, 20_000, 1 << 20] {
            for any_port in [ExtraPort::Off, ExtraPort::At(1)] {
                let settings = Settings { any_port, io_threads: 2, ..Settings::default() };
                let shares = DescriptorShares::of(limit, &settings);
                let any = u64::from(shares.any_clients) * PER_ANY_CLIENT;
                let all = u64::from(shares.clients) + u64::from(shares.http) + any;
                assert!(all + OWN / 2 < limit, "{limit}: {shares:?}");
                assert!(shares.http >= 15 && shares.clients >= 16, "{limit}: {shares:?}");
            }
        }
    }

    #[test]
    fn a_large_limit_changes_nothing_and_a_small_one_is_worth_a_line() {
        let mut settings = Settings { io_threads: 8, ..Settings::default() };
        assert_eq!(DescriptorShares::of(20_000, &settings).fit(&mut settings), None);
        assert_eq!(settings.maxclients, 10_000);
        let line = DescriptorShares::of(1_024, &settings).fit(&mut settings).expect("a line");
        assert_eq!(settings.maxclients, 672);
        assert!(line.contains("672 clients instead of 10000"), "{line}");
    }
}

//! A steady load from a real cluster client that remembers the acknowledged writes.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redis::cluster::{ClusterClient, ClusterClientBuilder};

/// Number of clients that write and read concurrently.
const CLIENTS: usize = 4;
/// Number of keys of each client.
const KEYS: u64 = 500;
/// A client that has seen more errors gives up.
const ERRORS_MAX: usize = 1_000;
/// Pause of a client after an error. A refused connection fails at once: without a pause, a client could use up its
/// errors in the second before a death is noticed.
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    writes: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Report>>,
}

/// The observations of one client.
#[derive(Default)]
struct Report {
    /// The last acknowledged value of each key.
    acknowledged: BTreeMap<String, u64>,
    errors: Vec<String>,
    /// Reads that did not return the last acknowledged value.
    old: Vec<String>,
}

impl Report {
    fn note(&mut self, error: String) {
        self.errors.push(error);
        thread::sleep(PAUSE);
    }
}

pub(crate) fn client(urls: &[String]) -> ClusterClient {
    let builder = ClusterClientBuilder::new(urls.to_vec());
    let builder = builder.retries(16);
    builder.build().expect("addresses of nodes")
}

impl Load {
    pub(crate) fn start(urls: &[String]) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let writes = Arc::new(AtomicU64::new(0));
        let clients = (0..CLIENTS).map(|number| {
            let (stop, writes, client) = (Arc::clone(&stop), Arc::clone(&writes), client(urls));
            thread::spawn(move || work(number, &client, &stop, &writes))
        });
        Load { clients: clients.collect(), stop, writes }
    }

    /// Waits until `writes` more writes are acknowledged.
    pub(crate) fn go_on_for(&self, writes: u64) {
        let until = self.writes.load(Ordering::Relaxed) + writes;
        while self.writes.load(Ordering::Relaxed) < until {
            assert!(self.clients.iter().any(|client| !client.is_finished()), "all clients gave up");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the load; every acknowledged write must be present, and no client may have seen an error.
    pub(crate) fn end_with_nothing_lost(self, urls: &[String]) {
        let errors = self.end_with_nothing_acknowledged_lost(urls);
        assert!(errors.is_empty(), "{} errors: {:?}", errors.len(), &errors[..errors.len().min(5)]);
    }

    /// Ends the load; every acknowledged write must be present, and no read may have been stale.
    /// Returns the errors that clients saw.
    pub(crate) fn end_with_nothing_acknowledged_lost(self, urls: &[String]) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        let reports: Vec<Report> =
            self.clients.into_iter().map(|client| client.join().expect("no panic")).collect();
        let mut connection = client(urls).get_connection().expect("a node answers");
        let mut lost = Vec::new();
        for (key, value) in reports.iter().flat_map(|report| &report.acknowledged) {
            let found = redis::cmd("GET").arg(key).query::<Option<u64>>(&mut connection);
            let found = found.expect("an answer");
            if found.is_none_or(|found| found < *value) {
                lost.push(format!("{key}: {value} was acknowledged, {found:?} is there"));
            }
        }
        let old: Vec<&String> = reports.iter().flat_map(|report| &report.old).collect();
        assert!(lost.is_empty(), "{} lost, first: {:?}", lost.len(), &lost[..lost.len().min(5)]);
        assert!(old.is_empty(), "{} stale, first: {:?}", old.len(), &old[..old.len().min(5)]);
        reports.into_iter().flat_map(|report| report.errors).collect()
    }
}

fn work(number: usize, client: &ClusterClient, stop: &AtomicBool, writes: &AtomicU64) -> Report {
    let mut report = Report::default();
    let mut connection = client.get_connection().expect("a node answers");
    // The client does not wait long for a paused node: it asks the others.
    connection.set_read_timeout(Some(Duration::from_secs(3))).expect("a time to wait");
    for round in 1.. {
        for place in 0..KEYS {
            if stop.load(Ordering::Relaxed) || report.errors.len() > ERRORS_MAX {
                return report;
            }
            let key = format!("{number}:{place}");
            match redis::cmd("SET").arg(&key).arg(round).query::<()>(&mut connection) {
                Ok(()) => drop(report.acknowledged.insert(key.clone(), round)),
                Err(error) => report.note(format!("SET {key} {round}: {error}")),
            }
            writes.fetch_add(1, Ordering::Relaxed);
            let read = format!("{number}:{}", (place * 7 + round) % KEYS);
            match redis::cmd("GET").arg(&read).query::<Option<u64>>(&mut connection) {
                Ok(found) => {
                    let known = report.acknowledged.get(&read).copied();
                    if known.is_some() && found < known {
                        report.old.push(format!("{read}: {known:?} acknowledged, {found:?} read"));
                    }
                }
                Err(error) => report.note(format!("GET {read}: {error}")),
            }
        }
    }
    report
}

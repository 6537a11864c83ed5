//! A subscriber that reads at once whatever comes, until its connection ends.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use e2e::{Client, Server};
use resp::Value;

/// The event of every write of a `Writer`.
const EVENTS: &str = "__keyevent@0__:set";
/// A channel for messages of the tests.
const PROBE: &str = "probe";

pub(super) struct Ear {
    heard: Arc<Mutex<Vec<String>>>,
    probes: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ear {
    /// Subscribes to the events, at a node or its any-port.
    pub(super) fn on(port: u16) -> Ear {
        let mut client = Client::try_connect(port).expect("it listens");
        // In this order: a node that knows the second subscription knows the first.
        for channel in [EVENTS, PROBE] {
            assert!(matches!(client.run(&format!("SUBSCRIBE {channel}")), Value::Array(_)));
        }
        let (heard, probes, stop) = (Arc::default(), Arc::default(), Arc::default());
        let shared = (Arc::clone(&heard), Arc::clone(&probes), Arc::clone(&stop));
        let thread =
            Some(thread::spawn(move || listen(&mut client, &shared.0, &shared.1, &shared.2)));
        Ear { heard, probes, stop, thread }
    }

    /// Waits until all these nodes know the subscription.
    pub(super) fn wait_until_known_to(&self, nodes: &[Server]) {
        for node in nodes {
            let text = node.port().to_string();
            e2e::wait_until("a probe is heard", Duration::from_secs(20), || {
                node.client().call(&["PUBLISH", PROBE, &text]);
                self.probes.lock().expect("no panic").contains(&text)
            });
        }
    }

    /// Returns the keys it has heard of so far.
    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").clone()
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(
    client: &mut Client,
    heard: &Mutex<Vec<String>>,
    probes: &Mutex<Vec<String>>,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Relaxed) {
        match client.receive_within(Duration::from_millis(100)) {
            Ok(Some(answer)) => {
                let Value::Array(parts) = &answer.value else { continue };
                let [_, channel, payload] = parts.as_slice() else { continue };
                let text = |value: &Value| {
                    String::from_utf8_lossy(value.text().expect("a text")).into_owned()
                };
                let list = if text(channel) == PROBE { probes } else { heard };
                list.lock().expect("no panic").push(text(payload));
            }
            Ok(None) => {}
            Err(_) => return, // The node was killed, or has left.
        }
    }
}

/// Returns how often each key was heard of, by all these subscribers together.
pub(super) fn counts<'a>(ears: impl IntoIterator<Item = &'a Ear>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for key in ears.into_iter().flat_map(Ear::heard) {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

//! A process that was away for too long has copies of buckets that began again without them: it hands over
//! what it has to those who serve them, while it is a member like any other.

use std::sync::Arc;
use std::thread;

use cluster::control::Input;
use cluster::merge::Giver;

use super::give::hand_over;
use crate::log;
use crate::shared::Shared;

/// Begins with it, if the control plane has asked for it.
pub(crate) fn bring_if_wanted(shared: &Arc<Shared>) {
    let Some(buckets) = shared.merging.brings.lock().take() else { return };
    let told = format!(
        "buckets that began again while this node was away: {}; what it has kept of them is handed over",
        buckets.len()
    );
    log::warn("merge", &told);
    let shared = Arc::clone(shared);
    let bring = move || {
        let mut giver = Giver::of(buckets.iter().copied());
        if hand_over(&shared, &mut giver) {
            shared.control.tell(Input::Brought(buckets));
        }
    };
    let started = thread::Builder::new().name("bring".to_owned()).spawn(bring);
    // A node that cannot keep its promises must not go on making them.
    started.expect("a thread can be started");
}

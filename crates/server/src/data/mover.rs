//! The mover's thread: it carries out the control thread's inputs (`cluster::data::Mover`), and checks
//! the moves under way at short intervals.

use core::sync::atomic::Ordering;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use cluster::data::{Mover, MoverInput};

use super::boottime::now;
use crate::merge::{bring_if_wanted, give};
use crate::shared::Shared;

/// Intervals between two checks, with and without work in progress.
const BUSY: Duration = Duration::from_micros(500);
const IDLE: Duration = Duration::from_millis(100);

/// Runs until the node stops.
#[expect(clippy::needless_pass_by_value, reason = "the thread owns what it works with")]
pub(crate) fn run_mover(node: Arc<Shared>, inputs: Receiver<MoverInput>) {
    let shared = &*node;
    let mut mover = Mover::new(now());
    while !shared.is_stopping() {
        match inputs.recv_timeout(if mover.is_busy() { BUSY } else { IDLE }) {
            Ok(input) => mover.handle(now(), input, shared),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Ok(input) = inputs.try_recv() {
            mover.handle(now(), input, shared);
        }
        if let Some(to) = shared.merging.yields() {
            give(shared, to); // No bucket is moved from here any more.
        }
        bring_if_wanted(&node);
        shared.data.pausing.store(mover.is_pausing(), Ordering::Release);
        mover.go_on(now(), shared);
        let over = mover.take_promotions_over();
        shared.data.pending_promotions.fetch_sub(over, Ordering::AcqRel);
        *shared.data.sent.lock() = mover.sent();
        shared.data.pausing.store(mover.is_pausing(), Ordering::Release);
    }
}

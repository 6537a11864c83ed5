//! The mover's thread: it carries out the inputs of the control thread, the workers and the applier
//! (`cluster::data::Mover`), and checks the moves under way at short intervals.

use core::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use cluster::data::{Mover, MoverInput};

use super::Data;
use super::boottime::now;

/// Intervals between two checks, with and without work in progress.
const BUSY: Duration = Duration::from_micros(500);
const IDLE: Duration = Duration::from_millis(100);

/// Runs until the node stops. `hand_over` is called at each check: it hands data over to another side of the
/// cluster, if that is due, and returns when it is done; no bucket is moved from here meanwhile.
pub(crate) fn run_mover(data: &Data, inputs: &Receiver<MoverInput>, hand_over: impl Fn()) {
    let mut mover = Mover::new(now());
    while !data.is_stopping() {
        match inputs.recv_timeout(if mover.is_busy() { BUSY } else { IDLE }) {
            Ok(input) => mover.handle(now(), input, data),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Ok(input) = inputs.try_recv() {
            mover.handle(now(), input, data);
        }
        hand_over();
        data.pausing.store(mover.is_pausing(), Ordering::Release);
        mover.go_on(now(), data);
        let over = mover.take_promotions_over();
        data.roles_ahead.fetch_sub(over, Ordering::AcqRel);
        *data.sent.lock() = mover.sent();
        data.pausing.store(mover.is_pausing(), Ordering::Release);
    }
}

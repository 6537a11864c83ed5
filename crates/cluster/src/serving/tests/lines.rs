//! Connections that wait for keys are woken by the write path, by a change of roles, and by those in front of them.

use std::sync::Arc;

use store::{Element, Key};

use super::*;
use crate::serving::lines::leave_line;

/// Lets a connection wait for a list at a key; its place is its id.
fn wait(desk: &Desk, key: &str, client: u64) {
    let bytes: Arc<[u8]> = Arc::from(key.as_bytes());
    let place = (WaitNumber(client), Waiter { client, worker: 0, index: 0 });
    let (slot, mut effects) = (Slot::of(key.as_bytes()), EffectLog::default());
    let state = desk.lock_slot(slot);
    let mut served =
        ServedSlot::open(desk, slot, state, &access(false), &mut effects).expect("it is served");
    served.enter_line(slot, &bytes, Wanted::List, place);
}

fn leave(desk: &Desk, key: &str, client: u64) {
    leave_line(desk, &Arc::from(key.as_bytes()), Wanted::List, WaitNumber(client));
}

fn is_behind(desk: &Desk, key: &str, client: Option<u64>) -> bool {
    let (slot, mut effects) = (Slot::of(key.as_bytes()), EffectLog::default());
    let state = desk.lock_slot(slot);
    let served =
        ServedSlot::open(desk, slot, state, &access(true), &mut effects).expect("it is served");
    served.is_behind(&desk.seed.key(key.as_bytes()), Wanted::List, client.map(WaitNumber))
}

fn pushed<'a>(key: Key<'a>, row: &'a [u8]) -> Effect<'a> {
    Effect::InsertElements { key, index: 0, elements: row }
}

fn row() -> Vec<u8> {
    let mut row = Vec::new();
    Element::of(b"x").write(&mut row);
    row
}

/// Pushes to a key as a command of one slot does.
fn push(desk: &Desk, key: &str) {
    let (key, row, mut effects) = (desk.seed.key(key.as_bytes()), row(), EffectLog::default());
    let state = desk.lock_slot(key.slot());
    let mut served = ServedSlot::open(desk, key.slot(), state, &access(false), &mut effects)
        .expect("it is served");
    let _ = served.apply(key.slot(), &pushed(key, &row), change());
    assert_eq!(desk.woken(), [0u64; 0], "the command is not done yet");
    let _ = served.finish(true);
}

/// Pushes to several keys as a transaction does.
fn push_together(desk: &Desk, keys: &[&str]) {
    let row = row();
    let mut slots: Vec<Slot> = keys.iter().map(|key| Slot::of(key.as_bytes())).collect();
    slots.sort_unstable();
    desk.run(LockSet::Several(slots), |served| {
        for key in keys.iter().map(|key| desk.seed.key(key.as_bytes())) {
            let _ = served.apply(key.slot(), &pushed(key, &row), change());
            let _ = served.key_count(); // It publishes the counts.
        }
        assert_eq!(desk.woken(), [0u64; 0], "the transaction is not done yet");
    });
}

impl Desk {
    /// Returns the connections that were woken since the last call.
    fn woken(&self) -> Vec<u64> {
        self.woken.take()
    }
}

#[test]
fn a_command_wakes_the_first_in_line_when_it_is_done() {
    for backup in [None, Some(FIRST)] {
        let desk = Desk::new();
        let holders: Vec<NodeId> = [Some(ME), backup].into_iter().flatten().collect();
        desk.map_says("a", REIGN, &holders);
        wait(&desk, "a", 1);
        wait(&desk, "a", 2);
        assert!(is_behind(&desk, "a", None) && is_behind(&desk, "a", Some(2)));
        assert!(!is_behind(&desk, "a", Some(1)));
        desk.write(&["{a}s"]);
        assert_eq!(desk.woken(), [0u64; 0], "nobody waits for a string");
        push(&desk, "a");
        assert_eq!(desk.woken(), [1]);
        leave(&desk, "a", 1);
        assert_eq!(desk.woken(), [2], "the list is still there");
        leave(&desk, "a", 2);
        assert!(!is_behind(&desk, "a", None));
        push(&desk, "a");
        assert_eq!(desk.woken(), [0u64; 0]);
    }
}

#[test]
fn who_leaves_wakes_nobody_if_there_is_nothing() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    wait(&desk, "a", 1);
    wait(&desk, "a", 2);
    leave(&desk, "a", 1);
    assert_eq!(desk.woken(), [0u64; 0]);
    desk.write(&["{a}s"]);
    leave(&desk, "a", 2);
    assert_eq!(desk.woken(), [0u64; 0]);
}

#[test]
fn a_transaction_wakes_at_its_end_whoever_waits_in_its_slots() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST), ("b", SECOND)]);
    wait(&desk, "a", 1);
    wait(&desk, "b", 2);
    push_together(&desk, &["a", "b"]);
    let mut woken = desk.woken();
    woken.sort_unstable();
    assert_eq!(woken, [1, 2]);
}

#[test]
fn all_are_woken_when_another_node_becomes_primary() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST), ("b", FIRST)]);
    wait(&desk, "a", 1);
    wait(&desk, "a", 2);
    wait(&desk, "b", 3);
    let moved = |holders: &[NodeId]| {
        desk.map_says("a", LogIndex(9), holders);
        let slot = Slot::of(b"a");
        let state = desk.lock_slot(slot);
        crate::serving::wake_all_if_moved(&desk, slot, &state);
        drop(state);
        desk.woken()
    };
    assert_eq!(moved(&[ME, SECOND]), [0u64; 0], "it is still served here");
    assert_eq!(moved(&[SECOND, ME]), [1, 2]);
    assert_eq!(moved(&[SECOND, ME]), [0u64; 0], "they are on their way");
    leave(&desk, "a", 1);
    leave(&desk, "a", 2);
    assert!(!desk.lock_slot(Slot::of(b"a")).has_waiters);
    assert!(desk.lock_slot(Slot::of(b"b")).has_waiters);
}

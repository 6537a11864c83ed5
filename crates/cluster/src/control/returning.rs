//! A process that comes back too late with copies of buckets that were recreated without them. It hands
//! its data over to their present primaries, as a side of the cluster does after a split brain
//! (`merge`), and then is not awaited any more. Until then it takes in nothing: the data it has kept is
//! the only copy.

use placement::Hashmask;

use super::recreate::TOGETHER_MAX;
use super::{Action, Control};
use crate::map::Change;

impl Control {
    /// Hands over the awaited data of this process, or reports that it has none.
    pub(super) fn hand_over_former_data(&mut self) {
        let Some(map) = self.map.as_ref().filter(|_| self.yielding.is_none()) else { return };
        if !self.own_kept.is_told || self.own_kept.is_bringing || !self.is_member() {
            return;
        }
        let me = self.me.id;
        let is_left = |bucket: &Hashmask| {
            let is_held = map.bucket(*bucket).is_some_and(|known| known.is_held_by(me));
            !is_held && self.own_kept.has_left(*bucket)
        };
        let (left, mut done): (Vec<_>, Vec<_>) = map.awaited_of(me).partition(is_left);
        if !done.is_empty() {
            done.truncate(TOGETHER_MAX);
            self.propose(None, vec![Change::KeptCopiesHandedOver { node: me, buckets: done }]);
        }
        if !left.is_empty() {
            self.own_kept.is_bringing = true;
            self.out.push(Action::Bring { buckets: left });
        }
    }

    /// Records that the primaries of these buckets have this process's data; the others are tried
    /// again.
    pub(super) fn on_brought(&mut self, buckets: Vec<Hashmask>) {
        self.own_kept.is_bringing = false;
        self.own_kept.brought.extend(buckets);
    }
}

//! Backups that may be behind. A primary tells each node that backs it up how much it has not acknowledged
//! (`Report::Beat`, over the control link); who hears nothing of its primary for `pending-after`, neither
//! that nothing is left nor anything of what is left, marks what it holds of it as *pending*.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Plane, Report, me_in};
use crate::map::NodeId;

/// So many times in `pending-after` a primary tells how much is left.
const BEATS: u32 = 4;

#[derive(Default)]
pub(super) struct Pending {
    beat_due: Duration,
    /// Since when this node backs these primaries up.
    since: BTreeMap<NodeId, Duration>,
}

impl Pending {
    pub(super) fn look(&mut self, now: Duration, plane: &impl Plane) {
        let map = plane.map();
        let Some(me) = me_in(&map, plane) else { return };
        let after = map.settings().pending_after;
        let (mut mine, mut theirs) = (BTreeSet::new(), BTreeSet::new());
        for bucket in map.buckets().filter(|bucket| bucket.is_held_by(me)) {
            match bucket.primary().filter(|primary| *primary != me) {
                Some(primary) => drop(theirs.insert(primary)),
                None => mine.extend(bucket.backups()),
            }
        }
        if self.beat_due <= now {
            self.beat_due = now + after / BEATS;
            for to in mine {
                let left = plane.link_to(to).map_or(0, |link| plane.kept_bytes(link) as u64);
                plane.report(Report::Beat { to, left });
            }
        }
        self.since.retain(|node, _| theirs.contains(node));
        for node in theirs {
            self.since.entry(node).or_insert(now);
        }
        let heard = |(node, since): (&NodeId, &Duration)| plane.heard(*node).max(*since);
        let silent = self.since.iter().filter(|it| now > heard((it.0, it.1)) + after);
        plane.set_pending(silent.map(|(node, _)| *node).collect());
    }
}

//! Backups whose data may be stale. A primary tells each of its backups how many bytes that backup has not
//! acknowledged, and of which buckets (`Report::BackupLag`, over the control link). A backup that gets neither data nor a report of zero
//! outstanding bytes from its primary for `pending-after` marks its copies of that primary as *pending*.

use std::collections::{BTreeMap, BTreeSet};

use super::lag::lags;
use super::{Plane, Report, me_in};
use crate::Moment;
use crate::map::NodeId;

/// Number of reports (`Report::BackupLag`) that a primary sends per `pending-after`.
const BEATS: u32 = 4;

#[derive(Default)]
pub(super) struct Pending {
    beat_due: Moment,
    /// The time since when this node backs up each of these primaries.
    since: BTreeMap<NodeId, Moment>,
}

impl Pending {
    pub(super) fn look(&mut self, now: Moment, plane: &impl Plane) {
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
                let link = plane.link_to(to);
                let remaining_bytes =
                    link.map_or(0, |link| plane.unacknowledged_bytes(link) as u64);
                let count = |link| plane.with_outbox(link, |outbox| lags(&map, outbox));
                let lags = link.filter(|_| remaining_bytes > 0).map(count).unwrap_or_default();
                plane.report(Report::BackupLag { to, remaining_bytes, lags });
            }
        }
        self.since.retain(|node, _| theirs.contains(node));
        for node in theirs {
            self.since.entry(node).or_insert(now);
        }
        let heard = |(node, since): (&NodeId, &Moment)| plane.heard(*node).max(*since);
        let silent = self.since.iter().filter(|it| now > heard((it.0, it.1)) + after);
        plane.set_pending(silent.map(|(node, _)| *node).collect());
    }
}

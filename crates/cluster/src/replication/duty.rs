//! A node's duty to one slot: whether it serves it or holds a copy, since when, and whom it feeds.
//!
//! It stands beside the slot's table, under the same lock. A map change brings new duties
//! (`Duty::follow`); a fill adds a feed and takes it through its stages.

use smallvec::SmallVec;
use store::{SlotTable, Version};

use super::{FrameNumber, LinkId, Past, Position, Wait};
use crate::map::{Bucket, LogIndex, NodeId};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// Nothing of the slot is here.
    #[default]
    Absent,
    /// It is the primary and runs commands.
    Serving,
    /// It is the primary, and hands the bucket over: nothing runs until the map has changed.
    Paused,
    /// It became the primary by another's death, and makes sure that the other backups have what it
    /// has: nothing runs until they agree.
    Settling,
    /// It holds an in-sync copy.
    Backup,
    /// A backup that is about to be promoted: who asks for the slot waits here for it.
    Heir,
    /// A fill brings the slot here.
    Taking,
    /// What an earlier time has left here: no copy that counts, but a fill may need only what has changed
    /// since.
    Kept,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Duty {
    pub role: Role,
    /// The reign under which the role is held.
    pub reign: LogIndex,
    /// The reign in which the last change was made. With the table's version it is the slot's position.
    pub written_in: LogIndex,
    pub feeds: SmallVec<[Feed; 1]>,
    /// Kept while a copy is away.
    pub past: Option<Box<Past>>,
}

/// A node that gets what is written to the slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feed {
    pub link: LinkId,
    pub stage: Stage,
    /// For a backup, the last frame with something of this slot; for a slot that is partly sent, its
    /// version when its first chunk was taken.
    mark: u64,
}

/// How far a node has come on its way to being a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The fill has not come to this slot: nothing of it is sent.
    NotBegun,
    /// Some of the slot is sent. What is written to it follows as whole items.
    Partly,
    /// All of the slot is sent, and every effect follows; nobody waits for it yet.
    Whole,
    /// It counts: no reply leaves before it has acknowledged.
    Backup,
}

impl Default for Duty {
    fn default() -> Duty {
        let none = LogIndex(0);
        let feeds = SmallVec::new();
        Duty { role: Role::Absent, reign: none, written_in: none, feeds, past: None }
    }
}

impl Feed {
    pub fn backup(link: LinkId) -> Feed {
        Feed { link, stage: Stage::Backup, mark: 0 }
    }

    pub fn not_begun(link: LinkId) -> Feed {
        Feed { link, stage: Stage::NotBegun, mark: 0 }
    }

    /// Notes that the frame has something of this slot.
    #[inline]
    pub fn fed(&mut self, number: FrameNumber) {
        if self.stage == Stage::Backup {
            self.mark = number.0;
        }
    }

    /// The first chunk was taken when the slot was at this version.
    pub fn begin(&mut self, version: Version) {
        (self.stage, self.mark) = (Stage::Partly, version.0);
    }

    /// The version when the first chunk was taken, of a slot that is partly sent.
    pub fn begun_at(&self) -> Version {
        debug_assert_eq!(self.stage, Stage::Partly);
        Version(self.mark)
    }

    pub fn end(&mut self) {
        self.stage = Stage::Whole;
    }

    /// From here on it counts; all up to this frame it must acknowledge first.
    pub fn count(&mut self, last: FrameNumber) {
        (self.stage, self.mark) = (Stage::Backup, last.0);
    }
}

impl Duty {
    /// Takes over what the map says of the slot's bucket. `link_to` gives the link to a node.
    ///
    /// A feed that is no backup by the map belongs to a fill; whoever runs the fill removes it
    /// (`Duty::stop_feeding`). A copy that a fill has brought here is kept by `keeps_copy`.
    pub fn follow(
        &mut self,
        bucket: &Bucket,
        me: NodeId,
        link_to: impl Fn(NodeId) -> Option<LinkId>,
    ) {
        if bucket.primary() == Some(me) {
            let goes_on = self.reign == bucket.reign && self.is_primary();
            if !goes_on {
                self.feeds.clear();
            }
            let settles = goes_on && self.role == Role::Settling && !bucket.backups().is_empty();
            self.role = if settles { Role::Settling } else { Role::Serving };
            self.feed_backups(bucket, link_to);
        } else {
            self.feeds.clear();
            self.role = match self.role {
                _ if bucket.is_held_by(me) => Role::Backup,
                Role::Taking => Role::Taking,
                Role::Kept => Role::Kept,
                Role::Absent
                | Role::Serving
                | Role::Paused
                | Role::Settling
                | Role::Backup
                | Role::Heir => Role::Absent,
            };
        }
        self.reign = bucket.reign;
    }

    /// Takes over what a map says of the slot's bucket in which this process is no member: whatever it
    /// was to the slot, it only keeps what it held.
    pub fn stand_aside(&mut self, bucket: &Bucket) {
        self.feeds.clear();
        self.role = match self.role {
            Role::Absent | Role::Taking => Role::Absent,
            Role::Serving
            | Role::Paused
            | Role::Settling
            | Role::Backup
            | Role::Heir
            | Role::Kept => Role::Kept,
        };
        self.reign = bucket.reign;
    }

    /// The slot's position.
    pub fn position(&self, table: &SlotTable) -> Position {
        Position { reign: self.written_in, version: table.version() }
    }

    /// Whether the slot was once at this position, and everything that has changed since is known.
    pub fn leads_from(&self, then: Position, table: &SlotTable) -> bool {
        let now = self.position(table);
        then == now || self.past.as_ref().is_some_and(|past| past.leads_from(then, now))
    }

    /// Whether what a command does to the slot is to be shipped: somebody gets it, or remembers it. The
    /// first write of a reign always is, so that the position says whose write it was.
    #[inline]
    pub fn wants_effects(&self) -> bool {
        !self.feeds.is_empty() || self.past.is_some() || self.written_in != self.reign
    }

    /// Whether the slot's content was in sync once, and nothing has been done to it since.
    pub fn has_copy(&self) -> bool {
        match self.role {
            Role::Serving
            | Role::Paused
            | Role::Settling
            | Role::Backup
            | Role::Heir
            | Role::Kept => true,
            Role::Absent | Role::Taking => false,
        }
    }

    fn feed_backups(&mut self, bucket: &Bucket, link_to: impl Fn(NodeId) -> Option<LinkId>) {
        for link in bucket.backups().iter().filter_map(|node| link_to(*node)) {
            match self.feed_mut(link) {
                Some(feed) if feed.stage == Stage::Backup => {}
                // Committed before this node saw its fill end: it has proposed it, so it counts.
                Some(feed) => *feed = Feed::backup(link),
                None => self.feeds.push(Feed::backup(link)),
            }
        }
    }

    pub fn is_primary(&self) -> bool {
        matches!(self.role, Role::Serving | Role::Paused | Role::Settling)
    }

    /// Whether it has all of the slot.
    pub fn holds(&self) -> bool {
        self.is_primary() || matches!(self.role, Role::Backup | Role::Heir)
    }

    pub fn feed_mut(&mut self, link: LinkId) -> Option<&mut Feed> {
        self.feeds.iter_mut().find(|feed| feed.link == link)
    }

    pub fn stop_feeding(&mut self, link: LinkId) {
        self.feeds.retain(|feed| feed.link != link);
    }

    /// The links of those who count.
    pub fn wait_set(&self) -> impl Iterator<Item = LinkId> {
        self.feeds.iter().filter(|feed| feed.stage == Stage::Backup).map(|feed| feed.link)
    }

    /// What a reply that depends on the slot's content has to wait for, given how far each link is
    /// acknowledged. Empty if all that was written is where it should be.
    #[inline]
    pub fn unsettled(&self, acked: impl Fn(LinkId) -> FrameNumber) -> SmallVec<[Wait; 1]> {
        let backups = self.feeds.iter().filter(|feed| feed.stage == Stage::Backup);
        backups
            .map(|feed| Wait { link: feed.link, number: FrameNumber(feed.mark) })
            .filter(|wait| acked(wait.link) < wait.number)
            .collect()
    }
}

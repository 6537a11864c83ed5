//! The network between nodes: control messages, which arrive late, twice or never; and data streams, which
//! deliver in order until they break.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use cluster::Moment;
use cluster::map::{NodeId, Peer};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct StreamId(pub u64);

/// The direction of bytes on a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Way {
    /// From the node that dialled: frames.
    Out,
    /// To the node that dialled: answers.
    Back,
}

/// Lost messages of a thousand; with fewer than this, never all messages of a lease are lost.
const FEW_LOST: u64 = 10;

pub(super) struct Stream {
    pub from: Peer,
    pub to: Peer,
    /// Bytes in flight, each with its earliest time of arrival.
    pub queues: BTreeMap<Way, VecDeque<(Moment, Vec<u8>)>>,
}

/// Delays and losses of messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    pub delay_us: (u64, u64),
    /// Lost control messages, and doubled ones, of a thousand.
    pub lost: u64,
    pub doubled: u64,
    /// Deliveries on a stream, of ten thousand, after which it breaks.
    pub broken: u64,
}

pub(super) struct Network {
    pub weather: Weather,
    /// Pairs of nodes: nothing from the first reaches the second.
    pub cut: BTreeSet<(NodeId, NodeId)>,
    /// Extra delay of messages from the first to the second.
    pub slow: BTreeMap<(NodeId, NodeId), Duration>,
    pub streams: BTreeMap<StreamId, Stream>,
    /// True if control messages wait while nothing passes, as on a connection; else they are lost.
    pub queues: bool,
    /// Time when the last cut or slow way was repaired.
    pub mended_at: Moment,
    last: u64,
}

impl Stream {
    /// Returns the sender and the receiver of this direction.
    pub(super) fn ends(&self, way: Way) -> (Peer, Peer) {
        match way {
            Way::Out => (self.from, self.to),
            Way::Back => (self.to, self.from),
        }
    }

    fn queue(&mut self, way: Way) -> &mut VecDeque<(Moment, Vec<u8>)> {
        self.queues.entry(way).or_default()
    }

    /// Returns the next bytes, if they have arrived.
    pub(super) fn arrived(&mut self, way: Way, now: Moment) -> Option<Vec<u8>> {
        let queue = self.queue(way);
        queue.front().filter(|(at, _)| *at <= now)?;
        queue.pop_front().map(|(_, bytes)| bytes)
    }
}

impl Network {
    pub(super) fn new(weather: Weather) -> Network {
        Network {
            weather,
            cut: BTreeSet::new(),
            slow: BTreeMap::new(),
            streams: BTreeMap::new(),
            queues: false,
            mended_at: Moment::START,
            last: 0,
        }
    }

    /// Returns whether every request was sure to get through in time for the last `duration`.
    pub(super) fn is_smooth(&self, now: Moment, duration: Duration) -> bool {
        let is_whole = self.cut.is_empty() && self.slow.is_empty();
        is_whole && self.weather.lost < FEW_LOST && self.mended_at + duration <= now
    }

    /// Opens all ways again.
    pub(super) fn mend(&mut self, now: Moment) {
        self.cut.clear();
        self.slow.clear();
        self.mended_at = now;
    }

    pub(super) fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cut.contains(&(from, to))
    }

    pub(super) fn delay(&self, from: NodeId, to: NodeId, roll: u64) -> Duration {
        let (least, most) = self.weather.delay_us;
        let extra = self.slow.get(&(from, to)).copied().unwrap_or_default();
        Duration::from_micros(least + roll % (most - least + 1)) + extra
    }

    pub(super) fn open(&mut self, from: Peer, to: Peer) -> StreamId {
        self.last += 1;
        let id = StreamId(self.last);
        self.streams.insert(id, Stream { from, to, queues: BTreeMap::new() });
        id
    }

    /// Returns the next bytes of a stream that have arrived by then.
    pub(super) fn next_bytes(&mut self, id: StreamId, way: Way, by: Moment) -> Option<Vec<u8>> {
        self.streams.get_mut(&id)?.arrived(way, by)
    }

    /// Puts bytes on a stream. Returns their time of arrival, if there is such a stream.
    pub(super) fn push(
        &mut self,
        (id, way): (StreamId, Way),
        bytes: Vec<u8>,
        at: Moment,
    ) -> Option<Moment> {
        let queue = self.streams.get_mut(&id)?.queue(way);
        let at = queue.back().map_or(at, |(before, _)| at.max(*before));
        queue.push_back((at, bytes));
        Some(at)
    }
}

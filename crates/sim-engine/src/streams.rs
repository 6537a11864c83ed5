//! Bytes that keep their order, in both directions, on streams that are opened and break. The world pushes an event
//! for every arrival.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StreamId(pub u64);

/// The direction of bytes on a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// From the end that opened the stream.
    Out,
    /// To the end that opened the stream.
    Back,
}

/// A stream between two processes `P`.
pub struct Stream<P, T = Duration> {
    /// The end that opened it.
    pub from: P,
    pub to: P,
    /// Bytes on their way, each with its arrival.
    queues: BTreeMap<Way, VecDeque<(T, Vec<u8>)>>,
}

/// All open streams. `T` is a point in virtual time.
pub struct Streams<P, T = Duration> {
    open: BTreeMap<StreamId, Stream<P, T>>,
    last: u64,
}

impl<P: Copy + PartialEq, T> Stream<P, T> {
    /// Returns the sender and the receiver of this direction.
    pub fn ends(&self, way: Way) -> (P, P) {
        match way {
            Way::Out => (self.from, self.to),
            Way::Back => (self.to, self.from),
        }
    }

    /// Returns the direction in which this process sends, if it is one of the ends.
    pub fn way_from(&self, sender: P) -> Option<Way> {
        [Way::Out, Way::Back].into_iter().find(|way| self.ends(*way).0 == sender)
    }
}

impl<P: Copy + PartialEq, T: Copy + Ord> Streams<P, T> {
    pub fn open(&mut self, from: P, to: P) -> StreamId {
        self.last += 1;
        let id = StreamId(self.last);
        self.open.insert(id, Stream { from, to, queues: BTreeMap::new() });
        id
    }

    pub fn get(&self, id: StreamId) -> Option<&Stream<P, T>> {
        self.open.get(&id)
    }

    /// Closes a stream. Bytes on their way are lost.
    pub fn close(&mut self, id: StreamId) -> Option<Stream<P, T>> {
        self.open.remove(&id)
    }

    /// Returns the open streams in the order in which they were opened.
    pub fn iter(&self) -> impl Iterator<Item = (StreamId, &Stream<P, T>)> {
        self.open.iter().map(|(id, stream)| (*id, stream))
    }

    /// Returns the streams for which this holds.
    pub fn which(&self, is_wanted: impl Fn(&Stream<P, T>) -> bool) -> Vec<StreamId> {
        self.iter().filter(|(_, stream)| is_wanted(stream)).map(|(id, _)| id).collect()
    }

    /// Puts bytes on a stream that would arrive at this time if they were alone on it. Returns their arrival, if
    /// there is such a stream.
    pub fn push(&mut self, (id, way): (StreamId, Way), bytes: Vec<u8>, alone: T) -> Option<T> {
        let queue = self.open.get_mut(&id)?.queues.entry(way).or_default();
        let at = queue.back().map_or(alone, |(before, _)| alone.max(*before));
        queue.push_back((at, bytes));
        Some(at)
    }

    /// Takes the next bytes of a stream that have arrived by `now`.
    pub fn arrived(&mut self, id: StreamId, way: Way, now: T) -> Option<Vec<u8>> {
        let queue = self.open.get_mut(&id)?.queues.get_mut(&way)?;
        queue.pop_front_if(|(at, _)| *at <= now).map(|(_, bytes)| bytes)
    }
}

impl<P, T> Default for Streams<P, T> {
    fn default() -> Streams<P, T> {
        Streams { open: BTreeMap::new(), last: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_their_order_and_wait_for_their_time() {
        let mut streams = Streams::default();
        let id = streams.open("a", "b");
        let out = (id, Way::Out);
        assert_eq!(streams.push(out, vec![1], 30), Some(30));
        assert_eq!(streams.push(out, vec![2], 10), Some(30), "no byte overtakes another");
        assert_eq!(streams.push((id, Way::Back), vec![3], 10), Some(10), "the way back is free");
        assert_eq!(streams.arrived(id, Way::Out, 29), None);
        assert_eq!(streams.arrived(id, Way::Out, 30), Some(vec![1]));
        assert_eq!(streams.arrived(id, Way::Out, 30), Some(vec![2]));
        assert_eq!(streams.arrived(id, Way::Out, 30), None);
        assert_eq!(streams.arrived(id, Way::Back, 30), Some(vec![3]));
    }

    #[test]
    fn a_closed_stream_loses_its_bytes_and_its_number_is_not_used_again() {
        let mut streams = Streams::default();
        let first = streams.open("a", "b");
        streams.push((first, Way::Out), vec![1], 10);
        assert!(streams.close(first).is_some() && streams.close(first).is_none());
        assert_eq!(streams.push((first, Way::Out), vec![2], 10), None);
        let second = streams.open("a", "b");
        assert_ne!(first, second);
        assert_eq!(streams.arrived(second, Way::Out, 99), None);
    }

    #[test]
    fn both_ends_know_their_direction() {
        let mut streams: Streams<&str, u64> = Streams::default();
        let id = streams.open("a", "b");
        let stream = streams.get(id).expect("opened above");
        assert_eq!((stream.ends(Way::Out), stream.ends(Way::Back)), (("a", "b"), ("b", "a")));
        let ways = ["a", "b", "c"].map(|end| stream.way_from(end));
        assert_eq!(ways, [Some(Way::Out), Some(Way::Back), None]);
        assert_eq!(streams.which(|stream| stream.to == "b"), [id]);
        assert_eq!(streams.which(|stream| stream.to == "a"), []);
    }
}

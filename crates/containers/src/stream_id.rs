//! The id of a stream's entry: a time in milliseconds and a number within it.

/// The id of an entry, in the order of entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct StreamId {
    pub ms: u64,
    pub seq: u64,
}

impl StreamId {
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    pub const fn new(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    /// Returns the id right behind this one; `None` behind the last one.
    #[must_use]
    pub fn next(self) -> Option<StreamId> {
        match (self.ms.checked_add(1), self.seq.checked_add(1)) {
            (_, Some(seq)) => Some(StreamId { seq, ..self }),
            (Some(ms), None) => Some(StreamId { ms, seq: 0 }),
            (None, None) => None,
        }
    }

    /// Returns the id right before this one; `None` before the first one.
    #[must_use]
    pub fn previous(self) -> Option<StreamId> {
        match (self.ms.checked_sub(1), self.seq.checked_sub(1)) {
            (_, Some(seq)) => Some(StreamId { seq, ..self }),
            (Some(ms), None) => Some(StreamId { ms, seq: u64::MAX }),
            (None, None) => None,
        }
    }
}

impl core::fmt::Display for StreamId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_neighbours_of_an_id_cross_milliseconds() {
        let id = StreamId::new(5, u64::MAX);
        assert_eq!(id.next(), Some(StreamId::new(6, 0)));
        assert_eq!(StreamId::new(6, 0).previous(), Some(id));
        assert_eq!(StreamId::new(6, 1).previous(), Some(StreamId::new(6, 0)));
        assert_eq!((StreamId::MAX.next(), StreamId::MIN.previous()), (None, None));
    }
}

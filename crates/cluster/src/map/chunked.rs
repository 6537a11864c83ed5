//! A list whose clones share equal chunks: changing one element copies its chunk, not the list.
//!
//! The map of 4,096 buckets is published after every change; copying all of it each time would cost
//! more than the change.

use std::sync::Arc;

const CHUNK: usize = 64;

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Chunked<T> {
    /// All but the last have `CHUNK` elements.
    chunks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for Chunked<T> {
    fn default() -> Chunked<T> {
        Chunked { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Clone> Chunked<T> {
    pub(super) fn new(elements: &[T]) -> Chunked<T> {
        let chunks = elements.chunks(CHUNK).map(|chunk| Arc::new(chunk.to_vec())).collect();
        Chunked { chunks, len: elements.len() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK][index % CHUNK]
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut T {
        &mut Arc::make_mut(&mut self.chunks[index / CHUNK])[index % CHUNK]
    }

    /// Returns the elements of all chunks that are not shared with `other` at the same place; elements that it has
    /// as well may be among them.
    pub(super) fn unshared<'a>(&'a self, other: &'a Chunked<T>) -> impl Iterator<Item = &'a T> {
        let chunks = self.chunks.iter().enumerate();
        let is_shared = |place: usize, chunk: &Arc<Vec<T>>| {
            other.chunks.get(place).is_some_and(|theirs| Arc::ptr_eq(theirs, chunk))
        };
        chunks
            .filter(move |(place, chunk)| !is_shared(*place, chunk))
            .flat_map(|(_, chunk)| &**chunk)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        (0..self.len).map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_not_seen_by_earlier_clones() {
        let mut list = Chunked::new(&(0..200).collect::<Vec<i32>>());
        let before = list.clone();
        *list.get_mut(130) = 7;
        assert_eq!((*before.get(130), *list.get(130)), (130, 7));
        assert!(Arc::ptr_eq(&before.chunks[0], &list.chunks[0]), "untouched chunks are shared");
        assert_eq!(list.unshared(&before).copied().collect::<Vec<_>>()[..3], [128, 129, 7]);
        assert_eq!(list.unshared(&before).count(), CHUNK);
        assert_eq!(list.unshared(&list.clone()).count(), 0);
        assert_eq!(list.iter().count(), 200);
        assert_eq!(list.iter().copied().filter(|number| *number == 7).count(), 2);
    }
}

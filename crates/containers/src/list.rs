//! A large list: a sequence of elements, pushed and popped at both ends.

use core::ops::Range;

use crate::element::{self, Element, Encoded};
use crate::memory::block_bytes;
use crate::sequence::Sequence;

pub struct List(Sequence);

impl Default for List {
    fn default() -> List {
        List(Sequence::new(1))
    }
}

impl List {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the list's memory in the allocator, including the block of the list itself.
    pub fn bytes(&self) -> usize {
        block_bytes(size_of::<List>()) + self.0.bytes()
    }

    pub fn get(&self, index: usize) -> Option<Element<'_>> {
        self.0.get(index).map(|entry| element::read(entry).0)
    }

    /// Inserts an element before the one at `index`, or at the end.
    pub fn insert(&mut self, index: usize, element: Element<'_>) {
        self.0.insert(index, &packed(element));
    }

    /// Inserts an element in packed form, as [`List::insert`].
    pub fn insert_entry(&mut self, index: usize, entry: &[u8]) {
        self.0.insert(index, entry);
    }

    /// Appends an element in packed form.
    pub fn push_entry(&mut self, entry: &[u8]) {
        self.insert_entry(self.len(), entry);
    }

    pub fn push_front(&mut self, element: Element<'_>) {
        self.insert(0, element);
    }

    pub fn push_back(&mut self, element: Element<'_>) {
        self.insert(self.len(), element);
    }

    /// Replaces the element at `index` by one in packed form.
    pub fn set_entry(&mut self, index: usize, entry: &[u8]) {
        self.0.replace(index, entry);
    }

    /// Iterates over the elements in packed form.
    pub fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter_from(0)
    }

    /// Replaces the element at `index`.
    pub fn set(&mut self, index: usize, element: Element<'_>) {
        self.0.replace(index, &packed(element));
    }

    /// Removes the elements of a range of indices.
    pub fn remove(&mut self, range: Range<usize>) {
        self.0.remove_range(range);
    }

    /// Keeps only the elements of a range of indices.
    pub fn trim(&mut self, range: Range<usize>) {
        self.remove(range.end.max(range.start)..self.len());
        self.remove(0..range.start);
    }

    /// Iterates over elements from `index` on: also the way to continue a copy.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = Element<'_>> {
        self.0.iter_from(index).map(|entry| element::read(entry).0)
    }

    /// Iterates backwards over the elements before `index`.
    pub fn iter_back_from(&self, index: usize) -> impl Iterator<Item = Element<'_>> {
        self.0.iter_back_from(index).map(|entry| element::read(entry).0)
    }

    /// Returns the first index, not before `from`, of an equal element.
    pub fn position(&self, from: usize, element: Element<'_>) -> Option<usize> {
        let found = self.0.iter_from(from).position(|entry| is_equal(entry, element));
        found.map(|distance| from + distance)
    }

    /// Returns the last index, before `end`, of an equal element.
    pub fn position_back(&self, end: usize, element: Element<'_>) -> Option<usize> {
        let found = self.0.iter_back_from(end).position(|entry| is_equal(entry, element));
        found.map(|distance| end.min(self.len()) - 1 - distance)
    }

    /// Returns the length of all elements in a row. Takes time for each block, not for each element.
    pub fn row_len(&self) -> usize {
        self.0.row_len()
    }

    /// Returns an upper bound of the length of each element in a row. Takes time for each block, not for each element.
    pub fn longest_bound(&self) -> usize {
        self.0.longest_bound()
    }

    /// Appends all elements in a row, block by block.
    pub fn write_row(&self, out: &mut Vec<u8>) {
        self.0.write_row(out);
    }

    /// Returns a random element.
    pub fn random(&self, roll: u64) -> Option<Element<'_>> {
        let index = roll.checked_rem(self.len() as u64)?;
        self.get(index as usize)
    }

    /// Frees a part of a list that is no longer needed, as [`Sequence::free_some`].
    pub fn free_some(&mut self, leaves: usize) -> bool {
        self.0.free_some(leaves)
    }
}

fn packed(element: Element<'_>) -> Vec<u8> {
    let mut entry = Vec::with_capacity(Encoded::of(element).len());
    element.write(&mut entry);
    entry
}

fn is_equal(entry: &[u8], element: Element<'_>) -> bool {
    Encoded::of(element).begins(entry)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use placement::SplitMix64;

    use super::*;

    fn text(rng: &mut SplitMix64) -> Vec<u8> {
        match rng.draw() % 16 {
            0 => vec![b'x'; (rng.draw() % 3_000) as usize],
            1..8 => (rng.draw() % 50).to_string().into_bytes(),
            _ => format!("item {}", rng.draw() % 50).into_bytes(),
        }
    }

    fn content(list: &List) -> VecDeque<Vec<u8>> {
        list.iter_from(0).map(|element| element.to_text().into_owned()).collect()
    }

    fn step(rng: &mut SplitMix64, list: &mut List, model: &mut VecDeque<Vec<u8>>) {
        let item = text(rng);
        let element = Element::of(&item);
        let index = (rng.draw() % (model.len() as u64 + 1)) as usize;
        match rng.draw() % 10 {
            0..3 => {
                list.push_back(element);
                model.push_back(item);
            }
            3..5 => {
                list.push_front(element);
                model.push_front(item);
            }
            5 => {
                list.insert(index, element);
                model.insert(index, item);
            }
            6 if index < model.len() => {
                list.set(index, element);
                model[index] = item;
            }
            7 => {
                let end = (index + (rng.draw() % 4) as usize).min(model.len());
                list.remove(index..end);
                model.drain(index..end);
            }
            8 => {
                assert_eq!(list.position(index, element), find(model, index, &item));
                let back = model.iter().take(index).rposition(|it| *it == item);
                assert_eq!(list.position_back(index, element), back);
            }
            _ => {
                let found = list.get(index).map(|element| element.to_text().into_owned());
                assert_eq!(found.as_ref(), model.get(index));
            }
        }
    }

    fn find(model: &VecDeque<Vec<u8>>, from: usize, item: &[u8]) -> Option<usize> {
        model.iter().skip(from).position(|it| it == item).map(|distance| from + distance)
    }

    #[test]
    fn a_list_behaves_like_a_deque() {
        for seed in 0..4 {
            let mut rng = SplitMix64::new(seed);
            let (mut list, mut model) = (List::default(), VecDeque::new());
            for round in 0..40 {
                for _ in 0..500 {
                    step(&mut rng, &mut list, &mut model);
                }
                assert_eq!(content(&list), model);
                list.0.check();
                let from = (rng.draw() % (model.len() as u64 + 2)) as usize;
                let back: Vec<_> =
                    list.iter_back_from(from).map(|it| it.to_text().into_owned()).collect();
                assert_eq!(back, model.iter().take(from).rev().cloned().collect::<Vec<_>>());
                if round % 10 == 9 {
                    let start = (rng.draw() % (model.len() as u64 + 1)) as usize;
                    let end = start + (rng.draw() % 300) as usize;
                    list.trim(start..end);
                    model = model.into_iter().take(end).skip(start).collect();
                    assert_eq!(content(&list), model);
                }
            }
        }
    }

    #[test]
    fn a_queue_of_many_is_emptied_from_the_other_end() {
        let mut list = List::default();
        for number in 0..100_000 {
            list.push_back(Element::Integer(number));
        }
        list.0.check();
        for number in 0..100_000 {
            assert_eq!(list.get(0), Some(Element::Integer(number)));
            list.remove(0..1);
        }
        assert!(list.is_empty() && list.0.bytes() <= 4_096);
    }

    #[test]
    fn a_list_is_freed_in_portions() {
        let mut list = List::default();
        for number in 0..50_000 {
            list.push_front(Element::Integer(number));
        }
        let mut portions = 1;
        while list.free_some(10) {
            portions += 1;
        }
        assert!(portions > 10, "only {portions} portions");
    }
}

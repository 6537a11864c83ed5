//! The options of SORT.

use core::ops::Range;

use placement::Slot;

use super::pattern::{Pattern, slot_of};
use crate::{Args, Error};

/// An option of SORT, with the index of its first value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SortOption {
    Ascending,
    Descending,
    Alphabetical,
    Limit(usize),
    Store(usize),
    By(usize),
    Get(usize),
    Unknown,
}

impl SortOption {
    /// Returns the option at `index`, and the index behind it.
    fn at(args: Args<'_>, index: usize) -> (SortOption, usize) {
        let (value, behind) = (index + 1, args.len() - index - 1);
        let option = match args.at(index).to_ascii_lowercase().as_slice() {
            b"asc" => SortOption::Ascending,
            b"desc" => SortOption::Descending,
            b"alpha" => SortOption::Alphabetical,
            b"limit" if behind >= 2 => return (SortOption::Limit(value), value + 2),
            b"store" if behind >= 1 => return (SortOption::Store(value), value + 1),
            b"by" if behind >= 1 => return (SortOption::By(value), value + 1),
            b"get" if behind >= 1 => return (SortOption::Get(value), value + 1),
            _ => SortOption::Unknown,
        };
        (option, value)
    }
}

/// Iterates over the options of a SORT command.
pub(super) fn options(args: Args<'_>) -> impl Iterator<Item = SortOption> {
    let mut index = 2;
    core::iter::from_fn(move || {
        let (option, next) = (index < args.len()).then(|| SortOption::at(args, index))?;
        index = next;
        Some(option)
    })
}

pub(super) struct SortOptions<'a> {
    pub(super) is_descending: bool,
    pub(super) is_alphabetical: bool,
    /// False if the elements stay in their order: the pattern of BY derives no key.
    pub(super) sorts: bool,
    pub(super) by: Option<Pattern<'a>>,
    pub(super) gets: Vec<Pattern<'a>>,
    /// Index of the key to store to.
    pub(super) stored_at: Option<usize>,
    offset: i64,
    /// Number of elements; all if it is negative.
    count: i64,
}

impl<'a> SortOptions<'a> {
    /// Parses the options. With `one_slot_only`, every derived key must be in the slot of the sorted one.
    pub(super) fn parse(
        args: Args<'a>,
        may_store: bool,
        one_slot_only: bool,
    ) -> Result<SortOptions<'a>, Error> {
        let mut parsed = SortOptions {
            is_descending: false,
            is_alphabetical: false,
            sorts: true,
            by: None,
            gets: Vec::new(),
            stored_at: None,
            offset: 0,
            count: -1,
        };
        let slot = Slot::of(args.at(1));
        let is_elsewhere = |text| one_slot_only && slot_of(text) != Some(slot);
        for option in options(args) {
            match option {
                SortOption::Ascending => parsed.is_descending = false,
                SortOption::Descending => parsed.is_descending = true,
                SortOption::Alphabetical => parsed.is_alphabetical = true,
                SortOption::Limit(index) => {
                    parsed.offset = integer(args.at(index))?;
                    parsed.count = integer(args.at(index + 1))?;
                }
                SortOption::Store(index) if may_store => parsed.stored_at = Some(index),
                SortOption::By(index) => {
                    let pattern = Pattern::new(args.at(index));
                    if !pattern.substitutes() {
                        parsed.sorts = false;
                    } else if is_elsewhere(args.at(index)) {
                        return Err(denied("BY"));
                    }
                    parsed.by = Some(pattern);
                }
                SortOption::Get(index) => {
                    let pattern = Pattern::new(args.at(index));
                    if !pattern.is_element() && is_elsewhere(args.at(index)) {
                        return Err(denied("GET"));
                    }
                    parsed.gets.push(pattern);
                }
                SortOption::Store(_) | SortOption::Unknown => return Err(Error::SYNTAX),
            }
        }
        Ok(parsed)
    }

    /// Returns the range of elements within the limit.
    pub(super) fn range(&self, len: usize) -> Range<usize> {
        let start = usize::try_from(self.offset.max(0)).unwrap_or(usize::MAX).min(len);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX).min(len - start);
        start..start + count
    }
}

fn integer(text: &[u8]) -> Result<i64, Error> {
    resp::parse_integer(text).ok_or(Error::NOT_AN_INTEGER)
}

fn denied(option: &str) -> Error {
    Error::new(format!(
        "ERR {option} option of SORT denied in Cluster mode when keys formed by the pattern may be in \
         different slots."
    ))
}

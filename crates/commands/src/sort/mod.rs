//! SORT and SORT_RO: sort the elements of a list, a set or a sorted set, by themselves or by values of other keys.
mod options; // The options.
mod pattern; // Patterns that derive keys from elements, and the slots of these keys.
mod values; //  Values of derived keys.

use core::cmp::Ordering;
use core::ops::Range;

use settings::NotifyClasses;
use store::{Effect, Element, Found, NewValue, StoredValue};

use crate::Error;
use crate::context::Context;
use crate::sorted_sets::{check_size, parse_weight};
use crate::spec::{BLANK, Flag, Flags, KeySpec, Spec};
use options::SortOptions;
use pattern::Pattern;
use values::{reply_value, value_of};

#[cfg(any(test, feature = "testing"))]
pub use pattern::fuzz_pattern;
pub(crate) use pattern::{DerivedSlots, derived_slots};

/// Maximum number of bytes that SORT with GET and STORE stores: nobody knows before how long the values are.
pub(crate) const FETCHED_BYTES_MAX: usize = 64 << 20;

const COMMAND: Spec = Spec {
    complexity: "O(N+M*log(M)) where N is the number of elements, and M that of the returned ones; \
                 O(N) without sorting",
    arity: -2,
    keys: KeySpec::FIRST,
    ..BLANK
};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "sort",
        full_name: "sort",
        syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] \
                 [ALPHA] [STORE destination]",
        summary: "Sorts the elements of a list, a set or a sorted set, and returns or stores them.",
        flags: Flags::of(&[
            Flag::Write,
            Flag::DenyOom,
            Flag::MovableKeys,
            Flag::Dangerous,
            Flag::DerivesKeys,
        ]),
        stored_from: 2,
        run: Some(sort),
        ..COMMAND
    },
    Spec {
        name: "sort_ro",
        full_name: "sort_ro",
        syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] \
                 [ALPHA]",
        summary: "Returns the sorted elements of a list, a set or a sorted set.",
        since: "7.0.0",
        flags: Flags::of(&[Flag::ReadOnly, Flag::MovableKeys, Flag::Dangerous, Flag::DerivesKeys]),
        run: Some(sort),
        ..COMMAND
    },
];

fn sort(context: &mut Context<'_>) -> Result<(), Error> {
    let (args, key) = (context.args, context.key(1));
    let may_store = context.spec.has(Flag::Write);
    let options = SortOptions::parse(args, may_store, context.keys.env().one_slot_only)?;
    let mut elements = Elements::read(context.keys.read(&key).as_ref(), &options)?;
    if let Some(by) = elements.order {
        weigh(context, &mut elements, by)?;
        elements.sort(&options);
    }
    let range = elements.range(&options);
    let elements: Vec<Vec<u8>> =
        elements.all.drain(..).map(|it| it.text).take(range.end).skip(range.start).collect();
    match options.stored_at {
        Some(index) => store(context, index, &elements, &options),
        None => {
            reply(context, &elements, &options);
            Ok(())
        }
    }
}

/// The texts or numbers that decide about the order.
#[derive(Clone, Copy)]
enum SortKey<'a> {
    /// Their own texts.
    Elements,
    Values(Pattern<'a>),
}

/// An element, and the weight or value that decides about its place.
struct SortedElement {
    text: Vec<u8>,
    /// The number by which it is sorted, unless the option ALPHA is given.
    weight: f64,
    /// The text of the value by which it is sorted; `None` if there is none.
    value: Option<Vec<u8>>,
}

/// The elements of the key.
struct Elements<'a> {
    all: Vec<SortedElement>,
    /// `None` if they stay in their order.
    order: Option<SortKey<'a>>,
    is_alphabetical: bool,
    /// True if only those within the limit were read.
    is_limited: bool,
}

impl<'a> Elements<'a> {
    fn read(found: Option<&Found<'_>>, options: &SortOptions<'a>) -> Result<Elements<'a>, Error> {
        let sorts_by = options.by.map_or(SortKey::Elements, SortKey::Values);
        let mut elements = Elements {
            all: Vec::new(),
            order: options.sorts.then_some(sorts_by),
            is_alphabetical: options.is_alphabetical,
            is_limited: false,
        };
        let Some(found) = found else { return Ok(elements) };
        let is_backward = options.is_descending && !options.sorts;
        match found.value() {
            StoredValue::List(list) if options.sorts => elements.take(list.iter_from(0)),
            StoredValue::List(list) => {
                let Range { start, end } = elements.limited(options, list.len());
                if is_backward {
                    elements.take(list.iter_back_from(list.len() - start).take(end - start));
                } else {
                    elements.take(list.iter_from(start).take(end - start));
                }
            }
            StoredValue::SortedSet(set) if options.sorts => {
                elements.take(set.iter_from(0).map(|it| it.member));
            }
            StoredValue::SortedSet(set) => {
                let Range { start, end } = elements.limited(options, set.len());
                if is_backward {
                    let members = set.iter_back_from(set.len() - start).take(end - start);
                    elements.take(members.map(|it| it.member));
                } else {
                    elements.take(set.iter_from(start).take(end - start).map(|it| it.member));
                }
            }
            StoredValue::Set(set) => {
                elements.take(set.members());
                if !options.sorts && options.stored_at.is_some() {
                    // The order of a set is that of this process: what is stored must not depend on it.
                    elements.order = Some(SortKey::Elements);
                    elements.is_alphabetical = true;
                }
            }
            StoredValue::String(_) | StoredValue::Hash(_) | StoredValue::Stream(_) => {
                return Err(Error::WRONG_TYPE);
            }
        }
        Ok(elements)
    }

    fn take<'e>(&mut self, elements: impl Iterator<Item = Element<'e>>) {
        self.all.extend(elements.map(|element| SortedElement {
            text: element.to_text().into_owned(),
            weight: 0.0,
            value: None,
        }));
    }

    /// Returns the range of elements to read of those that stay in their order.
    fn limited(&mut self, options: &SortOptions<'_>, len: usize) -> Range<usize> {
        self.is_limited = true;
        options.range(len)
    }

    /// Returns the range of elements to return.
    fn range(&self, options: &SortOptions<'_>) -> Range<usize> {
        if self.is_limited { 0..self.all.len() } else { options.range(self.all.len()) }
    }

    fn sort(&mut self, options: &SortOptions<'_>) {
        let (is_alphabetical, by_values) =
            (self.is_alphabetical, matches!(self.order, Some(SortKey::Values(_))));
        let compare = |one: &SortedElement, other: &SortedElement| -> Ordering {
            if !is_alphabetical {
                let by_weight = one.weight.partial_cmp(&other.weight).unwrap_or(Ordering::Equal);
                by_weight.then_with(|| one.text.cmp(&other.text))
            } else if by_values {
                one.value.cmp(&other.value)
            } else {
                one.text.cmp(&other.text)
            }
        };
        if options.is_descending {
            self.all.sort_by(|one, other| compare(other, one));
        } else {
            self.all.sort_by(compare);
        }
    }
}

/// Reads the weight or the value of each element.
fn weigh(
    context: &mut Context<'_>,
    elements: &mut Elements<'_>,
    by: SortKey<'_>,
) -> Result<(), Error> {
    const NOT_NUMBERS: Error =
        Error::fixed("ERR One or more scores can't be converted into double");
    let mut are_numbers = true;
    for element in &mut elements.all {
        let value = match by {
            SortKey::Values(pattern) => match value_of(context, &pattern, &element.text) {
                Some(value) => Some(value),
                None => continue,
            },
            SortKey::Elements => None,
        };
        if !elements.is_alphabetical {
            let weight = parse_weight(value.as_deref().unwrap_or(&element.text));
            are_numbers &= weight.is_some();
            element.weight = weight.unwrap_or(0.0);
        }
        element.value = value;
    }
    if are_numbers { Ok(()) } else { Err(NOT_NUMBERS) }
}

fn reply(context: &mut Context<'_>, elements: &[Vec<u8>], options: &SortOptions<'_>) {
    context.reply.array(elements.len() * options.gets.len().max(1));
    for element in elements {
        if options.gets.is_empty() {
            context.reply.bulk(element);
        }
        for pattern in &options.gets {
            reply_value(context, pattern, element);
        }
    }
}

fn store(
    context: &mut Context<'_>,
    index: usize,
    elements: &[Vec<u8>],
    options: &SortOptions<'_>,
) -> Result<(), Error> {
    let mut row = Vec::new();
    for element in elements {
        if options.gets.is_empty() {
            Element::of(element).write(&mut row);
        }
        for pattern in &options.gets {
            let value = value_of(context, pattern, element).unwrap_or_default();
            Element::of(&value).write(&mut row);
            if row.len() > FETCHED_BYTES_MAX {
                return Err(Error::fixed(
                    "ERR SORT with GET and STORE stores at most 64 MiB; use LIMIT",
                ));
            }
        }
    }
    check_size(row.len(), "stored")?;
    let key = context.key(index);
    if row.is_empty() {
        if context.keys.remove(&key) {
            context.keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
        }
    } else {
        context.keys.apply(&Effect::Put { key, value: NewValue::List(&row), expires_at: None });
        context.keys.notify(NotifyClasses::LIST, "sortstore", key.bytes());
    }
    let count = elements.len() * options.gets.len().max(1);
    context.reply.integer(count.cast_signed() as i64);
    Ok(())
}

#[cfg(test)]
mod tests;

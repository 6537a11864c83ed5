//! Sorted sets in Redis's serialisation format: a listpack if the set is packed, members and scores one by one otherwise, as
//! Redis writes them. Every payload is checked completely: lengths, counts, scores, and that no member appears twice.

use store::{Element, Score, ScoredMember, SortedSetValue};

use super::{RdbReader, listpack, put_length, put_string};

/// Members with their scores as texts, as Redis wrote them before version 3.2.
pub(super) const TYPE_TEXT_SCORES: u8 = 3;
pub(super) const TYPE_SORTED_SET: u8 = 5;
pub(super) const TYPE_SORTED_SET_LISTPACK: u8 = 17;

/// The lengths that stand for a score instead of the length of its text.
const TEXT_NAN: u8 = 253;
const TEXT_INFINITE: u8 = 254;
const TEXT_NEGATIVE_INFINITE: u8 = 255;

pub(super) fn type_of(set: SortedSetValue<'_>) -> u8 {
    match set {
        SortedSetValue::Packed(_) => TYPE_SORTED_SET_LISTPACK,
        SortedSetValue::Large(_) => TYPE_SORTED_SET,
    }
}

pub(super) fn put_sorted_set(out: &mut Vec<u8>, set: SortedSetValue<'_>) {
    match set {
        SortedSetValue::Packed(row) => {
            let texts: Vec<Vec<u8>> = row.iter().map(|it| score_text(it.score)).collect();
            let elements =
                row.iter().zip(&texts).flat_map(|(it, score)| [it.member, Element::of(score)]);
            put_string(out, &listpack::write(elements));
        }
        SortedSetValue::Large(set) => {
            put_length(out, set.len());
            // The highest score comes first, as Redis writes it.
            for it in set.iter_back_from(set.len()) {
                it.member.with_text(|text| put_string(out, text));
                out.extend_from_slice(&it.score.get().to_le_bytes());
            }
        }
    }
}

fn score_text(score: Score) -> Vec<u8> {
    let mut text = Vec::new();
    resp::write_double(&mut text, score.get());
    text
}

/// Reads a sorted set of the type [`TYPE_SORTED_SET`] as a row of at most `bytes_max` bytes.
pub(super) fn read_binary(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    read_members(reader, bytes_max, |reader| Some(f64::from_le_bytes(reader.array()?)))
}

/// Reads a sorted set of the type [`TYPE_TEXT_SCORES`] as a row of at most `bytes_max` bytes.
pub(super) fn read_text_scores(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    read_members(reader, bytes_max, |reader| match reader.byte()? {
        TEXT_NEGATIVE_INFINITE => Some(f64::NEG_INFINITY),
        TEXT_INFINITE => Some(f64::INFINITY),
        TEXT_NAN => None,
        length => parse_score(reader.take(length.into())?),
    })
}

fn read_members(
    reader: &mut RdbReader<'_>,
    bytes_max: usize,
    read_score: impl Fn(&mut RdbReader<'_>) -> Option<f64>,
) -> Option<Vec<u8>> {
    let members = reader.length()?;
    let mut row = Vec::new();
    for _ in 0..members {
        let text = reader.string(bytes_max)?;
        let score = Score::new(read_score(reader)?)?;
        ScoredMember { score, member: Element::of(&text) }.write(&mut row);
        if row.len() > bytes_max {
            return None;
        }
    }
    sorted(&row)
}

/// Reads a sorted set of the type [`TYPE_SORTED_SET_LISTPACK`] as a row of at most `bytes_max` bytes.
pub(super) fn read_listpack(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let listpack = reader.string(bytes_max)?;
    let elements = listpack::read(&listpack)?;
    let mut row = Vec::new();
    let (pairs, []) = elements.as_chunks::<2>() else { return None };
    for [member, score] in pairs {
        let score = match score {
            Element::Integer(number) => Score::of(Element::Integer(*number))?,
            Element::Bytes(text) => Score::new(parse_score(text)?)?,
        };
        ScoredMember { score, member: *member }.write(&mut row);
    }
    sorted(&row).filter(|row| row.len() <= bytes_max)
}

/// Reads a score as Redis prints it.
fn parse_score(text: &[u8]) -> Option<f64> {
    let is_plain = |byte: &u8| byte.is_ascii_digit() || b"+-.einf".contains(byte);
    let text = core::str::from_utf8(text).ok().filter(|_| text.iter().all(is_plain))?;
    text.parse().ok()
}

/// Returns the row in the order of a sorted set, if it is one: at least one member, and none twice.
fn sorted(row: &[u8]) -> Option<Vec<u8>> {
    let pairs = store::ScoredRow::check(row).ok()?;
    let mut members: Vec<ScoredMember<'_>> = pairs.iter().collect();
    members.sort_unstable_by(|one, other| one.member.cmp(&other.member));
    let is_set =
        !members.is_empty() && members.windows(2).all(|pair| pair[0].member != pair[1].member);
    members.sort_unstable();
    let mut sorted = Vec::with_capacity(row.len());
    members.iter().for_each(|it| it.write(&mut sorted));
    is_set.then_some(sorted)
}

#[cfg(test)]
mod tests;

//! A score of a sorted set as an element, and the order of scores. A whole number is an ordinary element of one to nine
//! bytes; every other score is a string of the eight bytes of the float.

use core::cmp::Ordering;

use crate::element::Element;

/// Every whole number up to this one is a float, too.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A float that is a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Score(f64);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> Ordering {
        self.0.partial_cmp(&other.0).expect("no score is NaN")
    }
}

impl Score {
    /// The longest form of a score in a row.
    pub(crate) const BYTES_MAX: usize = 9;

    /// Returns `None` for NaN.
    pub fn new(score: f64) -> Option<Score> {
        (!score.is_nan()).then_some(Score(score))
    }

    pub fn get(self) -> f64 {
        self.0
    }

    /// Calls `use_it` with the score as an element.
    pub fn with_element<R>(self, use_it: impl FnOnce(Element<'_>) -> R) -> R {
        let is_whole = self.0 % 1.0 == 0.0 && self.0.abs() <= WHOLE_MAX;
        let is_negative_zero = self.0 == 0.0 && self.0.is_sign_negative();
        if is_whole && !is_negative_zero {
            return use_it(Element::Integer(self.0 as i64));
        }
        use_it(Element::Bytes(&self.0.to_le_bytes()))
    }

    /// Reads a score. `None` if the element is none.
    pub fn of(element: Element<'_>) -> Option<Score> {
        match element {
            Element::Integer(number) => Some(Score(number as f64)),
            Element::Bytes(bytes) => Score::new(f64::from_le_bytes(bytes.try_into().ok()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_read_as_it_was_written() {
        // The bytes of the last one are the text "12345678".
        let text = f64::from_le_bytes(*b"12345678");
        let scores = [0.0, -0.0, 1.0, -1.0, 0.5, 1e300, WHOLE_MAX, -WHOLE_MAX, f64::INFINITY, text];
        for score in scores {
            let mut bytes = Vec::new();
            Score(score).with_element(|element| element.write(&mut bytes));
            let (element, _) = Element::read(&bytes).expect("complete");
            let read = Score::of(element).expect("a score");
            assert_eq!(read.get().to_bits(), score.to_bits());
        }
        assert_eq!(Score::new(f64::NAN), None);
        assert_eq!(Score::of(Element::Bytes(b"short")), None);
        assert_eq!(Score::of(Element::Bytes(&f64::NAN.to_le_bytes())), None);
    }
}

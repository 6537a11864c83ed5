//! Classes of anomalies: the ways in which a run can show that a promise was broken, and their counts.
//!
//! The book (`book.rs`) finds those of single keys, `silences.rs` hung requests, `holds.rs` locks with two
//! holders, `clients/transactions.rs` partial transactions. `report.rs` prints one count for each class.
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// An acknowledged write is gone at the end, or an older value has survived it.
    Lost,
    /// A read showed an older state than one already acknowledged or read.
    Stale,
    /// A value is read that was deleted, with the delete acknowledged.
    Resurrected,
    /// A request got neither a reply nor the end of its connection.
    Hung,
    /// Two clients held one lock at the same time.
    TwoHolders,
    /// Some commands of a transaction have taken effect and others have not.
    Partial,
    /// A value is read that was refused with an error, or that nobody wrote.
    Phantom,
}

impl Class {
    pub const ALL: [Class; 7] = [
        Class::Lost,
        Class::Stale,
        Class::Resurrected,
        Class::Hung,
        Class::TwoHolders,
        Class::Partial,
        Class::Phantom,
    ];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Lost => "lost",
            Class::Stale => "stale",
            Class::Resurrected => "resurrected",
            Class::Hung => "hung",
            Class::TwoHolders => "two lock holders",
            Class::Partial => "partial transactions",
            Class::Phantom => "phantoms",
        })
    }
}

/// One broken promise, with the key or request it concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anomaly {
    pub class: Class,
    pub details: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.details)
    }
}

pub fn count(anomalies: &[Anomaly], class: Class) -> usize {
    anomalies.iter().filter(|anomaly| anomaly.class == class).count()
}

/// Returns the count of every class in one line: `lost 0, stale 0, ...`.
pub fn summary(anomalies: &[Anomaly]) -> String {
    let counts = Class::ALL.map(|class| format!("{class} {}", count(anomalies, class)));
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_count_in_the_summary() {
        let anomaly = |class| Anomaly { class, details: String::new() };
        let found = [anomaly(Class::Hung), anomaly(Class::Lost), anomaly(Class::Hung)];
        assert_eq!(
            summary(&found),
            "lost 1, stale 0, resurrected 0, hung 2, two lock holders 0, partial transactions 0, \
             phantoms 0"
        );
    }
}

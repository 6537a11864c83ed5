//! Versions of the protocols between nodes. A node announces the range of versions it speaks; two nodes use the newest
//! version that both speak. So nodes of neighbouring releases work together while a cluster is upgraded node by node.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The newest version of all protocols between nodes that this build speaks.
pub const PROTOCOL_VERSION: u16 = 4;
/// The oldest version that this build still speaks. From the first release on, this is at most the version of the
/// release before.
const OLDEST_VERSION: u16 = 4;

/// The versions that a node speaks, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProtocolRange {
    pub oldest: u16,
    pub newest: u16,
}

impl ProtocolRange {
    /// The versions that this build speaks.
    pub const OURS: ProtocolRange =
        ProtocolRange { oldest: OLDEST_VERSION, newest: PROTOCOL_VERSION };

    /// Returns the newest version that both speak, the same for both ends. None if there is none.
    pub fn common(self, other: ProtocolRange) -> Option<u16> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    /// Returns the range as the number in the first bytes of a link: the newest version in the low half, the oldest
    /// in the high half.
    pub fn to_number(self) -> u32 {
        u32::from(self.oldest) << 16 | u32::from(self.newest)
    }

    /// Returns the range of such a number. Builds from before there were ranges sent their only version.
    #[expect(clippy::cast_possible_truncation, reason = "the halves of the number")]
    pub fn from_number(number: u32) -> ProtocolRange {
        let (oldest, newest) = ((number >> 16) as u16, number as u16);
        ProtocolRange { oldest: if oldest == 0 { newest } else { oldest }, newest }
    }
}

impl fmt::Display for ProtocolRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProtocolRange { oldest, newest } = self;
        if oldest == newest { write!(f, "{newest}") } else { write!(f, "{oldest} to {newest}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(oldest: u16, newest: u16) -> ProtocolRange {
        ProtocolRange { oldest, newest }
    }

    #[test]
    fn two_nodes_agree_on_the_newest_version_that_both_speak() {
        let here = range(4, 5);
        let cases = [
            (range(4, 5), Some(5)),
            (range(3, 4), Some(4)), // The release before.
            (range(5, 6), Some(5)), // The release after.
            (range(1, 9), Some(5)),
            (range(2, 3), None),
            (range(6, 7), None),
        ];
        for (there, agreed) in cases {
            assert_eq!(here.common(there), agreed, "{there}");
            assert_eq!(there.common(here), agreed, "both ends agree: {there}");
        }
    }

    #[test]
    fn this_build_accepts_its_neighbours_if_they_speak_its_version() {
        let ours = ProtocolRange::OURS;
        for newest in [PROTOCOL_VERSION, PROTOCOL_VERSION + 1] {
            assert_eq!(ours.common(range(PROTOCOL_VERSION, newest)), Some(PROTOCOL_VERSION));
        }
        assert_eq!(ours.common(range(PROTOCOL_VERSION + 1, PROTOCOL_VERSION + 2)), None);
        assert_eq!(ours.common(range(1, OLDEST_VERSION - 1)), None);
    }

    #[test]
    fn a_range_survives_the_wire_and_a_plain_version_is_a_range_of_one() {
        for sent in [range(4, 4), range(4, 5), range(1, u16::MAX)] {
            assert_eq!(ProtocolRange::from_number(sent.to_number()), sent);
        }
        assert_eq!(ProtocolRange::from_number(4), range(4, 4));
        assert_eq!(
            (range(4, 4).to_string(), range(3, 4).to_string()),
            ("4".into(), "3 to 4".into())
        );
    }
}

//! A map as the picture that `cluster::status` draws: nodes as columns, buckets as rows.

use cluster::map::{Map, NodeId};
use cluster::status::{self, Status};

pub use cluster::status::BUCKETS_MAX;

/// The picture of a map.
pub fn picture(map: &Map) -> String {
    status::picture(&Status::of(map, NodeId(0)))
}

/// One line about a map that is too large for a picture.
pub fn summary(map: &Map) -> String {
    status::summary(&Status::of(map, NodeId(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weather;
    use crate::grow::{Growth, Newcomer};
    use cluster::map::ClusterSettings;
    use placement::Mask;

    #[test]
    fn two_nodes_look_like_this() {
        let (mask, settings) = (Mask::M000F, ClusterSettings::default());
        let mut growth = Growth::start(1, Weather::calm(), Newcomer::default(), mask, settings);
        let step = growth.join(Newcomer::default());
        let wanted = "\
            \x20      A       B\n\
            #0     S       P\n\
            #1     P       S\n\
            #2     S       P\n\
            #3     P       S\n\
            #4     S       P\n\
            #5     P       S\n\
            #6     S       P\n\
            #7     P       S\n\
            #8     S       P\n\
            #9     P       S\n\
            #A     S       P\n\
            #B     P       S\n\
            #C     S       P\n\
            #D     P       S\n\
            #E     S       P\n\
            #F     P       S*\n\
            \x20   8+8=16  8+8=16\n";
        assert_eq!(picture(&step.map), wanted);
        assert_eq!(
            summary(&step.map),
            "2 nodes, 16 buckets: 16 copies each, 8 of them primaries\n"
        );
    }
}

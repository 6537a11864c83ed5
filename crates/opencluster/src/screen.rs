//! Drawing shared by `top` and `demo`: the picture of buckets, members, moves and changes, for ratatui. The
//! wording is that of `opencluster status`.

mod ink; //     Colours of the parts of a picture; also for `status`.
mod bands; //   Many buckets: a band of cells for each node.
mod panels; //  Boxes with tables in them.

pub(crate) use bands::bands;
#[cfg(test)]
pub(crate) use ink::Ink;
pub(crate) use ink::painted;
pub(crate) use panels::{changes, members, moves, panel, picture, sparkline};

#[cfg(test)]
pub(crate) mod testing {
    //! A screen without a terminal, and a cluster to show on it.

    use cluster::map::{
        Boot, Change, ClusterSettings, Endpoints, LogIndex, Map, Member, NodeId, Zone,
    };
    use cluster::status::{ChangeStatus, LevelsStatus, MoveStatus, Status, Vote};
    use placement::Mask;
    use ratatui::backend::TestBackend;
    use ratatui::{Frame, Terminal};

    /// Returns the text on the screen after `draw`, line by line.
    pub(crate) fn drawn(width: u16, height: u16, draw: impl FnOnce(&mut Frame<'_>)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(draw).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |row: u16| -> String {
            let cells = (0..width).map(|column| buffer[(column, row)].symbol());
            cells.collect::<String>().trim_end().to_owned() + "\n"
        };
        (0..height).map(line).collect()
    }

    fn member(number: u64, name: &str) -> Member {
        let at = Endpoints {
            host: "10.0.0.1".to_owned(),
            client: 6379,
            peer: 16_379,
            http: 7379,
            replica: 0,
        };
        let (id, boot) = (NodeId(number), Boot(1));
        Member { id, boot, name: name.to_owned(), weight: 1, zone: Zone::default(), at }
    }

    /// Returns a cluster in which A holds everything, and B has just joined and is being filled.
    pub(crate) fn two_nodes(mask: Mask) -> Status {
        let mut map = Map::found(member(1, "A"), mask, ClusterSettings::default());
        map.apply(LogIndex(2), &Change::Join(member(2, "B")));
        let mut status = Status {
            cluster: "c1".to_owned(),
            leader: Some("A".to_owned()),
            ..Status::of(&map, NodeId(1))
        };
        let levels = LevelsStatus {
            bytes: 5 << 20,
            ops_per_second: 12_345,
            busy: true,
            sick: false,
            full: false,
            out_of_memory: false,
            lag_bytes: 0,
        };
        status.members[0].levels = Some(levels);
        status.members[0].vote = Vote::Voter;
        status.moves.push(MoveStatus {
            bucket: status.buckets[0].bucket.clone(),
            kind: "fill".to_owned(),
            giver: "A".to_owned(),
            source: "A".to_owned(),
            taker: "B".to_owned(),
            rule: "too few backups".to_owned(),
            sent_bytes: 1 << 20,
            percent: 25,
            millis: 250,
        });
        status.changes.push(ChangeStatus {
            epoch: 2,
            at: 10_000,
            what: "B joins".to_owned(),
            why: "it was started with this cluster's address".to_owned(),
        });
        status
    }
}

//! Changes of the map as clients read them.

use cluster::map::{Change, ChangeOutcome, ClusterSettings, LogIndex, Map, MapJournal, NodeId};
use placement::Mask;

use super::*;
use crate::testing::{TestNode, member};

fn apply(map: &mut Map, change: &Change) -> Arc<Map> {
    let index = LogIndex(map.epoch().0 + 1);
    assert_eq!(map.apply(index, change), ChangeOutcome::Applied, "{change:?}");
    Arc::new(map.clone())
}

/// Returns a node whose map has come from epoch 1 to 3: B has joined, and has become a backup.
fn node() -> (TestNode, Map) {
    let mut map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
    let mut journal = MapJournal::new(Arc::new(map.clone()));
    journal.follow(&apply(&mut map, &Change::Join(member(2))));
    let (bucket, expected) = ("000F/0003".parse().unwrap(), Epoch::FIRST);
    let add = Change::AddBackup { bucket, node: NodeId(2), expected };
    journal.follow(&apply(&mut map, &add));
    let mut node = TestNode::default();
    node.host.journal = Some(journal);
    (node, map)
}

fn since(node: &mut TestNode, words: &str) -> String {
    let command = format!("CLUSTER HASHMASKS SINCE {words}");
    let args: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let answer = &node.args(1, &args)[0];
    String::from_utf8_lossy(answer.text().expect("a text")).into_owned()
}

#[test]
fn a_client_reads_what_has_changed_since_an_epoch() {
    let (mut node, map) = node();
    let (history, id) = (map.generation().history(), format_node_id(NodeId(2)));
    let all = since(&mut node, "0");
    assert_eq!(all.lines().count(), 1 + 2 + 16, "{all}");
    let lines = [
        format!("3 1 {history}\n"),
        format!("node B 10.0.0.2 6379 {id}\n"),
        "bucket 000F/0003 12288 13311 2 A B\n".to_owned(),
    ];
    assert_eq!(since(&mut node, "1"), lines.concat());
    assert_eq!(since(&mut node, &format!("3 {history}")), format!("3 3 {history}\n"));
}

#[test]
fn an_epoch_from_which_no_changes_are_known_is_refused() {
    let (mut node, map) = node();
    for (words, refusal) in [
        ("SINCE 4", "TRYAGAIN this node is at epoch 3, and has not reached 4 yet"),
        ("SINCE 3 9-0", "TOOOLD this node's map belongs to another history"),
        ("SINCE -1", "ERR an epoch is a number from 0 on"),
        ("SINCE soon", "ERR value is not an integer"),
        ("SINCE", "ERR syntax error"),
    ] {
        let answer = node.run(&format!("CLUSTER HASHMASKS {words}"));
        assert!(answer.starts_with(&format!("(error) {refusal}")), "{words}: {answer}");
    }
    node.host.journal = Some(MapJournal::new(Arc::new(map)));
    let answer = node.run("CLUSTER HASHMASKS SINCE 2");
    let refusal = "(error) TOOOLD this node knows changes only since epoch 3, not since 2";
    assert!(answer.starts_with(refusal), "{answer}");
}

#[test]
fn a_connection_asks_for_all_events_before_it_subscribes() {
    let mut node = TestNode::default();
    assert_eq!(node.on(1, "CLUSTER EVENTS some"), "(error) ERR syntax error");
    assert_eq!(node.on(1, "CLUSTER EVENTS all"), "OK");
    for connection in [1, 2] {
        node.on(connection, "HELLO 3");
        node.on(connection, "SUBSCRIBE c");
    }
    assert_eq!(node.on(1, "CLUSTER EVENTS ALL"), "OK", "nothing changes");
    let refused = "(error) ERR CLUSTER EVENTS ALL must come before the first subscription";
    assert_eq!(node.on(2, "CLUSTER EVENTS ALL"), refused);
}

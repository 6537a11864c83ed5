//! Tests of INFO, section by section.

use store::Database;

use crate::KeyspaceNumbers;
use crate::testing::TestNode;

fn sections(text: &str) -> Vec<String> {
    let titles = text.trim_matches('"').split("\\r\\n").filter_map(|line| line.strip_prefix("# "));
    titles.map(str::to_owned).collect()
}

#[test]
fn sections_are_chosen_as_redis_chooses_them() {
    let mut node = TestNode::default();
    let default = sections(&node.run("INFO"));
    assert_eq!(
        default.join(" "),
        "Server Clients Memory Persistence Stats Replication CPU Modules Errorstats Cluster Keyspace"
    );
    assert_eq!(sections(&node.run("INFO default")), default);
    assert_eq!(sections(&node.run("INFO everything")).len(), 13);
    assert_eq!(sections(&node.run("INFO all")).len(), 12);
    assert_eq!(sections(&node.run("INFO keyspace SERVER")), ["Server", "Keyspace"]);
    assert_eq!(node.run("INFO nosuch"), "\"\"");
}

#[test]
fn lines_tell_what_the_node_knows() {
    let mut node = TestNode::default();
    let zero = KeyspaceNumbers { keys: 3, expiring: 1, average_ttl: 900 };
    let ninth = KeyspaceNumbers { keys: 1, ..KeyspaceNumbers::default() };
    let number = |number| Database::new(number).expect("small enough");
    node.host.facts.keyspace = vec![(Database::ZERO, zero), (number(9), ninth)];
    node.host.facts.memory.allocated = 941_144;
    node.host.facts.traffic.commands = 17;
    assert_eq!(
        node.run("INFO keyspace"),
        "\"# Keyspace\\r\\ndb0:keys=3,expires=1,avg_ttl=900\\r\\ndb9:keys=1,expires=0,avg_ttl=0\\r\\n\""
    );
    assert!(node.run("INFO memory").contains("\\r\\nused_memory_human:919.09K\\r\\n"));
    node.host.facts.memory.links = 5_000;
    let told = node.run("INFO memory");
    for field in ["mem_not_counted_for_evict", "mem_cluster_links"] {
        assert!(told.contains(&format!("\\r\\n{field}:5000\\r\\n")), "{told}");
    }
    assert!(node.run("INFO stats").contains("\\r\\ntotal_commands_processed:17\\r\\n"));
    assert!(node.run("INFO replication").contains("\\r\\nrole:master\\r\\n"));
}

#[test]
fn a_node_that_refuses_several_slots_says_that_it_is_a_cluster() {
    let mut node = TestNode::default();
    assert!(node.run("INFO cluster").contains("cluster_enabled:0"));
    node.env.one_slot_only = true;
    assert!(node.run("INFO cluster").contains("cluster_enabled:1"));
    assert!(node.run("INFO server").contains("redis_mode:cluster"));
}

//! Single rules of the pipeline, each with the accident it prevents.

use std::collections::BTreeMap;
use std::time::Duration;

use commands::Table;

use super::nodes::{Connection, Nodes, Ran, node_at, owned, slot, take_request, words};
use crate::any_port::forwarded::RETRIES_MAX;
use crate::any_port::pipeline::{OUTPUT_BYTES_MAX, Pipeline, REQUESTS_MAX};
use crate::any_port::upstream::UpstreamId;

/// A pipeline among nodes that the test moves by hand.
struct Bench {
    table: Table,
    pipeline: Pipeline,
    nodes: Nodes,
    connections: BTreeMap<UpstreamId, (usize, Connection)>,
    /// Nodes that accept no connection.
    unreachable: Vec<usize>,
    /// Replies that replace the next ones of a node.
    faults: Vec<(usize, &'static [u8])>,
    /// Replies that nodes have sent and the pipeline has not read.
    replies: BTreeMap<UpstreamId, Vec<u8>>,
    said: String,
    /// The time that a command has waited for keys when it is sent again.
    waited: Duration,
}

impl Bench {
    /// Keys `a` and `b` belong to the nodes 1 and 2, all others to node 0, where the client is connected.
    fn new() -> Bench {
        let mut nodes = Nodes::new(3);
        nodes.give(slot("a"), 1, true);
        nodes.give(slot("b"), 2, true);
        Bench {
            table: Table::default(),
            pipeline: Pipeline::default(),
            nodes,
            connections: BTreeMap::new(),
            unreachable: Vec::new(),
            faults: Vec::new(),
            replies: BTreeMap::new(),
            said: String::new(),
            waited: Duration::ZERO,
        }
    }

    /// Gives requests to the pipeline in one batch, with no other step in between. Returns the number of
    /// requests accepted.
    fn request(&mut self, lines: &[&str]) -> usize {
        for (index, line) in lines.iter().enumerate() {
            if !self.pipeline.wants_request() {
                return index;
            }
            let args = owned(&words(line));
            self.pipeline.request(&self.table, args.args(), &self.nodes);
        }
        lines.len()
    }

    fn connect(&mut self) {
        while let Some((id, address)) = self.pipeline.next_unconnected() {
            let node = node_at(&address);
            if self.unreachable.contains(&node) {
                self.pipeline.unreachable(id, &self.nodes);
            } else {
                self.connections.insert(id, (node, Connection::default()));
            }
        }
    }

    /// Lets all nodes serve the commands sent to them.
    fn serve(&mut self) {
        self.connect();
        for (id, (node, connection)) in &mut self.connections {
            let Some(upstream) = self.pipeline.upstream(*id) else { continue };
            let output = &mut upstream.unsent;
            let mut bytes: Vec<u8> = output.chunks(output.mark()).flatten().copied().collect();
            output.advance(bytes.len());
            let reply = self.replies.entry(*id).or_default();
            while let Some(words) = take_request(&mut bytes) {
                let fault = self.faults.iter().position(|(at, _)| at == node);
                reply.extend_from_slice(&match fault {
                    Some(index) if words[0] != b"MULTI" => self.faults.remove(index).1.to_vec(),
                    _ => self.nodes.serve(*node, connection, &words),
                });
            }
        }
        self.replies.retain(|_, bytes| !bytes.is_empty());
    }

    /// Breaks a connection.
    fn break_connection(&mut self, id: UpstreamId) {
        self.connections.remove(&id);
        self.replies.remove(&id);
        self.pipeline.lost(id, &self.nodes);
    }

    /// Lets nodes serve and the client read, until nothing moves.
    fn settle(&mut self) {
        loop {
            self.serve();
            self.read();
            let from = self.pipeline.reads_from();
            let wanted = from.and_then(|id| Some((id, self.replies.remove(&id)?)));
            if let Some((id, bytes)) = wanted {
                self.pipeline.receive(id, &bytes, &self.nodes);
            } else if self.pipeline.is_pausing() {
                self.pipeline.retry(self.waited, &self.nodes);
            } else {
                break;
            }
        }
        self.read();
    }

    /// Lets the client read all there is.
    fn read(&mut self) {
        let output = &mut self.pipeline.output;
        let bytes: Vec<u8> = output.chunks(output.mark()).flatten().copied().collect();
        output.advance(bytes.len());
        self.said.push_str(&String::from_utf8_lossy(&bytes));
    }

    /// Sends a batch, as much at a time as is accepted, and returns what the client has read since.
    fn run(&mut self, lines: &[&str]) -> String {
        let mut rest = lines;
        while !rest.is_empty() {
            let taken = self.request(rest);
            self.settle();
            rest = &rest[taken..];
            if taken == 0 && !self.pipeline.wants_request() {
                break;
            }
        }
        core::mem::take(&mut self.said).replace("\r\n", " ").trim_end().to_owned()
    }

    fn connection_to(&self, node: usize) -> UpstreamId {
        let found = self.connections.iter().find(|(_, (at, _))| *at == node);
        *found.expect("there is a connection").0
    }

    fn ran(&self) -> Vec<String> {
        let line = |ran: &Ran| String::from_utf8_lossy(&ran.words.join(&b' ')).into_owned();
        self.nodes.log.iter().map(line).collect()
    }
}

#[test]
fn multi_in_a_batch_takes_no_earlier_reply() {
    let mut bench = Bench::new();
    assert_eq!(bench.run(&["SET a 7"]), "+OK");
    let said = bench.run(&["GET a", "MULTI", "SET a 1", "EXEC", "GET a"]);
    assert_eq!(said, "$1 7 +OK +QUEUED *1 +OK $1 1");
}

#[test]
fn a_name_given_in_a_batch_loses_no_answer_and_reaches_every_node() {
    let mut bench = Bench::new();
    let batch = ["GET a", "GET b", "CLIENT SETNAME me", "GET a", "GET b", "CLIENT GETNAME"];
    assert_eq!(bench.run(&batch), "$-1 $-1 +OK $-1 $-1 $2 me");
    let names: Vec<&[u8]> = bench.nodes.log.iter().map(|ran| ran.name.as_slice()).collect();
    assert_eq!(names, [&b""[..], b"", b"me", b"me"]);
    // A node contacted later knows it, too.
    bench.nodes.give(slot("c"), 0, true);
    bench.run(&["GET c"]);
    assert_eq!(bench.nodes.log.last().unwrap().name, b"me");
}

#[test]
fn commands_of_one_slot_never_overtake_each_other() {
    let mut bench = Bench::new();
    // Node 1 does not serve the first command: the slot is briefly elsewhere, and then back.
    bench.faults.push((1, b"-MOVED 15495 node2:2\r\n"));
    bench.request(&["SET a 1", "SET a 2"]);
    bench.serve();
    assert!(bench.ran().is_empty(), "the second waits: {:?}", bench.ran());
    bench.nodes.give(slot("a"), 2, false);
    bench.settle();
    assert_eq!(bench.said, "+OK\r\n+OK\r\n");
    assert_eq!(bench.ran(), ["SET a 1", "SET a 2"]);
}

#[test]
fn tryagain_and_ask_are_followed() {
    let mut bench = Bench::new();
    bench.faults.push((1, b"-TRYAGAIN soon\r\n"));
    bench.faults.push((1, b"-ASK 15495 node2:2\r\n"));
    assert_eq!(bench.run(&["SET a 1", "GET b"]), "+OK $-1");
    let set = bench.nodes.log.iter().find(|ran| ran.words[0] == b"SET").unwrap();
    assert_eq!(set.node, 2, "it was asked there");
}

#[test]
fn a_command_that_waits_has_the_connection_alone_and_goes_on_elsewhere() {
    let mut bench = Bench::new();
    bench.waited = Duration::from_millis(1_500);
    bench.faults.push((1, b"-TRYAGAIN soon\r\n"));
    bench.request(&["BLPOP a 5", "SET b 1"]);
    bench.connect();
    assert!(bench.pipeline.is_blocked());
    assert!(!bench.pipeline.wants_request(), "what follows is not sent");
    bench.settle();
    assert!(!bench.pipeline.is_blocked());
    let ran = bench.ran();
    assert_eq!(ran, ["BLPOP a 3.500", "SET b 1"]);
}

#[test]
fn a_redirection_without_end_is_told_at_last() {
    let mut bench = Bench::new();
    for _ in 0..=RETRIES_MAX {
        bench.faults.push((1, b"-TRYAGAIN soon\r\n"));
    }
    assert_eq!(bench.run(&["GET a", "GET b"]), "-TRYAGAIN soon $-1");
}

#[test]
fn a_retry_that_is_given_up_is_answered_with_the_redirection() {
    let mut bench = Bench::new();
    bench.faults.push((1, b"-TRYAGAIN soon\r\n"));
    bench.request(&["GET a", "GET b"]);
    bench.serve();
    let from = bench.pipeline.reads_from().expect("an answer is due");
    let reply = bench.replies.remove(&from).expect("the node has answered");
    bench.pipeline.receive(from, &reply, &bench.nodes);
    assert!(bench.pipeline.is_pausing());
    bench.pipeline.give_up(&bench.nodes);
    bench.settle();
    assert_eq!(bench.said, "-TRYAGAIN soon\r\n$-1\r\n");
}

#[test]
fn replies_stay_with_the_nodes_while_the_client_does_not_read() {
    let mut bench = Bench::new();
    bench.nodes.store.insert(b"a".to_vec(), vec![b'x'; OUTPUT_BYTES_MAX]);
    bench.nodes.store.insert(b"b".to_vec(), vec![b'x'; OUTPUT_BYTES_MAX]);
    bench.request(&["GET a", "GET b"]);
    bench.serve();
    let from = bench.pipeline.reads_from().expect("the first answer is due");
    assert_eq!(bench.connections[&from].0, 1, "only the oldest answer is read");
    // The reply streams through: half of it is already with the client.
    let reply = bench.replies.remove(&from).expect("the node has answered");
    let (half, rest) = reply.split_at(OUTPUT_BYTES_MAX / 2);
    bench.pipeline.receive(from, half, &bench.nodes);
    assert_eq!(bench.pipeline.output.len(), half.len());
    bench.pipeline.receive(from, rest, &bench.nodes);
    assert_eq!(bench.pipeline.reads_from(), None, "the client must read first");
    assert!(!bench.pipeline.wants_request(), "and no request is taken");
    assert!(bench.pipeline.reply_bytes() < OUTPUT_BYTES_MAX + 64);
    bench.read();
    let from = bench.pipeline.reads_from().expect("the second answer is due");
    assert_eq!(bench.connections[&from].0, 2);
}

#[test]
fn requests_and_refusals_are_bounded() {
    let mut bench = Bench::new();
    let keys: Vec<String> = (0..REQUESTS_MAX + 9).map(|number| format!("GET k{number}")).collect();
    let lines: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert!(bench.request(&lines) <= REQUESTS_MAX);
    // Refusals need no node, and still wait for the client.
    let mut bench = Bench::new();
    let refused = vec!["RENAME a b"; OUTPUT_BYTES_MAX];
    assert!(bench.request(&refused) < OUTPUT_BYTES_MAX / 16);
}

#[test]
fn a_write_that_ran_in_part_closes_the_connection() {
    for batch in ["MSET a 1 b 2", "DEL a b"] {
        let mut bench = Bench::new();
        bench.faults.push((2, b"-OOM no room\r\n"));
        assert_eq!(bench.run(&["GET c", batch, "GET c"]), "$-1", "{batch}");
        assert!(bench.pipeline.is_finished());
    }
}

#[test]
fn a_scattered_command_that_ran_nowhere_or_reads_is_answered_with_its_error() {
    let mut bench = Bench::new();
    bench.faults.push((1, b"-NOAUTH first\r\n"));
    bench.faults.push((2, b"-NOAUTH second\r\n"));
    assert_eq!(bench.run(&["MSET a 1 b 2", "PING"]), "-NOAUTH second +PONG");
    bench.faults.push((1, b"-OOM no room\r\n"));
    assert_eq!(bench.run(&["EXISTS a b", "PING"]), "-OOM no room +PONG");
    assert_eq!(bench.run(&["MSET a 1 b 2", "MGET b a c"]), "+OK *3 $1 2 $1 1 $-1");
}

#[test]
fn a_break_is_answered_with_the_answers_before_it_and_the_end() {
    let mut bench = Bench::new();
    bench.request(&["GET a", "SET b 1", "GET c"]);
    bench.serve();
    bench.break_connection(bench.connection_to(2));
    assert!(!bench.pipeline.wants_request(), "nothing more is taken");
    bench.settle();
    assert_eq!(bench.said, "$-1\r\n");
    assert!(bench.pipeline.is_finished());
    assert_eq!(bench.ran().iter().filter(|line| *line == "SET b 1").count(), 1, "sent once");
}

#[test]
fn an_idle_connection_that_breaks_is_made_again() {
    let mut bench = Bench::new();
    assert_eq!(bench.run(&["CLIENT SETNAME me", "GET a"]), "+OK $-1");
    bench.break_connection(bench.connection_to(1));
    assert_eq!(bench.run(&["GET a"]), "$-1");
    assert_eq!(bench.nodes.log.last().unwrap().name, b"me");
}

#[test]
fn a_transaction_or_watch_is_lost_with_its_connection() {
    for lines in [&["WATCH a"][..], &["MULTI", "SET a 1"], &["WATCH a", "MULTI"]] {
        let mut bench = Bench::new();
        bench.run(lines);
        bench.break_connection(bench.connection_to(1));
        assert!(bench.pipeline.is_finished(), "{lines:?}");
    }
    let mut bench = Bench::new();
    bench.run(&["MULTI"]);
    bench.break_connection(bench.connection_to(0));
    assert!(bench.pipeline.is_finished(), "MULTI alone is open at this node");
}

#[test]
fn a_node_that_cannot_be_reached_has_run_nothing() {
    let mut bench = Bench::new();
    bench.unreachable.push(1);
    let error = "-CLUSTERDOWN cannot connect to node1:1; nothing was done";
    assert_eq!(bench.run(&["SET a 1", "SET b 1"]), format!("{error} +OK"));
    // A write in parts: one has run.
    assert_eq!(bench.run(&["MSET a 1 b 2"]), "");
    assert!(bench.pipeline.is_finished());
    // The map has changed since: the command goes to the new node.
    let mut bench = Bench::new();
    bench.unreachable.push(1);
    bench.request(&["SET a 1"]);
    bench.nodes.give(slot("a"), 2, true);
    bench.settle();
    assert_eq!(bench.said, "+OK\r\n");
    // A transaction is never started halfway.
    let mut bench = Bench::new();
    bench.unreachable.push(1);
    assert_eq!(bench.run(&["MULTI", "SET a 1", "EXEC"]), "+OK");
    assert!(bench.pipeline.is_finished() && bench.ran().is_empty());
}

#[test]
fn transactions_run_where_their_first_key_is() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.run(&["MULTI", "SET a 1", "GET a", "EXEC"]),
        "+OK +QUEUED +QUEUED *2 +OK $1 1"
    );
    assert_eq!(
        bench.run(&["MULTI", "PING", "DISCARD", "EXEC"]),
        "+OK +QUEUED +OK -ERR EXEC without MULTI"
    );
    assert_eq!(
        bench.run(&["WATCH a", "SET a 2", "MULTI", "GET a", "EXEC"]),
        "+OK +OK +OK +QUEUED *-1"
    );
    let batch = ["WATCH a", "UNWATCH", "SET a 3", "MULTI", "GET a", "EXEC"];
    assert_eq!(bench.run(&batch), "+OK +OK +OK +OK +QUEUED *1 $1 3");
    let refused = bench.run(&["WATCH a", "WATCH b", "UNWATCH"]);
    assert_eq!(refused, "+OK -ERR all watched keys must live on one node; use a hash tag +OK");
}

#[test]
fn a_watch_that_is_redirected_is_kept_where_the_transaction_runs() {
    let mut bench = Bench::new();
    bench.nodes.give(slot("a"), 2, false);
    assert_eq!(bench.run(&["WATCH a", "SET a 1"]), "+OK +OK");
    assert_eq!(bench.run(&["MULTI", "GET a", "EXEC"]), "+OK +QUEUED *-1");
}

#[test]
fn a_transaction_with_a_refused_command_does_not_run() {
    let mut bench = Bench::new();
    let said = bench.run(&["MULTI", "SET a 1", "CLIENT SETNAME x", "EXEC", "GET a"]);
    let refused = "-ERR this command is not allowed inside MULTI on the any-port";
    let aborted = "-EXECABORT Transaction discarded because of previous errors.";
    assert_eq!(said, format!("+OK +QUEUED {refused} {aborted} $-1"));
    assert_eq!(bench.run(&["MULTI", "SUBSCRIBE c", "EXEC"]), format!("+OK {refused} {aborted}"));
    // The reply to MULTI has not arrived yet when the next command is read.
    let crosses = "-CROSSSLOT Keys in request don't hash to the same slot";
    let said = bench.run(&["MULTI", "RENAME a b", "SET c 1", "EXEC", "GET c"]);
    assert_eq!(said, format!("+OK {crosses} +QUEUED {aborted} $-1"));
}

#[test]
fn reset_begins_anew_on_every_node() {
    let mut bench = Bench::new();
    let batch = ["CLIENT SETNAME me", "GET a", "MULTI", "SET a 1", "RESET", "GET a"];
    assert_eq!(bench.run(&batch), "+OK $-1 +OK +QUEUED +RESET $-1");
    assert_eq!(bench.nodes.log.last().unwrap().name, b"");
}

#[test]
fn quit_is_answered_and_nothing_after_it() {
    let mut bench = Bench::new();
    assert_eq!(bench.run(&["GET a", "QUIT", "GET b"]), "$-1 +OK");
    assert!(bench.pipeline.is_finished());
}

#[test]
fn a_listener_is_tied_to_this_node_and_hears_no_introduction() {
    let mut bench = Bench::new();
    // The introduction's reply must not reach the client as a message.
    assert_eq!(bench.run(&["CLIENT SETNAME me"]), "+OK");
    bench.break_connection(bench.connection_to(0));
    assert_eq!(bench.run(&["GET a", "SUBSCRIBE c"]), "$-1 *3 $9 subscribe $1 c :1");
    let tied = bench.pipeline.tied().expect("it listens");
    assert_eq!(bench.connections[&tied].0, 0);
    bench.break_connection(tied);
    assert!(bench.pipeline.is_finished());
}

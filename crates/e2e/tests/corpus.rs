//! Replays the interesting inputs that fuzzing found: every file in fuzz/corpus/TARGET.
#[path = "../../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "in fuzz/ it is a library")]
mod fuzz;

use std::path::Path;

/// Runs a target on every input of its corpus; the last input printed is the one that broke it.
fn replay(target: &str, claim: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let inputs = std::fs::read_dir(&dir).expect("every target has a corpus");
    let mut count = 0;
    for input in inputs {
        let path = input.expect("a folder can be listed").path();
        println!("{}", path.display());
        claim(&std::fs::read(&path).expect("a file of the corpus can be read"));
        count += 1;
    }
    assert!(count > 0, "the corpus of {target} is empty");
}

#[test]
fn requests_of_the_corpus_read_the_same_in_any_pieces() {
    replay("request_parser", fuzz::request_parser);
}

#[test]
fn commands_of_the_corpus_leave_the_node_standing() {
    replay("command_execution", fuzz::command_execution);
}

#[test]
fn replies_of_the_corpus_read_the_same_in_any_pieces() {
    replay("reply_parser", fuzz::reply_parser);
}

#[test]
fn patterns_of_the_corpus_name_a_slot_only_if_it_is_certain() {
    replay("sort_patterns", fuzz::sort_patterns);
}

#[test]
fn payloads_of_the_corpus_that_are_restored_are_dumped_again() {
    replay("restore_payloads", fuzz::restore_payloads);
}

#[test]
fn strangers_of_the_corpus_are_not_let_in() {
    replay("peer_handshake", fuzz::peer_handshake);
}

#[test]
fn control_frames_of_the_corpus_read_the_same_in_any_pieces() {
    replay("control_frames", fuzz::control_frames);
}

#[test]
fn control_messages_of_the_corpus_leave_the_node_standing() {
    replay("control_messages", fuzz::control_messages);
}

#[test]
fn data_frames_of_the_corpus_change_nothing_that_is_served() {
    replay("data_frames", fuzz::data_frames);
}

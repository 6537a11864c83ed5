//! Tests of the requests and replies of TIMER.*, without a cluster: the host returns prepared answers.

use timers::{
    Callback, HttpTarget, Page, Record, ReplicationFactor, Retry, Seen, Sequence, TimeSpan,
    TimerAnswer, TimerId, TimerLife, TimerRefusal, TimerRequest, TimerSpec, TimerVersion,
};

use crate::testing::TestNode;

const ID: &str = "00000000000000ab-2";

fn id() -> TimerId {
    ID.parse().unwrap()
}

fn answering(answer: TimerAnswer) -> TestNode {
    let mut node = TestNode::default();
    node.host.timers_answer = Some(answer);
    node
}

fn spec() -> TimerSpec {
    let target = HttpTarget::parse("http://10.0.0.7/pop").unwrap();
    TimerSpec {
        tags: Vec::new(),
        interval: TimeSpan(1500),
        repeat_for: TimeSpan(3000),
        callback: Callback::Http { target, opaque: "o".to_owned(), timeout: TimeSpan(2000) },
        retry: Retry::NONE,
    }
}

#[test]
fn what_is_said_in_words_is_what_json_says() {
    let mut node = answering(TimerAnswer::Done(id()));
    let line = format!("TIMER.SET {ID} 1.5 REPEAT 3 HTTP http://10.0.0.7/pop o");
    assert_eq!(node.run(&line), format!("\"{ID}\""));
    assert_eq!(node.host.wishes, [TimerRequest::Put { id: id(), spec: spec() }]);
    node.run("timer.set * 20 replicas 3 retry 5 0.5 timeout 4 tag CALL 2 tag SMS 1 http http://a/");
    let Some(TimerRequest::Create { spec, factor }) = node.host.wishes.last() else {
        panic!("a new one")
    };
    assert_eq!(*factor, ReplicationFactor::new(3).unwrap());
    assert_eq!(spec.retry, Retry { attempts: 5, backoff: TimeSpan(500) });
    assert_eq!(spec.callback.timeout(), TimeSpan(4000));
    let tags: Vec<_> = spec.tags.iter().map(|tag| (tag.name.as_str(), tag.count)).collect();
    assert_eq!(tags, [("CALL", 2), ("SMS", 1)]);
}

#[test]
fn a_callback_can_be_a_message_or_a_command() {
    let mut node = answering(TimerAnswer::Done(id()));
    node.run("TIMER.SET * 1 PUBLISH news hello");
    node.run("TIMER.SET * 1 COMMAND SET key {sequence} EX 10");
    let callbacks: Vec<Callback> = node.host.wishes.iter().filter_map(callback).collect();
    let words = ["SET", "key", "{sequence}", "EX", "10"].map(str::to_owned).to_vec();
    let publish = Callback::Publish { channel: "news".to_owned(), message: "hello".to_owned() };
    assert_eq!(callbacks, [publish, Callback::Command(words)]);
}

fn callback(wish: &TimerRequest) -> Option<Callback> {
    match wish {
        TimerRequest::Create { spec, .. } | TimerRequest::Put { spec, .. } => {
            Some(spec.callback.clone())
        }
        TimerRequest::Delete(_) | TimerRequest::See(_) => None,
    }
}

#[test]
fn what_is_wrong_is_told_and_nobody_is_asked() {
    let mut node = answering(TimerAnswer::Done(id()));
    let wrong = [
        ("TIMER.SET * soon HTTP http://a/", "ERR value is not a valid float"),
        ("TIMER.SET * -1 HTTP http://a/", "ERR timing.interval must be a number"),
        ("TIMER.SET * nan HTTP http://a/", "ERR value is not a valid float"),
        ("TIMER.SET x 1 HTTP http://a/", "ERR an id is 16 hexadecimal digits"),
        ("TIMER.SET * 1 HTTP ftp://a/", "ERR callback.http.uri must begin with http://"),
        ("TIMER.SET * 1 HTTP http://a/ b c", "ERR syntax error"),
        ("TIMER.SET * 1 PUBLISH channel", "ERR syntax error"),
        ("TIMER.SET * 1 REPEAT 2 REPEAT", "ERR syntax error"),
        ("TIMER.SET * 1 RETRY x 1 HTTP http://a/", "ERR value is not an integer"),
        ("TIMER.SET * 1 RETRY 101 1 HTTP http://a/", "ERR retry.attempts"),
        ("TIMER.SET * 1 REPLICAS 0 HTTP http://a/", "ERR reliability.replication-factor"),
        ("TIMER.SET * 1 TIMEOUT 1 PUBLISH a b", "ERR only callbacks over HTTP have a timeout"),
        ("TIMER.SET * 1 SOMEHOW", "ERR wrong number of arguments"),
        ("TIMER.SET * 1 SOMEHOW x", "ERR syntax error"),
        ("TIMER.SET 00000000000000ab-2 1 REPLICAS 3 HTTP http://a/", "ERR reliability"),
        ("TIMER.DEL 7", "ERR an id is"),
        ("TIMER.GET 7", "ERR an id is"),
        ("TIMER.LIST AFTER", "ERR syntax error"),
        ("TIMER.LIST LIMIT 0", "ERR LIMIT must be from 1 to 1000"),
        ("TIMER.LIST SINCE 0", "ERR syntax error"),
    ];
    for (line, error) in wrong {
        let reply = node.run(line);
        assert!(reply.starts_with(&format!("(error) {error}")), "{line}: {reply}");
    }
    assert_eq!(node.host.wishes, []);
    node.host.callback_objection = Some("callback.http.uri: not there".to_owned());
    let reply = node.run("TIMER.SET * 1 HTTP http://a/");
    assert_eq!(reply, "(error) ERR callback.http.uri: not there");
}

#[test]
fn a_timer_is_shown_in_the_words_it_was_set_with() {
    let life = TimerLife::Pending {
        spec: spec(),
        left: 2,
        due_in: TimeSpan(700),
        quiet_for: TimeSpan::ZERO,
    };
    let version = TimerVersion::default();
    let record = Record { id: id(), version, sequence: Sequence(3), life };
    let mut node = answering(TimerAnswer::Timer(Some(Box::new(record.clone()))));
    let shown = node.run(&format!("TIMER.GET {ID}"));
    for word in ["due-in", "0.7", "pops-left", "(integer) 2", "(integer) 3", "1.5", "HTTP"] {
        assert!(shown.contains(word), "{word} is not in {shown}");
    }
    node.host.timers_answer = Some(TimerAnswer::Timer(None));
    assert_eq!(node.run(&format!("TIMER.GET {ID}")), "(nil)");
    let found = Page { timers: vec![record], next: Some(id()) };
    node.host.timers_answer = Some(TimerAnswer::Page(Seen { found, silent: 0 }));
    let shown = node.run("TIMER.LIST LIMIT 1");
    assert_eq!(shown.matches(ID).count(), 2, "where to go on, and one id: {shown}");
}

#[test]
fn what_was_not_done_is_an_error_and_what_nobody_knows_ends_the_connection() {
    let mut node = answering(TimerAnswer::Refused(TimerRefusal::Busy));
    assert!(node.run(&format!("TIMER.DEL {ID}")).starts_with("(error) TRYAGAIN"));
    node.host.timers_answer = Some(TimerAnswer::Refused(TimerRefusal::Full));
    assert!(node.run("TIMER.SET * 1 HTTP http://a/").starts_with("(error) ERR the node"));
    node.host.timers_answer = Some(TimerAnswer::Refused(TimerRefusal::Unseen));
    assert!(node.run(&format!("TIMER.GET {ID}")).starts_with("(error) TRYAGAIN a node"));
    node.host.timers_answer = None;
    assert_eq!(node.run(&format!("TIMER.DEL {ID}")), "", "it is run again when there is an answer");
    assert!(!node.session(1).closing);
    node.host.timers_answer = Some(TimerAnswer::Refused(TimerRefusal::Unknown));
    assert_eq!(node.run(&format!("TIMER.DEL {ID}")), "");
    assert!(node.session(1).closing);
}

#[test]
fn they_wait_for_others_and_so_are_not_part_of_a_transaction() {
    let mut node = answering(TimerAnswer::Done(id()));
    node.run("MULTI");
    assert!(node.run(&format!("TIMER.DEL {ID}")).starts_with("(error) ERR"));
    assert_eq!(node.host.wishes, []);
}

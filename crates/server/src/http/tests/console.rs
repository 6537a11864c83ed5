//! The console's own paths: the page, the stream of events, and the authorization of changes.

use std::io::{BufRead, BufReader};

use cluster::map::{Change, LeaveWay, LogIndex};

use super::*;

#[test]
fn the_page_comes_from_the_node_and_may_talk_to_nobody_else() {
    let (server, _) = server();
    let answer = get(&server, "/", LOCAL);
    assert_eq!(status(&answer), 200);
    assert!(answer.contains("content-security-policy: default-src 'none'; script-src 'self'"));
    let page = body(&answer);
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    let parts = page.split("=\"/console/").skip(1).filter_map(|rest| rest.split('"').next());
    let mut count = 0;
    for part in parts {
        assert_eq!(status(&get(&server, &format!("/console/{part}"), LOCAL)), 200, "{part}");
        count += 1;
    }
    assert!(count >= 4, "styles, icon and script: {count}");
    assert_eq!(status(&get(&server, "/console/nothing.js", LOCAL)), 404);
}

#[test]
fn what_a_browser_has_already_is_not_sent_again() {
    let (server, _) = server();
    for path in ["/", "/console/main.js", "/api/map"] {
        let answer = get(&server, path, LOCAL);
        let tag = answer.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag");
        let again = get(&server, path, &format!("{LOCAL}If-None-Match: {tag}\r\n"));
        assert_eq!((status(&again), body(&again)), (304, ""), "{path}");
    }
}

/// Returns the next event of a stream: its name and its data.
fn event(stream: &mut impl BufRead) -> (String, serde_json::Value) {
    let mut name = String::new();
    for line in stream.by_ref().lines() {
        let line = line.expect("the stream goes on");
        if let Some(told) = line.strip_prefix("event: ") {
            told.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (name, serde_json::from_str(data).expect("JSON"));
        }
    }
    panic!("the stream has ended");
}

fn stream(server: &HttpServer) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.addr()).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let request = format!("GET /api/events HTTP/1.1\r\n{LOCAL}\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    BufReader::new(stream)
}

#[test]
fn a_stream_begins_with_everything_and_goes_on_with_what_changes() {
    let (server, source) = server();
    let mut events = stream(&server);
    let (name, hello) = event(&mut events);
    assert_eq!((name.as_str(), &hello["can_operate"]), ("hello", &true.into()));
    let (name, cluster) = event(&mut events);
    assert_eq!((name.as_str(), &cluster["node"]), ("status", &"a".into()));
    let (name, map) = event(&mut events);
    assert_eq!(name, "map");
    assert_eq!(map["buckets"].as_array().map(Vec::len), Some(16));
    let later: Vec<String> = (0..3).map(|_| event(&mut events).0).collect();
    assert_eq!(later, ["status", "node", "sample"]);
    let mut changed = Map::clone(&ConsoleSource::map(&*source));
    let joined = Member { id: NodeId(9), name: "b".to_owned(), ..member() };
    changed.apply_entry(LogIndex(2), None, &[Change::Join(joined)]);
    source.map.store(Some(Arc::new(changed)));
    let told = std::iter::repeat_with(|| event(&mut events)).find(|(name, _)| name == "map");
    assert_eq!(told.map(|(_, map)| map["members"].clone()), Some(["a", "b"].as_slice().into()));
}

#[test]
fn there_is_an_end_to_the_streams_one_node_serves() {
    let (server, _) = server();
    let mut open: Vec<_> = (0..32).map(|_| stream(&server)).collect();
    for events in &mut open {
        assert_eq!(event(events).0, "hello");
    }
    let refused = get(&server, "/api/events", LOCAL);
    assert_eq!(status(&refused), 503);
    assert!(body(&refused).contains("32 consoles are open"), "{refused}");
    drop(open);
    let freed = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let mut line = String::new();
        stream(&server).read_line(&mut line).expect("an answer");
        line.contains("200")
    });
    assert!(freed, "who has gone leaves a place");
}

#[test]
fn a_reader_who_takes_nothing_is_dropped() {
    let take_within = Duration::from_millis(300);
    let (server, source) = server_within(HttpLimits { take_within, ..LIMITS });
    let many = Map::found(member(), Mask::M3FFF, ClusterSettings::default());
    let streams = (0..8).map(|_| {
        let mut stream = TcpStream::connect(server.addr()).expect("it listens");
        let request = format!("GET /api/map HTTP/1.1\r\n{LOCAL}\r\n");
        // Request more than the system buffers for a client that does not read.
        stream.write_all(request.repeat(100).as_bytes()).expect("requests");
        stream
    });
    source.map.store(Some(Arc::new(many)));
    let streams: Vec<TcpStream> = streams.collect();
    std::thread::sleep(take_within * 10);
    for mut stream in streams {
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let mut taken = Vec::new();
        let ended = stream.read_to_end(&mut taken);
        let answers = taken.windows(12).filter(|it| it == b"HTTP/1.1 200").count();
        assert!(answers < 100, "{answers} answers, {ended:?}");
    }
    assert_eq!(status(&get(&server, "/healthz", LOCAL)), 200);
}

fn post(server: &HttpServer, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\n{LOCAL}Connection: close\r\n{headers}");
    send(server, format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes())
}

const JSON: &str = "Content-Type: application/json\r\n";

fn allowed() -> String {
    format!("{JSON}Authorization: Bearer {TOKEN}\r\nSec-Fetch-Site: same-origin\r\n")
}

#[test]
fn with_the_token_the_cluster_is_operated() {
    let (server, source) = server();
    for (path, order, told) in [
        ("/api/leave", "{}", "hands its buckets over"),
        ("/api/split", "{}", "largest"),
        ("/api/split", "{\"bucket\":\"000F/0003\"}", "the bucket"),
        ("/api/settings", "{\"name\":\"backups\",\"value\":\"2\"}", "the whole cluster"),
    ] {
        let answer = post(&server, path, &allowed(), order);
        assert_eq!(status(&answer), 202, "{answer}");
        assert!(body(&answer).contains(told), "{answer}");
    }
    let asked = source.asked.lock().clone();
    let bucket = "000F/0003".parse().ok();
    let backups = cluster::map::Setting::Backups(2);
    assert_eq!(
        asked,
        [
            OperatorRequest::Leave(LeaveWay::Safe),
            OperatorRequest::Split(None),
            OperatorRequest::Split(bucket),
            OperatorRequest::Set(backups)
        ]
    );
}

#[test]
fn a_wrong_order_says_what_is_wrong_and_changes_nothing() {
    let (server, source) = server();
    for (path, order, code, told) in [
        ("/api/split", "{\"bucket\":\"0010/0001\"}", 400, "error"),
        ("/api/split", "{\"bucket\":\"00FF/0004\"}", 409, "there is no bucket 00FF/0004"),
        ("/api/split", "[]", 400, "not a JSON object"),
        ("/api/settings", "{\"name\":\"backups\"}", 400, "both strings"),
        ("/api/settings", "{\"name\":\"backups\",\"value\":\"9\"}", 400, "a number from 0 to 3"),
        ("/api/settings", "{\"name\":\"a\",\"value\":\"9\"}", 400, "unknown cluster setting"),
    ] {
        let answer = post(&server, path, &allowed(), order);
        assert_eq!(status(&answer), code, "{order}: {answer}");
        assert!(body(&answer).contains(told), "{order}: {answer}");
    }
    assert!(source.asked.lock().is_empty());
}

#[test]
fn without_the_token_from_elsewhere_or_by_get_nothing_is_changed() {
    let (server, source) = server();
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    for (headers, code) in [
        (JSON.to_owned(), 401),
        (format!("{JSON}Authorization: Bearer open\r\n"), 401),
        (format!("{JSON}Authorization: Basic {TOKEN}\r\n"), 401),
        (right.clone(), 415),
        (format!("{right}Content-Type: text/plain\r\n"), 415),
        (format!("{JSON}{right}Sec-Fetch-Site: cross-site\r\n"), 403),
        (format!("{JSON}{right}Sec-Fetch-Site: same-site\r\n"), 403),
        (format!("{JSON}{right}Origin: http://evil.example\r\n"), 403),
    ] {
        let answer = post(&server, "/api/leave", &headers, "{}");
        assert_eq!(status(&answer), code, "{headers}: {answer}");
    }
    for path in ["/api/leave", "/api/split", "/api/settings"] {
        assert_eq!(status(&get(&server, path, &format!("{LOCAL}{right}"))), 405, "{path}");
    }
    let large = format!("{{\"bucket\":\"{}\"}}", "x".repeat(8_000));
    assert_eq!(status(&post(&server, "/api/split", &allowed(), &large)), 413);
    assert!(source.asked.lock().is_empty());
}

#[test]
fn a_node_without_a_token_only_shows() {
    let source = Arc::new(Fake::default());
    let options = HttpOptions { admin_token: Secret::default(), ..options() };
    let server = start(options, Arc::<Fake>::clone(&source)).expect("a free port");
    for token in ["", TOKEN] {
        let headers = format!("{JSON}Authorization: Bearer {token}\r\n");
        let answer = post(&server, "/api/leave", &headers, "{}");
        assert_eq!(status(&answer), 403, "{answer}");
        assert!(body(&answer).contains("--admin-token-file FILE"), "{answer}");
    }
    assert_eq!(event(&mut stream(&server)).1["can_operate"], false);
    assert!(source.asked.lock().is_empty());
}

#[test]
fn a_node_that_stops_ends_its_streams_at_once() {
    let (mut server, _) = server();
    let mut events = stream(&server);
    assert_eq!(event(&mut events).0, "hello");
    let began = Instant::now();
    server.shutdown();
    assert!(began.elapsed() < LIMITS.close_within, "nothing had to be cut");
    let mut rest = Vec::new();
    events.read_to_end(&mut rest).expect("the stream ends as it should");
    assert!(rest.ends_with(b"0\r\n\r\n"), "by its last chunk");
}

//! The HTTP surface over real sockets, with a source of made-up numbers.

mod console;
mod door;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use cluster::control::OperatorRequest;
use cluster::map::{Boot, ClusterSettings, Endpoints, Map, Member, NodeId, Zone};
use cluster::merge::Tally;
use commands::{OwnedArgs, SlowCommand};
use parking_lot::Mutex;
use placement::Mask;

use super::*;

/// The admin token of the fake node.
const TOKEN: &str = "open sesame";

#[derive(Default)]
struct Fake {
    stopping: AtomicBool,
    map: ArcSwapOption<Map>,
    asked: Mutex<Vec<OperatorRequest>>,
    /// The password of the client port.
    password: Mutex<Secret>,
}

fn member() -> Member {
    Member {
        id: NodeId(7),
        boot: Boot(1),
        name: "a".to_owned(),
        weight: 1,
        zone: Zone::default(),
        at: Endpoints::default(),
    }
}

impl ConsoleSource for Fake {
    fn map(&self) -> Arc<Map> {
        let first = || Arc::new(Map::found(member(), Mask::M000F, ClusterSettings::default()));
        self.map.compare_and_swap(&None::<Arc<Map>>, Some(first()));
        self.map.load_full().expect("it is there now")
    }

    fn cluster_without_buckets(&self) -> Status {
        Status::without_buckets(&ConsoleSource::map(self), NodeId(7))
    }

    fn hour(&self) -> Vec<Sample> {
        self.latest_sample().into_iter().collect()
    }

    fn latest_sample(&self) -> Option<Sample> {
        Some(Sample { at: 5, reads: 70, ..Sample::default() })
    }

    fn slow_commands(&self) -> Vec<SlowCommand> {
        vec![SlowCommand {
            id: 1,
            unix_seconds: 9,
            micros: 12_000,
            args: OwnedArgs::new([&b"GET"[..], b"secret"]),
            client_address: "127.0.0.1:9".to_owned(),
            client_name: Vec::new(),
        }]
    }

    fn ask(&self, ask: OperatorRequest) -> Result<(), String> {
        if ask == OperatorRequest::Split(Some("00FF/0004".parse().expect("a hashmask"))) {
            return Err("there is no bucket 00FF/0004".to_owned());
        }
        self.asked.lock().push(ask);
        Ok(())
    }
}

impl HttpSource for Fake {
    fn timers(&self) -> Router<Arc<dyn HttpSource>> {
        let routes = axum::routing::any(|| async { "a timer" });
        Router::new().route("/timers", routes.clone()).route("/timers/{id}", routes)
    }

    fn password(&self) -> Secret {
        self.password.lock().clone()
    }

    fn cluster(&self) -> Status {
        Status::of(&ConsoleSource::map(self), NodeId(7))
    }

    fn metrics(&self) -> NodeMetrics {
        NodeMetrics {
            name: "a\"b".to_owned(),
            client_addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 6379)),
            uptime: Duration::from_millis(61_500),
            io_threads: 2,
            clients_connected: 3,
            clients_max: 10_000,
            connections_accepted: 8,
            connections_refused: 1,
            auth_failed: 4,
            bytes_in: 1000,
            bytes_out: 2000,
            commands: vec![
                CommandClass { class: "read", calls: 70, failed: 0 },
                CommandClass { class: "write", calls: 30, failed: 2 },
            ],
            keys: 12,
            keys_with_expiry: 4,
            keys_expired: 5,
            keys_evicted: 6,
            lookups_hit: 60,
            lookups_missed: 10,
            merged: Tally { taken: 3, lost_here: 1, ..Tally::default() },
            memory: MemoryMetrics { allocated: 111, resident: 222, max: 333 },
        }
    }

    fn readiness(&self) -> NodeReadiness {
        if self.stopping.load(Ordering::SeqCst) {
            return NodeReadiness::NotReady("stopping".to_owned());
        }
        NodeReadiness::Ready
    }
}

fn server() -> (HttpServer, Arc<Fake>) {
    server_within(LIMITS)
}

fn server_within(limits: HttpLimits) -> (HttpServer, Arc<Fake>) {
    let source = Arc::new(Fake::default());
    let server = start_within(limits, options(), Arc::<Fake>::clone(&source));
    (server.expect("a free port"), source)
}

fn options() -> HttpOptions {
    HttpOptions {
        addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        host_names: vec!["db1.example".to_owned()],
        admin_token: Secret::new(TOKEN),
        open: HttpOpen::Health,
        guesses: Arc::default(),
        connections_max: LIMITS.connections + LIMITS.health_connections,
    }
}

/// Sends `request` as it is and returns everything received until the connection closes.
fn send(server: &HttpServer, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.addr()).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let _ = stream.write_all(request); // A refusal may arrive before the last byte is sent.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("our answers are text")
}

fn get(server: &HttpServer, path: &str, headers: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    send(server, request.as_bytes())
}

fn status(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).unwrap_or("0");
    status.parse().expect("a status is a number")
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head and a body").1
}

const LOCAL: &str = "Host: localhost\r\n";

#[test]
fn a_node_is_healthy_whatever_name_it_is_asked_by() {
    let (server, _) = server();
    for headers in [LOCAL, "Host: anything.example\r\n"] {
        let answer = get(&server, "/healthz", headers);
        assert_eq!((status(&answer), body(&answer)), (200, "ok\n"));
    }
}

#[test]
fn a_node_that_stops_is_healthy_but_not_ready() {
    let (server, source) = server();
    assert_eq!(body(&get(&server, "/readyz", LOCAL)), "ready\n");
    source.stopping.store(true, Ordering::SeqCst);
    let answer = get(&server, "/readyz", LOCAL);
    assert_eq!((status(&answer), body(&answer)), (503, "not ready: stopping\n"));
    assert_eq!(status(&get(&server, "/healthz", LOCAL)), 200);
}

#[test]
fn metrics_are_prometheus_text() {
    let (server, _) = server();
    let answer = get(&server, "/metrics", LOCAL);
    assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
    let version = env!("CARGO_PKG_VERSION");
    let expected = [
        &format!("opencluster_info{{version=\"{version}\",name=\"a\\\"b\"}} 1"),
        "opencluster_uptime_seconds 61.500",
        "# TYPE opencluster_commands_total counter",
        "opencluster_commands_total{class=\"read\"} 70",
        "opencluster_commands_failed_total{class=\"write\"} 2",
        "opencluster_clients_connected 3",
        "opencluster_connections_refused_total 1",
        "opencluster_auth_failed_total 4",
        "opencluster_network_in_bytes_total 1000",
        "opencluster_network_out_bytes_total 2000",
        "# TYPE opencluster_keys gauge",
        "opencluster_keys 12",
        "opencluster_keys_expired_total 5",
        "opencluster_keys_evicted_total 6",
        "opencluster_lookups_total{result=\"hit\"} 60",
        "opencluster_lookups_total{result=\"miss\"} 10",
        "opencluster_memory_allocated_bytes 111",
        "opencluster_memory_resident_bytes 222",
        "opencluster_memory_max_bytes 333",
        "opencluster_merged_keys_total{outcome=\"taken\"} 3",
        "opencluster_merged_keys_total{outcome=\"conflict_lost_here\"} 1",
    ];
    let lines: Vec<&str> = body(&answer).lines().collect();
    for line in expected {
        assert!(lines.contains(&line), "{line}\nis not in\n{answer}");
    }
}

#[test]
fn every_sample_has_its_type_above_it() {
    let (server, _) = server();
    let answer = get(&server, "/metrics", LOCAL);
    let mut family = "";
    for line in body(&answer).lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().expect("a name");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().expect("a name");
            assert_eq!(name, family);
        }
    }
}

#[test]
fn the_page_gets_its_numbers_as_json() {
    let (server, _) = server();
    let answer = get(&server, "/api/node", LOCAL);
    let node: serde_json::Value = serde_json::from_str(body(&answer)).expect("JSON");
    assert_eq!(node["name"], "a\"b");
    assert_eq!(node["port"], 6379);
    assert_eq!(node["uptime_ms"], 61_500);
    assert_eq!(node["commands"]["total"], 100);
    assert_eq!(node["commands"]["failed"], 2);
    assert_eq!(node["commands"]["by_class"]["write"], 30);
    assert_eq!(node["keys"]["held"], 12);
    assert_eq!(node["memory"]["allocated_bytes"], 111);
    assert_eq!(node["lookups"]["miss"], 10);
}

#[test]
fn the_cluster_is_one_document() {
    let (server, _) = server();
    let answer = get(&server, "/api/cluster", LOCAL);
    let told: Status = serde_json::from_str(body(&answer)).expect("the document");
    assert_eq!((told.node.as_str(), told.buckets.len()), ("a", 16));
}

#[test]
fn strangers_names_and_pages_are_refused_everywhere_else() {
    let (server, _) = server();
    for path in ["/", "/metrics", "/api/node", "/api/cluster", "/nowhere"] {
        let rebound = get(&server, path, "Host: evil.example\r\n");
        assert_eq!(status(&rebound), 421, "{path}");
        assert!(body(&rebound).contains("--http-allowed-hosts evil.example"));
        let headers = "Host: localhost\r\nOrigin: https://evil.example\r\n";
        assert_eq!(status(&get(&server, path, headers)), 403, "{path}");
        assert_eq!(status(&get(&server, path, "")), 400, "{path}");
    }
    assert_eq!(status(&get(&server, "/metrics", "Host: db1.example:7379\r\n")), 200);
}

#[test]
fn bad_requests_get_a_status_and_no_more() {
    let (server, _) = server();
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024));
    let many = "X: y\r\n".repeat(HEADERS_MAX + 1);
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    let post = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    let large = "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n";
    let cases = [
        ("GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (post, 405),
        (large, 413),
        (&long, 431),
        (&many, 431),
        ("*1\r\n$4\r\nPING\r\n", 400),
        ("GET / HTTP/9.9\r\n\r\n", 400),
    ];
    for (request, expected) in cases {
        let answer = send(&server, request.as_bytes());
        assert_eq!(status(&answer), expected, "{:.60}", request.escape_debug().to_string());
    }
}

#[test]
fn a_node_that_stops_waits_for_no_slow_client() {
    let (mut server, _) = server();
    let mut slow = TcpStream::connect(server.addr()).expect("it listens");
    slow.write_all(b"GET / HT").expect("half a request");
    let addr = server.addr();
    let began = Instant::now();
    server.shutdown();
    assert!(began.elapsed() < LIMITS.close_within + Duration::from_secs(3));
    assert!(TcpStream::connect(addr).is_err(), "nobody listens any more");
}

#[test]
fn more_connections_than_places_wait_their_turn() {
    let long = Duration::from_secs(60);
    let limits = HttpLimits { head_within: long, crowded_head_within: long, ..LIMITS };
    let (server, _) = server_within(limits);
    let held: Vec<TcpStream> = (0..LIMITS.connections + LIMITS.health_connections)
        .map(|_| TcpStream::connect(server.addr()).expect("it listens"))
        .collect();
    let mut waiting = TcpStream::connect(server.addr()).expect("the kernel takes it");
    waiting.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").expect("a request");
    waiting.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    let mut answer = [0; 12];
    assert!(waiting.read_exact(&mut answer).is_err(), "all places are taken");
    drop(held);
    waiting.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    waiting.read_exact(&mut answer).expect("a place became free");
    assert_eq!(&answer, b"HTTP/1.0 200");
}

/// Returns the lifetime of a connection that sends `bytes` and then waits.
fn life_of(server: &HttpServer, bytes: &[u8]) -> Duration {
    let mut stream = TcpStream::connect(server.addr()).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let began = Instant::now();
    stream.write_all(bytes).expect("a few bytes");
    stream.read_to_end(&mut Vec::new()).expect("it is closed before we give up");
    began.elapsed()
}

#[test]
fn a_client_that_does_not_go_on_is_closed() {
    let head_within = Duration::from_millis(200);
    let (server, _) = server_within(HttpLimits { head_within, ..LIMITS });
    let whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for bytes in [&b""[..], b"GET /healthz HT", whole] {
        let life = life_of(&server, bytes);
        assert!(life >= head_within / 2 && life < Duration::from_secs(5), "{life:?}");
    }
}

#[test]
fn in_a_crowd_who_says_nothing_makes_room_soon() {
    let head_within = Duration::from_secs(60);
    let crowded_head_within = Duration::from_millis(200);
    let (server, _) = server_within(HttpLimits { head_within, crowded_head_within, ..LIMITS });
    let held: Vec<TcpStream> = (0..2 * LIMITS.connections)
        .map(|_| TcpStream::connect(server.addr()).expect("it listens"))
        .collect();
    let answer = get(&server, "/healthz", LOCAL);
    assert_eq!(status(&answer), 200, "behind all who say nothing");
    drop(held);
}

#[test]
fn a_client_that_goes_on_for_ever_is_closed_too() {
    let connection_for = Duration::from_millis(300);
    let (server, _) = server_within(HttpLimits { connection_for, ..LIMITS });
    let life = life_of(&server, b"GET /healthz HT");
    assert!(life >= connection_for && life < Duration::from_secs(8), "{life:?}");
}

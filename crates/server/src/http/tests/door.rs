//! Requests without credentials, with wrong ones, and with slow bodies.

use net::GUESSES_AT_ONCE;

use super::*;

const PASSWORD: &str = "hush hush";

/// Every path that is not a health check, and one that does not exist.
const CLOSED: [&str; 16] = [
    "/",
    "/console/main.js",
    "/metrics",
    "/api/node",
    "/api/cluster",
    "/api/map",
    "/api/events",
    "/api/history",
    "/api/slowlog",
    "/api/leave",
    "/api/split",
    "/api/settings",
    "/timers",
    "/timers/stats",
    "/timers/00000000000000aa-2",
    "/nowhere",
];

fn with_password(open: HttpOpen) -> (HttpServer, Arc<Fake>) {
    let source = Arc::new(Fake::default());
    *source.password.lock() = Secret::new(PASSWORD);
    let options = HttpOptions { open, ..options() };
    (start(options, Arc::<Fake>::clone(&source)).expect("a free port"), source)
}

fn request(server: &HttpServer, method: &str, path: &str, headers: &str) -> String {
    let head = format!("{method} {path} HTTP/1.1\r\n{LOCAL}Connection: close\r\n{headers}");
    send(server, format!("{head}Content-Length: 2\r\n\r\n{{}}").as_bytes())
}

#[test]
fn with_a_password_every_path_but_health_needs_credentials() {
    let (server, source) = with_password(HttpOpen::Health);
    for path in CLOSED {
        for method in ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"] {
            let answer = request(&server, method, path, "");
            assert_eq!(status(&answer), 401, "{method} {path}: {answer}");
            assert!(
                answer.contains("www-authenticate: Basic"),
                "a browser asks its user: {answer}"
            );
        }
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(status(&get(&server, path, "Host: any.example\r\n")), 200, "{path}");
    }
    assert!(source.asked.lock().is_empty());
}

#[test]
fn the_password_and_the_token_open_every_path() {
    let (server, _) = with_password(HttpOpen::Health);
    // Basic: "me:hush hush".
    let basic = "Authorization: Basic bWU6aHVzaCBodXNo\r\n".to_owned();
    let bearer = |secret: &str| format!("Authorization: Bearer {secret}\r\n");
    for headers in [bearer(PASSWORD), bearer(TOKEN), basic] {
        for path in ["/", "/metrics", "/api/cluster", "/timers", "/api/slowlog"] {
            let answer = get(&server, path, &format!("{LOCAL}{headers}"));
            assert_eq!(status(&answer), 200, "{path} {headers}: {answer}");
        }
    }
    let order = format!("{}Content-Type: application/json\r\n", bearer(PASSWORD));
    let answer = request(&server, "POST", "/api/leave", &order);
    assert_eq!(status(&answer), 401, "the cluster is operated with the token only: {answer}");
}

#[test]
fn the_setting_opens_metrics_under_any_name_or_closes_health() {
    let (server, _) = with_password(HttpOpen::Metrics);
    assert_eq!(status(&get(&server, "/metrics", "Host: any.example\r\n")), 200);
    assert_eq!(status(&get(&server, "/api/node", LOCAL)), 401);
    let (server, _) = with_password(HttpOpen::Nothing);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(status(&get(&server, path, LOCAL)), 401, "{path}");
    }
}

#[test]
fn guesses_are_not_even_judged_after_many_wrong_ones() {
    let (server, _) = with_password(HttpOpen::Health);
    let guess = |secret: &str| {
        let headers = format!("{LOCAL}Authorization: Bearer {secret}\r\n");
        status(&get(&server, "/api/slowlog", &headers))
    };
    assert_eq!(guess(PASSWORD), 200);
    let mut answers: Vec<u16> = (0..4 * GUESSES_AT_ONCE).map(|_| guess("wrong")).collect();
    let refused = answers.iter().position(|status| *status == 429).expect("an end of patience");
    assert!(refused >= GUESSES_AT_ONCE as usize, "{refused}");
    answers.truncate(refused);
    assert!(answers.iter().all(|status| *status == 401), "{answers:?}");
    assert_eq!(status(&get(&server, "/api/slowlog", LOCAL)), 401, "no guess");
    assert_eq!(status(&get(&server, "/healthz", LOCAL)), 200);
}

/// Opens connections that send a head and one byte of their body.
fn slow_bodies(server: &HttpServer, count: u32) -> Vec<TcpStream> {
    let half = format!("POST /timers HTTP/1.1\r\n{LOCAL}Content-Length: 60000\r\n\r\n{{");
    let open = |_| {
        let mut stream = TcpStream::connect(server.addr()).expect("it listens");
        stream.write_all(half.as_bytes()).expect("a head");
        stream
    };
    (0..count).map(open).collect()
}

#[test]
fn slow_bodies_do_not_keep_health_checks_out() {
    let long = Duration::from_secs(60);
    let limits = HttpLimits { head_within: long, crowded_head_within: long, ..LIMITS };
    let (server, _) = server_within(limits);
    let held = slow_bodies(&server, LIMITS.connections);
    let began = Instant::now();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(status(&get(&server, path, LOCAL)), 200, "{path}");
    }
    assert!(began.elapsed() < long / 2, "nobody's time had to run out");
    let answer = get(&server, "/metrics", LOCAL);
    assert_eq!(status(&answer), 503, "{answer}");
    drop(held);
}

#[test]
fn a_body_that_does_not_come_ends_the_connection() {
    let head_within = Duration::from_millis(200);
    let (server, _) = server_within(HttpLimits { head_within, ..LIMITS });
    let mut stream = slow_bodies(&server, 1).pop().expect("one");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is closed before we give up");
    assert_eq!(status(&answer), 408, "{answer}");
}

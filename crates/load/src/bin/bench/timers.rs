//! Timers on one node: bytes each; the rate at which they are accepted, beside the maximum of the same HTTP server;
//! and their lateness at five thousand a second. `timers/sink.rs` receives the callbacks.
mod sink;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use load::process;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Options;
use crate::measure;
use crate::servers::{Kind, Server, Tools};

const PENDING: u64 = 1_000_000;
const PENDING_QUICK: u64 = 50_000;
const CONNECTIONS: u64 = 16;
const RATE_FOR: Duration = Duration::from_secs(5);
const POPS_PER_SECOND: u64 = 5000;
const POPS: u64 = 25_000;
/// Time until the first of them is due: all must have been accepted by then.
const POPS_AHEAD: Duration = Duration::from_secs(20);

#[derive(Serialize, Deserialize)]
pub(crate) struct TimersResults {
    pub(crate) pending: u64,
    pub(crate) bytes_per_timer: u64,
    pub(crate) posts_per_second: f64,
    /// Rate of `GET /healthz`, by the same client over as many connections.
    pub(crate) bare_per_second: f64,
    /// Upper bounds in milliseconds, and the number of pops in each range of lateness.
    pub(crate) lateness: Vec<(String, u64)>,
    pub(crate) p99_at_most_ms: String,
}

pub(crate) fn run(tools: &Tools, options: &Options) -> io::Result<TimersResults> {
    let pending = if options.quick { PENDING_QUICK } else { PENDING };
    let server = tools.start(Kind::Ours, &measure::alone())?;
    let http = http_address(&server)?;
    // 1) The rate, before there is much to hold.
    let bare_per_second = rate(http, &request("GET", "/healthz", ""))?;
    let posts_per_second = rate(http, &post(3600.0, "http://127.0.0.1:9/pop"))?;
    // 2) The bytes per timer.
    let (before, begun) = (process::resident_bytes(server.pid())?, timers(http)?);
    repeat(http, &post(3600.0, "http://127.0.0.1:9/pop"), pending)?;
    let made = timers(http)? - begun;
    let bytes_per_timer = (process::resident_bytes(server.pid())? - before) / made.max(1);
    // 3) The lateness.
    let lateness = pop(http)?;
    let results = TimersResults {
        pending: made,
        bytes_per_timer,
        posts_per_second,
        bare_per_second,
        p99_at_most_ms: percentile_99(&lateness),
        lateness,
    };
    print(&results);
    Ok(results)
}

impl TimersResults {
    /// Returns this part's section of docs/benchmarks.md.
    pub(crate) fn section(&self) -> String {
        let ratio = self.posts_per_second / self.bare_per_second;
        format!(
            "One node, alone. The bare endpoint is `GET /healthz` of the same HTTP server, asked by the same \
             client over as many connections ({CONNECTIONS}); lateness is counted from when a timer was due to \
             the start of its callback, with {} others pending.\n\n\
             | | | target |\n|---|---:|---:|\n\
             | memory for each of {} pending timers | {} bytes | under 250 |\n\
             | `POST /timers` | {:.0}/s | |\n\
             | the bare endpoint | {:.0}/s | |\n\
             | share of it | {ratio:.2} | at least 0.50 |\n\
             | {POPS_PER_SECOND} pops a second: 99 of 100 are late by at most | {} ms | under 50 |\n",
            self.pending,
            self.pending,
            self.bytes_per_timer,
            self.posts_per_second,
            self.bare_per_second,
            self.p99_at_most_ms,
        )
    }
}

fn print(results: &TimersResults) {
    let ratio = results.posts_per_second / results.bare_per_second;
    println!("{} pending timers: {} bytes each", results.pending, results.bytes_per_timer);
    println!(
        "POST /timers: {:.0}/s, a bare endpoint: {:.0}/s, ratio {ratio:.2}",
        results.posts_per_second, results.bare_per_second
    );
    println!("{POPS_PER_SECOND} pops/s: 99 of 100 at most {} ms late", results.p99_at_most_ms);
    for (bound, count) in results.lateness.iter().filter(|(_, count)| *count > 0) {
        println!("  up to {bound:>6} ms: {count}");
    }
}

fn http_address(server: &Server) -> io::Result<SocketAddr> {
    let reply = server.client()?.call(&["CONFIG", "GET", "http-port"])?;
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let port = reply.lines().last().and_then(|port| port.trim().parse().ok());
    let port: u16 =
        port.ok_or_else(|| io::Error::other("CONFIG GET http-port returned no port"))?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn post(interval: f64, uri: &str) -> Vec<u8> {
    let body = json!({
        "timing": { "interval": interval },
        "callback": { "http": { "uri": uri, "opaque": "{\"order\":4711,\"step\":\"payment\"}" } },
    });
    request("POST", "/timers", &body.to_string())
}

/// A persistent connection.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(at: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(at)?;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    fn ask(&mut self, request: &[u8]) -> io::Result<String> {
        self.0.get_mut().write_all(request)?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 200") {
            let line = line.trim_end();
            return Err(io::Error::other(format!("the node answered {line} instead of 200")));
        }
        let mut length = 0;
        loop {
            line.clear();
            self.0.read_line(&mut line)?;
            let lower = line.to_ascii_lowercase();
            match lower.trim_end().strip_prefix("content-length: ") {
                Some(text) => length = text.parse().map_err(io::Error::other)?,
                None if lower.trim_end().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// Returns the number of requests answered per second, over several connections.
fn rate(at: SocketAddr, request: &[u8]) -> io::Result<f64> {
    let begun = Instant::now();
    let counts = over_connections(
        |connection| {
            let mut count = 0_u64;
            while begun.elapsed() < RATE_FOR {
                connection.ask(request)?;
                count += 1;
            }
            Ok(count)
        },
        at,
    )?;
    Ok(counts as f64 / begun.elapsed().as_secs_f64())
}

fn repeat(at: SocketAddr, request: &[u8], times: u64) -> io::Result<()> {
    over_connections(
        |connection| {
            for _ in 0..times / CONNECTIONS {
                connection.ask(request)?;
            }
            Ok(0)
        },
        at,
    )?;
    Ok(())
}

fn over_connections(
    run: impl Fn(&mut Connection) -> io::Result<u64> + Sync,
    at: SocketAddr,
) -> io::Result<u64> {
    thread::scope(|scope| {
        let one = || run(&mut Connection::open(at)?);
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
    })
}

fn stats(at: SocketAddr) -> io::Result<Value> {
    let body = Connection::open(at)?.ask(&request("GET", "/timers/stats", ""))?;
    serde_json::from_str(&body).map_err(io::Error::other)
}

fn timers(at: SocketAddr) -> io::Result<u64> {
    Ok(stats(at)?["timers"].as_u64().unwrap_or(0))
}

/// Lets timers pop at an even rate, and returns their lateness.
fn pop(at: SocketAddr) -> io::Result<Vec<(String, u64)>> {
    let sink = sink::start()?;
    let begun = Instant::now();
    let share = POPS / CONNECTIONS;
    thread::scope(|scope| {
        let fill = |from: u64| -> io::Result<()> {
            let mut connection = Connection::open(at)?;
            for number in (from..POPS).step_by(CONNECTIONS as usize).take(share as usize) {
                let due = POPS_AHEAD + Duration::from_millis(number * 1000 / POPS_PER_SECOND);
                let interval = due.saturating_sub(begun.elapsed()).as_secs_f64();
                connection.ask(&post(interval, &sink))?;
            }
            Ok(())
        };
        let threads: Vec<_> =
            (0..CONNECTIONS).map(|from| scope.spawn(move || fill(from))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    if begun.elapsed() > POPS_AHEAD {
        return Err(io::Error::other("accepting the timers took longer than their interval"));
    }
    let popping = Duration::from_millis(POPS * 1000 / POPS_PER_SECOND);
    thread::sleep((POPS_AHEAD + popping + Duration::from_secs(2)).saturating_sub(begun.elapsed()));
    let stats = stats(at)?;
    let buckets = stats["lateness"].as_array().cloned().unwrap_or_default();
    let row = |bucket: &Value| {
        let bound = bucket["up-to-ms"].to_string().replace('"', "");
        (bound, bucket["count"].as_u64().unwrap_or(0))
    };
    Ok(buckets.iter().map(row).collect())
}

fn percentile_99(lateness: &[(String, u64)]) -> String {
    let all: u64 = lateness.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    for (bound, count) in lateness {
        seen += count;
        if seen * 100 >= all * 99 && all > 0 {
            return bound.clone();
        }
    }
    "?".to_owned()
}

//! The clients in common use: each connects to a node and does some realistic work.
mod clusters; // The same clients against a cluster of three.
mod replicas; // Clients that read from replicas.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::{NODE, PYTHON, REDIS_BENCHMARK, REDIS_CLI, Server, Tool};

const REDIS_PY_STORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/redis_py.py");
const HINTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/hints.py");
const IOREDIS_STORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/ioredis.js");

/// Returns the output of `tool` run against `server`.
fn run(server: &Server, tool: Tool, args: &[&str]) -> String {
    feed(server, tool, args, b"")
}

fn feed(server: &Server, tool: Tool, args: &[&str], input: &[u8]) -> String {
    let port = server.port().to_string();
    tool.output(&[&["-p", &port], args].concat(), input)
}

#[test]
fn redis_cli_runs_commands() {
    let node = Server::node();
    assert_eq!(run(&node, REDIS_CLI, &["SET", "hello", "world", "EX", "100"]), "OK\n");
    assert_eq!(run(&node, REDIS_CLI, &["GET", "hello"]), "world\n");
    assert_eq!(run(&node, REDIS_CLI, &["-3", "GET", "nobody"]), "\n");
    assert_eq!(run(&node, REDIS_CLI, &["-r", "3", "INCR", "count"]), "1\n2\n3\n");
    let typed = b"SET \"a key\" \"a\\nvalue\"\nSTRLEN \"a key\"\nMULTI\nINCR count\nEXEC\n";
    assert_eq!(feed(&node, REDIS_CLI, &[], typed), "OK\n7\nOK\nQUEUED\n4\n");
}

#[test]
fn redis_cli_finds_big_keys() {
    let node = Server::node();
    fill(&node);
    let found = run(&node, REDIS_CLI, &["--bigkeys"]);
    assert!(found.contains("Sampled 1001 keys in the keyspace!"), "{found}");
    assert!(found.contains("Biggest string found '\"big\"' has 5000 bytes"), "{found}");
    let found = run(&node, REDIS_CLI, &["--memkeys"]);
    assert!(found.contains("Sampled 1001 keys in the keyspace!"), "{found}");
    assert!(found.contains("Biggest string found '\"big\"' has"), "{found}");
}

fn fill(node: &Server) {
    let mut client = node.client();
    for number in 0..1000 {
        client.run(&format!("SET key:{number} {number}"));
    }
    client.run(&format!("SET big {}", "x".repeat(5000)));
}

#[test]
fn redis_cli_hints_at_the_arguments() {
    let node = Server::node();
    let hint = "key value [NX|XX|IFEQ comparison-value]";
    let shown = PYTHON.output(&[HINTS, &node.port().to_string(), "set ", hint], b"");
    assert!(shown.contains(hint), "{shown:?}");
}

#[test]
fn redis_cli_measures_latency() {
    let node = Server::node();
    // Without a terminal it measures once: minimum, maximum, average, samples.
    let measured = run(&node, REDIS_CLI, &["--latency", "-i", "1"]);
    let numbers: Vec<f64> =
        measured.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    assert_eq!(numbers.len(), 4, "{measured}");
    assert!(numbers[3] > 10.0, "{measured}");
}

#[test]
fn redis_cli_shows_statistics() {
    let node = Server::node();
    fill(&node);
    // Line by line, although its output is not a terminal.
    let mut command = Command::new("stdbuf");
    command.arg("-oL").arg(REDIS_CLI.command().get_program());
    command.args(["-p", &node.port().to_string(), "--stat", "-i", "0.1"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("redis-cli can be started");
    // It never ends by itself.
    std::thread::sleep(Duration::from_secs(1));
    child.kill().expect("it is still running");
    let mut shown = String::new();
    child.stdout.take().expect("its output is piped").read_to_string(&mut shown).expect("text");
    child.wait().expect("it was ended");
    let first = shown.lines().nth(2).unwrap_or_default();
    assert!(first.starts_with("1001 "), "the first column is the number of keys: {shown}");
}

#[test]
fn redis_cli_loads_data_in_bulk() {
    let node = Server::node();
    let mut input = Vec::new();
    for number in 0..10_000 {
        let key = format!("key:{number}");
        resp::encode_command(&mut input, &[b"SET", key.as_bytes(), b"value"]);
    }
    let said = feed(&node, REDIS_CLI, &["--pipe"], &input);
    assert!(said.contains("errors: 0, replies: 10000"), "{said}");
    assert_eq!(node.client().run("DBSIZE"), resp::Value::Integer(10_000));
}

#[test]
fn redis_benchmark_runs_its_string_tests() {
    let node = Server::node();
    for pipeline in ["1", "16"] {
        let tests = "ping,set,get,incr,mset";
        let args = ["-t", tests, "-n", "5000", "-c", "20", "-P", pipeline, "-q"];
        let said = run(&node, REDIS_BENCHMARK, &args);
        assert_eq!(said.matches("requests per second").count(), 6, "{said}");
        assert!(!said.contains("WARN") && !said.contains("rror"), "{said}");
    }
}

#[test]
fn redis_py_tells_its_story() {
    let node = Server::node();
    let said = PYTHON.output(&[REDIS_PY_STORY, &node.port().to_string()], b"");
    assert_eq!(said, "redis-py: all told\n");
}

#[test]
fn ioredis_tells_its_story() {
    let node = Server::node();
    let said = NODE.output(&[IOREDIS_STORY, &node.port().to_string()], b"");
    assert_eq!(said, "ioredis: all told\n");
}

#[test]
fn redis_rs_tells_its_story() -> redis::RedisResult<()> {
    use redis::Commands;
    let node = Server::node();
    let client = redis::Client::open(format!("redis://127.0.0.1:{}/", node.port()))?;
    let mut connection = client.get_connection()?;
    let _: () = connection.set_ex("greeting", "hello", 100)?;
    assert_eq!(connection.get::<_, String>("greeting")?, "hello");
    assert_eq!(connection.get::<_, Option<String>>("nobody")?, None);
    let (count,): (i64,) =
        redis::pipe().atomic().set("count", 41).ignore().incr("count", 1).query(&mut connection)?;
    assert_eq!(count, 42);
    let error = connection.incr::<_, _, i64>("greeting", 1).expect_err("it is no number");
    assert!(error.to_string().contains("not an integer"), "{error}");
    let mut listener_connection = client.get_connection()?;
    let mut listener = listener_connection.as_pubsub();
    listener.subscribe("news")?;
    let _: () = connection.publish("news", "hi")?;
    assert_eq!(listener.get_message()?.get_payload::<String>()?, "hi");
    let found: usize = connection.scan_match::<_, String>("*")?.count();
    assert_eq!(found, 2);
    Ok(())
}

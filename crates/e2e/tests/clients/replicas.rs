//! Clients that read from replicas: nodes with a replica port, through a join and a death. The clients are separate
//! processes that do one step at a time (`replicas.py`, `replicas.js`).
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use e2e::{Cluster, NODE, PYTHON, REDIS_CLI, Tool};

const PYTHON_STEPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/replicas.py");
const NODE_STEPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/replicas.js");

/// A client process that does the steps it is told.
struct Stepper {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Stepper {
    fn start(tool: Tool, script: &str, client: &str, cluster: &Cluster) -> Stepper {
        let ports = cluster.nodes.iter().map(|node| node.port().to_string());
        let mut command = tool.command();
        command.arg(script).arg(client).args(ports);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it was found");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        Stepper { child, input, output }
    }

    /// Begins a step.
    fn begin(&mut self, step: &str) {
        let input = self.input.as_mut().expect("open until it is dropped");
        writeln!(input, "{step}").and_then(|()| input.flush()).expect("it reads its steps");
    }

    /// Waits for the end of a step; the client's own complaint is on standard error.
    fn finish(&mut self, step: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes text");
        assert_eq!(line, format!("done: {step}\n"), "the client has failed: see its last words");
    }

    fn step(&mut self, step: &str) {
        self.begin(step);
        self.finish(step);
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the replica ports, as the nodes tell clients.
fn replica_ports(cluster: &Cluster) -> Vec<u16> {
    let nodes = cluster.nodes[0].client().run("CLUSTER NODES").to_string();
    let slaves = nodes.split("\\n").filter(|line| line.contains("slave"));
    let port = |line: &str| {
        let address = line.split(' ').nth(1)?;
        address.split('@').next()?.rsplit(':').next()?.parse().ok()
    };
    let mut ports: Vec<u16> = slaves.filter_map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Returns the number of connections to replica ports whose last command was GET.
fn replica_readers(cluster: &Cluster) -> usize {
    let ports = replica_ports(cluster);
    let count = |node: &e2e::Server| {
        let clients = node.client().run("CLIENT LIST").to_string();
        let on_replica_port = |line: &&str| {
            ports.iter().any(|port| line.contains(&format!("laddr=127.0.0.1:{port} ")))
        };
        let readers = clients.split("\\n").filter(on_replica_port);
        readers.filter(|line| line.contains("cmd=get ")).count()
    };
    cluster.nodes.iter().map(count).sum()
}

fn run_through(tool: Tool, script: &str, client: &str, count: usize) {
    run_with(tool, script, client, count, [&[], &[]]);
}

/// Runs all steps of a client on a cluster that starts with `count` nodes. `extra` are further steps after the join
/// and after the death.
fn run_with(tool: Tool, script: &str, client: &str, count: usize, extra: [&[&str]; 2]) {
    let mut cluster = Cluster::of(count, &["--replica-port", "0"]);
    assert_eq!(replica_ports(&cluster).len(), count, "every node is a replica of others");
    let mut stepper = Stepper::start(tool, script, client, &cluster);
    stepper.step("fill");
    stepper.step("read");
    assert!(replica_readers(&cluster) > 0, "{client} reads from replicas");
    stepper.step("whole");
    // While a node joins, reads stay right; after that, everything is found again.
    cluster.join();
    stepper.step("read");
    cluster.wait_until_even();
    stepper.step("read");
    extra[0].iter().for_each(|step| stepper.step(step));
    stepper.step("whole");
    cluster.kill(1);
    cluster.wait_until_even();
    extra[1].iter().for_each(|step| stepper.step(step));
    stepper.step("read");
    stepper.step("whole");
    stepper.step("flush");
}

#[test]
fn redis_py_reads_from_replicas_through_a_join_and_a_death() {
    run_through(PYTHON, PYTHON_STEPS, "redis-py", 3);
}

#[test]
fn coredis_reads_from_replicas_through_a_join_and_a_death() {
    run_through(PYTHON, PYTHON_STEPS, "coredis", 3);
}

/// With two nodes, each backs up all of the other, and valkey-glide reads from replicas. With three it reads from
/// primaries once it has the new map, which it asks for once a minute: until then its SCAN is refused, so it is opened
/// anew here. docs/clients.md.
#[test]
fn valkey_glide_reads_from_replicas_through_a_join_and_a_death() {
    run_with(PYTHON, PYTHON_STEPS, "valkey-glide", 2, [&["reopen"], &["reopen"]]);
}

#[test]
fn ioredis_reads_from_replicas_through_a_join_and_a_death() {
    run_through(NODE, NODE_STEPS, "ioredis", 3);
}

/// node-redis asks for the map again only when it is redirected: commands for a node that has died wait until that
/// node is back, with any cluster. So applications open it anew, as this one does.
#[test]
fn node_redis_reads_from_replicas_through_a_join_and_a_death() {
    run_with(NODE, NODE_STEPS, "node-redis", 3, [&[], &["reopen"]]);
}

/// The synchronous connection of redis-rs asks for the map again only when it is redirected: for a slot of a node that
/// has died it tries that node until its retries are used up, with any cluster. So it is opened anew after the death.
#[test]
fn redis_rs_reads_from_replicas_through_a_join_and_a_death() -> redis::RedisResult<()> {
    use redis::Commands;
    const KEYS: i64 = 600;
    let mut cluster = Cluster::of(3, &["--replica-port", "0"]);
    let open = |cluster: &Cluster| {
        redis::cluster::ClusterClientBuilder::new(cluster.urls())
            .read_routing_strategy(redis::cluster_read_routing::RandomReplicaStrategy)
            .build()?
            .get_connection()
    };
    let mut connection = open(&cluster)?;
    let read = |connection: &mut redis::cluster::ClusterConnection| {
        for number in 0..KEYS {
            assert_eq!(connection.get::<_, i64>(format!("key:{number}"))?, number);
        }
        redis::RedisResult::Ok(())
    };
    let whole = |connection: &mut redis::cluster::ClusterConnection| {
        let listed: Vec<String> = redis::cmd("KEYS").arg("*").query(connection)?;
        let distinct: std::collections::BTreeSet<&String> = listed.iter().collect();
        assert_eq!((listed.len(), distinct.len()), (KEYS as usize, KEYS as usize));
        assert_eq!(redis::cmd("DBSIZE").query::<i64>(connection)?, KEYS);
        redis::RedisResult::Ok(())
    };
    for number in 0..KEYS {
        let _: () = connection.set(format!("key:{number}"), number)?;
    }
    read(&mut connection)?;
    assert!(replica_readers(&cluster) > 0, "redis-rs reads from replicas");
    whole(&mut connection)?;
    cluster.join();
    read(&mut connection)?;
    cluster.wait_until_even();
    read(&mut connection)?;
    whole(&mut connection)?;
    cluster.kill(1);
    cluster.wait_until_even();
    connection = open(&cluster)?;
    read(&mut connection)?;
    whole(&mut connection)?;
    let _: () = redis::cmd("FLUSHALL").query(&mut connection)?;
    assert_eq!(redis::cmd("DBSIZE").query::<i64>(&mut connection)?, 0);
    Ok(())
}

#[test]
fn redis_cli_finds_the_cluster_with_replicas_in_order() {
    let cluster = Cluster::of(3, &["--replica-port", "0"]);
    let address = format!("127.0.0.1:{}", cluster.nodes[1].port());
    let said = REDIS_CLI.output(&["--cluster", "check", &address], b"");
    assert!(said.contains("[OK] All nodes agree about slots configuration."), "{said}");
    assert!(said.contains("[OK] All 16384 slots covered."), "{said}");
    assert!(said.contains("in 3 masters."), "{said}");
}

#[test]
fn without_a_replica_port_no_reply_names_a_replica() {
    let cluster = Cluster::of(3, &[]);
    let mut client = cluster.nodes[0].client();
    assert!(!client.run("CLUSTER NODES").to_string().contains("slave"));
    assert!(!client.run("CLUSTER SHARDS").to_string().contains("replica\""));
    let resp::Value::Array(rows) = client.run("CLUSTER SLOTS") else { panic!("a list of rows") };
    for row in rows {
        let resp::Value::Array(parts) = row else { panic!("first, last and holders") };
        assert_eq!(parts.len(), 3, "one holder");
    }
}

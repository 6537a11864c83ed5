//! `steady.py`: a load from redis-py, which does not wait for a paused node.
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use e2e::{Cluster, PYTHON};
use serde_json::Value;

pub(crate) struct Steady {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Steady {
    pub(crate) fn start(cluster: &Cluster) -> Steady {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/steady.py");
        let mut command = PYTHON.command();
        command.arg(script).args(cluster.nodes.iter().map(|node| node.port().to_string()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("Python runs");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it says when it has begun");
        assert_eq!(line.trim(), "ready");
        Steady { child, output }
    }

    /// Ends the load: no acknowledged write may be lost, no stale value may have been read. Returns
    /// the errors that clients saw.
    pub(crate) fn end(mut self) -> Vec<Value> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("it ends with its findings");
        self.child.wait().expect("it ends");
        let found: Value = serde_json::from_str(text.trim()).expect("one line of JSON");
        assert!(found["writes"].as_u64().is_some_and(|writes| writes > 0), "{found}");
        assert_eq!(found["lost"], Value::Array(Vec::new()), "lost");
        assert_eq!(found["stale"], Value::Array(Vec::new()), "stale");
        found["errors"].as_array().cloned().unwrap_or_default()
    }
}

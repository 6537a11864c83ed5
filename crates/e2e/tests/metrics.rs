//! `/metrics` of real nodes: every family has its help and its kind, docs/metrics.md lists exactly the families that
//! exist, and every name in deploy/ exists. After a change: `UPDATE_DOCS=1 cargo test -p e2e --test metrics`.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use std::path::PathBuf;

use e2e::{Cluster, Server, http};

const INTRODUCTION: &str = "\
# Metrics

The metrics that a node exposes to Prometheus at `/metrics` on its HTTP port. This page is generated from the output of
a node by `UPDATE_DOCS=1 cargo test -p e2e --test metrics`, and the tests compare the two. Counters start at zero with
the process. Every node reports the metrics of the whole cluster (members, buckets, epoch), so aggregate them with
`max`, not `sum`. `deploy/` has a scrape configuration, alert rules and a Grafana dashboard.

| metric | kind | labels | description |
|---|---|---|---|
";

/// The content of a metrics page for one name.
#[derive(Clone, Default, Debug)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
    /// Samples by labels; in a histogram the name's suffix comes first.
    samples: BTreeMap<String, f64>,
}

#[test]
fn the_document_lists_what_a_node_tells() {
    let cluster = Cluster::of(2, &["--buckets", "16"]);
    let mut families = BTreeMap::new();
    for node in &cluster.nodes {
        families.append(&mut families_of(node));
    }
    let mut page = INTRODUCTION.to_owned();
    for (name, family) in &families {
        assert!(!family.kind.is_empty() && !family.help.is_empty(), "{name}: {family:?}");
        let labels = family.labels.iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let _ = writeln!(page, "| `{name}` | {} | {labels} | {} |", family.kind, family.help);
    }
    let path = root().join("docs/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("docs/ can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/metrics.md is not what a node tells; see the head of this test");
}

#[test]
fn what_alerts_and_dashboards_ask_for_exists() {
    let families = families_of(&Server::node());
    for file in ["deploy/prometheus-rules.yml", "deploy/grafana.json", "docs/operating.md"] {
        let text = std::fs::read_to_string(root().join(file)).expect("it is in the repository");
        let names = names_in(&text);
        assert!(names.len() >= 7, "{file} names only {names:?}");
        for name in names {
            assert!(families.contains_key(family_of(&name)), "{file}: there is no {name}");
        }
    }
    let dashboard = std::fs::read(root().join("deploy/grafana.json")).expect("it is there");
    let dashboard: serde_json::Value = serde_json::from_slice(&dashboard).expect("it is JSON");
    assert!(dashboard["panels"].as_array().is_some_and(|panels| panels.len() > 10));
}

#[test]
fn the_numbers_follow_what_happens() {
    let cluster = Cluster::of(2, &["--buckets", "16"]);
    let mut client = cluster.nodes[0].client();
    let mut served = 0.0;
    for number in 0..100 {
        let answer = client.call(&["SET", &format!("key:{number}"), "value"]).value;
        served += if answer.is_ok() { 1.0 } else { 0.0 };
    }
    let told = families_of(&cluster.nodes[0]);
    let sample = |family: &str, labels: &str| told[family].samples.get(labels).copied();
    assert_eq!(sample("opencluster_members", ""), Some(2.0));
    assert_eq!(sample("opencluster_buckets", ""), Some(16.0));
    assert_eq!(sample("opencluster_buckets_without_backup", ""), Some(0.0));
    assert_eq!(sample("opencluster_lease_valid", ""), Some(1.0));
    let primaries = sample("opencluster_buckets_held", "role=\"primary\"");
    let backups = sample("opencluster_buckets_held", "role=\"backup\"");
    assert_eq!((primaries, backups), (Some(8.0), Some(8.0)));
    let fills = sample("opencluster_fills_total", "result=\"done\"");
    assert!(fills.is_some_and(|fills| fills >= 16.0), "the first node has filled the second");
    let written = sample("opencluster_command_duration_seconds", "_countclass=\"write\"");
    assert!(written.is_some_and(|written| written >= served), "{written:?} of {served}");
    assert_eq!(told["opencluster_replication_lag_bytes"].samples.len(), 1);
}

/// Returns the metrics of a node, by name.
fn families_of(node: &Server) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in get(node, "/metrics").lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), Some(help)) => {
                let family = families.entry(name.to_owned()).or_default();
                assert!(family.help.is_empty(), "{name} is there twice");
                help.clone_into(&mut family.help);
            }
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                kind.clone_into(&mut families.entry(name.to_owned()).or_default().kind);
            }
            _ => {
                let (name, labels, value) = sample(line);
                let of = families.get_mut(family_of(name));
                let family = of.unwrap_or_else(|| panic!("no family: {line}"));
                family.labels.extend(label_names(labels));
                let ending = &name[family_of(name).len()..];
                family.samples.insert(format!("{ending}{labels}"), value);
            }
        }
    }
    families
}

/// Parses `name{labels} value`.
fn sample(line: &str) -> (&str, &str, f64) {
    let (place, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
    let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    match place.split_once('{') {
        Some((name, labels)) => (name, labels.trim_end_matches('}'), value),
        None => (place, "", value),
    }
}

fn label_names(labels: &str) -> impl Iterator<Item = String> {
    let pairs = labels.split("\",").filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, _)| name.to_owned())
}

/// Returns the family of a sample: the samples of a histogram belong to the name without their suffix.
fn family_of(name: &str) -> &str {
    let endings = ["_seconds_bucket", "_seconds_sum", "_seconds_count"];
    let is_histogram = endings.iter().any(|ending| name.ends_with(ending));
    if is_histogram { &name[..name.rfind('_').expect("it ends so")] } else { name }
}

fn names_in(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices("opencluster_") {
        let rest = &text[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        names.insert(rest[..end.unwrap_or(rest.len())].to_owned());
    }
    names
}

fn get(node: &Server, path: &str) -> String {
    http::get(node.http_port(), path)
}

fn root() -> PathBuf {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("crates/e2e lies two below the root").to_owned()
}

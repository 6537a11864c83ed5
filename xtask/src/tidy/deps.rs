//! Checks on the dependency graph from `cargo metadata`: which crate of ours may use which, that
//! pure crates reach nothing that does I/O, licences, and banned crates.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::deny::{Deny, Entry};
use super::{Finding, THINKING, licence};
use crate::workspace::cargo;

/// The allowed dependencies of our pure crates, and of `net` and `scripting`, on other crates of ours. The remaining crates,
/// which do I/O, may use any of these.
const DIRECTIONS: [(&str, &[&str]); 12] = [
    ("placement", &[]),
    ("resp", &[]),
    ("containers", &["placement"]),
    ("store", &["containers", "placement"]),
    ("settings", &["timers"]),
    ("commands", &["cluster", "placement", "resp", "scripting", "settings", "store", "timers"]),
    ("scripting", &["resp"]),
    ("cluster", &["placement", "store"]),
    ("timers", &["placement"]),
    ("fleet", &["placement", "resp"]),
    ("sim-engine", &["placement"]),
    ("net", &[]),
];

/// Crates that do I/O, read a clock or draw random numbers.
const IMPURE: [&str; 20] = [
    "async-io",
    "async-std",
    "chrono",
    "fastrand",
    "getrandom",
    "hyper",
    "memmap2",
    "mio",
    "num_cpus",
    "polling",
    "quanta",
    "rand",
    "redis",
    "reqwest",
    "signal-hook",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio",
];

/// Impure crates that a dependency of a pure crate pulls in, and why that does no harm.
const TOLERATED: [(&str, &str, &str); 2] = [
    (
        "raft",
        "rand",
        "draws election timeouts; `cluster::consensus` replaces each before it is used",
    ),
    ("raft", "getrandom", "seeds the `rand` of the line above"),
];

pub(super) struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    is_ours: bool,
    /// Ids of its normal dependencies, without those of tests and build scripts.
    uses: Vec<String>,
}

/// Packages by id.
pub(super) struct Graph(BTreeMap<String, Package>);

impl Graph {
    pub(super) fn read() -> Result<Graph, String> {
        let output = cargo(&["metadata", "--format-version", "1"])
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo metadata could not be started: {error}"))?;
        let parsed = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string());
        parsed.and_then(|metadata| {
            Graph::of(&metadata)
                .ok_or_else(|| "the output of cargo metadata lacks an expected field".into())
        })
    }

    fn of(metadata: &Value) -> Option<Graph> {
        let members = metadata["workspace_members"].as_array()?;
        let mut packages = BTreeMap::new();
        for package in metadata["packages"].as_array()? {
            let text = |field: &str| package[field].as_str().map(str::to_owned);
            let described = Package {
                name: text("name")?,
                version: text("version")?,
                licence: text("license"),
                is_ours: members.contains(&package["id"]),
                uses: Vec::new(),
            };
            packages.insert(text("id")?, described);
        }
        for node in metadata["resolve"]["nodes"].as_array()? {
            let normal = node["deps"].as_array()?.iter().filter(|dep| is_normal(dep));
            let uses = normal.filter_map(|dep| dep["pkg"].as_str().map(str::to_owned)).collect();
            packages.get_mut(node["id"].as_str()?)?.uses = uses;
        }
        Some(Graph(packages))
    }

    fn ours(&self, name: &str) -> Option<&Package> {
        self.0.values().find(|package| package.is_ours && package.name == name)
    }

    /// Returns everything reachable from one package, each with the names on the path to it.
    fn reached(&self, from: &Package) -> Vec<(&Package, String)> {
        let mut seen = BTreeSet::new();
        let mut open = vec![(from, from.name.clone())];
        let mut reached = Vec::new();
        while let Some((package, way)) = open.pop() {
            for id in package.uses.iter().filter(|id| seen.insert(id.as_str())) {
                let used = &self.0[id];
                let way = format!("{way} > {}", used.name);
                reached.push((used, way.clone()));
                open.push((used, way));
            }
        }
        reached
    }
}

/// Returns whether the code itself depends on it, not only its tests or its build script.
fn is_normal(dep: &Value) -> bool {
    let kinds = dep["dep_kinds"].as_array();
    kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

/// Finds forbidden dependencies between our crates: a crate boundary exists where one is forbidden.
pub(super) fn wrong_directions(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, allowed) in DIRECTIONS {
        let Some(package) = graph.ours(name) else { continue };
        for used in package.uses.iter().map(|id| &graph.0[id]) {
            if used.is_ours && !allowed.contains(&used.name.as_str()) {
                let what = format!("may not use {}", used.name);
                findings.push(Finding::new(format!("crates/{name}"), what));
            }
        }
    }
    findings
}

pub(super) fn impure_dependencies(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in THINKING.iter().filter_map(|name| graph.ours(name)) {
        for (used, way) in graph.reached(package) {
            if IMPURE.contains(&used.name.as_str()) && !is_tolerated(&used.name, &way) {
                let what = format!("is a pure crate and may not depend on {} ({way})", used.name);
                findings.push(Finding::new(format!("crates/{}", package.name), what));
            }
        }
    }
    findings
}

/// Returns whether the path to an impure crate leads through the crate that it is tolerated for.
fn is_tolerated(impure: &str, way: &str) -> bool {
    TOLERATED
        .iter()
        .any(|(through, name, _)| *name == impure && way.split(" > ").any(|step| step == *through))
}

pub(super) fn banned_crates(graph: &Graph, deny: &Deny) -> Vec<Finding> {
    let banned = graph.0.values().filter_map(|package| {
        let entry = deny.banned.iter().find(|entry| entry.name == package.name)?;
        Some(Finding::new(format!("{} {}", package.name, package.version), &entry.reason))
    });
    banned.collect()
}

pub(super) fn licences(graph: &Graph, deny: &Deny) -> Vec<Finding> {
    let refused = graph.0.values().filter_map(|package| {
        let stated = package.licence.as_deref().unwrap_or_default();
        let place = format!("{} {}", package.name, package.version);
        let what = format!("licence `{stated}` is not allowed by deny.toml");
        (!licence::is_allowed(stated, &deny.licences)).then(|| Finding::new(place, what))
    });
    refused.collect()
}

/// Returns the accepted advisories about crates that are no longer in the tree.
pub(super) fn outdated_exceptions(graph: &Graph, deny: &Deny) -> Vec<Finding> {
    let is_here = |name: &str| graph.0.values().any(|package| package.name == name);
    let outdated = deny.ignored.iter().filter(|entry| !is_here(entry.krate()));
    let finding = |entry: &Entry| {
        let what =
            format!("{}: `{}` is not in the tree: remove the entry", entry.name, entry.krate());
        Finding::new("deny.toml", what)
    };
    outdated.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, licence: &str) -> Value {
        json!({ "name": name, "id": name, "version": "1.0.0", "license": licence })
    }

    fn node(name: &str, deps: &[(&str, Value)]) -> Value {
        let dep =
            |(name, kind): &(&str, Value)| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        json!({ "id": name, "deps": deps.iter().map(dep).collect::<Vec<Value>>() })
    }

    /// Returns a graph: resp uses placement, store reaches mio through bytes, tests of placement use rand.
    fn bad_graph() -> Graph {
        let names = ["placement", "resp", "store", "bytes", "mio", "rand", "bincode"];
        let licence = |name: &str| if name == "rand" { "GPL-3.0" } else { "MIT" };
        let packages: Vec<Value> = names.iter().map(|name| package(name, licence(name))).collect();
        let metadata = json!({
            "workspace_members": ["placement", "resp", "store"],
            "packages": packages,
            "resolve": { "nodes": [
                node("placement", &[("rand", json!("dev"))]),
                node("resp", &[("placement", Value::Null)]),
                node("store", &[("placement", Value::Null), ("bytes", Value::Null)]),
                node("bytes", &[("mio", Value::Null)]),
            ] },
        });
        Graph::of(&metadata).unwrap()
    }

    fn shown(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(|finding| format!("{}: {}", finding.place, finding.what)).collect()
    }

    #[test]
    fn an_arrow_that_points_the_wrong_way_is_found() {
        let findings = wrong_directions(&bad_graph());
        assert_eq!(shown(&findings), ["crates/resp: may not use placement"]);
    }

    #[test]
    fn io_reached_from_a_thinking_crate_is_found_with_its_way() {
        let findings = impure_dependencies(&bad_graph());
        let expected =
            "crates/store: is a pure crate and may not depend on mio (store > bytes > mio)";
        assert_eq!(shown(&findings), [expected]);
    }

    #[test]
    fn a_banned_crate_is_found() {
        let findings = banned_crates(&bad_graph(), &deny());
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "bincode 1.0.0");
    }

    #[test]
    fn a_licence_off_the_list_is_found() {
        let findings = licences(&bad_graph(), &deny());
        assert_eq!(shown(&findings), ["rand 1.0.0: licence `GPL-3.0` is not allowed by deny.toml"]);
    }

    fn deny() -> Deny {
        let entry = |name: &str, reason: &str| Entry { name: name.into(), reason: reason.into() };
        Deny {
            licences: vec!["MIT".into()],
            banned: vec![entry("bincode", "unmaintained")],
            ignored: vec![entry("R-1", "mio: a reason"), entry("R-2", "gone: a reason")],
        }
    }

    #[test]
    fn an_exception_for_a_crate_that_has_gone_is_found() {
        let findings = outdated_exceptions(&bad_graph(), &deny());
        assert_eq!(
            shown(&findings),
            ["deny.toml: R-2: `gone` is not in the tree: remove the entry"]
        );
    }

    #[test]
    fn our_own_graph_can_be_read() {
        let graph = Graph::read().unwrap();
        let xtask = graph.ours("xtask").unwrap();
        assert!(graph.reached(xtask).iter().any(|(used, _)| used.name == "serde_json"));
    }
}

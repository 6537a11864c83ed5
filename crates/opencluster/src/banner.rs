//! The startup banner of a node: what runs, where it listens, what to try, how to stop it, and that data is
//! in memory only. Called by `serve.rs` once everything listens.

use std::fmt::Write;
use std::net::SocketAddr;

use anstyle::{AnsiColor, Style};
use settings::Settings;

use crate::cli::version;
use crate::taken::reachable;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const PLACE: Style = AnsiColor::Cyan.on_default();

/// Facts about a node that listens.
pub(crate) struct Facts<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) client_addr: SocketAddr,
    pub(crate) http_addr: Option<SocketAddr>,
    /// Members of the cluster, this node included.
    pub(crate) members: usize,
}

/// Returns the banner with colours; the printing side strips them if there is no terminal.
pub(crate) fn banner(facts: &Facts<'_>) -> String {
    let mut text = String::new();
    let name = &facts.settings.name;
    let version = version();
    let _ = writeln!(text, "\n{BOLD}OpenCluster{BOLD:#} {version}, node {BOLD}{name}{BOLD:#}\n");
    line(&mut text, "clients", &format!("{PLACE}{}{PLACE:#}", facts.client_addr));
    let page = facts.http_addr.map(|addr| format!("http://{}/", reachable(addr)));
    if let Some(page) = &page {
        line(&mut text, "console", &format!("{PLACE}{page}{PLACE:#}"));
    }
    if facts.members > 1 {
        line(&mut text, "cluster", &format!("of {} nodes, this one included", facts.members));
    }
    line(&mut text, "threads", &facts.settings.io_threads.to_string());
    line(&mut text, "memory", &memory(facts.settings));
    text.push('\n');
    let target = target(facts);
    // With `-c` the command also works once there are more nodes.
    line(&mut text, "try", &format!("redis-cli -c{target} set hello world"));
    let cluster = if facts.members > 1 { " --cluster" } else { "" };
    line(&mut text, "", &format!("redis-benchmark{cluster}{target} -t set,get -P 16 -q"));
    if let Some(page) = &page {
        line(&mut text, "", &format!("curl {page}metrics"));
    }
    if facts.settings.effective_peer_port().is_some() {
        line(&mut text, "grow", &grow(facts));
    }
    line(&mut text, "stop", "Ctrl-C");
    let _ = writeln!(text, "\n  {DIM}{}{DIM:#}\n", fate(facts));
    text
}

/// Returns the command that starts another node on this machine.
fn grow(facts: &Facts<'_>) -> String {
    let addr = reachable(facts.client_addr);
    let port = addr.port().checked_add(1).unwrap_or(0);
    let secret = if facts.settings.secret.is_empty() { "" } else { " --secret-file FILE" };
    format!("opencluster --port {port} --join {addr}{secret}")
}

/// Returns the line about what happens to the data when this node stops.
fn fate(facts: &Facts<'_>) -> String {
    match (&facts.settings.data_dir, facts.members) {
        (_, 2..) => "When this node stops it first hands its data to the others.".to_owned(),
        (Some(path), _) => {
            format!("Data is in memory; it is kept in {} when this node stops.", path.display())
        }
        (None, _) => "Data is in memory only: it is gone when the last node stops.".to_owned(),
    }
}

fn line(text: &mut String, label: &str, value: &str) {
    let _ = writeln!(text, "  {DIM}{label:<9}{DIM:#} {value}");
}

fn memory(settings: &Settings) -> String {
    let policy = settings.maxmemory_policy.word();
    match settings.maxmemory {
        0 => "no limit (--maxmemory sets one)".to_owned(),
        bytes => format!("at most {}, {policy}", human_bytes(bytes)),
    }
}

fn human_bytes(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) if bytes.is_multiple_of(size) => format!("{} {unit}", bytes / size),
        #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
        Some((size, unit)) => format!("{:.1} {unit}", bytes as f64 / size as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Returns the arguments that direct Redis's own tools to the node.
fn target(facts: &Facts<'_>) -> String {
    let addr = reachable(facts.client_addr);
    let mut target = String::new();
    if addr.ip().to_string() != "127.0.0.1" {
        let _ = write!(target, " -h {}", addr.ip());
    }
    if addr.port() != 6379 {
        let _ = write!(target, " -p {}", addr.port());
    }
    if !facts.settings.requirepass.is_empty() {
        target.push_str(" -a PASSWORD");
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(settings: &Settings, client: &str, http: Option<&str>) -> String {
        let facts = Facts {
            settings,
            client_addr: client.parse().expect("an address"),
            http_addr: http.map(|addr| addr.parse().expect("an address")),
            members: 1,
        };
        anstream::adapter::strip_str(&banner(&facts)).to_string()
    }

    #[test]
    fn a_node_with_all_defaults_says_where_it_is_and_what_to_try() {
        let settings =
            Settings { name: "pc-6379".to_owned(), io_threads: 2, ..Settings::default() };
        let expected = format!(
            "
OpenCluster {}, node pc-6379

  clients   127.0.0.1:6379
  console   http://127.0.0.1:7379/
  threads   2
  memory    no limit (--maxmemory sets one)

  try       redis-cli -c set hello world
            redis-benchmark -t set,get -P 16 -q
            curl http://127.0.0.1:7379/metrics
  grow      opencluster --port 6380 --join 127.0.0.1:6379
  stop      Ctrl-C

  Data is in memory only: it is gone when the last node stops.

",
            version()
        );
        assert_eq!(words(&settings, "127.0.0.1:6379", Some("127.0.0.1:7379")), expected);
    }

    #[test]
    fn what_becomes_of_the_data_is_said() {
        let mut settings = Settings { data_dir: Some("/data".into()), ..Settings::default() };
        let kept = words(&settings, "127.0.0.1:6379", None);
        assert!(kept.contains("it is kept in /data when this node stops"), "{kept}");
        settings.set("peer-port", "off").expect("off");
        assert!(!words(&settings, "127.0.0.1:6379", None).contains("grow"));
        let client_addr = "127.0.0.1:6379".parse().expect("an address");
        let facts = Facts { settings: &settings, client_addr, http_addr: None, members: 3 };
        let handed = banner(&facts);
        assert!(handed.contains("redis-benchmark --cluster -t"), "{handed}");
        assert!(handed.contains("of 3 nodes") && handed.contains("hands its data to the others"));
    }

    #[test]
    fn what_to_try_follows_port_address_and_password() {
        let mut settings = Settings { maxmemory: 3 << 29, ..Settings::default() };
        settings.set("requirepass", "sesame").expect("a password");
        let everywhere = words(&settings, "0.0.0.0:7000", None);
        assert!(everywhere.contains("redis-cli -c -p 7000 -a PASSWORD set hello world"));
        assert!(everywhere.contains("at most 1.5 GiB, noeviction"));
        assert!(!everywhere.contains("http") && !everywhere.contains("sesame"));
        let one = words(&settings, "10.1.2.3:6379", Some("10.1.2.3:7379"));
        assert!(one.contains("redis-cli -c -h 10.1.2.3 -a PASSWORD"));
        assert!(words(&settings, "[::]:6379", None).contains("redis-cli -c -h ::1 "));
    }
}

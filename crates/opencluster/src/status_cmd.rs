//! `opencluster status`: the cluster in tables, as JSON, or again every second. It asks every member for the
//! moves it takes part in; everything else is the same on all members.

pub(crate) mod tables; //  The document as people read it.
pub(crate) mod figures; // Sizes, counts and times.

use std::io::Write;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use cluster::status::{MemberStatus, Severity, Status};

use crate::Failure;
use crate::talk::{NodeArgs, Talk};

const EVERY: Duration = Duration::from_secs(1);
/// Maximum size of a cluster in which every member is asked; in a larger one only the node itself is.
const ASKED_MAX: usize = 64;
/// Moves the cursor to the top left and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// Print the document of that node as JSON: the same as its /api/cluster
    #[arg(long)]
    json: bool,
    /// Show it again every second
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print the verdict only; exit with 0 if all is well, 1 for a warning, 2 if commands fail or no node answers
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    check: bool,
}

pub(crate) fn run(args: &StatusArgs) -> Result<(), Failure> {
    if args.check {
        return check(&args.node);
    }
    if args.json {
        let status = of_node(&args.node)?;
        let text = serde_json::to_string_pretty(&status).expect("numbers and texts can be written");
        return print(&format!("{text}\n"));
    }
    if args.watch {
        return watch(&args.node);
    }
    print(&tables::render(&of_cluster(&args.node)?, now()))
}

/// Prints the verdict of the node and of all it knows; fails as monitoring tools expect it.
fn check(args: &NodeArgs) -> Result<(), Failure> {
    let (severity, text) = match of_cluster(args) {
        Ok(Status { health, .. }) => (health.severity, tables::health(&health)),
        Err(failure) => (Severity::Failing, format!("failing: {}\n", failure.line())),
    };
    print(&text)?;
    if severity == Severity::Ok { Ok(()) } else { Err(Failure::Unhealthy(severity)) }
}

/// Prints the status again and again. If the node is gone, asks another one.
fn watch(args: &NodeArgs) -> Result<(), Failure> {
    let mut status = of_cluster(args)?;
    loop {
        print(&format!("{CLEAR}{}", tables::render(&status, now())))?;
        thread::sleep(EVERY);
        let nodes = status.members.iter().map(|member| args.at(address(member)));
        let mut nodes = std::iter::once(args.clone()).chain(nodes);
        status = nodes
            .find_map(|node| of_cluster(&node).ok())
            .ok_or_else(|| Failure::Refused("none of the nodes answers any more".to_owned()))?;
    }
}

pub(crate) fn of_node(args: &NodeArgs) -> Result<Status, Failure> {
    let answer = Talk::to(args)?.ask(&["CLUSTER", "STATUS"])?;
    let strange = |_| {
        Failure::Refused(format!(
            "{} runs another version of OpenCluster; use the opencluster program of that version",
            args.node
        ))
    };
    serde_json::from_slice(answer.text().unwrap_or_default()).map_err(strange)
}

/// Returns the status of a node, with the moves and levels of all others, members in the order of their
/// names.
pub(crate) fn of_cluster(args: &NodeArgs) -> Result<Status, Failure> {
    let mut status = of_node(args)?;
    status.members.sort_by(|one, other| one.name.cmp(&other.name));
    if status.members.len() > ASKED_MAX {
        return Ok(status);
    }
    let others = status.members.iter().filter(|member| member.name != status.node);
    let asked: Vec<_> = others
        .map(|member| args.at(address(member)))
        .map(|args| thread::spawn(move || of_node(&args)))
        .collect();
    for told in asked.into_iter().filter_map(|asked| asked.join().ok()?.ok()) {
        merge(&mut status, told);
    }
    Ok(status)
}

/// Adds the facts that only the other node knows.
fn merge(status: &mut Status, other: Status) {
    for known in other.moves {
        let same = |mine: &&mut cluster::status::MoveStatus| {
            (&mine.bucket, &mine.taker) == (&known.bucket, &known.taker)
        };
        let Some(mine) = status.moves.iter_mut().find(same) else {
            status.moves.push(known);
            continue;
        };
        // The giver knows the reason, the source the progress.
        if mine.rule.is_empty() {
            (mine.rule, mine.kind) = (known.rule, known.kind);
        }
        mine.sent_bytes = mine.sent_bytes.max(known.sent_bytes);
        mine.percent = mine.percent.max(known.percent);
        mine.millis = mine.millis.max(known.millis);
    }
    status.sync.extend(other.sync);
    status.merged += other.merged;
    status.health.add(other.health);
    let own = other.members.iter().find(|member| member.name == other.node);
    let mine = status.members.iter_mut().find(|member| member.name == other.node);
    if let (Some(own), Some(mine)) = (own, mine) {
        mine.levels = own.levels.or(mine.levels);
    }
}

pub(crate) fn address(member: &MemberStatus) -> String {
    if member.host.contains(':') {
        format!("[{}]:{}", member.host, member.client_port)
    } else {
        format!("{}:{}", member.host, member.client_port)
    }
}

pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has seen enough (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Refused(format!("cannot write the result: {error}"))),
        Ok(()) => Ok(()),
    }
}

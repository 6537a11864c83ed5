//! `opencluster leave`, `takeover`, `split` and `settings`: operations on a running cluster.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use cluster::status::BucketStatus;
use resp::Value;

use crate::Failure;
use crate::status_cmd;
use crate::talk::{NodeArgs, Talk};

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Maximum time for a survivor to notice that no other node answers.
const TAKEOVER_WAIT: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
pub(crate) struct LeaveArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// Leave only for this time, such as 5m: the cluster keeps the node's places, and the node
    /// returns with its data (needs --data-dir)
    #[arg(long = "for", value_name = "TIME")]
    long: Option<String>,
    /// Leave as soon as other nodes serve its buckets, without waiting until there are copies of all it holds:
    /// until they are made, some buckets have one copy fewer
    #[arg(long)]
    quick: bool,
    /// Do not wait until it has handed over everything
    #[arg(long)]
    no_wait: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TakeoverArgs {
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SplitArgs {
    /// The bucket, as in 00FF/0014; all of the largest ones if it is left out
    #[arg(value_name = "HASHMASK")]
    bucket: Option<String>,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SettingsArgs {
    /// The setting to show or to change; all are shown if it is left out
    name: Option<String>,
    /// Its new value
    value: Option<String>,
    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn leave(args: &LeaveArgs) -> Result<(), Failure> {
    let before = status_cmd::of_node(&args.node)?;
    let mut words = vec!["CLUSTER", "LEAVE"];
    words.extend(args.long.iter().flat_map(|long| ["FOR", long]));
    words.extend(args.quick.then_some("QUICK"));
    Talk::to(&args.node)?.ask(&words)?;
    if args.no_wait {
        anstream::println!("{} is handing over its buckets and will then leave", before.node);
        return Ok(());
    }
    let mut told = None;
    // A node that has left still answers for a while, to redirect clients.
    while let Some(left) = needing(&args.node, &before.node) {
        if told != Some(left) {
            anstream::println!("{left} buckets still need {}", before.node);
            told = Some(left);
        }
        thread::sleep(LOOK_EVERY);
    }
    match &args.long {
        Some(long) => anstream::println!(
            "{} has left; its data is saved in its data directory, and its places are kept for \
             {long}",
            before.node
        ),
        None => anstream::println!("{} has left", before.node),
    }
    Ok(())
}

/// Starts a new generation on a survivor. Data that only the lost nodes held stays lost.
pub(crate) fn takeover(args: &TakeoverArgs) -> Result<(), Failure> {
    let before = status_cmd::of_node(&args.node)?;
    Talk::to(&args.node)?.ask(&["CLUSTER", "TAKEOVER"])?;
    let begun = Instant::now();
    while begun.elapsed() < TAKEOVER_WAIT {
        let now = status_cmd::of_node(&args.node)?;
        if now.generation > before.generation {
            let (node, generation) = (&now.node, now.generation);
            anstream::println!("{node} has taken over, in generation {generation}");
            return Ok(());
        }
        thread::sleep(LOOK_EVERY);
    }
    Err(Failure::Refused(format!(
        "{} has not taken over: it holds a lease, or others still answer it; nothing was changed",
        before.node
    )))
}

/// Returns the number of buckets that would have no primary or too few copies without a member, as it says
/// itself; `None` if it is no longer a member.
fn needing(node: &NodeArgs, name: &str) -> Option<usize> {
    let status = status_cmd::of_node(node).ok()?;
    status.members.iter().find(|member| member.name == name)?;
    let stays = |other: &str| {
        let mut members = status.members.iter().filter(|member| member.weight > 0);
        other != name && members.any(|member| member.name == other)
    };
    let staying = status.members.iter().filter(|member| stays(&member.name)).count();
    let backups = status.settings.get("backups").and_then(|text| text.parse::<usize>().ok());
    let wanted = staying.min(1 + backups.unwrap_or(1));
    let needs = |bucket: &&BucketStatus| {
        let holders = &bucket.holders;
        let others = holders.iter().filter(|holder| stays(holder)).count();
        let serves = holders.first().is_some_and(|primary| primary == name);
        serves || others < wanted && holders.iter().any(|holder| holder == name)
    };
    Some(status.buckets.iter().filter(needs).count())
}

pub(crate) fn split(args: &SplitArgs) -> Result<(), Failure> {
    let mut talk = Talk::to(&args.node)?;
    match &args.bucket {
        Some(bucket) => talk.ask(&["CLUSTER", "SPLIT", bucket])?,
        None => talk.ask(&["CLUSTER", "SPLIT"])?,
    };
    anstream::println!("the split has begun; opencluster status shows it");
    Ok(())
}

pub(crate) fn settings(args: &SettingsArgs) -> Result<(), Failure> {
    let mut talk = Talk::to(&args.node)?;
    let mut words = vec!["CLUSTER", "SETTINGS"];
    words.extend(args.name.as_deref());
    words.extend(args.value.as_deref());
    match (talk.ask(&words)?, &args.name) {
        (Value::Array(pairs), _) => anstream::print!("{}", listed(&pairs)),
        (value, Some(name)) if !value.is_ok() => {
            let text = String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned();
            anstream::println!("{name} {text}");
        }
        _ => anstream::println!("the change has begun; opencluster settings shows it"),
    }
    Ok(())
}

/// Formats alternating names and values, one pair per line.
fn listed(pairs: &[Value]) -> String {
    let text =
        |value: &Value| String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned();
    let width = pairs.iter().step_by(2).map(|name| text(name).len()).max().unwrap_or(0);
    let line = |pair: &[Value]| format!("{:width$}  {}\n", text(&pair[0]), text(&pair[1]));
    pairs.chunks_exact(2).map(line).collect()
}

//! `opencluster sim grow`: a cluster that grows and shrinks, and the cost of each step.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use cluster::balance::Decision;
use cluster::map::{ClusterSettings, Map, NodeId, Zone};
use placement::{Mask, ServerMap};
use serde_json::{Value, json};
use sim::grow::{Event, Growth, Newcomer, Step};
use sim::{Weather, picture, ranges};

use crate::Failure;

/// Maximum number of nodes; beyond it a run takes minutes, and shows nothing new.
const NODES_MAX: usize = 1000;

#[derive(Args, Debug)]
pub(crate) struct GrowArgs {
    /// Buckets at the start: 16, 256, 4096 or 16384
    #[arg(long, default_value_t = 16)]
    buckets: u16,
    /// Number of nodes that join, one after the other
    #[arg(long, default_value_t = 6)]
    nodes: usize,
    /// Nodes that then leave, in this order, by name: B,D
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    leave: Vec<String>,
    /// One weight a node, in the order they join: 1.1.2
    #[arg(long, value_name = "WEIGHTS")]
    weights: Option<String>,
    /// Zones of the nodes, assigned in turn: east,west
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    zones: Vec<String>,
    /// Backups of each bucket, 0 to 3
    #[arg(long, default_value_t = 1)]
    backups: u8,
    /// Seed of the random numbers: the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Show every move with its rule and numbers
    #[arg(long)]
    trace: bool,
    /// Show the picture even of many buckets
    #[arg(long)]
    picture: bool,
    /// Print JSON: one object per step
    #[arg(long)]
    json: bool,
    /// Draw it into a file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(args: &GrowArgs) -> Result<String, Failure> {
    let mask = mask(args.buckets)?;
    let newcomers = newcomers(args)?;
    let settings = ClusterSettings { backups: args.backups, ..ClusterSettings::default() };
    let mut newcomers = newcomers.into_iter();
    let first = newcomers.next().expect("at least one node");
    let mut growth = Growth::start(args.seed, Weather::default(), first, mask, settings);
    for newcomer in newcomers {
        growth.join(newcomer);
    }
    for name in &args.leave {
        let node = leaver(growth.map(), name)?;
        growth.leave(node);
    }
    if let Some(file) = &args.svg {
        std::fs::write(file, sim::svg::draw(growth.steps())).map_err(|error| {
            Failure::Refused(format!("cannot write the drawing to {}: {error}", file.display()))
        })?;
    }
    if args.json {
        let steps: Vec<Value> = growth.steps().iter().map(as_json).collect();
        return Ok(format!("{:#}\n", Value::Array(steps)));
    }
    Ok(growth.steps().iter().map(|step| describe(args, step)).collect())
}

fn bad(line: String) -> Failure {
    Failure::BadInput(line)
}

fn mask(buckets: u16) -> Result<Mask, Failure> {
    let wrong = || bad(format!("--buckets is 16, 256, 4096 or 16384, not {buckets}"));
    Mask::with_buckets(buckets).ok_or_else(wrong)
}

/// Returns all nodes that will join, the first included.
fn newcomers(args: &GrowArgs) -> Result<Vec<Newcomer>, Failure> {
    if args.nodes == 0 || args.nodes > NODES_MAX {
        return Err(bad(format!("--nodes is 1 to {NODES_MAX}, not {}", args.nodes)));
    }
    if args.backups > 3 {
        return Err(bad(format!("--backups is 0 to 3, not {}", args.backups)));
    }
    let weights = match &args.weights {
        None => vec![1; args.nodes],
        Some(text) => {
            let map: ServerMap =
                text.parse().map_err(|error| bad(format!("--weights: {error}")))?;
            map.weights().to_vec()
        }
    };
    if weights.len() != args.nodes {
        let (weights, nodes) = (weights.len(), args.nodes);
        return Err(bad(format!("--weights has {weights} weights for {nodes} nodes")));
    }
    if weights[0] == 0 {
        return Err(bad(
            "--weights: the first node cannot have weight 0, it starts with everything".to_owned(),
        ));
    }
    let zone = |node: usize| match args.zones.len() {
        0 => Zone::default(),
        zones => Zone(args.zones[node % zones].clone()),
    };
    let newcomer = |(node, weight)| Newcomer { weight, zone: zone(node) };
    Ok(weights.into_iter().enumerate().map(newcomer).collect())
}

fn leaver(map: &Map, name: &str) -> Result<NodeId, Failure> {
    let member = map.members().iter().find(|member| member.name.eq_ignore_ascii_case(name));
    let Some(member) = member else {
        let names: Vec<&str> = map.members().iter().map(|member| member.name.as_str()).collect();
        return Err(bad(format!(
            "--leave: there is no node {name:?}; there are {}",
            names.join(", ")
        )));
    };
    let others = map.members().iter().filter(|other| other.id != member.id);
    if !others.into_iter().any(|other| other.weight > 0) {
        return Err(bad(format!("--leave: {name} is the last node that can hold anything")));
    }
    Ok(member.id)
}

fn event_text(event: &Event) -> String {
    match event {
        Event::Start(name) => format!("{name} starts"),
        Event::Join(name) => format!("{name} joins"),
        Event::Leave(name) => format!("{name} leaves"),
    }
}

/// Describes one step in words and as a picture.
fn describe(args: &GrowArgs, step: &Step) -> String {
    let mut text = format!("== {}\n", event_text(&step.event));
    if args.trace {
        for (at, decision) in &step.moved.decisions {
            let _ =
                writeln!(text, "{:>12.3?}  {}", at.since(step.began), explained(step, decision));
        }
    }
    let small = step.map.bucket_count() <= picture::BUCKETS_MAX;
    if small || args.picture {
        text += &picture::picture(&step.map);
    }
    text += &picture::summary(&step.map);
    if !matches!(step.event, Event::Start(_)) {
        text += &by_rule(step);
        let _ = writeln!(
            text,
            "{} copies made, the fewest possible {}; {} promotions; {} ranges of slots; mask {}; \
             {} steps of the map, {} with other primaries; took {:.2?}",
            step.moved.copies,
            step.lower_bound,
            step.moved.promotions,
            ranges::of_primaries(&step.map),
            step.map.coarsest_mask(),
            step.moved.map_steps,
            step.moved.primary_steps,
            step.took
        );
    }
    text + "\n"
}

/// Counts the moves that each rule has caused.
fn by_rule(step: &Step) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for (_, Decision { step, buckets, rule, .. }) in &step.moved.decisions {
        let kind = format!("{} ({rule})", step.kind);
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += buckets,
            None => counts.push((kind, *buckets)),
        }
    }
    let parts: Vec<String> =
        counts.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
    if parts.is_empty() {
        "no moves\n".to_owned()
    } else {
        format!("moves: {}\n", parts.join(", "))
    }
}

/// Describes a decision with its rule and the numbers it was based on.
fn explained(step: &Step, decision: &Decision) -> String {
    let Decision { step: taken, buckets, rule, giver, taker } = decision;
    // A node that has left is no longer in the map.
    let name = |node: NodeId| {
        step.map.member(node).map_or_else(|| sim::grow::name(node.0), |member| member.name.clone())
    };
    let more = if *buckets > 1 { format!(" and {} more", buckets - 1) } else { String::new() };
    format!(
        "{:12} {}{more} {} -> {}  {:19} {} {giver}, {} {taker}",
        taken.kind,
        taken.bucket,
        name(taken.giver),
        name(taken.taker),
        rule,
        name(taken.giver),
        name(taken.taker),
    )
}

fn as_json(step: &Step) -> Value {
    let nodes: Vec<Value> = step
        .map
        .members()
        .iter()
        .zip(step.map.loads())
        .map(|(member, load)| {
            json!({ "name": member.name, "primaries": load.primaries, "backups": load.backups })
        })
        .collect();
    json!({
        "event": event_text(&step.event),
        "nodes": nodes,
        "mask": step.map.coarsest_mask().to_string(),
        "promotions": step.moved.promotions,
        "copies_moved": step.moved.copies,
        "map_steps": step.moved.map_steps,
        "primary_steps": step.moved.primary_steps,
        "lower_bound": step.lower_bound,
        "ranges": ranges::of_primaries(&step.map),
        "ranges_with_backups": ranges::of_holders(&step.map),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: GrowArgs,
    }

    fn grow(line: &str) -> Result<String, Failure> {
        let words = std::iter::once("grow").chain(line.split_whitespace());
        run(&Line::try_parse_from(words).unwrap().args)
    }

    #[test]
    fn each_step_is_shown_with_its_moves_and_the_fewest_possible() {
        let text = grow("--nodes 3").unwrap();
        for line in [
            "== A starts",
            "== C joins",
            "    8+8=16  8+8=16",
            "16 copies made, the fewest possible 16; 8 promotions; 2 ranges of slots;",
            "10 copies made, the fewest possible 10;",
            "16 x fill (too few backups), 8 x promote (even primaries)",
        ] {
            assert!(text.contains(line), "{line}:\n{text}");
        }
    }

    #[test]
    fn many_buckets_are_summed_up_unless_the_picture_is_asked_for() {
        let text = grow("--nodes 2 --buckets 256").unwrap();
        assert!(text.contains("2 nodes, 256 buckets: 256 copies each, 128 of them primaries"));
        assert!(!text.contains("#FF"));
        assert!(grow("--nodes 2 --buckets 256 --picture").unwrap().contains("#FF"));
    }

    #[test]
    fn a_trace_names_the_rule_and_the_numbers_of_every_move() {
        let text = grow("--nodes 2 --trace").unwrap();
        let wanted =
            "fill         000F/0000 A -> B  too few backups     A 16+0=16 of 16, B 0+0=0 of 16";
        assert!(text.contains(wanted), "{text}");
        assert_eq!(text.matches(" -> ").count(), 24);
    }

    #[test]
    fn json_has_one_object_a_step() {
        let text = grow("--nodes 6 --leave B --json").unwrap();
        let steps: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(steps.len(), 7);
        assert_eq!(steps[1]["event"], "B joins");
        let wanted = json!({ "name": "B", "primaries": 8, "backups": 8 });
        assert_eq!(steps[1]["nodes"][1], wanted);
        assert_eq!(steps[5]["mask"], "00FF");
        for step in &steps {
            assert_eq!(step["copies_moved"], step["lower_bound"]);
        }
        assert_eq!((&steps[0]["ranges"], &steps[1]["ranges"]), (&json!(1), &json!(2)));
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        assert_eq!(grow("--trace --seed 7").unwrap(), grow("--trace --seed 7").unwrap());
        assert_ne!(grow("--trace --seed 7").unwrap(), grow("--trace --seed 8").unwrap());
    }

    #[test]
    fn bad_input_gets_one_clear_line() {
        for (line, answer) in [
            ("--buckets 17", "--buckets is 16, 256, 4096 or 16384, not 17"),
            ("--nodes 0", "--nodes is 1 to 1000, not 0"),
            ("--backups 4", "--backups is 0 to 3, not 4"),
            ("--nodes 2 --weights 1.1.2", "--weights has 3 weights for 2 nodes"),
            ("--nodes 2 --leave Q", "--leave: there is no node \"Q\"; there are A, B"),
            ("--nodes 1 --leave A", "--leave: A is the last node that can hold anything"),
        ] {
            assert_eq!(grow(line), Err(Failure::BadInput(answer.to_owned())), "{line}");
        }
        let Err(Failure::BadInput(text)) = grow("--nodes 2 --weights 1.-2") else { panic!() };
        assert!(text.starts_with("--weights: weight 2 of the server map is \"-2\""), "{text}");
        assert!(matches!(grow("--nodes 1 --svg /no/such/folder/x.svg"), Err(Failure::Refused(_))));
    }
}

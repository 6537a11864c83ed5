//! SORT and SORT_RO.
use super::command::{Command, Gen, cmd};
use crate::lockstep::Args;

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(12) {
        0 => numbers(g),
        1 => cmd("MSET").words("w_1 5 w_2 -3 w_3 2.5 w_4 30").done(),
        2 => cmd("HSET").arg(format!("hw_{}", g.below(6))).words("f 7 g text").done(),
        3..10 => sort(g),
        10 => with_options(g, "SORT_RO"),
        _ => cmd("LRANGE").words("sorted 0 -1").done(),
    }
}

/// Makes a list of different numbers, so that the order of elements with the same weight does not matter.
fn numbers(g: &mut Gen) -> Args {
    let first = g.below(4);
    let numbers: Vec<String> = (0..6).map(|step| (first + step * 7 % 6).to_string()).collect();
    cmd("RPUSH").arg(g.pick(&["l1", "l2"])).words(&numbers.join(" ")).done()
}

fn key(g: &mut Gen) -> Vec<u8> {
    let keys = ["l1", "l1", "l2", "s1", "z1", "sorted", "h1", "a", "nosuch"];
    g.pick(&keys).as_bytes().to_vec()
}

fn sort(g: &mut Gen) -> Args {
    if g.one_in(3) { with_options(g, "SORT") } else { stored(g) }
}

fn limited(g: &mut Gen, command: Command) -> Command {
    match g.below(6) {
        0 => command.words("LIMIT").num(g.position()).num(g.position()),
        1 => command.words("LIMIT 1 3"),
        _ => command,
    }
}

/// Sorts by numbers, or by the texts of the elements: both decide about every element.
fn with_options(g: &mut Gen, name: &str) -> Args {
    let name = g.cased(name);
    let mut command = cmd(&name).arg(key(g));
    match g.below(6) {
        0 => command = command.words("BY w_*"),
        1 => command = command.words("BY hw_*->f"),
        2 => command = command.words("ALPHA"),
        _ => {}
    }
    command = limited(g, command);
    while g.one_in(3) {
        command =
            command.words(g.pick(&["GET #", "GET w_*", "GET hw_*->g", "GET x", "DESC", "ASC"]));
    }
    command.done()
}

fn stored(g: &mut Gen) -> Args {
    let mut command = cmd("SORT").arg(key(g));
    command = command.words(g.pick(&["ALPHA", "ALPHA DESC", "BY w_*", "", "BY nosort ALPHA"]));
    command = limited(g, command);
    if g.one_in(3) {
        command = command.words("GET w_* GET #");
    }
    command.words("STORE sorted").done()
}

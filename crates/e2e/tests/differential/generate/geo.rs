//! GEOADD, GEOSEARCH and related commands.
use super::command::{Command, Gen, cmd};
use crate::lockstep::Args;

/// Members with their positions. No two are equally far from any centre, because the order of such members is undefined.
const PLACES: [(&str, &str, &str); 12] = [
    ("palermo", "13.361389", "38.115556"),
    ("catania", "15.087269", "37.502669"),
    ("agrigento", "13.583333", "37.316667"),
    ("rome", "12.496366", "41.902782"),
    ("athens", "23.727539", "37.983810"),
    ("tokyo", "139.691706", "35.689487"),
    ("fiji", "179.414413", "-16.578193"),
    ("samoa", "-172.104629", "-13.759029"),
    ("svalbard", "15.6469", "78.2232"),
    ("quito", "-78.467834", "-0.180653"),
    ("origin", "0", "0"),
    ("corner", "-179.9", "-84.9"),
];

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(30) {
        0..8 => add(g),
        8..10 => distance(g),
        10 => cmd("GEOHASH").arg(key(g)).args(members(g)).done(),
        11..13 => cmd("GEOPOS").arg(key(g)).args(members(g)).done(),
        13..22 => search(g),
        22..25 => store(g),
        25..28 => radius(g),
        28 => cmd("ZSCORE").arg(key(g)).arg(member(g)).done(),
        _ => cmd("ZRANGE").arg(key(g)).words("0 -1 WITHSCORES").done(),
    }
}

/// Returns a key that often holds positions. Scores that are none would make equal positions.
fn key(g: &mut Gen) -> Vec<u8> {
    g.pick(&["g1", "g2", "{t}g", "a", "nosuch"]).as_bytes().to_vec()
}

fn member(g: &mut Gen) -> Vec<u8> {
    let index = g.index(PLACES.len() + 1);
    PLACES.get(index).map_or("nowhere", |place| place.0).as_bytes().to_vec()
}

fn members(g: &mut Gen) -> Args {
    let count = g.index(4);
    (0..count).map(|_| member(g)).collect()
}

fn add(g: &mut Gen) -> Args {
    let name = g.cased("GEOADD");
    let options = g.options(&["NX", "XX", "CH"]);
    let command = cmd(&name).arg(key(g)).args(options);
    if g.one_in(12) {
        let odd = ["181", "-180.1", "86", "abc", "", "inf"];
        return command.arg(g.pick(&odd)).arg(g.pick(&odd)).arg(member(g)).done();
    }
    let count = 1 + g.index(3);
    let places = (0..count).flat_map(|_| {
        let (name, longitude, latitude) = PLACES[g.index(PLACES.len())];
        [longitude, latitude, name].map(|text| text.as_bytes().to_vec())
    });
    let places: Args = places.collect();
    command.args(places).done()
}

fn unit(g: &mut Gen) -> String {
    let unit = g.pick(&["m", "km", "ft", "mi", "km", "parsec"]);
    g.cased(unit)
}

fn distance(g: &mut Gen) -> Args {
    let command = cmd("GEODIST").arg(key(g)).arg(member(g)).arg(member(g));
    if g.one_in(2) { command.arg(unit(g)).done() } else { command.done() }
}

fn center(g: &mut Gen, command: Command) -> Command {
    if g.one_in(2) {
        return command.words("FROMMEMBER").arg(member(g));
    }
    let (_, longitude, latitude) = PLACES[g.index(PLACES.len())];
    let off = if g.one_in(2) { ".25" } else { "" };
    let longitude =
        if longitude.contains('.') { longitude.to_owned() } else { format!("{longitude}{off}") };
    command.words("FROMLONLAT").arg(longitude).arg(latitude)
}

fn length(g: &mut Gen) -> String {
    match g.below(10) {
        0 => "0".into(),
        1 => g.pick(&["-1", "abc", "nan", "1e400"]).to_owned(),
        2 => g.below(10).to_string(),
        3..5 => g.below(1_000).to_string(),
        5..8 => (g.below(20_000) + 1).to_string(),
        _ => (g.below(20_000) * 1_000).to_string(),
    }
}

fn area(g: &mut Gen, command: Command) -> Command {
    if g.one_in(2) {
        command.words("BYRADIUS").arg(length(g)).arg(unit(g))
    } else {
        command.words("BYBOX").arg(length(g)).arg(length(g)).arg(unit(g))
    }
}

/// Adds options. Without an order, the results come in the order of the searched cells, which is the same in both servers.
fn with_options(g: &mut Gen, mut command: Command, words: &[&str]) -> Args {
    while g.one_in(2) {
        command = command.words(g.pick(words));
    }
    command.done()
}

const OPTIONS: [&str; 9] = [
    "ASC",
    "DESC",
    "WITHDIST",
    "WITHCOORD",
    "WITHHASH",
    "COUNT 2",
    "COUNT 3 ANY",
    "COUNT 0",
    "ANY",
];

fn search(g: &mut Gen) -> Args {
    let command = cmd("GEOSEARCH").arg(key(g));
    let command = center(g, command);
    let command = area(g, command);
    with_options(g, command, &OPTIONS)
}

fn store(g: &mut Gen) -> Args {
    let command = cmd("GEOSEARCHSTORE").words(g.pick(&["g1", "g2", "{t}g"])).arg(key(g));
    let command = center(g, command);
    let command = area(g, command);
    with_options(g, command, &["ASC", "DESC", "COUNT 2", "WITHDIST"])
}

fn radius(g: &mut Gen) -> Args {
    let read_only = if g.one_in(2) { "_RO" } else { "" };
    let command = if g.one_in(2) {
        let (_, longitude, latitude) = PLACES[g.index(PLACES.len())];
        cmd(&format!("GEORADIUS{read_only}")).arg(key(g)).arg(longitude).arg(latitude)
    } else {
        cmd(&format!("GEORADIUSBYMEMBER{read_only}")).arg(key(g)).arg(member(g))
    };
    let command = command.arg(length(g)).arg(unit(g));
    let stores = ["STORE g1", "STORE g2", "ASC", "COUNT 1"];
    if g.one_in(3) { with_options(g, command, &stores) } else { with_options(g, command, &OPTIONS) }
}

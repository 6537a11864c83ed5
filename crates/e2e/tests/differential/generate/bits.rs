//! Bits of strings.
use super::command::{Gen, cmd};
use crate::lockstep::Args;

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(20) {
        0..4 => setbit(g),
        4..6 => cmd("GETBIT").arg(g.key()).arg(offset(g)).done(),
        6..9 => bitcount(g),
        9..12 => bitpos(g),
        12..15 => bitop(g),
        15..19 => bitfield(g, "BITFIELD"),
        _ => bitfield(g, "BITFIELD_RO"),
    }
}

/// Returns an offset: mostly small, never one that would make a string large.
fn offset(g: &mut Gen) -> String {
    match g.below(12) {
        0 => "-1".into(),
        1 => "4294967296".into(),
        2 => g.below(20_000).to_string(),
        _ => g.below(100).to_string(),
    }
}

fn setbit(g: &mut Gen) -> Args {
    let bit = if g.one_in(12) { g.nonsense() } else { g.below(2).to_string().into_bytes() };
    cmd("SETBIT").arg(g.key()).arg(offset(g)).arg(bit).done()
}

fn bitcount(g: &mut Gen) -> Args {
    let command = cmd("BITCOUNT").arg(g.key());
    match g.below(6) {
        0 => command.done(),
        1 => command.num(g.position()).done(),
        2 | 3 => command.num(g.position()).num(g.position()).done(),
        _ => {
            let (start, end) = (g.position(), g.position());
            command.num(start).num(end).args(unit(g)).done()
        }
    }
}

fn unit(g: &mut Gen) -> Args {
    let word = g.pick(&["BYTE", "BIT", "BIT", "hello"]);
    vec![g.cased(word).into_bytes()]
}

fn bitpos(g: &mut Gen) -> Args {
    let bit = if g.one_in(12) { g.nonsense() } else { g.below(2).to_string().into_bytes() };
    let command = cmd("BITPOS").arg(g.key()).arg(bit);
    match g.below(6) {
        0 => command.done(),
        1 => command.num(g.position()).done(),
        2 | 3 => command.num(g.position()).num(g.position()).done(),
        _ => {
            let (start, end) = (g.position(), g.position());
            command.num(start).num(end).args(unit(g)).done()
        }
    }
}

fn bitop(g: &mut Gen) -> Args {
    let operation = g.pick(&["AND", "OR", "XOR", "NOT", "NOT", "NAND"]);
    let operation = g.cased(operation);
    let sources = if operation.eq_ignore_ascii_case("not") && !g.one_in(4) { 1 } else { 3 };
    cmd("BITOP").arg(operation).arg(g.key()).args(g.some_keys(sources)).done()
}

fn bitfield(g: &mut Gen, name: &str) -> Args {
    let mut command = cmd(name).arg(g.key());
    for _ in 0..g.below(4) {
        command = match g.below(8) {
            0..3 => command.words("GET").arg(kind(g)).arg(field_offset(g)),
            3..5 => command.words("SET").arg(kind(g)).arg(field_offset(g)).arg(g.integer()),
            5..7 => command.words("INCRBY").arg(kind(g)).arg(field_offset(g)).arg(g.integer()),
            _ => {
                let how = g.pick(&["WRAP", "SAT", "FAIL", "sat", "fail", "BURST"]);
                command.words("OVERFLOW").arg(how)
            }
        };
    }
    command.done()
}

/// Returns the type of a field, sometimes an invalid one.
fn kind(g: &mut Gen) -> String {
    match g.below(12) {
        0 => g.pick(&["u64", "i65", "u0", "i0", "x8", "8", "", "i-1", "u 8"]).to_owned(),
        1 => g.pick(&["i64", "u63"]).to_owned(),
        2..7 => format!("u{}", 1 + g.below(63)),
        _ => format!("i{}", 1 + g.below(64)),
    }
}

fn field_offset(g: &mut Gen) -> String {
    match g.below(12) {
        0 => g.pick(&["-1", "abc", "#", "#-1", "4294967296", "#99999999999", ""]).to_owned(),
        1..5 => format!("#{}", g.below(12)),
        _ => g.below(200).to_string(),
    }
}

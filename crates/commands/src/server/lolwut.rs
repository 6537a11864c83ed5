//! LOLWUT: the keyspace as a picture, one cell for each bucket of 64 slots; cells with more keys are darker.

use placement::Slot;

use super::SERVER;
use crate::Error;
use crate::context::Context;
use crate::spec::{Flag, Flags, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "lolwut",
    full_name: "lolwut",
    summary: "Draws the buckets of the node, and how full each is.",
    syntax: "[VERSION version]",
    since: "5.0.0",
    arity: -1,
    flags: Flags::of(&[Flag::ReadOnly, Flag::Fast, Flag::WholeKeyspace]),
    run: Some(lolwut),
    ..SERVER
};

const BUCKETS: usize = 256;
const COLUMNS: usize = 32;
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

fn lolwut(context: &mut Context<'_>) -> Result<(), Error> {
    let mut counts = [0usize; BUCKETS];
    for slot in Slot::all() {
        counts[slot.index() * BUCKETS / usize::from(Slot::COUNT)] += context.keys.table(slot).len();
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let shade = |count: usize| match count {
        0 => SHADES[0],
        count => SHADES[1 + (count - 1) * (SHADES.len() - 1) / most],
    };
    let mut text = String::new();
    for row in counts.chunks(COLUMNS) {
        text.extend(row.iter().map(|count| shade(*count)));
        text.push('\n');
    }
    let keys: usize = counts.iter().sum();
    let version = context.host.identity().version;
    text.push_str(&format!(
        "\n{keys} keys in {BUCKETS} buckets, none of them lost. OpenCluster ver. {version}\n"
    ));
    context.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

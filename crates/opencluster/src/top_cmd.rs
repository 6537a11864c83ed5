//! `opencluster top`: a cluster on a screen, live. Same wording as `status`; `live.rs` polls, `screen/`
//! draws.

mod view; //    The drawing of the screen.
mod latency; // Latency of commands on each member.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Args;
use cluster::status::Status;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::Failure;
use crate::live::{Live, Seen};
use crate::status_cmd;
use crate::talk::NodeArgs;
use latency::Latencies;
use view::View;

const DRAW_EVERY: Duration = Duration::from_millis(250);
/// Timeout of a request: a frozen node must not delay the others for long.
const PATIENCE: Duration = Duration::from_secs(1);
/// Seconds of operation counts that are kept.
const OPS_KEPT: usize = 300;

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        let line = "top draws on a terminal; opencluster status prints the same once";
        return Err(Failure::BadInput(line.to_owned()));
    }
    // Report a mistyped address before the screen is taken over.
    status_cmd::of_node(&args.node)?;
    let nodes = Arc::new(Mutex::new(vec![args.node.clone().within(PATIENCE)]));
    let live = Live::watch(nodes);
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::Refused(format!("cannot draw on this terminal: {error}")))?;
    let (mut past, latencies) = (Past::default(), Latencies::start());
    let watched = loop {
        let seen = live.latest();
        past.note(seen.as_ref());
        if let Some(seen) = &seen {
            let at = |member| args.node.at(status_cmd::address(member)).within(PATIENCE);
            let members = seen.status.members.iter();
            latencies.ask(members.map(|member| (member.name.clone(), at(member))).collect());
        }
        let shown = (&past, &latencies.snapshot());
        match draw(&mut terminal, seen.as_ref(), shown).and_then(|()| is_quit()) {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => {
                let line = format!("cannot draw on the terminal any more: {error}");
                break Err(Failure::Refused(line));
            }
        }
    };
    ratatui::restore();
    watched
}

fn draw(
    terminal: &mut ratatui::DefaultTerminal,
    seen: Option<&Seen>,
    (past, latencies): (&Past, &BTreeMap<String, latency::Latency>),
) -> io::Result<()> {
    let Some(seen) = seen else { return Ok(()) };
    let (now, age) = (status_cmd::now(), seen.at.elapsed());
    let view = View { status: &seen.status, age, ops: &past.ops, latencies, now };
    terminal.draw(|frame| view::draw(frame, &view))?;
    Ok(())
}

/// Waits for the next drawing; returns whether the user has quit meanwhile.
fn is_quit() -> io::Result<bool> {
    if !event::poll(DRAW_EVERY)? {
        return Ok(false);
    }
    let Event::Key(key) = event::read()? else { return Ok(false) };
    let is_break = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let is_end = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
    Ok(key.kind == KeyEventKind::Press && (is_break || is_end))
}

/// Operations per second of each member, second by second.
#[derive(Default)]
struct Past {
    ops: BTreeMap<String, Vec<u64>>,
    noted: Option<Instant>,
}

impl Past {
    fn note(&mut self, seen: Option<&Seen>) {
        let Some(seen) = seen else { return };
        if self.noted.is_some_and(|at| at.elapsed() < Duration::from_secs(1)) {
            return;
        }
        self.noted = Some(Instant::now());
        self.add(&seen.status);
    }

    fn add(&mut self, status: &Status) {
        self.ops.retain(|name, _| status.members.iter().any(|member| member.name == *name));
        for member in &status.members {
            let ops = self.ops.entry(member.name.clone()).or_default();
            ops.push(member.levels.map_or(0, |levels| levels.ops_per_second));
            let surplus = ops.len().saturating_sub(OPS_KEPT);
            ops.drain(..surplus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::testing::two_nodes;
    use placement::Mask;

    #[test]
    fn the_past_is_bounded_and_forgets_who_has_left() {
        let mut past = Past::default();
        let mut status = two_nodes(Mask::M000F);
        for _ in 0..OPS_KEPT + 7 {
            past.add(&status);
        }
        assert_eq!(past.ops["A"], vec![12_345; OPS_KEPT]);
        assert_eq!(past.ops["B"].last(), Some(&0));
        status.members.pop();
        past.add(&status);
        assert_eq!(past.ops.keys().collect::<Vec<_>>(), ["A"]);
    }
}

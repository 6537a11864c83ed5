//! The demo on a screen: each key acts on a node. Ends with `q`, Escape or Ctrl-C.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::herd::State;
use super::load::Latency;
use super::view::{self, Shown, View};
use super::{NODES_MAX, Stage, Stop};
use crate::Failure;
use crate::status_cmd;

const DRAW_EVERY: Duration = Duration::from_millis(100);
const COUNT_EVERY: Duration = Duration::from_secs(1);
const NOTICE_FOR: Duration = Duration::from_secs(4);
/// Seconds of write counts that are kept.
const WRITES_KEPT: usize = 300;

struct Play<'a> {
    stage: &'a mut Stage,
    chosen: usize,
    notice: Option<(String, Instant)>,
    writes: Vec<u64>,
    latency: Latency,
    /// Time of the last count of writes, and that count.
    counted: (Instant, u64),
}

enum Next {
    GoOn,
    Quit,
}

pub(super) fn run(stage: &mut Stage, stop: &Stop) -> Result<(), Failure> {
    let counted = (Instant::now(), stage.load.counts().acknowledged);
    let latency = stage.load.latency();
    let (writes, notice) = (Vec::new(), None);
    let mut play = Play { stage, chosen: 0, notice, writes, latency, counted };
    // This restores the terminal on a panic, too.
    let mut terminal = ratatui::try_init().map_err(|error| {
        refused(&format!("cannot draw on this terminal: {error}; try --no-tty"))
    })?;
    let played = loop {
        if stop.is_wanted() {
            break Ok(());
        }
        play.look();
        match play.draw(&mut terminal).and_then(|()| play.wait_for_a_key()) {
            Ok(Next::GoOn) => {}
            Ok(Next::Quit) => break Ok(()),
            Err(error) => {
                break Err(refused(&format!("cannot draw on the terminal any more: {error}")));
            }
        }
    };
    ratatui::restore();
    played
}

impl Play<'_> {
    /// Updates everything shown from the latest status and counts.
    fn look(&mut self) {
        let seen = self.stage.live.latest();
        self.stage.herd.tend(seen.as_ref().map(|seen| &*seen.status));
        self.chosen = self.chosen.min(self.stage.herd.nodes.len().saturating_sub(1));
        if self.notice.as_ref().is_some_and(|(_, at)| at.elapsed() > NOTICE_FOR) {
            self.notice = None;
        }
        let (at, before) = self.counted;
        if at.elapsed() >= COUNT_EVERY {
            let acknowledged = self.stage.load.counts().acknowledged;
            let rate = (acknowledged - before) as f64 / at.elapsed().as_secs_f64();
            self.writes.push(rate as u64);
            let surplus = self.writes.len().saturating_sub(WRITES_KEPT);
            self.writes.drain(..surplus);
            self.latency = self.stage.load.latency();
            self.counted = (Instant::now(), acknowledged);
        }
    }

    fn draw(&self, terminal: &mut ratatui::DefaultTerminal) -> std::io::Result<()> {
        let seen = self.stage.live.latest();
        let shown = |node: &super::herd::Node| Shown {
            name: node.name.clone(),
            address: node.address.clone(),
            state: node.state,
        };
        let nodes: Vec<Shown> = self.stage.herd.nodes.iter().map(shown).collect();
        let trouble = self.stage.load.last_error().filter(|_| self.stage.load.counts().errors > 0);
        let notice = self.notice.as_ref().map(|(text, _)| text.clone()).or(trouble);
        let view = View {
            status: seen.as_ref().map(|seen| &*seen.status),
            nodes: &nodes,
            chosen: self.chosen,
            counts: self.stage.load.counts(),
            latency: self.latency,
            writes: &self.writes,
            notice: notice.as_deref().unwrap_or_default(),
            now: status_cmd::now(),
        };
        terminal.draw(|frame| view::draw(frame, &view))?;
        Ok(())
    }

    fn wait_for_a_key(&mut self) -> std::io::Result<Next> {
        if !event::poll(DRAW_EVERY)? {
            return Ok(Next::GoOn);
        }
        if let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            return Ok(self.on_key(key));
        }
        Ok(Next::GoOn)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn on_key(&mut self, key: KeyEvent) -> Next {
        let last = self.stage.herd.nodes.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Next::Quit,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Next::Quit;
            }
            KeyCode::Up => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down => self.chosen = (self.chosen + 1).min(last),
            KeyCode::Char('a') => self.add(),
            KeyCode::Char('l') if self.may_go() => self.stage.herd.leave(self.chosen),
            KeyCode::Char('k') if self.may_go() => self.stage.herd.kill(self.chosen),
            KeyCode::Char('s') => self.stage.herd.stop_or_go_on(self.chosen),
            _ => {}
        }
        Next::GoOn
    }

    fn add(&mut self) {
        if self.stage.herd.nodes.len() >= NODES_MAX {
            return self.say(format!("{NODES_MAX} nodes are enough for one machine"));
        }
        if self.stage.herd.running() == 0 {
            return self.say("cannot add a node: no running node to join".to_owned());
        }
        if let Err(Failure::Refused(line) | Failure::BadInput(line)) = self.stage.herd.add() {
            self.say(line);
        }
    }

    /// Returns whether the chosen node may go: it is not killed, and another node runs.
    fn may_go(&mut self) -> bool {
        let states = self.stage.herd.nodes.iter().map(|node| node.state);
        let others = states.enumerate().filter(|(index, _)| *index != self.chosen);
        let is_another = others.into_iter().any(|(_, state)| state == State::Running);
        if !is_another {
            self.say("cannot stop the last running node".to_owned());
        }
        is_another && self.stage.herd.nodes[self.chosen].state != State::Killed
    }

    fn say(&mut self, text: String) {
        self.notice = Some((text, Instant::now()));
    }
}

fn refused(line: &str) -> Failure {
    Failure::Refused(line.to_owned())
}

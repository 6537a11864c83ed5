//! One measured run, and the median of several. Called by `node`, `threads` and `latency`.
use std::io;
use std::time::Duration;

use load::process::{Core, CpuClock};
pub(crate) use load::tally::median;
use load::{KeySpace, Load, Plan, Tally, Until};
use serde::{Deserialize, Serialize};

use crate::servers::{Placement, Server};

pub(crate) const SERVER_CORE: Core = Core(0);
pub(crate) const LOAD_CORE: Core = Core(1);
pub(crate) const CONNECTIONS: usize = 50;

/// Returns a placement with one I/O thread on a core of its own; the load is on the other.
pub(crate) fn alone() -> Placement {
    Placement { cores: vec![SERVER_CORE], io_threads: 1 }
}

/// The figures of one server in one run, or the medians of several runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// The server's own CPU time, user and system.
    pub(crate) cpu_micros_per_op: f64,
    pub(crate) ops_per_second: f64,
    pub(crate) p50_micros: f64,
    pub(crate) p99_micros: f64,
    pub(crate) p999_micros: f64,
    pub(crate) slowest_micros: f64,
}

impl Figures {
    #[cfg(test)]
    pub(crate) const ZERO: Figures = Figures {
        cpu_micros_per_op: 0.0,
        ops_per_second: 0.0,
        p50_micros: 0.0,
        p99_micros: 0.0,
        p999_micros: 0.0,
        slowest_micros: 0.0,
    };

    pub(crate) fn of(tally: &Tally, cpu: Duration) -> Figures {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Figures {
            cpu_micros_per_op: micros(cpu) / tally.answered as f64,
            ops_per_second: tally.per_second(),
            p50_micros: micros(tally.percentile(50.0)),
            p99_micros: micros(tally.percentile(99.0)),
            p999_micros: micros(tally.percentile(99.9)),
            slowest_micros: micros(tally.slowest()),
        }
    }

    /// Returns each figure's own median over the rounds.
    pub(crate) fn median(rounds: &[Figures]) -> Figures {
        let of = |figure: fn(&Figures) -> f64| median(rounds.iter().map(figure).collect());
        Figures {
            cpu_micros_per_op: of(|f| f.cpu_micros_per_op),
            ops_per_second: of(|f| f.ops_per_second),
            p50_micros: of(|f| f.p50_micros),
            p99_micros: of(|f| f.p99_micros),
            p999_micros: of(|f| f.p999_micros),
            slowest_micros: of(|f| f.slowest_micros),
        }
    }
}

/// Returns one side's CPU per operation as a share of the other's: the median of each round's own ratio. Other work
/// on the machine changes from round to round, and disturbs both sides of a round alike.
pub(crate) fn share(ours: &[Figures], theirs: &[Figures]) -> f64 {
    let rounds = ours.iter().zip(theirs);
    median(rounds.map(|(o, t)| o.cpu_micros_per_op / t.cpu_micros_per_op).collect())
}

/// Runs a connected load and returns its cost to the server. Errors and misses void a run: they are
/// cheaper than the requested work.
pub(crate) fn measured(
    server: &Server,
    run: impl FnOnce() -> io::Result<Tally>,
) -> io::Result<Figures> {
    let clock = CpuClock::of(server.pid())?;
    let before = clock.spent()?;
    let tally = run()?;
    let cpu = clock.spent()? - before;
    sound(server, &tally)?;
    Ok(Figures::of(&tally, cpu))
}

/// Connects, warms up and measures one load from this thread.
pub(crate) fn measure(server: &Server, plan: Plan, time: Duration) -> io::Result<Figures> {
    let mut load = Load::connect(plan)?;
    load.run(Until::Elapsed(time / 10))?;
    measured(server, || load.run(Until::Elapsed(time)))
}

/// SETs every key of the plan's key space once.
pub(crate) fn fill(server: &Server, plan: Plan) -> io::Result<()> {
    let KeySpace { keys, .. } = plan.requests.keys;
    let tally = Load::connect(plan.filling())?.run(Until::Requests(keys))?;
    sound(server, &tally)
}

pub(crate) fn sound(server: &Server, tally: &Tally) -> io::Result<()> {
    if tally.errors == 0 && tally.misses == 0 {
        return Ok(());
    }
    let (name, error) = (server.kind.name(), tally.first_error.as_deref().unwrap_or("no error"));
    Err(io::Error::other(format!(
        "{name} answered with {} misses and {} errors ({error}): nothing to compare",
        tally.misses, tally.errors
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_round_does_not_spoil_the_share() {
        let figures = |cpu| Figures { cpu_micros_per_op: cpu, ..Figures::ZERO };
        // The machine was twice as slow in the second round, three times in the third.
        let ours = [0.5, 1.0, 1.5].map(figures);
        let theirs = [1.0, 2.0, 3.0].map(figures);
        assert!((share(&ours, &theirs) - 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn the_median_is_the_middle_of_any_order() {
        assert!((median(vec![9.0, 1.0, 5.0]) - 5.0).abs() < f64::EPSILON);
        assert!((median(vec![4.0, 1.0, 2.0, 8.0]) - 3.0).abs() < f64::EPSILON);
    }
}

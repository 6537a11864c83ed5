//! The binary: command line, configuration, and the commands people type.
//!
//! `opencluster` alone starts a node with all defaults. Read `cli.rs` for the command line, then `serve.rs`
//! for the life of a node. Bad input is answered with one line and exit code 2; a refusal by the environment
//! (a taken port) with one line and exit code 1.

mod cli; //    The command line.
mod config; // Settings: file < environment < flags.
mod serve; //  A node from start to exit.
mod status_cmd; // The cluster in tables.
mod top_cmd; // The same on a screen, live.
mod demo_cmd; // A whole cluster on this machine, to watch and to break.
mod operate_cmd; // Leave, takeover, split, settings.
mod talk; //   Requests to a running node.
mod live; //   Continuous polling of a cluster's status.
mod screen; // The drawing of a cluster.
mod sim_cmd; // Simulations, without a cluster.
mod fleet_cmd; // Plain Redis servers as one fleet.
mod banner; // The startup banner.
mod taken; //  Identifies the process on a taken port.
mod memory; // Memory figures of the allocator.

use std::process::ExitCode;

use cli::Command;
use cluster::status::Severity;

// One allocator for all threads. It does not grow without bound under changing value sizes, and it exposes
// its figures: `INFO memory` reports them.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(answer) => return answer.give(),
    };
    let outcome = match command {
        Command::Serve(args) => serve::run(&args),
        Command::Status(args) => status_cmd::run(&args),
        Command::Top(args) => top_cmd::run(&args),
        Command::Demo(args) => demo_cmd::run(&args),
        Command::Leave(args) => operate_cmd::leave(&args),
        Command::Takeover(args) => operate_cmd::takeover(&args),
        Command::Split(args) => operate_cmd::split(&args),
        Command::Settings(args) => operate_cmd::settings(&args),
        Command::Sim(args) => sim_cmd::run(&args),
        Command::Fleet(args) => fleet_cmd::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Reason why a command failed, in one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The input is invalid; a retry will not help.
    BadInput(String),
    /// The input is valid, but the machine or the cluster refused it.
    Refused(String),
    /// The cluster is not well, which was printed: `status --check`.
    Unhealthy(Severity),
}

impl Failure {
    fn report(&self) -> ExitCode {
        let code = match self {
            Failure::BadInput(_) => 2,
            Failure::Refused(_) => 1,
            Failure::Unhealthy(severity) => *severity as u8,
        };
        if !matches!(self, Failure::Unhealthy(_)) {
            anstream::eprintln!("opencluster: {}", self.line());
        }
        ExitCode::from(code)
    }

    fn line(&self) -> &str {
        match self {
            Failure::BadInput(line) | Failure::Refused(line) => line,
            Failure::Unhealthy(_) => "the cluster is not well",
        }
    }
}

//! The binary: command line, configuration, and the commands people type.
//!
//! `opencluster` alone starts a node with all defaults. Read `cli.rs` for what can be typed,
//! `serve.rs` for what then happens. Bad input is answered with one line and exit code 2; what the
//! world refuses (a taken port) with one line and exit code 1.

mod cli; //    What can be typed.
mod config; // Settings: file < environment < flags.
mod serve; //  A node from its first words to its last.
mod status_cmd; // The cluster in tables.
mod top_cmd; // The same on a screen, live.
mod demo_cmd; // A whole cluster on this machine, to watch and to break.
mod operate_cmd; // Leave, split, settings.
mod talk; //   Talking to a running node.
mod live; //   A cluster that is looked at all the time.
mod screen; // What is drawn of a cluster.
mod sim_cmd; // What a cluster would do, without one.
mod fleet_cmd; // Plain Redis servers as one fleet.
mod banner; // The first words.
mod taken; //  Who sits on a port we wanted.
mod memory; // What the allocator says about memory.

use std::process::ExitCode;

use cli::Command;

// One allocator for all threads that neither grows without end under changing value sizes nor
// hides its numbers: `INFO memory` is what it says.
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

/// Why a command ended without doing its work. One line each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// What was asked for makes no sense; asking again will not help.
    BadInput(String),
    /// It made sense, but the machine said no.
    Refused(String),
}

impl Failure {
    fn report(&self) -> ExitCode {
        let (line, code) = match self {
            Failure::BadInput(line) => (line, 2),
            Failure::Refused(line) => (line, 1),
        };
        anstream::eprintln!("opencluster: {line}");
        ExitCode::from(code)
    }
}

//! `opencluster fleet ...`: plain Redis servers as one fleet. Each subcommand has its file; the work
//! is done by the crate `proxy`.

mod access; //  Access to the servers: passwords, TLS.
mod proxy; //   Serve applications.
mod migrate; // The change from one map to the next.
mod status; //  The state of the fleet.
mod check; //   A search for misplaced keys.
mod shown; //   Numbers for people.

use clap::{Args, Subcommand};

use crate::Failure;
use ::proxy::admin::AdminError;

#[derive(Args, Debug)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Subcommand, Debug)]
enum FleetCommand {
    /// Serve applications: one address in front of many plain Redis servers
    Proxy(proxy::ProxyArgs),
    /// Change the map online, while applications keep running
    Migrate(migrate::MigrateArgs),
    /// Show the map, the servers and how far a migration is
    Status(status::StatusArgs),
    /// Find misplaced keys, duplicate keys, and servers that disagree
    Check(check::CheckArgs),
}

pub(crate) fn run(args: &FleetArgs) -> Result<(), Failure> {
    match &args.command {
        FleetCommand::Proxy(args) => proxy::run(args),
        FleetCommand::Migrate(args) => migrate::run(args),
        FleetCommand::Status(args) => status::run(args),
        FleetCommand::Check(args) => check::run(args),
    }
}

fn failure(error: AdminError) -> Failure {
    match error {
        AdminError::BadInput(line) => Failure::BadInput(line),
        AdminError::Refused(line) | AdminError::Busy(line) => Failure::Refused(line),
    }
}

/// Prints `text`. A closed pipe is no error: the reader may have seen enough (`| head`).
fn say(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Refused(format!("cannot write the result: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

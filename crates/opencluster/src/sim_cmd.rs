//! `opencluster sim ...`: simulations, without a cluster. Each subcommand has its file.

mod grow; //    A cluster that grows and shrinks, in pictures.
mod compare; // Ways to place keys, side by side.
mod faults; //  Whole clusters under virtual time, with faults of every kind.

use std::io::Write;

use clap::{Args, Subcommand};

use crate::Failure;

#[derive(Args, Debug)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    command: SimCommand,
}

#[derive(Subcommand, Debug)]
enum SimCommand {
    /// Let a cluster grow and shrink node by node, and show what moves and why
    Grow(grow::GrowArgs),
    /// Compare ways to place keys: what moves on a join and on a leave, and how even it is
    Compare(compare::CompareArgs),
    /// Run whole clusters under virtual time while machines and networks fail, and check every promise
    Faults(faults::FaultsArgs),
}

pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    let text = match &args.command {
        SimCommand::Grow(args) => grow::run(args)?,
        SimCommand::Compare(args) => compare::run(args)?,
        SimCommand::Faults(args) => faults::run(args)?,
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Refused(format!("cannot write the result: {error}"))),
        Ok(()) => Ok(()),
    }
}

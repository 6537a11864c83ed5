//! HELP of every container of subcommands, generated from the table.

use crate::context::Context;
use crate::{Error, Spec, Table};

/// Runs `CLIENT HELP`, `CONFIG HELP` and so on: for each subcommand one line of syntax and one of summary.
pub(crate) fn help(context: &mut Context<'_>) -> Result<(), Error> {
    let name = context.spec.full_name.split('|').next().unwrap_or_default();
    let container = Table::default().find(name.as_bytes()).expect("a subcommand has a container");
    let mut subcommands: Vec<&Spec> = container.subcommands.iter().collect();
    subcommands.sort_by_key(|sub| (sub.name == "help", sub.name));

    context.reply.array(1 + 2 * subcommands.len());
    let name = name.to_uppercase();
    let head = format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    context.reply.simple(&head);
    for sub in subcommands {
        let line = format!("{} {}", sub.name.to_uppercase(), sub.syntax);
        context.reply.simple(line.trim_end());
        context.reply.simple(&format!("    {}", sub.summary));
    }
    Ok(())
}

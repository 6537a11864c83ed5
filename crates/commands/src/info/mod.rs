//! INFO: the node's numbers in sections of `name:value` lines. `sections.rs` writes each section, `number.rs`
//! formats sizes for people.
mod number;
mod sections;

use crate::Error;
use crate::cluster::own_master;
use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "info",
    full_name: "info",
    summary: "Returns information about the node: clients, memory, traffic, keys.",
    syntax: "[section [section ...]]",
    group: Group::Server,
    arity: -1,
    flags: Flags::of(&[Flag::Loading, Flag::Stale, Flag::Dangerous]),
    run: Some(info),
    ..BLANK
}];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Section {
    Server,
    Clients,
    Memory,
    Persistence,
    Stats,
    Replication,
    Cpu,
    Modules,
    CommandStats,
    ErrorStats,
    LatencyStats,
    Cluster,
    Keyspace,
}

impl Section {
    /// All sections, in the order in which they are shown.
    const ALL: [Section; 13] = [
        Section::Server,
        Section::Clients,
        Section::Memory,
        Section::Persistence,
        Section::Stats,
        Section::Replication,
        Section::Cpu,
        Section::Modules,
        Section::CommandStats,
        Section::ErrorStats,
        Section::LatencyStats,
        Section::Cluster,
        Section::Keyspace,
    ];

    fn title(self) -> &'static str {
        match self {
            Section::Server => "Server",
            Section::Clients => "Clients",
            Section::Memory => "Memory",
            Section::Persistence => "Persistence",
            Section::Stats => "Stats",
            Section::Replication => "Replication",
            Section::Cpu => "CPU",
            Section::Modules => "Modules",
            Section::CommandStats => "Commandstats",
            Section::ErrorStats => "Errorstats",
            Section::LatencyStats => "Latencystats",
            Section::Cluster => "Cluster",
            Section::Keyspace => "Keyspace",
        }
    }

    /// Returns whether the section is shown when none is named; the others can be long.
    fn is_default(self) -> bool {
        !matches!(self, Section::CommandStats | Section::LatencyStats)
    }

    fn is_named(self, word: &[u8]) -> bool {
        match word.to_ascii_lowercase().as_slice() {
            b"default" => self.is_default(),
            b"all" => self != Section::Modules,
            b"everything" => true,
            word => self.title().as_bytes().eq_ignore_ascii_case(word),
        }
    }
}

fn info(context: &mut Context<'_>) -> Result<(), Error> {
    let words: Vec<&[u8]> = context.args.from(1).collect();
    let wanted = |section: &Section| {
        if words.is_empty() {
            section.is_default()
        } else {
            words.iter().any(|word| section.is_named(word))
        }
    };
    let sections: Vec<Section> = Section::ALL.into_iter().filter(wanted).collect();
    let master = own_master(context);
    let mut page = sections::InfoPage::new(context.host, context.keys.env(), master);
    sections.into_iter().for_each(|section| page.section(section));
    context.reply.verbatim("txt", page.text().as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests;

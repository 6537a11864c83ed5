//! Settings that change at run time, and the file they are written back to.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use cluster::control::OperatorRequest;
use cluster::map::{LogIndex, Map, Peer};
use parking_lot::Mutex;
use settings::{Secret, Settings, ValidChanges, rewrite_file};

use crate::cluster_settings::{Remedy, differences, flag_conflicts, remedies};
use crate::descriptors::DescriptorShares;
use crate::log;
use crate::system::file_limit;
use crate::timers::Hub;

/// The setting that is written to a file of its own, if there is one.
const PASSWORD: &str = "requirepass";

/// Serializes changes of the settings.
#[derive(Default)]
pub(crate) struct ConfigChanges {
    changed: Mutex<Changed>,
    /// Held while the file is rewritten. The control thread must not wait for a disk, so `changed` is free then.
    rewriting: Mutex<()>,
}

#[derive(Default)]
struct Changed {
    /// Settings that differ from those at start.
    names: BTreeSet<&'static str>,
    /// Version of the cluster's documents that the settings follow; `None` before the first map.
    follows: Option<LogIndex>,
    flags: Flags,
}

/// The settings at start, until it is decided which of them apply.
#[derive(Default)]
enum Flags {
    /// There is no map yet.
    #[default]
    InUse,
    /// The cluster's values apply, because this process is not a member yet.
    Undecided(Box<Settings>),
    Decided,
}

impl ConfigChanges {
    /// Applies the settings of the whole cluster. Called for every map, before anything that was decided after it.
    /// Returns requests to the cluster: if this process, `me`, finds itself the only member, its flags apply.
    pub(crate) fn follow(
        &self,
        settings: &ArcSwap<Settings>,
        timers: &Hub,
        me: Peer,
        map: &Map,
    ) -> Vec<OperatorRequest> {
        let mut changed = self.changed.lock();
        let version = Some(map.documents().version());
        let is_new = changed.follows != version;
        if !is_new && matches!(changed.flags, Flags::Decided) {
            return Vec::new();
        }
        let current = settings.load_full();
        if matches!(changed.flags, Flags::InUse) {
            changed.flags = Flags::Undecided(Box::new(Settings::clone(&current)));
        }
        let mut next = Settings::clone(&current);
        if is_new {
            changed.follows = version;
            let differences = differences(&current, map.documents());
            let changes: Vec<(&str, &str)> =
                differences.iter().map(|it| (it.name, it.cluster.as_str())).collect();
            next = current.with_changes(&changes).expect("only valid values are differences");
            changed.names.extend(differences.iter().map(|it| it.name));
        }
        let requests = decide_on_flags(&mut changed.flags, me, map, &mut next);
        if is_new || next != *current {
            timers.settings_changed(&next);
            settings.store(Arc::new(next));
        }
        requests
    }

    /// Applies changes of this node's own settings.
    pub(crate) fn change(
        &self,
        settings: &ArcSwap<Settings>,
        timers: &Hub,
        changes: &ValidChanges,
    ) {
        let mut changed = self.changed.lock();
        let current = settings.load();
        let mut next = changes.apply_to(&current);
        if let Some(line) = DescriptorShares::of(file_limit(), &next).fit(&mut next) {
            log::warn("settings", &line);
        }
        if next.has_open_peer_port() && !current.has_open_peer_port() {
            let line = "clients need a password now, but there is no secret for nodes (secret-file): \
                        every user of this machine can join and read everything";
            log::warn("settings", line);
        }
        timers.settings_changed(&next);
        settings.store(Arc::new(next));
        changed.names.extend(changes.names());
    }

    /// Writes the changed settings into the configuration file. The error is a complete error reply.
    pub(crate) fn rewrite(
        &self,
        settings: &ArcSwap<Settings>,
        file: Option<&Path>,
    ) -> Result<(), String> {
        let Some(path) = file else {
            return Err("ERR The server is running without a config file".to_owned());
        };
        let _rewriting = self.rewriting.lock();
        let mut names = self.changed.lock().names.clone();
        let settings = settings.load();
        let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
        let password = settings.requirepass_file.as_deref().filter(|_| names.remove(PASSWORD));
        let text = rewrite_file(&text, &settings, names.iter().copied());
        let text = text.map_err(|error| failed(&error))?;
        if let Some(file) = password {
            write_password(file, &settings.requirepass).map_err(|error| failed(&error))?;
        }
        replace(path, text.as_bytes()).map_err(|error| failed(&error))
    }
}

/// Decides on the flags that differ from the cluster's values, at the first map that has this process as a member. The
/// maps before it may be old. If it is the only member, nobody can want other values: the flags apply, and become the
/// cluster's by the returned requests. Otherwise they do not apply.
fn decide_on_flags(
    flags: &mut Flags,
    me: Peer,
    map: &Map,
    next: &mut Settings,
) -> Vec<OperatorRequest> {
    let is_member = map.member(me.id).is_some_and(|member| member.peer() == me);
    let Flags::Undecided(given) = flags else { return Vec::new() };
    if !is_member {
        return Vec::new();
    }
    let conflicts = flag_conflicts(given, map);
    if map.members().len() > 1 {
        conflicts.iter().for_each(|conflict| log::warn("settings", &conflict.overruled()));
        *flags = Flags::Decided;
        return Vec::new();
    }
    for conflict in &conflicts {
        match &conflict.remedy {
            Remedy::Nothing => log::warn("settings", &conflict.overruled()),
            Remedy::Write(_) | Remedy::Set(_) => log::info("settings", &conflict.winning()),
        }
        if let Remedy::Write(_) = conflict.remedy {
            let text = given.exact_text(conflict.name).expect("a setting of the table");
            next.change(conflict.name, &text).expect("a setting takes its own value");
        }
    }
    *flags = Flags::Decided;
    remedies(&conflicts, map)
}

fn failed(error: &dyn core::fmt::Display) -> String {
    format!("ERR Rewriting config file: {error}")
}

/// Writes the password to the file that the configuration names, where the next start reads it.
fn write_password(file: &Path, password: &Secret) -> io::Result<()> {
    if password.is_empty() {
        let why = "the password is empty; remove requirepass-file from the configuration";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    replace(file, format!("{}\n", password.expose()).as_bytes())
}

/// Replaces a file atomically: a reader sees the old or the new content, never a mixture.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    let written = write_whole(beside, path, content).and_then(|()| fs::rename(beside, path));
    if written.is_err() {
        let _ = fs::remove_file(beside); // Best effort: a leftover file does no harm.
    }
    written
}

fn write_whole(beside: &Path, like: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(beside)?;
    // The file may hold a password: copy the permissions, so that no one else can read the new file.
    file.set_permissions(fs::metadata(like)?.permissions())?;
    file.write_all(content)?;
    file.sync_all()
}

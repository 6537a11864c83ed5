//! `fleet check`: walks the whole fleet for misplaced keys, keys that exist twice, and servers that disagree
//! about the configuration; with `--fix`, repairs what can be repaired.
//!
//! Nobody serves a misplaced key. If its right server has a key of that name, applications see that one, and
//! the other is deleted; if not, the key is moved there.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet::view::{Place, Route};
use fleet::{Address, BigMoveJob, Config, Epoch, Outcome, Server, Status, Token, View};
use resp::Value;

use super::look::{AdminError, Look, refused_at};
use super::walk::{Go, pages};
use crate::migrate::{Broken, Busy, Lanes, Progress, Switching, random_id};
use crate::servers::Access;

#[derive(Clone, Debug)]
pub struct CheckOptions {
    pub servers: Vec<Address>,
    pub access: Access,
    pub mend: Mend,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mend {
    /// Only report.
    Nothing,
    All,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Finding {
    /// A server whose configuration differs from the first server's, with a description.
    Disagrees {
        server: Server,
        what: String,
    },
    Away {
        server: Server,
        why: String,
    },
    /// On a server that it does not belong to, and nowhere else.
    Misplaced {
        key: Vec<u8>,
        on: Server,
        belongs: Server,
    },
    /// On a server that it does not belong to, and also on the one it belongs to.
    Twice {
        key: Vec<u8>,
        on: Server,
        belongs: Server,
    },
}

#[derive(Clone, Debug)]
pub struct CheckReport {
    pub config: Config,
    pub walked: u64,
    /// The findings; of the keys only the first thousand.
    pub findings: Vec<Finding>,
    pub misplaced: u64,
    pub twice: u64,
    pub mended: u64,
}

/// Maximum number of listed keys; the rest are only counted.
const FINDINGS_MAX: usize = 1_000;
/// Number of keys repaired at once.
const BATCH_KEYS: usize = 64;

impl CheckReport {
    /// Returns whether everything is in order, possibly after repair.
    pub fn is_sound(&self) -> bool {
        let others = self
            .findings
            .iter()
            .any(|finding| matches!(finding, Finding::Disagrees { .. } | Finding::Away { .. }));
        !others && self.misplaced + self.twice <= self.mended
    }
}

pub fn check(options: &CheckOptions) -> Result<CheckReport, AdminError> {
    let look = Look::at(&options.servers, &options.access)?;
    let mut report = CheckReport {
        config: look.config.clone(),
        walked: 0,
        findings: Vec::new(),
        misplaced: 0,
        twice: 0,
        mended: 0,
    };
    let mut mender = match options.mend {
        Mend::Nothing => None,
        Mend::All => Some(Mender::begin(&look, &options.access)?),
    };
    check_servers(&look, mender.as_mut(), &mut report)?;
    let id = random_id().map_err(|error| AdminError::Refused(error.to_string()))?;
    let epoch = match options.mend {
        Mend::Nothing => Epoch::NONE,
        Mend::All => look.config.epoch,
    };
    let id = format!("{id}.check");
    let mut lanes = Lanes::new(&look.config.servers, &options.access, &id, epoch);
    for server in look.present() {
        check_keys(server, &mut lanes, mender.as_mut(), &mut report)
            .map_err(|broken| describe(&look.config, broken))?;
    }
    Ok(report)
}

fn check_servers(
    look: &Look,
    mender: Option<&mut Mender>,
    report: &mut CheckReport,
) -> Result<(), AdminError> {
    let differs = !look.disagreements().is_empty();
    if let (Some(mender), true) = (mender, differs) {
        mender.switching.repeat(&Config { lock: None, ..look.config.clone() })?;
        return Ok(());
    }
    for seen in &look.servers {
        let server = seen.server;
        let alone = Look { servers: vec![seen.clone()], ..look.clone() };
        report.findings.extend(
            alone.disagreements().into_iter().map(|what| Finding::Disagrees { server, what }),
        );
        match &seen.facts {
            Err(why) if look.config.needs(server) => {
                report.findings.push(Finding::Away { server, why: why.clone() });
            }
            Ok(facts) => {
                let unfit = facts.unsuitable.clone();
                report.findings.extend(unfit.map(|why| Finding::Away { server, why }));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// Finds all keys of one server that belong elsewhere.
fn check_keys(
    server: Server,
    lanes: &mut Lanes,
    mut mender: Option<&mut Mender>,
    report: &mut CheckReport,
) -> Result<(), Broken> {
    let view = View::of(&report.config);
    let mut strays: BTreeMap<Server, Vec<Vec<u8>>> = BTreeMap::new();
    let walked = &mut report.walked;
    lanes.on(server, |control| {
        pages(control, |_, keys| {
            for key in keys {
                *walked += 1;
                if let Some(belongs) = belongs_elsewhere(&view, &key, server) {
                    strays.entry(belongs).or_default().push(key);
                }
            }
            Ok(Go::On)
        })
    })?;
    for (belongs, keys) in strays {
        for keys in keys.chunks(BATCH_KEYS) {
            let route = Route { from: server, to: belongs };
            check_strays(route, keys, lanes, mender.as_deref_mut(), report)?;
        }
    }
    Ok(())
}

/// Returns the server a key belongs to, if it is not `on`. A moving key may be at either end.
fn belongs_elsewhere(view: &View, key: &[u8], on: Server) -> Option<Server> {
    let belongs = match view.place(key) {
        Place::At(server) => server,
        Place::Moving(route) if route.from == on => return None,
        Place::Moving(route) => route.to,
        Place::Held => Server(view.current().server_of(key)),
    };
    (belongs != on).then_some(belongs)
}

fn check_strays(
    route: Route,
    keys: &[Vec<u8>],
    lanes: &mut Lanes,
    mender: Option<&mut Mender>,
    report: &mut CheckReport,
) -> Result<(), Broken> {
    let commands: Vec<Vec<Vec<u8>>> =
        keys.iter().map(|key| vec![b"EXISTS".to_vec(), key.clone()]).collect();
    let exists = lanes.on(route.to, |control| control.pipeline(&commands))?;
    let (on, belongs) = (route.from, route.to);
    for (key, exists) in keys.iter().zip(exists) {
        let key = key.clone();
        let finding = if exists == Value::Integer(1) {
            report.twice += 1;
            Finding::Twice { key, on, belongs }
        } else {
            report.misplaced += 1;
            Finding::Misplaced { key, on, belongs }
        };
        if report.findings.len() < FINDINGS_MAX {
            report.findings.push(finding);
        }
    }
    if let Some(mender) = mender {
        report.mended += mender.bring(route, keys, lanes)?;
    }
    Ok(())
}

/// Holds the lock during repairs, so that no migration begins.
struct Mender {
    switching: Switching,
    id: String,
    count: u64,
}

impl Mender {
    fn begin(look: &Look, access: &Access) -> Result<Mender, AdminError> {
        if look.config.status == Status::InProgress || look.config.next.is_some() {
            let why = "a migration is in progress; run the repair after it has ended";
            return Err(AdminError::Refused(why.to_owned()));
        }
        let progress = Arc::new(Progress::default());
        let servers = &look.config.servers;
        let switching =
            Switching::begin(servers, &look.present(), access, Busy::Refuse, &progress)?;
        let id = random_id().map_err(|error| AdminError::Refused(error.to_string()))?;
        Ok(Mender { switching, id, count: 0 })
    }

    /// Moves keys to their server. A move keeps a key that is already in place, and deletes the other copy.
    fn bring(&mut self, route: Route, keys: &[Vec<u8>], lanes: &mut Lanes) -> Result<u64, Broken> {
        self.count += 1;
        let token = Token::new(format!("{}-{}", self.id, self.count));
        let mut job = lanes.mover(route, &token, keys.to_vec());
        lanes.run(&mut job, || true)?;
        let mut mended = 0;
        for (key, outcome) in job.outcomes() {
            match outcome {
                Outcome::Moved { .. } | Outcome::Gone => mended += 1,
                Outcome::Refused(_) => {
                    let mut job = BigMoveJob::new(route, token.clone(), key.to_vec());
                    lanes.run(&mut job, || true)?;
                    let refused = matches!(job.outcome(), Some(Outcome::Refused(_)) | None);
                    mended += u64::from(!refused);
                }
            }
        }
        Ok(mended)
    }
}

fn describe(config: &Config, broken: Broken) -> AdminError {
    match broken {
        Broken::Server { server, why } => refused_at(&config.servers[server.0], &why),
        Broken::Job(why) => AdminError::Refused(why),
    }
}

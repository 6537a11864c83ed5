//! A migration from its plan to its end. Each step leaves the fleet in a state from which any proxy, and a
//! later migrator, knows how to continue.

use std::sync::Arc;

use fleet::{Address, Config, Server, Status};
use placement::ServerMap;

use super::estimate::Estimate;
use super::lanes::{Broken, Lanes};
use super::moving::{Mover, sweep};
use super::options::{Goal, MigrateOptions};
use super::progress::{Outcome, Phase, Progress, Report};
use super::switching::{Switching, random_id};
use crate::admin::{AdminError, Look, look_at_new, refused_at};

/// Plan of a migration.
#[derive(Clone, Debug)]
pub struct MigrationPlan {
    /// The fleet's present configuration.
    pub config: Config,
    /// All servers, including those to be added.
    pub servers: Vec<Address>,
    /// The map it starts from, and the map it leads to.
    pub from: ServerMap,
    pub map: ServerMap,
    pub estimate: Estimate,
    pub warnings: Vec<String>,
    /// Servers that will take part.
    present: Vec<Server>,
}

/// Inspects the fleet and says what would happen. Changes nothing.
pub fn plan(options: &MigrateOptions) -> Result<MigrationPlan, AdminError> {
    let look = Look::at(&options.servers, &options.access)?;
    look.must_be_sound()?;
    match &options.goal {
        Goal::Map(map) => plan_map(options, &look, map),
        Goal::Resume => plan_in_progress(options, &look),
        Goal::Abort => plan_in_progress(options, &look),
    }
}

fn plan_map(
    options: &MigrateOptions,
    look: &Look,
    map: &ServerMap,
) -> Result<MigrationPlan, AdminError> {
    let config = &look.config;
    if config.status == Status::InProgress {
        let (from, to) = (&config.previous, &config.current);
        let between = format!("a migration from {from} to {to}");
        // Without a lock nobody is working on it, and waiting would be in vain.
        return Err(match &config.lock {
            Some(lock) => AdminError::Busy(format!(
                "{between} is running: {}; --wait waits for its end",
                lock.holder
            )),
            None => AdminError::Refused(format!(
                "{between} is in progress; --resume continues it, --abort reverts it"
            )),
        });
    }
    let mut servers = all_servers(options, config)?;
    if map.weights().len() != servers.len() {
        let (weights, count) = (map.weights().len(), servers.len());
        return Err(AdminError::BadInput(format!(
            "the map {map} has {weights} weights for {count} servers"
        )));
    }
    if *map == config.current && options.add.is_empty() {
        return Err(AdminError::BadInput(format!("the fleet's map is already {map}")));
    }
    let mut present = look.present();
    let mut warnings = warnings(look);
    for (number, address) in servers.iter_mut().enumerate().skip(config.servers.len()) {
        let (found, lines) = check_new(address, options)?;
        *address = found;
        warnings.extend(lines);
        present.push(Server(number));
    }
    for (number, address) in servers.iter().enumerate() {
        let needed = map.weights()[number] > 0;
        if needed && !present.contains(&Server(number)) {
            return Err(refused_at(address, "it cannot be reached, and the new map needs it"));
        }
    }
    let estimate = Estimate::full(look, map, &options.access)?;
    must_be_in_place(&estimate, config)?;
    let (config, from) = (config.clone(), config.current.clone());
    Ok(MigrationPlan { config, servers, from, map: map.clone(), estimate, warnings, present })
}

fn all_servers(options: &MigrateOptions, config: &Config) -> Result<Vec<Address>, AdminError> {
    let mut servers = config.servers.clone();
    for address in &options.add {
        if servers.iter().any(|server| server.is_at(address)) {
            let why = format!("{address} is part of the fleet already");
            return Err(AdminError::BadInput(why));
        }
        servers.push(address.clone());
    }
    Ok(servers)
}

/// Checks a server that joins. It must be empty: its keys would be taken for newer than the fleet's own.
fn check_new(
    address: &Address,
    options: &MigrateOptions,
) -> Result<(Address, Vec<String>), AdminError> {
    let (address, facts) = look_at_new(address, &options.access)?;
    match &facts.config {
        Ok(None) => {}
        Ok(Some(_)) | Err(_) => {
            return Err(refused_at(&address, "it belongs to another fleet"));
        }
    }
    if facts.keys > 0 {
        return Err(refused_at(&address, &format!("it holds {} keys already", facts.keys)));
    }
    let lines = facts.warnings.iter().map(|line| format!("server {address}: {line}")).collect();
    Ok((address, lines))
}

fn must_be_in_place(estimate: &Estimate, config: &Config) -> Result<(), AdminError> {
    let Some(example) = estimate.examples.first() else { return Ok(()) };
    let key = example.key.escape_ascii();
    let (on, belongs) = (&config.servers[example.on.0], &config.servers[example.belongs.0]);
    let count = estimate.misplaced;
    Err(AdminError::Refused(format!(
        "{count} keys are not where the map has them, such as \"{key}\" on {on}, which belongs on {belongs}; `opencluster fleet check --fix` first"
    )))
}

fn plan_in_progress(options: &MigrateOptions, look: &Look) -> Result<MigrationPlan, AdminError> {
    let config = look.config.clone();
    if config.status != Status::InProgress {
        let why = format!("no migration is in progress; the fleet's map is {}", config.current);
        return Err(AdminError::Refused(why));
    }
    let (from, map) = match options.goal {
        Goal::Abort => (config.current.clone(), config.previous.clone()),
        Goal::Map(_) | Goal::Resume => (config.previous.clone(), config.current.clone()),
    };
    let (previous, current) = (from.clone(), map.clone());
    let seen = Look { config: Config { previous, current, ..config.clone() }, ..look.clone() };
    let estimate = Estimate::sampled(&seen, &options.access)?;
    let (servers, present) = (config.servers.clone(), look.present());
    Ok(MigrationPlan { config, servers, from, map, estimate, warnings: warnings(look), present })
}

fn warnings(look: &Look) -> Vec<String> {
    let lines = look.servers.iter().flat_map(|seen| {
        let warnings = seen.facts.as_ref().map(|facts| facts.warnings.clone()).unwrap_or_default();
        warnings.into_iter().map(|line| format!("server {}: {line}", seen.address))
    });
    lines.collect()
}

/// Carries out a plan.
pub fn run(
    options: &MigrateOptions,
    plan: MigrationPlan,
    progress: &Arc<Progress>,
) -> Result<Report, AdminError> {
    // 1) Take the lock: one migrator at a time.
    progress.enter(Phase::Waiting);
    let mut switching =
        Switching::begin(&plan.servers, &plan.present, &options.access, options.busy, progress)?;
    // 2) The fleet may have changed since the plan was made.
    let plan = current_plan(options, plan)?;
    let config = settle(&mut switching, &plan.config)?;
    // 3) From here on nobody acts on an older map.
    let id = random_id().map_err(|error| AdminError::Refused(error.to_string()))?;
    let migrating = match &options.goal {
        Goal::Resume => config,
        Goal::Map(map) => {
            let announced = config.announced(map.clone(), plan.servers.clone());
            switch(&mut switching, &announced, progress, || Ok(()))?
        }
        Goal::Abort => {
            let announced = config.announced(config.previous.clone(), plan.servers.clone());
            let mut lanes = Lanes::new(&plan.servers, &options.access, &id, announced.epoch);
            let sweep = || {
                sweep(&mut lanes, &config).map(|_| ()).map_err(|broken| describe(&config, broken))
            };
            switch(&mut switching, &announced, progress, sweep)?
        }
    };
    // 4) Move the keys.
    progress.enter(Phase::Moving);
    let mover = Mover {
        config: &migrating,
        access: &options.access,
        id: &id,
        rate: options.rate,
        skip_larger_than: options.skip_larger_than,
        progress,
    };
    mover.run();
    // 5) End the migration, if nothing is left.
    finish(&mut switching, &migrating, progress)
}

/// Returns the plan, recomputed if the fleet has changed.
fn current_plan(
    options: &MigrateOptions,
    plan: MigrationPlan,
) -> Result<MigrationPlan, AdminError> {
    let look = Look::at(&options.servers, &options.access)?;
    let now = Config { lock: None, ..look.config };
    if now == (Config { lock: None, ..plan.config.clone() }) {
        return Ok(plan);
    }
    self::plan(options)
}

/// Withdraws the announcement of a migrator that died, and makes every server repeat the configuration.
fn settle(switching: &mut Switching, config: &Config) -> Result<Config, AdminError> {
    let config = match config.next {
        Some(_) => switching.undo(config)?,
        None => Config { lock: None, ..config.clone() },
    };
    switching.repeat(&config)?;
    Ok(config)
}

fn switch(
    switching: &mut Switching,
    announced: &Config,
    progress: &Progress,
    between: impl FnOnce() -> Result<(), AdminError>,
) -> Result<Config, AdminError> {
    progress.enter(Phase::Announcing);
    switching.announce(announced)?;
    progress.enter(Phase::Switching);
    let switched = announced.switched();
    if let Err(why) = between().and_then(|()| switching.commit(&switched)) {
        // If the first server had already switched, it refuses to withdraw the announcement.
        let _ = switching.undo(announced);
        return Err(why);
    }
    Ok(switched)
}

fn finish(
    switching: &mut Switching,
    migrating: &Config,
    progress: &Progress,
) -> Result<Report, AdminError> {
    if switching.lost() {
        let why = "the lock of this migration has expired; continue with `opencluster fleet \
                   migrate --resume`";
        return Err(AdminError::Refused(why.to_owned()));
    }
    let left = progress.left();
    let outcome = if progress.is_stopping() {
        Outcome::Paused
    } else if !left.is_empty() {
        Outcome::Incomplete
    } else {
        progress.enter(Phase::Ending);
        switching.commit(&migrating.ended())?;
        Outcome::Done
    };
    Ok(Report { outcome, keys: progress.keys(), bytes: progress.bytes(), left })
}

fn describe(config: &Config, broken: Broken) -> AdminError {
    match broken {
        Broken::Server { server, why } => refused_at(&config.servers[server.0], &why),
        Broken::Job(why) => AdminError::Refused(why),
    }
}

//! `fleet status`: the map, the progress of a migration, and for each server its keys, its memory and its
//! share compared with its weight.

use fleet::config::weight;
use fleet::{Address, Config, Status};

use super::look::{AdminError, Look};
use crate::migrate::Estimate;
use crate::servers::Access;

#[derive(Clone, Debug)]
pub struct StatusReport {
    pub config: Config,
    pub servers: Vec<ServerStatus>,
    /// Inconsistencies, one line each.
    pub problems: Vec<String>,
    /// Keys still to be moved by a migration in progress, as far as they can be counted.
    pub left: Option<Estimate>,
}

#[derive(Clone, Debug)]
pub struct ServerStatus {
    pub address: Address,
    pub version: String,
    pub weight: u32,
    pub previous_weight: u32,
    /// Number of keys without the fleet's own.
    pub keys: u64,
    pub memory_bytes: u64,
    /// Share of all keys in percent; and the share that the map assigns.
    pub share: f64,
    pub wanted_share: f64,
    /// Reason why it cannot be reached, or should not be part of a fleet.
    pub trouble: Option<String>,
    pub warnings: Vec<String>,
}

/// Number of the fleet's own keys on a server without a lock and an announcement.
const OWN_KEYS: u64 = 5;

pub fn status(servers: &[Address], access: &Access) -> Result<StatusReport, AdminError> {
    let look = Look::at(servers, access)?;
    let config = look.config.clone();
    let own = OWN_KEYS + u64::from(config.next.is_some()) + u64::from(config.lock.is_some());
    let keys_of = |keys: u64| keys.saturating_sub(own);
    let facts = look.servers.iter().filter_map(|seen| seen.facts.as_ref().ok());
    let all: u64 = facts.map(|facts| keys_of(facts.keys)).sum();
    let weights: u64 = config.current.weights().iter().copied().map(u64::from).sum();
    let row = |seen: &super::look::Seen| {
        let weight_now = weight(&config.current, seen.server);
        let facts = seen.facts.as_ref().ok();
        let keys = facts.map_or(0, |facts| keys_of(facts.keys));
        let trouble = match &seen.facts {
            Err(why) => Some(why.clone()),
            Ok(facts) => facts.unsuitable.clone(),
        };
        ServerStatus {
            address: seen.address.clone(),
            version: facts.map(|facts| facts.version.clone()).unwrap_or_default(),
            weight: weight_now,
            previous_weight: weight(&config.previous, seen.server),
            keys,
            memory_bytes: facts.map_or(0, |facts| facts.memory_bytes),
            share: percent(keys, all),
            wanted_share: percent(u64::from(weight_now), weights),
            trouble,
            warnings: facts.map(|facts| facts.warnings.clone()).unwrap_or_default(),
        }
    };
    let left = match config.status {
        Status::InProgress => Some(Estimate::sampled(&look, access)?),
        Status::NotStarted | Status::Completed => None,
    };
    let servers = look.servers.iter().map(row).collect();
    Ok(StatusReport { servers, problems: look.disagreements(), left, config })
}

#[expect(clippy::cast_precision_loss, reason = "shares are shown with one decimal")]
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

//! Checks the servers before the first client is accepted: each must be suitable, and all must agree about
//! the fleet. Nothing is changed on servers that do not fit.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use fleet::switch::{Agreement, ChangeJob};
use fleet::{Address, Config, Kind, Server};
use placement::ServerMap;
use resp::Value;

use crate::admin::{Info, list, refused_info, unsuitable};
use crate::options::Options;
use crate::servers::{Control, Runner};
use crate::watcher::read_config;

const PATIENCE: Duration = Duration::from_secs(2);
/// Every server's weight if no map is given.
const WEIGHT: u32 = 4;

/// Result of the check: the fleet's configuration, and notes for the operator.
pub(crate) struct Found {
    pub config: Config,
    pub notes: Vec<String>,
}

/// Reason why a proxy does not start, in one line for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartError {
    Listen {
        address: SocketAddr,
        why: String,
    },
    Server {
        address: Address,
        why: String,
    },
    /// The options contradict the servers, or two servers contradict each other.
    Disagree(String),
    System(String),
}

impl StartError {
    pub(crate) fn system(error: &io::Error) -> StartError {
        StartError::System(error.to_string())
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen { address, why } => write!(f, "cannot listen on {address}: {why}"),
            StartError::Server { address, why } => write!(f, "server {address}: {why}"),
            StartError::Disagree(why) | StartError::System(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for StartError {}

/// The state of a server.
struct Seen {
    address: Address,
    config: Option<Config>,
    keys: i64,
}

/// Checks all servers, and makes them a fleet if none of them belongs to one.
pub(crate) fn look_at_servers(options: &Options) -> Result<Found, StartError> {
    let first = look_at(&options.servers[0], options)?;
    let mut notes = Vec::new();
    let Some(config) = first.config.clone() else {
        return found_fleet(&first, options);
    };
    check_wishes(&config, options)?;
    for (number, address) in config.servers.iter().enumerate().skip(1) {
        if !config.needs(Server(number)) {
            continue;
        }
        match look_at(address, options) {
            Ok(seen) => agree(&config, &seen)?,
            Err(Unfit::Away(error)) => notes.push(format!("{error}; its keys are unavailable")),
            Err(Unfit::Wrong(error)) => return Err(error),
        }
    }
    Ok(Found { config, notes })
}

/// Checks that the servers' list and map match the options.
fn check_wishes(config: &Config, options: &Options) -> Result<(), StartError> {
    if !config.begins_with(&options.servers) {
        let (said, asked) = (list(&config.servers), list(&options.servers));
        let why = format!("the servers belong to a fleet of {said}, not of {asked}");
        return Err(StartError::Disagree(why));
    }
    match &options.map {
        Some(map) if *map != config.current => {
            let why = format!(
                "the fleet's map is {}, not {map}; `opencluster fleet migrate --map {map}` changes it",
                config.current
            );
            Err(StartError::Disagree(why))
        }
        Some(_) | None => Ok(()),
    }
}

fn agree(first: &Config, seen: &Seen) -> Result<(), StartError> {
    let Some(config) = &seen.config else {
        let why = "its server.config.* keys are missing; run `opencluster fleet check`";
        return Err(StartError::Server { address: seen.address.clone(), why: why.to_owned() });
    };
    match Agreement::between(first, config) {
        Agreement::Same | Agreement::UnderWay => Ok(()),
        Agreement::Differs(difference) => {
            Err(StartError::Disagree(difference.text(&first.servers[0], &seen.address)))
        }
    }
}

/// Creates a fleet: writes its first configuration, to the first server first.
fn found_fleet(first: &Seen, options: &Options) -> Result<Found, StartError> {
    let mut keys = first.keys;
    let mut servers = vec![first.address.clone()];
    for address in &options.servers[1..] {
        let seen = look_at(address, options)?;
        if seen.config.is_some() {
            let why = format!("{address} belongs to a fleet, and {} does not", first.address);
            return Err(StartError::Disagree(why));
        }
        keys += seen.keys;
        servers.push(seen.address);
    }
    let config = Config::first(servers, first_map(options)?);
    write_first(&first.address, &config, options)?;
    let servers: Vec<Server> = (1..config.servers.len()).map(Server).collect();
    let access = options.access.clone();
    let mut runner = Runner::new(config.servers.clone(), access, PATIENCE);
    let written = runner.run(&mut ChangeJob::repeat(&config, &servers));
    written.map_err(StartError::Disagree)?;
    let mut notes =
        vec![format!("a new fleet of {} servers, map {}", config.servers.len(), config.current)];
    if keys > 0 && config.servers.len() > 1 {
        notes.push(format!(
            "the servers held {keys} keys already; `opencluster fleet check --fix` brings each to its server"
        ));
    }
    Ok(Found { config, notes })
}

fn first_map(options: &Options) -> Result<ServerMap, StartError> {
    let servers = options.servers.len();
    let map = match &options.map {
        Some(map) => map.clone(),
        None => ServerMap::new(vec![WEIGHT; servers])
            .map_err(|error| StartError::Disagree(error.to_string()))?,
    };
    if map.weights().len() != servers {
        let why =
            format!("the map {map} has {} weights for {servers} servers", map.weights().len());
        return Err(StartError::Disagree(why));
    }
    Ok(map)
}

/// Writes the configuration to the first server, unless somebody else was quicker.
fn write_first(address: &Address, config: &Config, options: &Options) -> Result<(), StartError> {
    let unfit = |why: String| StartError::Server { address: address.clone(), why };
    let connected = Control::connect(address, &options.access, PATIENCE);
    let mut control = connected.map_err(|error| unfit(error.to_string()))?;
    let mut command = vec!["MSETNX".to_owned()];
    command.extend(config.pairs().into_iter().flat_map(|(key, value)| [key.to_owned(), value]));
    match control.call(&command) {
        Ok(Value::Integer(1)) => Ok(()),
        Ok(Value::Integer(_)) => {
            Err(unfit("another process has just made it part of a fleet".to_owned()))
        }
        Ok(other) => Err(unfit(format!("it answers MSETNX with {other}"))),
        Err(error) => Err(unfit(error.to_string())),
    }
}

/// Reason why a server cannot be part of the fleet now.
enum Unfit {
    /// It cannot be reached, but may come back.
    Away(StartError),
    Wrong(StartError),
}

impl From<Unfit> for StartError {
    fn from(unfit: Unfit) -> StartError {
        match unfit {
            Unfit::Away(error) | Unfit::Wrong(error) => error,
        }
    }
}

fn look_at(address: &Address, options: &Options) -> Result<Seen, Unfit> {
    let error = |why: String| StartError::Server { address: address.clone(), why };
    let failed = |problem: io::Error| {
        let for_good = [io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidData];
        let unfit = if for_good.contains(&problem.kind()) { Unfit::Wrong } else { Unfit::Away };
        unfit(error(problem.to_string()))
    };
    let wrong = |why: String| Unfit::Wrong(error(why));
    let mut control = Control::connect(address, &options.access, PATIENCE).map_err(failed)?;
    let info = control.call(&["INFO"]).map_err(failed)?;
    if let Value::Error(text) = &info {
        return Err(wrong(refused_info(text)));
    }
    let text = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let info = Info(&text);
    if let Some(why) = unsuitable(&info) {
        return Err(wrong(why));
    }
    match (address.kind, info.kind()) {
        (Kind::Plain, Kind::Cluster) => return look_at(&address.as_cluster(), options),
        (Kind::Cluster, Kind::Plain) => {
            return Err(wrong("it is a single server, not a cluster".to_owned()));
        }
        (Kind::Plain, Kind::Plain) | (Kind::Cluster, Kind::Cluster) => {}
    }
    let config = read_config(&mut control).map_err(failed)?.map_err(wrong)?;
    let size = control.call(&["DBSIZE"]).map_err(failed)?;
    let Value::Integer(keys) = size else {
        return Err(wrong(format!("it answers DBSIZE with {size}")));
    };
    let address = match address.kind {
        Kind::Plain => address.clone(),
        Kind::Cluster => address.with_nodes(options.access.learnt.nodes(address)),
    };
    Ok(Seen { address, config, keys })
}

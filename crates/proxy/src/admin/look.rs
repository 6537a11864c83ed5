//! Inspects every server of a fleet: whether it is reachable and suitable, and its configuration of the
//! fleet. Nothing is changed. Used by `status`, `check` and the migrator.

use std::fmt;
use std::io;
use std::time::Duration;

use fleet::switch::Agreement;
use fleet::{Address, Config, Kind, Server};
use resp::Value;

use crate::servers::{Access, Control};

/// Timeout for a server's answer while nothing depends on it yet.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Minimum version. Earlier ones do not abort a WATCH when the key expires.
const VERSION_MIN: [u32; 3] = [6, 0, 9];

/// Reason why an operator's command is not carried out, in one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminError {
    /// The request makes no sense. Nothing was changed.
    BadInput(String),
    /// The request makes sense, but a server or the state of the fleet forbids it.
    Refused(String),
    /// Somebody else is working on the fleet; it may be possible later.
    Busy(String),
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdminError::BadInput(why) | AdminError::Refused(why) | AdminError::Busy(why) => {
                f.write_str(why)
            }
        }
    }
}

impl std::error::Error for AdminError {}

/// The state of a fleet.
#[derive(Clone, Debug)]
pub struct Look {
    /// The first server's configuration.
    pub config: Config,
    pub servers: Vec<Seen>,
}

#[derive(Clone, Debug)]
pub struct Seen {
    pub server: Server,
    pub address: Address,
    /// Facts about the server, or the reason why it cannot be reached.
    pub facts: Result<Facts, String>,
}

#[derive(Clone, Debug)]
pub struct Facts {
    /// Its configuration of the fleet; the error says why that cannot be used.
    pub config: Result<Option<Config>, String>,
    /// Number of keys as DBSIZE counts them: with the fleet's own.
    pub keys: u64,
    pub memory_bytes: u64,
    pub version: String,
    /// Kind of server actually found behind its address.
    pub kind: Kind,
    /// Reason why it is unsuitable as a server of a fleet.
    pub unsuitable: Option<String>,
    pub warnings: Vec<String>,
}

impl Look {
    /// Inspects the fleet to which the first of these servers belongs.
    pub fn at(servers: &[Address], access: &Access) -> Result<Look, AdminError> {
        let first = servers.first().ok_or_else(|| bad("no server was named"))?;
        let (first, facts) = look_at_new(first, access)?;
        let first = &first;
        let config = facts.config.clone().map_err(|why| refused_at(first, &why))?;
        let Some(config) = config else {
            return Err(refused_at(
                first,
                "it belongs to no fleet yet; `opencluster fleet proxy` makes one",
            ));
        };
        if !config.begins_with(servers) {
            let (said, asked) = (list(&config.servers), list(servers));
            let why = format!("the servers belong to a fleet of {said}, not of {asked}");
            return Err(AdminError::Refused(why));
        }
        let mut facts = Some(facts);
        let seen = |(number, address): (usize, &Address)| Seen {
            server: Server(number),
            address: address.clone(),
            facts: facts.take().map_or_else(|| look_at(address, access), Ok),
        };
        let servers = config.servers.iter().enumerate().map(seen).collect();
        Ok(Look { config, servers })
    }

    /// Describes how the reachable servers disagree with the first.
    pub fn disagreements(&self) -> Vec<String> {
        let first = &self.config.servers[0];
        let text = |seen: &Seen| match &seen.facts.as_ref().ok()?.config {
            Err(why) => Some(format!("{}: {why}", seen.address)),
            Ok(None) => Some(format!("{}: its server.config.* keys are missing", seen.address)),
            Ok(Some(config)) => match Agreement::between(&self.config, config) {
                Agreement::Same | Agreement::UnderWay => None,
                Agreement::Differs(difference) => Some(difference.text(first, &seen.address)),
            },
        };
        self.servers.iter().filter_map(text).collect()
    }

    /// Checks that every server with a share of the keys is reachable and suitable, and that all agree.
    pub fn must_be_sound(&self) -> Result<(), AdminError> {
        for seen in &self.servers {
            match &seen.facts {
                Err(why) if self.config.needs(seen.server) => {
                    return Err(refused_at(&seen.address, why));
                }
                Ok(Facts { unsuitable: Some(why), .. }) => {
                    return Err(refused_at(&seen.address, why));
                }
                Ok(_) | Err(_) => {}
            }
        }
        match self.disagreements().into_iter().next() {
            Some(line) => Err(AdminError::Refused(line)),
            None => Ok(()),
        }
    }

    /// Returns the servers that answered.
    pub fn present(&self) -> Vec<Server> {
        let present = self.servers.iter().filter(|seen| seen.facts.is_ok());
        present.map(|seen| seen.server).collect()
    }
}

/// Inspects a server that an operator has named; a node of a cluster stands for the whole cluster.
pub(crate) fn look_at_new(
    address: &Address,
    access: &Access,
) -> Result<(Address, Facts), AdminError> {
    let facts = look_at(address, access).map_err(|why| refused_at(address, &why))?;
    if let Some(why) = &facts.unsuitable {
        return Err(refused_at(address, why));
    }
    match (address.kind, facts.kind) {
        (Kind::Plain, Kind::Cluster) => look_at_new(&address.as_cluster(), access),
        (Kind::Cluster, Kind::Plain) => {
            Err(refused_at(address, "it is a single server, not a cluster"))
        }
        (Kind::Plain, Kind::Plain) => Ok((address.clone(), facts)),
        (Kind::Cluster, Kind::Cluster) => {
            Ok((address.with_nodes(access.learnt.nodes(address)), facts))
        }
    }
}

fn look_at(address: &Address, access: &Access) -> Result<Facts, String> {
    let failed = |error: io::Error| error.to_string();
    let mut control = Control::connect(address, access, PATIENCE).map_err(failed)?;
    let answer = control.call(&["INFO"]).map_err(failed)?;
    if let Value::Error(text) = &answer {
        return Err(refused_info(text));
    }
    let info = String::from_utf8_lossy(answer.text().unwrap_or_default()).into_owned();
    let info = Info(&info);
    let unsuitable = unsuitable(&info);
    // An unsuitable server refuses the commands below.
    let kind = info.kind();
    let config = match unsuitable {
        Some(_) => Ok(None),
        // A cluster must be contacted as one.
        None if kind != address.kind => Ok(None),
        None => crate::watcher::read_config(&mut control).map_err(failed)?,
    };
    let size = control.call(&["DBSIZE"]).map_err(failed)?;
    let keys = if let Value::Integer(keys) = size { keys.unsigned_abs() } else { 0 };
    Ok(Facts {
        config,
        keys,
        memory_bytes: info.field("used_memory").and_then(|text| text.parse().ok()).unwrap_or(0),
        version: info.version(),
        kind,
        unsuitable,
        warnings: warnings(&info),
    })
}

/// The text of INFO.
pub(crate) struct Info<'a>(pub(crate) &'a str);

impl Info<'_> {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.strip_prefix(':')).map(str::trim)
    }

    /// Returns the kind of server. A node of an OpenCluster stands for the whole cluster.
    pub(crate) fn kind(&self) -> Kind {
        match self.field("opencluster_version") {
            Some(_) => Kind::Cluster,
            None => Kind::Plain,
        }
    }

    fn version(&self) -> String {
        for (field, product) in
            [("opencluster_version", "OpenCluster"), ("valkey_version", "Valkey")]
        {
            if let Some(version) = self.field(field) {
                return format!("{product} {version}");
            }
        }
        format!("Redis {}", self.field("redis_version").unwrap_or("of an unknown version"))
    }
}

/// Returns the reason in INFO why a server is unsuitable.
pub(crate) fn unsuitable(info: &Info<'_>) -> Option<String> {
    let Some(version) = info.field("redis_version") else {
        return Some("it is not a Redis server".to_owned());
    };
    if info.field("role") == Some("slave") {
        let of = info.field("master_host").unwrap_or("another server");
        return Some(format!("it is a replica of {of}; a fleet is made of primaries"));
    }
    if info.field("cluster_enabled") == Some("1") && info.kind() == Kind::Plain {
        return Some("it runs in cluster mode; a fleet is made of plain servers".to_owned());
    }
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let numbers = [0; 3].map(|zero: u32| parts.next().unwrap_or(zero));
    (numbers < VERSION_MIN)
        .then(|| format!("it is Redis {version}; moving keys safely needs 6.0.9 or newer"))
}

/// Explains a server's refusal of INFO.
pub(crate) fn refused_info(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    if text.starts_with("NOAUTH") {
        return "it requires a password, and none was given".to_owned();
    }
    format!("it answers INFO with: {text}")
}

fn warnings(info: &Info<'_>) -> Vec<String> {
    let policy = info.field("maxmemory_policy").unwrap_or("noeviction");
    let limited = info.field("maxmemory").is_some_and(|text| text != "0");
    if limited && policy.starts_with("allkeys") {
        return vec![format!("maxmemory-policy {policy} may evict the fleet's own keys")];
    }
    Vec::new()
}

fn bad(why: &str) -> AdminError {
    AdminError::BadInput(why.to_owned())
}

pub(crate) fn refused_at(address: &Address, why: &str) -> AdminError {
    AdminError::Refused(format!("server {address}: {why}"))
}

pub(crate) fn list(servers: &[Address]) -> String {
    servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

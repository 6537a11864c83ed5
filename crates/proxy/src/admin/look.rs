//! A look at every server of a fleet: is it there, is it what it should be, what does it say of the
//! fleet. Nothing is changed. Called by `status`, `check` and the migrator.

use std::fmt;
use std::io;
use std::time::Duration;

use fleet::switch::Agreement;
use fleet::{Address, Config, Kind, Server};
use resp::Value;

use crate::servers::{Access, Control};

/// How long a server may take to answer while nothing hangs on it yet.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Versions before this one do not abort a WATCH when the key expires.
const VERSION_MIN: [u32; 3] = [6, 0, 9];

/// Why an operator's command is not carried out. One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminError {
    /// What was asked for makes no sense. Nothing was changed.
    BadInput(String),
    /// It made sense, but a server or the state of the fleet says no.
    Refused(String),
    /// Somebody else is at work; later it may be possible.
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

/// A fleet as it was found.
#[derive(Clone, Debug)]
pub struct Look {
    /// The first server's word.
    pub config: Config,
    pub servers: Vec<Seen>,
}

#[derive(Clone, Debug)]
pub struct Seen {
    pub server: Server,
    pub address: Address,
    /// Or why it cannot be talked to.
    pub facts: Result<Facts, String>,
}

#[derive(Clone, Debug)]
pub struct Facts {
    /// What it says of the fleet; an error says why that cannot be used.
    pub config: Result<Option<Config>, String>,
    /// As DBSIZE counts: with the fleet's own keys.
    pub keys: u64,
    pub memory_bytes: u64,
    pub version: String,
    /// What stands behind its address, whatever was thought before.
    pub kind: Kind,
    /// What speaks against it as a server of a fleet.
    pub unsuitable: Option<String>,
    pub warnings: Vec<String>,
}

impl Look {
    /// Looks at the fleet to which the first of these servers belongs.
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

    /// How each server that can be talked to agrees with the first.
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

    /// Every server with a share of the keys is there and fit, and all agree.
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

    /// The servers that answered.
    pub fn present(&self) -> Vec<Server> {
        let present = self.servers.iter().filter(|seen| seen.facts.is_ok());
        present.map(|seen| seen.server).collect()
    }
}

/// A server that an operator has named; a node of a cluster stands for the whole of it.
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
            Err(refused_at(address, "it is one server, and no cluster"))
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
    // A server that is no plain one refuses what follows.
    let kind = info.kind();
    let config = match unsuitable {
        Some(_) => Ok(None),
        // A cluster has to be talked to as one.
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

    /// A node of an OpenCluster stands for the whole of it.
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

/// What INFO tells that speaks against a server.
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
        .then(|| format!("it is Redis {version}; keys move safely from 6.0.9 on"))
}

/// What it means that a server refuses INFO.
pub(crate) fn refused_info(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    if text.starts_with("NOAUTH") {
        return "it wants a password, and none was given".to_owned();
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

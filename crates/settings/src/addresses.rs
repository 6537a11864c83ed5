//! Ports and addresses: where a node listens, where others reach it, whom it asks to join, and where timers may call.

use std::fmt;

use super::kind::{SettingKind, SettingValue};

/// A further port of the node: for HTTP, for other nodes, or for reads from its backup copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidePort {
    /// The client port plus a fixed offset.
    Offset,
    Off,
    /// This port; 0 lets the system choose.
    At(u16),
}

impl SidePort {
    pub const HTTP_OFFSET: u16 = 1_000;
    pub const PEER_OFFSET: u16 = 10_000;
    pub const REPLICA_OFFSET: u16 = 2_000;

    pub(super) fn beside(self, port: u16, offset: u16) -> Option<u16> {
        match self {
            SidePort::Offset if port == 0 => Some(0),
            SidePort::Offset => port.checked_add(offset),
            SidePort::Off => None,
            SidePort::At(port) => Some(port),
        }
    }
}

impl SettingValue for SidePort {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        *self = match text {
            "auto" => SidePort::Offset,
            "off" => SidePort::Off,
            _ => {
                let port = text.parse();
                SidePort::At(port.map_err(|_| format!("argument must be {}", kind.allowed()))?)
            }
        };
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        match self {
            SidePort::Offset => "auto".to_owned(),
            SidePort::Off => "off".to_owned(),
            SidePort::At(port) => port.to_string(),
        }
    }
}

/// A port that is opened only if it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraPort {
    Off,
    /// This port; 0 lets the system choose.
    At(u16),
}

impl SettingValue for ExtraPort {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        let wrong = |_| format!("argument must be {}", kind.allowed());
        *self = match text {
            "off" => ExtraPort::Off,
            _ => ExtraPort::At(text.parse().map_err(wrong)?),
        };
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        match self {
            ExtraPort::Off => "off".to_owned(),
            ExtraPort::At(port) => port.to_string(),
        }
    }
}

/// The address under which clients and other nodes reach this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertise {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// `None`: the port on which the node listens.
    pub port: Option<u16>,
}

impl Advertise {
    fn parse(text: &str) -> Option<Advertise> {
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':')?)),
            None if text.matches(':').count() > 1 => (text, None),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let port: Option<u16> = port.map(str::parse).transpose().ok()?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        let host_fits = !host.is_empty() && host.bytes().all(fits);
        (host_fits && port != Some(0)).then(|| Advertise { host: host.to_owned(), port })
    }
}

impl fmt::Display for Advertise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.port, self.host.contains(':')) {
            (Some(port), true) => write!(f, "[{}]:{port}", self.host),
            (Some(port), false) => write!(f, "{}:{port}", self.host),
            (None, _) => f.write_str(&self.host),
        }
    }
}

impl SettingValue for Option<Advertise> {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        if text.is_empty() {
            *self = None;
            return Ok(());
        }
        let parsed = Advertise::parse(text);
        *self = Some(parsed.ok_or_else(|| format!("argument must be {}", kind.allowed()))?);
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

/// The client addresses at which a node asks to join, in the order in which it tries them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinAddresses(pub Vec<JoinAddress>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinAddress {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    pub port: u16,
}

impl JoinAddress {
    fn parse(text: &str) -> Option<JoinAddress> {
        let Advertise { host, port } = Advertise::parse(text.trim())?;
        Some(JoinAddress { host, port: port? })
    }
}

impl fmt::Display for JoinAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Advertise { host: self.host.clone(), port: Some(self.port) }.fmt(f)
    }
}

impl SettingValue for JoinAddresses {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        let words = text.split(',').filter(|_| !text.is_empty());
        let all: Option<Vec<JoinAddress>> = words.map(JoinAddress::parse).collect();
        *self = JoinAddresses(all.ok_or_else(|| format!("argument must be {}", kind.allowed()))?);
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

/// Host names under which the HTTP port answers, besides addresses, `localhost` and the advertised name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNames(pub Vec<String>);

impl SettingValue for HostNames {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let names: Vec<String> = text
            .split(',')
            .filter(|_| !text.is_empty())
            .map(|name| name.trim().to_owned())
            .collect();
        if names.iter().any(|name| name.is_empty() || !name.bytes().all(fits)) {
            return Err(format!("argument must be {}", kind.allowed()));
        }
        *self = HostNames(names);
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.0.join(",")
    }
}

/// The allowed callback targets of timers, with the configured text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedCallbacks {
    text: String,
    /// `None`: depends on the listen addresses, see [`AllowedCallbacks::rules`].
    rules: Option<timers::AllowRules>,
}

impl AllowedCallbacks {
    const AUTO: &'static str = "auto";

    /// Returns the rules of a node. Without a configured value, a node that only its own machine reaches may call
    /// local addresses, and a node that others reach may call none: they could use it to reach this network.
    pub(super) fn rules(&self, is_local: bool) -> timers::AllowRules {
        match &self.rules {
            Some(rules) => rules.clone(),
            None if is_local => timers::AllowRules::local(),
            None => timers::AllowRules::none(),
        }
    }
}

impl Default for AllowedCallbacks {
    fn default() -> AllowedCallbacks {
        AllowedCallbacks { text: AllowedCallbacks::AUTO.to_owned(), rules: None }
    }
}

impl SettingValue for AllowedCallbacks {
    fn assign(&mut self, text: &str, _: &SettingKind) -> Result<(), String> {
        let parsed = timers::AllowRules::parse(text)
            .map_err(|wrong| format!("'{}' is neither a network nor an address", wrong.0));
        let rules = if text == AllowedCallbacks::AUTO { None } else { Some(parsed?) };
        *self = AllowedCallbacks { text: text.to_owned(), rules };
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.text.clone()
    }
}

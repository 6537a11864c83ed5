//! Entry into a cluster: the node founds one, joins one, or returns to the one its data directory belongs to.
//! Called once for each `Node`, by `Node::start_with`; everything is decided before a thread of the control plane runs.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use cluster::consensus::{Begin, Payload, Saved};
use cluster::control::{JoinRequest, ProtocolRange, Start, Welcome};
use cluster::map::{Boot, ClusterId, ClusterSettings, Endpoints, Map, Member, NodeId, Zone};
use parking_lot::Mutex;
use placement::Mask;
use settings::{JoinAddress, Secret, Settings};

use crate::cluster_settings::{ack_of, founding_documents};
use crate::disk::{DataDirectory, SharedDirectory};
use crate::life::Life;
use crate::peer::{
    JoinError, Joined, Joiner, Patience, Roster, announce_loading, draw_number, is_unknown_at, join,
};

/// Interval at which a process that is still loading announces it.
const SAY_LOADING: Duration = Duration::from_secs(2);

/// The node's ports, as assigned by the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub client: u16,
    /// 0 if the node stays alone.
    pub peer: u16,
    /// 0 if HTTP is off.
    pub http: u16,
    /// 0 if the node has no port for reads from its backup copies.
    pub replica: u16,
}

/// A process's identity before it is in any cluster.
pub(crate) struct NodeIdentity {
    pub me: Member,
    pub directory: Option<SharedDirectory>,
    saved: Saved,
    /// The cluster that an earlier life of this process belonged to.
    cluster: Option<ClusterId>,
    /// True if the process asks for admission before it begins. One that may have a vote begins at once.
    asks_first: bool,
}

/// A place in a cluster, ready to be taken.
pub(crate) struct Membership {
    pub start: Start,
    pub roster: Roster,
    pub directory: Option<SharedDirectory>,
    /// Addresses to check again, if no node has answered and this one starts from its log.
    pub unheard: Unheard,
}

/// The addresses of a cluster from which no node has answered yet.
#[derive(Default)]
pub(crate) struct Unheard {
    me: Option<NodeId>,
    addresses: Vec<JoinAddress>,
    password: Secret,
}

impl Unheard {
    /// Returns whether the others run by now without this node as a member: it was removed without notice.
    pub(crate) fn is_left_behind(&self) -> bool {
        let Some(me) = self.me else { return false };
        self.addresses.iter().any(|at| is_unknown_at(at, &self.password, me))
    }
}

/// Identifies this process. An error is one line; nothing has changed then.
pub(crate) fn identify(settings: &Settings, ports: Ports) -> Result<NodeIdentity, String> {
    let fresh = NodeId(draw_number());
    let open = |path| DataDirectory::open(path, fresh);
    let opened = settings.data_dir.as_deref().map(open).transpose();
    let (directory, saved) = opened.map_err(|error| error.to_string())?.unzip();
    let id = directory.as_ref().map_or(fresh, DataDirectory::node);
    let directory = directory.map(|directory| Arc::new(Mutex::new(directory)));
    let (me, saved) = (member(id, settings, ports), saved.unwrap_or_default());
    Ok(NodeIdentity { me, directory, saved, cluster: None, asks_first: true })
}

/// Returns the identity of this process in its next life: the same node under a new boot, with its log and
/// vote.
pub(crate) fn identify_again(
    life: &Life,
    settings: &Settings,
    ports: Ports,
) -> Result<NodeIdentity, String> {
    let reload = |directory: &SharedDirectory| directory.lock().reload();
    let reloaded = life.directory.as_ref().map(reload).transpose();
    let saved = reloaded.map_err(|error| error.to_string())?.unwrap_or_else(|| life.saved.clone());
    // An id without its log must not vote again, so it is not reused.
    let is_known = !saved.is_blank() || life.directory.is_some();
    let id = if is_known { life.node } else { NodeId(draw_number()) };
    let mut me = member(id, settings, ports);
    if me.at.host.is_empty() {
        me.at.host.clone_from(&life.host);
    }
    let (directory, cluster) = (life.directory.clone(), Some(life.cluster));
    Ok(NodeIdentity { me, directory, saved, cluster, asks_first: life.asks_first })
}

fn member(id: NodeId, settings: &Settings, ports: Ports) -> Member {
    Member {
        id,
        boot: Boot(draw_number()),
        name: settings.name.clone(),
        weight: settings.weight,
        zone: Zone(settings.zone.clone().unwrap_or_default()),
        at: endpoints(settings, ports),
    }
}

/// Returns the node's addresses. The host is empty if the node listens on all addresses and none is configured;
/// a joining node then learns it from the connection it joins through.
fn endpoints(settings: &Settings, ports: Ports) -> Endpoints {
    let advertised = settings.advertise.as_ref();
    let bound = Some(settings.bind).filter(|ip| !ip.is_unspecified());
    let host = advertised.map(|to| to.host.clone()).or(bound.map(|ip| ip.to_string()));
    Endpoints {
        host: host.unwrap_or_default(),
        client: advertised.and_then(|to| to.port).unwrap_or(ports.client),
        peer: ports.peer,
        http: ports.http,
        replica: ports.replica,
    }
}

/// Founds, joins or returns to a cluster. An error is one line; no cluster was disturbed.
pub(crate) fn enter(identity: NodeIdentity, settings: &Settings) -> Result<Membership, String> {
    let wants_others = !settings.join.0.is_empty();
    if wants_others && identity.me.at.peer == 0 {
        return Err("a node without a peer port (peer-port = off) cannot join".to_owned());
    }
    if !identity.saved.is_blank() {
        return come_back(identity, settings);
    }
    if wants_others {
        return join_others(identity, settings);
    }
    if identity.cluster().is_some() {
        let line = "the data directory belongs to a cluster that goes on without this node; name one of its \
                    nodes with --join, or use an empty data directory";
        return Err(line.to_owned());
    }
    found(identity, settings)
}

fn found(mut identity: NodeIdentity, settings: &Settings) -> Result<Membership, String> {
    if identity.me.at.host.is_empty() {
        identity.me.at.host = own_address().unwrap_or(settings.bind).to_string();
    }
    let cluster = ClusterId(draw_number());
    let map = Map::found(identity.me.clone(), mask(settings), cluster_settings(settings))
        .with_documents(founding_documents(settings));
    let roster = Roster::new(identity.me.peer(), cluster, map.generation(), map.members());
    identity.into_membership(cluster, roster, Begin::Found(map), None)
}

fn join_others(mut identity: NodeIdentity, settings: &Settings) -> Result<Membership, String> {
    let asked = identity.ask(&settings.join.0, Patience::Long, settings);
    let joined = asked.map_err(|error| error.to_string())?;
    let welcome = identity.welcomed(joined);
    let (cluster, roster) = (welcome.cluster, roster_of(&identity.me, &welcome));
    identity.into_membership(cluster, roster, Begin::Join, Some(welcome))
}

/// Returns a node with a log to its cluster. It asks at the configured addresses and at those in its log. If no
/// node answers, or none can decide, it starts from its log: perhaps all nodes are just starting, or the others
/// lack a quorum and need its vote.
fn come_back(mut identity: NodeIdentity, settings: &Settings) -> Result<Membership, String> {
    let map = last_map(&identity.saved);
    let no_id = "the data directory has a log but no cluster id; use an empty data directory";
    let cluster = identity.cluster().ok_or(no_id)?;
    let addresses = identity.addresses(settings);
    if identity.me.at.host.is_empty() {
        let known = map.member(identity.me.id).map(|member| member.at.host.clone());
        identity.me.at.host = known.unwrap_or_default();
    }
    let saved = std::mem::take(&mut identity.saved);
    if identity.asks_first && !addresses.is_empty() {
        match identity.ask(&addresses, Patience::Short, settings) {
            Ok(joined) => {
                let welcome = identity.welcomed(joined);
                let roster = roster_of(&identity.me, &welcome);
                return identity.into_membership(
                    cluster,
                    roster,
                    Begin::Resume(saved),
                    Some(welcome),
                );
            }
            Err(error) if !error.may_pass() => return Err(error.to_string()),
            Err(error) => {
                let line = format!("{error}; starting from the local log instead");
                crate::log::warn("join", &line);
            }
        }
    }
    let roster = Roster::new(identity.me.peer(), cluster, map.generation(), map.members());
    let me = Some(identity.me.id);
    let unheard = Unheard { me, addresses, password: settings.requirepass.clone() };
    let place = identity.into_membership(cluster, roster, Begin::Resume(saved), None)?;
    Ok(Membership { unheard, ..place })
}

/// Returns the map at the end of the log, committed or not: good enough to find the other nodes.
fn last_map(saved: &Saved) -> Map {
    let mut map = saved.snapshot().expect("what is not blank has a map").map.clone();
    for entry in saved.entries() {
        match &entry.payload {
            Payload::Changes(changes) => {
                for change in &changes.changes {
                    map.apply(entry.index, change);
                }
            }
            Payload::Nothing | Payload::Reconfigure(_) => {}
        }
    }
    map
}

fn roster_of(me: &Member, welcome: &Welcome) -> Roster {
    Roster::new(me.peer(), welcome.cluster, welcome.generation, &welcome.members)
}

impl NodeIdentity {
    /// Returns whether, as far as this node knows, no other node has the data it has kept.
    pub(crate) fn is_alone(&self) -> bool {
        !self.saved.is_blank() && last_map(&self.saved).members().len() == 1
    }

    /// Returns the cluster that the data directory, or an earlier life of this process, belongs to.
    fn cluster(&self) -> Option<ClusterId> {
        let directory = self.directory.as_ref();
        directory.and_then(|directory| directory.lock().cluster()).or(self.cluster)
    }

    /// Runs `load`, which loads the data this node held. During a long load the node announces itself to the
    /// others repeatedly, so that they do not start without it.
    pub(crate) fn while_loading<R>(&self, settings: &Settings, load: impl FnOnce() -> R) -> R {
        let addresses = if self.saved.is_blank() { Vec::new() } else { self.addresses(settings) };
        if addresses.is_empty() {
            return load();
        }
        let request = JoinRequest { is_loading: true, ..self.request() };
        let (password, secret) = (settings.requirepass.clone(), settings.secret.clone());
        let (done, until_done) = mpsc::channel::<()>();
        let say = move || {
            let patience = Patience::Short;
            let (addresses, password, secret) = (&addresses[..], &password, &secret);
            let candidate = Joiner { addresses, patience, password, secret, request };
            while until_done.recv_timeout(SAY_LOADING) == Err(RecvTimeoutError::Timeout) {
                announce_loading(&candidate);
            }
        };
        // If the thread cannot start, the node still loads, but the others may not wait for it.
        let _ = thread::Builder::new().name("loading".to_owned()).spawn(say);
        let loaded = load();
        drop(done);
        loaded
    }

    /// Returns the addresses of the others: the configured ones and those in the log.
    fn addresses(&self, settings: &Settings) -> Vec<JoinAddress> {
        let map = last_map(&self.saved);
        let others = map.members().iter().filter(|member| member.id != self.me.id);
        let known = others
            .map(|member| JoinAddress { host: member.at.host.clone(), port: member.at.client });
        settings.join.0.iter().cloned().chain(known).collect()
    }

    fn request(&self) -> JoinRequest {
        JoinRequest {
            versions: ProtocolRange::OURS,
            member: self.me.clone(),
            cluster: self.cluster(),
            skew: Duration::ZERO,
            is_loading: false,
        }
    }

    fn ask(
        &self,
        addresses: &[JoinAddress],
        patience: Patience,
        settings: &Settings,
    ) -> Result<Joined, JoinError> {
        let request = self.request();
        let (password, secret) = (&settings.requirepass, &settings.secret);
        join(&Joiner { addresses, patience, password, secret, request })
    }

    fn welcomed(&mut self, joined: Joined) -> Welcome {
        if self.me.at.host.is_empty() {
            self.me.at.host = joined.from.to_string();
        }
        joined.welcome
    }

    fn into_membership(
        self,
        cluster: ClusterId,
        roster: Roster,
        begin: Begin,
        welcome: Option<Welcome>,
    ) -> Result<Membership, String> {
        let directory = self.directory;
        if let Some(directory) = &directory {
            let kept = directory.lock().set_cluster(cluster);
            kept.map_err(|error| {
                format!("cannot write the cluster id to the data directory: {error}")
            })?;
        }
        let start = Start { me: self.me, cluster, seed: cluster.0, begin, welcome };
        Ok(Membership { start, roster, directory, unheard: Unheard::default() })
    }
}

/// Returns the address from which this machine would reach others. Sends nothing.
fn own_address() -> Option<IpAddr> {
    /// An address of no machine, reserved for documentation.
    const ELSEWHERE: SocketAddr =
        SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 9);
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

fn mask(settings: &Settings) -> Mask {
    use settings::Buckets;
    match settings.buckets {
        Some(Buckets::B16) => Mask::M000F,
        None | Some(Buckets::B256) => Mask::M00FF,
        Some(Buckets::B4096) => Mask::M0FFF,
        Some(Buckets::B16384) => Mask::M3FFF,
    }
}

/// Returns the cluster settings that the first node decides for all.
fn cluster_settings(settings: &Settings) -> ClusterSettings {
    let default = ClusterSettings::default();
    ClusterSettings {
        backups: settings.backups.unwrap_or(default.backups),
        ack: settings.ack.map_or(default.ack, ack_of),
        ..default
    }
}

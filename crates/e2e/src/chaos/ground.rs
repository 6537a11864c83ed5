//! The ground that nodes run on: each in a network namespace of its own, connected by a bridge, if
//! we are root; else on loopback addresses. Starts nodes, and cuts their connections.
//!
//! The namespaces have no names and need no cleanup: each ends with its node, and all of them with
//! the program, which has moved into one of its own first (`bin/chaos.rs`).
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::relay::{Relay, Way, Weather};
use crate::{Client, free_ports, node_binary};

/// Time limit until a started node answers: it joins first.
const START_WITHIN: Duration = Duration::from_secs(60);
/// Time limit for a leaving node to hand over everything.
const LEAVE_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// In a namespace, all ports are free.
const PORT: u16 = 7000;
const PEER_PORT: u16 = 17_000;
const BRIDGE: &str = "br0";
const BRIDGE_CARD: &str = "02:ff:ff:ff:ff:01";
/// Address of a machine that does not exist: frames sent to it are lost silently.
const NOBODY: &str = "02:ff:ff:ff:ff:ff";
/// Limits of TCP's retransmission, per namespace. By default each failed attempt doubles the pause before the next, up to
/// two minutes: after several cuts a reply would be late although the node sent it in time. With pauses of at most a second
/// the end of a closed connection would be given up after eight attempts, and a client behind a cut of seven seconds would
/// never learn of it. Linux before 6.15 has no such limit, and `calm.rs` allows for the pause.
const RETRANSMISSION_LIMITS: [(&str, &str); 2] = [
    ("/proc/sys/net/ipv4/tcp_rto_max_ms", "1000"),
    ("/proc/sys/net/ipv4/tcp_orphan_retries", "100"),
];
/// Shell script that starts a node once its namespace has an address.
const WAIT_FOR_ADDRESS: &str = "until ip -o addr show dev eth0 2>/dev/null | grep -q 'inet '; do sleep 0.01; done; \
                                exec \"$@\"";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ground {
    Namespaces,
    Loopback,
}

/// The options for starting a node.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The node's number on the ground, never used twice.
    pub number: u16,
    pub is_relayed: bool,
    pub keeps_data: bool,
    pub flags: Vec<String>,
}

#[derive(Debug)]
pub struct Node {
    pub plan: Plan,
    /// The address at which clients reach the node.
    pub address: SocketAddr,
    ground: Ground,
    dir: PathBuf,
    ports: [u16; 2],
    child: Child,
    /// Start time of this process.
    pub started: Instant,
    /// The bridge's end of the node's cable.
    cable: String,
    relay: Option<Relay>,
}

impl Ground {
    /// Sets up the bridge. Call it only in a network namespace of our own.
    pub fn prepare(self) -> io::Result<()> {
        if self == Ground::Loopback {
            return Ok(());
        }
        ip(&["link", "set", "lo", "up"])?;
        for (path, value) in limits_here() {
            std::fs::write(path, value)?;
        }
        // With an address of its own: else the bridge takes that of a port, and another when that node dies.
        ip(&["link", "add", BRIDGE, "address", BRIDGE_CARD, "type", "bridge"])?;
        ip(&["addr", "add", "10.77.255.1/8", "dev", BRIDGE])?;
        ip(&["link", "set", BRIDGE, "up"])
    }

    fn own_ip(self, number: u16) -> IpAddr {
        let [high, low] = number.to_be_bytes();
        match self {
            Ground::Namespaces => Ipv4Addr::new(10, 77, high, low).into(),
            Ground::Loopback => Ipv4Addr::new(127, 64 + Ground::run(), high, low).into(),
        }
    }

    fn relay_ip(self, number: u16) -> IpAddr {
        let [high, low] = number.to_be_bytes();
        match self {
            Ground::Namespaces => Ipv4Addr::new(10, 78, high, low).into(),
            Ground::Loopback => Ipv4Addr::new(127, 128 + Ground::run(), high, low).into(),
        }
    }

    /// Returns a number for this run, so that two runs at a time on one machine use different addresses.
    fn run() -> u8 {
        u8::try_from(std::process::id() % 64).expect("less than 64")
    }

    /// Starts a node that joins at `join`, or begins a cluster if that is empty, and waits until
    /// the node answers. No other node uses `dir`.
    pub fn start(self, plan: Plan, join: &[SocketAddr], dir: PathBuf) -> io::Result<Node> {
        std::fs::create_dir_all(&dir)?;
        let ports = match self {
            Ground::Namespaces => [PORT, PEER_PORT],
            Ground::Loopback => free_ports(),
        };
        let own = self.own_ip(plan.number);
        let host = if plan.is_relayed { self.relay_ip(plan.number) } else { own };
        let address = SocketAddr::new(host, ports[0]);
        let mut node_flags = flags(&plan, (own, host), ports, join);
        if plan.keeps_data {
            node_flags.extend(["--data-dir".into(), dir.join("data").display().to_string()]);
        }
        let child = self.spawn(&node_flags, &dir)?;
        let (ground, cable, started) = (self, String::new(), Instant::now());
        let mut node =
            Node { plan, address, ground, dir, ports, child, started, cable, relay: None };
        if self == Ground::Namespaces {
            node.lay_cable()?;
        }
        node.open_relay()?;
        node.wait_until_it_answers()?;
        Ok(node)
    }

    fn spawn(self, node_flags: &[String], dir: &Path) -> io::Result<Child> {
        let mut command = match self {
            Ground::Loopback => Command::new(node_binary()),
            Ground::Namespaces => {
                let mut command = Command::new("unshare");
                let limits = limits_here().map(|(path, value)| format!("echo {value} > {path}; "));
                let script = limits.collect::<String>() + WAIT_FOR_ADDRESS;
                command.args(["--net", "sh", "-c", &script, "node"]).arg(node_binary());
                command
            }
        };
        let log = File::options().create(true).append(true).open(dir.join("log"))?;
        command.args(node_flags).current_dir(dir).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log).spawn()
    }
}

/// Returns the limits that this kernel knows; one without the first needs none of them.
fn limits_here() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_known = Path::new(RETRANSMISSION_LIMITS[0].0).exists();
    RETRANSMISSION_LIMITS.into_iter().filter(move |_| is_known)
}

fn flags(
    plan: &Plan,
    (own, host): (IpAddr, IpAddr),
    [port, peer_port]: [u16; 2],
    join: &[SocketAddr],
) -> Vec<String> {
    let mut flags: Vec<String> = plan.flags.clone();
    let mut add = |name: &str, value: String| flags.extend([name.to_owned(), value]);
    add("--bind", own.to_string());
    add("--advertise", host.to_string());
    add("--port", port.to_string());
    add("--peer-port", peer_port.to_string());
    add("--http-port", "off".to_owned());
    add("--name", format!("n{}", plan.number));
    add("--io-threads", "2".to_owned());
    if !join.is_empty() {
        let list: Vec<String> = join.iter().map(SocketAddr::to_string).collect();
        add("--join", list.join(","));
    }
    if !own.is_loopback() {
        flags.push("--insecure".to_owned());
    }
    flags
}

impl Node {
    pub fn name(&self) -> String {
        format!("n{}", self.plan.number)
    }

    pub fn is_relayed(&self) -> bool {
        self.relay.is_some()
    }

    pub fn client(&self) -> io::Result<Client> {
        Client::connect(self.address, Duration::from_secs(2))
    }

    /// Returns the node's log so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.dir.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns whether the process has ended, which is unexpected.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Kills the node, and returns the plan and directory to start it again with.
    pub fn kill(mut self) -> (Plan, PathBuf) {
        self.relay = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        (self.plan.clone(), self.dir.clone())
    }

    pub fn stop(&self) -> io::Result<()> {
        self.signal(Signal::STOP)
    }

    pub fn go_on(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Asks the node to leave, and waits until it has left.
    pub fn leave(mut self) -> io::Result<()> {
        self.signal(Signal::TERM)?;
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > LEAVE_WITHIN {
                let (name, log) = (self.name(), self.log());
                let text = format!("{name} did not leave in time; its log:\n{log}");
                return Err(io::Error::other(text));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Takes the node's link down, or has the relay close both directions.
    pub fn cut(&self) -> io::Result<()> {
        match self.ground {
            Ground::Namespaces => ip(&["link", "set", &self.cable, "down"]),
            Ground::Loopback => {
                self.weather(Weather { to_node: Way::Closed, from_node: Way::Closed });
                Ok(())
            }
        }
    }

    /// Returns whether this ground has a way to cut the node off.
    pub fn can_be_cut(&self) -> bool {
        self.ground == Ground::Namespaces || self.is_relayed()
    }

    /// Drops everything this node sends to `other`; the other direction still works. In namespaces only.
    pub fn lose_what_it_says_to(&self, other: &Node) -> io::Result<()> {
        let to = other.address.ip().to_string();
        self.inside(&format!("ip neigh replace {to} lladdr {NOBODY} dev eth0 nud permanent"))
    }

    /// Ends all network faults of this node.
    pub fn heal(&self, others: &[&Node]) -> io::Result<()> {
        self.weather(Weather::default());
        if self.ground == Ground::Namespaces {
            ip(&["link", "set", &self.cable, "up"])?;
            for other in others {
                let to = other.address.ip();
                // There may be no such entry.
                let _ = self.inside(&format!("ip neigh del {to} dev eth0 2>/dev/null"));
            }
        }
        Ok(())
    }

    pub fn weather(&self, weather: Weather) {
        if let Some(relay) = &self.relay {
            relay.set(weather);
        }
    }

    pub fn break_connections(&self) {
        if let Some(relay) = &self.relay {
            relay.break_all();
        }
    }

    /// Connects the node's namespace to the bridge, and gives it an address.
    fn lay_cable(&mut self) -> io::Result<()> {
        let pid = self.child.id().to_string();
        let ours = std::fs::read_link("/proc/self/ns/net")?;
        let begun = Instant::now();
        while std::fs::read_link(format!("/proc/{pid}/ns/net"))? == ours {
            if begun.elapsed() > START_WITHIN {
                return Err(io::Error::other("cannot create a network namespace for the node"));
            }
            thread::sleep(LOOK_EVERY);
        }
        let [high, low] = self.plan.number.to_be_bytes();
        // A restarted node keeps its hardware address: the other nodes have it in their neighbour tables.
        let card = format!("02:00:00:00:{high:02x}:{low:02x}");
        self.cable = format!("c{pid}");
        let far_end = ["type", "veth", "peer", "name", "eth0", "address", &card, "netns", &pid];
        ip(&[&["link", "add", &self.cable], &far_end[..]].concat())?;
        ip(&["link", "set", &self.cable, "master", BRIDGE, "up"])?;
        let own = self.ground.own_ip(self.plan.number);
        self.inside(&format!(
            "ip link set lo up; ip link set eth0 up; ip addr add {own}/8 dev eth0"
        ))
    }

    fn open_relay(&mut self) -> io::Result<()> {
        if !self.plan.is_relayed {
            return Ok(());
        }
        let (at, own) =
            (self.ground.relay_ip(self.plan.number), self.ground.own_ip(self.plan.number));
        if self.ground == Ground::Namespaces {
            // The address exists already if the node was restarted.
            let _ = ip(&["addr", "add", &format!("{at}/8"), "dev", BRIDGE]);
        }
        self.relay = Some(Relay::start(at, own, &self.ports)?);
        Ok(())
    }

    fn inside(&self, script: &str) -> io::Result<()> {
        let pid = self.child.id().to_string();
        run(Command::new("nsenter").args(["-t", &pid, "-n", "sh", "-c", script]))
    }

    fn wait_until_it_answers(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            if self.has_ended() || begun.elapsed() > START_WITHIN {
                let log = self.log();
                return Err(io::Error::other(format!("{} does not start:\n{log}", self.name())));
            }
            if let Ok(mut client) = self.client()
                && client.send(&["PING"]).is_ok()
                && client.receive().is_ok()
            {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ip(args: &[&str]) -> io::Result<()> {
    run(Command::new("ip").args(args))
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{command:?}: {}", said.trim())))
}

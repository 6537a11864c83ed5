//! Servers, proxies and runs of `opencluster fleet`; each ends when its value is dropped.
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use e2e::{Client, Server, free_ports, node_binary};

pub(crate) struct Fleet {
    pub(crate) servers: Vec<Server>,
    pub(crate) proxies: Vec<Proxy>,
}

impl Fleet {
    /// Starts servers with equal weights, behind two proxies.
    pub(crate) fn start(servers: usize) -> Fleet {
        let servers: Vec<Server> = (0..servers).map(|_| Server::redis()).collect();
        let mut fleet = Fleet { servers, proxies: Vec::new() };
        let map = vec!["4"; fleet.servers.len()].join(".");
        fleet.proxies.push(Proxy::start(&fleet.list(), &["--map", &map]));
        fleet.proxies.push(Proxy::start(&fleet.list(), &[]));
        fleet
    }

    /// Starts two proxies in front of servers that are already running.
    pub(crate) fn over(ports: &[u16], map: &str) -> Fleet {
        let list = ports.iter().map(|port| address(*port)).collect::<Vec<_>>().join(",");
        let proxies = vec![Proxy::start(&list, &["--map", map]), Proxy::start(&list, &[])];
        Fleet { servers: Vec::new(), proxies }
    }

    pub(crate) fn list(&self) -> String {
        let names = self.servers.iter().map(|server| address(server.port()));
        names.collect::<Vec<_>>().join(",")
    }

    /// Returns the address of the first server, which is all that the commands need.
    pub(crate) fn first(&self) -> String {
        address(self.servers[0].port())
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.proxies.iter().map(Proxy::port).collect()
    }

    /// Runs `opencluster fleet NAME --servers FIRST ...` to its end.
    pub(crate) fn run(&self, name: &str, args: &[&str]) -> Ran {
        Ran::of(self.command(name, args))
    }

    pub(crate) fn spawn(&self, name: &str, args: &[&str]) -> Child {
        let mut command = self.command(name, args);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it was just built")
    }

    fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(node_binary());
        command.args(["fleet", name, "--servers", &self.first()]).args(args);
        command
    }

    /// Returns the value that a server holds under a key of the configuration.
    pub(crate) fn says(&self, server: usize, key: &str) -> String {
        let answer = self.servers[server].client().call(&["GET", &format!("server.config.{key}")]);
        let text = answer.value.text().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Returns the number of keys on a server, without the fleet's own.
    pub(crate) fn keys_on(&self, server: usize) -> usize {
        // In one step: keys are added and removed meanwhile.
        let script = "return redis.call('DBSIZE') - #redis.call('KEYS', 'server.config.*')";
        let answer = self.servers[server].client().call(&["EVAL", script, "0"]).value;
        let resp::Value::Integer(count) = answer else { panic!("{answer}") };
        usize::try_from(count).expect("there are no fewer keys than the fleet's own")
    }
}

pub(crate) fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// A completed run of the command line.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(mut command: Command) -> Ran {
        let output: Output = command.stdin(Stdio::null()).output().expect("it was just built");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Ran { code, out: text(&output.stdout), err: text(&output.stderr) }
    }

    pub(crate) fn must_succeed(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// Asserts that it failed with this code and exactly this line.
    pub(crate) fn must_say(&self, code: i32, line: &str) {
        assert_eq!(
            (self.code, self.err.as_str()),
            (code, format!("opencluster: {line}\n").as_str())
        );
    }
}

/// A proxy process.
pub(crate) struct Proxy {
    child: Child,
    port: u16,
}

impl Proxy {
    pub(crate) fn start(servers: &str, args: &[&str]) -> Proxy {
        let [port] = free_ports();
        let mut command = Command::new(node_binary());
        command.args(["fleet", "proxy", "--servers", servers, "--port", &port.to_string()]);
        command.args(["--http-port", "0"]).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("it was just built");
        let mut proxy = Proxy { child, port };
        proxy.wait_until_it_answers();
        proxy
    }

    fn wait_until_it_answers(&mut self) {
        let begun = Instant::now();
        while Client::try_connect(self.port).is_err() {
            let ended = self.child.try_wait().expect("a child can be asked for its status");
            assert!(ended.is_none(), "the proxy ended");
            assert!(begun.elapsed() < Duration::from_secs(30), "the proxy never answered");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn client(&self) -> Client {
        Client::try_connect(self.port).expect("a running proxy takes connections")
    }

    /// Sends a signal, to freeze the proxy or resume it.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([name, &id]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {name}");
    }

    /// Kills the proxy, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.kill();
    }
}

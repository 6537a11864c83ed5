//! `opencluster fleet proxy`: serves applications until a signal stops it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use proxy::{Options, Proxy};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::access::{AccessArgs, map, secret};
use crate::Failure;

/// Offset of the HTTP port from the port for clients.
const HTTP_ABOVE: u16 = 1_000;

#[derive(Args, Debug)]
pub(super) struct ProxyArgs {
    #[command(flatten)]
    access: AccessArgs,
    /// The weight of each server, like 4.4.4.4; only for servers that are not a fleet yet
    #[arg(long, value_name = "MAP")]
    map: Option<String>,
    /// Port for applications
    #[arg(long, value_name = "PORT", default_value_t = 7000)]
    port: u16,
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// GET, PUT and DELETE /keys/KEY over HTTP [default: port + 1000]; 0 for none
    #[arg(long, value_name = "PORT")]
    http_port: Option<u16>,
    /// A file with the password that applications must give to AUTH
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Threads that serve applications
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Listen beyond this machine without a password
    #[arg(long)]
    insecure: bool,
}

pub(super) fn run(args: &ProxyArgs) -> Result<(), Failure> {
    let options = options(args)?;
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals =
        signals.map_err(|error| Failure::Refused(format!("cannot listen to signals: {error}")))?;
    let servers = options.servers.len();
    let http = options.http;
    let proxy = Proxy::start(options).map_err(|error| Failure::Refused(error.to_string()))?;
    for note in proxy.notes() {
        super::say(&format!("opencluster: {note}\n"))?;
    }
    let address = proxy.address();
    super::say(&format!("opencluster: a fleet of {servers} servers behind {address}\n"))?;
    if let Some(http) = http {
        super::say(&format!("opencluster: keys over HTTP at http://{http}/keys/KEY\n"))?;
    }
    signals.forever().find(|signal| *signal != SIGHUP);
    drop(proxy);
    super::say("opencluster: stopped\n")
}

fn options(args: &ProxyArgs) -> Result<Options, Failure> {
    let listen = SocketAddr::new(args.bind, args.port);
    let mut options = Options::new(listen, args.access.servers()?);
    options.map = args.map.as_deref().map(map).transpose()?;
    options.access = args.access.access()?;
    options.password = args.password_file.as_deref().map(secret).transpose()?;
    options.threads = args.threads.unwrap_or(options.threads);
    let http_port = match args.http_port {
        Some(port) => Some(port).filter(|port| *port > 0),
        None => args.port.checked_add(HTTP_ABOVE),
    };
    options.http = http_port.map(|port| SocketAddr::new(args.bind, port));
    if !args.bind.is_loopback() && options.password.is_none() && !args.insecure {
        let line = format!(
            "--bind {} is reachable from the network without a password; set --password-file, or \
             allow it with --insecure",
            args.bind
        );
        return Err(Failure::BadInput(line));
    }
    Ok(options)
}

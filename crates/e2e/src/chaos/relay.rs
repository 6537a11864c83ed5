//! A small relay in front of a node. Connections to the node's address reach the relay, which forwards bytes as its
//! `Weather` says: at once, late, or not at all in one or both directions. It makes links slow and lossy: the kernels
//! we run on have no netem, and TCP turns a lost packet into a delay anyway.
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::Rng;

/// Time for which a lost packet delays those behind it; TCP takes at least this long.
const LOST_FOR: Duration = Duration::from_millis(200);
/// Interval at which an idle thread checks for changes.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const READ_WITHIN: Duration = Duration::from_millis(100);
/// Timeout for connecting to the node. One that is cut off is not waited for: the client connects again.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
const LET_GO_WITHIN: Duration = Duration::from_secs(2);
const CHUNK_BYTES: usize = 64 * 1024;

/// Treatment of the bytes in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Way {
    #[default]
    Clear,
    /// All bytes are delayed, and one packet in `loses_one_in` is lost.
    Slow { delay: Duration, loses_one_in: u64 },
    /// Nothing gets through; bytes wait, as they would for their retransmission.
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Weather {
    pub to_node: Way,
    pub from_node: Way,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToNode,
    FromNode,
}

#[derive(Debug, Default)]
struct State {
    weather: Mutex<Weather>,
    /// Number of times that all connections were broken.
    breaks: AtomicU64,
    stop: AtomicBool,
}

#[derive(Debug)]
pub struct Relay {
    state: Arc<State>,
}

impl Relay {
    /// Listens at `at` on these ports, and forwards to the same ports at `node`.
    pub fn start(at: IpAddr, node: IpAddr, ports: &[u16]) -> io::Result<Relay> {
        let state = Arc::new(State::default());
        for port in ports {
            let listener = listen(SocketAddr::new(at, *port))?;
            let (state, node) = (Arc::clone(&state), SocketAddr::new(node, *port));
            thread::spawn(move || accept(&listener, node, &state));
        }
        Ok(Relay { state })
    }

    pub fn set(&self, weather: Weather) {
        *self.state.weather.lock().expect("it is only read and written") = weather;
    }

    /// Closes all present connections; new ones are accepted.
    pub fn break_all(&self) {
        self.state.breaks.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
    }
}

impl State {
    fn way(&self, direction: Direction) -> Way {
        let weather = *self.weather.lock().expect("it is only read and written");
        match direction {
            Direction::ToNode => weather.to_node,
            Direction::FromNode => weather.from_node,
        }
    }

    /// Returns whether a connection is still valid that was made after `breaks` breaks.
    fn stands(&self, breaks: u64) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.breaks.load(Ordering::Relaxed) == breaks
    }
}

/// Binds the listener, and retries for a while: the relay of the previous process may still hold the port.
fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let until = Instant::now() + LET_GO_WITHIN;
    loop {
        match TcpListener::bind(at) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                return Ok(listener);
            }
            Err(error) if Instant::now() > until => return Err(error),
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

fn accept(listener: &TcpListener, node: SocketAddr, state: &Arc<State>) {
    while !state.stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((outside, _)) => {
                let state = Arc::clone(state);
                // A break from here on also applies to this connection.
                let breaks = state.breaks.load(Ordering::Relaxed);
                // If the node cannot be reached, the connection is closed, as a direct one would be.
                thread::spawn(move || connect(outside, node, &state, breaks));
            }
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

fn connect(
    outside: TcpStream,
    node: SocketAddr,
    state: &Arc<State>,
    breaks: u64,
) -> io::Result<()> {
    let inside = TcpStream::connect_timeout(&node, CONNECT_WITHIN)?;
    for stream in [&outside, &inside] {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_WITHIN))?;
    }
    let pairs = [
        (outside.try_clone()?, inside.try_clone()?, Direction::ToNode),
        (inside, outside, Direction::FromNode),
    ];
    for (from, to, direction) in pairs {
        let state = Arc::clone(state);
        thread::spawn(move || {
            let pump = Pump { from, to, direction, state, breaks };
            // In any case, close both ends.
            let _ = pump.run();
            let _ = pump.from.shutdown(Shutdown::Both);
            let _ = pump.to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}

struct Pump {
    from: TcpStream,
    to: TcpStream,
    direction: Direction,
    state: Arc<State>,
    breaks: u64,
}

impl Pump {
    fn run(&self) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut rng = Rng::new(self.breaks);
        while self.state.stands(self.breaks) {
            let count = match (&self.from).read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            self.hold_back(&mut rng);
            (&self.to).write_all(&chunk[..count])?;
        }
        Ok(())
    }

    fn hold_back(&self, rng: &mut Rng) {
        while self.state.stands(self.breaks) {
            match self.state.way(self.direction) {
                Way::Clear => return,
                Way::Slow { delay, loses_one_in } => {
                    let lost = if rng.one_in(loses_one_in) { LOST_FOR } else { Duration::ZERO };
                    return thread::sleep(delay + lost);
                }
                Way::Closed => thread::sleep(LOOK_EVERY),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const RELAY: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 91));

    /// Returns a relay and both ends of a connection through it.
    fn through() -> (Relay, TcpStream, TcpStream) {
        let node = TcpListener::bind((HERE, 0)).unwrap();
        let port = node.local_addr().unwrap().port();
        let relay = Relay::start(RELAY, HERE, &[port]).unwrap();
        let outside = TcpStream::connect((RELAY, port)).unwrap();
        let (inside, _) = node.accept().unwrap();
        for end in [&outside, &inside] {
            end.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        }
        (relay, outside, inside)
    }

    fn passes(from: &mut TcpStream, to: &mut TcpStream) -> bool {
        from.write_all(b"x").unwrap();
        to.read_exact(&mut [0]).is_ok()
    }

    #[test]
    fn what_is_closed_in_one_direction_passes_in_the_other_and_is_kept() {
        let (relay, mut outside, mut inside) = through();
        assert!(passes(&mut outside, &mut inside));
        relay.set(Weather { to_node: Way::Closed, from_node: Way::Clear });
        assert!(!passes(&mut outside, &mut inside));
        assert!(passes(&mut inside, &mut outside));
        relay.set(Weather::default());
        inside.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        inside.read_exact(&mut [0]).expect("what waited comes");
    }

    #[test]
    fn what_is_slow_is_late() {
        let (relay, mut outside, mut inside) = through();
        inside.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let delay = Duration::from_millis(50);
        relay.set(Weather { to_node: Way::Slow { delay, loses_one_in: 1 }, ..Weather::default() });
        let begun = Instant::now();
        assert!(passes(&mut outside, &mut inside));
        assert!(begun.elapsed() >= delay + LOST_FOR);
    }

    #[test]
    fn a_break_ends_what_is_there_and_lets_in_what_comes() {
        let (relay, mut outside, _inside) = through();
        relay.break_all();
        outside.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        assert_eq!(outside.read(&mut [0]).unwrap(), 0);
        let port = outside.peer_addr().unwrap().port();
        assert!(TcpStream::connect((RELAY, port)).is_ok());
    }
}

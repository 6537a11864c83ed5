//! Connections with overdue replies. A client that gives up on a reply leaves the connection here, open: the
//! node must still send the reply or close the connection. One that does neither within the deadline, counted
//! in calm time (`calm.rs`), is hung, unless the node's process has ended meanwhile.
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::calm::{Calm, CalmTime};
use super::town::Town;
use crate::Client;

/// Time limit for one check of a connection.
const LOOK_WITHIN: Duration = Duration::from_millis(1);

/// A request, or several in a pipeline, without all of its replies.
#[derive(Debug)]
pub struct Silence {
    pub line: Client,
    pub at: SocketAddr,
    pub replies_due: usize,
    /// The command, for the report.
    pub request: String,
    pub sent: Instant,
    pub deadline: Duration,
}

#[derive(Debug, Default)]
pub struct Silences {
    town: Town,
    calm: Calm,
    open: Mutex<Vec<(Silence, CalmTime)>>,
    hung: Mutex<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Waiting,
    /// All replies have arrived, or the connection or the process has ended.
    Over,
    Hung,
}

impl Silences {
    pub fn new(town: Town) -> Silences {
        Silences { town, ..Silences::default() }
    }

    pub fn calm(&self) -> &Calm {
        &self.calm
    }

    pub fn watch(&self, silence: Silence) {
        let entry = (silence, self.calm.now());
        self.open.lock().expect("nothing panics while looking").push(entry);
    }

    /// Checks every connection once; returns how many are still silent.
    pub fn look(&self) -> usize {
        let mut open = self.open.lock().expect("nothing panics while looking");
        open.retain_mut(|(silence, since)| match self.judge(silence, *since) {
            Verdict::Waiting => true,
            Verdict::Over => false,
            Verdict::Hung => {
                let Silence { request, at, .. } = silence;
                let age = silence.sent.elapsed().as_secs_f32();
                let text = format!(
                    "{request} to {at}: neither a reply nor a closed connection after {age:.1} s"
                );
                self.hung.lock().expect("it is only read and written").push(text);
                false
            }
        });
        open.len()
    }

    /// Returns the requests that were hung so far.
    pub fn hung(&self) -> Vec<String> {
        self.hung.lock().expect("it is only read and written").clone()
    }

    fn judge(&self, silence: &mut Silence, since: CalmTime) -> Verdict {
        let has_ended = match silence.read() {
            Ok(()) => silence.replies_due == 0,
            Err(_) => true,
        };
        if has_ended || !self.town.has_stood_since(silence.at, silence.sent) {
            return Verdict::Over;
        }
        let is_overdue = since.is_overdue(self.calm.now(), silence.deadline);
        if is_overdue { Verdict::Hung } else { Verdict::Waiting }
    }
}

impl Silence {
    /// Reads the replies that have arrived.
    fn read(&mut self) -> io::Result<()> {
        while self.replies_due > 0 {
            match self.line.receive_within(LOOK_WITHIN)? {
                Some(_) => self.replies_due -= 1,
                None => break,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::super::town::Resident;
    use super::*;

    /// Returns a request to a node whose answers the test controls.
    fn silent(deadline: Duration) -> (Silences, TcpStream) {
        let node = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = node.local_addr().unwrap();
        let town = Town::default();
        town.set(vec![Resident { address: at, started: Instant::now() }]);
        let line = Client::connect(at, Duration::from_secs(1)).unwrap();
        let silences = Silences::new(town);
        let (request, sent) = ("DBSIZE".to_owned(), Instant::now());
        silences.watch(Silence { line, at, replies_due: 1, request, sent, deadline });
        (silences, node.accept().unwrap().0)
    }

    #[test]
    fn a_request_without_reply_and_end_is_hung_after_its_deadline() {
        let (silences, node) = silent(Duration::from_millis(50));
        assert_eq!((silences.look(), silences.hung().len()), (1, 0));
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(silences.look(), 0);
        let at = node.local_addr().unwrap();
        let hung = silences.hung();
        let expected = format!("DBSIZE to {at}: neither a reply nor a closed connection after");
        assert!(hung[0].starts_with(&expected), "{hung:?}");
    }

    #[test]
    fn a_late_reply_or_a_closed_connection_is_not_hung() {
        let (silences, mut node) = silent(Duration::ZERO);
        node.write_all(b":3\r\n").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!((silences.look(), silences.hung().len()), (0, 0));
        let (silences, node) = silent(Duration::ZERO);
        drop(node);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!((silences.look(), silences.hung().len()), (0, 0));
    }

    #[test]
    fn a_process_that_has_ended_owes_no_reply() {
        let (silences, _node) = silent(Duration::ZERO);
        silences.town.set(Vec::new());
        assert_eq!((silences.look(), silences.hung().len()), (0, 0));
    }
}

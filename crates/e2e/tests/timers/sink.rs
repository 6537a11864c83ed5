//! A server that receives callbacks: accepts everything, records it, answers 200.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A callback as received.
#[derive(Clone, Debug)]
pub(crate) struct Pop {
    pub id: String,
    pub sequence: u32,
    pub body: String,
}

pub(crate) struct Sink {
    port: u16,
    pops: Arc<Mutex<Vec<Pop>>>,
}

impl Sink {
    pub(crate) fn start() -> Sink {
        Sink::at(([127, 0, 0, 1], 0).into())
    }

    pub(crate) fn at(address: SocketAddr) -> Sink {
        let listener = TcpListener::bind(address).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let pops: Arc<Mutex<Vec<Pop>>> = Arc::default();
        let noted = Arc::clone(&pops);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let noted = Arc::clone(&noted);
                // The thread ends with its connection.
                thread::spawn(move || serve(stream, &noted));
            }
        });
        Sink { port, pops }
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}/pop", self.port)
    }

    /// Returns a URI with a host name that has to be resolved.
    pub(crate) fn uri_by_name(&self) -> String {
        format!("http://localhost:{}/pop", self.port)
    }

    pub(crate) fn pops(&self) -> Vec<Pop> {
        self.pops.lock().expect("nobody panics with it").clone()
    }

    /// Counts the callbacks for each sequence number of each timer.
    pub(crate) fn counts(&self) -> BTreeMap<(String, u32), usize> {
        let mut counts = BTreeMap::new();
        for pop in self.pops() {
            *counts.entry((pop.id, pop.sequence)).or_default() += 1;
        }
        counts
    }
}

fn serve(stream: TcpStream, noted: &Mutex<Vec<Pop>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket can be held twice"));
    let mut stream = stream;
    while let Some(pop) = request(&mut reader) {
        noted.lock().expect("nobody panics with it").push(pop);
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<Pop> {
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some((name, value)) => {
                headers.insert(name.to_ascii_lowercase(), value.to_owned());
            }
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Pop {
        id: headers.get("x-timer-id")?.clone(),
        sequence: headers.get("x-sequence-number")?.parse().ok()?,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

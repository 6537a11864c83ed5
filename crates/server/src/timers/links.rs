//! Links between nodes for timers. Each node opens its own link to every other node and only sends on it; it
//! only reads on links that others opened. A message is a frame: four bytes of length, then postcard. Any error
//! closes the link; messages in flight are lost, and a sender that waits for an answer retries.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster::map::Peer;
use timers::{TimerInput, TimerMessage};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;

use super::hub::{Hub, QUEUE_MAX, QueuedMessage, timer_peer};
use crate::peer::LinkMaker;

/// Maximum size of a frame. The largest message is a page of a fill: a mebibyte of client data and its
/// overhead.
const FRAME_BYTES_MAX: usize = 8 << 20;
const HEADER_BYTES: usize = 4;
/// Target size of one write, if that much is queued.
const BATCH_BYTES: usize = 64 * 1024;
const STALE_AFTER: Duration = Duration::from_secs(1);
const AGAIN_MIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct TimerLinks {
    maker: Option<LinkMaker>,
    others: Vec<Peer>,
    /// A task for each link that this node opens.
    outgoing: BTreeMap<Peer, JoinHandle<()>>,
    incoming: BTreeMap<Peer, JoinHandle<()>>,
}

impl TimerLinks {
    pub(super) fn set_maker(&mut self, hub: &Arc<Hub>, maker: LinkMaker) {
        self.maker = Some(maker);
        self.make(hub);
    }

    /// Keeps links to exactly these peers.
    pub(super) fn follow(&mut self, hub: &Arc<Hub>, others: Vec<Peer>) {
        let nodes: Vec<_> = others.iter().copied().map(timer_peer).collect();
        hub.keep_queues(&nodes);
        for links in [&mut self.outgoing, &mut self.incoming] {
            links.retain(|peer, task| {
                let is_wanted = others.contains(peer);
                if !is_wanted {
                    task.abort();
                }
                is_wanted
            });
        }
        self.others = others;
        self.make(hub);
    }

    fn make(&mut self, hub: &Arc<Hub>) {
        let Some(maker) = &self.maker else { return };
        for peer in &self.others {
            if !self.outgoing.contains_key(peer) {
                let (queue, messages) = mpsc::channel(QUEUE_MAX);
                hub.set_queue(timer_peer(*peer), queue);
                let task = tokio::spawn(keep_link(maker.clone(), *peer, messages));
                self.outgoing.insert(*peer, task);
            }
        }
    }

    /// Reads a new link of a process and closes its old one, so that nothing is read out of order.
    pub(super) fn accept(&mut self, hub: &Arc<Hub>, peer: Peer, stream: std::net::TcpStream) {
        // An unusable socket is closed; the other end opens a new one.
        let Ok(stream) = adopt(stream) else { return };
        let hub = Arc::clone(hub);
        let task = tokio::spawn(async move {
            let _ = read_link(&hub, peer, stream).await; // The other end notices that it is closed.
        });
        if let Some(old) = self.incoming.insert(peer, task) {
            old.abort();
        }
    }
}

fn adopt(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}

/// Keeps a link open, reopening it as needed, and sends the queued messages.
async fn keep_link(maker: LinkMaker, peer: Peer, mut messages: Receiver<QueuedMessage>) {
    let mut wait = AGAIN_MIN;
    loop {
        let (dial, to) = (maker.clone(), peer);
        let made = tokio::task::spawn_blocking(move || dial.for_timers(to)).await;
        let stream = made.ok().and_then(Result::ok);
        if let Some(Ok(stream)) = stream.map(adopt) {
            wait = AGAIN_MIN;
            let _ = write_link(&stream, &mut messages).await;
        }
        if messages.is_closed() && messages.is_empty() {
            return;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AGAIN_MAX);
    }
}

async fn write_link(stream: &TcpStream, messages: &mut Receiver<QueuedMessage>) -> io::Result<()> {
    let mut batch = Vec::new();
    loop {
        // 1) Wait for something to send, or for the other end to close.
        tokio::select! {
            message = messages.recv() => match message {
                Some(waiting) => put_if_fresh(&waiting, &mut batch),
                None => return Ok(()),
            },
            ready = stream.ready(Interest::READABLE) => {
                let mut byte = [0];
                match ready.and_then(|_| stream.try_read(&mut byte)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Ok(_) => return Ok(()), // The other end sends nothing; only its end arrives.
                    Err(error) => return Err(error),
                }
            }
        }
        // 2) Add whatever else is queued.
        while batch.len() < BATCH_BYTES {
            let Ok(waiting) = messages.try_recv() else { break };
            put_if_fresh(&waiting, &mut batch);
        }
        write_all(stream, &batch).await?;
        batch.clear();
    }
}

/// Adds a message to the batch unless it has waited too long for its link. A requester that still wants an
/// answer retries, and one that has given up must not be served a minute later.
fn put_if_fresh(waiting: &QueuedMessage, batch: &mut Vec<u8>) {
    if waiting.since.elapsed() < STALE_AFTER {
        put(&waiting.message, batch);
    }
}

fn put(message: &TimerMessage, batch: &mut Vec<u8>) {
    let body = postcard::to_allocvec(message).expect("every message can be written");
    let length = u32::try_from(body.len()).expect("messages are limited");
    batch.extend(length.to_le_bytes());
    batch.extend(body);
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until the link ends or sends an invalid message.
async fn read_link(hub: &Hub, peer: Peer, stream: TcpStream) -> io::Result<()> {
    let from = timer_peer(peer);
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        stream.readable().await?;
        let mut chunk = [0; 64 * 1024];
        match stream.try_read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        let mut taken = 0;
        while let Some((message, length)) = next_message(&bytes[taken..])? {
            taken += length;
            hub.input(TimerInput::Peer { from, message });
        }
        bytes.drain(..taken);
    }
}

/// Returns the first message and its length in bytes.
fn next_message(bytes: &[u8]) -> io::Result<Option<(TimerMessage, usize)>> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*header) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(Some((message, HEADER_BYTES + length))),
        Ok(_) | Err(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timers::MembersEpoch;
    use timers::message::{MembersHello, Stage};

    fn hello() -> TimerMessage {
        TimerMessage::Hello(MembersHello {
            epoch: MembersEpoch(7),
            stage: Stage::Settled,
            answer: false,
        })
    }

    #[test]
    fn messages_come_out_of_any_pieces_as_they_went_in() {
        let mut bytes = Vec::new();
        put(&hello(), &mut bytes);
        for cut in 0..bytes.len() {
            assert!(matches!(next_message(&bytes[..cut]), Ok(None)), "{cut}");
        }
        put(&hello(), &mut bytes);
        let (first, length) = next_message(&bytes).unwrap().expect("a whole message");
        assert_eq!((first, length * 2), (hello(), bytes.len()));
    }

    #[test]
    fn what_is_no_message_ends_the_link() {
        assert!(next_message(&u32::MAX.to_le_bytes()).is_err());
        let mut bytes = Vec::new();
        put(&hello(), &mut bytes);
        bytes[0] += 1;
        bytes.push(0);
        assert!(next_message(&bytes).is_err(), "something is left over");
        assert!(next_message(&[1, 0, 0, 0, 0xFF]).is_err());
    }
}

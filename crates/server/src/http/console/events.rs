//! `/api/events`: changes as server-sent events, so that clients need not poll.
//!
//! First `hello`, `status` and the whole `map`; then `buckets` with those that changed, `status` (the cluster
//! without its buckets) and `node` (this node's metrics) every second, `sample` for the charts. A stream ends
//! by itself after a while and the browser opens another one; a client that does not read is dropped.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cluster::map::Map;
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::{Console, STREAMS_MAX, picture, shown};

/// Interval between checks for a new map.
const TICK: Duration = Duration::from_millis(250);
/// Number of ticks after which `status` and `node` are sent even if nothing has changed.
const TICKS_TO_A_BEAT: u64 = 4;
/// Maximum lifetime of a stream, shorter than that of its connection (`LIMITS` in `http/mod.rs`).
const STREAM_FOR: Duration = Duration::from_secs(90);
/// Timeout for a client that reads nothing.
const SLOW_AFTER: Duration = Duration::from_secs(10);
/// Maximum number of events queued for a client.
const WAITING_MAX: usize = 4;

pub(super) async fn events(State(console): State<Arc<Console>>) -> Response {
    let Ok(place) = Arc::clone(&console.streams).try_acquire_owned() else {
        let why = format!("{STREAMS_MAX} consoles are open on this node already; close one\n");
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    let (events, waiting) = mpsc::channel(WAITING_MAX);
    let feed = Feed { console, events, shown: None, sampled: 0 };
    tokio::spawn(feed.run(place));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::new(Stream(waiting))).into_response()
}

/// The response body: each event as it comes.
struct Stream(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

/// The client is gone, or too slow.
struct ClientGone;

/// State of one client's stream.
struct Feed {
    console: Arc<Console>,
    events: mpsc::Sender<Bytes>,
    shown: Option<Arc<Map>>,
    /// Time of the last sample that was sent.
    sampled: u64,
}

impl Feed {
    async fn run(mut self, _place: OwnedSemaphorePermit) {
        let mut stopped = self.console.stopped.clone();
        tokio::select! {
            _ = self.tell() => {}
            _ = stopped.changed() => {}
            () = sleep(STREAM_FOR) => {}
        }
    }

    /// Sends events until the client is gone.
    async fn tell(&mut self) -> Result<(), ClientGone> {
        self.say_hello().await?;
        let mut beat = interval(TICK);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for tick in 0_u64.. {
            beat.tick().await;
            self.tell_map().await?;
            let status = self.console.status();
            if status.is_moving || tick.is_multiple_of(TICKS_TO_A_BEAT) {
                self.send("status", &status.text).await?;
            }
            if tick.is_multiple_of(TICKS_TO_A_BEAT) {
                let node = self.console.node();
                self.send("node", &node.text).await?;
                self.tell_sample().await?;
            }
        }
        Ok(())
    }

    async fn say_hello(&mut self) -> Result<(), ClientGone> {
        let hello = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "can_operate": self.console.door.has_token(),
        });
        // The browser opens another stream soon after one has ended.
        self.post(Bytes::from_static(b"retry: 500\n\n")).await?;
        self.send("hello", hello.to_string().as_bytes()).await
    }

    async fn tell_map(&mut self) -> Result<(), ClientGone> {
        let map = self.console.source.map();
        let told = match &self.shown {
            Some(shown) if Arc::ptr_eq(shown, &map) => return Ok(()),
            Some(shown) => picture::changed(shown, &map),
            None => None,
        };
        self.shown = Some(Arc::clone(&map));
        match told {
            Some(changed) => self.send("buckets", changed.as_bytes()).await,
            None => {
                // Send the departed members first, so that no member is missing in between.
                let status = self.console.status_now();
                self.send("status", &status.text).await?;
                let whole = self.console.picture.of(&map);
                self.send("map", &whole).await
            }
        }
    }

    async fn tell_sample(&mut self) -> Result<(), ClientGone> {
        let latest = self.console.source.latest_sample();
        let Some(sample) = latest.filter(|sample| sample.at > self.sampled) else { return Ok(()) };
        self.sampled = sample.at;
        self.send("sample", shown::hour(&[sample]).as_bytes()).await
    }

    /// Sends an event. `data` is JSON on one line.
    async fn send(&mut self, name: &str, data: &[u8]) -> Result<(), ClientGone> {
        let mut event = Vec::with_capacity(data.len() + name.len() + 32);
        event.extend_from_slice(b"event: ");
        event.extend_from_slice(name.as_bytes());
        event.extend_from_slice(b"\ndata: ");
        event.extend_from_slice(data);
        event.extend_from_slice(b"\n\n");
        self.post(event.into()).await
    }

    async fn post(&mut self, event: Bytes) -> Result<(), ClientGone> {
        match timeout(SLOW_AFTER, self.events.send(event)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(ClientGone),
        }
    }
}

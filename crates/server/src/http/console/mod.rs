//! The console: a page on every node's HTTP port that shows the cluster live, and its API.
//!
//! `http/routes.rs` merges its paths into the others, behind the guard. All data comes from a
//! [`ConsoleSource`]; the console changes nothing unless the node was given a token (`admin.rs`).

mod assets; //  The page itself.
mod picture; // The holders of all buckets, in few bytes.
mod events; //  Changes, as a stream of events.
mod shown; //   The last hour and the slow log, as JSON.
mod admin; //   Leave, split, settings: with the token only.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cluster::control::OperatorRequest;
use cluster::map::Map;
use cluster::status::Status;
use commands::SlowCommand;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use super::HttpSource;
use super::door::Door;
pub use crate::watching::Sample;

/// Maximum number of open consoles; each costs a connection and a few small documents a second.
const STREAMS_MAX: usize = 32;
/// Time for which a document is reused for all consoles.
const FRESH_FOR: Duration = Duration::from_millis(200);

/// Data and operations of the console, besides those of [`HttpSource`].
pub trait ConsoleSource: Send + Sync + 'static {
    /// Returns the map this node currently uses.
    fn map(&self) -> Arc<Map>;
    /// Returns the full status of the cluster without its buckets.
    fn cluster_without_buckets(&self) -> Status;
    /// Returns the samples of the last hour, oldest first.
    fn hour(&self) -> Vec<Sample>;
    fn latest_sample(&self) -> Option<Sample>;
    /// Returns the slow log, newest first.
    fn slow_commands(&self) -> Vec<SlowCommand>;
    /// Requests an operation that the nodes then carry out together. `Err` is the reason for a refusal.
    fn ask(&self, ask: OperatorRequest) -> Result<(), String>;
}

/// State shared by all requests.
pub(super) struct Console {
    source: Arc<dyn HttpSource>,
    /// Knows the admin token. Without a token no change is allowed.
    door: Arc<Door>,
    streams: Arc<Semaphore>,
    stopped: watch::Receiver<()>,
    picture: picture::PictureCache,
    status: Mutex<Option<Fresh>>,
    node: Mutex<Option<Fresh>>,
}

/// A document that is shown to several consoles.
#[derive(Clone)]
struct Fresh {
    made: Instant,
    text: Bytes,
    /// True if the document will change soon.
    is_moving: bool,
}

impl Console {
    pub(super) fn new(
        source: Arc<dyn HttpSource>,
        door: Arc<Door>,
        stopped: watch::Receiver<()>,
    ) -> Console {
        Console {
            source,
            door,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            stopped,
            picture: picture::PictureCache::default(),
            status: Mutex::default(),
            node: Mutex::default(),
        }
    }

    pub(super) fn router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        let orders = Router::new()
            .route("/api/leave", post(admin::leave))
            .route("/api/split", post(admin::split))
            .route("/api/settings", post(admin::set))
            .layer(DefaultBodyLimit::max(admin::BODY_BYTES_MAX));
        Router::new()
            .route("/", get(assets::page))
            .route("/console/{name}", get(assets::asset))
            .route("/api/map", get(map))
            .route("/api/events", get(events::events))
            .route("/api/history", get(history))
            .route("/api/slowlog", get(slow_log))
            .merge(orders)
            .with_state(Arc::new(self))
    }

    /// Returns the status of the cluster without its buckets.
    fn status(&self) -> Fresh {
        fresh(&self.status, || {
            let status = self.source.cluster_without_buckets();
            let text = serde_json::to_string(&status).expect("numbers and texts can be written");
            (text, !status.moves.is_empty())
        })
    }

    /// Returns the same, made anew.
    fn status_now(&self) -> Fresh {
        *self.status.lock() = None;
        self.status()
    }

    /// Returns the metrics of this node.
    fn node(&self) -> Fresh {
        fresh(&self.node, || (self.source.metrics().json().to_string(), false))
    }
}

/// Returns the cached document if it is recent, else makes a new one.
fn fresh(kept: &Mutex<Option<Fresh>>, make: impl FnOnce() -> (String, bool)) -> Fresh {
    let mut kept = kept.lock();
    let young = kept.clone().filter(|kept| kept.made.elapsed() < FRESH_FOR);
    let fresh = young.unwrap_or_else(|| {
        let (text, is_moving) = make();
        Fresh { made: Instant::now(), text: text.into(), is_moving }
    });
    *kept = Some(fresh.clone());
    fresh
}

async fn map(State(console): State<Arc<Console>>, headers: HeaderMap) -> Response {
    let map = console.source.map();
    let tag = picture::tag(&map);
    if assets::has(&headers, &tag) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let mut response = json(console.picture.of(&map));
    let tag = tag.parse().expect("digits and quotes stand in a header");
    response.headers_mut().insert(header::ETAG, tag);
    response
}

async fn history(State(console): State<Arc<Console>>) -> Response {
    json(shown::hour(&console.source.hour()).into())
}

async fn slow_log(State(console): State<Arc<Console>>) -> Response {
    json(shown::slow_log(&console.source.slow_commands()).into())
}

fn json(body: Bytes) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];
    (headers, body).into_response()
}

//! The console: a page on every node's HTTP port that shows the cluster live, and what it asks for.
//!
//! Merged into the other paths by `http/routes.rs`, behind the guard. All it shows it gets from a
//! [`ConsoleSource`]; it changes nothing unless the node was given a token (`admin.rs`).

mod assets; //  The page itself.
mod picture; // Who holds which bucket, in few bytes.
mod events; //  What changes, as it changes.
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
use cluster::control::Ask;
use cluster::map::Map;
use cluster::status::Status;
use commands::SlowCommand;
use commands::settings::Secret;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use super::HttpSource;
pub use crate::watching::Sample;

/// Consoles that may be open at a time; each costs a connection and a few small documents a second.
const STREAMS_MAX: usize = 32;
/// Of what all of them are shown, one copy is made in so long.
const FRESH_FOR: Duration = Duration::from_millis(200);

/// What the console shows and asks for, besides what [`HttpSource`] has.
pub trait ConsoleSource: Send + Sync + 'static {
    /// The map this node goes by.
    fn map(&self) -> Arc<Map>;
    /// All there is to tell of the cluster but its buckets.
    fn cluster_without_buckets(&self) -> Status;
    /// The last hour, the oldest first.
    fn hour(&self) -> Vec<Sample>;
    fn latest_sample(&self) -> Option<Sample>;
    /// The newest first.
    fn slow_commands(&self) -> Vec<SlowCommand>;
    /// Whether clients need a password: then what they sent is not shown to everybody.
    fn needs_password(&self) -> bool;
    /// Asks for something that the nodes then do together. `Err` says why it will not be done.
    fn ask(&self, ask: Ask) -> Result<(), String>;
}

/// What all requests share.
pub(super) struct Console {
    source: Arc<dyn HttpSource>,
    /// Empty: nobody may change anything.
    token: Secret,
    streams: Arc<Semaphore>,
    stopped: watch::Receiver<()>,
    picture: picture::Kept,
    status: Mutex<Option<Fresh>>,
    node: Mutex<Option<Fresh>>,
}

/// A document that is shown to several.
#[derive(Clone)]
struct Fresh {
    made: Instant,
    text: Bytes,
    /// Whether it will soon be another one.
    is_moving: bool,
}

impl Console {
    pub(super) fn new(
        source: Arc<dyn HttpSource>,
        token: Secret,
        stopped: watch::Receiver<()>,
    ) -> Console {
        Console {
            source,
            token,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            stopped,
            picture: picture::Kept::default(),
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

    /// The cluster without its buckets.
    fn status(&self) -> Fresh {
        fresh(&self.status, || {
            let status = self.source.cluster_without_buckets();
            let text = serde_json::to_string(&status).expect("numbers and texts can be written");
            (text, !status.moves.is_empty())
        })
    }

    /// The same, as it is at this moment.
    fn status_now(&self) -> Fresh {
        *self.status.lock() = None;
        self.status()
    }

    /// The numbers of this node.
    fn node(&self) -> Fresh {
        fresh(&self.node, || (self.source.metrics().json().to_string(), false))
    }
}

/// What was made a moment ago, or made now.
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

async fn slow_log(State(console): State<Arc<Console>>, headers: HeaderMap) -> Response {
    let is_open = !console.source.needs_password() || admin::has_token(&console, &headers);
    let detail = if is_open { shown::Detail::Arguments } else { shown::Detail::NamesOnly };
    json(shown::slow_log(&console.source.slow_commands(), detail).into())
}

fn json(body: Bytes) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];
    (headers, body).into_response()
}

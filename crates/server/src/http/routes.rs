//! The paths and their handlers. Called by `mod.rs` for every request; the guard runs first.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use settings::HttpOpen;

use super::console::Console;
use super::door::{self, Door};
use super::guard::{self, HostNames};
use super::{HttpSource, NodeReadiness, body};

type SharedSource = Arc<dyn HttpSource>;

/// The checks before any handler.
pub(super) struct Gates {
    pub(super) names: HostNames,
    pub(super) door: Arc<Door>,
    pub(super) open: HttpOpen,
}

pub(super) fn router(source: SharedSource, console: Console, gates: Gates) -> Router {
    let health = Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz));
    let metrics = Router::new().route("/metrics", get(metrics));
    let closed = Router::new()
        .route("/api/node", get(api_node))
        .route("/api/cluster", get(api_cluster))
        .merge(source.timers())
        .merge(console.router());
    // Open paths are answered under any host name: health checkers and scrapers use all kinds of them.
    let (open, closed) = match gates.open {
        HttpOpen::Nothing => (Router::new(), closed.merge(health).merge(metrics)),
        HttpOpen::Health => (health, closed.merge(metrics)),
        HttpOpen::Metrics => (health.merge(metrics), closed),
    };
    // A path that is not among the open ones passes the guard, then the door, then its body is read.
    let closed = closed
        .fallback(not_found)
        .layer(middleware::from_fn(body::read))
        .layer(middleware::from_fn_with_state(gates.door, door::check))
        .layer(middleware::from_fn_with_state(gates.names, guard::check));
    open.merge(closed).with_state(source)
}

/// Returns whether a path is a health check, which is answered even if all places are taken.
pub(super) fn is_health(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// Reports that the process is alive.
async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(source): State<SharedSource>) -> Response {
    match source.readiness() {
        NodeReadiness::Ready => "ready\n".into_response(),
        NodeReadiness::NotReady(why) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response()
        }
    }
}

async fn metrics(State(source): State<SharedSource>) -> Response {
    let cluster = source.cluster_metrics().prometheus();
    let page = source.metrics().prometheus() + &cluster + &source.timer_metrics();
    typed("text/plain; version=0.0.4; charset=utf-8", page)
}

async fn api_node(State(source): State<SharedSource>) -> Response {
    typed("application/json", source.metrics().json().to_string())
}

async fn api_cluster(State(source): State<SharedSource>) -> Response {
    let status = source.cluster();
    let text = serde_json::to_string(&status).expect("numbers and texts can be written");
    typed("application/json", text)
}

async fn not_found() -> (StatusCode, &'static str) {
    let known = "not found; there are /, /healthz, /readyz, /metrics, /timers, /api/node, \
                 /api/cluster, /api/map, /api/events, /api/history and /api/slowlog\n";
    (StatusCode::NOT_FOUND, known)
}

fn typed(content_type: &'static str, body: String) -> Response {
    let headers: [(HeaderName, &str); 2] =
        [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")];
    (headers, body).into_response()
}

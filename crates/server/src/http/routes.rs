//! The paths and their handlers. Called by `mod.rs` for every request; the guard runs first.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::console::Console;
use super::guard::{self, HostNames};
use super::{HttpSource, NodeReadiness};

type SharedSource = Arc<dyn HttpSource>;

pub(super) fn router(source: SharedSource, console: Console, names: HostNames) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(metrics))
        .route("/api/node", get(api_node))
        .route("/api/cluster", get(api_cluster))
        .merge(source.timers())
        .merge(console.router())
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(names, guard::check));
    // Health checkers use any host name, and these paths reveal nothing.
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .merge(guarded)
        .with_state(source)
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

//! Reads a request's body whole and in time, before its handler runs: a client that sends its body slowly does
//! not keep its connection. Called by `routes.rs` for every path that is not open.

use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::HttpClient;
use super::guard::BODY_BYTES_MAX;

pub(super) async fn read(
    Extension(client): Extension<HttpClient>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    match timeout(client.body_within, to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        // Too long, or the connection broke, and then nobody reads this.
        Ok(Err(_)) => {
            let why = format!("a body has at most {BODY_BYTES_MAX} bytes\n");
            (StatusCode::PAYLOAD_TOO_LARGE, [("connection", "close")], why).into_response()
        }
        Err(_) => {
            let why = "the body did not arrive in time\n";
            (StatusCode::REQUEST_TIMEOUT, [("connection", "close")], why).into_response()
        }
    }
}

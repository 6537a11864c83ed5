//! Operations from the console: let this node leave, split buckets, change settings of the cluster. Only with
//! the token of `admin-token-file`, only by POST, only from this node's own page.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cluster::control::OperatorRequest;
use cluster::map::LeaveWay;
use cluster::status::parse_setting;
use serde_json::{Value, json};

use super::Console;
use crate::http::HttpClient;
use crate::http::door::Unadmitted;

pub(super) const BODY_BYTES_MAX: usize = 4 * 1024;

type SharedConsole = Arc<Console>;

pub(super) async fn leave(
    State(console): State<SharedConsole>,
    Extension(client): Extension<HttpClient>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match admit(&console, &headers, &body, client.address) {
        Ok(_) => {
            let told = "this node hands its buckets over and then stops";
            begin(&console, OperatorRequest::Leave(LeaveWay::Safe), told)
        }
        Err(refusal) => *refusal,
    }
}

pub(super) async fn split(
    State(console): State<SharedConsole>,
    Extension(client): Extension<HttpClient>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let wanted = match admit(&console, &headers, &body, client.address) {
        Ok(wanted) => wanted,
        Err(refusal) => return *refusal,
    };
    match wanted.get("bucket").and_then(Value::as_str).map(str::parse) {
        None => begin(&console, OperatorRequest::Split(None), "the largest buckets are split"),
        Some(Ok(bucket)) => {
            begin(&console, OperatorRequest::Split(Some(bucket)), "the bucket is split")
        }
        Some(Err(error)) => failed(StatusCode::BAD_REQUEST, &format!("{error}")),
    }
}

pub(super) async fn set(
    State(console): State<SharedConsole>,
    Extension(client): Extension<HttpClient>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match admit(&console, &headers, &body, client.address) {
        Ok(wanted) => set_to(&console, &wanted),
        Err(refusal) => *refusal,
    }
}

fn set_to(console: &Console, wanted: &Value) -> Response {
    let text = |name: &str| wanted.get(name).and_then(Value::as_str);
    let (Some(name), Some(value)) = (text("name"), text("value")) else {
        let why = "expected {\"name\": ..., \"value\": ...}, both strings";
        return failed(StatusCode::BAD_REQUEST, why);
    };
    match parse_setting(name, value) {
        Ok(setting) => {
            let told = "the setting is being applied to the whole cluster";
            begin(console, OperatorRequest::Set(setting), told)
        }
        Err(error) => failed(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

/// Returns the operator's request, if the sender is authorized.
fn admit(
    console: &Console,
    headers: &HeaderMap,
    body: &[u8],
    from: IpAddr,
) -> Result<Value, Box<Response>> {
    let is = |name: &str, wanted: &str| {
        headers.get(name).is_none_or(|value| value.as_bytes() == wanted.as_bytes())
    };
    // The guard has checked Host and Origin; browsers send this header as well.
    if !is("sec-fetch-site", "same-origin") {
        let why = "changes are accepted only from this node's own page; nothing was changed";
        return Err(refused(StatusCode::FORBIDDEN, why));
    }
    if !console.door.has_token() {
        let why = "this console is read-only; to operate the cluster from here, start the node \
                   with --admin-token-file FILE (or use the command line: opencluster leave, \
                   split, settings)";
        return Err(refused(StatusCode::FORBIDDEN, why));
    }
    // Another site's form cannot send this type without a preflight request, and we never allow one.
    if headers.get(header::CONTENT_TYPE).is_none_or(|value| value != "application/json") {
        let why = "the content type must be application/json; nothing was changed";
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    match console.door.judge_token(headers, from) {
        Ok(()) => {}
        Err(Unadmitted::Missing | Unadmitted::Wrong) => {
            let why = "the token is missing or wrong; nothing was changed";
            let mut refusal = failed(StatusCode::UNAUTHORIZED, why);
            let wanted = HeaderValue::from_static("Bearer");
            refusal.headers_mut().insert(header::WWW_AUTHENTICATE, wanted);
            return Err(Box::new(refusal));
        }
        Err(Unadmitted::TooMany) => {
            let why =
                "too many wrong tokens from this address; nothing was changed; wait ten seconds";
            return Err(refused(StatusCode::TOO_MANY_REQUESTS, why));
        }
    }
    let order: Option<Value> = serde_json::from_slice(body).ok();
    let why = "the body is not a JSON object; nothing was changed";
    order.filter(Value::is_object).ok_or_else(|| refused(StatusCode::BAD_REQUEST, why))
}

fn begin(console: &Console, ask: OperatorRequest, told: &str) -> Response {
    match console.source.ask(ask) {
        Ok(()) => answer(StatusCode::ACCEPTED, &json!({ "begun": told })),
        Err(why) => failed(StatusCode::CONFLICT, &why),
    }
}

fn refused(status: StatusCode, why: &str) -> Box<Response> {
    Box::new(failed(status, why))
}

fn failed(status: StatusCode, why: &str) -> Response {
    answer(status, &json!({ "error": why }))
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, format!("{body}\n")).into_response()
}

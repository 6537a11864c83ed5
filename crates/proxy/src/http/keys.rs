//! `GET|PUT|DELETE /keys/KEY`. The key is the rest of the path, percent-decoded to any bytes; the value is
//! the body. `?ttl=SECONDS` makes a PUT value expire.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use resp::Value;

use super::guard::refusal;
use super::inside::Inside;
use super::metrics;

/// Maximum size of a PUT value.
const VALUE_BYTES_MAX: usize = 16 << 20;
const PREFIX: &str = "/keys/";

/// Builds the router of one connection, which comes from this address.
pub(super) fn router(inside: Arc<Inside>, from: IpAddr) -> Router {
    Router::new().fallback(answer).with_state((inside, from))
}

async fn answer(State((inside, from)): State<(Arc<Inside>, IpAddr)>, request: Request) -> Response {
    // Health checks come from machines that use any host name, and they reveal nothing.
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz") => return metrics::healthz(),
        (&Method::GET, "/readyz") => return metrics::readyz(&inside.shared),
        _ => {}
    }
    let guesses = &inside.shared.guesses;
    let is_guess =
        inside.password().is_some() && request.headers().contains_key(header::AUTHORIZATION);
    if is_guess && !guesses.may_try(from, Instant::now()) {
        let why = "too many wrong passwords from this address; wait ten seconds\n";
        return (StatusCode::TOO_MANY_REQUESTS, why).into_response();
    }
    if let Some(refusal) = refusal(request.headers(), inside.password()) {
        if is_guess && refusal.0 == StatusCode::UNAUTHORIZED {
            guesses.note_wrong(from, Instant::now());
        }
        return refusal.into_response();
    }
    if (request.method(), request.uri().path()) == (&Method::GET, "/metrics") {
        return metrics::metrics(&inside.shared);
    }
    let Some(path) = request.uri().path().strip_prefix(PREFIX).filter(|path| !path.is_empty())
    else {
        let text = "not found; available paths are /keys/KEY, /metrics, /healthz and /readyz\n";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let Some(key) = decoded(path) else {
        return (StatusCode::BAD_REQUEST, "the key is not valid percent-encoding\n")
            .into_response();
    };
    let command = match *request.method() {
        Method::GET => Ok(vec![b"GET".to_vec(), key]),
        Method::DELETE => Ok(vec![b"DEL".to_vec(), key]),
        Method::PUT => put(key, request).await,
        _ => {
            let allowed = [(header::ALLOW, "GET, PUT, DELETE")];
            return (StatusCode::METHOD_NOT_ALLOWED, allowed, "GET, PUT or DELETE\n")
                .into_response();
        }
    };
    let command = match command {
        Ok(command) => command,
        Err(refused) => return refused.into_response(),
    };
    let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
    match inside.call(&args).await {
        Ok(value) => response(value),
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error}\n")).into_response(),
    }
}

async fn put(key: Vec<u8>, request: Request) -> Result<Vec<Vec<u8>>, (StatusCode, String)> {
    let ttl = ttl(request.uri().query())?;
    let Ok(value) = to_bytes(request.into_body(), VALUE_BYTES_MAX).await else {
        return Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("a value has at most {VALUE_BYTES_MAX} bytes\n"),
        ));
    };
    let mut command = vec![b"SET".to_vec(), key, value.to_vec()];
    command.extend(ttl.into_iter().flat_map(|ttl| [b"EX".to_vec(), ttl.to_string().into_bytes()]));
    Ok(command)
}

/// Reads the seconds of `ttl=SECONDS`; other words of a query are refused, not ignored.
fn ttl(query: Option<&str>) -> Result<Option<u64>, (StatusCode, String)> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(None) };
    let seconds = query.strip_prefix("ttl=").and_then(|text| text.parse().ok());
    let wrong = || (StatusCode::BAD_REQUEST, format!("'?{query}' is not ttl=SECONDS\n"));
    seconds.filter(|seconds| *seconds > 0).map(Some).ok_or_else(wrong)
}

fn response(value: Value) -> Response {
    if let Value::Error(text) = value {
        let body = format!("{}\n", String::from_utf8_lossy(&text));
        return (status_of(&text), body).into_response();
    }
    if let Value::Bulk(bytes) = value {
        let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
        return (kind, Body::from(bytes)).into_response();
    }
    if matches!(value, Value::Null | Value::Integer(0)) {
        return (StatusCode::NOT_FOUND, "no such key\n").into_response();
    }
    StatusCode::NO_CONTENT.into_response()
}

fn status_of(error: &[u8]) -> StatusCode {
    match error {
        text if text.starts_with(b"WRONGTYPE") => StatusCode::CONFLICT,
        text if text.starts_with(b"TRYAGAIN") => StatusCode::SERVICE_UNAVAILABLE,
        text if text.starts_with(b"ERR server ") => StatusCode::BAD_GATEWAY,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// Percent-decodes to bytes; `None` if a `%` is not followed by two hexadecimal digits.
fn decoded(path: &str) -> Option<Vec<u8>> {
    let mut bytes = path.bytes();
    let mut key = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            key.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        key.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_any_bytes() {
        assert_eq!(decoded("a/b%20c%00%ff"), Some(b"a/b c\0\xff".to_vec()));
        assert_eq!(decoded("a+b"), Some(b"a+b".to_vec()));
        for wrong in ["%", "%2", "%2x", "%+1"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_time_to_live_is_a_whole_number_of_seconds() {
        assert_eq!(ttl(None), Ok(None));
        assert_eq!(ttl(Some("ttl=60")), Ok(Some(60)));
        for wrong in ["ttl=", "ttl=0", "ttl=-1", "ttl=1.5", "TTL=1", "ttl=1&x=2"] {
            assert!(ttl(Some(wrong)).is_err(), "{wrong}");
        }
    }
}

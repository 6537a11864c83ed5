//! Replies to clients of `/timers`: JSON for results, and for every failure a status and a reason, in the
//! `Reason` header and in the body.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use timers::{
    DeadLetter, LATENESS_BOUNDS, Page, Record, Seen, Stats, TimerId, TimerLife, TimerRefusal,
    json as timer_json,
};

const REASON: HeaderName = HeaderName::from_static("reason");
/// Maximum length of a reason in a header, which is one line of plain characters.
const REASON_BYTES_MAX: usize = 300;

pub(super) fn failed(status: StatusCode, why: &str) -> Response {
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let line: String = why.chars().take(REASON_BYTES_MAX).map(plain).collect();
    let reason = HeaderValue::from_str(&line).unwrap_or(HeaderValue::from_static("bad request"));
    let mut response = json_response(status, &json!({ "error": why }));
    response.headers_mut().insert(REASON, reason);
    response
}

pub(super) fn refused(refusal: TimerRefusal) -> Response {
    let status = match refusal {
        TimerRefusal::NotReady | TimerRefusal::Busy => StatusCode::SERVICE_UNAVAILABLE,
        TimerRefusal::Full => StatusCode::INSUFFICIENT_STORAGE,
        TimerRefusal::Unknown | TimerRefusal::Unseen => StatusCode::GATEWAY_TIMEOUT,
    };
    failed(status, &refusal.to_string())
}

/// Builds the reply to a change that every replica has.
pub(super) fn done(id: TimerId, host: Option<&str>) -> Response {
    let location = format!("http://{}/timers/{id}", host.unwrap_or("localhost"));
    let mut response = json_response(StatusCode::OK, &json!({ "id": id.to_string() }));
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

pub(super) fn timer(record: &Record) -> Option<Value> {
    let TimerLife::Pending { spec, left, due_in, .. } = &record.life else { return None };
    let mut value = timer_json::spec_to_json(spec, record.id.factor);
    value["id"] = json!(record.id.to_string());
    value["due-in"] = timer_json::seconds(*due_in);
    value["pops-left"] = json!(left);
    value["sequence-number"] = json!(record.sequence.0);
    Some(value)
}

pub(super) fn page(seen: &Seen<Page>) -> Response {
    let timers: Vec<Value> = seen.found.timers.iter().filter_map(timer).collect();
    let next = seen.found.next.map(|id| id.to_string());
    let body = json!({ "timers": timers, "next": next, "silent-nodes": seen.silent });
    json_response(StatusCode::OK, &body)
}

pub(super) fn stats(seen: &Seen<Box<Stats>>) -> Response {
    let stats = &seen.found;
    let bounds = LATENESS_BOUNDS.iter().map(|bound| json!(bound)).chain([json!("+Inf")]);
    let lateness: Vec<Value> = bounds
        .zip(stats.lateness.counts)
        .map(|(bound, count)| json!({ "up-to-ms": bound, "count": count }))
        .collect();
    let body = json!({
        "timers": stats.primary,
        "copies": stats.held,
        "due": stats.due,
        "tombstones": stats.tombstones,
        "popped": stats.popped,
        "failed": stats.failed,
        "given-up": stats.given_up,
        "calls-in-flight": stats.calls_in_flight,
        "calls-waiting": stats.calls_waiting,
        "lateness": lateness,
        "lateness-total-ms": stats.lateness.total_ms,
        "tags": stats.tags,
        "silent-nodes": seen.silent,
    });
    json_response(StatusCode::OK, &body)
}

pub(super) fn dead(seen: &Seen<Vec<DeadLetter>>) -> Response {
    let letter = |letter: &DeadLetter| {
        json!({
            "id": letter.id.to_string(),
            "sequence-number": letter.sequence.0,
            "destination": letter.destination,
            "why": letter.why,
            "at-ms": letter.at,
        })
    };
    let letters: Vec<Value> = seen.found.iter().map(letter).collect();
    json_response(StatusCode::OK, &json!({ "dead": letters, "silent-nodes": seen.silent }))
}

pub(super) fn json_response(status: StatusCode, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.to_string()).into_response()
}

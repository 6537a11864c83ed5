//! `/timers` and the paths under it, on every node's HTTP port. Called by `http/routes.rs`, behind its guard.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post, put};
use timers::{
    BODY_BYTES_MAX, Callback, ReplicationFactor, TimerAnswer, TimerId, TimerQuery, TimerRequest,
    json,
};

use super::hub::Hub;
use super::{answers, judge};

const PAGE_DEFAULT: u32 = 100;
const PAGE_MAX: u32 = 1000;

type SharedHub = Arc<Hub>;

pub(crate) fn routes<S: Clone + Send + Sync + 'static>(hub: SharedHub) -> Router<S> {
    Router::new()
        .route("/timers", post(create).get(list))
        .route("/timers/stats", get(stats))
        .route("/timers/dead", get(dead))
        .route("/timers/{id}", put(change).delete(delete).get(see))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(hub)
}

type RequestBody = Result<Bytes, BytesRejection>;

/// The timer that a path names.
struct Named(TimerId);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named, Response> {
        // A path that is not valid text is no id either.
        let text = Path::<String>::from_request_parts(parts, state).await.ok();
        text.and_then(|Path(id)| parsed(&id)).map(Named).ok_or_else(not_an_id)
    }
}

async fn create(State(hub): State<SharedHub>, headers: HeaderMap, body: RequestBody) -> Response {
    let described = match described(body) {
        Ok(described) => described,
        Err((status, why)) => return answers::failed(status, &why),
    };
    if let Err(response) = allowed(&hub, &described.spec.callback).await {
        return response;
    }
    let factor = described.factor.unwrap_or(ReplicationFactor::DEFAULT);
    change_answered(&hub, TimerRequest::Create { spec: described.spec, factor }, &headers).await
}

async fn change(
    State(hub): State<SharedHub>,
    Named(id): Named,
    headers: HeaderMap,
    body: RequestBody,
) -> Response {
    let described = match described(body) {
        Ok(described) => described,
        Err((status, why)) => return answers::failed(status, &why),
    };
    if let Err(bad) = described.fits(id) {
        return answers::failed(StatusCode::BAD_REQUEST, &bad.0);
    }
    if let Err(response) = allowed(&hub, &described.spec.callback).await {
        return response;
    }
    change_answered(&hub, TimerRequest::Put { id, spec: described.spec }, &headers).await
}

async fn delete(State(hub): State<SharedHub>, Named(id): Named, headers: HeaderMap) -> Response {
    change_answered(&hub, TimerRequest::Delete(id), &headers).await
}

async fn change_answered(hub: &Hub, wish: TimerRequest, headers: &HeaderMap) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    match hub.ask(wish).await {
        Some(TimerAnswer::Done(id)) => answers::done(id, host),
        other => unexpected(other.as_ref()),
    }
}

async fn see(State(hub): State<SharedHub>, Named(id): Named) -> Response {
    match hub.ask(TimerRequest::See(TimerQuery::Timer(id))).await {
        Some(TimerAnswer::Timer(found)) => match found.as_deref().and_then(answers::timer) {
            Some(timer) => answers::json_response(StatusCode::OK, &timer),
            None => answers::failed(StatusCode::NOT_FOUND, "there is no such timer"),
        },
        other => unexpected(other.as_ref()),
    }
}

async fn list(State(hub): State<SharedHub>, uri: Uri) -> Response {
    let (limit, after) = match page_of(uri.query().unwrap_or_default()) {
        Ok(page) => page,
        Err(why) => return answers::failed(StatusCode::BAD_REQUEST, why),
    };
    match hub.ask(TimerRequest::See(TimerQuery::Page { after, limit })).await {
        Some(TimerAnswer::Page(seen)) => answers::page(&seen),
        other => unexpected(other.as_ref()),
    }
}

async fn stats(State(hub): State<SharedHub>) -> Response {
    match hub.ask(TimerRequest::See(TimerQuery::Stats)).await {
        Some(TimerAnswer::Stats(seen)) => answers::stats(&seen),
        other => unexpected(other.as_ref()),
    }
}

async fn dead(State(hub): State<SharedHub>) -> Response {
    match hub.ask(TimerRequest::See(TimerQuery::Dead)).await {
        Some(TimerAnswer::Dead(seen)) => answers::dead(&seen),
        other => unexpected(other.as_ref()),
    }
}

fn unexpected(answer: Option<&TimerAnswer>) -> Response {
    match answer {
        Some(TimerAnswer::Refused(refusal)) => answers::refused(*refusal),
        Some(_) | None => answers::failed(StatusCode::SERVICE_UNAVAILABLE, "this node is stopping"),
    }
}

/// Parses a request body. The error is a status and a reason.
fn described(body: RequestBody) -> Result<json::Described, (StatusCode, String)> {
    let body = body.map_err(|rejection| match rejection.status() {
        status @ StatusCode::PAYLOAD_TOO_LARGE => {
            (status, format!("the body is longer than {BODY_BYTES_MAX} bytes; nothing was stored"))
        }
        status => (status, rejection.body_text()),
    })?;
    json::parse(&body).map_err(|bad| (StatusCode::BAD_REQUEST, bad.0))
}

/// Checks whether the target of a callback is permitted.
async fn allowed(hub: &Hub, callback: &Callback) -> Result<(), Response> {
    match callback {
        Callback::Http { target, .. } => {
            let judged = judge::judge(hub, target).await;
            judged.map_err(|why| answers::failed(StatusCode::BAD_REQUEST, &why))
        }
        Callback::Publish { .. } | Callback::Command(_) => Ok(()),
    }
}

fn parsed(id: &str) -> Option<TimerId> {
    id.parse().ok()
}

fn not_an_id() -> Response {
    let why = "an id is 16 hexadecimal digits, a dash and the replication factor";
    answers::failed(StatusCode::BAD_REQUEST, why)
}

/// Parses the query `limit=100&after=ID`.
fn page_of(query: &str) -> Result<(u32, Option<TimerId>), &'static str> {
    let (mut limit, mut after) = (PAGE_DEFAULT, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("limit", text)) => {
                let number = text.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit));
                limit = number.ok_or("limit must be a whole number from 1 to 1000")?;
            }
            Some(("after", text)) => {
                after = Some(parsed(text).ok_or("after must be a timer's id")?);
            }
            Some(_) | None => {
                return Err("unknown query parameter; a list takes only limit and after");
            }
        }
    }
    Ok((limit, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_asked_for_in_pages() {
        assert_eq!(page_of(""), Ok((PAGE_DEFAULT, None)));
        let after = "00000000000000aa-2";
        assert_eq!(page_of(&format!("after={after}&limit=7")), Ok((7, parsed(after))));
        for wrong in ["limit=0", "limit=1001", "limit=x", "after=1", "page=2", "limit"] {
            assert!(page_of(wrong).is_err(), "{wrong}");
        }
    }
}

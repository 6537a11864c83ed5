//! Credentials. As soon as clients of the store need a password, every path needs it, or the admin token, except
//! those that `http-open` names. Called by `routes.rs` after the guard, and by the console for its operations.
//!
//! Programs send `Authorization: Bearer PASSWORD`; a browser asks its user and sends `Basic`, with any user name.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use net::Guesses;
use settings::Secret;
use subtle::ConstantTimeEq;

use super::{HttpClient, HttpSource};
use crate::log;

/// The judge of credentials.
pub(super) struct Door {
    source: Arc<dyn HttpSource>,
    /// The admin token. If empty, nobody has it.
    token: Secret,
    guesses: Arc<Guesses>,
}

/// The reason why a request was not admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unadmitted {
    Missing,
    Wrong,
    /// Its address has guessed too often; the credentials were not looked at.
    TooMany,
}

impl Door {
    pub(super) fn new(source: Arc<dyn HttpSource>, token: Secret, guesses: Arc<Guesses>) -> Door {
        Door { source, token, guesses }
    }

    /// Returns whether there is an admin token.
    pub(super) fn has_token(&self) -> bool {
        !self.token.is_empty()
    }

    /// Judges a request that needs the password or the token.
    fn judge(
        &self,
        headers: &HeaderMap,
        password: &Secret,
        from: IpAddr,
    ) -> Result<(), Unadmitted> {
        self.judge_by(headers, &[password, &self.token], from)
    }

    /// Judges a request that needs the admin token.
    pub(super) fn judge_token(&self, headers: &HeaderMap, from: IpAddr) -> Result<(), Unadmitted> {
        self.judge_by(headers, &[&self.token], from)
    }

    fn judge_by(
        &self,
        headers: &HeaderMap,
        accepted: &[&Secret],
        from: IpAddr,
    ) -> Result<(), Unadmitted> {
        let given = presented(headers).ok_or(Unadmitted::Missing)?;
        if !self.guesses.may_try(from, Instant::now()) {
            return Err(Unadmitted::TooMany);
        }
        if accepted.iter().any(|secret| is_same(secret, &given)) {
            return Ok(());
        }
        if let Some(count) = self.guesses.note_wrong(from, Instant::now()) {
            log::warn(
                "auth",
                &format!(
                    "wrong credentials over HTTP from {from} ({count} wrong guesses since the last line)"
                ),
            );
        }
        Err(Unadmitted::Wrong)
    }
}

/// Compares in constant time, so that the time of a refusal does not reveal how much of a guess was right.
fn is_same(secret: &Secret, given: &[u8]) -> bool {
    !secret.is_empty() && bool::from(secret.expose().as_bytes().ct_eq(given))
}

/// Returns the password or token that a request presents.
fn presented(headers: &HeaderMap) -> Option<Vec<u8>> {
    let given = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, rest) = given.split_at(given.iter().position(|byte| *byte == b' ')?);
    let rest = rest.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(rest.to_vec());
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let pair = STANDARD.decode(rest).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

pub(super) async fn check(
    State(door): State<Arc<Door>>,
    Extension(client): Extension<HttpClient>,
    request: Request,
    next: Next,
) -> Response {
    let password = door.source.password();
    if password.is_empty() {
        return next.run(request).await;
    }
    match door.judge(request.headers(), &password, client.address) {
        Ok(()) => next.run(request).await,
        Err(why) => why.into_response(),
    }
}

impl IntoResponse for Unadmitted {
    fn into_response(self) -> Response {
        let (status, why) = match self {
            Unadmitted::Missing => (
                StatusCode::UNAUTHORIZED,
                "clients of this node need a password: send 'Authorization: Bearer PASSWORD'",
            ),
            Unadmitted::Wrong => (StatusCode::UNAUTHORIZED, "wrong password or token"),
            Unadmitted::TooMany => (
                StatusCode::TOO_MANY_REQUESTS,
                "too many wrong passwords from this address; wait ten seconds",
            ),
        };
        let headers = [("reason", why), ("www-authenticate", "Basic realm=\"opencluster\"")];
        let headers = &headers[..if status == StatusCode::UNAUTHORIZED { 2 } else { 1 }];
        let mut response = (status, format!("{why}\n")).into_response();
        for (name, value) in headers {
            response.headers_mut().insert(*name, header::HeaderValue::from_static(value));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
        presented(&headers).map(|given| String::from_utf8(given).expect("a text"))
    }

    #[test]
    fn a_program_says_bearer_and_a_browser_basic() {
        assert_eq!(read("Bearer open sesame").as_deref(), Some("open sesame"));
        assert_eq!(read("bearer  x").as_deref(), Some("x"));
        assert_eq!(read("Basic YW55Ym9keTpvcGVuOnNlc2FtZQ==").as_deref(), Some("open:sesame"));
        for wrong in ["Bearer", "Basic !!", "Basic bm9jb2xvbg==", "Digest x", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

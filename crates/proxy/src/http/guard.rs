//! Decides which requests to accept: those with the password, if there is one, and none that a page of
//! another site has made a browser send.

use axum::http::{HeaderMap, StatusCode, header};
use net::{host_name, is_address_or_localhost};
use subtle::ConstantTimeEq;

/// Returns the reason for which a request is refused, if it is.
pub(super) fn refusal(
    headers: &HeaderMap,
    password: Option<&str>,
) -> Option<(StatusCode, &'static str)> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let Some(host) = text(header::HOST) else {
        return Some((StatusCode::BAD_REQUEST, "a request needs a Host header\n"));
    };
    if headers.contains_key(header::ORIGIN) {
        return Some((StatusCode::FORBIDDEN, "requests from web pages are refused\n"));
    }
    // Without a password, nothing else prevents a page from pointing its own name here (DNS rebinding).
    if password.is_none() && !is_address_or_localhost(host_name(host)) {
        let why = "without a password this proxy answers to addresses and localhost only\n";
        return Some((StatusCode::MISDIRECTED_REQUEST, why));
    }
    let given = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    match password {
        Some(password) if !given.is_some_and(|given| is_same(password, given)) => Some((
            StatusCode::UNAUTHORIZED,
            "the header 'Authorization: Bearer PASSWORD' is missing or wrong\n",
        )),
        Some(_) | None => None,
    }
}

fn is_same(wanted: &str, given: &str) -> bool {
    wanted.as_bytes().ct_eq(given.as_bytes()).into()
}

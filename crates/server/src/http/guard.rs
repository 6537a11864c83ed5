//! Rejects requests that are not meant for this node. Called by `routes.rs` before any of its pages.
//!
//! A web page on the internet may let its own name point at 127.0.0.1 and then read the responses from there as
//! if they were its own (DNS rebinding). Such a request carries the page's name in Host: so we answer only to
//! addresses, to `localhost` and to names this node was given. And a request that a browser sends for another
//! site's page says so in Origin.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use net::{host_name, is_address_or_localhost};

/// Maximum size of a request body; no page of ours sends a larger one.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;

/// The names this node answers to, besides addresses and `localhost`.
#[derive(Clone, Debug)]
pub(super) struct HostNames(Vec<String>);

impl HostNames {
    pub(super) fn new(names: Vec<String>) -> HostNames {
        HostNames(names)
    }

    fn includes(&self, host: &str) -> bool {
        is_address_or_localhost(host) || self.0.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

pub(super) async fn check(
    State(names): State<HostNames>,
    request: Request,
    next: Next,
) -> Response {
    match refusal(&names, request.headers()) {
        // The reason is in a header too, for clients that read only headers.
        Some((status, why)) => {
            (status, [("reason", why.trim_end().to_owned())], why).into_response()
        }
        None => next.run(request).await,
    }
}

fn refusal(names: &HostNames, headers: &HeaderMap) -> Option<(StatusCode, String)> {
    let Some(host) = text(headers, header::HOST) else {
        return Some((StatusCode::BAD_REQUEST, "a request needs a Host header\n".to_owned()));
    };
    let name = host_name(host);
    if !names.includes(name) {
        let reason = format!(
            "this node does not answer to the name '{name}': ask for its address, or start it \
             with --http-allowed-hosts {name}\n"
        );
        return Some((StatusCode::MISDIRECTED_REQUEST, reason));
    }
    if text(headers, header::ORIGIN).is_some_and(|origin| !is_from(origin, host)) {
        let reason = "requests from pages of other sites are refused\n";
        return Some((StatusCode::FORBIDDEN, reason.to_owned()));
    }
    let length = text(headers, header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    if length.is_some_and(|length: u64| length > BODY_BYTES_MAX as u64) {
        let reason = format!("a body has at most {BODY_BYTES_MAX} bytes\n");
        return Some((StatusCode::PAYLOAD_TOO_LARGE, reason));
    }
    None
}

/// Returns a header as text. A header that is not valid text becomes `?`, which matches nothing and is refused.
fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

fn is_from(origin: &str, host: &str) -> bool {
    let site = origin.split_once("://").map(|(_, site)| site);
    site.is_some_and(|site| site.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(headers: &[(header::HeaderName, &str)]) -> u16 {
        let names = HostNames::new(vec!["db1.example".to_owned()]);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name.clone(), value.parse().expect("a header"));
        }
        refusal(&names, &map).map_or(200, |(status, _)| status.as_u16())
    }

    #[test]
    fn only_addresses_localhost_and_our_own_names_are_answered() {
        let cases = [
            ("127.0.0.1:7379", 200),
            ("10.1.2.3", 200),
            ("[::1]:7379", 200),
            ("localhost:7379", 200),
            ("LOCALHOST", 200),
            ("db1.example:7379", 200),
            ("evil.example:7379", 421),
            ("localhost.evil.example", 421),
            ("127.0.0.1.evil.example", 421),
            ("", 421),
        ];
        for (host, expected) in cases {
            assert_eq!(status(&[(header::HOST, host)]), expected, "{host}");
        }
        assert_eq!(status(&[]), 400);
    }

    #[test]
    fn only_our_own_page_may_ask_from_a_browser() {
        let cases = [
            ("http://localhost:7379", 200),
            ("http://LOCALHOST:7379", 200),
            ("http://localhost:8080", 403),
            ("https://evil.example", 403),
            ("null", 403),
        ];
        for (origin, expected) in cases {
            let headers = [(header::HOST, "localhost:7379"), (header::ORIGIN, origin)];
            assert_eq!(status(&headers), expected, "{origin}");
        }
    }

    #[test]
    fn a_large_body_is_refused_before_it_is_sent() {
        let with =
            |length| status(&[(header::HOST, "localhost"), (header::CONTENT_LENGTH, length)]);
        assert_eq!(with("65536"), 200);
        assert_eq!(with("65537"), 413);
    }
}

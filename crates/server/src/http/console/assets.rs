//! The page: the HTML, CSS and ES modules of `page/`, embedded in the binary. There is no build step, and
//! nothing comes from elsewhere. A browser caches them and revalidates each time.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! assets {
    ($($name:literal $content_type:ident),* $(,)?) => {
        [$(Asset {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("page/", $name)),
        }),*]
    };
}

/// The first is the page itself.
static ASSETS: [Asset; 17] = assets![
    "index.html" HTML,
    "base.css" CSS,
    "parts.css" CSS,
    "icon.svg" SVG,
    "main.js" JS,
    "live.js" JS,
    "dom.js" JS,
    "format.js" JS,
    "summary.js" JS,
    "buckets.js" JS,
    "draw.js" JS,
    "members.js" JS,
    "moves.js" JS,
    "charts.js" JS,
    "timers.js" JS,
    "slowlog.js" JS,
    "operate.js" JS,
];

/// Content security policy: the page brings all it needs and may connect only to this node.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The ETag of the whole page: another version of the program has another tag.
static TAG: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    ASSETS.iter().for_each(|asset| hash.update(asset.bytes));
    let digits: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
});

pub(super) async fn page(headers: HeaderMap) -> Response {
    asset_response(&ASSETS[0], &headers)
}

pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => asset_response(asset, &headers),
        None => (StatusCode::NOT_FOUND, "no such file in the console\n").into_response(),
    }
}

/// Returns whether the client has this version already.
pub(super) fn has(headers: &HeaderMap, tag: &str) -> bool {
    headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes())
}

fn asset_response(asset: &Asset, headers: &HeaderMap) -> Response {
    let common = [
        (header::ETAG, TAG.as_str()),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    if has(headers, &TAG) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    (common, [(header::CONTENT_TYPE, asset.content_type)], asset.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(asset: &Asset) -> &'static str {
        std::str::from_utf8(asset.bytes).expect("the page is text")
    }

    #[test]
    fn every_part_that_is_imported_is_served_and_none_comes_from_elsewhere() {
        for asset in &ASSETS {
            for line in text(asset).lines().filter(|line| line.starts_with("import ")) {
                let from = line.rsplit("from ").next().unwrap_or_default();
                let name = from.trim_matches(['"', ';']).strip_prefix("./").expect("beside it");
                assert!(ASSETS.iter().any(|asset| asset.name == name), "{}: {line}", asset.name);
            }
            let foreign = text(asset).lines().find(|line| {
                line.contains("://") && !line.contains("www.w3.org") && !line.contains("`http://")
            });
            assert_eq!(foreign, None, "{}", asset.name);
        }
    }

    #[test]
    fn the_page_has_no_script_and_no_style_of_its_own() {
        let page = text(&ASSETS[0]);
        assert!(!page.contains("<style") && !page.contains("style="), "style-src is 'self'");
        assert!(!page.contains("onclick="), "script-src is 'self'");
        for script in page.split("<script").skip(1) {
            assert!(script.starts_with(" type=\"module\" src="), "{script:.60}");
        }
    }
}

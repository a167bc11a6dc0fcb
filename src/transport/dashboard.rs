//! The dashboard: the page that `build.rs` made of `web/`, served from the binary.
//!
//! The page loads nothing but itself and speaks to this hub alone; the policy in its headers keeps it so. Names of
//! assets carry a hash of what they hold, so they may be kept for ever; the page itself is asked for anew each time.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
    VARY,
};
use http::{HeaderMap, StatusCode};

use super::queries;
use super::reply::{self, Fault, Response};

/// One file of the page, also as it travels compressed, where that is worth it.
struct File {
    path: &'static str,
    tag: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/dashboard_files.rs"));

/// Scripts, styles, fonts and connections are the hub's own; nothing may frame the page, and nothing is inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SECURITY: [(HeaderName, &str); 6] = [
    (http::header::CONTENT_SECURITY_POLICY, POLICY),
    (http::header::REFERRER_POLICY, "no-referrer"),
    (http::header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// `GET /`: the dashboard for browsers, the list of endpoints for everybody else.
pub fn root(headers: &HeaderMap) -> Response {
    let mut response = if lists(headers, &ACCEPT, "text/html") { page(headers) } else { queries::root() };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    response
}

/// `GET /assets/{name}`.
///
/// # Errors
/// 404 for what is no part of the page.
pub fn asset(name: &str, headers: &HeaderMap) -> Result<Response, Fault> {
    let found = FILES.iter().find(|file| file.path.strip_prefix("assets/") == Some(name));
    let file = found.ok_or_else(reply::unknown_path)?;
    Ok(send(file, headers, "public, max-age=31536000, immutable"))
}

fn page(headers: &HeaderMap) -> Response {
    match FILES.iter().find(|file| file.path == "index.html") {
        Some(file) => send(file, headers, "no-cache"),
        None => {
            let mut response = reply::typed(StatusCode::OK, "text/html; charset=utf-8", plain_page(MISSING));
            secure(response.headers_mut());
            response
        }
    }
}

/// What is served where the dashboard was not built.
fn plain_page(missing: &str) -> String {
    let endpoints: String = super::paths::LISTED
        .iter()
        .map(|endpoint| format!("<li><code>{}</code></li>", escaped(endpoint)))
        .collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>akashik-hub</title>\
         <h1>akashik-hub is running</h1>\
         <p>Its dashboard is not part of this binary: {}.</p>\
         <p>Install Node.js with npm and build the hub again. Everything else works:</p><ul>{endpoints}</ul></html>",
        escaped(missing)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn send(file: &File, headers: &HeaderMap, caching: &'static str) -> Response {
    let tag = format!("\"{}\"", file.tag);
    let known = lists(headers, &IF_NONE_MATCH, &tag) || lists(headers, &IF_NONE_MATCH, &format!("W/{tag}"));
    let (body, encoding) = match (file.brotli, file.gzip) {
        (Some(brotli), _) if lists(headers, &ACCEPT_ENCODING, "br") => (brotli, Some("br")),
        (_, Some(gzip)) if lists(headers, &ACCEPT_ENCODING, "gzip") => (gzip, Some("gzip")),
        _ => (file.plain, None),
    };
    let mut response = if known {
        let mut response = Response::new(Default::default());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        reply::typed(StatusCode::OK, content_type(file.path), body)
    };
    let sent = response.headers_mut();
    if let Some(encoding) = encoding.filter(|_| !known) {
        sent.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    // Weak: the same page in another encoding is the same.
    if let Ok(tag) = HeaderValue::from_str(&format!("W/{tag}")) {
        sent.insert(ETAG, tag);
    }
    sent.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    sent.insert(VARY, HeaderValue::from_static("accept-encoding"));
    secure(sent);
    response
}

fn secure(headers: &mut HeaderMap) {
    for (name, value) in SECURITY {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("png") => "image/png",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Whether a header that is a list names this, and does not refuse it by `q=0`.
fn lists(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().is_some_and(|found| found.eq_ignore_ascii_case(wanted));
        let refuses = |part: &str| part.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0f32));
        named && !parts.any(refuses)
    })
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;

    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    const FILE: File =
        File { path: "assets/a-1.js", tag: "00ff", plain: b"plain", brotli: Some(b"br"), gzip: Some(b"gz") };

    #[test]
    fn encodings_are_those_that_are_accepted() {
        for (accepted, sent) in [
            ("gzip, deflate, br", Some("br")),
            ("gzip", Some("gzip")),
            ("br;q=0, gzip;q=0.5", Some("gzip")),
            ("identity", None),
            ("brotli", None),
        ] {
            let response = send(&FILE, &headers(&[(ACCEPT_ENCODING, accepted)]), "no-cache");
            let encoding = response.headers().get(CONTENT_ENCODING).map(|value| value.to_str().unwrap());
            assert_eq!(encoding, sent, "{accepted}");
        }
    }

    #[test]
    fn what_is_known_is_not_sent_again() {
        for (known, status) in [("W/\"00ff\"", 304), ("\"x\", \"00ff\"", 304), ("\"00fe\"", 200)] {
            let response = send(&FILE, &headers(&[(IF_NONE_MATCH, known)]), "no-cache");
            assert_eq!(response.status(), status, "{known}");
            assert_eq!(response.headers()[ETAG], "W/\"00ff\"");
            assert!(response.headers().contains_key("content-security-policy"));
        }
    }

    #[test]
    fn browsers_get_a_page_and_others_the_list() {
        let kind = |accept| {
            let response = root(&headers(&[(ACCEPT, accept)]));
            response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned()
        };
        assert_eq!(kind("text/html,application/xhtml+xml,*/*;q=0.8"), "text/html; charset=utf-8");
        assert_eq!((kind("*/*"), kind("application/json")), (reply::JSON.to_owned(), reply::JSON.to_owned()));
        assert!(asset("../index.html", &HeaderMap::new()).is_err());
        assert!(asset("index.html", &HeaderMap::new()).is_err());
    }

    #[test]
    fn the_plain_page_says_what_is_missing() {
        let page = plain_page("`npm ci` failed: <no network>");
        assert!(page.contains("&lt;no network&gt;") && page.contains("POST /v1/{operation}"), "{page}");
    }
}

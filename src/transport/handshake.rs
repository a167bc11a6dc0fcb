//! The WebSocket handshake (RFC 6455, section 4.2): checked here, answered with 101 or a JSON error.

use http::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, StatusCode, Version};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::reply::{Fault, Response};

/// The subprotocol; optional, echoed when asked for.
pub const SUBPROTOCOL: &str = "akashik.v0.1";

/// Checks a handshake and makes its answer.
///
/// # Errors
/// 426 for what is no WebSocket handshake of version 13, 400 for a broken one.
pub fn accept(version: Version, headers: &HeaderMap) -> Result<Response, Fault> {
    if version < Version::HTTP_11
        || !lists(headers, &UPGRADE, "websocket")
        || !lists(headers, &CONNECTION, "upgrade")
    {
        return Err(upgrade_required("This endpoint speaks WebSocket only."));
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version.as_bytes().trim_ascii() != b"13") {
        return Err(upgrade_required("Sec-WebSocket-Version is not 13."));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map(|key| key.as_bytes().trim_ascii());
    let key = key.filter(|key| is_key(key)).ok_or_else(|| {
        Fault::at(
            StatusCode::BAD_REQUEST,
            "Sec-WebSocket-Key is missing or not 16 bytes in base64.",
            "Connect with a WebSocket client (RFC 6455).",
        )
    })?;
    let mut response = Response::new(Default::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(value) = HeaderValue::from_str(&derive_accept_key(key)) {
        answer.insert(SEC_WEBSOCKET_ACCEPT, value);
    }
    if lists(headers, &SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        answer.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    }
    Ok(response)
}

/// A handshake on a connection that cannot be taken over.
pub fn not_upgradable() -> Fault {
    upgrade_required("This connection cannot be taken over by a WebSocket.")
}

fn upgrade_required(message: &'static str) -> Fault {
    Fault::at(StatusCode::UPGRADE_REQUIRED, message, "Connect with a WebSocket client (RFC 6455).")
        .with_header(UPGRADE, "websocket")
        .with_header(CONNECTION, "upgrade")
        .with_header(SEC_WEBSOCKET_VERSION, "13")
}

/// Whether a header, a list of tokens, has this one.
fn lists(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(token))
}

/// 16 bytes in base64 are 22 digits and two signs of padding.
fn is_key(key: &[u8]) -> bool {
    let digit = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(change: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in [
            ("upgrade", "websocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ]
        .iter()
        .chain(change)
        {
            map.insert(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn the_example_of_the_rfc_is_accepted() {
        let response = accept(Version::HTTP_11, &headers(&[])).unwrap();
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(!response.headers().contains_key("sec-websocket-protocol"));
        let asked = headers(&[("sec-websocket-protocol", "other, akashik.v0.1, akashik.token.x")]);
        let response = accept(Version::HTTP_11, &asked).unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], "akashik.v0.1");
    }

    #[test]
    fn others_are_told_what_is_missing() {
        for (change, status) in [
            (("upgrade", "h2c"), 426),
            (("connection", "close"), 426),
            (("sec-websocket-version", "8"), 426),
            (("sec-websocket-key", "short"), 400),
            (("sec-websocket-key", "dGhlIHNhbXBsZSBub25j*Q=="), 400),
        ] {
            assert_eq!(
                accept(Version::HTTP_11, &headers(&[change])).unwrap_err().status(),
                status,
                "{change:?}"
            );
        }
        assert_eq!(accept(Version::HTTP_10, &headers(&[])).unwrap_err().status(), 426);
        assert_eq!(accept(Version::HTTP_11, &HeaderMap::new()).unwrap_err().status(), 426);
    }
}

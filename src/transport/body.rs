//! A request's body: read within its bounds, or thrown away politely.

use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::{Stream, StreamExt};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http::{HeaderMap, StatusCode};
use serde_json::json;
use tokio::time::timeout;

use super::reply::Fault;
use crate::limits::{BODY_TIMEOUT_MS, DISCARD_MAX_BYTES, DISCARD_MS};
use crate::protocol::{ErrorCode, Refusal};

/// A body that is still on its way.
pub struct Upload {
    parts: Pin<Box<dyn Stream<Item = Result<Bytes, warp::Error>> + Send>>,
    declared: Option<u64>,
    /// The peer waits for a word before it sends; the first read gives it.
    waits: bool,
    ended: bool,
}

impl Upload {
    /// Takes over what warp hands out.
    pub fn new<B: Buf>(
        headers: &HeaderMap,
        parts: impl Stream<Item = Result<B, warp::Error>> + Send + 'static,
    ) -> Self {
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let parts = parts.map(|part| part.map(|mut buf| buf.copy_to_bytes(buf.remaining())));
        Self {
            parts: Box::pin(parts),
            declared: length.and_then(|text| text.parse().ok()),
            waits: headers.contains_key(EXPECT),
            ended: false,
        }
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// 413 above `limit` bytes, 408 when it takes too long, 400 when it breaks off.
    pub async fn read(&mut self, limit: usize) -> Result<Bytes, Fault> {
        if self.declared.is_some_and(|length| length > limit as u64) {
            return Err(too_large(limit).into());
        }
        match timeout(Duration::from_millis(BODY_TIMEOUT_MS), self.collect(limit)).await {
            Ok(body) => body,
            Err(_) => {
                self.ended = true;
                Err(Fault::at(
                    StatusCode::REQUEST_TIMEOUT,
                    format!("The body did not arrive within {BODY_TIMEOUT_MS} ms."),
                    "Send the request again, the body at once.",
                ))
            }
        }
    }

    async fn collect(&mut self, limit: usize) -> Result<Bytes, Fault> {
        self.waits = false;
        let mut whole = BytesMut::new();
        let mut only: Option<Bytes> = None;
        while let Some(part) = self.parts.next().await {
            let Ok(part) = part else {
                self.ended = true;
                return Err(Fault::at(
                    StatusCode::BAD_REQUEST,
                    "The body broke off or is not framed as HTTP says.",
                    "Send the request again with a whole body.",
                ));
            };
            if whole.len() + only.as_ref().map_or(0, Bytes::len) + part.len() > limit {
                return Err(too_large(limit).into());
            }
            // Nearly every body comes in one part, which is then not copied.
            match only.take() {
                None if whole.is_empty() => only = Some(part),
                first => {
                    whole.extend_from_slice(first.as_deref().unwrap_or_default());
                    whole.extend_from_slice(&part);
                }
            }
        }
        self.ended = true;
        Ok(only.unwrap_or_else(|| whole.freeze()))
    }

    /// Reads on without keeping anything, within bounds, so that the peer gets to read its answer.
    pub async fn discard(&mut self) {
        let hopeless = self.declared.is_some_and(|length| length > DISCARD_MAX_BYTES as u64);
        if self.ended || self.waits || hopeless {
            return;
        }
        let _ = timeout(Duration::from_millis(DISCARD_MS), async {
            let mut seen = 0;
            while let Some(Ok(part)) = self.parts.next().await {
                seen += part.len();
                if seen > DISCARD_MAX_BYTES {
                    break;
                }
            }
        })
        .await;
    }
}

fn too_large(limit: usize) -> Refusal {
    Refusal::new(
        ErrorCode::MessageTooLarge,
        format!("The message is larger than {limit} bytes."),
        "Record the essence, or split it into several messages.",
    )
    .with("limit", json!(limit))
}

/// Whether the body may be read as JSON: said to be so, or nothing said.
///
/// # Errors
/// 415 for another type or another character set.
pub fn check_type(headers: &HeaderMap) -> Result<(), Fault> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let Some(value) = types.next() else { return Ok(()) };
    let is_json = types.next().is_none() && value.to_str().is_ok_and(is_json);
    if is_json {
        return Ok(());
    }
    Err(Fault::at(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "The body is not said to be JSON.",
        "Send JSON in UTF-8 with Content-Type: application/json.",
    ))
}

fn is_json(text: &str) -> bool {
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    essence.eq_ignore_ascii_case("application/json")
        && parts.filter(|part| !part.is_empty()).all(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            !name.trim().eq_ignore_ascii_case("charset")
                || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload(parts: &[&'static [u8]]) -> Upload {
        let parts: Vec<_> = parts.iter().map(|part| Ok::<_, warp::Error>(Bytes::from_static(part))).collect();
        Upload::new(&HeaderMap::new(), futures::stream::iter(parts))
    }

    #[tokio::test]
    async fn the_limit_is_exact_however_the_body_is_cut() {
        for parts in [&[&b"12345678"[..]][..], &[b"1234", b"5678"], &[b"1", b"", b"2345", b"678"]] {
            assert_eq!(upload(parts).read(8).await.unwrap(), &b"12345678"[..]);
            assert_eq!(upload(parts).read(7).await.unwrap_err().status(), 413);
        }
        assert_eq!(upload(&[]).read(8).await.unwrap(), Bytes::new());
    }

    #[tokio::test]
    async fn a_declared_length_is_judged_before_a_byte_is_read() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, 9.into());
        let never = futures::stream::pending::<Result<Bytes, warp::Error>>();
        assert_eq!(Upload::new(&headers, never).read(8).await.unwrap_err().status(), 413);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_a_timeout() {
        let never = futures::stream::pending::<Result<Bytes, warp::Error>>();
        let mut upload = Upload::new(&HeaderMap::new(), never);
        assert_eq!(upload.read(8).await.unwrap_err().status(), 408);
    }

    #[test]
    fn content_types() {
        for text in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json; profile=x",
            "application/json;",
        ] {
            assert!(is_json(text), "{text:?}");
        }
        for text in [
            "",
            "text/plain",
            "application/json; charset=latin1",
            "application/jsonx",
            "text/json",
            "application/x-www-form-urlencoded",
        ] {
            assert!(!is_json(text), "{text:?}");
        }
    }
}

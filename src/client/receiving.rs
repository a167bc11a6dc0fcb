//! The receiving half of the link: hands out replies and what is pushed.

use std::borrow::Cow;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::SplitStream;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::Message;
use tracing::debug;

use super::error::ClientError;
use super::identity::Socket;
use super::link::{End, Messages};
use crate::limits::{SILENCE_MAX_MS, UNREAD_MAX_MS};
use crate::protocol::ErrorBody;

/// The receiving half.
pub(super) struct Receiving<'a> {
    messages: &'a Messages,
    /// Something was received, so the connection was of use.
    pub useful: bool,
    /// The agent was answered as a registered one.
    pub joined: bool,
    /// The socket was left unread for as long as it may be.
    overdue: bool,
}

/// What a reply's envelope is read for.
#[derive(Deserialize)]
struct ReplyFrame<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    epoch: u64,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// What tells an error body from a response: no response has these keys.
#[derive(Deserialize)]
struct Probe {
    code: Option<IgnoredAny>,
    suggested_action: Option<IgnoredAny>,
}

impl<'a> Receiving<'a> {
    /// On a new connection.
    pub fn new(messages: &'a Messages) -> Self {
        Self { messages, useful: false, joined: false, overdue: false }
    }

    /// Takes frames until the connection is lost.
    pub async fn run(&mut self, stream: &mut SplitStream<Socket>) -> End {
        let silence = Duration::from_millis(SILENCE_MAX_MS);
        let lost = |code, why: String| End::Lost { code, why };
        loop {
            self.hold_back().await;
            let deadline = Instant::now() + silence;
            match timeout_at(deadline, stream.next()).await {
                Err(_) => return lost(None, format!("nothing heard for {silence:?}")),
                Ok(None) => return lost(None, "the hub closed the connection".into()),
                Ok(Some(Err(error))) => return lost(None, error.to_string()),
                Ok(Some(Ok(Message::Text(text)))) => self.take(&text),
                Ok(Some(Ok(Message::Close(frame)))) => {
                    let why = frame.as_ref().map_or_else(String::new, ToString::to_string);
                    return lost(frame.map(|f| f.code), format!("the hub closed the connection: {why}"));
                }
                // Pings are answered by the stream itself while it is polled.
                Ok(Some(Ok(_))) => {}
            }
        }
    }

    /// While no taker has room and nobody waits for a reply, nothing is read: what a reader leaves in the socket, the
    /// hub need not send again. Not for too long, for the hub would close the connection.
    async fn hold_back(&mut self) {
        let Messages { attached, .. } = self.messages;
        if !attached.is_full() {
            self.overdue = false;
            return;
        }
        let until = Instant::now() + Duration::from_millis(UNREAD_MAX_MS);
        while !self.overdue && attached.is_full() && !self.messages.is_awaited() {
            self.overdue = timeout_at(until, attached.bell.room.notified()).await.is_err();
        }
    }

    /// Takes a frame: a reply to one of ours, or something that was pushed.
    fn take(&mut self, text: &str) {
        let frame: ReplyFrame<'_> = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(error) => return debug!(%error, "a frame that is no envelope is ignored"),
        };
        let Messages { identity, attached, .. } = self.messages;
        self.useful = true;
        identity.saw(frame.epoch);
        let Some(number) = identity.number(&frame.id) else {
            return attached.push(&frame.id, frame.payload);
        };
        let outcome = read_outcome(frame.payload);
        self.joined |= outcome.is_ok();
        if !attached.answered(number, &outcome) && !self.messages.answer(number, outcome) {
            debug!(id = %frame.id, "nobody waits for this reply any more");
        }
    }
}

/// Tells a response from a no.
fn read_outcome(payload: &RawValue) -> Result<Box<RawValue>, ClientError> {
    let unreadable = |error: serde_json::Error| {
        ClientError::Protocol(Cow::Owned(format!("unreadable reply payload: {error}")))
    };
    let probe: Probe = serde_json::from_str(payload.get()).map_err(unreadable)?;
    if probe.code.is_some() && probe.suggested_action.is_some() {
        let body: ErrorBody = serde_json::from_str(payload.get()).map_err(unreadable)?;
        return Err(ClientError::Refused(Box::new(body)));
    }
    Ok(payload.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ErrorCode, Operation, Refusal};

    #[test]
    fn a_no_is_told_from_a_response() {
        let raw = |text: String| RawValue::from_string(text).unwrap();
        let no = Refusal::new(ErrorCode::UnitNotFound, "m", "s").body(Some(Operation::Retract));
        let outcome = read_outcome(&raw(serde_json::to_string(&no).unwrap()));
        assert!(matches!(outcome, Err(ClientError::Refused(body)) if *body == no));
        let warned = r#"{"status":"accepted","warning":{"code":"ENRICHMENT_FAILED"}}"#;
        assert_eq!(read_outcome(&raw(warned.into())).unwrap().get(), warned);
        assert!(matches!(read_outcome(&raw("[1]".into())), Err(ClientError::Protocol(_))));
    }
}

//! Who a client is to a hub: the envelopes that it writes, and how it connects.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Utf8Bytes};

use super::ClientOptions;
use super::address::HubAddress;
use super::error::ClientError;
use crate::limits::{EPOCH_CEILING, REPLY_MAX_BYTES};
use crate::protocol::{ErrorBody, Operation, PROTOCOL, RequestEnvelope, VERSION};

/// How long one attempt to connect may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Largest message taken from a hub: its largest reply, and the envelope around it.
const MESSAGE_IN_MAX_BYTES: usize = REPLY_MAX_BYTES + 64 * 1024;

/// The connection to a hub.
pub(super) type Socket = WebSocketStream<TcpStream>;

/// Who speaks to which Field, and what it has seen.
#[derive(Debug)]
pub(super) struct Identity {
    pub agent_id: Arc<str>,
    session_id: Option<Arc<str>>,
    token: Option<String>,
    address: HubAddress,
    /// Message ids are this and a number: unique, also across restarts of whoever uses the client.
    prefix: String,
    epoch: AtomicU64,
    /// Largest message that the hub takes, once it has said so.
    message_max_bytes: AtomicUsize,
}

impl Identity {
    pub fn new(address: HubAddress, options: &ClientOptions) -> Self {
        Self {
            agent_id: options.agent_id.as_str().into(),
            session_id: options.session_id.as_deref().map(Arc::from),
            token: options.token.clone(),
            address,
            prefix: format!("{:032x}-", rand::random::<u128>()),
            epoch: AtomicU64::new(0),
            message_max_bytes: AtomicUsize::new(usize::MAX),
        }
    }

    /// Learns how large a message may be: a larger one would only cost everybody the connection.
    pub fn limit_messages(&self, bytes: usize) {
        self.message_max_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes an epoch that the hub has shown.
    pub fn saw(&self, epoch: u64) {
        if epoch < EPOCH_CEILING {
            self.epoch.fetch_max(epoch, Ordering::Relaxed);
        }
    }

    /// The greatest epoch seen.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The text of a message.
    pub fn frame(
        &self,
        number: u64,
        operation: Operation,
        payload: Box<RawValue>,
    ) -> Result<Utf8Bytes, ClientError> {
        let envelope = RequestEnvelope {
            protocol: PROTOCOL.into(),
            version: VERSION.into(),
            id: format!("{}{number}", self.prefix).into(),
            operation: operation.name().into(),
            agent_id: Arc::clone(&self.agent_id),
            session_id: self.session_id.clone(),
            epoch: self.epoch(),
            payload,
        };
        let text = serde_json::to_string(&envelope)
            .map_err(|error| ClientError::Protocol(Cow::Owned(format!("unwritable message: {error}"))))?;
        let most = self.message_max_bytes.load(Ordering::Relaxed);
        if text.len() > most {
            let why = format!("the message has {} bytes; the hub takes at most {most}", text.len());
            return Err(ClientError::Protocol(Cow::Owned(why)));
        }
        Ok(text.into())
    }

    /// The number in a message id of this client.
    pub fn number(&self, id: &str) -> Option<u64> {
        id.strip_prefix(&self.prefix)?.parse().ok()
    }

    /// Connects, within bounds.
    pub async fn connect(&self) -> Result<Socket, ClientError> {
        timeout(CONNECT_PATIENCE, self.handshake())
            .await
            .map_err(|_| ClientError::Unreachable(format!("no handshake within {CONNECT_PATIENCE:?}")))?
    }

    async fn handshake(&self) -> Result<Socket, ClientError> {
        let unreachable = |error: &dyn std::fmt::Display| {
            ClientError::Unreachable(format!("{} at {}", error, self.address.authority()))
        };
        let stream = TcpStream::connect(self.address.authority()).await.map_err(|e| unreachable(&e))?;
        stream.set_nodelay(true).map_err(|e| unreachable(&e))?;
        let mut request = self.address.websocket().into_client_request().map_err(|e| unreachable(&e))?;
        if let Some(token) = &self.token {
            let value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| ClientError::Protocol(Cow::Borrowed("the token is no header value")))?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let config = WebSocketConfig::default()
            .read_buffer_size(16 * 1024)
            .write_buffer_size(16 * 1024)
            .max_message_size(Some(MESSAGE_IN_MAX_BYTES))
            .max_frame_size(Some(MESSAGE_IN_MAX_BYTES));
        match tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(WsError::Http(response)) => {
                let body = response.body().as_deref().unwrap_or_default();
                Err(match serde_json::from_slice::<ErrorBody>(body) {
                    Ok(body) => ClientError::Refused(Box::new(body)),
                    Err(_) if response.status().is_server_error() => unreachable(&response.status()),
                    Err(_) => ClientError::Protocol(Cow::Owned(format!(
                        "{} to the WebSocket handshake",
                        response.status()
                    ))),
                })
            }
            Err(WsError::Io(error)) => Err(unreachable(&error)),
            Err(error) => Err(ClientError::Protocol(Cow::Owned(error.to_string()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Envelope;

    fn identity() -> Identity {
        Identity::new("http://h:1".parse().unwrap(), &ClientOptions::new("a\"gent").in_session("s"))
    }

    #[test]
    fn messages_are_envelopes_with_ids_of_their_own() {
        let (one, other) = (identity(), identity());
        let payload = || RawValue::from_string("{\"x\":1}".into()).unwrap();
        one.saw(41);
        one.saw(7);
        one.saw(EPOCH_CEILING);
        let frame = one.frame(7, Operation::Record, payload()).unwrap();
        let envelope = Envelope::parse(&frame).unwrap();
        assert_eq!((envelope.epoch, envelope.agent_id.as_ref()), (41, "a\"gent"));
        assert_eq!(envelope.session_id.as_deref(), Some("s"));
        assert_eq!(one.number(&envelope.id), Some(7));
        assert_eq!(other.number(&envelope.id), None, "another client's ids differ");
        assert_eq!(one.number("push-sub-1-4.0"), None);
        one.limit_messages(frame.len());
        assert!(one.frame(7, Operation::Record, payload()).is_ok());
        one.limit_messages(frame.len() - 1);
        assert!(matches!(one.frame(7, Operation::Record, payload()), Err(ClientError::Protocol(_))));
    }
}

//! A bare WebSocket of one agent, and the messages that go over it.

use std::fmt::Write;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::super::exit::Failure;
use crate::client::HubAddress;
use crate::protocol::{Operation, PROTOCOL, VERSION};

/// How long any answer may take before the measurement is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A socket that speaks for one agent.
pub(super) struct Wire {
    /// The agent.
    pub agent: String,
    socket: WebSocketStream<TcpStream>,
    sent: u64,
}

/// Writes an envelope around a payload that `payload` writes. `agent` needs no escapes.
pub(super) fn envelope(
    agent: &str,
    number: u64,
    operation: Operation,
    payload: impl FnOnce(&mut String),
) -> String {
    let mut text = String::with_capacity(1024);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        r#"{{"protocol":"{PROTOCOL}","version":"{VERSION}","id":"{agent}-{number}","operation":"{operation}","agent_id":"{agent}","session_id":null,"epoch":0,"payload":"#,
    );
    payload(&mut text);
    text.push('}');
    text
}

impl Wire {
    /// Connects and registers.
    pub async fn join(address: &HubAddress, token: Option<&str>, agent: String) -> Result<Self, Failure> {
        let unreachable =
            |error: &dyn std::fmt::Display| Failure::Unreachable(format!("{}: {error}", address.authority()));
        let stream = TcpStream::connect(address.authority()).await.map_err(|e| unreachable(&e))?;
        stream.set_nodelay(true)?;
        let mut request = address.websocket().into_client_request().map_err(|e| unreachable(&e))?;
        if let Some(token) = token {
            let value = HeaderValue::try_from(format!("Bearer {token}")).map_err(Failure::usage)?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let config = WebSocketConfig::default().read_buffer_size(16 * 1024).write_buffer_size(32 * 1024);
        let (socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(config))
            .await
            .map_err(|e| unreachable(&e))?;
        let mut wire = Self { agent, socket, sent: 0 };
        let payload = format!(r#"{{"id":"{}","role":"bench","interests":[]}}"#, wire.agent);
        wire.feed(Operation::Register, |out| out.push_str(&payload)).await?;
        wire.flush().await?;
        let reply = wire.reply().await?;
        if !reply.contains(r#""status":"registered""#) {
            return Err(Failure::Refused(reply.to_string()));
        }
        Ok(wire)
    }

    /// Queues a message.
    pub async fn feed(
        &mut self,
        operation: Operation,
        payload: impl FnOnce(&mut String),
    ) -> Result<usize, Failure> {
        let text = envelope(&self.agent, self.sent, operation, payload);
        self.sent += 1;
        let bytes = text.len();
        self.socket.feed(Message::text(text)).await.map_err(lost)?;
        Ok(bytes)
    }

    /// Sends what is queued.
    pub async fn flush(&mut self) -> Result<(), Failure> {
        self.socket.flush().await.map_err(lost)
    }

    /// The next reply; replies come in the order of the requests.
    pub async fn reply(&mut self) -> Result<Utf8Bytes, Failure> {
        timeout(PATIENCE, self.next())
            .await
            .map_err(|_| Failure::Unreachable(format!("no answer within {PATIENCE:?}")))?
    }

    async fn next(&mut self) -> Result<Utf8Bytes, Failure> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(Message::Close(frame))) => {
                    let why = frame.map_or_else(String::new, |f| f.to_string());
                    return Err(lost(format!("the hub closed the connection: {why}")));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(lost(error)),
                None => return Err(lost("the hub closed the connection")),
            }
        }
    }

    /// Leaves the Field and closes.
    pub async fn leave(mut self) -> Result<(), Failure> {
        let payload = format!(r#"{{"agent_id":"{}"}}"#, self.agent);
        self.feed(Operation::Deregister, |out| out.push_str(&payload)).await?;
        self.flush().await?;
        self.reply().await?;
        self.socket.close(None).await.map_err(lost)
    }
}

fn lost(error: impl std::fmt::Display) -> Failure {
    Failure::Unreachable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Envelope;

    #[test]
    fn what_is_sent_is_an_envelope() {
        let text = envelope("bench-1-2", 7, Operation::Record, |out| out.push_str("{\"a\":1}"));
        let read = Envelope::parse(&text).unwrap();
        assert_eq!((read.id.as_ref(), read.payload.get()), ("bench-1-2-7", "{\"a\":1}"));
    }
}

//! One request over HTTP/1.1, for callers that come and go, such as the command line.
//!
//! An agent that once held a WebSocket is taken for failed some time after it drops (section 4); one that
//! only ever used HTTP is not. So what lives for a moment asks over HTTP.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::value::RawValue;
use tokio::net::TcpStream;

use super::address::HubAddress;
use super::error::ClientError;
use crate::limits::REPLY_MAX_BYTES;
use crate::protocol::{Operation, PROTOCOL, RequestEnvelope, VERSION};

/// Largest response taken from a hub.
const RESPONSE_MAX_BYTES: usize = REPLY_MAX_BYTES + 64 * 1024;

/// Who asks which hub.
///
/// ```no_run
/// # async fn example() -> Result<(), akashik_hub::client::ClientError> {
/// use std::time::Duration;
///
/// use akashik_hub::client::http::HttpClient;
///
/// let address = "http://127.0.0.1:7420".parse()?;
/// let hub = HttpClient { address, token: None, patience: Duration::from_secs(5) };
/// println!("{}", hub.get("field/status", None).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct HttpClient {
    /// The hub and the Field.
    pub address: HubAddress,
    /// Sent as `Authorization: Bearer …`.
    pub token: Option<String>,
    /// How long one exchange may take.
    pub patience: Duration,
}

impl HttpClient {
    /// Sends one operation's envelope and returns the response payload, as JSON text.
    /// `message_id` names the message for repeats; without it a fresh one is made.
    ///
    /// # Errors
    /// As in [`HttpClient::get`].
    pub async fn operate(
        &self,
        operation: Operation,
        agent_id: &str,
        session_id: Option<&str>,
        message_id: Option<&str>,
        payload: Box<RawValue>,
    ) -> Result<Box<RawValue>, ClientError> {
        let envelope = RequestEnvelope {
            protocol: PROTOCOL.into(),
            version: VERSION.into(),
            id: message_id.map_or_else(|| format!("{:032x}", rand::random::<u128>()), str::to_owned).into(),
            operation: operation.name().into(),
            agent_id: agent_id.into(),
            session_id: session_id.map(Into::into),
            epoch: 0,
            payload,
        };
        let body = serde_json::to_vec(&envelope).map_err(protocol)?;
        let path = self.address.path(&operation.name().to_ascii_lowercase());
        self.exchange(Method::POST, &path, None, body.into()).await
    }

    /// Reads something under `/v1/`, as an agent or as the public.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the hub's error body, [`ClientError::Unreachable`] when nobody answers,
    /// [`ClientError::Protocol`] when what answers is no hub.
    pub async fn get(&self, rest: &str, agent_id: Option<&str>) -> Result<Box<RawValue>, ClientError> {
        self.exchange(Method::GET, &self.address.path(rest), agent_id, Bytes::new()).await
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        agent_id: Option<&str>,
        body: Bytes,
    ) -> Result<Box<RawValue>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.authority())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(agent) = agent_id {
            request =
                request.header("akashik-agent", HeaderValue::from_bytes(agent.as_bytes()).map_err(protocol)?);
        }
        let request = request.body(Full::new(body)).map_err(protocol)?;
        let (status, body) = tokio::time::timeout(self.patience, self.send(request))
            .await
            .map_err(|_| ClientError::Unreachable(format!("no answer within {:?}", self.patience)))??;
        read_answer(status, &body)
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), ClientError> {
        let authority = self.address.authority();
        let unreachable =
            |error: &dyn std::fmt::Display| ClientError::Unreachable(format!("{authority}: {error}"));
        let stream = TcpStream::connect(authority).await.map_err(|e| unreachable(&e))?;
        stream.set_nodelay(true).map_err(|e| unreachable(&e))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| unreachable(&e))?;
        // Its errors reach the request below; it ends with the sender.
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(|e| unreachable(&e))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), RESPONSE_MAX_BYTES)
            .collect()
            .await
            .map_err(|e| unreachable(&e))?
            .to_bytes();
        connection.abort();
        Ok((status, body))
    }
}

fn protocol(error: impl std::fmt::Display) -> ClientError {
    ClientError::Protocol(Cow::Owned(error.to_string()))
}

fn read_answer(status: StatusCode, body: &[u8]) -> Result<Box<RawValue>, ClientError> {
    let no_hub = || protocol(format!("status {status} with a body that no hub sends"));
    if status.is_success() {
        return serde_json::from_slice(body).map_err(|_| no_hub());
    }
    Err(serde_json::from_slice(body).map_or_else(|_| no_hub(), |body| ClientError::Refused(Box::new(body))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ErrorCode, Refusal};

    #[test]
    fn only_json_is_an_answer() {
        assert_eq!(read_answer(StatusCode::OK, b" {\"a\": 1} ").unwrap().get(), "{\"a\": 1}");
        assert!(matches!(read_answer(StatusCode::OK, b"<html>"), Err(ClientError::Protocol(_))));
        assert!(matches!(read_answer(StatusCode::BAD_GATEWAY, b""), Err(ClientError::Protocol(_))));
        let no = serde_json::to_vec(&Refusal::new(ErrorCode::Forbidden, "m", "s").body(None)).unwrap();
        assert!(matches!(read_answer(StatusCode::FORBIDDEN, &no), Err(ClientError::Refused(_))));
    }
}

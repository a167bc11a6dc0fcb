//! Starts a hub on a free port and speaks to it over plain sockets, so that nothing is smoothed over by a
//! client library.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod mcp;
pub mod outside;
pub mod subscriber;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use akashik_hub::config::Config;
use akashik_hub::hub::Hub;
use akashik_hub::log::MemoryLog;
use akashik_hub::protocol::{Envelope, Refusal};
use akashik_hub::transport;
use futures::{SinkExt, StreamExt};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// No test waits longer than this for anything.
pub const DEADLINE: Duration = Duration::from_secs(15);

/// Awaits something that must come.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not come within {DEADLINE:?}"),
    }
}

/// Awaits a condition that must become true.
pub async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    soon(what, async {
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        while !is_true() {
            looks.tick().await;
        }
    })
    .await;
}

/// Asks a hub of this process without a door in between; the payload of its answer.
pub async fn ask(hub: &Hub, agent: &str, id: &str, operation: &str, payload: Value) -> Value {
    let answer = outcome(hub, agent, id, operation, payload).await.expect("no refusal");
    serde_json::from_str(answer.get()).unwrap()
}

/// The same where it may be refused.
pub async fn outcome(
    hub: &Hub,
    agent: &str,
    id: &str,
    operation: &str,
    payload: Value,
) -> Result<Box<RawValue>, Refusal> {
    let text = envelope(id, operation, agent, payload).to_string();
    let field = hub.field(None).unwrap();
    let message = field.read(&Envelope::parse(&text).unwrap());
    let answer = soon("an answer", async { field.submit(message, None).await.await }).await;
    answer.outcome.map(|reply| (*reply).to_owned())
}

/// A hub that serves on a free port of the loopback address.
pub struct Running {
    pub hub: Arc<Hub>,
    pub addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<io::Result<()>>>,
    _data: TempDir,
}

/// Starts a hub as it comes.
pub async fn start() -> Running {
    start_with(|_| {}).await
}

/// Starts a hub with another configuration.
pub async fn start_with(change: impl FnOnce(&mut Config)) -> Running {
    let data = tempfile::tempdir().unwrap();
    let mut config = Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data: data.path().to_owned(),
        fields: vec!["default".into(), "other".into()],
        ..Config::default()
    };
    change(&mut config);
    let hub = Hub::start(config).await.unwrap();
    serve(hub, data).await
}

/// Starts a hub whose log is in memory, for what is about many operations and not about the disk.
pub async fn start_in_memory(change: impl FnOnce(&mut Config)) -> Running {
    let data = tempfile::tempdir().unwrap();
    let mut config = Config { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Config::default() };
    change(&mut config);
    let hub = Hub::start_on(config, vec![Box::new(MemoryLog::new())]).await.unwrap();
    serve(hub, data).await
}

async fn serve(hub: Arc<Hub>, data: TempDir) -> Running {
    let listener = TcpListener::bind(hub.config().listen).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    let served = tokio::spawn(transport::serve(Arc::clone(&hub), listener, shutdown));
    Running { hub, addr, stop: Some(stop), served: Some(served), _data: data }
}

impl Running {
    /// Tells the doors to close, without waiting for it.
    pub fn close(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Closes the doors and waits until every connection has ended.
    pub async fn drain(&mut self) {
        self.close();
        if let Some(served) = self.served.take() {
            soon("the end of serving", served).await.unwrap().unwrap();
        }
    }

    /// Closes the doors and stops the hub.
    pub async fn stop(mut self) {
        self.drain().await;
        self.hub.stop().await;
    }

    /// Registers an agent.
    pub async fn register(&self, agent: &str) {
        let payload = json!({ "id": agent, "role": "researcher" }).to_string();
        let reply = self.post("/v1/register", &[("Akashik-Agent", agent)], payload).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    /// Records a finding; its unit's id.
    pub async fn record(&self, agent: &str, content: &str) -> String {
        let reply = self.post("/v1/record", &[("Akashik-Agent", agent)], finding(content).to_string()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["memory_unit_id"].as_str().unwrap().to_owned()
    }

    /// GET without more headers.
    pub async fn get(&self, path: &str) -> Reply {
        self.request("GET", path, &[], "").await
    }

    /// POST of a JSON text.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        self.request("POST", path, headers, body).await
    }

    /// A request with Host, Content-Length and `Connection: close`; a header given here replaces these.
    pub async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Reply {
        let body = body.as_ref();
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let length = body.len().to_string();
        let host = self.addr.to_string();
        let standard =
            [("Host", host.as_str()), ("Connection", "close"), ("Content-Length", length.as_str())];
        let given = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        for (name, value) in standard.iter().filter(|(name, _)| !given(name)).chain(headers) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.raw([head.as_bytes(), body].concat()).await
    }

    /// Sends these bytes and reads until the hub closes the connection.
    pub async fn raw(&self, bytes: impl AsRef<[u8]>) -> Reply {
        soon("the response", async {
            let mut tcp = TcpStream::connect(self.addr).await.unwrap();
            let mut whole = Vec::new();
            let (mut reader, mut writer) = tcp.split();
            // Written and read at once: the hub may answer before it has read everything.
            let write = async {
                let _ = writer.write_all(bytes.as_ref()).await;
            };
            let (read, ()) = tokio::join!(reader.read_to_end(&mut whole), write);
            if let Err(error) = read {
                assert!(!whole.is_empty(), "no response: {error}");
            }
            Reply::parse(&whole)
        })
        .await
    }

    /// A WebSocket on `path` with more handshake headers.
    pub async fn websocket_with(&self, path: &str, headers: &[(&'static str, &str)]) -> Socket {
        let mut request = format!("ws://{}{path}", self.addr).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let tcp = TcpStream::connect(self.addr).await.unwrap();
        let (stream, _) = soon("the handshake", tokio_tungstenite::client_async(request, tcp)).await.unwrap();
        Socket { stream }
    }

    /// A WebSocket to the first Field.
    pub async fn websocket(&self) -> Socket {
        self.websocket_with("/v1/ws", &[]).await
    }

    /// A WebSocket whose frames the test makes itself.
    pub async fn raw_websocket(&self) -> TcpStream {
        let mut tcp = TcpStream::connect(self.addr).await.unwrap();
        let head = format!(
            "GET /v1/ws HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.addr
        );
        tcp.write_all(head.as_bytes()).await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            seen.push(soon("the handshake", tcp.read_u8()).await.unwrap());
        }
        assert!(seen.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&seen));
        tcp
    }
}

/// An HTTP response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("a response head");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let pair = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let mut reply = Self { status, headers: lines.map(pair).collect(), body: bytes[end + 4..].to_vec() };
        if reply.header("transfer-encoding") == Some("chunked") {
            reply.body = unchunk(&reply.body);
        }
        reply
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {:?}", self.text()))
    }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(line) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap().trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 4 + size..];
    }
    whole
}

/// Checks that a response is an error of this status and code, with a whole error body. Its `details`.
#[track_caller]
pub fn check(reply: &Reply, status: u16, code: &str) -> Value {
    let text = reply.text();
    assert_eq!(reply.status, status, "{text}");
    assert_eq!(reply.header("content-type"), Some("application/json"), "{text}");
    let body = reply.json();
    assert_eq!(body["code"], code, "{text}");
    check_body(&body);
    body["details"].clone()
}

/// Checks that an error body is whole (section 9).
#[track_caller]
pub fn check_body(body: &Value) {
    for key in ["code", "message", "operation", "suggested_action"] {
        assert!(body[key].is_string(), "{key} in {body}");
    }
    assert!(body["recoverable"].is_boolean(), "{body}");
}

/// A RECORD payload.
pub fn finding(content: &str) -> Value {
    json!({
        "type": "finding", "content": content, "intent": { "purpose": "to test the doors" },
        "confidence": { "score": 0.5, "reason": "made up" }
    })
}

/// An envelope.
pub fn envelope(id: &str, operation: &str, agent: &str, payload: Value) -> Value {
    json!({
        "protocol": "akashik", "version": "0.1.0", "id": id, "operation": operation, "agent_id": agent,
        "session_id": null, "epoch": 0, "payload": payload
    })
}

/// A WebSocket client.
pub struct Socket {
    pub stream: WebSocketStream<TcpStream>,
}

impl Socket {
    /// Sends a text frame.
    pub async fn send(&mut self, text: impl ToString) {
        soon("sending", self.stream.send(Frame::text(text.to_string()))).await.unwrap();
    }

    /// The next frame that is no ping or pong.
    pub async fn frame(&mut self) -> Option<Frame> {
        loop {
            match soon("a frame", self.stream.next()).await {
                Some(Ok(Frame::Ping(_) | Frame::Pong(_))) => {}
                Some(Ok(frame)) => return Some(frame),
                Some(Err(error)) => panic!("the connection broke: {error}"),
                None => return None,
            }
        }
    }

    /// The next reply.
    pub async fn reply(&mut self) -> Value {
        match self.frame().await {
            Some(Frame::Text(text)) => serde_json::from_str(&text).unwrap(),
            other => panic!("no reply but {other:?}"),
        }
    }

    /// Sends an envelope and awaits its reply.
    pub async fn call(&mut self, id: &str, operation: &str, agent: &str, payload: Value) -> Value {
        self.send(envelope(id, operation, agent, payload)).await;
        let reply = self.reply().await;
        assert_eq!(reply["id"], id, "{reply}");
        reply
    }

    /// Registers an agent.
    pub async fn register(&mut self, agent: &str) {
        let payload = json!({ "id": agent, "role": "researcher" });
        let reply = self.call("reg", "REGISTER", agent, payload).await;
        assert_eq!(reply["payload"]["status"], "registered", "{reply}");
    }

    /// Awaits the end; its close code. Replies before it are dropped.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            match self.frame().await {
                Some(Frame::Close(Some(close))) => return close.code.into(),
                Some(Frame::Text(_)) => {}
                other => panic!("no close but {other:?}"),
            }
        }
    }
}

/// A client's frame, final, masked with zeros.
pub fn client_frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
        medium @ 126..65_536 => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&u16::try_from(medium).unwrap().to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

/// The hub's next frame, of any kind: opcode and payload.
pub async fn server_frame(tcp: &mut TcpStream) -> (u8, Vec<u8>) {
    soon("a frame", async {
        let opcode = tcp.read_u8().await.unwrap() & 0x0f;
        let length = match tcp.read_u8().await.unwrap() {
            126 => u64::from(tcp.read_u16().await.unwrap()),
            127 => tcp.read_u64().await.unwrap(),
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        tcp.read_exact(&mut payload).await.unwrap();
        (opcode, payload)
    })
    .await
}

/// Reads frames until the hub's close; its code.
pub async fn server_close(tcp: &mut TcpStream) -> u16 {
    loop {
        if let (8, payload) = server_frame(tcp).await {
            return u16::from_be_bytes([payload[0], payload[1]]);
        }
    }
}

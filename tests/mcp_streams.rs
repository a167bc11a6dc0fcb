//! MCP's resources, its streams of news, and how sessions end.

mod support;

use akashik_hub::limits::MCP_WATCHED_MAX;
use serde_json::{Value, json};
use support::mcp::{self, SESSIONLESS, VERSION, open};
use support::{Running, finding, soon, start, start_with};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A stream of events, read line by line.
struct Stream(BufReader<TcpStream>);

impl Stream {
    /// Sends a request and reads the head of its response.
    async fn open(hub: &Running, method: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut tcp = TcpStream::connect(hub.addr).await.unwrap();
        let mut head =
            format!("{method} /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n", hub.addr, body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        tcp.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        let mut stream = Self(BufReader::new(tcp));
        let status = stream.line().await.unwrap();
        assert!(status.contains(" 200 "), "{status}");
        while stream.line().await.is_some_and(|line| !line.is_empty()) {}
        stream
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = soon("a line of the stream", self.0.read_line(&mut line)).await;
        (read.is_ok_and(|bytes| bytes > 0)).then(|| line.trim_end().to_owned())
    }

    /// The next message; nothing when the stream has ended.
    async fn message(&mut self) -> Option<Value> {
        loop {
            let line = self.line().await?;
            if let Some(data) = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty()) {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The address of the next resource that is told to have changed.
    async fn changed(&mut self) -> String {
        loop {
            let message = self.message().await.expect("the stream goes on");
            if message["method"] == "notifications/resources/updated" {
                return message["params"]["uri"].as_str().unwrap().to_owned();
            }
        }
    }
}

async fn get(hub: &Running, session: &str) -> Stream {
    let headers =
        [("Accept", "text/event-stream"), ("Mcp-Session-Id", session), ("Mcp-Protocol-Version", VERSION)];
    Stream::open(hub, "GET", &headers, "").await
}

fn text_of(answer: &Value) -> Value {
    serde_json::from_str(answer["result"]["contents"][0]["text"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_show_what_the_gets_show() {
    let hub = start().await;
    let session = open(&hub).await;
    session.register("ada").await;
    let unit = hub.get("/v1/units").await.json()["units"].as_array().unwrap().len();
    assert_eq!(unit, 0);
    let id =
        session.ok("akashik_record", finding("seen")).await["memory_unit_id"].as_str().unwrap().to_owned();
    let listed = session.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 2);
    let templates = session.request("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "akashik://units/{id}");
    let read = async |uri: String| session.request("resources/read", json!({ "uri": uri })).await;
    let shown = read(format!("akashik://units/{id}")).await;
    assert_eq!(text_of(&shown), hub.get(&format!("/v1/units/{id}")).await.json());
    assert_eq!(shown["result"]["contents"][0]["mimeType"], "application/json");
    let conflicts = read("akashik://conflicts".into()).await;
    assert_eq!(text_of(&conflicts), hub.get("/v1/conflicts").await.json());
    let status = text_of(&read("akashik://field/status".into()).await);
    assert_eq!(status["units"]["active"], 1);
    for uri in ["akashik://units/mem-999", "akashik://nothing", "file:///etc/passwd", ""] {
        let no = read(uri.into()).await;
        assert_eq!(no["error"]["code"], -32002, "{uri}: {no}");
    }
    // A draft is shown to its author alone.
    let mut draft = finding("not yet");
    draft["mode"] = json!("draft");
    let draft = session.ok("akashik_record", draft).await["memory_unit_id"].as_str().unwrap().to_owned();
    assert_eq!(text_of(&read(format!("akashik://units/{draft}")).await)["status"], "draft");
    let stranger = open(&hub).await;
    let no = stranger.request("resources/read", json!({ "uri": format!("akashik://units/{draft}") })).await;
    assert_eq!(no["error"]["code"], -32002, "{no}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_teaches_the_protocol() {
    let hub = start().await;
    let session = open(&hub).await;
    let listed = session.request("prompts/list", json!({})).await;
    assert_eq!(listed["result"]["prompts"][0]["name"], "akashik_agent");
    let told = session
        .request("prompts/get", json!({ "name": "akashik_agent", "arguments": { "role": "strategist" } }))
        .await;
    let text = told["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("akashik_attune") && text.contains("strategist"), "{text}");
    assert_eq!(session.request("prompts/get", json!({ "name": "other" })).await["error"]["code"], -32602);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_resource_is_told_of() {
    let hub = start().await;
    let session = open(&hub).await;
    session.register("ada").await;
    hub.register("bob").await;
    let mut stream = get(&hub, &session.id).await;
    let subscribed = session.request("resources/subscribe", json!({ "uri": "akashik://conflicts" })).await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    let no = session.request("resources/subscribe", json!({ "uri": "file:///etc/passwd" })).await;
    assert_eq!(no["error"]["code"], -32002, "{no}");
    // Nothing that is not watched is told of: the first news is the conflict.
    let unit = hub.record("bob", "one").await;
    let mut other = finding("two");
    other["relations"] = json!([{ "type": "contradicts", "target_id": unit }]);
    session.ok("akashik_record", other.clone()).await;
    assert_eq!(stream.changed().await, "akashik://conflicts");
    let watch = json!({ "uri": format!("akashik://units/{unit}") });
    session.request("resources/subscribe", watch.clone()).await;
    session.request("resources/unsubscribe", json!({ "uri": "akashik://conflicts" })).await;
    let retract = json!({ "memory_unit_id": unit, "reason": "wrong" }).to_string();
    assert_eq!(hub.post("/v1/retract", &[("Akashik-Agent", "bob")], retract).await.status, 200);
    assert_eq!(stream.changed().await, watch["uri"].as_str().unwrap());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_is_bounded() {
    let hub = start().await;
    let session = open(&hub).await;
    let watch = async |number: usize| {
        let uri = json!({ "uri": format!("akashik://units/mem-{number}") });
        session.request("resources/subscribe", uri).await
    };
    for number in 0..MCP_WATCHED_MAX {
        assert_eq!(watch(number).await["result"], json!({}));
    }
    let no = watch(MCP_WATCHED_MAX).await;
    assert_eq!(no["error"]["code"], -32602, "{no}");
    // What is watched already is no more, and what is let go makes room.
    assert_eq!(watch(0).await["result"], json!({}));
    session.request("resources/unsubscribe", json!({ "uri": "akashik://units/mem-0" })).await;
    assert_eq!(watch(MCP_WATCHED_MAX).await["result"], json!({}));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_configured_origin_may_keep_sessions() {
    let hub = start_with(|config| config.allowed_origins = vec!["https://desk.example".into()]).await;
    let asked = [
        ("Origin", "https://desk.example"),
        ("Access-Control-Request-Method", "DELETE"),
        ("Access-Control-Request-Headers", "mcp-session-id, mcp-protocol-version"),
    ];
    let preflight = hub.request("OPTIONS", "/mcp", &asked, "").await;
    assert!(preflight.header("access-control-allow-methods").unwrap().contains("DELETE"));
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("mcp-session-id"));
    let origin = [("Origin", "https://desk.example")];
    let reply = mcp::post(&hub, "/mcp", &origin, &mcp::initialize(VERSION)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(reply.header("access-control-expose-headers").unwrap().contains("mcp-session-id"));
    hub.stop().await;
}

/// A request of the version that has no sessions.
fn sessionless(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": SESSIONLESS,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params }).to_string()
}

async fn ask(hub: &Running, method: &str, name: Option<&str>, params: Value) -> Value {
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Mcp-Protocol-Version", SESSIONLESS),
        ("Mcp-Method", method),
    ];
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    let reply = hub.post("/mcp", &headers, sessionless(method, params)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(reply.header("mcp-session-id").is_none());
    mcp::message(&reply)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_sessions_say_who_they_are() {
    let hub = start().await;
    let found = ask(&hub, "server/discover", None, json!({})).await;
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&json!(SESSIONLESS)),
        "{found}"
    );
    let call = async |tool: &str, arguments: Value| {
        ask(&hub, "tools/call", Some(tool), json!({ "name": tool, "arguments": arguments })).await["result"]
            .clone()
    };
    let registered = call("akashik_register", json!({ "id": "ada", "role": "r" })).await;
    assert_eq!(registered["structuredContent"]["status"], "registered", "{registered}");
    // Nothing is remembered between requests.
    assert_eq!(call("akashik_record", finding("x")).await["isError"], true);
    let mut unit = finding("by ada");
    unit["agent_id"] = json!("ada");
    assert_eq!(call("akashik_record", unit).await["structuredContent"]["status"], "accepted");
    // News come on a request that stays open.
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Mcp-Protocol-Version", SESSIONLESS),
        ("Mcp-Method", "subscriptions/listen"),
    ];
    let listen = sessionless(
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": ["akashik://field/status", "file:///x"] } }),
    );
    let mut stream = Stream::open(&hub, "POST", &headers, &listen).await;
    let accepted = stream.message().await.unwrap();
    assert_eq!(accepted["method"], "notifications/subscriptions/acknowledged", "{accepted}");
    assert!(!accepted.to_string().contains("file:"), "{accepted}");
    assert_eq!(stream.changed().await, "akashik://field/status", "what may have been missed");
    hub.record("ada", "news").await;
    assert_eq!(stream.changed().await, "akashik://field/status");
    // The hub's end is the request's answer.
    let mut hub = hub;
    hub.close();
    let last = stream.message().await.expect("an answer");
    assert_eq!(last["id"], 5, "{last}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_open_streams_and_sessions() {
    let mut hub = start().await;
    let id = {
        let session = open(&hub).await;
        session.register("ada").await;
        session.request("resources/subscribe", json!({ "uri": "akashik://conflicts" })).await;
        session.id
    };
    let mut stream = get(&hub, &id).await;
    hub.drain().await;
    let mut rest = Vec::new();
    soon("the end of the stream", stream.0.read_to_end(&mut rest)).await.unwrap();
    assert!(String::from_utf8_lossy(&rest).ends_with("0\r\n\r\n"), "the stream ends cleanly");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disappears_leaves_its_call_done_once() {
    let hub = start().await;
    let session = open(&hub).await;
    session.register("ada").await;
    for number in 0..20 {
        let mut unit = finding("said and gone");
        unit["message_id"] = json!(format!("gone-{number}"));
        let call = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": { "name": "akashik_record", "arguments": unit } })
        .to_string();
        let mut tcp = TcpStream::connect(hub.addr).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMcp-Session-Id: {}\r\nContent-Length: {}\r\n\r\n{call}",
            hub.addr,
            session.id,
            call.len()
        );
        tcp.write_all(head.as_bytes()).await.unwrap();
        drop(tcp);
    }
    // Whatever became of the calls: repeated under their names, each was or is done once.
    for number in 0..20 {
        let mut unit = finding("said and gone");
        unit["message_id"] = json!(format!("gone-{number}"));
        session.ok("akashik_record", unit).await;
    }
    assert_eq!(hub.get("/v1/units").await.json()["units"].as_array().unwrap().len(), 20);
    hub.stop().await;
}

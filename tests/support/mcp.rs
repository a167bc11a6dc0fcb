//! An MCP client over plain sockets: JSON-RPC in POSTs, answers as JSON or as one event of a stream.

use serde_json::{Value, json};

use super::{Reply, Running};

/// The newest version of MCP that has sessions.
pub const VERSION: &str = "2025-11-25";
/// The version without sessions.
pub const SESSIONLESS: &str = "2026-07-28";

/// An MCP session.
pub struct Session<'a> {
    hub: &'a Running,
    path: String,
    pub id: String,
}

/// An initialize request.
pub fn initialize(version: &str) -> Value {
    let params = json!({
        "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "0" }
    });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

/// POSTs a message with more headers.
pub async fn post(hub: &Running, path: &str, more: &[(&str, &str)], message: &Value) -> Reply {
    let mut headers =
        vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    headers.retain(|(name, _)| !more.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
    headers.extend_from_slice(more);
    hub.post(path, &headers, message.to_string()).await
}

/// The JSON-RPC message in a response of either form.
#[track_caller]
pub fn message(reply: &Reply) -> Value {
    let text = reply.text();
    match reply.header("content-type") {
        Some(kind) if kind.starts_with("text/event-stream") => {
            let data: Vec<_> = text
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .filter(|data| !data.trim().is_empty())
                .collect();
            let last = data.last().unwrap_or_else(|| panic!("no event in {text:?}"));
            serde_json::from_str(last).unwrap()
        }
        _ => reply.json(),
    }
}

/// Opens a session on the first Field.
pub async fn open(hub: &Running) -> Session<'_> {
    open_at(hub, "/mcp").await
}

/// Opens a session.
pub async fn open_at<'a>(hub: &'a Running, path: &str) -> Session<'a> {
    let reply = post(hub, path, &[], &initialize(VERSION)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = message(&reply);
    assert_eq!(answer["result"]["protocolVersion"], VERSION, "{answer}");
    let id = reply.header("mcp-session-id").expect("a session").to_owned();
    let session = Session { hub, path: path.to_owned(), id };
    let told = session.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    assert_eq!(told.status, 202, "{}", told.text());
    session
}

impl Session<'_> {
    /// POSTs a message in this session.
    pub async fn post(&self, message: &Value) -> Reply {
        let headers = [("Mcp-Session-Id", self.id.as_str()), ("Mcp-Protocol-Version", VERSION)];
        post(self.hub, &self.path, &headers, message).await
    }

    /// Sends a request; its answer, result or error.
    pub async fn request(&self, method: &str, params: Value) -> Value {
        let reply =
            self.post(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).await;
        assert_eq!(reply.status, 200, "{method}: {}", reply.text());
        let answer = message(&reply);
        assert_eq!(answer["id"], 7, "{answer}");
        answer
    }

    /// Calls a tool; its result.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must succeed; its structured content.
    pub async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert!(result["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()), "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must be refused; the error body.
    pub async fn no(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
    }

    /// Registers an agent.
    pub async fn register(&self, agent: &str) -> Value {
        self.ok("akashik_register", json!({ "id": agent, "role": "researcher" })).await
    }

    /// Ends the session.
    pub async fn delete(&self) -> Reply {
        self.hub.request("DELETE", &self.path, &[("Mcp-Session-Id", &self.id)], "").await
    }
}

//! MCP over HTTP (wire, section 4): the tools, through a real socket and by nobody's client library.

mod support;

use serde_json::{Value, json};
use support::mcp::{self, VERSION, initialize, message, open, open_at};
use support::{Running, check, check_body, finding, start, start_with};

fn contradiction(target: &str) -> Value {
    let mut unit = finding("it is not so");
    unit["relations"] = json!([{ "type": "contradicts", "target_id": target }]);
    unit
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_works_through_the_tools() {
    let hub = start().await;
    let (ada, bob) = (open(&hub).await, open(&hub).await);
    let registered = ada.register("ada").await;
    assert_eq!((&registered["status"], &registered["agent"]["id"]), (&json!("registered"), &json!("ada")));
    bob.register("bob").await;
    let first = ada.ok("akashik_record", finding("the sky is blue")).await;
    let unit = first["memory_unit_id"].as_str().unwrap().to_owned();
    let brought = bob
        .ok("akashik_attune", json!({ "scope": { "role": "r", "max_units": 5 }, "context_hint": "sky" }))
        .await;
    assert_eq!(brought["record"][0]["memory_unit"]["id"], unit.as_str());
    let second = bob.ok("akashik_record", contradiction(&unit)).await;
    let conflict = second["conflicts_detected"][0].as_str().unwrap().to_owned();
    let listed = ada.ok("akashik_detect", json!({ "mode": "list" })).await;
    assert_eq!(listed["conflicts"][0]["id"], conflict.as_str());
    let merge = json!({ "conflict_id": conflict, "strategy": "last_write_wins", "resolution": { "rationale": "newer" } });
    assert_eq!(ada.ok("akashik_merge", merge).await["status"], "resolved");
    let replay = json!({ "target_type": "memory_unit", "target_id": unit, "depth": "full_trace" });
    let timeline = ada.ok("akashik_replay", replay).await;
    assert!(timeline["total_events"].as_u64().unwrap() >= 4, "{timeline}");
    let retract = json!({ "memory_unit_id": second["memory_unit_id"], "reason": "it was so after all" });
    assert_eq!(bob.ok("akashik_retract", retract).await["status"], "ok");
    // Polling brings what is new alone.
    let since = json!({ "scope": { "role": "r", "max_units": 5 }, "since_epoch": brought["epoch"] });
    assert_eq!(bob.ok("akashik_attune", since.clone()).await["record"], json!([]));
    ada.ok("akashik_record", finding("the grass is green")).await;
    assert_eq!(bob.ok("akashik_attune", since).await["record"].as_array().unwrap().len(), 1);
    assert_eq!(ada.ok("akashik_deregister", json!({})).await["status"], "ok");
    assert_eq!(ada.no("akashik_record", finding("x")).await["code"], "AGENT_NOT_REGISTERED");
    // All of it stands in the one Field.
    let agents = hub.get("/v1/agents").await.json();
    assert_eq!(agents["agents"][0]["status"], "offline", "{agents}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_are_those_that_the_field_serves() {
    let hub = start().await;
    let listed = open(&hub).await.request("tools/list", json!({})).await;
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    let served = open(&hub).await.register("a").await["field_capabilities"]["supported_operations"].clone();
    let expected: Vec<_> =
        ["REGISTER", "DEREGISTER", "RECORD", "ATTUNE", "DETECT", "MERGE", "REPLAY", "COMPACT", "RETRACT"]
            .into_iter()
            .filter(|operation| served.as_array().unwrap().contains(&json!(operation)))
            .map(|operation| format!("akashik_{}", operation.to_lowercase()))
            .collect();
    assert_eq!(names, expected);
    hub.stop().await;
    let low = start_with(|config| config.level = 0).await;
    let listed = open(&low).await.request("tools/list", json!({})).await;
    let text = listed.to_string();
    assert!(text.contains("akashik_record") && !text.contains("\"akashik_merge\""), "{text}");
    low.stop().await;
}

/// What is asked of each door, as an agent; it must be refused.
const REFUSED: &[(&str, &str)] = &[
    ("record", "{}"),
    ("record", r#"{"type":"opinion"}"#),
    ("record", r#"{"type":"finding","content":7}"#),
    ("record", r#"{"type":"finding","content":"x"}"#),
    ("record", r#"{"type":"finding","content":"x","intent":{"purpose":"p"}}"#),
    ("record", r#"{"type":"finding","content":"x","intent":{"purpose":"p"},"confidence":{"score":2}}"#),
    ("attune", r#"{"scope":{"role":"r"}}"#),
    ("attune", r#"{"scope":{"role":"r","max_units":0}}"#),
    ("detect", r#"{"mode":"guess"}"#),
    ("merge", r#"{"conflict_id":"conflict-9","strategy":"vote","resolution":{"rationale":"x"}}"#),
    ("replay", r#"{"target_type":"memory_unit","target_id":"mem-999","depth":"summary"}"#),
    ("retract", r#"{"memory_unit_id":"mem-999","reason":"x"}"#),
    ("compact", "{}"),
];

#[tokio::test(flavor = "multi_thread")]
async fn all_doors_refuse_in_the_same_words() {
    let hub = start().await;
    let session = open(&hub).await;
    session.register("mcp").await;
    hub.register("http").await;
    let mut socket = hub.websocket().await;
    socket.register("ws").await;
    for (number, (operation, payload)) in REFUSED.iter().enumerate() {
        let payload: Value = serde_json::from_str(payload).unwrap();
        let by_tool = session.no(&format!("akashik_{operation}"), payload.clone()).await;
        check_body(&by_tool);
        let agent = [("Akashik-Agent", "http")];
        let by_http = hub.post(&format!("/v1/{operation}"), &agent, payload.to_string()).await;
        assert_eq!(by_tool, by_http.json(), "{operation} {payload}");
        let by_socket =
            socket.call(&number.to_string(), &operation.to_uppercase(), "ws", payload.clone()).await;
        assert_eq!(by_tool, by_socket["payload"], "{operation} {payload}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_doors_answer_the_same() {
    let hub = start().await;
    let session = open(&hub).await;
    session.register("mcp").await;
    hub.register("http").await;
    let mut socket = hub.websocket().await;
    socket.register("ws").await;
    session.ok("akashik_record", finding("rivers flow")).await;
    for (operation, payload) in [
        (
            "attune",
            json!({ "scope": { "role": "r", "max_units": 3, "include_own": true }, "context_hint": "rivers" }),
        ),
        ("detect", json!({ "mode": "list" })),
        ("replay", json!({ "target_type": "memory_unit", "target_id": "mem-4", "depth": "detailed" })),
    ] {
        let by_tool = session.ok(&format!("akashik_{operation}"), payload.clone()).await;
        let by_http = hub
            .post(&format!("/v1/{operation}"), &[("Akashik-Agent", "http")], payload.to_string())
            .await
            .json();
        let by_socket =
            socket.call(operation, &operation.to_uppercase(), "ws", payload).await["payload"].clone();
        // Each has its own epoch, and tells how far away in epochs something is.
        let plain = |mut answer: Value| {
            answer.as_object_mut().unwrap().remove("epoch");
            for brought in answer["record"].as_array_mut().into_iter().flatten() {
                for key in ["relevance_reason", "relevance_score"] {
                    brought.as_object_mut().unwrap().remove(key);
                }
            }
            answer
        };
        let by_tool = plain(by_tool);
        assert_eq!(by_tool, plain(by_http), "{operation}");
        assert_eq!(by_tool, plain(by_socket), "{operation}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_is_remembered_or_said() {
    let hub = start().await;
    let session = open(&hub).await;
    let no = session.no("akashik_record", finding("x")).await;
    assert_eq!((&no["code"], &no["details"]["key"]), (&json!("AGENT_NOT_REGISTERED"), &json!("agent_id")));
    check_body(&no);
    let mut unit = finding("x");
    unit["agent_id"] = json!("ghost");
    assert_eq!(session.no("akashik_record", unit.clone()).await["code"], "AGENT_NOT_REGISTERED");
    session.register("ada").await;
    session.ok("akashik_record", finding("by ada")).await;
    session.register("eve").await;
    session.ok("akashik_record", finding("by eve, who registered last")).await;
    unit["agent_id"] = json!("ada");
    session.ok("akashik_record", unit).await;
    // A later session of the same agent says who it is once.
    let later = open(&hub).await;
    let taken = later.no("akashik_register", json!({ "id": "ada", "role": "researcher" })).await;
    assert_eq!((&taken["code"], &taken["status"]), (&json!("AGENT_ID_TAKEN"), &json!("rejected")));
    let mut unit = finding("by ada again");
    unit["agent_id"] = json!("ada");
    later.ok("akashik_record", unit).await;
    later.ok("akashik_record", finding("and again")).await;
    let units = hub.get("/v1/units").await.json();
    // Who sends another away stays.
    session.ok("akashik_deregister", json!({ "agent_id": "ada" })).await;
    session.ok("akashik_detect", json!({ "mode": "list" })).await;
    session.ok("akashik_deregister", json!({})).await;
    assert_eq!(session.no("akashik_detect", json!({ "mode": "list" })).await["details"]["key"], "agent_id");
    let authors: Vec<_> = units["units"]
        .as_array()
        .unwrap()
        .iter()
        .map(|u| u["source"]["agent_id"].as_str().unwrap())
        .collect();
    assert_eq!(authors, ["ada", "eve", "ada", "ada", "ada"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_a_websocket_holds_is_taken_and_mcp_agents_do_not_fail() {
    let hub = start_with(|config| config.grace_ms = 50).await;
    let mut socket = hub.websocket().await;
    socket.register("ws").await;
    let session = open(&hub).await;
    assert_eq!(
        session.no("akashik_register", json!({ "id": "ws", "role": "r" })).await["code"],
        "AGENT_ID_TAKEN"
    );
    session.register("mcp").await;
    assert_eq!(session.delete().await.status, 204);
    drop(socket);
    // The agent whose connection is gone fails; the one that never held one does not.
    support::eventually("the failure", || {
        let shown = futures::executor::block_on(async { hub.hub.field(None).unwrap().view().agents() });
        shown["agents"][0]["status"] == "failed"
    })
    .await;
    let agents = hub.get("/v1/agents").await.json();
    assert_eq!(agents["agents"][1]["status"], "idle", "{agents}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_call_is_done_once() {
    let hub = start().await;
    let session = open(&hub).await;
    session.register("ada").await;
    let mut unit = finding("only once");
    unit["message_id"] = json!("m-1");
    let first = session.ok("akashik_record", unit.clone()).await;
    assert_eq!(session.ok("akashik_record", unit.clone()).await, first);
    // In another session too: the agent and the name make the message.
    let other = open(&hub).await;
    unit["agent_id"] = json!("ada");
    assert_eq!(other.ok("akashik_record", unit.clone()).await, first);
    unit["content"] = json!("something else");
    assert_eq!(other.no("akashik_record", unit).await["code"], "INVALID_MESSAGE");
    // Without a name each call is a message of its own.
    session.ok("akashik_record", finding("twice")).await;
    session.ok("akashik_record", finding("twice")).await;
    assert_eq!(hub.get("/v1/units").await.json()["units"].as_array().unwrap().len(), 3);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_id_puts_units_into_a_protocol_session() {
    let hub = start().await;
    let session = open(&hub).await;
    session.register("ada").await;
    let mut unit = finding("in a session");
    unit["session_id"] = json!("s-1");
    let id = session.ok("akashik_record", unit).await["memory_unit_id"].as_str().unwrap().to_owned();
    assert_eq!(hub.get(&format!("/v1/units/{id}")).await.json()["source"]["session_id"], "s-1");
    for (key, value) in [
        ("agent_id", json!(7)),
        ("agent_id", json!("")),
        ("message_id", json!("a\tb")),
        ("message_id", json!([])),
        ("session_id", json!("x".repeat(300))),
    ] {
        let mut unit = finding("x");
        unit[key] = value;
        let no = session.no("akashik_record", unit).await;
        assert_eq!((&no["code"], &no["details"]["key"]), (&json!("INVALID_MESSAGE"), &json!(key)));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_field_has_its_own_sessions() {
    let hub = start().await;
    let first = open(&hub).await;
    first.register("ada").await;
    first.ok("akashik_record", finding("here")).await;
    let other = open_at(&hub, "/v1/fields/other/mcp").await;
    assert_eq!(other.register("ada").await["field_capabilities"]["field"], "other");
    let brought = other.ok("akashik_attune", json!({ "scope": { "role": "r", "max_units": 5 } })).await;
    assert_eq!(brought["record"], json!([]));
    let foreign = [("Mcp-Session-Id", first.id.as_str())];
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    check(&mcp::post(&hub, "/v1/fields/other/mcp", &foreign, &list).await, 404, "INVALID_MESSAGE");
    check(
        &mcp::post(&hub, "/v1/fields/nowhere/mcp", &[], &initialize(VERSION)).await,
        404,
        "FIELD_NOT_FOUND",
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_of_past_and_future_are_negotiated() {
    let hub = start().await;
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", VERSION),
        ("2099-01-01", VERSION),
        ("nonsense", VERSION),
    ] {
        let answer = message(&mcp::post(&hub, "/mcp", &[], &initialize(asked)).await);
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{asked}: {answer}");
        assert!(answer["result"]["instructions"].as_str().unwrap().contains("akashik_attune"));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_proper_mcp_is_refused_with_a_body() {
    let hub = start().await;
    let session = open(&hub).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let in_session = ("Mcp-Session-Id", session.id.as_str());
    check(&mcp::post(&hub, "/mcp", &[("Mcp-Session-Id", "stolen")], &list).await, 404, "INVALID_MESSAGE");
    check(
        &mcp::post(&hub, "/mcp", &[in_session, ("Accept", "text/html")], &list).await,
        406,
        "INVALID_MESSAGE",
    );
    check(
        &mcp::post(&hub, "/mcp", &[in_session, ("Content-Type", "text/plain")], &list).await,
        415,
        "INVALID_MESSAGE",
    );
    check(
        &mcp::post(&hub, "/mcp", &[in_session, ("Mcp-Protocol-Version", "1999-01-01")], &list).await,
        400,
        "INVALID_MESSAGE",
    );
    check(&hub.get("/mcp").await, 406, "INVALID_MESSAGE");
    let stream = [("Accept", "text/event-stream")];
    assert!((400..500).contains(&hub.request("GET", "/mcp", &stream, "").await.status));
    let stolen = [("Accept", "text/event-stream"), ("Mcp-Session-Id", "stolen")];
    check(&hub.request("GET", "/mcp", &stolen, "").await, 404, "INVALID_MESSAGE");
    check(&hub.request("PUT", "/mcp", &[], "").await, 405, "INVALID_MESSAGE");
    check(&hub.request("DELETE", "/mcp", &[], "").await, 400, "INVALID_MESSAGE");
    // A request without a session, and what is no JSON-RPC at all.
    for body in [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
        "",
        "{",
        "[]",
        "7",
        "{\"method\":7}",
        "\u{0}",
    ] {
        let headers =
            [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let reply = hub.post("/mcp", &headers, body).await;
        assert!((400..500).contains(&reply.status), "{body:?}: {} {}", reply.status, reply.text());
        assert!(reply.json().is_object(), "{body:?}");
    }
    let host = [("Host", "evil.example")];
    check(&mcp::post(&hub, "/mcp", &host, &initialize(VERSION)).await, 403, "FORBIDDEN");
    for origin in ["http://evil.example", "null"] {
        check(&mcp::post(&hub, "/mcp", &[("Origin", origin)], &initialize(VERSION)).await, 403, "FORBIDDEN");
    }
    let own = format!("http://{}", hub.addr);
    assert_eq!(mcp::post(&hub, "/mcp", &[("Origin", &own)], &initialize(VERSION)).await.status, 200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_calls_are_answered_and_the_session_goes_on() {
    let hub = start_with(|config| config.limits.message_bytes = 64 * 1024).await;
    let session = open(&hub).await;
    session.register("ada").await;
    let unknown = session.request("tools/call", json!({ "name": "akashik_forget", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("akashik_record"), "{unknown}");
    assert_eq!(session.request("no/such", json!({})).await["error"]["code"], -32601);
    for arguments in [json!([]), json!("x"), json!(7)] {
        let wrong = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": { "name": "akashik_record", "arguments": arguments } });
        let reply = session.post(&wrong).await;
        let said = reply.text();
        assert!(reply.status < 500, "{said}");
        assert!((400..500).contains(&reply.status) || message(&reply)["error"].is_object(), "{said}");
    }
    assert_eq!(session.no("akashik_register", json!({ "id": 7, "role": "r" })).await["details"]["key"], "id");
    assert_eq!(session.no("akashik_register", json!({})).await["details"]["key"], "id");
    let huge = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": { "name": "akashik_record", "arguments": finding(&"x".repeat(70_000)) } });
    check(&session.post(&huge).await, 413, "MESSAGE_TOO_LARGE");
    let long = session
        .no("akashik_retract", json!({ "memory_unit_id": "mem-1", "reason": "x".repeat(20_000) }))
        .await;
    assert_eq!(long["details"]["key"], "reason");
    session.ok("akashik_record", finding("still here")).await;
    assert_eq!(hub.get("/v1/units").await.json()["units"].as_array().unwrap().len(), 1);
    hub.stop().await;
}

/// How many sessions the first Field has: one more than can be, and then some.
async fn opens(hub: &Running) -> bool {
    let reply = mcp::post(hub, "/mcp", &[], &initialize(VERSION)).await;
    if reply.status == 200 {
        return true;
    }
    let details = check(&reply, 503, "OVERLOADED");
    assert!(details["retry_after_ms"].is_u64() && reply.header("retry-after").is_some());
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_bounded_and_end() {
    let hub = start_with(|config| config.mcp_sessions_max = 3).await;
    let first = open(&hub).await;
    assert!(opens(&hub).await && opens(&hub).await && !opens(&hub).await);
    // Another Field has its own; the other doors are not touched.
    open_at(&hub, "/v1/fields/other/mcp").await;
    let metrics = hub.get("/metrics").await.text();
    for (field, count) in [("default", 3), ("other", 1)] {
        let line = format!("akashik_mcp_sessions{{field=\"{field}\"}} {count}\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
    hub.register("http").await;
    assert_eq!(first.delete().await.status, 204);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    check(&first.post(&list).await, 404, "INVALID_MESSAGE");
    assert!(opens(&hub).await && !opens(&hub).await);
    // Many at once do not get past the bound either.
    hub.stop().await;
    let hub = start_with(|config| config.mcp_sessions_max = 3).await;
    let opened = futures::future::join_all((0..12).map(|_| opens(&hub))).await;
    assert_eq!(opened.iter().filter(|opened| **opened).count(), 3);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_sessions_end_by_themselves() {
    let hub = start_with(|config| {
        config.mcp_sessions_max = 1;
        config.mcp_idle_ms = 100;
    })
    .await;
    assert!(opens(&hub).await);
    support::soon("room for another", async {
        while !opens(&hub).await {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    hub.stop().await;
}

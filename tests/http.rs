//! HTTP: the endpoints and the two forms of a request (wire, section 1).

mod support;

use serde_json::{Value, json};
use support::{check, envelope, finding, start, start_with};

#[tokio::test(flavor = "multi_thread")]
async fn both_forms_say_the_same() {
    let hub = start().await;
    hub.register("a").await;
    let whole = envelope("m-1", "RECORD", "a", finding("by envelope")).to_string();
    let first = hub.post("/v1/record", &[("Content-Type", "application/json")], &whole).await;
    assert_eq!(
        (first.status, first.header("content-type")),
        (200, Some("application/json")),
        "{}",
        first.text()
    );
    let epoch: u64 = first.header("akashik-epoch").unwrap().parse().unwrap();
    assert_eq!(first.json()["epoch"], epoch);
    let second = hub.post("/v1/record", &[("Akashik-Agent", "a")], finding("bare").to_string()).await;
    assert_eq!((second.status, &second.json()["status"]), (200, &json!("accepted")));
    let third =
        hub.post("/v1/messages", &[], envelope("m-3", "RECORD", "a", finding("any")).to_string()).await;
    assert_eq!(third.status, 200);
    let later: u64 = third.header("akashik-epoch").unwrap().parse().unwrap();
    assert!(later > epoch);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn convenience_headers_make_the_envelope() {
    let hub = start().await;
    hub.register("a").await;
    let headers = [("Akashik-Agent", "a"), ("Akashik-Session", "s-1"), ("Akashik-Epoch", "500")];
    let reply = hub.post("/v1/record", &headers, finding("in a session").to_string()).await;
    assert_eq!((reply.status, reply.header("akashik-epoch")), (200, Some("501")));
    let id = reply.json()["memory_unit_id"].as_str().unwrap().to_owned();
    assert_eq!(hub.get(&format!("/v1/units/{id}")).await.json()["source"]["session_id"], "s-1");
    for (headers, key) in [
        (&[][..], "Akashik-Agent"),
        (&[("Akashik-Agent", " ")], "Akashik-Agent"),
        (&[("Akashik-Agent", "a"), ("Akashik-Epoch", "x")], "Akashik-Epoch"),
        (&[("Akashik-Agent", "a"), ("Akashik-Session", "")], "Akashik-Session"),
        (&[("Akashik-Agent", "a"), ("Idempotency-Key", "a\tb")], "Idempotency-Key"),
    ] {
        let reply = hub.post("/v1/record", headers, finding("x").to_string()).await;
        assert_eq!(check(&reply, 400, "INVALID_MESSAGE")["key"], key);
        assert_eq!(
            (&reply.json()["operation"], &reply.json()["status"]),
            (&json!("RECORD"), &json!("rejected"))
        );
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_names_the_message() {
    let hub = start().await;
    hub.register("a").await;
    let headers = [("Akashik-Agent", "a"), ("Idempotency-Key", "once")];
    let first = hub.post("/v1/record", &headers, finding("one").to_string()).await;
    let again = hub.post("/v1/record", &headers, finding("one").to_string()).await;
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert_eq!(first.header("akashik-epoch"), again.header("akashik-epoch"));
    let whole = envelope("once", "RECORD", "a", finding("one")).to_string();
    assert_eq!(hub.post("/v1/record", &[], whole).await.body, first.body, "one identity in both forms");
    let other = hub.post("/v1/record", &headers, finding("two").to_string()).await;
    check(&other, 400, "INVALID_MESSAGE");
    assert_eq!(hub.get("/v1/units").await.json()["units"].as_array().unwrap().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn path_and_operation_must_agree() {
    let hub = start().await;
    let reply = hub.post("/v1/record", &[], envelope("m", "ATTUNE", "a", json!({})).to_string()).await;
    assert_eq!(check(&reply, 400, "INVALID_MESSAGE")["key"], "operation");
    let reply = hub.post("/v1/messages", &[("Akashik-Agent", "a")], "{}").await;
    assert_eq!(check(&reply, 400, "INVALID_MESSAGE")["key"], "protocol");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_field_does_not_serve_says_so() {
    let hub = start_with(|config| config.level = 1).await;
    hub.register("a").await;
    let reply = hub.post("/v1/compact", &[("Akashik-Agent", "a")], "{}").await;
    check(&reply, 501, "UNSUPPORTED_OPERATION");
    assert_eq!(reply.json()["operation"], "COMPACT");
    let reply = hub.post("/v1/messages", &[], envelope("m", "HANDOFF", "a", json!({})).to_string()).await;
    check(&reply, 501, "UNSUPPORTED_OPERATION");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_their_status_and_the_clock() {
    let hub = start().await;
    let unregistered = hub.post("/v1/record", &[("Akashik-Agent", "nobody")], finding("x").to_string()).await;
    check(&unregistered, 403, "AGENT_NOT_REGISTERED");
    assert!(unregistered.header("akashik-epoch").is_some());
    hub.register("a").await;
    let agent = [("Akashik-Agent", "a")];
    check(&hub.post("/v1/record", &agent, "{\"type\":\"nonsense\"}").await, 422, "INVALID_TYPE");
    let far = [("Akashik-Agent", "a"), ("Akashik-Epoch", "9999999999")];
    check(&hub.post("/v1/record", &far, finding("x").to_string()).await, 409, "EPOCH_OVERFLOW");
    let absent = json!({ "memory_unit_id": "mem-999", "reason": "gone" }).to_string();
    check(&hub.post("/v1/retract", &agent, absent).await, 404, "UNIT_NOT_FOUND");
    let deep = format!("{{\"type\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    assert_eq!(hub.post("/v1/record", &agent, deep).await.status / 100, 4);
    check(&hub.get("/v1/units/mem-999").await, 404, "UNIT_NOT_FOUND");
    check(&hub.get("/v1/units/nonsense").await, 404, "UNIT_NOT_FOUND");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_get_endpoints_answer() {
    let hub = start().await;
    hub.register("a").await;
    let id = hub.record("a", "seen from outside").await;
    let status = hub.get("/v1/field/status").await.json();
    for key in [
        "name",
        "epoch",
        "units",
        "agents",
        "conflicts",
        "connections",
        "log_entries",
        "log_bytes",
        "level",
        "uptime_ms",
        "version",
    ] {
        assert!(!status[key].is_null(), "{key} in {status}");
    }
    assert_eq!(hub.get("/v1/agents").await.json()["agents"][0]["id"], "a");
    assert_eq!(hub.get("/v1/conflicts").await.json(), json!({ "conflicts": [] }));
    assert_eq!(hub.get("/v1/conflicts?status=resolved,escalated").await.status, 200);
    let unit = hub.get(&format!("/v1/units/{id}")).await.json();
    assert_eq!((&unit["id"], &unit["archived"]), (&json!(id), &json!(false)));
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/", 200)] {
        assert_eq!(hub.get(path).await.status, status, "{path}");
    }
    let metrics = hub.get("/metrics").await;
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain"));
    let line = "akashik_operations_total{field=\"default\",operation=\"RECORD\",outcome=\"ok\"} 1";
    assert!(metrics.text().contains(line), "{}", metrics.text());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn head_is_get_without_a_body() {
    let hub = start().await;
    for path in ["/healthz", "/v1/agents", "/v1/field/status"] {
        let head = hub.request("HEAD", path, &[], "").await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(head.header("content-type"), Some("application/json"));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn units_page_and_filter() {
    let hub = start().await;
    hub.register("a").await;
    hub.register("b").await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(hub.record(if n == 2 { "b" } else { "a" }, &format!("unit {n}")).await);
    }
    let seen = |page: &Value| -> Vec<String> {
        let units = page["units"].as_array().unwrap();
        units.iter().map(|unit| unit["id"].as_str().unwrap().to_owned()).collect()
    };
    let (mut all, mut path) = (Vec::new(), "/v1/units?limit=2".to_owned());
    loop {
        let page = hub.get(&path).await.json();
        all.extend(seen(&page));
        let Some(cursor) = page["cursor"].as_str() else { break };
        path = format!("/v1/units?limit=2&after={cursor}");
    }
    assert_eq!(all, ids);
    assert_eq!(seen(&hub.get("/v1/units?agent=b&unknown=1").await.json()), ids[2..3]);
    assert_eq!(seen(&hub.get("/v1/units?type=decision").await.json()), Vec::<String>::new());
    for (query, key) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("after=7", "after"),
        ("type=x", "type"),
        ("status=x", "status"),
        ("agent=", "agent"),
        ("task=%zz", "task"),
    ] {
        let reply = hub.get(&format!("/v1/units?{query}")).await;
        assert_eq!(check(&reply, 400, "INVALID_MESSAGE")["key"], key, "{query}");
    }
    let reply = hub.get("/v1/conflicts?status=odd").await;
    assert_eq!(check(&reply, 400, "INVALID_MESSAGE")["key"], "status");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drafts_are_their_authors() {
    let hub = start().await;
    hub.register("a").await;
    let mut draft = finding("not yet");
    draft["mode"] = json!("draft");
    let reply = hub.post("/v1/record", &[("Akashik-Agent", "a")], draft.to_string()).await;
    let id = reply.json()["memory_unit_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/units/{id}");
    check(&hub.get(&path).await, 404, "UNIT_NOT_FOUND");
    let own = hub.request("GET", &path, &[("Akashik-Agent", "a")], "").await;
    assert_eq!((own.status, &own.json()["status"]), (200, &json!("draft")));
    check(&hub.request("GET", &path, &[("Akashik-Agent", "b")], "").await, 404, "UNIT_NOT_FOUND");
    let bad = hub.request("GET", &path, &[("Akashik-Agent", " ")], "").await;
    assert_eq!(check(&bad, 400, "INVALID_MESSAGE")["key"], "Akashik-Agent");
    assert!(!hub.get("/v1/log").await.text().contains("not yet"), "the log shows no draft's content");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_lines_of_json() {
    let hub = start().await;
    hub.register("a").await;
    hub.record("a", "one").await;
    hub.record("a", "two\nlines").await;
    let reply = hub.get("/v1/log").await;
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let text = reply.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 3 && text.ends_with('\n'), "{text}");
    for key in ["cursor", "epoch", "event_type", "operation", "agent_id", "message_id", "timestamp"] {
        assert!(!lines[0][key].is_null(), "{key} in {}", lines[0]);
    }
    let cursor = lines[0]["cursor"].as_str().unwrap();
    let rest = hub.get(&format!("/v1/log?after={cursor}&limit=1")).await.text();
    assert_eq!(serde_json::from_str::<Value>(rest.trim_end()).unwrap(), lines[1]);
    let reply = hub.get("/v1/log?after=x").await;
    assert_eq!(check(&reply, 400, "INVALID_MESSAGE")["key"], "after");
    hub.stop().await;
}

/// A page ends by its bytes too, and nothing is skipped between pages.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_large_units_end_early_and_miss_nothing() {
    let hub = start().await;
    hub.register("a").await;
    let mut ids = Vec::new();
    for at in 0..40 {
        ids.push(hub.record("a", &format!("{at} {}", "x".repeat(200_000))).await);
    }
    let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let reply = hub.get(&format!("/v1/units?limit=1000{after}")).await;
        assert!(reply.body.len() < 6_000_000, "a page of {} bytes", reply.body.len());
        let page = reply.json();
        seen.extend(
            page["units"].as_array().unwrap().iter().map(|unit| unit["id"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        match page["cursor"].as_str() {
            Some(cursor) => after = format!("&after={cursor}"),
            None => break,
        }
    }
    assert_eq!((seen, pages), (ids.clone(), 2));
    let (mut recorded, mut after) = (0, "0.0".to_owned());
    loop {
        let reply = hub.get(&format!("/v1/log?limit=1000&after={after}")).await;
        assert!(reply.body.len() < 6_000_000, "a page of {} bytes", reply.body.len());
        let text = reply.text();
        let Some(last) = text.lines().last() else { break };
        recorded += text.lines().filter(|line| line.contains("\"RECORD\"")).count();
        let last: Value = serde_json::from_str(last).unwrap();
        last["cursor"].as_str().unwrap().clone_into(&mut after);
    }
    assert!(recorded >= ids.len());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_are_apart() {
    let hub = start().await;
    hub.register("a").await;
    hub.record("a", "in the first").await;
    let there = hub.get("/v1/fields/other/units").await;
    assert_eq!((there.status, there.json()["units"].as_array().unwrap().len()), (200, 0));
    let here = hub.get("/v1/fields/default/units").await;
    assert_eq!(here.json()["units"].as_array().unwrap().len(), 1);
    let post = hub.post("/v1/fields/other/record", &[("Akashik-Agent", "a")], finding("x").to_string()).await;
    check(&post, 403, "AGENT_NOT_REGISTERED");
    for field in ["absent", "%41bsent", "a.b", "DEFAULT", "default%20"] {
        let reply = hub.get(&format!("/v1/fields/{field}/units")).await;
        check(&reply, 404, "FIELD_NOT_FOUND");
        let reply = hub.post(&format!("/v1/fields/{field}/record"), &[], "{}").await;
        check(&reply, 404, "FIELD_NOT_FOUND");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_answers_are_compressed_where_that_is_accepted() {
    let hub = start().await;
    hub.register("a").await;
    hub.record("a", &"the same words again and again ".repeat(500)).await;
    let plain = hub.get("/v1/units").await;
    assert_eq!(plain.header("content-encoding"), None);
    for encoding in ["gzip", "br"] {
        let small = hub.request("GET", "/v1/units", &[("Accept-Encoding", encoding)], "").await;
        assert_eq!(small.header("content-encoding"), Some(encoding));
        assert!(small.body.len() * 5 < plain.body.len(), "{} of {}", small.body.len(), plain.body.len());
        let tiny = hub.request("GET", "/healthz", &[("Accept-Encoding", encoding)], "").await;
        assert_eq!(tiny.header("content-encoding"), None);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cors_is_off_until_origins_are_configured() {
    let origin = ("Origin", "https://desk.example");
    let ask = [origin, ("Access-Control-Request-Method", "POST")];
    let closed = start().await;
    check(&closed.request("OPTIONS", "/v1/record", &ask, "").await, 405, "INVALID_MESSAGE");
    assert_eq!(
        closed.request("GET", "/healthz", &[origin], "").await.header("access-control-allow-origin"),
        None
    );
    closed.stop().await;
    let open = start_with(|config| config.allowed_origins = vec!["https://desk.example".into()]).await;
    let preflight = open.request("OPTIONS", "/v1/record", &ask, "").await;
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (200, Some(origin.1)));
    let allowed = preflight.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
    for header in ["akashik-agent", "akashik-session", "akashik-epoch", "idempotency-key", "content-type"] {
        assert!(allowed.contains(header), "{header} in {allowed}");
    }
    open.register("a").await;
    let reply = open.post("/v1/record", &[origin, ("Akashik-Agent", "a")], finding("x").to_string()).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some(origin.1)));
    let exposed = reply.header("access-control-expose-headers").unwrap().to_ascii_lowercase();
    assert!(exposed.contains("akashik-epoch"), "{exposed}");
    let foreign = [("Origin", "https://evil.example")];
    let reply = open.request("GET", "/healthz", &foreign, "").await;
    assert_eq!(reply.header("access-control-allow-origin"), None);
    open.stop().await;
}

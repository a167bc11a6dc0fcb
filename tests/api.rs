//! The API's description against what the hub really takes and gives.

mod support;

use akashik_hub::hub::Audit;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::{Running, finding, start, start_with};

/// The validator of a schema, as the hub serves it.
async fn schema(hub: &Running, name: &str) -> jsonschema::Validator {
    let reply = hub.get(&format!("/v1/schema/{name}.json")).await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/schema+json")),
        "{name}"
    );
    jsonschema::validator_for(&reply.json()).unwrap()
}

async fn holds(hub: &Running, name: &str, document: &Value) {
    if let Err(error) = schema(hub, name).await.validate(document) {
        panic!("{name}: {error} in {document}");
    }
}

/// Sends an operation whose request and answer must fit their schemas.
async fn operate(hub: &Running, operation: &str, payload: Value) -> Value {
    holds(hub, if matches!(operation, "retract" | "discard") { "give_up" } else { operation }, &payload)
        .await;
    let reply = hub.post(&format!("/v1/{operation}"), &[("Akashik-Agent", "ada")], payload.to_string()).await;
    assert_eq!(reply.status, 200, "{operation}: {}", reply.text());
    let answer = reply.json();
    let name = match operation {
        "commit" | "discard" | "retract" => "acknowledged".to_owned(),
        other => format!("{other}_response"),
    };
    holds(hub, &name, &answer).await;
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_fits_its_schema() {
    let hub = start_with(|config| config.audit_reads = Audit::All).await;
    operate(&hub, "register", json!({ "id": "ada", "role": "r", "interests": ["rivers"] })).await;
    let rejected = json!({ "id": "ada", "role": "r", "required_operations": ["HANDOFF"] });
    let reply = hub
        .post(
            "/v1/register",
            &[("Akashik-Agent", "eve")],
            json!({ "id": "eve", "role": "r",
        "required_operations": rejected["required_operations"] })
            .to_string(),
        )
        .await
        .json();
    assert_eq!(reply["status"], "rejected", "{reply}");
    holds(&hub, "register_response", &reply).await;
    let unit = operate(&hub, "record", finding("rivers flow down")).await;
    let mut other = finding("rivers flow up");
    other["relations"] = json!([{ "type": "contradicts", "target_id": unit["memory_unit_id"] }]);
    other["intent"]["task_id"] = json!("task-1");
    let recorded = operate(&hub, "record", other).await;
    let mut draft = finding("perhaps");
    draft["mode"] = json!("draft");
    draft.as_object_mut().unwrap().remove("confidence");
    for last in ["commit", "discard"] {
        let id = operate(&hub, "record", draft.clone()).await["memory_unit_id"].clone();
        let payload = match last {
            "commit" => json!({ "memory_unit_id": id, "confidence": { "score": 1, "reason": "seen" } }),
            _ => json!({ "memory_unit_id": id, "reason": "no" }),
        };
        operate(&hub, last, payload).await;
    }
    for format in ["full", "summary", "ids_only"] {
        let scope = json!({ "role": "r", "max_units": 5, "max_tokens": 900, "include_own": true });
        let payload = json!({ "scope": scope, "context_hint": "rivers", "format": format, "explain": true });
        let brought = operate(&hub, "attune", payload).await;
        assert!(
            !brought["record"].as_array().unwrap().is_empty()
                && !brought["conflicts"].as_array().unwrap().is_empty()
        );
    }
    operate(&hub, "detect", json!({ "mode": "list", "filter": { "status": [], "types": ["factual"] } }))
        .await;
    for depth in ["summary", "detailed", "full_trace"] {
        let target = json!({ "target_type": "conflict", "target_id": recorded["conflicts_detected"][0], "depth": depth });
        operate(&hub, "replay", target).await;
    }
    let vote = json!({ "conflict_id": recorded["conflicts_detected"][0], "strategy": "vote",
        "resolution": { "rationale": "so", "winner_id": unit["memory_unit_id"] } });
    assert_eq!(operate(&hub, "merge", vote).await["status"], "pending_vote");
    let mut human = json!({ "conflict_id": recorded["conflicts_detected"][0], "strategy": "human_escalation",
        "resolution": { "rationale": "ask one" } });
    assert_eq!(operate(&hub, "merge", human.clone()).await["status"], "escalated");
    human["resolution"]["winner_id"] = unit["memory_unit_id"].clone();
    assert_eq!(operate(&hub, "merge", human).await["status"], "resolved");
    let wish = json!({ "id": "s", "events": ["memory.recorded", "conflict.detected"], "include_unit": true });
    operate(&hub, "subscribe", json!({ "action": "subscribe", "subscription": wish })).await;
    operate(&hub, "subscribe", json!({ "action": "list" })).await;
    operate(&hub, "subscribe", json!({ "action": "unsubscribe", "subscription": { "id": "s" } })).await;
    let mut taken_back = finding("a mistake");
    taken_back["confidence"]["evidence"] = json!(["seen once"]);
    let id = operate(&hub, "record", taken_back).await["memory_unit_id"].clone();
    operate(&hub, "retract", json!({ "memory_unit_id": id, "reason": "wrong" })).await;
    shown(&hub, unit["memory_unit_id"].as_str().unwrap()).await;
    operate(&hub, "deregister", json!({ "agent_id": "ada" })).await;
    hub.stop().await;
}

/// What the GETs show fits too.
async fn shown(hub: &Running, unit: &str) {
    for (path, name) in [
        ("/v1/field/status", "field_status"),
        ("/v1/agents", "agents"),
        ("/v1/conflicts?status=resolved", "conflicts"),
        ("/v1/units?limit=2", "units"),
        (&*format!("/v1/units/{unit}"), "unit"),
        ("/v1/events?observer=true&poll=true&after=0.0&include_unit=true", "events"),
    ] {
        let reply = hub.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert!(reply.text().len() > 60, "{path} shows nothing: {}", reply.text());
        holds(hub, name, &reply.json()).await;
    }
    let events = hub.get("/v1/events?observer=true&poll=true&after=0.0&include_unit=true").await.json();
    holds(hub, "notification", &events["events"][1]).await;
    holds(hub, "envelope", &support::envelope("m", "RECORD", "ada", json!({}))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_fit_theirs_and_wrong_documents_do_not() {
    let hub = start().await;
    for (path, body) in
        [("/v1/record", "{}"), ("/v1/nowhere", ""), ("/v1/record", "nonsense"), ("/healthz", "")]
    {
        let reply = hub.post(path, &[("Akashik-Agent", "ada")], body).await;
        assert!(reply.status >= 400);
        holds(&hub, "error", &reply.json()).await;
    }
    for (name, wrong) in [
        ("record", json!({ "type": "opinion", "content": "x", "intent": { "purpose": "p" } })),
        ("record", json!({ "type": "finding", "content": "", "intent": { "purpose": "p" } })),
        ("record", json!({ "type": "finding", "content": "x", "intent": {} })),
        ("attune", json!({ "scope": { "role": "r", "max_units": 1001 } })),
        ("attune", json!({ "scope": { "max_units": 1 } })),
        ("envelope", json!({ "protocol": "akashik" })),
        ("error", json!({ "code": "NO_SUCH_CODE" })),
        ("record_response", json!({ "status": "accepted", "memory_unit_id": "unit-1" })),
        ("units", json!({ "units": [{}], "cursor": null })),
    ] {
        assert!(!schema(&hub, name).await.is_valid(&wrong), "{name} takes {wrong}");
    }
    support::check(&hub.get("/v1/schema/nothing.json").await, 404, "INVALID_MESSAGE");
    support::check(&hub.get("/v1/schema/record").await, 404, "INVALID_MESSAGE");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_names_every_endpoint() {
    let hub = start().await;
    let document = hub.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths: BTreeSet<_> = document["paths"].as_object().unwrap().keys().cloned().collect();
    for listed in hub.get("/").await.json()["endpoints"].as_array().unwrap() {
        let (method, path) = listed.as_str().unwrap().split_once(' ').unwrap();
        let path = if path == "/v1/{operation}" { "/v1/record" } else { path };
        assert!(paths.contains(path), "{path} is not described");
        assert!(document["paths"][path][method.to_lowercase()].is_object(), "{listed}");
    }
    // Examples are what they are examples of, and are taken.
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(name) = path.strip_prefix("/v1/").filter(|name| !name.contains('/')) else { continue };
        let content = &item["post"]["requestBody"]["content"]["application/json"];
        let Some(example) = content.pointer("/examples/envelope/value") else { continue };
        holds(&hub, "envelope", example).await;
        let reply = hub.post(path, &[], example.to_string()).await;
        assert_ne!(reply.json()["code"], "INVALID_MESSAGE", "{name}: {}", reply.text());
    }
    hub.stop().await;
}

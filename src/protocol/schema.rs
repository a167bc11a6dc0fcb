//! The schemas of everything that is sent and answered, as JSON Schema (2020-12): by name for `/v1/schema/{name}.json`,
//! by operation for `/openapi.json` and for the tools of MCP. All come from the types.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::answers::{
    Acknowledged, Attuned, Capabilities, Deregistered, Detected, Merged, Recorded, Registered, Replayed,
};
use super::operation::Operation;
use super::subscription::{Notification, Subscribed, Subscription, Subscriptions};
use super::{Agent, Compacted, Conflict, ErrorBody, MemoryUnit, shapes, shown};
use crate::limits::EPOCH_CEILING;

type Make = fn(&mut SchemaGenerator) -> Schema;

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Each named schema: its name and what makes it.
const NAMED: [(&str, Make); 35] = [
    ("envelope", of::<shapes::Envelope>),
    ("error", of::<ErrorBody>),
    ("memory_unit", of::<MemoryUnit>),
    ("agent", of::<Agent>),
    ("conflict", of::<Conflict>),
    ("capabilities", of::<Capabilities>),
    ("subscription", of::<Subscription>),
    ("notification", of::<Notification>),
    ("register", of::<shapes::Register>),
    ("register_response", of::<Registered>),
    ("deregister", of::<shapes::Deregister>),
    ("deregister_response", of::<Deregistered>),
    ("record", of::<shapes::Record>),
    ("record_response", of::<Recorded>),
    ("attune", of::<shapes::Attune>),
    ("attune_response", of::<Attuned>),
    ("detect", of::<shapes::Detect>),
    ("detect_response", of::<Detected>),
    ("merge", of::<shapes::Merge>),
    ("merge_response", of::<Merged>),
    ("replay", of::<shapes::Replay>),
    ("replay_response", of::<Replayed>),
    ("subscribe", of::<shapes::Subscribe>),
    ("subscribe_response", subscribe_response),
    ("compact", of::<shapes::Compact>),
    ("compact_response", of::<Compacted>),
    ("commit", of::<shapes::Commit>),
    ("give_up", of::<shapes::GiveUp>),
    ("acknowledged", of::<Acknowledged>),
    ("field_status", of::<shown::FieldStatus>),
    ("agents", of::<shown::Agents>),
    ("conflicts", of::<shown::Conflicts>),
    ("units", of::<shown::Units>),
    ("unit", of::<shown::UnitWhole>),
    ("events", of::<shown::EventsPage>),
];

/// `subscribe`, `list` and `unsubscribe` have an answer each.
fn subscribe_response(generator: &mut SchemaGenerator) -> Schema {
    let subscribed = of::<Subscribed>(generator);
    let listed = of::<Subscriptions>(generator);
    schemars::json_schema!({
        "type": "object",
        "description": "SUBSCRIBE's response: to subscribe, to list, to unsubscribe.",
        "required": ["status"],
        "anyOf": [subscribed, listed, {
            "type": "object",
            "properties": { "status": { "const": "ok" }, "subscription": false, "subscriptions": false },
        }],
    })
}

/// The names of all schemas, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(name, _)| *name)
}

/// The names of an operation's request and response schemas.
pub const fn of_operation(operation: Operation) -> Option<(&'static str, &'static str)> {
    Some(match operation {
        Operation::Register => ("register", "register_response"),
        Operation::Deregister => ("deregister", "deregister_response"),
        Operation::Record => ("record", "record_response"),
        Operation::Attune => ("attune", "attune_response"),
        Operation::Detect => ("detect", "detect_response"),
        Operation::Merge => ("merge", "merge_response"),
        Operation::Replay => ("replay", "replay_response"),
        Operation::Subscribe => ("subscribe", "subscribe_response"),
        Operation::Compact => ("compact", "compact_response"),
        Operation::Commit => ("commit", "acknowledged"),
        Operation::Retract | Operation::Discard => ("give_up", "acknowledged"),
        Operation::Coordinate | Operation::Handoff | Operation::Session => return None,
    })
}

/// A request of an operation as it may be sent, with all its keys.
pub fn example(operation: Operation) -> Option<Value> {
    Some(match operation {
        Operation::Register => json!({
            "id": "researcher-01", "role": "market_researcher", "interests": ["market growth", "pricing"],
            "required_operations": ["RECORD", "ATTUNE"],
        }),
        Operation::Deregister => json!({ "agent_id": "researcher-01" }),
        Operation::Record => json!({
            "mode": "committed", "type": "finding",
            "content": "European SaaS market for SMB HR tools is growing at 23% CAGR.",
            "intent": {
                "purpose": "Validate market size for the go-to-market strategy", "task_id": "task-market-sizing",
                "question": "How fast does the market grow?",
            },
            "confidence": {
                "score": 0.82, "reason": "Three independent analyst reports.",
                "evidence": ["Report A, 2025, p. 12"], "assumptions": ["Exchange rates stay as they are"],
            },
            "relations": [{ "type": "supports", "target_id": "mem-7", "description": "the same trend" }],
        }),
        Operation::Attune => json!({
            "scope": {
                "role": "strategist", "max_units": 10, "since_epoch": 0, "max_tokens": 2000,
                "interests": ["market growth"], "active_task_id": "task-market-sizing",
                "temporal_layers": ["past", "present"], "relevance_threshold": 0.2, "recency_weight": 0.1,
                "include_own": false, "include_archived": false, "include_drafts": false,
                "session_id": "session-1", "types": ["finding", "decision"],
            },
            "context_hint": "About to draft the positioning section on market growth",
            "format": "full", "since_epoch": 0, "explain": false,
        }),
        Operation::Detect => json!({
            "mode": "list", "target_id": "mem-7",
            "filter": { "status": ["detected"], "types": ["factual"], "involving_agents": ["researcher-01"] },
        }),
        Operation::Merge => json!({
            "conflict_id": "conflict-12", "strategy": "confidence_weighted",
            "resolution": { "rationale": "Primary data beats reports.", "winner_id": "mem-7", "synthesis": null },
        }),
        Operation::Replay => json!({
            "target_type": "memory_unit", "target_id": "mem-7", "depth": "detailed", "as_of_epoch": 40,
        }),
        Operation::Subscribe => json!({
            "action": "subscribe",
            "subscription": {
                "id": "news", "events": ["memory.recorded", "conflict.detected"], "min_relevance": 0.3,
                "debounce_ms": 500, "resume_after": "0.0", "include_unit": true,
            },
        }),
        Operation::Compact => json!({
            "strategy": "archive",
            "filter": { "max_age_epochs": 100, "session_id": null, "types": ["finding"], "status": ["superseded"] },
            "reason": "Superseded long ago.", "confirm": false, "dry_run": false,
        }),
        Operation::Commit => json!({
            "memory_unit_id": "mem-7", "confidence": { "score": 0.9, "reason": "Checked." },
            "relations": [{ "type": "informs", "target_id": "mem-3" }],
        }),
        Operation::Retract | Operation::Discard => {
            json!({ "memory_unit_id": "mem-7", "reason": "The source was withdrawn." })
        }
        Operation::Coordinate | Operation::Handoff | Operation::Session => return None,
    })
}

/// Every schema under its name, each complete in itself; made once.
static WHOLE: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let make = |(name, make): &(&str, Make)| {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let root = make(&mut generator).to_value();
        let mut definitions = generator.take_definitions(true);
        // The type itself stands at the top, not behind a reference.
        let mut whole =
            match root.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()) {
                Some(own) => definitions.remove(own).unwrap_or(root),
                None => root,
            };
        if let Some(map) = whole.as_object_mut() {
            map.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
            if !definitions.is_empty() {
                map.insert("$defs".into(), Value::Object(definitions));
            }
        }
        without_formats_of_rust(&mut whole);
        ((*name).to_owned(), whole)
    };
    NAMED.iter().map(make).collect()
});

/// The schema of this name, complete in itself.
pub fn named(name: &str) -> Option<&'static Value> {
    WHOLE.get(name)
}

/// All schemas as the components of one document: a reference to each by its name, and what they refer to under
/// `prefix`, such as `#/components/schemas/`.
pub fn components(prefix: &'static str) -> (Map<String, Value>, Map<String, Value>) {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = prefix.trim_start_matches('#').trim_end_matches('/').to_owned().into();
    let mut generator = settings.into_generator();
    let roots =
        NAMED.iter().map(|(name, make)| ((*name).to_owned(), make(&mut generator).to_value())).collect();
    let mut definitions = Value::Object(generator.take_definitions(true));
    without_formats_of_rust(&mut definitions);
    match definitions {
        Value::Object(definitions) => (roots, definitions),
        _ => (roots, Map::new()),
    }
}

/// An operation's request with everything in place: no references, and nothing said of `null`, which reads as absent
/// anyway. Language models and their clients fare best with that.
pub fn plain_request(operation: Operation) -> Option<Map<String, Value>> {
    let (name, _) = of_operation(operation)?;
    let (_, make) = NAMED.iter().find(|(known, _)| *known == name)?;
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = make(&mut settings.into_generator()).to_value();
    without_formats_of_rust(&mut schema);
    without_null(&mut schema);
    match schema {
        Value::Object(mut map) => {
            for key in ["title", "description", "$schema"] {
                map.remove(key);
            }
            Some(map)
        }
        _ => None,
    }
}

/// Takes out the formats that only Rust knows, over which strict readers of schemas stumble: of integers the schema
/// says instead that every JSON reader keeps them exactly.
fn without_formats_of_rust(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_formats_of_rust),
        Value::Object(map) => {
            let of_rust = |format: &Value| {
                format.as_str().is_some_and(|name| name.starts_with("uint") || name == "double")
            };
            if map.get("format").is_some_and(of_rust)
                && map.remove("format").is_some_and(|format| format != "double")
            {
                map.entry("maximum").or_insert(json!(EPOCH_CEILING - 1));
            }
            map.values_mut().for_each(without_formats_of_rust);
        }
        _ => {}
    }
}

/// Takes `null` out of what may stand in a place, and what is deprecated.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(map) => {
            let is_null = |value: &Value| *value == json!("null") || *value == json!({ "type": "null" });
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|kind| !is_null(kind));
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
                choices.retain(|choice| !is_null(choice));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    map.remove("anyOf");
                    for (key, value) in only {
                        // What the place itself says of it comes first.
                        map.entry(key).or_insert(value);
                    }
                }
            }
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                properties.retain(|_, property| property.get("deprecated").is_none());
            }
            map.values_mut().for_each(without_null);
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;

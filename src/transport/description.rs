//! The API's description: `/openapi.json` (OpenAPI 3.1) and `/v1/schema/{name}.json`, made from the types.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::paths::OPERATIONS;
use super::reply::{self, Fault, Response};
use crate::hub::Hub;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX, POLL_WAIT_MAX_MS};
use crate::protocol::{ConflictStatus, EventName, MemoryType, Operation, UnitStatus, VERSION, schema};

/// Where the schemas stand in the description.
const SCHEMAS: &str = "#/components/schemas/";

/// `GET /openapi.json`: what this hub serves, as it is configured.
pub fn whole(hub: &Hub) -> Response {
    reply::value(StatusCode::OK, &document(hub.config().level))
}

/// `GET /v1/schema/{name}.json`.
///
/// # Errors
/// 404, listing the names.
pub fn schema(name: &str) -> Result<Response, Fault> {
    let found = schema::named(name).ok_or_else(|| {
        let said: String = name.chars().take(60).collect();
        let names: Vec<_> = schema::names().collect();
        Fault::at(
            StatusCode::NOT_FOUND,
            format!("There is no schema {said:?}."),
            format!("Ask for one of: {}.", names.join(", ")),
        )
    })?;
    let mut response = reply::value(StatusCode::OK, found);
    let kind = http::HeaderValue::from_static("application/schema+json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The description of a hub of this level.
fn document(level: u8) -> Value {
    let (roots, mut schemas) = schema::components(SCHEMAS);
    schemas.insert("AnyResponse".into(), json!({ "type": "object" }));
    let book = Book { roots };
    let mut paths = Map::new();
    let mut field = Map::new();
    for (name, operation) in OPERATIONS {
        if operation.is_served_at(level) {
            field.insert(format!("/{name}"), json!({ "post": book.operation(name, operation) }));
        }
    }
    field.insert("/messages".into(), json!({ "post": book.messages() }));
    field.extend(book.looks());
    for (path, item) in field {
        paths.insert(format!("/v1{path}"), item.clone());
        paths.insert(format!("/v1/fields/{{field}}{path}"), in_field(item));
    }
    paths.insert("/mcp".into(), book.mcp());
    paths.extend(book.hub());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Akashik hub",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!(
                "A hub of the Akashik Protocol {VERSION}: one shared memory for a team of AI agents. The body of an \
                 operation is the bare payload, with the headers Akashik-… beside it, or the full envelope."
            ),
        },
        "servers": [{ "url": "/" }],
        "tags": [
            { "name": "operations", "description": "What agents do." },
            { "name": "look", "description": "What can be looked at without sending a message." },
            { "name": "listen", "description": "How to be told of events." },
            { "name": "mcp", "description": "The same for language models." },
            { "name": "hub", "description": "The process itself." },
        ],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": { "Error": error_response() },
            "parameters": parameters(),
            "headers": { "Akashik-Epoch": {
                "description": "The operation's own epoch; where it was refused, the Field's clock.",
                "schema": { "type": "integer", "minimum": 0 },
            } },
        },
    })
}

fn error_response() -> Value {
    json!({
        "description": "What was wrong, and what to do next. Nothing was changed.",
        "content": { "application/json": { "schema": { "$ref": format!("{SCHEMAS}ErrorBody") } } },
    })
}

fn parameters() -> Value {
    let id = || json!({ "type": "string", "minLength": 1, "maxLength": crate::limits::ID_MAX_BYTES });
    let header = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "header", "required": false, "description": description, "schema": schema });
    json!({
        "Agent": header("Akashik-Agent", "Who asks. Required with a bare payload.", id()),
        "Session": header("Akashik-Session", "The protocol session that it belongs to.", id()),
        "Epoch": header(
            "Akashik-Epoch", "The greatest epoch that you have seen.", json!({ "type": "integer", "minimum": 0 })
        ),
        "Key": header("Idempotency-Key", "Names the message: repeated under it, it is done once.", id()),
        "Field": {
            "name": "field", "in": "path", "required": true, "description": "The Field.",
            "schema": { "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" },
        },
    })
}

/// A reference to one of the shared parameters.
fn parameter(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

/// The same endpoint for a Field by its name.
fn in_field(mut item: Value) -> Value {
    for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(id) = operation["operationId"].as_str() {
            operation["operationId"] = json!(format!("{id}InField"));
        }
        if let Some(parameters) = operation["parameters"].as_array_mut() {
            parameters.push(parameter("Field"));
        }
    }
    item
}

/// Adds the answers that are a no.
fn with_errors(mut responses: Value, statuses: &[u16]) -> Value {
    for status in statuses {
        responses[status.to_string()] = json!({ "$ref": "#/components/responses/Error" });
    }
    responses
}

/// Makes the description's parts.
struct Book {
    /// References to the named schemas.
    roots: Map<String, Value>,
}

impl Book {
    fn schema(&self, name: &str) -> Value {
        self.roots.get(name).cloned().unwrap_or_else(|| json!({}))
    }

    /// The refusals that an operation can meet, by the table of section 9 and the door's own.
    const REFUSALS: [u16; 14] = [400, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 501, 503, 507];

    fn operation(&self, name: &str, operation: Operation) -> Value {
        let (request, response) = schema::of_operation(operation).unwrap_or(("envelope", "envelope"));
        let example = schema::example(operation).unwrap_or_default();
        let ok = json!({
            "200": {
                "description": "The response payload.",
                "headers": { "Akashik-Epoch": { "$ref": "#/components/headers/Akashik-Epoch" } },
                "content": { "application/json": { "schema": self.schema(response) } },
            }
        });
        json!({
            "operationId": name,
            "tags": ["operations"],
            "summary": summary(operation),
            "parameters": [parameter("Agent"), parameter("Session"), parameter("Epoch"), parameter("Key")],
            "requestBody": {
                "required": true,
                "content": { "application/json": {
                    "schema": { "anyOf": [self.schema(request), self.schema("envelope")] },
                    "examples": {
                        "payload": { "summary": "The bare payload", "value": example },
                        "envelope": { "summary": "The full envelope", "value": envelope(operation, &example) },
                    },
                } },
            },
            "responses": with_errors(ok, &Self::REFUSALS),
        })
    }

    fn messages(&self) -> Value {
        let example = schema::example(Operation::Attune).unwrap_or_default();
        let ok = json!({
            "200": {
                "description": "The response payload of the operation that the envelope names.",
                "headers": { "Akashik-Epoch": { "$ref": "#/components/headers/Akashik-Epoch" } },
                "content": { "application/json": { "schema": { "$ref": format!("{SCHEMAS}AnyResponse") } } },
            }
        });
        json!({
            "operationId": "messages",
            "tags": ["operations"],
            "summary": "Any operation, by its envelope",
            "parameters": [],
            "requestBody": {
                "required": true,
                "content": { "application/json": {
                    "schema": self.schema("envelope"),
                    "example": envelope(Operation::Attune, &example),
                } },
            },
            "responses": with_errors(ok, &Self::REFUSALS),
        })
    }

    /// What an operation would answer, without being one.
    fn look_like(&self, name: &str, operation: Operation) -> Value {
        let (request, response) = schema::of_operation(operation).unwrap_or(("envelope", "envelope"));
        let ok = json!({
            "200": {
                "description": "What the operation would answer.",
                "content": { "application/json": { "schema": self.schema(response) } },
            }
        });
        json!({
            "operationId": format!("look_{name}"),
            "tags": ["look"],
            "summary": format!("What {operation} would answer: no epoch passes, nothing is noted"),
            "parameters": [parameter("Agent")],
            "requestBody": {
                "required": true,
                "content": { "application/json": {
                    "schema": self.schema(request),
                    "example": schema::example(operation).unwrap_or_default(),
                } },
            },
            "responses": with_errors(ok, &Self::REFUSALS),
        })
    }

    /// A GET that shows JSON.
    fn look(&self, id: &str, summary: &str, parameters: Value, answer: &str) -> Value {
        let ok = json!({
            "200": {
                "description": "As it is now.",
                "content": { "application/json": { "schema": self.schema(answer) } },
            }
        });
        json!({ "get": {
            "operationId": id, "tags": ["look"], "summary": summary, "parameters": parameters,
            "responses": with_errors(ok, &[400, 403, 404, 405, 413, 500, 503]),
        } })
    }

    /// What can be looked at and listened to, in each Field.
    fn looks(&self) -> Map<String, Value> {
        let events_page = json!({ "schema": self.schema("events") });
        let schema_file = json!({
            "name": "name", "in": "path", "required": true, "description": "Which schema.",
            "schema": { "type": "string", "enum": schema::names().collect::<Vec<_>>() },
        });
        let mut looks = Map::new();
        let unit = json!([
            { "name": "id", "in": "path", "required": true, "description": "The unit's id.",
              "schema": { "type": "string", "minLength": 1 } },
            parameter("Agent"),
        ]);
        let status = json!([query(
            "status",
            "Statuses, separated by commas; the unresolved ones without.",
            json!({ "type": "string", "enum": ConflictStatus::ALL })
        )]);
        looks.insert(
            "/field/status".into(),
            self.look("status", "A Field's figures", json!([]), "field_status"),
        );
        looks.insert(
            "/field/capabilities".into(),
            self.look(
                "capabilities",
                "What the Field can do, as REGISTER tells it",
                json!([]),
                "capabilities",
            ),
        );
        for operation in [Operation::Attune, Operation::Replay] {
            let name = operation.name().to_lowercase();
            looks.insert(format!("/look/{name}"), json!({ "post": self.look_like(&name, operation) }));
        }
        looks.insert("/agents".into(), self.look("agents", "Who is here", json!([]), "agents"));
        looks.insert("/conflicts".into(), self.look("conflicts", "Conflicts", status, "conflicts"));
        looks.insert("/units".into(), self.look("units", "Units, page by page", units_parameters(), "units"));
        looks.insert("/units/{id}".into(), self.look("unit", "One unit, whole", unit, "unit"));
        looks.insert("/log".into(), log());
        looks.insert("/events".into(), events(events_page));
        looks.insert("/ws".into(), websocket());
        looks.insert(
            "/schema/{name}.json".into(),
            json!({ "get": {
            "operationId": "schema", "tags": ["hub"], "summary": "A JSON Schema of the protocol",
            "parameters": [schema_file],
            "responses": with_errors(json!({ "200": {
                "description": "The schema.",
                "content": { "application/schema+json": { "schema": { "type": "object" } } },
            } }), &[403, 404, 405]),
        } }),
        );
        looks
    }

    fn mcp(&self) -> Value {
        let message = json!({ "type": "object", "required": ["jsonrpc"], "properties": {
            "jsonrpc": { "const": "2.0" }, "method": { "type": "string" },
        } });
        let session = |required: bool| {
            json!({ "name": "Mcp-Session-Id", "in": "header", "required": required,
                "description": "The session, as initialize was answered with.", "schema": { "type": "string" } })
        };
        let answers = json!({
            "200": { "description": "The answer, or a stream with it.", "content": {
                "application/json": { "schema": { "type": "object" } },
                "text/event-stream": { "schema": { "type": "string" } },
            } },
            "202": { "description": "Taken." },
        });
        let refusals = [400, 403, 404, 405, 406, 408, 413, 415, 422, 500, 503];
        json!({
            "post": {
                "operationId": "mcp", "tags": ["mcp"], "summary": "MCP over Streamable HTTP: one JSON-RPC message",
                "parameters": [session(false)],
                "requestBody": { "required": true, "content": { "application/json": { "schema": message } } },
                "responses": with_errors(answers.clone(), &refusals),
            },
            "get": {
                "operationId": "mcpStream", "tags": ["mcp"], "summary": "The stream of a session's notifications",
                "parameters": [session(true)], "responses": with_errors(answers.clone(), &refusals),
            },
            "delete": {
                "operationId": "mcpEnd", "tags": ["mcp"], "summary": "Ends a session",
                "parameters": [session(true)],
                "responses": with_errors(json!({ "204": { "description": "It has ended." } }), &refusals),
            },
        })
    }

    /// The endpoints of the process.
    fn hub(&self) -> Map<String, Value> {
        let json_page = |id: &str, summary: &str, more: &[u16]| {
            json!({ "get": {
                "operationId": id, "tags": ["hub"], "summary": summary, "parameters": [],
                "responses": with_errors(json!({ "200": {
                    "description": "It is so.",
                    "content": { "application/json": { "schema": { "type": "object" } } },
                } }), more),
            } })
        };
        let metrics = json!({ "get": {
            "operationId": "metrics", "tags": ["hub"], "summary": "Prometheus text", "parameters": [],
            "responses": with_errors(json!({ "200": {
                "description": "OpenMetrics text.",
                "content": { crate::hub::metrics::CONTENT_TYPE: { "schema": { "type": "string" } } },
            } }), &[403, 405]),
        } });
        Map::from_iter([
            ("/".to_owned(), json_page("root", "What this is, and its endpoints", &[403, 405])),
            ("/healthz".to_owned(), json_page("health", "Whether the process answers", &[403, 405])),
            ("/readyz".to_owned(), json_page("ready", "Whether every Field is ready", &[403, 405, 503])),
            ("/openapi.json".to_owned(), json_page("openapi", "This description", &[403, 405])),
            ("/metrics".to_owned(), metrics),
        ])
    }
}

/// An optional parameter of a query.
fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "required": false, "description": description, "schema": schema })
}

fn cursor() -> Value {
    json!({ "type": "string", "pattern": r"^(0|[1-9][0-9]{0,15})\.(0|[1-9][0-9]{0,8})$" })
}

fn limit() -> Value {
    let schema = json!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT });
    query("limit", "Most to bring.", schema)
}

fn units_parameters() -> Value {
    let id = || json!({ "type": "string", "minLength": 1 });
    json!([
        query("after", "Goes on after this cursor.", cursor()),
        query("before", "With order=newest, goes on before this cursor.", cursor()),
        query("order", "From which end.", json!({ "type": "string", "enum": ["oldest", "newest"] })),
        limit(),
        query("type", "Only this type.", json!({ "type": "string", "enum": MemoryType::ALL })),
        query(
            "status",
            "Only this status; all but drafts without.",
            json!({ "type": "string", "enum": UnitStatus::ALL })
        ),
        query(
            "archived",
            "Only those that are archived, or only those that are not.",
            json!({ "type": "boolean" })
        ),
        query("agent", "Only by this agent.", id()),
        query("task", "Only of this task.", id()),
        query("session", "Only of this protocol session.", id()),
        parameter("Agent"),
    ])
}

fn log() -> Value {
    json!({ "get": {
        "operationId": "log", "tags": ["look"], "summary": "The log, one event a line",
        "parameters": [query("after", "Goes on after this cursor.", cursor()), limit()],
        "responses": with_errors(json!({ "200": {
            "description": "Newline-delimited JSON.",
            "content": { "application/x-ndjson": { "schema": { "type": "string" } } },
        } }), &[400, 403, 404, 405, 500, 503]),
    } })
}

fn events(page: Value) -> Value {
    let flag = || json!({ "type": "boolean" });
    let name = || json!({ "type": "string", "minLength": 1 });
    let known = EventName::names();
    json!({ "get": {
        "operationId": "events", "tags": ["listen"],
        "summary": "Events as they happen: a stream of Server-Sent Events, or with poll=true one answer",
        "description": "Name who listens by exactly one of subscription_id, agent_id (with events) and observer=true.",
        "parameters": [
            query("subscription_id", "An existing subscription.", name()),
            query("agent_id", "An agent, for as long as the stream lives.", name()),
            query("observer", "Nobody in particular: everything that is not private.", flag()),
            query("events", &format!("Which, separated by commas: {known}."), json!({ "type": "string" })),
            query("min_relevance", "Only what is at least so relevant.", json!({ "type": "number", "minimum": 0, "maximum": 1 })),
            query("debounce_ms", "Least time between two about the same.", json!({ "type": "integer", "minimum": 0 })),
            query("include_unit", "Whether they carry the unit.", flag()),
            query("after", "Everything after this cursor.", cursor()),
            query("poll", "One answer in place of a stream.", flag()),
            limit(),
            query("wait_ms", "How long a poll may wait.", json!({ "type": "integer", "minimum": 0, "maximum": POLL_WAIT_MAX_MS })),
        ],
        "responses": with_errors(json!({ "200": {
            "description": "The stream, or the answer to a poll.",
            "content": { "text/event-stream": { "schema": { "type": "string" } }, "application/json": page },
        } }), &[400, 403, 404, 405, 501, 503]),
    } })
}

fn websocket() -> Value {
    json!({ "get": {
        "operationId": "websocket", "tags": ["listen"],
        "summary": "A WebSocket: one text frame, one envelope; replies in order, notifications between them",
        "parameters": [
            query("observer", "Whether it is also told of everything that is not private.", json!({ "type": "boolean" })),
            query("events", "Which, separated by commas.", json!({ "type": "string" })),
            query("include_unit", "Whether they carry the unit.", json!({ "type": "boolean" })),
            query("after", "Everything after this cursor.", cursor()),
        ],
        "responses": with_errors(json!({ "101": { "description": "From here on a WebSocket." } }), &[400, 403, 404, 405, 426]),
    } })
}

fn envelope(operation: Operation, payload: &Value) -> Value {
    json!({
        "protocol": "akashik", "version": VERSION, "id": format!("msg-{}", operation.name().to_lowercase()), "operation": operation.name(),
        "agent_id": "researcher-01", "session_id": null, "epoch": 0, "payload": payload,
    })
}

fn summary(operation: Operation) -> &'static str {
    match operation {
        Operation::Register => "Join as an agent",
        Operation::Deregister => "Leave",
        Operation::Record => "Record a memory unit",
        Operation::Attune => "Be brought what matters",
        Operation::Detect => "Find conflicts",
        Operation::Merge => "Settle a conflict",
        Operation::Subscribe => "Ask to be told of events",
        Operation::Replay => "Ask how something came about",
        Operation::Compact => "Archive, summarize or purge older units",
        Operation::Retract => "Take a committed unit back",
        Operation::Commit => "Make a draft everyone's memory",
        Operation::Discard => "Give a draft up",
        Operation::Coordinate | Operation::Handoff | Operation::Session => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ErrorCode;

    /// Every reference in a document.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        for level in 0..=3 {
            let document = document(level);
            let mut found = Vec::new();
            references(&document, &mut found);
            assert!(found.len() > 100, "{}", found.len());
            for reference in found {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
        }
    }

    #[test]
    fn what_is_not_served_is_not_described() {
        let paths = |level| document(level)["paths"].clone();
        assert!(paths(0).get("/v1/merge").is_none() && paths(3).get("/v1/merge").is_some());
        assert!(paths(3).get("/v1/fields/{field}/units/{id}").is_some());
    }

    #[test]
    fn statuses_are_those_of_the_table() {
        for code in ErrorCode::ALL {
            let status = reply::status(*code).as_u16();
            let known = status == 200 || status == 401 || Book::REFUSALS.contains(&status);
            assert!(known, "{code} answers {status}, which no operation is said to answer");
        }
    }

    #[test]
    fn an_unknown_schema_is_a_no_with_names() {
        assert_eq!(schema("record").unwrap().status(), 200);
        assert_eq!(schema("nothing").unwrap_err().status(), 404);
    }
}

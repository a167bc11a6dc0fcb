//! Paths and queries: which endpoint a path names, and what a query string asks of it.
//!
//! The table of endpoints is closed and every path has exactly one reading: segments are decoded once, and
//! one that would change the path's shape after decoding (`/`, `.`, `..`, control characters) leads nowhere.

use http::Method;

use crate::protocol::{Operation, Refusal};

/// What can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `GET /`
    Root,
    /// `GET /assets/{name}`, a file of the dashboard
    Asset(String),
    /// `GET /healthz`
    Health,
    /// `GET /readyz`
    Ready,
    /// `GET /metrics`
    Metrics,
    /// `POST /v1/{operation}`
    Operation(Operation),
    /// `POST /v1/messages`
    Messages,
    /// `GET /v1/field/status`
    Status,
    /// `GET /v1/field/capabilities`
    Capabilities,
    /// `POST /v1/look/{operation}`
    Look(Operation),
    /// `GET /v1/agents`
    Agents,
    /// `GET /v1/conflicts`
    Conflicts,
    /// `GET /v1/units/{id}`
    Unit(String),
    /// `GET /v1/units`
    Units,
    /// `GET /v1/log`
    Log,
    /// `GET /v1/events`
    Events,
    /// `GET /v1/ws`
    WebSocket,
    /// `POST`, `GET` and `DELETE /mcp`
    Mcp,
    /// `GET /openapi.json`
    Description,
    /// `GET /v1/schema/{name}.json`
    Schema(String),
}

/// The operations that have a path of their own (wire, section 1).
pub const OPERATIONS: [(&str, Operation); 12] = [
    ("register", Operation::Register),
    ("deregister", Operation::Deregister),
    ("record", Operation::Record),
    ("attune", Operation::Attune),
    ("detect", Operation::Detect),
    ("merge", Operation::Merge),
    ("subscribe", Operation::Subscribe),
    ("replay", Operation::Replay),
    ("compact", Operation::Compact),
    ("retract", Operation::Retract),
    ("commit", Operation::Commit),
    ("discard", Operation::Discard),
];

/// The endpoints, as `GET /` lists them.
pub const LISTED: [&str; 19] = [
    "POST /v1/{operation}",
    "POST /v1/messages",
    "POST /v1/look/attune",
    "POST /v1/look/replay",
    "GET /v1/field/status",
    "GET /v1/field/capabilities",
    "GET /v1/agents",
    "GET /v1/conflicts",
    "GET /v1/units",
    "GET /v1/units/{id}",
    "GET /v1/log",
    "GET /v1/events",
    "GET /v1/ws",
    "POST /mcp",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /openapi.json",
    "GET /v1/schema/{name}.json",
];

impl Endpoint {
    /// The operation that the path itself names.
    pub fn operation(&self) -> Option<Operation> {
        match self {
            Self::Operation(operation) | Self::Look(operation) => Some(*operation),
            _ => None,
        }
    }

    /// The methods it serves, as `Allow` prints them.
    pub fn allowed(&self) -> &'static str {
        match self {
            Self::Operation(_) | Self::Messages | Self::Look(_) => "POST",
            Self::Events | Self::WebSocket => "GET",
            Self::Mcp => "GET, POST, DELETE",
            _ => "GET, HEAD",
        }
    }

    /// Whether it serves the method.
    pub fn allows(&self, method: &Method) -> bool {
        self.allowed().split(", ").any(|allowed| allowed == method.as_str())
    }
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The Field that the path names; nothing means the first one.
    pub field: Option<String>,
    /// What is called.
    pub endpoint: Endpoint,
}

impl Target {
    /// Reads a path; nothing where it leads nowhere.
    pub fn parse(path: &str) -> Option<Self> {
        let hub = |endpoint| Some(Self { field: None, endpoint });
        let rest = path.strip_prefix('/')?;
        if rest.is_empty() {
            return hub(Endpoint::Root);
        }
        let segments = rest.split('/').map(segment).collect::<Option<Vec<_>>>()?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["assets", name] => hub(Endpoint::Asset((*name).to_owned())),
            ["healthz"] => hub(Endpoint::Health),
            ["readyz"] => hub(Endpoint::Ready),
            ["metrics"] => hub(Endpoint::Metrics),
            ["mcp"] => hub(Endpoint::Mcp),
            ["openapi.json"] => hub(Endpoint::Description),
            ["v1", "fields", field, rest @ ..] => {
                Some(Self { field: Some((*field).to_owned()), endpoint: field_endpoint(rest)? })
            }
            ["v1", rest @ ..] => hub(field_endpoint(rest)?),
            _ => None,
        }
    }
}

fn field_endpoint(segments: &[&str]) -> Option<Endpoint> {
    Some(match segments {
        ["messages"] => Endpoint::Messages,
        ["field", "status"] => Endpoint::Status,
        ["field", "capabilities"] => Endpoint::Capabilities,
        ["look", "attune"] => Endpoint::Look(Operation::Attune),
        ["look", "replay"] => Endpoint::Look(Operation::Replay),
        ["agents"] => Endpoint::Agents,
        ["conflicts"] => Endpoint::Conflicts,
        ["units"] => Endpoint::Units,
        ["units", id] => Endpoint::Unit((*id).to_owned()),
        ["log"] => Endpoint::Log,
        ["events"] => Endpoint::Events,
        ["ws"] => Endpoint::WebSocket,
        ["mcp"] => Endpoint::Mcp,
        ["schema", file] => Endpoint::Schema(file.strip_suffix(".json")?.to_owned()),
        [name] => Endpoint::Operation(OPERATIONS.iter().find(|(known, _)| known == name)?.1),
        _ => return None,
    })
}

/// One segment, decoded; nothing where it is empty or no plain name.
fn segment(raw: &str) -> Option<String> {
    let text = decode(raw, false)?;
    let tricky = |c: char| c == '/' || c == '\\' || c.is_control();
    let plain = !text.is_empty() && text != "." && text != ".." && !text.chars().any(tricky);
    plain.then_some(text)
}

/// Undoes percent-encoding, once and strictly. In a query `+` stands for a space.
fn decode(raw: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A query string. Unknown keys are ignored; of a repeated key the last one counts.
#[derive(Debug, Clone)]
pub struct Query(String);

impl Query {
    /// Takes the text after the question mark.
    pub fn new(raw: String) -> Self {
        Self(raw)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `INVALID_MESSAGE` naming the key when the value is empty or not decodable.
    pub fn text(&self, key: &str) -> Result<Option<String>, Refusal> {
        let pairs = self.0.rsplit('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let Some((_, raw)) = pairs.into_iter().find(|(name, _)| decode(name, true).as_deref() == Some(key))
        else {
            return Ok(None);
        };
        match decode(raw, true) {
            Some(value) if !value.trim().is_empty() => Ok(Some(value)),
            _ => Err(wrong(key, raw, "a non-empty text in percent-encoded UTF-8")),
        }
    }

    /// The value of a key, read by `read`.
    ///
    /// # Errors
    /// `INVALID_MESSAGE` naming the key and saying what was `expected`.
    pub fn value<T>(
        &self,
        key: &str,
        expected: impl FnOnce() -> String,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        read(&text).map(Some).ok_or_else(|| wrong(key, &text, &expected()))
    }
}

impl Query {
    /// An integer within bounds, in digits alone.
    ///
    /// # Errors
    /// `INVALID_MESSAGE` naming the key and the bounds.
    pub fn number(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, Refusal> {
        let read = |text: &str| {
            let digits = text.bytes().all(|b| b.is_ascii_digit());
            text.parse().ok().filter(|number| digits && (least..=most).contains(number))
        };
        self.value(key, || format!("an integer from {least} to {most}"), read)
    }
}

fn wrong(key: &str, found: &str, expected: &str) -> Refusal {
    let found: String = found.chars().take(60).collect();
    Refusal::invalid(key, format!("{key} is {found:?}."), format!("Send {key} as {expected}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_the_table_says() {
        let at = |path: &str| Target::parse(path).map(|t| (t.field, t.endpoint));
        assert_eq!(at("/"), Some((None, Endpoint::Root)));
        assert_eq!(at("/healthz"), Some((None, Endpoint::Health)));
        for (name, operation) in OPERATIONS {
            assert_eq!(name.to_uppercase(), operation.name());
            assert_eq!(at(&format!("/v1/{name}")), Some((None, Endpoint::Operation(operation))));
            let under = at(&format!("/v1/fields/team-a/{name}"));
            assert_eq!(under, Some((Some("team-a".into()), Endpoint::Operation(operation))));
        }
        assert_eq!(at("/v1/units/mem-4.1"), Some((None, Endpoint::Unit("mem-4.1".into()))));
        assert_eq!(at("/v1/units/mem%2D4"), Some((None, Endpoint::Unit("mem-4".into()))));
        assert_eq!(at("/v1/fields/x/field/status"), Some((Some("x".into()), Endpoint::Status)));
        assert_eq!(at("/v1/look/replay"), Some((None, Endpoint::Look(Operation::Replay))));
        assert_eq!(at("/v1/look/record"), None);
        assert_eq!(at("/v1/events"), Some((None, Endpoint::Events)));
        assert_eq!(at("/v1/schema/record.json"), Some((None, Endpoint::Schema("record".into()))));
        assert_eq!(at("/mcp"), Some((None, Endpoint::Mcp)));
        assert_eq!(at("/v1/fields/x/mcp"), Some((Some("x".into()), Endpoint::Mcp)));
        assert_eq!(at("/v1/fields/x/ws"), Some((Some("x".into()), Endpoint::WebSocket)));
    }

    #[test]
    fn tricks_lead_nowhere() {
        for path in [
            "",
            "*",
            "v1/record",
            "//",
            "/v1",
            "/v1/",
            "/v1/record/",
            "//v1/record",
            "/v1//record",
            "/V1/record",
            "/v1/RECORD",
            "/v1/coordinate",
            "/v1/units/",
            "/v1/units/a/b",
            "/v1/units/..",
            "/v1/units/%2e%2e",
            "/v1/units/%2E",
            "/v1/units/a%2Fb",
            "/v1/units/a%5Cb",
            "/v1/units/%00",
            "/v1/units/%0a",
            "/v1/units/%",
            "/v1/units/%4",
            "/v1/units/%zz",
            "/v1/units/%+4",
            "/v1/units/%ff",
            "/v1/../v1/record",
            "/v1/./record",
            "/v1/fields",
            "/v1/fields/",
            "/v1/fields/x",
            "/v1/fields//record",
            "/v1/fields/../record",
            "/v1/fields/%2e%2e/record",
            "/v1/fields/a%2frecord",
            "/healthz/",
            "/metrics/x",
            "/openapi.json/",
            "/v1/schema/record",
            "/mcp/",
            "/v1/record%20",
            "/v1/record%2f",
        ] {
            assert_eq!(Target::parse(path), None, "{path:?}");
        }
    }

    #[test]
    fn methods_are_exact() {
        assert!(Endpoint::Units.allows(&Method::HEAD) && Endpoint::Units.allows(&Method::GET));
        assert!(!Endpoint::Units.allows(&Method::POST) && !Endpoint::Messages.allows(&Method::GET));
        assert!(Endpoint::WebSocket.allows(&Method::GET) && !Endpoint::WebSocket.allows(&Method::HEAD));
    }

    #[test]
    fn queries() {
        let query = Query::new("a=1&b=x+y%26z&a=2&broken=%zz&empty=&bare".into());
        assert_eq!(query.text("a").unwrap().as_deref(), Some("2"));
        assert_eq!(query.text("b").unwrap().as_deref(), Some("x y&z"));
        assert_eq!(query.text("absent").unwrap(), None);
        for key in ["broken", "empty", "bare"] {
            assert_eq!(query.text(key).unwrap_err().details["key"], key);
        }
        let number = query.value("b", || "a number".into(), |text| text.parse::<u8>().ok());
        assert_eq!(number.unwrap_err().details["key"], "b");
        assert_eq!(Query::new(String::new()).text("a").unwrap(), None);
    }
}

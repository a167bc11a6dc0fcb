//! What the client commands share: where the hub is, who asks, and how a payload gets there.
//!
//! They speak HTTP: an agent that once held a WebSocket would be taken for failed soon after each command. Only
//! `subscribe` holds one, for as long as it listens.

use std::io::Read;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::exit::Failure;
use super::screen::{self, quoted};
use crate::client::http::HttpClient;
use crate::client::{ClientOptions, HubAddress};
use crate::protocol::{Operation, RelationType};

/// Where the hub is when nobody says.
pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:7420";

/// How long a command waits for its answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same where a large Field is gone through, and going away would cut the work off: Ctrl-C is what ends it.
const LONG_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the hub is, and how to print what it says.
#[derive(Debug, Clone, Args)]
pub(super) struct Hub {
    /// The hub
    #[arg(long, env = "AKASHIK_URL", value_name = "URL", default_value = DEFAULT_URL)]
    url: String,
    /// The Field; without it the one in the URL, else the hub's first
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// The agent that asks
    #[arg(long, env = "AKASHIK_AGENT", value_name = "ID")]
    pub agent: Option<String>,
    /// Token, where the hub asks for one
    #[arg(long, env = "AKASHIK_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Print JSON also on a terminal
    #[arg(long)]
    pub json: bool,
}

impl Hub {
    fn client(&self) -> Result<HttpClient, Failure> {
        let mut address: HubAddress = self.url.parse().map_err(Failure::usage)?;
        if let Some(field) = &self.field {
            address = address.with_field(field).map_err(Failure::usage)?;
        }
        // An empty variable is how many a shell script says "none".
        let token = self.token.clone().filter(|token| !token.is_empty());
        // A token that no header can carry would only fail later, and less clearly.
        if token.as_ref().is_some_and(|token| http::HeaderValue::from_str(token).is_err()) {
            return Err(Failure::usage("the token contains characters that no header can carry"));
        }
        Ok(HttpClient { address, token, patience: PATIENCE })
    }

    /// The hub's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The agent that asks.
    pub fn agent(&self) -> Result<&str, Failure> {
        let missing = || Failure::usage("who asks? Give --agent ID or set AKASHIK_AGENT");
        self.agent.as_deref().ok_or_else(missing)
    }

    /// These flags again, as they are typed: what a command to paste begins with. The token is left out: what stands
    /// on a screen is read by others too.
    pub fn flags(&self) -> String {
        let url = Some(self.url.as_str()).filter(|url| *url != DEFAULT_URL);
        let said = [("--url", url), ("--field", self.field.as_deref()), ("--agent", self.agent.as_deref())];
        let said = said.into_iter().filter_map(|(flag, value)| Some(format!("{flag} {}", quoted(value?))));
        said.collect::<Vec<_>>().join(" ")
    }

    /// As whom to hold a connection.
    pub fn options(&self) -> Result<ClientOptions, Failure> {
        let HttpClient { token, .. } = self.client()?;
        let mut options = ClientOptions::new(self.agent()?).patient_for(PATIENCE);
        (options.token, options.field) = (token, self.field.clone());
        Ok(options)
    }

    /// Sends one operation and returns the response.
    pub fn operate(
        &self,
        operation: Operation,
        session: Option<&str>,
        payload: &Value,
    ) -> Result<Box<RawValue>, Failure> {
        let (client, agent) = (self.client()?, self.agent()?);
        let payload = serde_json::value::to_raw_value(payload).map_err(Failure::failed)?;
        Ok(runtime()?.block_on(client.operate(operation, agent, session, None, payload))?)
    }

    /// Reads something under `/v1/`.
    pub fn get(&self, rest: &str) -> Result<Box<RawValue>, Failure> {
        let client = self.client()?;
        Ok(runtime()?.block_on(client.get(rest, self.agent.as_deref()))?)
    }
}

/// One operation: where, by whom, and as which message.
#[derive(Debug, Clone, Args)]
pub(super) struct Ask {
    #[command(flatten)]
    hub: Hub,
    /// The protocol session that this belongs to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Name of this message: repeated with the same name, it is done once
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
    /// The whole payload as JSON, in place of its flags ('-' reads stdin)
    #[arg(long, value_name = "JSON", conflicts_with = "Flags")]
    payload: Option<String>,
}

impl Ask {
    /// The agent that asks.
    pub fn agent(&self) -> Result<&str, Failure> {
        self.hub.agent()
    }

    /// The protocol session that it belongs to, if any.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Sends the operation with the given payload, or with the flags' one, and prints the response.
    pub fn run(
        &self,
        operation: Operation,
        flags: impl FnOnce() -> Result<Value, Failure>,
        readable: impl FnOnce(&Value) -> String,
    ) -> Result<(), Failure> {
        self.tell(operation, flags, |_, response| readable(response))
    }

    /// As [`Ask::run`], where the words for the response also need the payload that was sent.
    pub fn tell(
        &self,
        operation: Operation,
        flags: impl FnOnce() -> Result<Value, Failure>,
        readable: impl FnOnce(&Value, &Value) -> String,
    ) -> Result<(), Failure> {
        let payload = self.payload(flags)?;
        let response = self.operate(operation, payload.clone())?;
        screen::show_response(self.hub.json, &response, |response| {
            readable(&serde_json::from_str(payload.get()).unwrap_or_default(), response)
        })
    }

    /// Sends the operation and returns the response.
    pub fn send(
        &self,
        operation: Operation,
        flags: impl FnOnce() -> Result<Value, Failure>,
    ) -> Result<Box<RawValue>, Failure> {
        self.operate(operation, self.payload(flags)?)
    }

    fn payload(&self, flags: impl FnOnce() -> Result<Value, Failure>) -> Result<Box<RawValue>, Failure> {
        // Where and who is settled before stdin is read.
        let _ = (self.hub.client()?, self.agent()?);
        match &self.payload {
            None => serde_json::value::to_raw_value(&flags()?).map_err(Failure::failed),
            Some(text) => whole_payload(&text_or_stdin(text)?),
        }
    }

    fn operate(&self, operation: Operation, payload: Box<RawValue>) -> Result<Box<RawValue>, Failure> {
        let (mut client, agent) = (self.hub.client()?, self.agent()?);
        if matches!(operation, Operation::Detect | Operation::Compact) {
            client.patience = LONG_PATIENCE;
        }
        let (session, id) = (self.session.as_deref(), self.message_id.as_deref());
        Ok(runtime()?.block_on(client.operate(operation, agent, session, id, payload))?)
    }

    /// The Field's newest conflicts, where a response names any: it has their ids alone. None where they cannot be
    /// had, for the operation itself has succeeded.
    pub fn conflicts_of(&self, response: &Value) -> Vec<Value> {
        if response["conflicts_detected"].as_array().is_none_or(Vec::is_empty) {
            return Vec::new();
        }
        let all = "conflicts?status=detected,resolving,escalated,resolved";
        let listed = self.hub.get(all).ok().and_then(|listed| serde_json::from_str(listed.get()).ok());
        listed.map_or_else(Vec::new, |Listed { conflicts }| conflicts)
    }

    /// Whether to print JSON also on a terminal.
    pub fn json(&self) -> bool {
        self.hub.json
    }
}

/// `GET /v1/conflicts`.
#[derive(Deserialize)]
struct Listed {
    conflicts: Vec<Value>,
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn whole_payload(text: &str) -> Result<Box<RawValue>, Failure> {
    let payload: Box<RawValue> = serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("--payload is no valid JSON: {error}")))?;
    if !payload.get().starts_with('{') {
        return Err(Failure::usage("--payload is no JSON object"));
    }
    Ok(payload)
}

/// The text itself, or stdin's for `-`.
pub(super) fn text_or_stdin(text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut read = String::new();
    std::io::stdin()
        .read_to_string(&mut read)
        .map_err(|error| Failure::failed(format!("cannot read stdin: {error}")))?;
    Ok(read)
}

/// A relation flag, `TYPE:ID`. The Field judges the id; only the form and the type are checked here.
pub(super) fn relation(text: &str) -> Result<Value, String> {
    let (kind, target) = text.split_once(':').ok_or("must be TYPE:ID, such as supersedes:mem-3")?;
    let kind = RelationType::from_name(kind)
        .ok_or_else(|| format!("{kind:?} is none of {}", RelationType::names()))?;
    if target.trim().is_empty() {
        return Err("must be TYPE:ID, such as supersedes:mem-3".to_owned());
    }
    Ok(json!({ "type": kind, "target_id": target }))
}

/// A number flag that JSON can carry.
pub(super) fn number(text: &str) -> Result<f64, String> {
    text.parse::<f64>().ok().filter(|n| n.is_finite()).ok_or_else(|| "must be a number".to_owned())
}

/// An object without the keys that nothing was said about.
pub(super) fn object<const N: usize>(keys: [(&str, Value); N]) -> Value {
    let said = keys.into_iter().filter(|(_, value)| !is_unsaid(value));
    Value::Object(said.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn is_unsaid(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_a_type_and_an_id() {
        assert_eq!(relation("supersedes:mem-3"), Ok(json!({"type": "supersedes", "target_id": "mem-3"})));
        assert_eq!(relation("informs:a:b").unwrap()["target_id"], "a:b");
        for wrong in ["mem-3", "replaces:mem-3", "supports:", "supports: ", ":mem-3", ""] {
            assert!(relation(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_what_was_said_is_sent() {
        let value = object([("a", json!(null)), ("b", json!([])), ("c", json!(0)), ("d", json!(false))]);
        assert_eq!(value, json!({"c": 0}));
        assert!(number("nan").is_err() && number("1e999").is_err() && number("0.5") == Ok(0.5));
    }
}

//! `akashik register`: REGISTER.

use clap::Args;
use serde_json::{Value, json};

use super::ask::{Ask, object};
use super::exit::Failure;
use super::screen;
use crate::protocol::Operation;

/// REGISTER.
#[derive(Debug, Args)]
pub(super) struct Register {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// The agent's role
    #[arg(long, required_unless_present = "payload")]
    role: Option<String>,
    /// Something the agent cares for; repeat it for more
    #[arg(long)]
    interest: Vec<String>,
    /// An operation that the Field must serve; repeat it for more
    #[arg(long, value_name = "OPERATION")]
    required_operation: Vec<String>,
}

impl Register {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let flags = &self.flags;
        let payload = || {
            Ok(object([
                ("id", json!(self.ask.agent()?)),
                ("role", json!(flags.role)),
                ("interests", json!(flags.interest)),
                ("required_operations", json!(flags.required_operation)),
            ]))
        };
        let response = self.ask.send(Operation::Register, payload)?;
        screen::show_response(self.ask.json(), &response, readable)?;
        // Rejected is an answer (section 12), and still not what was asked for.
        let answer: Value = serde_json::from_str(response.get()).map_err(Failure::failed)?;
        if answer["status"] == "rejected" {
            return Err(Failure::failed(format!("rejected: {}", screen::plain(&answer["rejection_reason"]))));
        }
        Ok(())
    }
}

/// Who joined what, and what the Field can do.
fn readable(response: &Value) -> String {
    let (agent, field) = (&response["agent"], &response["field_capabilities"]);
    if agent.is_null() {
        return String::new();
    }
    let said = |value: &Value| screen::plain(value);
    let list =
        |key: &str| field[key].as_array().into_iter().flatten().map(said).collect::<Vec<_>>().join(", ");
    // Not the configured level, which `status` shows: a Field may be allowed more than it meets in full.
    let mut out = format!(
        "{} joined the Field {} as {}\nconformance level met in full: {}\nit serves {}",
        said(&agent["id"]),
        said(&field["field"]),
        said(&agent["role"]),
        said(&field["conformance_level"]),
        list("supported_operations"),
    );
    let extensions = list("extensions");
    if !extensions.is_empty() {
        out.push_str(&format!("\nbeyond that level: {extensions}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_which_level_is_met() {
        let answer = |extensions: Value| {
            json!({"agent": {"id": "ann", "role": "critic"}, "field_capabilities": {"field": "lab",
                "conformance_level": 1, "supported_operations": ["REGISTER", "RECORD"], "extensions": extensions}})
        };
        let plain = "ann joined the Field lab as critic\nconformance level met in full: 1\nit serves REGISTER, RECORD";
        assert_eq!(readable(&answer(json!([]))), plain);
        let except = json!(["level-2-except-handoff", "sse"]);
        assert_eq!(
            readable(&answer(except)),
            format!("{plain}\nbeyond that level: level-2-except-handoff, sse")
        );
        assert_eq!(readable(&json!({"agent": null})), "");
    }
}

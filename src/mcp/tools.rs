//! The tools: one for each operation that a language model has a use for, with words that say when to use it.

use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::protocol::{Operation, schema};

/// Whoever calls, by its own word, where the session does not know it.
pub const AGENT_ID: &str = "agent_id";
/// Names a message, so that a repeat is done once.
pub const MESSAGE_ID: &str = "message_id";
/// Names the protocol session that something belongs to.
pub const SESSION_ID: &str = "session_id";

/// What a tool does to the Field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Only looks.
    Looks,
    /// Adds, and takes nothing away.
    Adds,
    /// Changes what others see; again it changes nothing more.
    Settles,
    /// Takes something away; again it takes more away.
    Takes,
}

/// A tool before its schemas are put in.
struct Draft {
    operation: Operation,
    title: &'static str,
    description: &'static str,
    effect: Effect,
}

const DRAFTS: [Draft; 9] = [
    Draft {
        operation: Operation::Register,
        title: "Join the team's memory",
        description: "Join the team's shared memory, the Field. Call it once, before the other tools. Choose an id that \
            you keep (such as \"researcher-01\") and a role that says what you do (such as \"market_researcher\"): \
            relevance is judged by the role and by your interests. This session remembers the id, so that agent_id can \
            be left out later. AGENT_ID_TAKEN says that the id is registered already: if it is yours from an earlier \
            session, do not register, pass it as agent_id; if not, choose another.",
        effect: Effect::Adds,
    },
    Draft {
        operation: Operation::Deregister,
        title: "Leave the team's memory",
        description: "Leave the Field. What you recorded stays for the others. Use it when your part of the work is \
            over, not at the end of every conversation: an agent stays registered while it is away.",
        effect: Effect::Settles,
    },
    Draft {
        operation: Operation::Record,
        title: "Record what the team should know",
        description: "Record one piece of knowledge for all agents of the team. Record as soon as something is \
            established that another agent could need: a finding, decision, constraint, assumption, open question, an \
            intention to do something. One self-contained statement a unit, not a summary of the conversation. \
            intent.purpose says why it is recorded (what it is for), confidence how sure you are and on what ground. \
            Nothing can be edited: to correct a unit record a \"correction\" that supersedes it; if you disagree with \
            one, record your own with a contradicts relation, which opens a conflict for the team to settle. \
            conflicts_detected in the answer names what you contradicted.",
        effect: Effect::Adds,
    },
    Draft {
        operation: Operation::Attune,
        title: "Be brought what matters now",
        description: "Be brought what the team knows that matters for what you are about to do; no query is needed. \
            Call it before you begin a task, before you decide, and when the subject changes. Say in context_hint what \
            you are about to do. max_units 10 is a good start; max_tokens bounds the cost; format \"summary\" is \
            cheaper. Units come by relevance, each with its reason; a \"contested\" one is contradicted by another, and \
            conflicts lists what is undecided. To poll for news, send the answer's epoch as since_epoch next time: \
            nothing is missed or repeated. If units_available is more than units_returned, ask again with the old \
            since_epoch and a larger max_units. Your own units are left out.",
        effect: Effect::Looks,
    },
    Draft {
        operation: Operation::Detect,
        title: "Find and list conflicts",
        description: "List the conflicts between units, for instance with mode \"list\" and filter.status \
            [\"detected\", \"escalated\"] those that wait for a decision; compare one unit with the whole memory with \
            mode \"check\" and target_id, or everything with mode \"scan\", which takes longer. Look before you rely on a contested unit, and \
            when you are asked to settle disagreements (akashik_merge).",
        effect: Effect::Looks,
    },
    Draft {
        operation: Operation::Merge,
        title: "Settle a conflict",
        description: "Settle a conflict between two units. Read both first (akashik_replay with target_type \
            \"conflict\"). Strategies: last_write_wins and confidence_weighted decide by themselves, evidence_count by \
            support; synthesis writes a new unit in place of both; vote casts your ballot for winner_id; \
            human_escalation leaves it to a person. The loser is superseded and no longer brought. Give the reason in \
            resolution.rationale.",
        effect: Effect::Takes,
    },
    Draft {
        operation: Operation::Replay,
        title: "Ask how something came about",
        description: "Reconstruct from the log how a unit, decision, conflict, task or session came about: who recorded \
            what, why, what replaced or contradicted it, how it was settled. depth \"summary\" reads best; \"detailed\" \
            and \"full_trace\" list events.",
        effect: Effect::Looks,
    },
    Draft {
        operation: Operation::Compact,
        title: "Tidy up old memory",
        description: "Archive, summarize or purge older units so that the memory stays to the point. archive hides them \
            from akashik_attune, summarize also writes syntheses of them, purge deletes for good. Only on request, and \
            with a filter.",
        effect: Effect::Takes,
    },
    Draft {
        operation: Operation::Retract,
        title: "Take a unit back",
        description: "Take back a unit of yours that turned out wrong and has no replacement; final. Where there is a \
            replacement, record it with a supersedes relation instead.",
        effect: Effect::Settles,
    },
];

impl Draft {
    fn name(&self) -> String {
        format!("akashik_{}", self.operation.name().to_ascii_lowercase())
    }

    fn annotations(&self) -> ToolAnnotations {
        let effect = self.effect;
        let repeatable = matches!(effect, Effect::Looks | Effect::Settles);
        ToolAnnotations::with_title(self.title)
            .read_only(effect == Effect::Looks)
            .destructive(matches!(effect, Effect::Settles | Effect::Takes))
            .idempotent(repeatable)
            .open_world(false)
    }

    /// The request's keys, and what MCP puts beside them.
    fn input(&self) -> Map<String, Value> {
        let mut input = schema::plain_request(self.operation).unwrap_or_default();
        let beside = |key: &str, description: &str| {
            (key.to_owned(), json!({ "type": "string", "minLength": 1, "description": description }))
        };
        let mut more = Vec::new();
        match self.operation {
            Operation::Register => {}
            Operation::Deregister => {
                more.push(beside(AGENT_ID, "Who leaves; you, when left out."));
                input.remove("required");
            }
            _ => {
                more.push(beside(AGENT_ID, "Your id; needed only where this session has not registered it."))
            }
        }
        if self.operation == Operation::Record {
            more.push(beside(
                SESSION_ID,
                "The protocol session that this belongs to, if your team works in one.",
            ));
        }
        if self.effect != Effect::Looks {
            let told =
                "Any name for this call: repeated under the same name after a failure, it is done once.";
            more.push(beside(MESSAGE_ID, told));
        }
        if let Some(Value::Object(properties)) = input.get_mut("properties") {
            properties.extend(more);
        }
        input
    }

    fn tool(&self) -> Tool {
        let output = schema::of_operation(self.operation).and_then(|(_, answer)| schema::named(answer));
        let tool = Tool::new(self.name(), self.description, Arc::new(self.input()))
            .with_title(self.title)
            .with_annotations(self.annotations());
        match output.and_then(Value::as_object) {
            Some(output) => tool.with_raw_output_schema(Arc::new(output.clone())),
            None => tool,
        }
    }
}

/// All tools with their operations; made once.
static CATALOGUE: LazyLock<Vec<(Operation, Tool)>> =
    LazyLock::new(|| DRAFTS.iter().map(|draft| (draft.operation, draft.tool())).collect());

/// The tools of the operations that are served.
pub fn serving(operations: &[Operation]) -> Vec<Tool> {
    let served = CATALOGUE.iter().filter(|(operation, _)| operations.contains(operation));
    served.map(|(_, tool)| tool.clone()).collect()
}

/// The operation of a tool, and the tool.
pub fn named(name: &str) -> Option<(Operation, &'static Tool)> {
    CATALOGUE.iter().find(|(_, tool)| tool.name == name).map(|(operation, tool)| (*operation, tool))
}

/// The names of all tools, for messages.
pub fn names() -> String {
    CATALOGUE.iter().map(|(_, tool)| tool.name.as_ref()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_whole() {
        assert_eq!(serving(&Operation::ALL).len(), 9);
        for (operation, tool) in CATALOGUE.iter() {
            assert_eq!(named(&tool.name).map(|(known, _)| known), Some(*operation));
            let input = Value::Object(tool.input_schema.as_ref().clone());
            assert!(jsonschema::meta::is_valid(&input), "{}", tool.name);
            assert_eq!((&input["type"], input.get("$ref")), (&json!("object"), None), "{}", tool.name);
            assert!(tool.output_schema.is_some(), "{}", tool.name);
            let undescribed: Vec<_> = properties_without_words(&input);
            assert!(undescribed.is_empty(), "{} says nothing of {undescribed:?}", tool.name);
        }
        let listed = serde_json::to_string(&serving(&[Operation::Record])).unwrap();
        assert!(listed.contains("akashik_record") && !listed.contains("akashik_attune"));
    }

    fn properties_without_words(schema: &Value) -> Vec<String> {
        let mut found = Vec::new();
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            if property["description"].as_str().is_none_or(str::is_empty) {
                found.push(key.clone());
            }
            found.extend(properties_without_words(property));
            found.extend(properties_without_words(&property["items"]));
        }
        found
    }

    #[test]
    fn hints_tell_the_truth() {
        for (operation, tool) in CATALOGUE.iter() {
            let hints = tool.annotations.as_ref().unwrap();
            assert_eq!(hints.read_only_hint, Some(operation.is_read()), "{operation}");
            if operation.is_read() {
                assert_eq!(hints.destructive_hint, Some(false), "{operation}");
            }
        }
    }

    #[test]
    fn a_request_example_fits_its_tool() {
        for (operation, tool) in CATALOGUE.iter() {
            let input = Value::Object(tool.input_schema.as_ref().clone());
            let mut example = schema::example(*operation).unwrap();
            // Tools leave out what reads as absent.
            if let Some(map) = example.as_object_mut() {
                map.values_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(|map| map.retain(|_, v| !v.is_null()));
            }
            let validator = jsonschema::validator_for(&input).unwrap();
            assert!(validator.is_valid(&example), "{operation}: {:?}", validator.validate(&example).err());
        }
    }
}

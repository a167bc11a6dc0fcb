//! The words that teach a language model the protocol: instructions for every session, and a prompt for an agent.

use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

/// What a client may put before its model when it connects.
pub const INSTRUCTIONS: &str = "Akashik is the shared memory of a team of agents. Register once (akashik_register). \
    Before you begin or decide something, call akashik_attune with what you are about to do. When something is \
    established that others could need, akashik_record it with its purpose and your confidence. Correct with a \
    supersedes relation, disagree with a contradicts relation; never let a contradiction pass in silence. Poll with \
    since_epoch.";

/// The name of the one prompt.
pub const PROMPT: &str = "akashik_agent";

/// Longest argument that is put into the prompt, in characters.
const ARGUMENT_MAX_CHARS: usize = 2_000;

const LESSON: &str = "\
You share a memory, the Akashik Field, with other agents. Nobody tells you what they found; the Field does.

1. Join: akashik_register with an id that you keep and your role. If the id is taken and yours, just use it as agent_id.
2. Before a task, a decision or a new subject: akashik_attune { scope: { role, max_units: 10 }, context_hint: what you \
are about to do }. Trust the reasons given, mind \"contested\" units and the listed conflicts, and name the units (mem-…) \
that you rely on.
3. As you work, record with akashik_record what others could need, one statement a unit:
   - type: finding (learned), observation (seen), decision (settled), constraint, assumption, question, intention (what \
you will do), correction, synthesis, human_directive (a person's order).
   - content: understandable without your conversation, with numbers, dates and names.
   - intent.purpose: why the team needs it; task_id if there is a task.
   - confidence: a score from 0 to 1 and its ground. Be honest: 0.9 for primary data, 0.5 for an estimate.
   - relations: supports, answers, depends_on, elaborates… to units you know.
4. Wrong? Record a correction with relations [{ type: \"supersedes\", target_id }]. Without a replacement: akashik_retract.
5. Disagree? Record your own unit with { type: \"contradicts\", target_id }. The conflict stays visible until somebody \
settles it with akashik_merge and a rationale.
6. Waiting or between steps: akashik_attune with since_epoch set to the epoch of your last answer brings only what is new.
7. Asked why something is so: akashik_replay.

Errors say what to do next in suggested_action; follow it.";

/// The prompt, as it is listed.
pub fn prompt() -> Prompt {
    let argument = |name: &str, description: &str| {
        PromptArgument::new(name).with_description(description).with_required(false)
    };
    let arguments = vec![
        argument("id", "The agent's id, such as researcher-01"),
        argument("role", "The agent's role, such as market_researcher"),
        argument("task", "What the agent is to do"),
    ];
    Prompt::new(PROMPT, Some("How to work as an agent that shares the team's memory"), Some(arguments))
        .with_title("Work with the team's memory")
}

/// The prompt, told to an agent.
pub fn told(arguments: Option<&JsonObject>) -> GetPromptResult {
    let given = |name: &str| {
        let text = arguments?.get(name).and_then(Value::as_str)?.trim();
        let text: String = text.chars().take(ARGUMENT_MAX_CHARS).collect();
        (!text.is_empty()).then_some(text)
    };
    let mut lesson = LESSON.to_owned();
    if let Some(id) = given("id") {
        lesson.push_str(&format!("\n\nYour id: {id}"));
    }
    if let Some(role) = given("role") {
        lesson.push_str(&format!("\n\nYour role: {role}"));
    }
    if let Some(task) = given("task") {
        lesson.push_str(&format!("\n\nYour task: {task}"));
    }
    GetPromptResult::new(vec![PromptMessage::new_text(Role::User, lesson)])
        .with_description("How to work as an agent that shares the team's memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lesson_is_short() {
        // Some 4 characters make a token: a few hundred tokens.
        assert!(LESSON.len() < 3_000, "{} bytes", LESSON.len());
        assert!(INSTRUCTIONS.len() < 700, "{} bytes", INSTRUCTIONS.len());
    }

    #[test]
    fn arguments_stand_in_it() {
        let arguments = serde_json::json!({ "role": "strategist", "task": " ", "other": 1 });
        let text = serde_json::to_string(&told(arguments.as_object())).unwrap();
        assert!(text.contains("Your role: strategist") && !text.contains("Your task"), "{text}");
    }
}

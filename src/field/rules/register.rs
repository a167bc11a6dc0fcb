//! REGISTER and DEREGISTER (section 7): who is in the Field.

use std::sync::Arc;

use serde_json::json;

use super::super::decide::{Change, Ground};
use super::super::event::Event;
use crate::protocol::{
    Agent, AgentStatus, Cleanup, DeregisterRequest, Deregistered, ErrorCode, Operation, Refusal,
    RegisterRequest, Registered, SYSTEM,
};

/// An agent that needs operations that are not served is answered `rejected`: nothing is registered, but the
/// message is remembered like every other that was answered.
pub(in super::super) fn register(ground: &Ground<'_>, request: &RegisterRequest) -> Result<Change, Refusal> {
    let id = &ground.message.agent_id;
    let missing: Vec<_> = request
        .required_operations
        .iter()
        .filter(|name| !is_served(ground, name))
        .map(AsRef::as_ref)
        .collect();
    if !missing.is_empty() {
        let reply = Registered {
            status: "rejected".to_owned(),
            agent: None,
            field_capabilities: ground.policy.capabilities.clone(),
            rejection_reason: Some(format!("This Field does not serve {}.", missing.join(", "))),
        };
        return Ok(Change::new(Vec::new(), &reply));
    }
    let resumed = claim(ground, request)?;
    let reply = Registered {
        status: "registered".to_owned(),
        agent: Some(Agent {
            id: Arc::clone(id),
            role: Arc::clone(&request.role),
            status: AgentStatus::Idle,
            interests: request.interests.clone(),
            current_task_id: None,
        }),
        field_capabilities: ground.policy.capabilities.clone(),
        rejection_reason: None,
    };
    let event =
        Event::Registered { role: Arc::clone(&request.role), interests: request.interests.clone(), resumed };
    Ok(Change::new(vec![event], &reply))
}

fn is_served(ground: &Ground<'_>, name: &str) -> bool {
    Operation::from_name(name).is_some_and(|operation| operation.is_served_at(ground.policy.level))
}

/// Whether the id is free for the sender; true when it comes back to its own registration (section 4).
fn claim(ground: &Ground<'_>, request: &RegisterRequest) -> Result<bool, Refusal> {
    let id = &ground.message.agent_id;
    let taken = |message: String| {
        Err(Refusal::new(
            ErrorCode::AgentIdTaken,
            message,
            "If this agent is you, go on without REGISTER; if not, register under another id.",
        )
        .with("agent_id", json!(id)))
    };
    if &**id == SYSTEM {
        return taken(format!("{SYSTEM:?} is the Field itself."));
    }
    let world = &ground.state.world;
    let Some(no) = world.agent_no(id) else { return Ok(false) };
    let record = world.agent(no);
    if !record.is_active() {
        return Ok(false);
    }
    if !ground.state.presence.is_gone(no) {
        return taken(format!("The id {id:?} is registered and active."));
    }
    if record.agent.role != request.role {
        return taken(format!(
            "The id {id:?} belongs to an agent in the role {:?} that may still return.",
            record.agent.role
        ));
    }
    Ok(true)
}

pub(in super::super) fn deregister(ground: &Ground<'_>, request: &DeregisterRequest) -> Change {
    let world = &ground.state.world;
    let target = world.agent_no(&request.agent_id);
    let here = target.filter(|no| world.agent(*no).agent.status != AgentStatus::Offline);
    let units_orphaned = here.map_or(0, |no| world.live_by_author[no as usize] as usize);
    let reply = Deregistered {
        status: if here.is_some() { "ok" } else { "not_found" }.to_owned(),
        cleanup: Cleanup { units_orphaned, tasks_reassigned: 0 },
    };
    let events = here
        .map(|no| Event::Deregistered { agent: Arc::clone(&world.agent(no).agent.id) })
        .into_iter()
        .collect();
    Change::new(events, &reply)
}

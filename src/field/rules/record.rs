//! RECORD (section 7): a unit enters the Field.

use std::sync::Arc;

use super::super::decide::{Change, Ground, Halt};
use super::super::event::Event;
use super::relate;
use crate::protocol::{Mode, RecordRequest, Recorded, Source, Unit, UnitId};

pub(in super::super) fn record(ground: &Ground<'_>, request: &RecordRequest) -> Result<Change, Halt> {
    let mut relations = request.relations.clone();
    let committed = request.mode == Mode::Committed;
    let effects = relate::resolve(ground, &mut relations, committed)?;
    let unit = Arc::new(Unit {
        id: UnitId::new(ground.epoch, 0),
        mode: request.mode,
        kind: request.kind,
        content: request.content.clone(),
        intent: request.intent.clone(),
        confidence: request.confidence.clone(),
        source: source(ground),
        relations,
    });
    let supersedes = effects.superseded_ids(ground);
    let mut events = vec![Event::Recorded { unit: Arc::clone(&unit), supersedes }];
    let warning = super::unenriched(ground, &unit, &mut events);
    let conflicts_detected = effects.consequences(ground, &unit, &mut events);
    let (conflict_detection, timeout) = super::detected::deferred(ground, &unit, &mut events).unzip();
    let reply = Recorded {
        status: "accepted".to_owned(),
        memory_unit_id: unit.id,
        epoch: ground.epoch,
        conflicts_detected,
        conflict_detection,
        rejection_reason: None,
        warning: warning.or(timeout.flatten()),
    };
    Ok(Change::new(events, &reply))
}

/// Who speaks, in which role, session and moment: the Field says so, not the client.
pub(super) fn source(ground: &Ground<'_>) -> Source {
    let world = &ground.state.world;
    let (agent_id, agent_role) = match ground.agent {
        Some(no) => {
            let agent = &world.agent(no).agent;
            (Arc::clone(&agent.id), Arc::clone(&agent.role))
        }
        // Only REGISTER comes without a registered sender.
        None => (Arc::clone(&ground.message.agent_id), Arc::from("")),
    };
    Source {
        agent_id,
        agent_role,
        session_id: ground.message.session_id.as_ref().map(|id| world.interned_session(id)),
        timestamp: ground.at,
    }
}

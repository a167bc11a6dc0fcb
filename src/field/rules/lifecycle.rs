//! RETRACT, COMMIT, DISCARD (Extension, section 7): what an author does with a unit after recording it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::super::decide::{Change, Ground, Halt};
use super::super::event::Event;
use super::super::state::{Slot, UnitNo};
use super::relate;
use crate::protocol::{
    Acknowledged, CommitRequest, ErrorCode, GiveUpRequest, Mode, Operation, Refusal, Strategy, Unit, UnitId,
    UnitStatus, check_committed,
};

/// The sender's own unit that a request names.
fn own_unit(ground: &Ground<'_>, id: &str) -> Result<UnitNo, Refusal> {
    let world = &ground.state.world;
    // Another's draft is as good as unknown here, even where drafts are shared for reading.
    let named = world.find_visible(id, ground.agent, ground.policy);
    let drafted_by_other = |no: &UnitNo| {
        let slot = world.slot(*no);
        slot.mode == Mode::Draft && Some(slot.author) != ground.agent
    };
    let Some(no) = named.filter(|no| !drafted_by_other(no)) else {
        return Err(Refusal::new(
            ErrorCode::UnitNotFound,
            format!("There is no unit {id:?}."),
            "Name a unit that RECORD or ATTUNE has shown you.",
        )
        .with("key", json!("memory_unit_id")));
    };
    let slot = world.slot(no);
    if Some(slot.author) != ground.agent {
        let author = world.author_of(slot);
        return Err(Refusal::new(
            ErrorCode::Forbidden,
            format!(
                "{} was recorded by {author:?}; only its author may {} it.",
                slot.id, ground.message.operation
            ),
            "Record a unit of your own that supersedes or contradicts it.",
        )
        .with("author", json!(author)));
    }
    Ok(no)
}

fn wrong_state(slot: &Slot, operation: Operation, advice: &'static str) -> Refusal {
    Refusal::new(
        ErrorCode::InvalidTransition,
        format!("{} is {}: {operation} does not apply to it.", slot.id, slot.status),
        advice,
    )
    .with("status", json!(slot.status))
}

fn acknowledged(id: UnitId, epoch: u64) -> Acknowledged {
    Acknowledged {
        status: "ok".to_owned(),
        memory_unit_id: id,
        epoch,
        conflicts_detected: None,
        conflict_detection: None,
        warning: None,
    }
}

pub(in super::super) fn retract(ground: &Ground<'_>, request: &GiveUpRequest) -> Result<Change, Refusal> {
    let no = own_unit(ground, &request.memory_unit_id)?;
    let slot = ground.state.world.slot(no);
    let mut events = Vec::new();
    match slot.status {
        UnitStatus::Retracted => {}
        status if status.is_live() => {
            events.push(Event::Retracted { memory_unit_id: slot.id, reason: request.reason.clone() });
            let reason = super::excerpt(&request.reason, super::SAID);
            let why = |left: UnitId| format!("{left} was retracted by its author: {reason}");
            relate::settle(ground, no, Strategy::Authority, why, &mut BTreeSet::new(), &mut events);
        }
        UnitStatus::Draft => {
            return Err(wrong_state(slot, Operation::Retract, "DISCARD the draft instead."));
        }
        _ => {
            let advice = "Nothing is left to retract; RETRACT the unit that superseded it if that is wrong.";
            return Err(wrong_state(slot, Operation::Retract, advice));
        }
    }
    Ok(Change::new(events, &acknowledged(slot.id, ground.epoch)))
}

pub(in super::super) fn discard(ground: &Ground<'_>, request: &GiveUpRequest) -> Result<Change, Refusal> {
    let no = own_unit(ground, &request.memory_unit_id)?;
    let slot = ground.state.world.slot(no);
    if slot.status != UnitStatus::Draft {
        let advice = "DISCARD is for drafts; RETRACT what was committed.";
        return Err(wrong_state(slot, Operation::Discard, advice));
    }
    let event = Event::Discarded { memory_unit_id: slot.id, reason: request.reason.clone() };
    Ok(Change::new(vec![event], &acknowledged(slot.id, ground.epoch)))
}

/// The rules of a RECORD at this moment apply; refused, the draft stays a draft (section 12).
pub(in super::super) fn commit(ground: &Ground<'_>, request: &CommitRequest) -> Result<Change, Halt> {
    let no = own_unit(ground, &request.memory_unit_id)?;
    let slot = ground.state.world.slot(no);
    // A draft is never archived, so it is held whole.
    let Some(draft) = slot.whole().filter(|_| slot.status == UnitStatus::Draft) else {
        let advice = "COMMIT is for drafts; RECORD a new unit instead.";
        return Err(wrong_state(slot, Operation::Commit, advice).into());
    };
    let mut unit = Unit::clone(draft);
    unit.mode = Mode::Committed;
    unit.source.timestamp = ground.at;
    if let Some(confidence) = &request.confidence {
        unit.confidence = Some(confidence.clone());
    }
    if ground.policy.level >= 1 {
        check_committed(unit.confidence.as_ref())?;
    }
    if let Some(relations) = &request.relations {
        unit.relations.clone_from(relations);
    }
    let effects = relate::resolve(ground, &mut unit.relations, true)?;
    let unit = Arc::new(unit);
    let supersedes = effects.superseded_ids(ground);
    let mut events = vec![Event::Committed { unit: Arc::clone(&unit), supersedes }];
    let warning = super::unenriched(ground, &unit, &mut events);
    let made = effects.consequences(ground, &unit, &mut events);
    let (conflict_detection, timeout) = super::detected::deferred(ground, &unit, &mut events).unzip();
    let reply = Acknowledged {
        conflicts_detected: Some(made),
        conflict_detection,
        warning: warning.or(timeout.flatten()),
        ..acknowledged(unit.id, ground.epoch)
    };
    Ok(Change::new(events, &reply))
}

//! What `supersedes` and `contradicts` do: supersession stays linear, contradictions become conflicts, and
//! conflicts whose unit leaves the live states are settled (sections 3, 6 and 12).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::super::decide::{Ground, Halt};
use super::super::event::Event;
use super::super::kept::Wanting;
use super::super::state::{ConflictNo, Slot, UnitNo};
use super::detected;
use crate::limits::OPEN_CONFLICTS_MAX;
use crate::protocol::{
    Conflict, ConflictId, ConflictStatus, ConflictType, DetectedBy, ErrorCode, MemoryType, Refusal, Relation,
    RelationType, Resolution, SYSTEM, Strategy, Unit, UnitId, UnitStatus,
};

/// What a committed unit's relations come to.
pub(in super::super) struct Effects {
    /// The units that it replaces, in the order named, each once.
    pub supersedes: Vec<UnitNo>,
    /// The units that it contradicts, in the order named, each once.
    contradicts: Vec<(UnitNo, Option<Box<str>>)>,
}

/// Looks up the targets of a unit's relations. In a committed unit, `supersedes` and `contradicts` are
/// rewritten to name the unit that they take effect on: the latest of the named unit's chain.
pub(in super::super) fn resolve(
    ground: &Ground<'_>,
    relations: &mut [Relation],
    committed: bool,
) -> Result<Effects, Halt> {
    let world = &ground.state.world;
    let mut effects = Effects { supersedes: Vec::new(), contradicts: Vec::new() };
    for (at, relation) in relations.iter_mut().enumerate() {
        if !matches!(relation.kind, RelationType::Supersedes | RelationType::Contradicts) {
            continue;
        }
        let Some(named) = world.find_visible(&relation.target_id, ground.agent, ground.policy) else {
            return Err(unknown_target(at, relation).into());
        };
        if !committed {
            continue;
        }
        let no = world.latest(named);
        let slot = world.slot(no);
        if slot.purged {
            // The chain ends in a unit that is gone: there is nothing left that stands for it.
            return Err(unknown_target(at, relation).into());
        }
        if !slot.status.is_live() {
            return Err(dead_target(at, relation, slot).into());
        }
        if no != named {
            relation.target_id = slot.id.to_string().into();
        }
        if relation.kind == RelationType::Supersedes {
            if !effects.supersedes.contains(&no) {
                effects.supersedes.push(no);
            }
        } else if effects.contradicts.iter().all(|(known, _)| *known != no) {
            if world.open_disputes.get(&no).is_some_and(|open| open.len() >= OPEN_CONFLICTS_MAX) {
                return Err(disputed_enough(at, slot).into());
            }
            effects.contradicts.push((no, relation.description.clone()));
        }
    }
    // A conflict tells what both say, and what is contested is read again: its text comes back to memory.
    let unsaid = |no: &UnitNo| ground.policy.level >= 1 && ground.whole(*no).is_none();
    Wanting::check(world, effects.contradicts.iter().map(|(no, _)| *no).filter(unsaid))?;
    Ok(effects)
}

fn unknown_target(at: usize, relation: &Relation) -> Refusal {
    let target = &relation.target_id;
    Refusal::new(
        ErrorCode::UnitNotFound,
        format!("There is no unit {target:?} to be named in a {} relation.", relation.kind),
        "Name a unit that ATTUNE or RECORD has shown you.",
    )
    .with("key", json!(format!("relations[{at}].target_id")))
}

fn disputed_enough(at: usize, slot: &Slot) -> Refusal {
    Refusal::invalid(
        &format!("relations[{at}].target_id"),
        format!("{} is in {OPEN_CONFLICTS_MAX} unresolved conflicts already.", slot.id),
        "Wait until some of them are resolved, or record without the contradicts relation.",
    )
    .with("limit", json!(OPEN_CONFLICTS_MAX))
}

fn dead_target(at: usize, relation: &Relation, slot: &Slot) -> Refusal {
    let advice = match slot.status {
        UnitStatus::Draft => "COMMIT the draft first, or leave the relation out.",
        _ => "Leave the relation out: what was retracted no longer stands.",
    };
    Refusal::new(
        ErrorCode::InvalidTransition,
        format!("{} is {}; a {} relation needs a unit that stands.", slot.id, slot.status, relation.kind),
        advice,
    )
    .with("key", json!(format!("relations[{at}].target_id")))
    .with("status", json!(slot.status))
}

impl Effects {
    /// Ids of the replaced units.
    pub fn superseded_ids(&self, ground: &Ground<'_>) -> Vec<UnitId> {
        self.supersedes.iter().map(|no| ground.state.world.slot(*no).id).collect()
    }

    /// The events that follow the unit's own: conflicts made, and conflicts settled because a unit of theirs
    /// was replaced. Returns the ids of the conflicts made, those told of by the author first.
    pub fn consequences(&self, ground: &Ground<'_>, unit: &Unit, events: &mut Vec<Event>) -> Vec<ConflictId> {
        let world = &ground.state.world;
        let mut made = Vec::new();
        let (mut unit_is_listed, mut noticed) = (false, BTreeSet::new());
        if ground.policy.level >= 1 {
            for (number, (no, said)) in (0..).zip(&self.contradicts) {
                let id = ConflictId::new(ground.epoch, number);
                made.push(id);
                let older = (world.slot(*no), ground.whole(*no));
                let conflict = explicit_conflict(id, older, unit, said.as_deref());
                let contested = self.newly_contested(ground, *no, unit.id, &mut unit_is_listed);
                events.push(Event::ConflictCreated { conflict: Arc::new(conflict), contested });
            }
        }
        // Before anything is settled: what leaves a conflict in this entry and enters another stays contested.
        for suspicion in detected::suspicions(ground, unit) {
            let Some(no) = detected::holds_for_new(ground, unit, suspicion) else { continue };
            let told = self.contradicts.iter().any(|(known, _)| *known == no);
            let twice = !noticed.insert(no);
            if told || twice || self.supersedes.contains(&no) {
                continue;
            }
            let id = ConflictId::new(ground.epoch, u32::try_from(made.len()).unwrap_or(u32::MAX));
            made.push(id);
            let older = (world.slot(no).id, world.slot(no).kind);
            let conflict = detected::conflict(id, older, (unit.id, unit.kind), suspicion);
            let contested = self.newly_contested(ground, no, unit.id, &mut unit_is_listed);
            events.push(Event::ConflictCreated { conflict: Arc::new(conflict), contested });
        }
        for (id, (no, _)) in made.iter().zip(&self.contradicts) {
            if self.supersedes.contains(no) {
                let old = world.slot(*no).id;
                let why = format!("{} contradicts {old} and supersedes it in the same operation.", unit.id);
                events.push(settled(ground, *id, unit.id, Strategy::LastWriteWins, why));
            }
        }
        let mut settled_already = BTreeSet::new();
        for no in &self.supersedes {
            let why = |left: UnitId| format!("{left} was superseded by {}.", unit.id);
            settle(ground, *no, Strategy::LastWriteWins, why, &mut settled_already, events);
        }
        made
    }
}

impl Effects {
    /// The units that a new conflict of `unit` with `target` makes contested. One that is settled in the same
    /// operation contests nobody.
    fn newly_contested(
        &self,
        ground: &Ground<'_>,
        target: UnitNo,
        unit: UnitId,
        unit_is_listed: &mut bool,
    ) -> Vec<UnitId> {
        let slot = ground.state.world.slot(target);
        let mut contested = Vec::new();
        if !self.supersedes.contains(&target) {
            let quiet = matches!(slot.status, UnitStatus::Active | UnitStatus::PendingEnrichment);
            contested.extend(quiet.then_some(slot.id));
            contested.extend((!std::mem::replace(unit_is_listed, true)).then_some(unit));
        }
        contested
    }
}

/// Settles the open conflicts of a unit that leaves the live states, each in favour of the partner.
pub(in super::super) fn settle(
    ground: &Ground<'_>,
    leaving: UnitNo,
    strategy: Strategy,
    why: impl Fn(UnitId) -> String,
    settled_already: &mut BTreeSet<ConflictNo>,
    events: &mut Vec<Event>,
) {
    let world = &ground.state.world;
    let left = world.slot(leaving).id;
    for number in world.open_disputes.get(&leaving).into_iter().flatten() {
        if !settled_already.insert(*number) {
            continue;
        }
        let conflict = &world.conflicts[*number as usize];
        if let Some(partner) = conflict.partner_of(left) {
            events.push(settled(ground, conflict.id, partner, strategy, why(left)));
        }
    }
}

fn settled(
    ground: &Ground<'_>,
    conflict_id: ConflictId,
    winner: UnitId,
    strategy: Strategy,
    rationale: String,
) -> Event {
    Event::Merged {
        conflict_id,
        resolution: Resolution {
            strategy,
            winner_id: Some(winner),
            rationale: rationale.into(),
            resolved_by: SYSTEM.into(),
            epoch_resolved: ground.epoch,
        },
        // The losing unit has left the live states by its own way.
        superseded: Vec::new(),
    }
}

/// The conflict that a `contradicts` relation makes. The new unit is always the younger of the two.
fn explicit_conflict(
    id: ConflictId,
    (older, whole): (&Slot, Option<&Unit>),
    newer: &Unit,
    said: Option<&str>,
) -> Conflict {
    let description = match said {
        Some(said) if !said.trim().is_empty() => super::excerpt(said, super::SAID),
        _ => format!(
            "{} {} (\"{}\") contradicts {} {} (\"{}\")",
            newer.kind,
            newer.id,
            super::excerpt(&newer.content, 100),
            older.kind,
            older.id,
            super::excerpt(whole.map_or("", |unit| &*unit.content), 100),
        ),
    };
    Conflict {
        id,
        kind: conflict_type(older.kind, newer.kind),
        status: ConflictStatus::Detected,
        unit_a: older.id,
        unit_b: newer.id,
        description: description.into(),
        detected_by: DetectedBy::Explicit,
        resolution: None,
        ballots: Vec::new(),
        escalation_reason: None,
    }
}

/// Section 6. `priority` needs to know what the two units differ in; nothing tells that yet.
pub(super) fn conflict_type(a: MemoryType, b: MemoryType) -> ConflictType {
    let plans = |kind| matches!(kind, MemoryType::Decision | MemoryType::Intention);
    match (a, b) {
        _ if plans(a) && plans(b) => ConflictType::Strategic,
        (MemoryType::Observation, MemoryType::Observation) => ConflictType::Interpretive,
        _ => ConflictType::Factual,
    }
}

//! What REPLAY says: a sentence for each event, and an account of the whole.

use std::collections::BTreeMap;

use super::super::event::{Entry, Event};
use super::excerpt;
use super::replay::Told;
use crate::protocol::{
    Cursor, DetectedBy, MemoryType, Mode, RelationType, ReplayEvent, ReplayRequest, ReplayTarget, SYSTEM,
    Unit, UnitId,
};

/// Characters of a unit's content in a sentence about it.
const EXCERPT: usize = 120;
/// Events that an account tells one by one; of longer timelines it tells the first and the last.
const ACCOUNT: usize = 8;

/// How much an event matters to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Comings and goings: only in a full trace.
    Minor,
    /// What was recorded and what became of it.
    Key,
    /// Where the course changed: conflicts, resolutions, corrections, decisions.
    Turning,
}

/// Puts into words what an event did to so many units.
pub(super) fn describe_many(entry: &Entry, event: &Event, units: usize) -> Told {
    let told = describe(entry, event, None, None);
    let (verb, reason) = put_away(event);
    let description = format!("{verb} {units} units: {}", excerpt(reason, EXCERPT));
    Told { event: ReplayEvent { description, ..told.event }, ..told }
}

/// What COMPACT did to the units that it put away, and why.
fn put_away(event: &Event) -> (&'static str, &str) {
    match event {
        Event::Archived { reason, .. } => ("Archived", reason),
        Event::Purged { reason, .. } => ("Purged", reason),
        _ => ("", ""),
    }
}

/// Puts an event into words. `subject` is the unit that it is about, where it is about one, and `task` that unit's.
pub(super) fn describe(entry: &Entry, event: &Event, subject: Option<UnitId>, task: Option<&str>) -> Told {
    let (weight, description) = sentence(entry, event, subject);
    let agent_id = match event {
        Event::Merged { resolution, .. } => resolution.resolved_by.to_string(),
        _ if event.is_systems() => SYSTEM.to_owned(),
        _ => entry.agent_id.to_string(),
    };
    let memory_unit_id = match event {
        Event::Merged { resolution, .. } => match resolution.winner_id {
            None => entry.synthesis().map(|unit| unit.id),
            winner => winner,
        },
        Event::Voted { winner_id, .. } => Some(*winner_id),
        _ => subject,
    };
    Told {
        weight,
        event: ReplayEvent {
            epoch: entry.epoch,
            event_type: event.event_type().to_owned(),
            agent_id,
            description,
            memory_unit_id,
            task_id: task.map(str::to_owned),
            timestamp: entry.at,
        },
    }
}

fn sentence(entry: &Entry, event: &Event, subject: Option<UnitId>) -> (Weight, String) {
    match event {
        Event::Registered { role, resumed: false, .. } => (Weight::Minor, format!("Joined as {role}")),
        Event::Registered { role, resumed: true, .. } => (Weight::Minor, format!("Came back as {role}")),
        Event::Deregistered { agent } => (Weight::Minor, format!("{agent} left")),
        Event::Connected { agent } => (Weight::Minor, format!("{agent} holds a connection")),
        Event::Failed { agent } => (Weight::Minor, format!("{agent} lost its connection and did not return")),
        Event::Recorded { unit, .. } if unit.mode == Mode::Draft => {
            (Weight::Key, format!("Drafted {}: {}", word(unit), excerpt(&unit.content, EXCERPT)))
        }
        Event::Recorded { unit, supersedes } => (weight(unit), recorded("Recorded", unit, supersedes)),
        Event::Committed { unit, supersedes } => (weight(unit), recorded("Committed", unit, supersedes)),
        Event::Discarded { memory_unit_id, reason } => {
            (Weight::Key, format!("Discarded draft {memory_unit_id}: {}", excerpt(reason, EXCERPT)))
        }
        Event::Retracted { memory_unit_id, reason } => {
            (Weight::Turning, format!("Retracted {memory_unit_id}: {}", excerpt(reason, EXCERPT)))
        }
        Event::ConflictCreated { conflict, .. } => {
            let how = match conflict.detected_by {
                DetectedBy::Explicit => "Explicit conflict created from contradicts relation".to_owned(),
                by => format!("Conflict noticed by {by} detection"),
            };
            let said = excerpt(&conflict.description, 2 * EXCERPT);
            let told = format!("{how}: {} against {}. {said}", conflict.unit_b, conflict.unit_a);
            (Weight::Turning, told)
        }
        Event::DetectionDeferred { memory_unit_id, .. } => {
            (Weight::Minor, format!("{memory_unit_id} is still to be compared with the Field"))
        }
        Event::DetectionCaughtUp { through } => {
            (Weight::Minor, format!("All units up to {through} have been compared with the Field"))
        }
        Event::Subscribed { subscription } => {
            let names: Vec<_> = subscription.events.iter().map(|event| event.name()).collect();
            (Weight::Minor, format!("Subscribed to {}", names.join(", ")))
        }
        Event::Unsubscribed { subscription_id } => {
            (Weight::Minor, format!("Ended the subscription {subscription_id}"))
        }
        Event::Archived { .. } | Event::Purged { .. } => {
            let (verb, reason) = put_away(event);
            let unit = subject.map_or_else(|| "units".to_owned(), |unit| unit.to_string());
            let weight = if matches!(event, Event::Purged { .. }) { Weight::Turning } else { Weight::Key };
            (weight, format!("{verb} {unit}: {}", excerpt(reason, EXCERPT)))
        }
        Event::Attuned { shown, .. } => (Weight::Key, was_shown(shown)),
        Event::Voted { conflict_id, winner_id, rationale } => {
            (Weight::Key, format!("Voted for {winner_id} in {conflict_id}: {}", excerpt(rationale, EXCERPT)))
        }
        Event::Escalated { resolution, reason, .. } => (
            Weight::Turning,
            format!(
                "Escalated to a human via {}: {reason} {}",
                resolution.strategy,
                excerpt(&resolution.rationale, EXCERPT)
            ),
        ),
        Event::Unenriched { memory_unit_id } => {
            (Weight::Minor, format!("The embedding of {memory_unit_id} could not be made yet"))
        }
        Event::Enriched { memory_unit_id } => {
            (Weight::Minor, format!("The embedding of {memory_unit_id} was made at last"))
        }
        Event::Merged { resolution, .. } => {
            let outcome = match (resolution.winner_id, entry.synthesis()) {
                (Some(winner), _) => format!("{winner} prevails"),
                (None, Some(unit)) => format!("both sides are joined in {}", unit.id),
                (None, None) => "neither side prevails".to_owned(),
            };
            let how = resolution.strategy;
            let why = excerpt(&resolution.rationale, EXCERPT);
            (Weight::Turning, format!("Resolved via {how}: {outcome}. {why}"))
        }
    }
}

/// Units named one by one in a sentence.
const NAMED: usize = 10;

fn was_shown(shown: &[UnitId]) -> String {
    let named: Vec<_> = shown.iter().take(NAMED).map(ToString::to_string).collect();
    let more = shown.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    match shown.len() {
        0 => "Was shown no unit by ATTUNE".to_owned(),
        1 => format!("Was shown {} by ATTUNE", named.join(", ")),
        count => format!("Was shown {count} units by ATTUNE: {}{rest}", named.join(", ")),
    }
}

fn word(unit: &Unit) -> String {
    unit.kind.name().replace('_', " ")
}

fn weight(unit: &Unit) -> Weight {
    let turns = unit
        .relations
        .iter()
        .any(|relation| matches!(relation.kind, RelationType::Contradicts | RelationType::Supersedes));
    match unit.kind {
        MemoryType::Decision
        | MemoryType::Contradiction
        | MemoryType::Correction
        | MemoryType::Synthesis
        | MemoryType::HumanDirective => Weight::Turning,
        _ if turns => Weight::Turning,
        _ => Weight::Key,
    }
}

fn recorded(verb: &str, unit: &Unit, supersedes: &[UnitId]) -> String {
    let contradicts = unit.relations.iter().any(|relation| relation.kind == RelationType::Contradicts);
    let how = if contradicts { "contradicting " } else { "" };
    let replaced = if supersedes.is_empty() {
        String::new()
    } else {
        let ids: Vec<_> = supersedes.iter().map(ToString::to_string).collect();
        format!(" (supersedes {})", ids.join(", "))
    };
    format!("{verb} {how}{}{replaced}: {}", word(unit), excerpt(&unit.content, EXCERPT))
}

/// A readable account of a timeline.
pub(super) fn account(request: &ReplayRequest, told: &BTreeMap<Cursor, Told>, agents: &[String]) -> String {
    let target = match request.target_type {
        ReplayTarget::MemoryUnit => "Unit",
        ReplayTarget::Decision => "Decision",
        ReplayTarget::Conflict => "Conflict",
        ReplayTarget::Task => "Task",
        ReplayTarget::Session => "Session",
    };
    let (first, last) = match (told.keys().next(), told.keys().next_back()) {
        (Some(first), Some(last)) => (first.epoch, last.epoch),
        _ => return String::new(),
    };
    let span = if first == last { format!("at epoch {first}") } else { format!("epochs {first} to {last}") };
    let who = match agents {
        [] => "no agent".to_owned(),
        [one] => one.clone(),
        many if many.len() <= 5 => many.join(", "),
        many => format!("{} and {} more", many[..4].join(", "), many.len() - 4),
    };
    let plural = if told.len() == 1 { "event" } else { "events" };
    let mut text = format!("{target} {}: {} {plural}, {span}, by {who}.", request.target_id, told.len());
    let key: Vec<_> = told.values().filter(|told| told.weight >= Weight::Key).collect();
    let skipped = key.len().saturating_sub(ACCOUNT);
    for (at, told) in key.iter().enumerate() {
        if skipped > 0 && at >= ACCOUNT / 2 && at < key.len() - ACCOUNT / 2 {
            if at == ACCOUNT / 2 {
                text.push_str(&format!(" [{skipped} more]"));
            }
            continue;
        }
        let event = &told.event;
        let end = if event.description.ends_with(['.', '!', '?', '…']) { "" } else { "." };
        text.push_str(&format!(" Epoch {}, {}: {}{end}", event.epoch, event.agent_id, event.description));
    }
    text
}

//! Makes an entry so. Cannot fail: whatever could go wrong was `decide`'s to refuse.

use std::sync::Arc;

use super::command::message_key;
use super::event::{Entry, Event};
use super::kept::Kept;
use super::state::{AgentNo, AgentRecord, ConflictNo, Entity, Remembered, Slot, State, UnitNo, World};
use crate::protocol::{
    Agent, AgentStatus, Ballot, Conflict, ConflictId, Mode, Relation, Resolution, SYSTEM, Unit, UnitId,
    UnitStatus,
};

/// Applies one operation's entry: live after `decide`, and again from the log on recovery.
pub fn apply(state: &mut State, entry: &Entry) {
    state.clock = state.clock.max(entry.epoch);
    let world = &mut state.world;
    world.entries += 1;
    world.last_epoch = entry.epoch;
    if let Some(session) = &entry.session_id
        && !entry.events.is_empty()
    {
        world.mention(Entity::Session(Arc::clone(session)), entry.epoch);
    }
    for event in &entry.events {
        apply_event(state, entry, event);
    }
    if let (Some(id), Some(digest)) = (&entry.message_id, entry.digest) {
        let remembered = Remembered { epoch: entry.epoch, digest };
        let key = entry.key.unwrap_or_else(|| message_key(&entry.agent_id, id));
        state.ledger.remember(key, remembered, entry.at.0);
    }
    if let Some(no) = state.world.agent_no(&entry.agent_id) {
        state.presence.seen(no, entry.at);
    }
}

fn apply_event(state: &mut State, entry: &Entry, event: &Event) {
    let world = &mut state.world;
    match event {
        Event::Registered { role, interests, resumed } => {
            register(world, entry, role, interests, *resumed);
        }
        Event::Deregistered { agent } => {
            leave(state, agent, AgentStatus::Offline);
            if let Some(no) = state.world.agent_no(agent) {
                state.world.unsubscribe_all(no);
            }
        }
        Event::Connected { agent } => world.change_agent(agent, |record| record.holder = true),
        Event::Failed { agent } => leave(state, agent, AgentStatus::Failed),
        Event::Recorded { unit, supersedes } => record(world, entry, unit, supersedes),
        Event::Committed { unit, supersedes } => commit(world, entry, unit, supersedes),
        Event::Discarded { memory_unit_id, .. } | Event::Retracted { memory_unit_id, .. } => {
            if let Some(no) = world.find(*memory_unit_id) {
                world.set_status(no, UnitStatus::Retracted);
                mention_unit(world, no, entry.epoch);
            }
        }
        Event::ConflictCreated { conflict, contested } => {
            create_conflict(world, entry.epoch, conflict);
            for no in contested.iter().filter_map(|id| world.find(*id)).collect::<Vec<_>>() {
                // What is in question is no longer put away, not even once that is settled.
                if world.take_back(no) {
                    state.shelving.taken_back(no);
                }
                world.set_status(no, UnitStatus::Contested);
            }
        }
        Event::Unenriched { memory_unit_id } => {
            if let Some(no) = world.find(*memory_unit_id) {
                world.pending.insert(no);
                // One that is contested already is pending behind that.
                if world.slot(no).status == UnitStatus::Active {
                    world.set_status(no, UnitStatus::PendingEnrichment);
                }
            }
        }
        Event::Enriched { memory_unit_id } => {
            if let Some(no) = world.find(*memory_unit_id) {
                world.pending.remove(&no);
                if world.slot(no).status == UnitStatus::PendingEnrichment {
                    world.set_status(no, UnitStatus::Active);
                }
                mention_unit(world, no, entry.epoch);
            }
        }
        Event::DetectionDeferred { memory_unit_id, compared } => {
            let place = world.find(*memory_unit_id).and_then(|no| world.slot(no).place);
            if let Some(place) = place {
                world.uncompared.insert(place, *compared);
            }
        }
        Event::DetectionCaughtUp { through } => {
            // It may have been purged meanwhile.
            let place = world.find_ever(*through).and_then(|no| world.slot(no).place);
            if let Some(place) = place {
                world.compared_through(place);
            }
        }
        Event::Attuned { .. } => {
            if let Some(agent) = world.agent_no(&entry.agent_id) {
                world.mention(Entity::Shown(agent), entry.epoch);
            }
        }
        Event::Subscribed { subscription } => {
            if let Some(agent) = world.agent_no(&entry.agent_id) {
                world.subscribe(agent, subscription);
            }
        }
        Event::Unsubscribed { subscription_id } => world.unsubscribe(subscription_id),
        Event::Archived { units, .. } => {
            let units = world.numbers_of(units);
            world.archive(&units, entry.epoch);
            state.shelving.archived(entry.epoch, units);
        }
        Event::Purged { units, .. } => world.purge(&world.numbers_of(units), entry.epoch),
        Event::Voted { conflict_id, winner_id, .. } => {
            let ballot = Ballot { agent_id: Arc::clone(&entry.agent_id), winner_id: *winner_id };
            change_conflict(world, entry.epoch, *conflict_id, |conflict| conflict.cast(ballot));
        }
        Event::Escalated { conflict_id, resolution, reason } => {
            let (resolution, reason) = (resolution.clone(), reason.clone());
            change_conflict(world, entry.epoch, *conflict_id, |conflict| {
                conflict.escalate(resolution, reason);
            });
        }
        Event::Merged { conflict_id, resolution, superseded } => {
            resolve_conflict(world, entry.epoch, *conflict_id, resolution);
            if let Some(winner) = resolution.winner_id.and_then(|id| world.find(id)) {
                supersede(world, winner, entry.epoch, superseded);
            }
        }
    }
}

fn register(world: &mut World, entry: &Entry, role: &Arc<str>, interests: &[Box<str>], resumed: bool) {
    // An agent that comes back within its grace time still lives by connections.
    let holder = resumed && world.agent_no(&entry.agent_id).is_some_and(|no| world.agent(no).holder);
    world.enter_agent(AgentRecord {
        agent: Agent {
            id: Arc::clone(&entry.agent_id),
            role: Arc::clone(role),
            status: AgentStatus::Idle,
            interests: interests.to_vec(),
            current_task_id: None,
        },
        registered_epoch: entry.epoch,
        holder,
    });
}

/// An agent is here no more, in one way or the other.
fn leave(state: &mut State, agent: &str, status: AgentStatus) {
    state.world.change_agent(agent, |record| {
        record.agent.status = status;
        record.holder = false;
    });
    if let Some(no) = state.world.agent_no(agent) {
        state.presence.forget(no);
    }
}

fn record(world: &mut World, entry: &Entry, unit: &Arc<Unit>, supersedes: &[UnitId]) {
    let Some(author) = world.agent_no(&unit.source.agent_id).or_else(|| systems(world, unit)) else { return };
    let no = UnitNo::try_from(world.units.len()).expect("fewer than 2^32 units");
    let status = match unit.mode {
        Mode::Draft => UnitStatus::Draft,
        Mode::Committed => UnitStatus::Active,
    };
    let task = unit.intent.task_id.as_ref().and_then(|task| world.enter_task(task));
    world.units.push_back(Slot {
        id: unit.id,
        kept: Kept::Whole(Arc::clone(unit)),
        epoch: entry.epoch,
        author,
        chain: None,
        place: None,
        task,
        kind: unit.kind,
        mode: unit.mode,
        status,
        purged: false,
    });
    world.by_status[status as usize] += 1;
    if let Some(task) = &unit.intent.task_id {
        world.mention(Entity::Task(Arc::clone(task)), entry.epoch);
    }
    if status.is_live() {
        world.live_by_author[author as usize] += 1;
        publish(world, no, entry.epoch, unit, supersedes);
    } else {
        world.offstage.insert((entry.epoch, no));
    }
}

/// The Field itself as an author, from the first unit that it writes on. It holds a place among the agents, but is
/// none: it never registered.
fn systems(world: &mut World, unit: &Unit) -> Option<AgentNo> {
    let source = &unit.source;
    (*source.agent_id == *SYSTEM).then(|| {
        world.enter_agent(AgentRecord {
            agent: Agent {
                id: Arc::clone(&source.agent_id),
                role: Arc::clone(&source.agent_role),
                status: AgentStatus::Offline,
                interests: Vec::new(),
                current_task_id: None,
            },
            registered_epoch: 0,
            holder: false,
        })
    })
}

fn commit(world: &mut World, entry: &Entry, unit: &Arc<Unit>, supersedes: &[UnitId]) {
    let Some(no) = world.find(unit.id) else { return };
    let drafted = world.slot(no).epoch;
    world.offstage.remove(&(drafted, no));
    let slot = &mut world.units[no as usize];
    slot.kept = Kept::Whole(Arc::clone(unit));
    slot.mode = unit.mode;
    slot.epoch = entry.epoch;
    world.set_status(no, UnitStatus::Active);
    mention_unit(world, no, entry.epoch);
    publish(world, no, entry.epoch, unit, supersedes);
}

/// What becoming everyone's means for a unit: its place in time, its relations, those it replaces.
fn publish(world: &mut World, no: UnitNo, epoch: u64, unit: &Unit, supersedes: &[UnitId]) {
    world.units[no as usize].place = u32::try_from(world.timeline.len()).ok();
    world.timeline.push_back((epoch, no));
    for (at, relation) in (0..).zip(&unit.relations) {
        if let Some(target) = named_unit(relation) {
            world.inbound.entry(target).or_default().push_back((no, at));
        }
    }
    supersede(world, no, epoch, supersedes);
}

/// Puts `successor` in the place of other units.
fn supersede(world: &mut World, successor: UnitNo, epoch: u64, replaced: &[UnitId]) {
    let replaced: Vec<UnitNo> = replaced.iter().filter_map(|id| world.find(*id)).collect();
    for old in &replaced {
        world.set_status(*old, UnitStatus::Superseded);
        mention_unit(world, *old, epoch);
    }
    if !replaced.is_empty() {
        world.chain_up(successor, &replaced);
    }
}

fn named_unit(relation: &Relation) -> Option<UnitId> {
    relation.target_id.parse().ok()
}

/// Notes the epoch for a unit and for its task; the entry that recorded it needs no note for the unit.
fn mention_unit(world: &mut World, no: UnitNo, epoch: u64) {
    let task = world.task_of(world.slot(no)).cloned();
    if let Some(task) = task {
        world.mention(Entity::Task(task), epoch);
    }
    world.mention(Entity::Unit(no), epoch);
}

fn create_conflict(world: &mut World, epoch: u64, conflict: &Arc<Conflict>) {
    let number = world.conflicts.len() as u32;
    world.conflicts.push_back(Arc::clone(conflict));
    world.unresolved.insert(number);
    for id in [conflict.unit_a, conflict.unit_b] {
        let Some(no) = world.find(id) else { continue };
        world.disputes.entry(no).or_default().push_back(number);
        world.open_disputes.entry(no).or_default().insert(number);
        world.mention(Entity::Unit(no), epoch);
    }
}

/// Changes a conflict, noting the epoch for it and its two units. Returns its number and the pair.
fn change_conflict(
    world: &mut World,
    epoch: u64,
    id: ConflictId,
    change: impl FnOnce(&mut Conflict),
) -> Option<(ConflictNo, [UnitId; 2])> {
    let number = world.find_conflict(id)?;
    let conflict = Arc::make_mut(&mut world.conflicts[number as usize]);
    change(conflict);
    let pair = [conflict.unit_a, conflict.unit_b];
    world.mention(Entity::Conflict(number), epoch);
    for no in pair.iter().filter_map(|id| world.find(*id)).collect::<Vec<_>>() {
        world.mention(Entity::Unit(no), epoch);
    }
    Some((number, pair))
}

fn resolve_conflict(world: &mut World, epoch: u64, id: ConflictId, resolution: &Resolution) {
    let resolution = resolution.clone();
    let changed = change_conflict(world, epoch, id, |conflict| conflict.resolve(resolution));
    let Some((number, pair)) = changed else { return };
    world.unresolved.remove(&number);
    for no in pair.iter().filter_map(|id| world.find(*id)).collect::<Vec<_>>() {
        let still_open = world.open_disputes.get_mut(&no).is_some_and(|open| {
            open.remove(&number);
            !open.is_empty()
        });
        if still_open {
            continue;
        }
        world.open_disputes.remove(&no);
        if world.slot(no).status == UnitStatus::Contested {
            let waits = world.pending.contains(&no);
            world.set_status(no, if waits { UnitStatus::PendingEnrichment } else { UnitStatus::Active });
        }
    }
}

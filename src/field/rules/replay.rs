//! REPLAY (seed `replay.md`, sections 7 and 12): the reasoning behind something, read from the log alone.
//!
//! The world's `mentions` say *where* in the log to look; every fact that is told or followed (relations,
//! supersession, resolutions) is read there.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::json;

use super::super::event::{Entry, Event};
use super::super::policy::Policy;
use super::super::state::{AgentNo, ConflictNo, Entity, Slot, UnitNo, World};
use super::super::unit_ids::UnitIds;
use super::replay_words::{Weight, account, describe, describe_many};
use crate::limits::{REPLAY_ENTRIES_MAX, REPLAY_SHOWN_MAX, REPLAY_SUMMARY_EVENTS_MAX};
use crate::protocol::{
    ConflictId, Cursor, ErrorCode, MemoryType, Mode, Refusal, ReplayDepth, ReplayEvent, ReplayRequest,
    ReplayTarget, Replayed, SYSTEM, UnitId, UnitStatus,
};

/// Units of one COMPACT that the timeline of a task or a session tells one by one.
const TOLD_EACH: usize = 100;

/// The log, as REPLAY reads it.
pub trait Chronicle {
    /// The entry of this epoch, if there is one.
    ///
    /// # Errors
    /// What went wrong, for the operator: the log could not be read.
    fn entry(&mut self, epoch: u64) -> Result<Option<Entry>, String>;
}

/// Reconstructs the timeline of what a request names, as `asker` (nobody in particular: `None`) may see it.
///
/// # Errors
/// `UNIT_NOT_FOUND` for a target of any type that does not exist, or not yet, or not for this asker;
/// `REPLAY_TOO_LARGE`; `INTERNAL_ERROR` when the log cannot be read.
pub fn replay(
    world: &World,
    chronicle: &mut dyn Chronicle,
    policy: &Policy,
    asker: Option<AgentNo>,
    request: &ReplayRequest,
) -> Result<Replayed, Refusal> {
    let as_of = request.as_of_epoch.unwrap_or(u64::MAX);
    let depth = request.depth;
    let mut walk = Walk {
        world,
        chronicle,
        policy,
        asker,
        as_of,
        depth,
        listed: 0,
        read: 0,
        of_many: None,
        told: BTreeMap::new(),
    };
    match request.target_type {
        ReplayTarget::MemoryUnit => walk.unit(&request.target_id, None)?,
        ReplayTarget::Decision => walk.unit(&request.target_id, Some(MemoryType::Decision))?,
        ReplayTarget::Conflict => walk.conflict(&request.target_id)?,
        ReplayTarget::Task => walk.carriers(&Entity::Task(request.target_id.as_ref().into()))?,
        ReplayTarget::Session => walk.carriers(&Entity::Session(request.target_id.as_ref().into()))?,
    }
    if walk.told.is_empty() {
        return Err(not_found(request.target_type, &request.target_id));
    }
    let told = walk.told;
    answer(told, policy, request)
}

/// An event that belongs to the timeline, in words.
pub(super) struct Told {
    pub weight: Weight,
    pub event: ReplayEvent,
}

fn answer(
    told: BTreeMap<Cursor, Told>,
    policy: &Policy,
    request: &ReplayRequest,
) -> Result<Replayed, Refusal> {
    let total_events = told.len();
    let mut known = HashSet::new();
    let agents_involved: Vec<String> = told
        .values()
        .map(|told| &told.event.agent_id)
        .filter(|agent| *agent != SYSTEM && known.insert(*agent))
        .cloned()
        .collect();
    let mut summary = account(request, &told, &agents_involved);
    let key = told.values().filter(|told| told.weight >= Weight::Key).count();
    let least = match request.depth {
        ReplayDepth::Summary if key > REPLAY_SUMMARY_EVENTS_MAX => Weight::Turning,
        depth => least_listed(depth),
    };
    let mut timeline: Vec<_> =
        told.into_values().filter(|told| told.weight >= least).map(|told| told.event).collect();
    if least == Weight::Turning {
        let turning = timeline.len();
        summary.push_str(&format!(" The timeline lists the turning points of {key} key events"));
        if turning > REPLAY_SUMMARY_EVENTS_MAX {
            let half = REPLAY_SUMMARY_EVENTS_MAX / 2;
            timeline.drain(half..turning - half);
            summary.push_str(&format!(", of {turning} such the first {half} and the last {half}"));
        }
        summary.push('.');
    }
    if timeline.len() > policy.limits.replay_events || json_bytes(&timeline) > policy.limits.replay_bytes {
        return Err(too_large(policy, request.depth));
    }
    Ok(Replayed { status: "ok".to_owned(), timeline, summary, agents_involved, total_events })
}

/// The least weight of an event that a depth lists.
fn least_listed(depth: ReplayDepth) -> Weight {
    match depth {
        ReplayDepth::FullTrace => Weight::Minor,
        ReplayDepth::Detailed | ReplayDepth::Summary => Weight::Key,
    }
}

/// How long the timeline is once it is written.
fn json_bytes(timeline: &[ReplayEvent]) -> usize {
    serde_json::to_vec(timeline).map_or(usize::MAX, |text| text.len())
}

fn too_large(policy: &Policy, depth: ReplayDepth) -> Refusal {
    let advice = match depth {
        ReplayDepth::Summary => "Replay a smaller target, or an earlier as_of_epoch.",
        ReplayDepth::Detailed => "Retry with depth \"summary\", or replay one unit, decision or task of it.",
        ReplayDepth::FullTrace => {
            "Retry with depth \"detailed\" or \"summary\", or replay one unit, decision or task of it."
        }
    };
    let limits = &policy.limits;
    Refusal::new(
        ErrorCode::ReplayTooLarge,
        format!(
            "The timeline has more than {} events or {} bytes.",
            limits.replay_events, limits.replay_bytes
        ),
        advice,
    )
    .with("limit_events", json!(limits.replay_events))
    .with("limit_bytes", json!(limits.replay_bytes))
}

/// Even a summary has to read the whole chain.
fn too_much_to_read() -> Refusal {
    Refusal::new(
        ErrorCode::ReplayTooLarge,
        format!("The chain comes from more than {REPLAY_ENTRIES_MAX} entries of the log."),
        "Replay a smaller target: one unit, decision or task of it, or an earlier as_of_epoch.",
    )
    .with("limit_entries", json!(REPLAY_ENTRIES_MAX))
}

fn not_found(target: ReplayTarget, id: &str) -> Refusal {
    Refusal::new(
        ErrorCode::UnitNotFound,
        format!("There is no {target} {id:?} to replay."),
        "Check target_type and target_id; an id comes from RECORD, ATTUNE, DETECT or the task or session itself.",
    )
    .with("key", json!("target_id"))
}

/// How the walk came to a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    /// By supersession from the target: the chain goes on both ways from here.
    Chain,
    /// By an outbound relation: its own outbound relations go on, its chain does not.
    Related,
}

struct Walk<'a> {
    world: &'a World,
    chronicle: &'a mut dyn Chronicle,
    policy: &'a Policy,
    asker: Option<AgentNo>,
    as_of: u64,
    depth: ReplayDepth,
    /// How many of the events told so far the depth lists.
    listed: usize,
    /// How many entries were read.
    read: usize,
    /// The entry about many units that was read last: it is large, and a chain meets it with each of its units.
    of_many: Option<Arc<Entry>>,
    told: BTreeMap<Cursor, Told>,
}

impl Walk<'_> {
    /// A unit, its chain, what it rests on, and the conflicts that touch them.
    fn unit(&mut self, id: &str, kind: Option<MemoryType>) -> Result<(), Refusal> {
        let named = id.parse::<UnitId>().ok().and_then(|id| self.world.find_ever(id));
        let Some(target) = named.filter(|no| self.shows(self.world.slot(*no))) else { return Ok(()) };
        if kind.is_some_and(|kind| kind != self.world.slot(target).kind) {
            return Ok(());
        }
        if kind == Some(MemoryType::Decision) {
            self.shown_before(target)?;
        }
        let mut queue = VecDeque::from([(target, Reached::Chain)]);
        let mut seen: BTreeMap<UnitNo, Reached> = BTreeMap::new();
        while let Some((no, reached)) = queue.pop_front() {
            // A unit met again on the chain counts as of the chain, however it was met before.
            if seen.get(&no).is_some_and(|before| *before <= reached) {
                continue;
            }
            seen.insert(no, reached);
            self.one_unit(no, reached, &mut queue)?;
        }
        Ok(())
    }

    /// Tells what the author of a decision had been shown before it, where reads were audited: the latest few.
    fn shown_before(&mut self, decision: UnitNo) -> Result<(), Refusal> {
        let slot = self.world.slot(decision);
        let Some(all) = self.world.mentions.get(&Entity::Shown(slot.author)) else { return Ok(()) };
        let before = all.binary_search(&slot.epoch).unwrap_or_else(|at| at);
        for epoch in (0..before).rev().take(REPLAY_SHOWN_MAX).map(|at| all[at]) {
            let Some(mut entry) = self.read(epoch)?.map(Arc::unwrap_or_clone) else { continue };
            for event in &mut entry.events {
                if let Event::Attuned { shown, .. } = event {
                    // Drafts of the author's own were shown to the author alone.
                    let world = self.world;
                    shown.retain(|id| world.find_ever(*id).is_some_and(|no| self.shows(world.slot(no))));
                }
            }
            for (index, event) in entry.placed() {
                self.tell(&entry, index, event, None)?;
            }
        }
        Ok(())
    }

    /// Tells a unit's own events and its conflicts', and queues the units that it leads to.
    fn one_unit(
        &mut self,
        no: UnitNo,
        reached: Reached,
        queue: &mut VecDeque<(UnitNo, Reached)>,
    ) -> Result<(), Refusal> {
        let id = self.world.slot(no).id;
        let mut conflicts: BTreeSet<ConflictId> = BTreeSet::new();
        for epoch in self.epochs_of_unit(no) {
            let Some(entry) = self.read(epoch)? else { continue };
            for (index, event) in entry.placed() {
                let own = match event {
                    Event::Recorded { unit, supersedes } | Event::Committed { unit, supersedes } => {
                        if unit.id == id {
                            if self.stands_so(no, unit) {
                                self.lead_on(unit, supersedes, reached, queue);
                            }
                        } else if reached == Reached::Chain && supersedes.contains(&id) {
                            self.queue(unit.id, Reached::Chain, queue);
                        }
                        unit.id == id
                    }
                    Event::Discarded { memory_unit_id, .. }
                    | Event::Retracted { memory_unit_id, .. }
                    | Event::Unenriched { memory_unit_id }
                    | Event::Enriched { memory_unit_id } => *memory_unit_id == id,
                    Event::ConflictCreated { conflict, .. } => {
                        let ours = conflict.partner_of(id).is_some();
                        if ours {
                            conflicts.insert(conflict.id);
                        }
                        ours
                    }
                    Event::Merged { conflict_id, resolution, superseded } => {
                        let ours = conflicts.contains(conflict_id);
                        if ours && reached == Reached::Chain {
                            let pair = superseded.iter().copied().chain(resolution.winner_id);
                            // A merge that replaced nobody leads nowhere.
                            for other in pair.filter(|_| !superseded.is_empty()) {
                                self.queue(other, Reached::Chain, queue);
                            }
                        }
                        ours
                    }
                    Event::Voted { conflict_id, .. } | Event::Escalated { conflict_id, .. } => {
                        conflicts.contains(conflict_id)
                    }
                    Event::Archived { units, .. } | Event::Purged { units, .. } => {
                        if let Some(place) = units.place(id) {
                            self.tell(&entry, index + place as u32, event, Some(no))?;
                        }
                        false
                    }
                    _ => false,
                };
                if own {
                    self.tell(&entry, index, event, None)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a unit, at the moment that is replayed, is as this event tells it: what a draft related to
    /// before its COMMIT said otherwise is no relation of the unit, and its author's alone.
    fn stands_so(&self, no: UnitNo, told: &crate::protocol::Unit) -> bool {
        let slot = self.world.slot(no);
        // Of a purged one nobody knows any more that it was a draft.
        let committed = (slot.purged || slot.mode == Mode::Committed) && slot.epoch <= self.as_of;
        told.mode == Mode::Committed || !committed
    }

    /// Queues what a unit replaced and what it relates to.
    fn lead_on(
        &self,
        unit: &crate::protocol::Unit,
        supersedes: &[UnitId],
        reached: Reached,
        queue: &mut VecDeque<(UnitNo, Reached)>,
    ) {
        if reached == Reached::Chain {
            for old in supersedes {
                self.queue(*old, Reached::Chain, queue);
            }
        }
        for relation in &unit.relations {
            if let Ok(id) = relation.target_id.parse() {
                self.queue(id, Reached::Related, queue);
            }
        }
    }

    fn queue(&self, id: UnitId, reached: Reached, queue: &mut VecDeque<(UnitNo, Reached)>) {
        if let Some(no) = self.world.find_ever(id)
            && self.shows(self.world.slot(no))
        {
            queue.push_back((no, reached));
        }
    }

    /// A conflict: how its two units came to be, its own events, its resolution.
    fn conflict(&mut self, id: &str) -> Result<(), Refusal> {
        let named = id.parse::<ConflictId>().ok().and_then(|id| self.world.find_conflict(id));
        let Some(number) = named else { return Ok(()) };
        let conflict = Arc::clone(&self.world.conflicts[number as usize]);
        if conflict.id.epoch > self.as_of {
            return Ok(());
        }
        for unit in [conflict.unit_a, conflict.unit_b] {
            let Some(no) = self.world.find_ever(unit) else { continue };
            for epoch in self.epochs_of_unit(no) {
                let Some(entry) = self.read(epoch)? else { continue };
                for (index, event) in entry.placed() {
                    if matches!(event, Event::Recorded { unit: u, .. } | Event::Committed { unit: u, .. } if u.id == unit)
                    {
                        self.tell(&entry, index, event, None)?;
                    }
                }
            }
        }
        for epoch in self.epochs_of_conflict(number) {
            let Some(entry) = self.read(epoch)? else { continue };
            for (index, event) in entry.placed() {
                let ours = match event {
                    Event::ConflictCreated { conflict: made, .. } => made.id == conflict.id,
                    Event::Merged { conflict_id, .. }
                    | Event::Voted { conflict_id, .. }
                    | Event::Escalated { conflict_id, .. } => *conflict_id == conflict.id,
                    _ => false,
                };
                if ours {
                    self.tell(&entry, index, event, None)?;
                }
            }
        }
        Ok(())
    }

    /// Every event that carries a task's or a session's id.
    fn carriers(&mut self, entity: &Entity) -> Result<(), Refusal> {
        for epoch in self.world.mentions.get(entity).cloned().unwrap_or_default() {
            let Some(entry) = self.read(epoch)? else { continue };
            for (index, event) in entry.placed() {
                if let Some(units) = event.units() {
                    self.carried(&entry, index, event, units, entity)?;
                    continue;
                }
                let carries = match entity {
                    Entity::Session(id) => entry.session_id.as_deref() == Some(&**id),
                    Entity::Task(id) => self.task_of(event).as_deref() == Some(&**id),
                    Entity::Unit(_) | Entity::Conflict(_) | Entity::Shown(_) => false,
                };
                if carries {
                    self.tell(&entry, index, event, None)?;
                }
            }
        }
        Ok(())
    }

    /// What an event does to those of its many units that a task or a session is about: one by one where they are few,
    /// else in one sentence.
    fn carried(
        &mut self,
        entry: &Entry,
        index: u32,
        event: &Event,
        units: &UnitIds,
        entity: &Entity,
    ) -> Result<(), Refusal> {
        let world = self.world;
        let carries = |no: &UnitNo| match entity {
            Entity::Session(id) => entry.session_id.as_deref() == Some(&**id),
            Entity::Task(id) => world.slot(*no).task.is_some() && world.slot(*no).task == world.task_no(id),
            Entity::Unit(_) | Entity::Conflict(_) | Entity::Shown(_) => false,
        };
        let known =
            units.as_slice().iter().enumerate().filter_map(|(at, id)| Some((at, world.find_ever(*id)?)));
        let own: Vec<(usize, UnitNo)> =
            known.filter(|(_, no)| carries(no) && self.shows(world.slot(*no))).collect();
        if own.len() > TOLD_EACH {
            let told = describe_many(entry, event, own.len());
            return self.list(Cursor::new(entry.epoch, index), told);
        }
        own.into_iter().try_for_each(|(at, no)| self.tell(entry, index + at as u32, event, Some(no)))
    }

    /// The unit that an event is about.
    fn subject(&self, event: &Event) -> Option<&Slot> {
        let id = match event {
            Event::Recorded { unit, .. } | Event::Committed { unit, .. } => unit.id,
            Event::Discarded { memory_unit_id, .. }
            | Event::Retracted { memory_unit_id, .. }
            | Event::Unenriched { memory_unit_id }
            | Event::Enriched { memory_unit_id }
            | Event::DetectionDeferred { memory_unit_id, .. } => *memory_unit_id,
            _ => return None,
        };
        self.world.find_ever(id).map(|no| self.world.slot(no))
    }

    fn task_of(&self, event: &Event) -> Option<std::sync::Arc<str>> {
        match event {
            // As it was said: the unit may be purged by now.
            Event::Recorded { unit, .. } | Event::Committed { unit, .. } => unit.intent.task_id.clone(),
            _ => self.subject(event).and_then(|slot| self.world.task_id(slot.task?).cloned()),
        }
    }

    /// Where the log tells of a unit: its RECORD, whose epoch its id names, and later mentions.
    fn epochs_of_unit(&self, no: UnitNo) -> Vec<u64> {
        std::iter::once(self.world.slot(no).id.epoch).chain(self.world.mentions_of(no)).collect()
    }

    fn epochs_of_conflict(&self, number: ConflictNo) -> Vec<u64> {
        let later = self.world.mentions.get(&Entity::Conflict(number)).into_iter().flatten().copied();
        std::iter::once(self.world.conflicts[number as usize].id.epoch).chain(later).collect()
    }

    fn read(&mut self, epoch: u64) -> Result<Option<Arc<Entry>>, Refusal> {
        if epoch > self.as_of {
            return Ok(None);
        }
        if let Some(entry) = self.of_many.as_ref().filter(|entry| entry.epoch == epoch) {
            return Ok(Some(Arc::clone(entry)));
        }
        self.read += 1;
        if self.read > REPLAY_ENTRIES_MAX {
            return Err(too_much_to_read());
        }
        let entry = self.chronicle.entry(epoch).map_err(|error| {
            Refusal::new(
                ErrorCode::InternalError,
                format!("The log could not be read: {error}"),
                "Tell the hub's operator; nothing was changed.",
            )
        })?;
        let entry = entry.map(Arc::new);
        if let Some(entry) =
            entry.as_ref().filter(|entry| entry.events.iter().any(|event| event.units().is_some()))
        {
            self.of_many = Some(Arc::clone(entry));
        }
        Ok(entry)
    }

    /// Whether the asker may see a unit, at the moment that is replayed: a unit is everyone's from its commit.
    fn shows(&self, slot: &Slot) -> bool {
        let own = self.asker == Some(slot.author);
        let committed = slot.mode == Mode::Committed;
        let public = committed && slot.epoch <= self.as_of;
        // What is committed by now was a draft like any other before.
        let shared = self.policy.shared_drafts && (committed || slot.status == UnitStatus::Draft);
        slot.id.epoch <= self.as_of && (own || shared || public)
    }

    /// Tells an event; `of` says of which of its units, where it is about many.
    fn tell(&mut self, entry: &Entry, index: u32, event: &Event, of: Option<UnitNo>) -> Result<(), Refusal> {
        let subject = of.map(|no| self.world.slot(no)).or_else(|| self.subject(event));
        if subject.is_some_and(|slot| !self.shows(slot)) {
            return Ok(());
        }
        let task = match of {
            Some(no) => self.world.slot(no).task.and_then(|task| self.world.task_id(task).cloned()),
            None => self.task_of(event),
        };
        let told = describe(entry, event, subject.map(|slot| slot.id), task.as_deref());
        self.list(Cursor::new(entry.epoch, index), told)
    }

    fn list(&mut self, place: Cursor, told: Told) -> Result<(), Refusal> {
        let lists = told.weight >= least_listed(self.depth);
        let new = self.told.insert(place, told).is_none();
        self.listed += usize::from(new && lists);
        // A summary can still leave out all but the turning points; the others list what there is.
        if self.depth != ReplayDepth::Summary && self.listed > self.policy.limits.replay_events {
            return Err(too_large(self.policy, self.depth));
        }
        Ok(())
    }
}

//! COMPACT (seed `compact.md`, sections 7 and 12): older units archived, summarized or purged.
//!
//! Looking through a million units and writing their summaries takes time that the actor does not have. So a COMPACT
//! is decided twice: at first it comes to a [`Preparation`], which is worked out elsewhere from a view; with the
//! [`Plan`] that comes of it the message is decided again, and every unit of the plan is looked at once more. What no
//! longer matches by then is left out; what came to match in between is the next COMPACT's. Whatever it touches, it
//! is one entry.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::decide::{Change, Ground};
use super::super::event::Event;
use super::super::state::{AgentNo, Slot, UnitNo, World};
use super::super::unit_ids::UnitIds;
use super::enrichment_failed;
use super::syntheses::{Planned, synthesis};
use crate::limits::{COMPACT_REPLANNED_MAX, COMPACT_SUMMARIZED_MAX, PURGE_UNCONFIRMED_MAX};
use crate::protocol::{
    CompactRequest, CompactStrategy, Compacted, MemoryType, Mode, Refusal, SYSTEM, Unit, UnitId, UnitStatus,
    Warning,
};

/// A COMPACT that waits for its plan.
#[derive(Debug, Clone)]
pub struct Preparation {
    /// The epoch by which ages are told.
    pub epoch: u64,
    /// Who asks.
    pub asker: AgentNo,
    /// What is asked.
    pub request: Box<CompactRequest>,
    /// How many plans came too late before.
    pub tries: u8,
}

/// What a COMPACT is to do, worked out from a view of the world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The units that matched, in order.
    units: Box<[UnitNo]>,
    /// Of each, what it takes in the store, bytes; only where they are to be purged.
    bytes: Box<[u32]>,
    /// The syntheses to be made of them, where they are to be summarized.
    syntheses: Vec<Planned>,
    /// Why a language model that was asked did not write some of them.
    failure: Option<Box<str>>,
    tries: u8,
}

impl Plan {
    /// The syntheses that quote units and that no language model has written, by their places.
    pub fn unwritten(&self) -> impl Iterator<Item = usize> {
        let all = self.syntheses.iter().enumerate();
        all.filter(|(_, planned)| planned.lacks_a_writer()).map(|(at, _)| at)
    }

    /// Who says what in the units that the synthesis at `at` quotes, in order; nothing where one of them stands no more, or
    /// is put away, in this world.
    pub fn quotes<'a>(&self, world: &'a World, at: usize) -> Option<Vec<(&'a str, &'a str)>> {
        self.syntheses.get(at)?.quotes(world)
    }

    /// Notes that the synthesis at `at` was not written because its units were not there to be quoted any more: it is
    /// planned anew, whatever became of them since.
    pub fn pass_over(&mut self, at: usize) {
        if let Some(planned) = self.syntheses.get_mut(at) {
            planned.pass_over();
        }
    }

    /// Gives the synthesis at `at` the text that a language model of this name wrote.
    pub fn write(&mut self, at: usize, text: Box<str>, model: &str) {
        if let Some(planned) = self.syntheses.get_mut(at) {
            planned.write(text, model);
        }
    }

    /// Notes why some could not be written.
    pub fn fail(&mut self, why: Box<str>) {
        self.failure = Some(why);
    }

    /// Why some could not be written, if that was so.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Keeps what was written for an earlier plan of the same COMPACT, where the same is quoted still, and that writing
    /// failed: nobody is asked twice.
    pub fn take_over(&mut self, before: &Self) {
        let written = before.syntheses.iter().filter(|old| old.is_written());
        let written: BTreeMap<&[UnitNo], &Planned> = written.map(|old| (old.originals(), old)).collect();
        for planned in &mut self.syntheses {
            let old = written.get(planned.originals()).filter(|old| old.quotes_the_same(planned));
            if let Some(old) = old {
                *planned = Planned::clone(old);
            }
        }
        self.failure.clone_from(&before.failure);
    }

    /// What is told where some of these syntheses were to be written by a language model and were not.
    fn warning(&self, made: &[&Planned]) -> Option<Warning> {
        let why = self.failure()?;
        let lacking = made.iter().filter(|planned| planned.lacks_a_writer()).count();
        (lacking > 0).then(|| {
            enrichment_failed(
                format!(
                    "{lacking} of {} syntheses are made of their originals' own sentences, not by the language model: {why}.",
                    made.len()
                ),
                "Nothing needs to be done: nothing is lost. The hub's operator may look at the summary endpoint.",
            )
        })
    }
}

impl Preparation {
    /// The units that match in a view, in order.
    pub fn units(&self, world: &World) -> Vec<UnitNo> {
        let sieve = Sieve { world, request: &self.request, epoch: self.epoch, asker: Some(self.asker) };
        let all = (0..).zip(world.units.iter());
        all.filter(|(no, slot)| sieve.lets_through(*no, slot)).map(|(no, _)| no).collect()
    }

    /// Whether syntheses are to be made of so many units; not of more than one COMPACT takes.
    pub fn summarizes(&self, units: usize) -> bool {
        self.request.strategy == CompactStrategy::Summarize && (1..=COMPACT_SUMMARIZED_MAX).contains(&units)
    }

    /// The plan for these units, and these syntheses of them.
    pub fn plan(&self, world: &World, units: Vec<UnitNo>, syntheses: Vec<Planned>) -> Plan {
        let purges = self.request.strategy == CompactStrategy::Purge;
        let bytes = units.iter().filter(|_| purges).map(|no| stored_bytes(world.slot(*no))).collect();
        Plan { units: units.into(), bytes, syntheses, failure: None, tries: self.tries + 1 }
    }

    /// What the plan would come to: the answer to a preview. `groups`: how many syntheses there would be.
    ///
    /// # Errors
    /// `INVALID_MESSAGE` where more match than can be summarized at once.
    pub fn preview(&self, world: &World, units: &[UnitNo], groups: usize) -> Result<Compacted, Refusal> {
        check_count(self.request.strategy, units.len())?;
        let purges = self.request.strategy == CompactStrategy::Purge;
        let bytes = || units.iter().map(|no| u64::from(stored_bytes(world.slot(*no)))).sum();
        Ok(Compacted {
            status: "ok".to_owned(),
            units_affected: units.len() as u64,
            synthesis_units_created: groups as u64,
            storage_reclaimed_bytes: purges.then(bytes),
            dry_run: true,
            warning: None,
        })
    }
}

/// What a unit's texts, and the unit around them, take.
fn stored_bytes(slot: &Slot) -> u32 {
    u32::try_from(slot.text_bytes() + size_of::<Unit>()).unwrap_or(u32::MAX)
}

fn check_count(strategy: CompactStrategy, units: usize) -> Result<(), Refusal> {
    if strategy != CompactStrategy::Summarize || units <= COMPACT_SUMMARIZED_MAX {
        return Ok(());
    }
    Err(Refusal::invalid(
        "filter",
        format!(
            "{units} units match; one COMPACT summarizes at most {COMPACT_SUMMARIZED_MAX}. Nothing was changed."
        ),
        "Narrow the filter: a session, some types, or a greater max_age_epochs first.",
    )
    .with("limit", json!(COMPACT_SUMMARIZED_MAX))
    .with("units_matched", json!(units)))
}

/// Which units a COMPACT matches. The conditions are ANDed.
struct Sieve<'a> {
    world: &'a World,
    request: &'a CompactRequest,
    epoch: u64,
    asker: Option<AgentNo>,
}

impl Sieve<'_> {
    fn lets_through(&self, no: UnitNo, slot: &Slot) -> bool {
        let filter = &self.request.filter;
        self.may_touch(no, slot)
            && filter.max_age_epochs.is_none_or(|most| self.epoch.saturating_sub(slot.epoch) > most)
            && (filter.types.is_empty() || filter.types.contains(&slot.kind))
            && (filter.status.is_empty() || filter.status.contains(&slot.status))
            && (filter.session_id.is_none() || filter.session_id.as_ref() == slot.session())
    }

    /// Never drafts, nor what an unresolved conflict is about. A discarded draft counts as retracted, for its author,
    /// who alone knows of it; of a synthesis, which all may see, it is no part.
    fn may_touch(&self, no: UnitNo, slot: &Slot) -> bool {
        let strategy = self.request.strategy;
        let known = match (slot.mode, slot.status) {
            (_, UnitStatus::Draft | UnitStatus::Contested) => false,
            (Mode::Committed, _) => true,
            (Mode::Draft, _) => Some(slot.author) == self.asker && strategy != CompactStrategy::Summarize,
        };
        // What the Field wrote itself is summarized only where it is asked for: else a COMPACT that is repeated would wear
        // it away, and never come to an end.
        let own = slot.kind == MemoryType::Synthesis && **self.world.author_of(slot) == *SYSTEM;
        if strategy == CompactStrategy::Summarize && own && !self.request.filter.types.contains(&slot.kind) {
            return false;
        }
        known && !slot.purged && (strategy == CompactStrategy::Purge || !self.world.is_archived(no))
    }
}

/// What a COMPACT comes to.
pub(in super::super) enum Outcome {
    /// It has to be prepared, for the first time or anew.
    Prepare(Preparation),
    /// It is done.
    Done(Change),
}

pub(in super::super) fn compact(ground: &Ground<'_>, request: &CompactRequest) -> Result<Outcome, Refusal> {
    let prepare = |tries| {
        let asker = ground.agent.unwrap_or_default();
        Outcome::Prepare(Preparation {
            epoch: ground.epoch,
            asker,
            request: Box::new(request.clone()),
            tries,
        })
    };
    let Some(plan) = &ground.message.plan else { return Ok(prepare(0)) };
    check_count(request.strategy, plan.units.len())?;
    let world = &ground.state.world;
    let sieve = Sieve { world, request, epoch: ground.epoch, asker: ground.agent };
    if request.strategy == CompactStrategy::Summarize {
        let stands = |planned: &&Planned| {
            planned.originals().iter().all(|no| sieve.lets_through(*no, world.slot(*no)))
                && planned.holds(world)
        };
        let standing: Vec<&Planned> = plan.syntheses.iter().filter(stands).collect();
        // What a synthesis says of a unit that has changed would be wrong: it is written anew, a few times at most.
        if standing.len() < plan.syntheses.len() && plan.tries < COMPACT_REPLANNED_MAX {
            return Ok(prepare(plan.tries));
        }
        let warning = plan.warning(&standing);
        return Ok(Outcome::Done(summarized(ground, request, &standing, warning)));
    }
    let mut units = Vec::with_capacity(plan.units.len());
    let (mut bytes, mut slots) = (0u64, world.units.focus());
    for (at, no) in plan.units.iter().enumerate() {
        if sieve.lets_through(*no, slots.index(*no as usize)) {
            units.push(*no);
            bytes += u64::from(plan.bytes.get(at).copied().unwrap_or(0));
        }
    }
    if request.strategy == CompactStrategy::Archive {
        return Ok(Outcome::Done(archived(ground, request, &units)));
    }
    check_confirmed(world, request, &units)?;
    Ok(Outcome::Done(purged(ground, request, &units, bytes)))
}

/// A purge that leaves nothing of more than a handful of units is asked about once more: there is no way back.
fn check_confirmed(world: &World, request: &CompactRequest, units: &[UnitNo]) -> Result<(), Refusal> {
    let committed = units.iter().filter(|no| world.slot(**no).mode == Mode::Committed).count();
    let leaves_nothing = committed as u64 == world.purgeable();
    if request.confirm || !leaves_nothing || committed <= PURGE_UNCONFIRMED_MAX {
        return Ok(());
    }
    Err(Refusal::invalid(
        "confirm",
        format!(
            "This purge would delete {committed} units for good, all but those of unresolved conflicts. Nothing was changed."
        ),
        "Narrow the filter; or, if all of them are to go, send the same with confirm: true.",
    )
    .with("units_matched", json!(committed)))
}

/// Why, as it is kept with what is done.
fn reason(request: &CompactRequest) -> Box<str> {
    let own = || format!("{} (COMPACT {})", request.filter, request.strategy).into();
    request.reason.clone().unwrap_or_else(own)
}

/// The events that put units away, one for each status that some of them are in.
fn put_away(world: &World, request: &CompactRequest, units: &[UnitNo], events: &mut Vec<Event>) {
    // The actor does this: one way through them, not one for each status.
    let mut ids: [Vec<UnitId>; UnitStatus::ALL.len()] = Default::default();
    let mut slots = world.units.focus();
    for no in units {
        let slot = slots.index(*no as usize);
        ids[slot.status as usize].push(slot.id);
    }
    for (status, ids) in UnitStatus::ALL.iter().zip(ids).filter(|(_, ids)| !ids.is_empty()) {
        events.push(Event::Archived { status: *status, units: UnitIds::new(ids), reason: reason(request) });
    }
}

fn archived(ground: &Ground<'_>, request: &CompactRequest, units: &[UnitNo]) -> Change {
    let mut events = Vec::new();
    put_away(&ground.state.world, request, units, &mut events);
    Change::new(events, &answer(units.len(), 0, None))
}

fn summarized(
    ground: &Ground<'_>,
    request: &CompactRequest,
    planned: &[&Planned],
    warning: Option<Warning>,
) -> Change {
    let world = &ground.state.world;
    let mut originals: Vec<UnitNo> = planned.iter().flat_map(|one| one.originals().iter().copied()).collect();
    originals.sort_unstable();
    let mut events: Vec<Event> =
        (0..).zip(planned).map(|(number, planned)| synthesis(ground, number, planned)).collect();
    put_away(world, request, &originals, &mut events);
    let answer = Compacted { warning, ..answer(originals.len(), planned.len(), None) };
    Change::new(events, &answer)
}

fn purged(ground: &Ground<'_>, request: &CompactRequest, units: &[UnitNo], bytes: u64) -> Change {
    let world = &ground.state.world;
    let ids = UnitIds::new(units.iter().map(|no| world.slot(*no).id));
    let tombstones = (!ids.is_empty()).then(|| Event::Purged { units: ids, reason: reason(request) });
    Change::new(tombstones.into_iter().collect(), &answer(units.len(), 0, Some(bytes)))
}

fn answer(units: usize, syntheses: usize, bytes: Option<u64>) -> Compacted {
    Compacted {
        status: "ok".to_owned(),
        units_affected: units as u64,
        synthesis_units_created: syntheses as u64,
        storage_reclaimed_bytes: bytes,
        dry_run: false,
        warning: None,
    }
}

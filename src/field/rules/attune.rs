//! ATTUNE (seed `attune.md`, sections 5, 7, 12): brings an agent what matters to it.

use serde::Serialize;

use super::super::policy::Policy;
use super::super::state::{AgentNo, Slot, UnitNo, World};
use super::super::visibility::may_see;
use crate::limits::ATTUNE_CONFLICTS_MAX;
use crate::protocol::{
    AttuneRequest, Conflict, ContextBudget, Format, MemoryType, ShownUnit, UnitId, UnitStatus,
};
use crate::relevance::{Candidate, Index, Kind, Need, Ranked, rank, summarize};

/// Longest content in `summary` format, characters (section 7).
const SUMMARY_CHARS: usize = 280;

/// ATTUNE's response, borrowing from the world.
#[derive(Serialize)]
pub struct Answer<'a> {
    status: &'static str,
    record: Vec<Scoped<'a>>,
    conflicts: Vec<&'a Conflict>,
    context_budget: ContextBudget,
    epoch: u64,
}

#[derive(Serialize)]
struct Scoped<'a> {
    memory_unit: Shown<'a>,
    /// As ranked, not rounded: a shown tie must be a tie, or the newer unit would not come first in it.
    relevance_score: f32,
    relevance_reason: String,
    format: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Shown<'a> {
    Unit(ShownUnit<'a>),
    Id { id: UnitId },
}

/// Answers an ATTUNE of `asker` at `epoch` from a view of the world. The index knows at least the units of
/// that view.
pub fn attune<'a>(
    world: &'a World,
    index: &Index,
    policy: &Policy,
    epoch: u64,
    asker: AgentNo,
    request: &AttuneRequest,
) -> Answer<'a> {
    let filter = Filter { world, policy, asker, request };
    let record = &world.agent(asker).agent;
    let need = Need {
        hint: request.context_hint.as_deref(),
        role: &request.scope.role,
        interests: record.interests.iter().map(AsRef::as_ref).collect(),
        now: epoch,
        horizon: UnitNo::try_from(world.units.len()).unwrap_or(UnitNo::MAX),
        recency_weight: None,
        take: request.scope.max_units,
    };
    let (ranked, available) = filter.rank(index, &need);
    let shown: Vec<_> = ranked.into_iter().map(|ranked| scoped(world, ranked, request)).collect();
    Answer {
        status: "ok",
        context_budget: ContextBudget {
            units_returned: shown.len(),
            units_available: available,
            tokens_used: None,
            tokens_budget: None,
        },
        record: shown,
        conflicts: unresolved(world),
        epoch,
    }
}

/// Which units are candidates. One place, so that counting and ranking agree.
struct Filter<'a> {
    world: &'a World,
    policy: &'a Policy,
    asker: AgentNo,
    request: &'a AttuneRequest,
}

impl Filter<'_> {
    /// Ranks the candidates and counts them.
    fn rank(&self, index: &Index, need: &Need<'_>) -> (Vec<Ranked>, usize) {
        let world = self.world;
        let since = self.request.since_epoch.unwrap_or(0);
        let drafts = self.request.scope.include_drafts || self.policy.shared_drafts;
        let mut available = 0;
        let ranked = if since > 0 && !drafts {
            // A poll: only what was committed since, however large the Field is.
            let from = world.timeline.binary_search_by(|(epoch, _)| {
                if *epoch < since { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
            });
            let recent = world.timeline.skip(from.unwrap_or_else(|at| at));
            let wanted = recent.iter().filter_map(|&(_, no)| self.candidate(no, world.slot(no)));
            rank(index, need, wanted.inspect(|_| available += 1))
        } else {
            let since_then = (0..).zip(&world.units).filter(|(_, slot)| slot.epoch >= since);
            let wanted = since_then.filter_map(|(no, slot)| self.candidate(no, slot));
            rank(index, need, wanted.inspect(|_| available += 1))
        };
        (ranked, available)
    }

    fn candidate(&self, no: UnitNo, slot: &Slot) -> Option<Candidate> {
        let scope = &self.request.scope;
        let own = slot.author == self.asker;
        let wanted = match slot.status {
            UnitStatus::Draft => (own && scope.include_drafts) || (!own && self.policy.shared_drafts),
            status => status.is_live() && (!own || scope.include_own),
        };
        let keep = wanted
            && (!slot.archived || scope.include_archived)
            && (scope.types.is_empty() || scope.types.contains(&slot.kind))
            && (scope.session_id.is_none() || scope.session_id == slot.unit.source.session_id)
            && may_see(slot, Some(self.asker), self.policy);
        keep.then(|| Candidate { number: no, kind: kind(slot.kind), epoch: slot.epoch })
    }
}

/// Unresolved conflicts, newest first. Their units are committed, so every agent may see them.
fn unresolved(world: &World) -> Vec<&Conflict> {
    let newest = world.unresolved.iter().rev().take(ATTUNE_CONFLICTS_MAX);
    newest.map(|number| &*world.conflicts[*number as usize]).collect()
}

fn scoped<'a>(world: &'a World, ranked: Ranked, request: &AttuneRequest) -> Scoped<'a> {
    let slot = world.slot(ranked.number);
    let mut unit = ShownUnit::new(&slot.unit, slot.status, slot.epoch);
    let (memory_unit, format) = match request.format {
        Format::Full => (Shown::Unit(unit), "full"),
        Format::IdsOnly => (Shown::Id { id: slot.id }, "summary"),
        Format::Summary => {
            let hint = request.context_hint.as_deref().unwrap_or(&request.scope.role);
            unit.content = summarize(&slot.unit.content, hint, SUMMARY_CHARS).into();
            (Shown::Unit(unit), "summary")
        }
    };
    Scoped { memory_unit, relevance_score: ranked.score, relevance_reason: ranked.reason, format }
}

fn kind(kind: MemoryType) -> Kind {
    match kind {
        MemoryType::Finding => Kind::Finding,
        MemoryType::Decision => Kind::Decision,
        MemoryType::Observation => Kind::Observation,
        MemoryType::Intention => Kind::Intention,
        MemoryType::Assumption => Kind::Assumption,
        MemoryType::Constraint => Kind::Constraint,
        MemoryType::Question => Kind::Question,
        MemoryType::Contradiction => Kind::Contradiction,
        MemoryType::Synthesis => Kind::Synthesis,
        MemoryType::Correction => Kind::Correction,
        MemoryType::HumanDirective => Kind::HumanDirective,
    }
}

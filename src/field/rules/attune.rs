//! ATTUNE (seed `attune.md`, sections 5, 7, 12): brings an agent what matters to it.

use serde::Serialize;

use super::super::policy::Policy;
use super::super::state::{AgentNo, Slot, UnitNo, World};
use super::super::visibility::may_see;
use crate::limits::{ATTUNE_CONFLICTS_MAX, DRAFTS_JUDGED_MAX, DRAFTS_JUDGED_MAX_BYTES};
use crate::protocol::{
    AttuneRequest, Conflict, ContextBudget, Format, MemoryType, ShownUnit, Unit, UnitId, UnitStatus,
};
use crate::relevance::{Candidate, Document, Index, Kind, Need, Ranked, Summarizer, rank};

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

/// The units that an ATTUNE brings, best first.
pub struct Selection {
    chosen: Vec<(UnitNo, Ranked)>,
    available: usize,
}

impl Selection {
    /// The ids of the chosen units, best first.
    pub fn ids(&self, world: &World) -> Vec<UnitId> {
        self.chosen.iter().map(|(no, _)| world.slot(*no).id).collect()
    }
}

/// Chooses the units for an ATTUNE of `asker` at `epoch` from a view of the world. The index holds the committed
/// units in the order of the timeline, at least those of that view. Drafts are in no shared index, or their words
/// would weigh in the scores of others: those that the asker may see are judged by themselves.
pub fn select(
    world: &World,
    index: &Index,
    policy: &Policy,
    epoch: u64,
    asker: AgentNo,
    request: &AttuneRequest,
) -> Selection {
    let filter = Filter { world, policy, asker, request };
    let record = &world.agent(asker).agent;
    let need = |horizon| Need {
        hint: request.context_hint.as_deref(),
        role: &request.scope.role,
        interests: record.interests.iter().map(AsRef::as_ref).collect(),
        now: epoch,
        horizon,
        recency_weight: None,
        meaning: policy.meaning,
        take: request.scope.max_units,
    };
    let horizon = u32::try_from(world.timeline.len()).unwrap_or(u32::MAX);
    let (ranked, available) = filter.rank_committed(index, &need(horizon));
    let of_place = |ranked: Ranked| (world.timeline[ranked.number as usize].1, ranked);
    let chosen = ranked.into_iter().map(of_place).collect();
    let mut selection = Selection { chosen, available };
    let drafts = filter.drafts();
    selection.available += drafts.len();
    let drafts = judged(world, drafts);
    if !drafts.is_empty() {
        let mut apart = Index::taking_in(policy.meaning);
        for no in &drafts {
            apart.push(&document(world.slot(*no)));
        }
        let candidates = (0..).zip(&drafts).map(|(number, no)| {
            let slot = world.slot(*no);
            Candidate { number, kind: kind(slot.kind), epoch: slot.epoch }
        });
        let ranked = rank(&apart, &need(apart.len()), candidates);
        selection.chosen.extend(ranked.into_iter().map(|one| (drafts[one.number as usize], one)));
        let newest_first = |no: UnitNo| std::cmp::Reverse(world.slot(no).epoch);
        selection.chosen.sort_by(|(a, x), (b, y)| {
            y.score.total_cmp(&x.score).then_with(|| newest_first(*a).cmp(&newest_first(*b)))
        });
        selection.chosen.truncate(request.scope.max_units);
    }
    selection
}

/// The newest of these drafts, as many as one ATTUNE judges.
fn judged(world: &World, mut drafts: Vec<UnitNo>) -> Vec<UnitNo> {
    let mut room = DRAFTS_JUDGED_MAX_BYTES;
    let fits = |no: &&UnitNo| {
        let bytes = world.slot(**no).unit.text_bytes();
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    };
    let kept = drafts.iter().rev().take(DRAFTS_JUDGED_MAX).take_while(fits).count();
    drafts.split_off(drafts.len() - kept)
}

/// A unit as the index takes it in.
pub fn document(slot: &Slot) -> Document<'_> {
    document_of(&slot.unit)
}

/// The same, of a unit by itself.
pub fn document_of(unit: &Unit) -> Document<'_> {
    Document {
        content: &unit.content,
        purpose: &unit.intent.purpose,
        question: unit.intent.question.as_deref(),
        author: &unit.source.agent_id,
        role: &unit.source.agent_role,
        session: unit.source.session_id.as_deref(),
    }
}

/// The response that shows a selection.
pub fn show<'a>(world: &'a World, epoch: u64, request: &AttuneRequest, selection: Selection) -> Answer<'a> {
    let Selection { chosen, available } = selection;
    // The need's words are looked up once for all units.
    let mut summarizer = (request.format == Format::Summary)
        .then(|| Summarizer::new(request.context_hint.as_deref().unwrap_or(&request.scope.role)));
    let record: Vec<_> = chosen
        .into_iter()
        .map(|(no, ranked)| scoped(world, no, ranked, request.format, summarizer.as_mut()))
        .collect();
    Answer {
        status: "ok",
        context_budget: ContextBudget {
            units_returned: record.len(),
            units_available: available,
            tokens_used: None,
            tokens_budget: None,
        },
        record,
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
    /// Ranks the committed candidates and counts them.
    fn rank_committed(&self, index: &Index, need: &Need<'_>) -> (Vec<Ranked>, usize) {
        let world = self.world;
        let since = self.request.since_epoch.unwrap_or(0);
        let mut available = 0;
        let candidate = |slot: &Slot| {
            let number = slot.place.filter(|_| self.wants(slot))?;
            available += 1;
            Some(Candidate { number, kind: kind(slot.kind), epoch: slot.epoch })
        };
        let ranked = if since > 0 {
            // A poll: only what was committed since, however large the Field is.
            let recent = world.timeline.skip(world.committed_before(since));
            rank(index, need, recent.iter().map(|(_, no)| world.slot(*no)).filter_map(candidate))
        } else {
            rank(index, need, world.units.iter().filter_map(candidate))
        };
        (ranked, available)
    }

    /// The drafts that the asker may see and wants.
    fn drafts(&self) -> Vec<UnitNo> {
        if !self.request.scope.include_drafts && !self.policy.shared_drafts {
            return Vec::new();
        }
        let since = self.request.since_epoch.unwrap_or(0);
        let of = |no: &UnitNo| self.world.slot(*no);
        let recent = self.world.offstage.range((since, 0)..).map(|(_, no)| *no);
        recent.filter(|no| of(no).status == UnitStatus::Draft && self.wants(of(no))).collect()
    }

    fn wants(&self, slot: &Slot) -> bool {
        let scope = &self.request.scope;
        let own = slot.author == self.asker;
        let wanted = match slot.status {
            UnitStatus::Draft => (own && scope.include_drafts) || (!own && self.policy.shared_drafts),
            status => status.is_live() && (!own || scope.include_own),
        };
        wanted
            && (!slot.archived || scope.include_archived)
            && (scope.types.is_empty() || scope.types.contains(&slot.kind))
            && (scope.session_id.is_none() || scope.session_id == slot.unit.source.session_id)
            && may_see(slot, Some(self.asker), self.policy)
    }
}

/// Unresolved conflicts, newest first. Their units are committed, so every agent may see them.
fn unresolved(world: &World) -> Vec<&Conflict> {
    let newest = world.unresolved.iter().rev().take(ATTUNE_CONFLICTS_MAX);
    newest.map(|number| &*world.conflicts[*number as usize]).collect()
}

fn scoped<'a>(
    world: &'a World,
    no: UnitNo,
    ranked: Ranked,
    format: Format,
    summarizer: Option<&mut Summarizer>,
) -> Scoped<'a> {
    let slot = world.slot(no);
    let mut unit = ShownUnit::new(&slot.unit, slot.status, slot.epoch);
    if let Some(summarizer) = summarizer {
        unit.content = summarizer.summarize(&slot.unit.content, SUMMARY_CHARS).into();
    }
    let (memory_unit, format) = match format {
        Format::Full => (Shown::Unit(unit), "full"),
        Format::IdsOnly => (Shown::Id { id: slot.id }, "summary"),
        Format::Summary => (Shown::Unit(unit), "summary"),
    };
    Scoped { memory_unit, relevance_score: ranked.score, relevance_reason: ranked.reason, format }
}

/// A unit's type as relevance knows it.
pub fn kind(kind: MemoryType) -> Kind {
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

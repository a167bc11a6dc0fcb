//! ATTUNE (seed `attune.md`, sections 5, 7, 12): brings an agent what matters to it.

use serde::Serialize;

use super::super::command::Embedded;
use super::super::policy::Policy;
use super::super::state::{AgentNo, Slot, UnitNo, World};
use super::super::visibility::may_see;
use crate::limits::{ATTUNE_CONFLICTS_MAX, DRAFTS_JUDGED_MAX, DRAFTS_JUDGED_MAX_BYTES};
use crate::protocol::{
    AttuneRequest, Conflict, ContextBudget, Format, MemoryType, ShownUnit, UnitId, UnitStatus, Warning,
};
use crate::relevance::{Candidate, Document, Index, Kind, Need, Pool, Ranked, Summarizer, choose, rank};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<Warning>,
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
    /// Why the need's meaning could not count, where it should have.
    unembedded: Option<Box<str>>,
}

impl Selection {
    /// The ids of the chosen units, best first.
    pub fn ids(&self, world: &World) -> Vec<UnitId> {
        self.chosen.iter().map(|(no, _)| world.slot(*no).id).collect()
    }
}

/// Chooses the units for an ATTUNE of `asker` at `epoch` from a view of the world. The index holds the committed
/// units in the order of the timeline, at least those of that view. Drafts are in no shared index, or their words
/// would weigh in the scores of others: those that the asker may see are judged by themselves. `embedded` is what became
/// of the need at a model outside, where that makes the units' directions; drafts have none then.
pub fn select(
    world: &World,
    index: &Index,
    policy: &Policy,
    epoch: u64,
    asker: AgentNo,
    request: &AttuneRequest,
    embedded: &Embedded,
) -> Selection {
    let (direction, unembedded) = match embedded {
        Embedded::Unasked => (None, None),
        Embedded::Given(direction) => (Some(&**direction), None),
        Embedded::Failed(why) => (None, Some(why.clone())),
    };
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
        direction,
        take: request.scope.max_units,
    };
    let horizon = u32::try_from(world.timeline.len()).unwrap_or(u32::MAX);
    let ranked = choose(index, &need(horizon), &filter);
    let available = filter.available();
    let of_place = |ranked: Ranked| (world.timeline[ranked.number as usize].1, ranked);
    let chosen = ranked.into_iter().map(of_place).collect();
    let outside = *embedded != Embedded::Unasked;
    let mut selection = Selection { chosen, available, unembedded };
    let drafts = filter.drafts();
    selection.available += drafts.len();
    let drafts = judged(world, drafts);
    if !drafts.is_empty() {
        let mut apart = Index::taking_in(policy.meaning && !outside);
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
    let unit = &slot.unit;
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
    let Selection { chosen, available, unembedded } = selection;
    let warning = unembedded.map(|why| {
        super::enrichment_failed(
            format!("What you need could not be embedded, so that only words counted: {why}."),
            "Ask again later, or name in context_hint the words that the units would use.",
        )
    });
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
        warning,
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
    /// How many committed candidates there are.
    fn available(&self) -> usize {
        let world = self.world;
        if !self.wants_all_live() {
            return self.all().count();
        }
        let live = UnitStatus::ALL.iter().filter(|status| status.is_live());
        let live: u64 = live.map(|status| world.count(*status)).sum();
        let own = if self.request.scope.include_own { 0 } else { world.live_by_author[self.asker as usize] };
        usize::try_from(live - u64::from(own)).unwrap_or(usize::MAX)
    }

    /// Whether every live unit is wanted that is not the asker's own: then they need not be counted one by one. Keep
    /// it in step with `wants`.
    fn wants_all_live(&self) -> bool {
        let scope = &self.request.scope;
        self.request.since_epoch.is_none_or(|since| since == 0)
            && (scope.include_archived || self.world.archived == 0)
            && scope.types.is_empty()
            && scope.session_id.is_none()
    }

    fn candidate_of(&self, slot: &Slot) -> Option<Candidate> {
        let number = slot.place.filter(|_| self.wants(slot))?;
        Some(Candidate { number, kind: kind(slot.kind), epoch: slot.epoch })
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

impl Pool for Filter<'_> {
    fn first(&self) -> u32 {
        // A poll: only what was committed since, however large the Field is.
        let since = self.request.since_epoch.unwrap_or(0);
        u32::try_from(self.world.committed_before(since)).unwrap_or(u32::MAX)
    }

    fn candidate(&self, document: u32) -> Option<Candidate> {
        let (_, no) = self.world.timeline.get(document as usize)?;
        self.candidate_of(self.world.slot(*no))
    }

    fn all(&self) -> impl Iterator<Item = Candidate> {
        let (world, first) = (self.world, self.first());
        // Where all are asked, in the order in which they lie in memory.
        let whole = (first == 0).then(|| world.units.iter()).into_iter().flatten();
        let polled = (first > 0).then(|| world.timeline.skip(first as usize)).into_iter().flatten();
        whole.chain(polled.map(|(_, no)| world.slot(no))).filter_map(|slot| self.candidate_of(slot))
    }

    fn epoch(&self, document: u32) -> u64 {
        self.world.timeline.get(document as usize).map_or(0, |(epoch, _)| *epoch)
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

/// What relevance calls a unit's type.
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

//! ATTUNE (seed `attune.md`, sections 5, 7, 12): brings an agent what matters to it.

use std::num::NonZeroU32;

use super::super::command::Embedded;
use super::super::policy::Policy;
use super::super::state::{AgentNo, Slot, UnitNo, World};
use super::super::visibility::may_see;
use super::surroundings::{ActiveTask, Relations, context};
use crate::limits::{DRAFTS_JUDGED_MAX, DRAFTS_JUDGED_MAX_BYTES};
use crate::protocol::{AttuneRequest, MemoryType, TemporalLayer, Unit, UnitStatus};
use crate::relevance::{Candidate, Document, Index, Kind, Need, Pool, Ranked, Serves, choose, rank};

/// The units that an ATTUNE brings, best first, and how many there are in all.
pub struct Selection {
    pub(super) chosen: Vec<(UnitNo, Ranked)>,
    pub(super) available: usize,
    /// Why the need's meaning could not count, where it should have.
    pub(super) unembedded: Option<Box<str>>,
}

/// Chooses the units for an ATTUNE of `asker` (nobody in particular: `None`) at `epoch` from a view of the world. The
/// index holds the committed units in the order of the timeline, at least those of that view. Drafts are in no shared
/// index, or their words would weigh in the scores of others: those that the asker may see are judged by themselves.
/// `embedded` is what became of the need at a model outside, where that makes the units' directions; drafts have none
/// then.
pub fn select(
    world: &World,
    index: &Index,
    policy: &Policy,
    epoch: u64,
    asker: Option<AgentNo>,
    request: &AttuneRequest,
    embedded: &Embedded,
) -> Selection {
    let (direction, unembedded) = match embedded {
        Embedded::Unasked => (None, None),
        Embedded::Given(direction) => (Some(&**direction), None),
        Embedded::Failed(why) => (None, Some(why.clone())),
    };
    let task_id = request.scope.extended.active_task_id.as_ref();
    let task = task_id.map(|id| ActiveTask::new(world, id));
    let choice = Choice { world, policy, asker, request, task };
    let relations = Relations(world);
    let mut need = Need { direction, ..choice.need(epoch) };
    // Where nothing is related to anything there is nothing to walk.
    if policy.extended_scope() && !world.inbound.is_empty() {
        need.web = Some(&relations);
        need.context = context(world, asker, choice.task.as_ref());
    }
    need.horizon = u32::try_from(world.timeline.len()).unwrap_or(u32::MAX);
    need.warm = if request.scope.include_archived { 0 } else { world.cold.prefix() };
    let committed = choose(index, &need, &choice);
    let of_place = |ranked: Ranked| (world.timeline[ranked.number as usize].1, ranked);
    let chosen = committed.best.into_iter().map(of_place).collect();
    let mut selection = Selection { chosen, available: committed.available, unembedded };
    let built_in = policy.meaning && *embedded == Embedded::Unasked;
    choice.add_drafts(&mut selection, Need { web: None, context: Vec::new(), warm: 0, ..need }, built_in);
    selection
}

/// The newest of these drafts, as many as one ATTUNE judges.
fn judged(world: &World, mut drafts: Vec<UnitNo>) -> Vec<UnitNo> {
    let mut room = DRAFTS_JUDGED_MAX_BYTES;
    let fits = |no: &&UnitNo| {
        let bytes = world.slot(**no).text_bytes();
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    };
    let kept = drafts.iter().rev().take(DRAFTS_JUDGED_MAX).take_while(fits).count();
    drafts.split_off(drafts.len() - kept)
}

/// A unit as the index takes it in, where it is held whole.
pub fn document(slot: &Slot) -> Option<Document<'_>> {
    slot.whole().map(|unit| document_of(unit))
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

/// Which units are candidates, and for what need. One place, so that counting and ranking agree.
struct Choice<'a> {
    world: &'a World,
    policy: &'a Policy,
    asker: Option<AgentNo>,
    request: &'a AttuneRequest,
    task: Option<ActiveTask>,
}

impl<'a> Choice<'a> {
    /// The need, of no horizon yet and without relations.
    fn need(&self, epoch: u64) -> Need<'a> {
        let AttuneRequest { scope, context_hint, .. } = self.request;
        let extended = &scope.extended;
        let registered = self.asker.map_or(&[][..], |asker| &self.world.agent(asker).agent.interests);
        // What the scope says of now replaces what REGISTER said of always.
        let interests = if extended.interests.is_empty() { registered } else { &extended.interests };
        Need {
            hint: context_hint.as_deref(),
            role: &scope.role,
            interests: interests.iter().map(AsRef::as_ref).collect(),
            now: epoch,
            horizon: 0,
            warm: 0,
            recency_weight: extended.recency_weight.map(|weight| weight as f32),
            meaning: self.policy.meaning,
            direction: None,
            task: extended.active_task_id.as_deref(),
            web: None,
            context: Vec::new(),
            threshold: extended.relevance_threshold.map_or(0.0, |threshold| threshold as f32),
            take: scope.max_units,
        }
    }

    /// Whether every live unit is wanted that is not the asker's own: then they need not be counted one by one. Keep
    /// it in step with `wants`.
    fn wants_all_live(&self) -> bool {
        let scope = &self.request.scope;
        self.request.since_epoch.is_none_or(|since| since == 0)
            && scope.types.is_empty()
            && scope.extended.temporal_layers.is_empty()
            && scope.session_id.is_none()
    }

    fn committed(&self, no: UnitNo, slot: &Slot) -> Option<Candidate> {
        let number = slot.place.filter(|_| self.wants(slot) && !self.is_put_away(no))?;
        Some(self.known(number, slot))
    }

    /// Whether a unit is archived and archived ones are not asked for.
    fn is_put_away(&self, no: UnitNo) -> bool {
        !self.request.scope.include_archived && self.world.is_archived(no)
    }

    fn known(&self, number: u32, slot: &Slot) -> Candidate {
        let serves = self.task.as_ref().map_or(Serves::Others, |task| task.served_by(slot));
        Candidate { number, serves, kind: kind(slot.kind), epoch: slot.epoch }
    }

    /// Ranks the drafts that the asker may see and wants, and puts them into the selection; by their meaning too where
    /// that is the built-in model's to tell.
    fn add_drafts(&self, selection: &mut Selection, mut need: Need<'_>, meaning: bool) {
        let world = self.world;
        let drafts = self.drafts();
        if drafts.is_empty() {
            return;
        }
        let wanted = drafts.len();
        let drafts = judged(world, drafts);
        let mut apart = Index::taking_in(meaning);
        // Drafts are never archived, so all of them are held whole.
        for draft in drafts.iter().filter_map(|no| document(world.slot(*no))) {
            apart.push(&draft);
        }
        need.horizon = apart.len();
        let candidates = (0..).zip(&drafts).map(|(number, no)| self.known(number, world.slot(*no)));
        let ranked = rank(&apart, &need, candidates);
        // Those that are too many to be judged are there, for all that is known.
        selection.available += ranked.available + (wanted - drafts.len());
        selection.chosen.extend(ranked.best.into_iter().map(|one| (drafts[one.number as usize], one)));
        let newest_first = |no: UnitNo| std::cmp::Reverse(world.slot(no).epoch);
        selection.chosen.sort_by(|(a, x), (b, y)| {
            y.score.total_cmp(&x.score).then_with(|| newest_first(*a).cmp(&newest_first(*b)))
        });
        selection.chosen.truncate(self.request.scope.max_units);
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
        let layers = &scope.extended.temporal_layers;
        let own = self.asker == Some(slot.author);
        let wanted = match slot.status {
            UnitStatus::Draft => (own && scope.include_drafts) || (!own && self.policy.shared_drafts),
            status => status.is_live() && (!own || scope.include_own),
        };
        wanted
            && !slot.purged
            && (scope.types.is_empty() || scope.types.contains(&slot.kind))
            && (layers.is_empty() || layers.contains(&TemporalLayer::of(slot.kind)))
            && (scope.session_id.is_none() || scope.session_id.as_ref() == slot.session())
            && may_see(slot, self.asker, self.policy)
    }
}

impl Pool for Choice<'_> {
    fn first(&self) -> u32 {
        // A poll: only what was committed since, however large the Field is.
        let since = self.request.since_epoch.unwrap_or(0);
        u32::try_from(self.world.committed_before(since)).unwrap_or(u32::MAX)
    }

    fn candidate(&self, document: u32) -> Option<Candidate> {
        let (_, no) = self.world.timeline.get(document as usize)?;
        self.committed(*no, self.world.slot(*no))
    }

    fn all(&self) -> impl Iterator<Item = Candidate> {
        let (world, first) = (self.world, self.first());
        // Where all are asked, in the order in which they lie in memory.
        let whole = (first == 0).then(|| (0..).zip(world.units.iter())).into_iter().flatten();
        let polled = (first > 0).then(|| world.timeline.skip(first as usize)).into_iter().flatten();
        let polled = polled.map(|(_, no)| (no, world.slot(no)));
        whole.chain(polled).filter_map(|(no, slot)| self.committed(no, slot))
    }

    fn epoch(&self, document: u32) -> u64 {
        self.world.timeline.get(document as usize).map_or(0, |(epoch, _)| *epoch)
    }

    fn count(&self, _: u32) -> usize {
        // All of the view are before the horizon.
        let world = self.world;
        if !self.wants_all_live() {
            return self.all().count();
        }
        let live = UnitStatus::ALL.iter().filter(|status| status.is_live());
        let live: u64 = live.map(|status| world.count(*status)).sum();
        let scope = &self.request.scope;
        let left_out = self.asker.filter(|_| !scope.include_own);
        let own = left_out.map_or(0, |asker| world.live_by_author[asker as usize]);
        let put_away = match (scope.include_archived, left_out) {
            (true, _) => 0,
            (false, None) => world.archived_live(None),
            (false, Some(asker)) => world.archived_live(None) - world.archived_live(Some(asker)),
        };
        usize::try_from(live - u64::from(own) - put_away).unwrap_or(usize::MAX)
    }

    fn is_cold(&self, first: u32, count: usize) -> bool {
        !self.request.scope.include_archived && self.world.cold.covers(first, count)
    }

    fn tasks(&self) -> Vec<(NonZeroU32, Serves)> {
        self.task.as_ref().map_or_else(Vec::new, ActiveTask::serving)
    }
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

//! The syntheses that COMPACT makes (section 7): which units each is made of, and what it says.
//!
//! No language model is needed: the text is made of the originals' own sentences. Where one is used, its text is put in the
//! place of that before the COMPACT is decided. Either tells of units that stand; of
//! superseded and retracted ones, which ATTUNE must not show, it says nothing but that it elaborates them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::decide::Ground;
use super::super::event::Event;
use super::super::state::{Slot, UnitNo, World};
use super::excerpt;
use crate::limits::{RELATIONS_MAX, SYNTHESIS_CHARS_MAX, SYNTHESIS_UNITS_MAX};
use crate::protocol::{
    Confidence, Intent, MemoryType, Mode, Relation, RelationType, SYSTEM, Source, Unit, UnitId,
};
use crate::relevance::{Condenser, Grouped, Quote, Vector, groups, nearest};

/// Groups without a unit that stands are brought to others one by one as long as that is so much work at most.
const BROUGHT_MAX: usize = 4_000_000;

/// Characters of the originals' purpose in a synthesis's own.
const PURPOSE: usize = 120;
/// Characters of the name of the language model that wrote it.
const MODEL: usize = 80;
/// Authors that a synthesis's purpose names.
const AUTHORS: usize = 3;

/// A synthesis to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// What it is made of, in order.
    originals: Box<[UnitNo]>,
    /// Of these, which it quotes: they stood when it was written.
    quoted: Box<[UnitNo]>,
    content: Box<str>,
    intent: Intent,
    confidence: Option<Confidence>,
    session: Option<Arc<str>>,
    /// Whether a language model wrote the content.
    written: bool,
    /// Whether some of what it quotes was gone when a language model was to be asked for it.
    passed_over: bool,
}

impl Planned {
    pub(super) fn originals(&self) -> &[UnitNo] {
        &self.originals
    }

    /// Whether it quotes something and no language model has written it.
    pub(super) fn lacks_a_writer(&self) -> bool {
        !self.written && !self.quoted.is_empty()
    }

    /// Whether a language model has written it.
    pub(super) fn is_written(&self) -> bool {
        self.written
    }

    /// Whether another one quotes the same units; what a committed unit says never changes.
    pub(super) fn quotes_the_same(&self, other: &Self) -> bool {
        self.quoted == other.quoted
    }

    /// Who says what in the units that it quotes, if all of them stand in this world, which may be older or younger than the
    /// one that it was planned in.
    pub(super) fn quotes<'a>(&self, world: &'a World) -> Option<Vec<(&'a str, &'a str)>> {
        let quote = |no: &UnitNo| {
            let slot = world.units.get(*no as usize)?;
            let stands = slot.status.is_live() && !slot.purged && !world.is_archived(*no);
            // What is not archived is held whole.
            let unit = slot.whole().filter(|_| stands)?;
            Some((&*unit.source.agent_id, &*unit.content))
        };
        self.quoted.iter().map(quote).collect()
    }

    /// Notes that it could not be written as it was planned.
    pub(super) fn pass_over(&mut self) {
        self.passed_over = true;
    }

    /// Takes the text of a language model in place of the originals' sentences; who it was is told with the purpose.
    pub(super) fn write(&mut self, text: Box<str>, model: &str) {
        self.content = text;
        self.written = true;
        let purpose = format!("{}; written by {}", self.intent.purpose, excerpt(model, MODEL));
        self.intent.purpose = purpose.into();
    }

    /// Whether all that it quotes still stands, and did all the time.
    pub(super) fn holds(&self, world: &World) -> bool {
        !self.passed_over && self.quoted.iter().all(|no| world.slot(*no).status.is_live())
    }
}

/// Sorts units, given in order with where their texts point, into the groups of which syntheses are made: by task,
/// then by meaning. A group in which nothing stands joins the nearest one in which something does.
pub fn grouped(world: &World, units: &[UnitNo], directions: &[Vector]) -> Vec<Vec<UnitNo>> {
    let task = |no: &UnitNo| world.slot(*no).task.map_or(0, |task| task.get());
    let documents: Vec<_> =
        units.iter().zip(directions).map(|(no, direction)| Grouped { task: task(no), direction }).collect();
    let mut found = groups(&documents, SYNTHESIS_UNITS_MAX, RELATIONS_MAX);
    let stands = |group: &[usize]| group.iter().any(|at| world.slot(units[*at]).status.is_live());
    let mut fallen: Vec<usize> = (0..found.len()).filter(|at| !stands(&found[*at])).collect();
    if fallen.len() * units.len() > BROUGHT_MAX {
        fallen.clear();
    }
    for at in fallen {
        let joins =
            |other: usize| stands(&found[other]) && found[other].len() + found[at].len() <= RELATIONS_MAX;
        if let Some(other) = nearest(&documents, &found, at, joins) {
            let moved = std::mem::take(&mut found[at]);
            found[other].extend(moved);
        }
    }
    found.retain(|group| !group.is_empty());
    let numbers = |group: Vec<usize>| {
        let mut numbers: Vec<UnitNo> = group.into_iter().map(|at| units[at]).collect();
        numbers.sort_unstable();
        numbers
    };
    found.into_iter().map(numbers).collect()
}

/// Writes the synthesis of a group.
pub fn compose(world: &World, condenser: &mut Condenser, group: Vec<UnitNo>) -> Planned {
    let slots: Vec<&Slot> = group.iter().map(|no| world.slot(*no)).collect();
    // What is summarized is not archived yet, so it is held whole.
    let stands = |no: &UnitNo| world.slot(*no).status.is_live() && !world.slot(*no).is_shelved();
    let quoted: Vec<UnitNo> = group.iter().copied().filter(stands).collect();
    let quote = |no: &UnitNo| {
        let slot = world.slot(*no);
        Some(Quote { author: world.author_of(slot), content: &slot.whole()?.content })
    };
    let quotes: Vec<_> = quoted.iter().filter_map(quote).collect();
    let mut content = condenser.condense(&quotes, SYNTHESIS_CHARS_MAX);
    let task_id = shared_by_most(slots.iter().map(|slot| world.task_of(slot)));
    if content.is_empty() {
        content = nothing_stands(slots.len(), task_id.as_deref());
    }
    let session = slots[0].session().cloned();
    let session = session.filter(|id| slots.iter().all(|slot| slot.session() == Some(id)));
    Planned {
        quoted: quoted.into(),
        content: content.into(),
        intent: Intent { purpose: purpose(world, &slots).into(), task_id, question: None },
        confidence: least_confidence(&slots),
        session,
        written: false,
        passed_over: false,
        originals: group.into(),
    }
}

/// What a synthesis says where there is nothing to quote.
fn nothing_stands(units: usize, task: Option<&str>) -> String {
    let task = task.map(|task| format!(" of task {}", excerpt(task, 80))).unwrap_or_default();
    let (noun, verb) = if units == 1 { ("unit", "was") } else { ("units", "were") };
    format!("{units} archived {noun}{task} {verb} superseded or retracted; nothing of that is quoted here.")
}

/// What most have, the first of equals.
fn shared_by_most<'a>(all: impl Iterator<Item = Option<&'a Arc<str>>>) -> Option<Arc<str>> {
    let mut counts: BTreeMap<Option<&Arc<str>>, (usize, usize)> = BTreeMap::new();
    for (at, one) in all.enumerate() {
        counts.entry(one).or_insert((0, usize::MAX - at)).0 += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).and_then(|(one, _)| one.cloned())
}

/// Whose units, and what most of them were for; the purpose of one that does not stand is not told.
fn purpose(world: &World, slots: &[&Slot]) -> String {
    let mut authors: Vec<&str> = Vec::new();
    for slot in slots {
        let author = world.author_of(slot);
        if !authors.contains(&&**author) {
            authors.push(author);
        }
    }
    let more = authors.len().saturating_sub(AUTHORS);
    authors.truncate(AUTHORS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let units = if slots.len() == 1 { "1 unit".to_owned() } else { format!("{} units", slots.len()) };
    let mut said: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let standing = slots.iter().enumerate().filter(|(_, slot)| slot.status.is_live());
    for (at, unit) in standing.filter_map(|(at, slot)| Some((at, slot.whole()?))) {
        said.entry(&unit.intent.purpose).or_insert((0, usize::MAX - at)).0 += 1;
    }
    let most = said.into_iter().max_by_key(|(_, count)| *count).map(|(text, _)| excerpt(text, PURPOSE));
    let most = most.map(|text| format!(": {text}")).unwrap_or_default();
    format!("Summary of {units} by {}{more}{most}", authors.join(", "))
}

/// A synthesis is as sure as the least sure of its originals. Units recorded at level 0 may lack a score.
fn least_confidence(slots: &[&Slot]) -> Option<Confidence> {
    let scored = slots.iter().filter_map(|slot| Some((slot.score()?, slot.id)));
    let (least, unit) = scored.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
    let reason = match slots.len() {
        1 => format!("That of {unit}, which it sums up."),
        units => format!("The lowest of the {units} units that it sums up, that of {unit}."),
    };
    Some(Confidence {
        score: Some(least),
        reason: Some(reason.into()),
        evidence: Vec::new(),
        assumptions: Vec::new(),
    })
}

/// The synthesis as a unit: the Field's own, number `number` of this operation.
pub(super) fn synthesis(ground: &Ground<'_>, number: u32, planned: &Planned) -> Event {
    let world = &ground.state.world;
    let elaborates = |no: &UnitNo| Relation {
        kind: RelationType::Elaborates,
        target_id: world.slot(*no).id.to_string().into(),
        description: None,
    };
    let unit = Unit {
        id: UnitId::new(ground.epoch, number),
        mode: Mode::Committed,
        kind: MemoryType::Synthesis,
        content: planned.content.clone(),
        intent: planned.intent.clone(),
        confidence: planned.confidence.clone(),
        source: Source {
            agent_id: SYSTEM.into(),
            agent_role: SYSTEM.into(),
            session_id: planned.session.clone(),
            timestamp: ground.at,
        },
        relations: planned.originals.iter().map(elaborates).collect(),
    };
    Event::Recorded { unit: Arc::new(unit), supersedes: Vec::new() }
}

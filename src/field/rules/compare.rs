//! What contradicts what: the boundaries of automatic detection (section 7, RECORD and DETECT).
//!
//! Two units are compared where both stand (committed, live, not archived), both claim something, and nobody has said
//! how they stand to each other. They contradict each other in one of three ways:
//!
//! - `semantic`: what one says and what the other says cannot both be true of one subject that both name
//!   (`relevance::contradict`);
//! - `temporal`: the same, where the newer unit is clearly less sure than the older one, which is established: the
//!   older one's score is at least [`ESTABLISHED`], the newer one's lower by at least [`CLEARLY_LESS`]. The newer word
//!   is then probably not the better one;
//! - `logical`: an assumption of one contradicts what the other says. Of a unit's assumptions the first
//!   [`ASSUMPTIONS_MAX`] are read, of each the first [`ASSUMPTION_MAX_BYTES`]. Between units whose contents contradict
//!   each other already there is no second conflict.
//!
//! A question claims nothing, and a contradiction tells of two claims that are others'. An intention is of the future:
//! only another plan (a decision, an intention, a constraint, a human directive) contradicts it. An observation with
//! another number or date than the same agent's earlier observation is the next measurement, not a change of mind.
//!
//! Own units count like others': agents change their minds, and then say `supersedes`.
//!
//! What a unit is about may stand beside its content. Two units are about different things where the purpose and question
//! of each name something that the other unit does not; where their purposes are of one pattern and differ in a word; and
//! where they serve different tasks and their contents share no name. And a unit that clashes with three or more others
//! which clash with one another is one of a series ("release notes of 1.2: 5 fixes"): that is no contradiction.

use std::sync::Arc;

use super::super::state::{Slot, UnitNo, World};
use super::super::suspicion::Suspicion;
use crate::protocol::{
    CommitRequest, Confidence, DetectedBy, Intent, MemoryType, Mode, RecordRequest, Relation, RelationType,
    Unit, UnitId,
};
use crate::relevance::{Claims, Clash, Grounds, clash};

/// Score from which a unit is established: its author was fairly sure.
const ESTABLISHED: f64 = 0.7;
/// How much lower a score is clearly lower.
const CLEARLY_LESS: f64 = 0.2;
/// Assumptions of a unit that are read, the first.
const ASSUMPTIONS_MAX: usize = 8;
/// Bytes of an assumption that are read, the first.
const ASSUMPTION_MAX_BYTES: usize = 1_024;
/// Suspicions of one unit that are kept, the strongest: one that clashes with more is settled by a person, not by
/// hundreds of conflicts.
const SUSPICIONS_MAX: usize = 8;

/// What a unit says, as far as it can contradict another: of one in the Field, or of one on its way there.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    /// Its id, once it has one.
    id: Option<UnitId>,
    kind: MemoryType,
    content: &'a str,
    intent: &'a Intent,
    confidence: Option<&'a Confidence>,
    relations: &'a [Relation],
    author: &'a str,
    /// Its place in the order of commits; what has none yet is the newest.
    place: Option<u32>,
}

impl<'a> Statement<'a> {
    /// Of a unit in the Field that is held whole, as all that stand are.
    pub fn of(slot: &'a Slot) -> Option<Self> {
        let place = slot.place;
        Some(Self { id: Some(slot.id), place, ..Self::by(slot.whole()?) })
    }

    /// Of a unit that a RECORD commits.
    pub fn recorded(request: &'a RecordRequest, author: &'a str) -> Self {
        Self {
            id: None,
            kind: request.kind,
            content: &request.content,
            intent: &request.intent,
            confidence: request.confidence.as_ref(),
            relations: &request.relations,
            author,
            place: None,
        }
    }

    /// Of a draft that a COMMIT commits; what is archived is none.
    pub fn committed(draft: &'a Slot, request: &'a CommitRequest) -> Option<Self> {
        let of_draft = Self::by(draft.whole()?);
        Some(Self {
            id: Some(draft.id),
            confidence: request.confidence.as_ref().or(of_draft.confidence),
            relations: request.relations.as_deref().unwrap_or(of_draft.relations),
            ..of_draft
        })
    }

    pub(super) fn by(unit: &'a Unit) -> Self {
        Self {
            id: None,
            kind: unit.kind,
            content: &unit.content,
            intent: &unit.intent,
            confidence: unit.confidence.as_ref(),
            relations: &unit.relations,
            author: &unit.source.agent_id,
            place: None,
        }
    }

    /// Whether a unit of this type can contradict anything.
    pub fn claims(&self) -> bool {
        claims(self.kind)
    }

    /// Its text as the index reads it.
    pub fn document(&self) -> crate::relevance::Document<'a> {
        crate::relevance::Document {
            content: self.content,
            purpose: &self.intent.purpose,
            question: self.intent.question.as_deref(),
            author: self.author,
            role: "",
            session: None,
        }
    }

    /// Reads what it claims: the costly part of comparing, done once for each unit.
    pub fn read(&self) -> Stated {
        let assumptions = self.confidence.map_or(&[][..], |confidence| &confidence.assumptions[..]);
        let assumptions = assumptions.iter().take(ASSUMPTIONS_MAX);
        let claims = |text: &str| Claims::of(&text[..text.floor_char_boundary(ASSUMPTION_MAX_BYTES)]);
        Stated {
            content: Claims::of(self.content),
            context: Context::of(self.intent, self.content),
            assumptions: assumptions.map(|text| claims(text)).collect(),
        }
    }

    /// The texts of its assumptions that are read.
    pub fn assumptions(&self) -> impl Iterator<Item = &'a str> {
        let assumptions = self.confidence.map_or(&[][..], |confidence| &confidence.assumptions[..]);
        let cut = |text: &'a str| &text[..text.floor_char_boundary(ASSUMPTION_MAX_BYTES)];
        assumptions.iter().take(ASSUMPTIONS_MAX).map(move |text| cut(text))
    }

    fn score(&self) -> Option<f64> {
        self.confidence.and_then(|confidence| confidence.score)
    }

    /// Whether a relation of this one to `other` says already how the two stand to each other.
    fn speaks_of(&self, other: &Self) -> bool {
        let Some(id) = other.id else { return false };
        self.relations.iter().any(|relation| {
            (self.kind == MemoryType::Correction || says_how_they_stand(relation.kind))
                && relation.target_id.parse() == Ok(id)
        })
    }
}

/// What a unit claims, read.
#[derive(Debug, Default)]
pub struct Stated {
    content: Claims,
    context: Context,
    /// In the order of their texts; empty ones too.
    assumptions: Vec<Claims>,
}

impl Stated {
    /// Whether nothing could contradict it.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty() && self.assumptions.iter().all(Claims::is_empty)
    }

    /// Estimate of the memory that it holds.
    pub fn memory_bytes(&self) -> usize {
        let all = std::iter::once(&self.content).chain(&self.assumptions);
        size_of::<Self>() + self.context.memory_bytes() + all.map(Claims::memory_bytes).sum::<usize>()
    }
}

/// A relation after which nobody needs to be told that two units differ.
fn says_how_they_stand(kind: RelationType) -> bool {
    matches!(
        kind,
        RelationType::Supersedes
            | RelationType::Contradicts
            | RelationType::Supports
            | RelationType::Elaborates
            | RelationType::Answers
    )
}

fn claims(kind: MemoryType) -> bool {
    !matches!(kind, MemoryType::Question | MemoryType::Contradiction)
}

fn is_plan(kind: MemoryType) -> bool {
    matches!(
        kind,
        MemoryType::Decision | MemoryType::Intention | MemoryType::Constraint | MemoryType::HumanDirective
    )
}

/// Whether units of these types can contradict each other.
pub(super) fn may_clash(a: MemoryType, b: MemoryType) -> bool {
    let future = a == MemoryType::Intention || b == MemoryType::Intention;
    claims(a) && claims(b) && (!future || (is_plan(a) && is_plan(b)))
}

/// Whether a unit is one of those that are compared.
pub fn stands(world: &World, no: UnitNo) -> bool {
    let slot = world.slot(no);
    slot.mode == Mode::Committed && slot.status.is_live() && !slot.purged && !world.is_archived(no)
}

/// Whether a conflict between two units would tell anything new, as far as the two themselves say. (Two units of one
/// chain of supersession never both stand.)
pub(super) fn are_open_to_each_other(one: &Statement<'_>, other: &Statement<'_>) -> bool {
    may_clash(one.kind, other.kind) && !one.speaks_of(other) && !other.speaks_of(one)
}

/// Compares a statement with others, of which those count that stand now. `recall` gives what a unit claims, or
/// nothing to have this end early.
pub fn suspicions(
    world: &World,
    statement: &Statement<'_>,
    stated: &Stated,
    others: impl Iterator<Item = UnitNo>,
    mut recall: impl FnMut(UnitNo) -> Option<Arc<Stated>>,
) -> Vec<Suspicion> {
    let mut found: Vec<(Contradiction, UnitId, Arc<Stated>)> = Vec::new();
    for no in others {
        let slot = world.slot(no);
        let Some(other) = Statement::of(slot) else { continue };
        let known = statement.id.is_some_and(|id| id == slot.id || disputed(world, id, no));
        if known || !stands(world, no) || !are_open_to_each_other(statement, &other) {
            continue;
        }
        let Some(theirs) = recall(no) else { break };
        if is_about_other_things((statement, stated), (&other, &theirs)) {
            continue;
        }
        let is_older = statement.place.is_some_and(|place| slot.place.is_some_and(|other| place < other));
        let contradiction = if is_older {
            contradiction((statement, stated), (&other, &theirs))
        } else {
            contradiction((&other, &theirs), (statement, stated))
        };
        found.extend(contradiction.map(|contradiction| (contradiction, slot.id, theirs)));
    }
    found.sort_by(|(a, one, _), (b, other, _)| b.strength.total_cmp(&a.strength).then(one.cmp(other)));
    found.truncate(SUSPICIONS_MAX);
    let of_series = series(&found.iter().map(|(.., stated)| &**stated).collect::<Vec<_>>());
    let alone = found.into_iter().zip(of_series).filter(|(_, of_series)| !of_series);
    let suspicion = |((found, against, _), _): ((Contradiction, UnitId, Arc<Stated>), bool)| Suspicion {
        against,
        by: found.by,
        description: found.description.into(),
    };
    alone.map(suspicion).collect()
}

/// Which of these clash with at least two of the others, if there are at least three such.
fn series(found: &[&Stated]) -> Vec<bool> {
    let mut met = vec![0; found.len()];
    for (at, one) in found.iter().enumerate() {
        for (other_at, other) in found.iter().enumerate().skip(at + 1) {
            if clash(&one.content, &other.content).is_some() {
                met[at] += 1;
                met[other_at] += 1;
            }
        }
    }
    let enough = met.iter().filter(|met| **met >= 2).count() >= 3;
    met.into_iter().map(|met| enough && met >= 2).collect()
}

/// Whether what stands beside the contents tells two units apart.
fn is_about_other_things(
    (one, ours): (&Statement<'_>, &Stated),
    (other, theirs): (&Statement<'_>, &Stated),
) -> bool {
    let (ours, theirs) = (&ours.context, &theirs.context);
    let tasks = one.intent.task_id.as_deref().zip(other.intent.task_id.as_deref());
    let other_tasks = tasks.is_some_and(|(one, other)| one != other);
    ours.names_what(theirs) && theirs.names_what(ours)
        || ours.has_pattern_of(theirs)
        || other_tasks && !ours.content_names.iter().any(|name| theirs.content_names.contains(name))
}

/// What stands beside a unit's content, by hashes of its words.
#[derive(Debug, Default)]
struct Context {
    /// Names in purpose and question, and in the content.
    names: Vec<u64>,
    content_names: Vec<u64>,
    /// The purpose's words that say something.
    words: Vec<u64>,
}

/// Words of a purpose, and names of a text, that are looked at, the first.
const CONTEXT_WORDS_MAX: usize = 32;
/// Bytes of a purpose, a question or a content that are looked through for names.
const CONTEXT_MAX_BYTES: usize = 2 * 1024;
/// Shorter words are small ones.
const WORD_LEAST: usize = 4;
/// Words that two purposes of one pattern share at least.
const PATTERN_WORDS: usize = 2;

impl Context {
    fn of(intent: &Intent, content: &str) -> Self {
        let question = intent.question.as_deref().unwrap_or_default();
        let mut names = names(&intent.purpose);
        names.extend(self::names(question));
        let words =
            words(&intent.purpose).map(|(_, word)| word).filter(|word| word.chars().count() >= WORD_LEAST);
        let mut words: Vec<u64> = words.map(hash).take(CONTEXT_WORDS_MAX).collect();
        words.sort_unstable();
        words.dedup();
        Self { names, content_names: self::names(content), words }
    }

    /// Whether it names something that the other unit does not.
    fn names_what(&self, other: &Self) -> bool {
        self.names.iter().any(|name| !other.names.contains(name) && !other.content_names.contains(name))
    }

    /// Whether two purposes share most of their words, and each has another one besides.
    fn has_pattern_of(&self, other: &Self) -> bool {
        let shared = self.words.iter().filter(|word| other.words.contains(word)).count();
        let (ours, theirs) = (self.words.len() - shared, other.words.len() - shared);
        shared >= PATTERN_WORDS && ours > 0 && theirs > 0 && shared >= ours.max(theirs)
    }

    fn memory_bytes(&self) -> usize {
        (self.names.capacity() + self.content_names.capacity() + self.words.capacity()) * size_of::<u64>()
    }
}

/// The words of a text's beginning, each with whether it begins a sentence.
fn words(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut begins = true;
    let text = &text[..text.floor_char_boundary(CONTEXT_MAX_BYTES)];
    text.split_whitespace().filter_map(move |piece| {
        let began = std::mem::replace(&mut begins, piece.ends_with(['.', '!', '?', ':']));
        let word = piece.trim_matches(|c: char| !c.is_alphanumeric());
        (!word.is_empty()).then_some((began, word))
    })
}

/// The names in a text: words with a capital inside a sentence, or with letters and digits together.
fn names(text: &str) -> Vec<u64> {
    let is_name = |&(begins, word): &(bool, &str)| {
        let letters = word.contains(char::is_alphabetic);
        let mixed = word.contains(|c: char| c.is_ascii_digit() || matches!(c, '_' | '/')) && letters;
        let inner = word.chars().skip(1).any(char::is_uppercase);
        letters && word.len() > 1 && (mixed || inner || (!begins && word.starts_with(char::is_uppercase)))
    };
    words(text).filter(is_name).map(|(_, word)| hash(word)).take(CONTEXT_WORDS_MAX).collect()
}

/// A word's own number, whatever its capitals; good enough to tell a few dozen words apart.
fn hash(word: &str) -> u64 {
    let lower = word.chars().flat_map(char::to_lowercase);
    lower.fold(0xcbf2_9ce4_8422_2325, |hash, c| (hash ^ u64::from(c)).wrapping_mul(0x0100_0000_01b3))
}

/// Whether two units have been in a conflict with each other, resolved or not.
pub(super) fn disputed(world: &World, id: UnitId, other: UnitNo) -> bool {
    let of = |no: &UnitNo| world.disputes.get(no);
    let ours = world.find(id).as_ref().and_then(of);
    let Some((ours, theirs)) = ours.zip(of(&other)) else { return false };
    let (fewer, partner) =
        if ours.len() <= theirs.len() { (ours, world.slot(other).id) } else { (theirs, id) };
    fewer.iter().any(|number| world.conflicts[*number as usize].partner_of(partner).is_some())
}

/// A contradiction found between two statements.
struct Contradiction {
    by: DetectedBy,
    strength: f32,
    description: String,
}

type Side<'a> = (&'a Statement<'a>, &'a Stated);

fn contradiction((older, older_says): Side<'_>, (newer, newer_says): Side<'_>) -> Option<Contradiction> {
    if let Some(found) = clash(&older_says.content, &newer_says.content) {
        if is_next_measurement(older, newer, &found) {
            return None;
        }
        let strength = found.strength;
        let words = found.words((&older_says.content, older.content), (&newer_says.content, newer.content));
        return Some(match outdoes(older, newer) {
            Some((sure, unsure)) => Contradiction {
                by: DetectedBy::Temporal,
                strength,
                description: format!("{words}; the newer one is less sure, {unsure} against {sure}"),
            },
            None => Contradiction { by: DetectedBy::Semantic, strength, description: words },
        });
    }
    assumed((older, older_says), (newer, newer_says), true)
        .or_else(|| assumed((newer, newer_says), (older, older_says), false))
}

/// What one unit assumes against what the other says.
fn assumed((one, ours): Side<'_>, (other, theirs): Side<'_>, is_older: bool) -> Option<Contradiction> {
    let said = (&theirs.content, other.content);
    one.assumptions().zip(&ours.assumptions).find_map(|(text, assumption)| {
        let assumed = (assumption, text);
        let (first, second, whose) =
            if is_older { (assumed, said, "older") } else { (said, assumed, "newer") };
        let found = clash(first.0, second.0)?;
        Some(Contradiction {
            by: DetectedBy::Logical,
            strength: found.strength,
            description: format!("{}, which the {whose} one assumes", found.words(first, second)),
        })
    })
}

/// The scores, where the older unit is established and the newer one clearly less sure.
fn outdoes(older: &Statement<'_>, newer: &Statement<'_>) -> Option<(f64, f64)> {
    let (sure, unsure) = older.score().zip(newer.score())?;
    // Scores are written as hundredths: 0.9 - 0.7 is meant to be 0.2.
    let clearly = sure - unsure >= CLEARLY_LESS - 1e-9;
    (sure >= ESTABLISHED && clearly).then_some((sure, unsure))
}

fn is_next_measurement(older: &Statement<'_>, newer: &Statement<'_>, found: &Clash) -> bool {
    let observed = older.kind == MemoryType::Observation && newer.kind == MemoryType::Observation;
    observed && older.author == newer.author && matches!(found.grounds, Grounds::Quantity | Grounds::Date)
}

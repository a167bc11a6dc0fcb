//! Names: two of them in the same place of otherwise the same claim.

use std::ops::Range;

use super::align::{Alignment, Link};
use super::claims::{Marks, Said, Word};
use super::judge::{Found, Grounds, shared_words};

/// How sure another name is at best: often there is room for both. See `chosen` in `judge`.
const SURE_OF_NAMES: f32 = 0.85;

/// Two names in the same place of otherwise the same claim, where there can be one.
pub(super) fn name(alignment: &Alignment<'_>) -> Option<Found> {
    let (ours, theirs) = candidates(alignment)?;
    // "Ada goes to Paris", on another day to Rome: more must be the same.
    let few = ours.kind == Naming::Chosen && shared_words(alignment) < 2;
    (!few).then(|| Found::new(SURE_OF_NAMES, Grounds::Name, ours.span, theirs.span))
}

/// The two names, as far as words that are only near in meaning do not matter.
fn candidates(alignment: &Alignment<'_>) -> Option<(Different, Different)> {
    let ours = Different::of(&alignment.a, &alignment.from_a)?;
    let theirs = Different::of(&alignment.b, &alignment.from_b)?;
    let shared = alignment.pairs().filter(|(.., link)| matches!(link, Link::Same(_))).count();
    let kinds = ours.kind == theirs.kind && ours.kind != Naming::None;
    (kinds && shared >= 2).then_some((ours, theirs))
}

/// Whether [`name`] may find anything once words near in meaning are linked.
pub(super) fn may_name(alignment: &Alignment<'_>) -> bool {
    candidates(alignment).is_some()
}

/// In what way a name is the one answer to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    None,
    /// It is what the subject is: "our provider is Stripe", "the default is main".
    Identity,
    /// It follows a word that asks for one: "hosted in Frankfurt".
    Single,
    /// It is the subject, and has a title: "Maria is the owner".
    Title,
    /// What is chosen, or where something goes, where there is one: "use Kafka for the events", "go to Frankfurt".
    Chosen,
    /// It is used as something: "Kafka as the broker".
    Role,
}

/// The one group of words of a claim that the other does not share, if it is a name.
struct Different {
    span: Range<u32>,
    kind: Naming,
}

/// Longest name, in words.
const NAME_WORDS_MAX: usize = 3;

impl Different {
    fn of(claim: &Said<'_>, links: &[Link]) -> Option<Self> {
        let words = claim.words;
        let is_free = |&at: &usize| !matches!(links[at], Link::Same(_)) && !words[at].marks.has(Marks::LIGHT);
        let first = (0..words.len()).find(is_free)?;
        let last = (0..words.len()).rfind(is_free)?;
        let group = &words[first..=last];
        let whole = (first..=last).all(|at| is_free(&at)) && group.len() <= NAME_WORDS_MAX;
        let named = group.iter().all(|word| word.marks.has(Marks::NAME));
        let ends = last + 1 == words.len();
        let is_said = words[first].marks.has(Marks::NAMED);
        let (before, after) = (&words[..first], &words[last + 1..]);
        let kind = if ends && is_said && (named && !claim.is_personal) {
            Naming::Identity
        } else if ends
            && is_said
            && group.len() == 1
            && before.iter().any(|word| word.marks.has(Marks::TITLE))
        {
            // "is called main": a name without a capital.
            Naming::Identity
        } else if named && before.last().is_some_and(|word| word.marks.has(Marks::SINGLE)) {
            Naming::Single
        } else if first == 0
            && group[1..].iter().all(|word| word.marks.has(Marks::NAME))
            && after.iter().find(|word| word.marks.has(Marks::SAID)).is_some_and(Word::is_title)
        {
            // The first word of a sentence has its capital anyway.
            Naming::Title
        } else if named && words[last].marks.has(Marks::AS) {
            Naming::Role
        } else if named && !claim.is_personal && before.last().is_some_and(|verb| is_chosen(verb, after)) {
            Naming::Chosen
        } else {
            Naming::None
        };
        whole.then(|| Self { span: words[first].span.start..words[last].span.end(), kind })
    }
}

/// Whether a verb that takes one thing has one here. Of what one uses there are many: what it is for must be said, and
/// who does it.
fn is_chosen(verb: &Word, after: &[Word]) -> bool {
    let for_what = after.iter().any(|word| !word.marks.has(Marks::LIGHT));
    verb.marks.has(Marks::CHOSEN) && !verb.is_first() && (for_what || verb.marks.has(Marks::LIGHT))
}

//! The judgement: whether two texts contradict each other, how strongly, and in what.

use std::ops::Range;

use super::align::{Alignment, Cover, Free, Link, NEAR, Pointing};
use super::claims::{Claims, Marks, Said, Word};
use super::naming;
use super::quantities::Quantity;
use super::units::Measure;

/// In what two texts contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// One says what the other denies.
    Negation,
    /// Words that exclude one another: "increased" and "decreased", "open" and "closed".
    Opposites,
    /// Different numbers for the same thing.
    Quantity,
    /// Different dates or times of day for the same event.
    Date,
    /// Different names where there can be one.
    Name,
}

/// A contradiction between two texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Clash {
    /// How much of what the two are about is the same, in 0..=1: the less, the likelier something else explains the
    /// difference. Whatever is found at all is meant to be flagged; 0.7 is weak and 0.95 as good as certain.
    pub strength: f32,
    /// In what they differ.
    pub grounds: Grounds,
    /// The numbers of the claims that clash.
    pub(super) claims: (usize, usize),
    /// What clashes, in either text.
    pub(super) spans: (Range<u32>, Range<u32>),
}

/// Every number that was chosen rather than given: on the tuning halves, see the module's table.
mod chosen {
    /// Part of what one claim negates that the other must say.
    pub const DENIED: f32 = 0.8;
    /// Part of the rest of the negative claim that the other must share.
    pub const REST: f32 = 0.6;
    /// Part of the positive claim that the negative one must share.
    pub const CLAIMED: f32 = 0.4;
    /// Both of the last two, where somebody speaks of himself ("I" is somebody else in the next unit) or of a case.
    pub const SPECIAL: f32 = 0.8;
    /// Words of a claim that is long enough to share two of them with any other.
    pub const LONG: usize = 8;
    /// Part of both claims that opposites must share.
    pub const OPPOSED: f32 = 0.75;
    /// Part of either claim that two with different values must share.
    pub const MEASURED: f32 = 0.5;
    /// The same for the one that is shared more: the other may say more besides.
    pub const MEASURED_MORE: f32 = 0.85;
    /// Instead of it, where the subject is "the same" as another's: that says what it is in more words.
    pub const POINTED_AT: f32 = 0.25;
    /// Nearness in meaning from which a word is taken for the same, where another subject would explain all.
    pub const CLOSE: f32 = 0.7;
    /// How sure each kind is at its best: a denial is seldom anything else, another name often is.
    pub const SURE_OF_OPPOSITES: f32 = 0.9;
    pub const SURE_OF_VALUES: f32 = 0.95;
}

/// A contradiction as found, and the spans that clash in both texts.
pub(super) struct Found {
    pub strength: f32,
    pub grounds: Grounds,
    pub a: Range<u32>,
    pub b: Range<u32>,
}

impl Found {
    pub fn new(strength: f32, grounds: Grounds, a: Range<u32>, b: Range<u32>) -> Self {
        Self { strength: strength.clamp(0.0, 1.0), grounds, a, b }
    }
}

/// Whether two texts contradict each other: the strongest clash between a claim of one and a claim of the other.
///
/// Symmetric but for the order of what is quoted and of equally strong clashes. The same claims give the same
/// answer, bit for bit.
#[must_use]
pub fn clash(a: &Claims, b: &Claims) -> Option<Clash> {
    if !a.sight.may_clash(&b.sight) {
        return None;
    }
    strongest(a, b, |ours, theirs| {
        if !ours.sight.may_clash(&theirs.sight) {
            return None;
        }
        let mut alignment = Alignment::by_lists(*ours, *theirs);
        let pointing = Pointing::of(&alignment);
        may_be_judged(&alignment, &pointing).then(|| alignment.near(&pointing))?;
        judge(&alignment)
    })
}

/// The strongest clash that `judged` finds between claims that may be about one thing.
fn strongest(
    a: &Claims,
    b: &Claims,
    judged: impl Fn(&Said<'_>, &Said<'_>) -> Option<Found>,
) -> Option<Clash> {
    let mut best: Option<Clash> = None;
    for (at, ours) in a.said().enumerate() {
        for (other_at, theirs) in b.said().enumerate() {
            if !ours.sight.may_share_a_subject(&theirs.sight) {
                continue;
            }
            if let Some(Found { strength, grounds, a, b }) = judged(&ours, &theirs)
                && best.as_ref().is_none_or(|best| strength > best.strength)
            {
                best = Some(Clash { strength, grounds, claims: (at, other_at), spans: (a, b) });
            }
        }
    }
    best
}

/// The same as [`clash`], without anything that spares work.
#[cfg(test)]
pub(super) fn clash_at_length(a: &Claims, b: &Claims) -> Option<Clash> {
    strongest(a, b, |ours, theirs| judge(&Alignment::of(*ours, *theirs)))
}

/// What of two claims does not go together, and what they leave open.
#[derive(Default)]
struct Differences<'a> {
    /// Words that exclude one another and are both said or both denied.
    opposed: Vec<(&'a Word, &'a Word)>,
    /// Words that are the same and of which one is denied.
    denied: Vec<(&'a Word, &'a Word)>,
    /// Quantities that cannot both be true.
    values: Vec<(&'a Quantity, &'a Quantity)>,
    /// Of whom neither says anything, or of which case: another one explains any other value, name or state.
    unsaid: bool,
    /// Whether something is only allowed.
    allowed: bool,
}

impl<'a> Differences<'a> {
    /// Nothing where the claims cannot clash: what is allowed is contradicted by what must be otherwise, and by nothing
    /// else.
    fn of(alignment: &Alignment<'a>) -> Option<Self> {
        let (a, b) = (alignment.a, alignment.b);
        let unsaid = a.is_bare || b.is_bare || a.is_conditional || b.is_conditional;
        let allowed = a.is_allowed || b.is_allowed;
        if allowed && !(a.is_required || b.is_required) {
            return None;
        }
        let mut found = Self { unsaid, allowed, ..Self::default() };
        for (one, other, link) in alignment.pairs() {
            let turned = one.is_negated() != other.is_negated();
            match link {
                // "not enabled" and "disabled" agree.
                Link::Opposed(_) if !turned => found.opposed.push((one, other)),
                Link::Opposed(_) | Link::None => {}
                Link::Same(_) | Link::Near(..) if turned && is_denied(one, other, link) => {
                    found.denied.push((one, other));
                }
                Link::Same(_) | Link::Near(..) => {}
            }
        }
        found.values = values(alignment);
        (!allowed || found.values.is_empty()).then_some(found)
    }
}

/// Whether one of two words, of which the other is negated, says what that denies.
fn is_denied(one: &Word, other: &Word, link: Link) -> bool {
    let said = if one.is_negated() { other } else { one };
    // "is not mandatory" and "requires" are said of different things: of what is needed, and of what needs it.
    let turned_about = matches!(link, Link::Same(_))
        && one.stem != other.stem
        && one.marks.has(Marks::SAID) != other.marks.has(Marks::SAID);
    !one.marks.has(Marks::LIGHT) && !said.marks.has(Marks::UNSAID) && !turned_about
}

/// Quantities of either claim that cannot both be true.
fn values<'a>(alignment: &Alignment<'a>) -> Vec<(&'a Quantity, &'a Quantity)> {
    let (ours, theirs) = (alignment.a.quantities, alignment.b.quantities);
    let mut found = Vec::new();
    if ours.is_empty() || theirs.is_empty() {
        return found;
    }
    let is_met = |one: &Quantity, others: &[Quantity]| {
        others.iter().any(|other| one.is_comparable(other) && one.agrees(other))
    };
    for one in ours.iter().filter(|one| !is_met(one, theirs)) {
        let other = theirs.iter().find(|other| one.is_comparable(other) && !is_met(other, ours));
        found.extend(other.map(|other| (one, other)));
    }
    found
}

/// Looks for the one thing in which two claims clash. Two kinds of difference at once explain one another: the
/// claims are of different times, places or things.
fn judge(alignment: &Alignment<'_>) -> Option<Found> {
    let differences = Differences::of(alignment)?;
    let Differences { opposed, denied, values, unsaid, allowed } = &differences;
    match (opposed.is_empty(), denied.is_empty(), values.is_empty()) {
        (true, true, true) if *unsaid || *allowed => None,
        (true, true, true) => naming::name(alignment),
        _ if is_apart(alignment, &differences) => None,
        (true, false, true) => denial(alignment, denied),
        _ if *unsaid => None,
        (false, true, true) => opposition(alignment, opposed),
        (true, true, false) => value(alignment, values),
        _ => None,
    }
}

/// Whether the claims are of different things, times or cases, so that both may be true.
fn is_apart(alignment: &Alignment<'_>, differences: &Differences<'_>) -> bool {
    is_apart_by_lists(alignment, differences) || kinds_differ(alignment)
}

/// The same, as far as words that are only near in meaning do not matter.
fn is_apart_by_lists(alignment: &Alignment<'_>, differences: &Differences<'_>) -> bool {
    let (a, b) = (alignment.a, alignment.b);
    let numbered = differences.values.iter().any(|(one, _)| one.measure == Measure::Label);
    // "before" and "after" may be the very thing in which they clash.
    let time_clashes = differences.opposed.iter().any(|(one, _)| one.marks.has(Marks::LIGHT));
    let other_times = a.when != b.when && a.when != 0 && b.when != 0 && !time_clashes;
    let other_case = a.is_conditional != b.is_conditional;
    let pointing = a.is_pointing && b.is_pointing;
    numbered || other_times || other_case || pointing || names_differ(alignment)
}

/// Whether each names something that the other does not.
fn names_differ(alignment: &Alignment<'_>) -> bool {
    let has_free = |words: &[Word], links: &[Link]| {
        words.iter().zip(links).any(|(word, link)| *link == Link::None && word.marks.has(Marks::NAME))
    };
    has_free(alignment.a.words, &alignment.from_a) && has_free(alignment.b.words, &alignment.from_b)
}

/// Whether a word of each that has no counterpart, or excludes the other, stands before the same word and says which
/// is meant: "north well" and "south well".
fn kinds_differ(alignment: &Alignment<'_>) -> bool {
    let (ours, theirs) = (alignment.a.words, alignment.b.words);
    (1..ours.len()).any(|at| {
        let Link::Same(same) = alignment.from_a[at] else { return false };
        let Some(before) = usize::from(same).checked_sub(1) else { return false };
        let (one, other) = (&ours[at - 1], &theirs[before]);
        if !one.is_before(&ours[at]) || !other.is_before(&theirs[before + 1]) {
            return false;
        }
        let tells_which = match (alignment.from_a[at - 1], alignment.from_b[before]) {
            (Link::None, Link::None) => true,
            (Link::Opposed(with), _) => {
                usize::from(with) == before && (one.marks.has(Marks::WHICH) || other.marks.has(Marks::WHICH))
            }
            _ => false,
        };
        tells_which && !one.marks.has(Marks::LIGHT) && !other.marks.has(Marks::LIGHT)
    })
}

/// Whether words of both that are only near in meaning begin what is measured: "the backend team" and "the frontend
/// team", "in staging" and "in production". Words that are near are as often of one kind as they are the same.
fn subjects_differ(alignment: &Alignment<'_>) -> bool {
    let tells = |word: &Word| word.marks.has(Marks::LED) && !word.marks.has(Marks::SAID);
    alignment.pairs().any(|(one, other, link)| matches!(link, Link::Near(..)) && tells(one) && tells(other))
}

/// One denies what the other says. What is denied must be said by the other; that may say more.
fn denial(alignment: &Alignment<'_>, denied: &[(&Word, &Word)]) -> Option<Found> {
    let a_denies = denied.first()?.0.is_negated();
    let denier = if a_denies { alignment.a } else { alignment.b };
    if denier.denies_aside {
        return None;
    }
    let cover = |of_a: bool, pass: fn(&Word) -> bool| {
        if of_a { alignment.cover_a(0.0, pass) } else { alignment.cover_b(0.0, pass) }.share()
    };
    let said = cover(a_denies, Word::is_negated);
    let rest = cover(a_denies, |word| !word.is_negated());
    let claimed = cover(!a_denies, |_| true);
    let enough = said >= chosen::DENIED && rest >= chosen::REST && claimed >= chosen::CLAIMED;
    let (a, b) = (alignment.a, alignment.b);
    let is_special = a.is_personal || b.is_personal || a.is_conditional || a.is_bare || b.is_bare;
    let enough_of_all = claimed >= chosen::SPECIAL && rest >= chosen::SPECIAL;
    // One word is no subject: "not right", "right". Two are, where there is not much else.
    let is_long = a.words.len().max(b.words.len()) >= chosen::LONG;
    let subject = if is_long && !enough_of_all { 3 } else { 2 };
    // "Returns whether it is not there": of what, and in which case, is not said.
    let unsaid = (a.is_bare || b.is_bare) && (a.is_conditional || b.is_conditional);
    if !enough || unsaid || (is_special && !enough_of_all) || shared_words(alignment) < subject {
        return None;
    }
    // What is said of the subject tells more than the subject.
    let (one, other) = denied.iter().find(|(one, _)| one.marks.has(Marks::SAID)).or(denied.first())?;
    let strength = said * 0.5 + rest * 0.2 + claimed * 0.3;
    Some(Found::new(strength, Grounds::Negation, one.span.range(), other.span.range()))
}

/// Words that exclude one another, said of the same thing.
fn opposition(alignment: &Alignment<'_>, opposed: &[(&Word, &Word)]) -> Option<Found> {
    // Some dog sleeps and some dog is awake.
    if alignment.a.is_indefinite && alignment.b.is_indefinite {
        return None;
    }
    let (one, other) = opposed.first()?;
    // "Reads a number." and "Writes a number." are two deeds of whoever is not named.
    if one.is_first() && other.is_first() {
        return None;
    }
    let shares = !alignment.pairs().all(|(.., link)| matches!(link, Link::Opposed(_)));
    let strength = of_one_thing(alignment, chosen::OPPOSED, chosen::OPPOSED).filter(|_| shares)?;
    let strength = strength * chosen::SURE_OF_OPPOSITES;
    Some(Found::new(strength, Grounds::Opposites, one.span.range(), other.span.range()))
}

/// One value of each that cannot both be true of the same thing.
fn value(alignment: &Alignment<'_>, values: &[(&Quantity, &Quantity)]) -> Option<Found> {
    let [(one, other)] = values else { return None };
    if subjects_differ(alignment) {
        return None;
    }
    let is_date = matches!(one.measure, Measure::Date | Measure::Clock);
    if is_date {
        // What happens again and again happens on many days.
        let once = alignment.pairs().any(|(word, ..)| word.marks.has(Marks::ONCE));
        if one.lead != other.lead || !(once || (one.is_said && other.is_said)) {
            return None;
        }
    }
    let said = one.is_said && other.is_said;
    // "The backup takes an hour" has but one word of its own, and nothing besides.
    let (a, b) = (alignment.cover_a(chosen::CLOSE, |_| true), alignment.cover_b(chosen::CLOSE, |_| true));
    let alone = a.unmet + b.unmet == 0.0 && alignment.pairs().count() >= 2;
    if shared_words(alignment) < if said || alone { 1 } else { 2 } {
        return None;
    }
    let same = alignment.a.is_same != alignment.b.is_same && shared_words(alignment) >= 2;
    let less = if same { chosen::POINTED_AT } else { chosen::MEASURED };
    let strength = of_one_thing(alignment, less, chosen::MEASURED_MORE)?;
    let grounds = if is_date { Grounds::Date } else { Grounds::Quantity };
    Some(Found::new(strength * chosen::SURE_OF_VALUES, grounds, one.span.clone(), other.span.clone()))
}

/// How many words that are no light ones the claims share, or have nearly.
pub(super) fn shared_words(alignment: &Alignment<'_>) -> usize {
    alignment.pairs().filter(|(word, ..)| !word.marks.has(Marks::LIGHT)).count()
}

/// How much two claims share, if that is enough for them to be about one thing: no word on both sides that would
/// set them apart, at least `less` of either in common, and at least `more` of one.
fn of_one_thing(alignment: &Alignment<'_>, less: f32, more: f32) -> Option<f32> {
    let all = |_: &Word| true;
    let (a, b) = (alignment.cover_a(chosen::CLOSE, all), alignment.cover_b(chosen::CLOSE, all));
    let apart = a.unmet > 0.0 && b.unmet > 0.0;
    let enough = Cover::share(a).min(b.share()) >= less && a.share().max(b.share()) >= more;
    (!apart && enough).then_some((a.share() + b.share()) / 2.0)
}

/// Whether [`judge`] may find anything once words near in meaning are linked, which is most of its work. Never wrong
/// when it says no: every part of the answer only lets through what that cannot change.
fn may_be_judged(alignment: &Alignment<'_>, pointing: &Pointing) -> bool {
    let Some(differences) = Differences::of(alignment) else { return false };
    let Differences { opposed, denied, values, unsaid, allowed } = &differences;
    let is_apart = is_apart_by_lists(alignment, &differences);
    if opposed.is_empty() && values.is_empty() {
        let may_deny =
            !is_apart && (reaches(alignment, pointing, true) || reaches(alignment, pointing, false));
        may_deny || (denied.is_empty() && !unsaid && !allowed && naming::may_name(alignment))
    } else {
        let one_kind = opposed.is_empty() != values.is_empty() && denied.is_empty();
        one_kind && !is_apart && !unsaid && values.len() < 2 && may_be_of_one_thing(alignment, pointing)
    }
}

/// Whether one of two claims may have no word that would set it apart from the other.
fn may_be_of_one_thing(alignment: &Alignment<'_>, pointing: &Pointing) -> bool {
    let is_met = |of: &Said<'_>, links: &[Link], free: &Free, others: &Free| {
        of.words.iter().zip(links).enumerate().all(|(at, (word, link))| {
            *link != Link::None || word.marks.has(Marks::LIGHT) || free.nearest(at, others) >= chosen::CLOSE
        })
    };
    is_met(&alignment.a, &alignment.from_a, &pointing.a, &pointing.b)
        || is_met(&alignment.b, &alignment.from_b, &pointing.b, &pointing.a)
}

/// Whether enough of what one claim denies, and of the rest of it, may have a counterpart in the other.
fn reaches(alignment: &Alignment<'_>, pointing: &Pointing, a_denies: bool) -> bool {
    let (said, links, free, others) = if a_denies {
        (&alignment.a, &alignment.from_a, &pointing.a, &pointing.b)
    } else {
        (&alignment.b, &alignment.from_b, &pointing.b, &pointing.a)
    };
    if !said.sight.is_negated() {
        return false;
    }
    // A little less than is asked: sums of floats are no sums.
    let may_miss = |negated: bool, least: f32| {
        let of = said.words.iter().filter(|word| word.is_negated() == negated);
        of.map(Word::weight).sum::<f32>() * (1.0 - least) + 1e-3
    };
    let (mut room, mut rest) = (may_miss(true, chosen::DENIED), may_miss(false, chosen::REST));
    for (at, (word, link)) in said.words.iter().zip(links).enumerate() {
        if *link == Link::None && free.nearest(at, others) <= NEAR {
            let room = if word.is_negated() { &mut room } else { &mut rest };
            *room -= word.weight();
            if *room < 0.0 {
                return false;
            }
        }
    }
    true
}

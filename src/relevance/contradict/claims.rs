//! What a text claims: its sentences as words that matter, what is negated in them, and their quantities.

use std::ops::Range;

use super::grammar::{Kind, Language, Lexicon, Place, Roles, Stem, lexicon};
use super::quantities::{Quantity, Reader};
use super::scan::{Scan, Sign, Token};
use super::units::{self, Measure};
use crate::relevance::embed::{DIMENSIONS, Embedder};

/// Bytes of a text that are read for what it claims. Units are a few sentences; what a longer text claims first is
/// what it is about.
const TEXT_MAX_BYTES: usize = 8 * 1024;
/// Most claims of a text that are kept, the first: each is held against each of another text.
pub(super) const CLAIMS_MAX: usize = 16;
/// Most words of a claim that are kept.
pub(super) const WORDS_MAX: usize = 40;
/// Words of a part of a sentence that claims something without the rest, at least.
const PART_LEAST: usize = 3;

/// A word's direction of meaning, by the signs of its values: enough to tell near from far.
pub(super) type Meaning = [u64; DIMENSIONS / 64];

/// What is known of a word where it stands: any of these together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    /// Its claim says that it is not so.
    pub const NEGATED: Self = Self(1);
    /// A name: a capital inside a sentence, or digits in it.
    pub const NAME: Self = Self(1 << 1);
    /// Says little of what the claim is about.
    pub const LIGHT: Self = Self(1 << 2);
    /// Stands behind "is" or its like: it is what is said of the subject.
    pub const SAID: Self = Self(1 << 3);
    /// See `single` in `grammar.txt`.
    pub const SINGLE: Self = Self(1 << 4);
    /// See `title` in `grammar.txt`.
    pub const TITLE: Self = Self(1 << 5);
    /// See `once` in `grammar.txt`.
    pub const ONCE: Self = Self(1 << 6);
    /// Has a direction of meaning.
    pub const MEANS: Self = Self(1 << 8);
    /// Stands right behind "is" or its like, or behind "called".
    pub const NAMED: Self = Self(1 << 9);
    /// Stands before "as": "Kafka as the broker".
    pub const AS: Self = Self(1 << 11);
    /// Belongs to the word right after it and says which: "the old dashboard".
    pub const WHICH: Self = Self(1 << 10);
    /// Begins a group of words: it stands first, or behind an article, a preposition or their like.
    pub const LED: Self = Self(1 << 12);
    /// See `chosen` in `grammar.txt`.
    pub const CHOSEN: Self = Self(1 << 13);

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn add(&mut self, other: Self, when: bool) {
        if when {
            self.0 |= other.0;
        }
    }

    fn drop(&mut self, other: Self, when: bool) {
        if when {
            self.0 &= !other.0;
        }
    }

    fn flip(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

/// A word that matters to a claim.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub stem: Stem,
    pub marks: Marks,
    /// Its places among its opposites.
    pub places: &'static [Place],
    pub meaning: Meaning,
    /// Where it stands in the text.
    pub span: Range<u32>,
    /// The number of its token in the claim.
    token: u16,
}

impl Word {
    /// How much the word counts in what two claims have in common.
    pub fn weight(&self) -> f32 {
        if self.marks.has(Marks::LIGHT) { 0.3 } else { 1.0 }
    }

    /// Whether its claim begins with it.
    pub fn is_first(&self) -> bool {
        self.token == 0
    }

    /// Whether there is one such thing: "owner", "default".
    pub fn is_title(&self) -> bool {
        self.marks.has(Marks::TITLE)
    }

    /// Whether the other word of the same claim stands right behind this one.
    pub fn is_before(&self, next: &Self) -> bool {
        self.token + 1 == next.token
    }

    pub fn is_negated(&self) -> bool {
        self.marks.has(Marks::NEGATED)
    }
}

/// One thing that a text says: a sentence, or the part of one up to "but".
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub words: Vec<Word>,
    pub quantities: Vec<Quantity>,
    /// One bit for each stem and group of opposites, for a first look at whether two claims share anything.
    pub bits: u64,
    /// Begins with some thing that is not known yet: "a dog", "a user".
    pub is_indefinite: bool,
    /// Speaks of whoever wrote it, or to whoever reads it.
    pub is_personal: bool,
    /// Speaks of "this" or "it": what that is stands elsewhere.
    pub is_pointing: bool,
    /// Tells what something does without saying what does it: "Returns the count."
    pub is_bare: bool,
    /// Holds only in a case that it names.
    pub is_conditional: bool,
    /// Says what is allowed, with "may": only what must be otherwise contradicts it.
    pub is_allowed: bool,
    /// Says what must be.
    pub is_required: bool,
    /// Its subject is "the same" thing as one that another text names.
    pub is_same: bool,
    /// Where it stands in the text, and the first word that negates in it.
    pub span: Range<u32>,
    pub negator: Option<Range<u32>>,
    /// When, as far as it is told by words like "before" and "last", one bit each.
    pub when: u64,
}

/// What a text claims, made once for each text and compared with others'.
///
/// Made of the first 8 KiB of a text and at most 16 sentences. Questions, wishes and possibilities are no
/// claims; what holds in some case only is compared with the like. About 2 KB for a unit of two sentences.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    pub(super) claims: Vec<Claim>,
    /// The text, folded, for the words of a verdict.
    pub(super) text: Box<str>,
}

impl Claims {
    /// What a text claims.
    pub fn of(text: &str) -> Self {
        let mut scan = Scan::of(&text[..text.floor_char_boundary(TEXT_MAX_BYTES)]);
        let lexicon = lexicon();
        let language = language(&scan, lexicon);
        let mut reading = Reading { scan: &scan, lexicon, language, embedder: Embedder::default() };
        let claims = reading.claims();
        Self { claims, text: std::mem::take(&mut scan.text).into_boxed_str() }
    }

    /// Estimate of the memory that they hold, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let of_claim = |claim: &Claim| {
            claim.words.capacity() * size_of::<Word>() + claim.quantities.capacity() * size_of::<Quantity>()
        };
        size_of::<Self>()
            + self.text.len()
            + self.claims.capacity() * size_of::<Claim>()
            + self.claims.iter().map(of_claim).sum::<usize>()
    }

    /// Whether the text claims nothing that could be contradicted.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }
}

/// The language whose grammar the text has most of.
fn language(scan: &Scan, lexicon: &Lexicon) -> Language {
    let mut votes = [0; Language::ALL.len()];
    for token in scan.tokens.iter().filter(|token| token.sign == Sign::Word) {
        let spoken = lexicon.spoken(scan.lower(token));
        votes.iter_mut().zip(spoken).for_each(|(votes, spoken)| *votes += u32::from(spoken));
    }
    let most = votes.iter().max().copied().unwrap_or(0);
    // The first of equals: English.
    Language::ALL
        .into_iter()
        .zip(votes)
        .find(|&(_, votes)| votes == most)
        .map_or(Language::English, |(l, _)| l)
}

/// How far a negation reaches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// To the end of its part of the sentence.
    Part,
    /// To the end of the group of words after it.
    Words,
}

struct Reading<'a> {
    scan: &'a Scan,
    lexicon: &'static Lexicon,
    language: Language,
    embedder: Embedder,
}

impl Reading<'_> {
    fn claims(&mut self) -> Vec<Claim> {
        let tokens = &self.scan.tokens;
        let mut claims = Vec::new();
        let mut start = 0;
        for at in 0..=tokens.len() {
            let token = tokens.get(at);
            let sign = token.map_or(Sign::End, |token| token.sign);
            let ends = matches!(sign, Sign::End | Sign::Question);
            let turns = at > start
                && token.is_some_and(|token| self.roles(token).any(Roles::HOWEVER) && sign == Sign::Word);
            if !ends && !turns {
                continue;
            }
            if sign != Sign::Question && claims.len() < CLAIMS_MAX {
                claims.extend(self.claim(&tokens[start..at]));
            }
            start = at + usize::from(ends);
        }
        claims
    }

    fn roles(&self, token: &Token) -> Roles {
        let roles = self.lexicon.roles(self.scan.lower(token), self.language);
        // "US" is no "us".
        let written = self.scan.written(token);
        let is_name = written.len() > 1 && written.bytes().all(|byte| byte.is_ascii_uppercase());
        if is_name && roles.any(Roles::FUNCTION) { Roles::default() } else { roles }
    }

    /// Words whose part in the sentence is told by what stands around them.
    fn settle(&self, tokens: &[Token], roles: &mut [Roles]) {
        for at in 1..tokens.len() {
            let (before, here) = (&tokens[at - 1], &tokens[at]);
            let written = self.scan.written(here);
            // "model A" has a name.
            let letter = here.capital && written.len() == 1 && written != "I" && before.sign == Sign::Word;
            if letter && roles[at].any(Roles::INDEFINITE.and(Roles::PREPOSITION)) {
                roles[at] = Roles::default();
            }
            // "no longer" denies and says nothing of length.
            if self.scan.lower(here) == "longer" && roles[at - 1].any(Roles::NEGATOR) {
                roles[at] = Roles::PARTICLE;
            }
        }
    }

    /// One claim; `None` if it is a condition or a possibility, or says nothing.
    fn claim(&mut self, tokens: &[Token]) -> Option<Claim> {
        let mut roles: Vec<Roles> = tokens
            .iter()
            .map(|token| if token.sign == Sign::Word { self.roles(token) } else { Roles::default() })
            .collect();
        self.settle(tokens, &mut roles);
        let unsure = Roles::HEDGE.and(Roles::QUOTED);
        // Code, a table, a list of figures.
        let in_words = tokens.iter().filter(|token| token.sign == Sign::Word).count();
        if in_words * 2 < tokens.len() {
            return None;
        }
        let reader = Reader { scan: self.scan, tokens, language: self.language, lexicon: self.lexicon };
        let quantities = reader.read();
        // "May" is a month and no hedge where it makes a date.
        let counted = |at: usize| quantities.iter().any(|quantity| quantity.tokens.contains(&at));
        let unsure = |at: &usize| roles[*at].any(unsure) && !counted(*at);
        let mut is_allowed = false;
        if let Some(at) = (0..roles.len()).find(unsure) {
            // "We open in spring, and prices may rise": the part before claims something all the same.
            if let Some(end) = self.part_before(tokens, at) {
                return self.claim(&tokens[..end]);
            }
            let allows = |at: usize| {
                self.language == Language::English && self.scan.lower(&tokens[at]) == "may" && at > 0
            };
            is_allowed = (0..roles.len()).filter(unsure).all(allows);
            if !is_allowed {
                return None;
            }
        }
        let mut words = self.words(tokens, &roles, &quantities);
        if words.is_empty() {
            return None;
        }
        let negator = self.negate(tokens, &roles, &mut words);
        let is_negative = words.iter().any(Word::is_negated);
        // "A or B" leaves open which; "no A or B" does not.
        let open = |at: usize| roles[at].any(Roles::OR) && !quantities.iter().any(|of| of.tokens.end == at);
        if !is_negative && (0..tokens.len()).any(open) {
            return None;
        }
        let first = usize::from(words[0].token);
        let before = first.checked_sub(1).map_or(Roles::default(), |at| roles[at]);
        let mut bits = 0;
        for word in &words {
            bits |= bit(word.stem);
            word.places.iter().for_each(|place| bits |= bit(place.axis_number()));
        }
        Some(Claim {
            bits,
            is_indefinite: before.any(Roles::INDEFINITE),
            is_personal: roles.iter().any(|roles| roles.any(Roles::PERSON)),
            is_pointing: self.is_pointing(tokens, &roles),
            is_bare: self.is_bare(tokens, &roles),
            is_allowed,
            is_required: tokens.iter().any(|token| self.scan.lower(token) == "must"),
            is_same: self.is_same(tokens),
            span: tokens[0].span.start..tokens[tokens.len() - 1].span.end,
            negator,
            is_conditional: roles.iter().any(|roles| roles.any(Roles::CONDITION)),
            when: self.when(tokens, &roles),
            words,
            quantities,
        })
    }

    /// Where the part of a sentence ends that stands before the one with this token, if that is a part of its own: it
    /// ends with a colon or semicolon, or the next one begins with "and".
    fn part_before(&self, tokens: &[Token], at: usize) -> Option<usize> {
        (PART_LEAST..at).rev().find(|&pause| {
            let begins = tokens.get(pause + 1).is_some_and(|next| {
                matches!(self.scan.lower(next), "and" | "but" | "und" | "aber" | "y" | "pero" | "et" | "mais")
            });
            tokens[pause].sign == Sign::Pause
                && (begins || matches!(self.scan.written(&tokens[pause]), ":" | ";"))
        })
    }

    /// Whether a claim begins with "the same".
    fn is_same(&self, tokens: &[Token]) -> bool {
        let word = |at: usize| tokens.get(at).map_or("", |token| self.scan.lower(token));
        word(0) == "the" && word(1) == "same"
    }

    /// Whether a claim's subject is a word that points to another sentence. "It is safe to" points nowhere.
    fn is_pointing(&self, tokens: &[Token], roles: &[Roles]) -> bool {
        let word = |at: usize| tokens.get(at).map_or("", |token| self.scan.lower(token));
        let first = word(0);
        // "..., but does not panic": who that is stands before.
        let turns = roles.first().is_some_and(|roles| roles.any(Roles::HOWEVER));
        let verb = roles.get(1).is_some_and(|roles| roles.any(Roles::COPULA.and(Roles::NEGATOR)));
        if turns && (verb || matches!(word(1), "does" | "do" | "did" | "will" | "can" | "has" | "have")) {
            return true;
        }
        let is_said = roles.get(1).is_some_and(|roles| roles.any(Roles::COPULA));
        matches!(first, "this" | "these" | "those" | "they" | "he" | "she" | "its" | "their" | "his" | "her")
            || (first == "it" && !is_said)
    }

    /// Whether a claim begins with what is done: a verb of descriptions, or any that looks like one before an article.
    fn is_bare(&self, tokens: &[Token], roles: &[Roles]) -> bool {
        let first = roles.first().copied().unwrap_or_default();
        let second = roles.get(1).copied().unwrap_or_default();
        let article = second.any(Roles::INDEFINITE)
            || tokens.get(1).is_some_and(|token| matches!(self.scan.lower(token), "the" | "this" | "that"));
        let looks = tokens.first().is_some_and(|token| {
            let word = self.scan.lower(token);
            self.language == Language::English && word.ends_with('s') && !word.ends_with("ss")
        });
        // "Users are" has a subject.
        let said = second.any(Roles::COPULA.and(Roles::NEGATOR));
        !said && (first.any(Roles::BARE) || (first.is_content() && looks && article))
    }

    /// When the claim holds, in words: those of time that lead something ("last week", "after the patch").
    fn when(&self, tokens: &[Token], roles: &[Roles]) -> u64 {
        let mut bits = 0;
        for (at, token) in tokens.iter().enumerate() {
            let this = matches!(
                self.scan.lower(token),
                "this" | "dieses" | "diesen" | "este" | "esta" | "ce" | "cette"
            );
            let of_time = tokens.get(at + 1).and_then(|next| units::unit(self.scan.lower(next)));
            if roles[at].any(Roles::WHEN)
                || this && of_time.is_some_and(|(measure, _)| measure == Measure::Duration)
            {
                bits |= bit(self.lexicon.stem(self.scan.lower(token), self.language));
            }
        }
        bits
    }

    /// The words that matter, quantities aside.
    fn words(&mut self, tokens: &[Token], roles: &[Roles], quantities: &[Quantity]) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::new();
        let mut said = false;
        let mut at = 0;
        while at < tokens.len() && words.len() < WORDS_MAX {
            let (token, role) = (&tokens[at], roles[at]);
            let text = self.scan.lower(token);
            let quantity = quantities.iter().find(|quantity| quantity.tokens.contains(&at));
            if let Some(quantity) = quantity {
                at = quantity.tokens.end;
                continue;
            }
            said |= role.any(Roles::COPULA);
            at += 1;
            if token.sign != Sign::Word || !text.starts_with(char::is_alphanumeric) {
                continue;
            }
            let mut stem = self.lexicon.stem(text, self.language);
            let mut places = self.lexicon.places(stem, self.language);
            let mut span = token.span.clone();
            if let Some(next) = tokens.get(at).filter(|next| next.sign == Sign::Word) {
                let phrase = Lexicon::phrase(stem, self.lexicon.stem(self.scan.lower(next), self.language));
                let known = self.lexicon.places(phrase, self.language);
                if !known.is_empty() {
                    (stem, places) = (phrase, known);
                    span.end = next.span.end;
                    at += 1;
                }
            }
            let opposed = places.iter().any(|place| place.kind == Kind::Opposite);
            let phrase = span.end > token.span.end;
            let ends = tokens.get(at).is_none_or(|next| next.sign == Sign::Pause);
            let state = ends && role.any(Roles::PREPOSITION) && !places.is_empty();
            if !(phrase || state || role.is_content() || (opposed && role.is_opposable())) {
                continue;
            }
            let number = at - 1 - usize::from(phrase);
            let light = !phrase && !state && (role.any(Roles::LIGHT) || !role.is_content());
            let mut marks = self.marks(tokens, roles, number..at);
            marks.add(Marks::LIGHT, light);
            marks.add(Marks::SAID, said);
            marks.drop(Marks::WHICH, said);
            let meaning = self.meaning(text);
            marks.add(Marks::MEANS, meaning.is_some());
            let meaning = meaning.unwrap_or_default();
            words.push(Word { stem, marks, places, meaning, span, token: number as u16 });
        }
        words
    }

    /// What the words around tell of the word, or phrase of two, that stands at these tokens.
    fn marks(&self, tokens: &[Token], roles: &[Roles], at: Range<usize>) -> Marks {
        let (token, role) = (&tokens[at.start], roles[at.start]);
        let before = at.start.checked_sub(1).map_or(Roles::default(), |before| roles[before]);
        let next = tokens.get(at.end).filter(|next| next.sign == Sign::Word);
        let inner = self.scan.written(token).chars().skip(1);
        let named = (token.capital && at.start > 0)
            || inner.into_iter().any(|c| c.is_uppercase() || c.is_ascii_digit() || matches!(c, '_' | '-'));
        let led = Roles::FUNCTION.and(Roles::INDEFINITE).and(Roles::PREPOSITION);
        let determined = at.start == 0 || before.any(led);
        let serves = matches!(next.map_or("", |next| self.scan.lower(next)), "as" | "als" | "como" | "comme");
        let mut marks = Marks::default();
        marks.add(Marks::NAME, named);
        marks.add(Marks::SINGLE, role.any(Roles::SINGLE));
        marks.add(Marks::TITLE, role.any(Roles::TITLE));
        marks.add(Marks::CHOSEN, role.any(Roles::CHOSEN));
        marks.add(Marks::LED, determined);
        marks.add(Marks::ONCE, role.any(Roles::ONCE));
        marks.add(Marks::AS, serves);
        marks.add(Marks::WHICH, determined && next.is_some() && roles[at.end].is_content());
        marks.add(Marks::NAMED, before.any(Roles::COPULA.and(Roles::SINGLE)));
        marks
    }

    /// The word's direction of meaning, if it has one.
    fn meaning(&mut self, word: &str) -> Option<Meaning> {
        let direction = self.embedder.embed([(word, 1.0)])?;
        let mut meaning = Meaning::default();
        for (at, value) in direction.iter().enumerate() {
            meaning[at / 64] |= u64::from(*value > 0.0) << (at % 64);
        }
        Some(meaning)
    }

    /// Marks what is negated, and tells where the first word is that does it. In English and German two negations undo each other; in Spanish and French they say
    /// the same once more.
    fn negate(&self, tokens: &[Token], roles: &[Roles], words: &mut [Word]) -> Option<Range<u32>> {
        let mut first = None;
        let concord = matches!(self.language, Language::Spanish | Language::French);
        for at in 0..tokens.len() {
            let Some(reach) = self.negation(tokens, roles, at) else { continue };
            first.get_or_insert_with(|| tokens[at].span.clone());
            let part_ends =
                |at: usize| tokens[at].sign == Sign::Pause || roles[at].any(Roles::AND.and(Roles::WHICH));
            let end = (at + 1..tokens.len()).find(|&at| part_ends(at)).unwrap_or(tokens.len());
            let start = (0..at).rev().find(|&at| part_ends(at)).unwrap_or(0);
            let within = |word: &Word, range: Range<usize>| range.contains(&usize::from(word.token));
            let mut range = at + 1..end;
            if !words.iter().any(|word| within(word, range.clone()) && !word.marks.has(Marks::LIGHT)) {
                // "unterstützt HTTP nicht": what is negated stands before.
                range = start..end;
            }
            let mut last = None;
            for word in words.iter_mut().filter(|word| within(word, range.clone())) {
                let token = usize::from(word.token);
                // A group of words ends where another part of the sentence begins.
                if reach == Reach::Words
                    && last.is_some_and(|last| (last + 1..=token).any(|at| !roles[at].is_content()))
                {
                    break;
                }
                last = Some(token);
                if concord {
                    word.marks.add(Marks::NEGATED, true);
                } else {
                    word.marks.flip(Marks::NEGATED);
                }
            }
        }
        first
    }

    /// How far the negation at a token reaches; `None` if there is none.
    fn negation(&self, tokens: &[Token], roles: &[Roles], at: usize) -> Option<Reach> {
        let word = |at: usize| {
            tokens.get(at).filter(|token| token.sign == Sign::Word).map_or("", |token| self.scan.lower(token))
        };
        let role = roles[at];
        let (here, next, third) = (word(at), word(at + 1), word(at + 2));
        if self.language == Language::English {
            let refusal = here.starts_with("fail")
                || here.starts_with("refus")
                || matches!(here, "unable" | "impossible");
            if refusal && next == "to" {
                return Some(Reach::Part);
            }
            let before = at.checked_sub(1).map_or("", word);
            // Said for effect, or of a number.
            let idle = matches!(
                (here, next),
                (
                    "not" | "no",
                    "only" | "just" | "doubt" | "wonder" | "problem" | "worries" | "matter" | "least"
                ) | ("cannot" | "cant", "wait" | "help")
            ) || (before, here) == ("time", "no")
                || matches!((next, third), ("more" | "fewer" | "less" | "later" | "earlier", "than"));
            if idle {
                return None;
            }
        }
        let before = at.checked_sub(1).map_or(Roles::default(), |at| roles[at]);
        match here {
            // "with no bikini": of the words after it only.
            "no" if before.any(Roles::PREPOSITION) => Some(Reach::Words),
            _ if role.any(Roles::LACKING) => Some(Reach::Words),
            // "returns None" is a name.
            _ if role.any(Roles::NOTHING) && at > 0 && tokens[at].capital => None,
            _ if role.any(Roles::NEGATOR.and(Roles::NOTHING)) => Some(Reach::Part),
            _ => None,
        }
    }
}

fn bit(number: u32) -> u64 {
    1 << (number.wrapping_mul(0x9e37_79b1) >> 26)
}

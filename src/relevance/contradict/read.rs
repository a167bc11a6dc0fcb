//! A text read for what it claims: its sentences as words that matter, what is negated in them, and their quantities.

use std::ops::Range;

use super::claims::{CLAIMS_MAX, Claim, Claims, Manner, Marks, Span, WORDS_MAX, Word};
use super::dictionary::look_up;
use super::grammar::{Kind, Language, Lexicon, Roles, lexicon};
use super::quantities::{Quantity, Reader};
use super::scan::{Scan, Sign, Token};
use super::sight::{Sight, bit};
use super::units::{self, Measure};

/// Words of a part of a sentence that claims something without the rest, at least.
const PART_LEAST: usize = 3;

/// What a text claims.
pub(super) fn claims(text: &str) -> Claims {
    let mut scan = Scan::of(text);
    let lexicon = lexicon();
    let language = language(&scan, lexicon);
    let own = look_up(&mut scan, lexicon, language);
    let mut reading = Reading {
        scan: &scan,
        lexicon,
        language,
        claims: Vec::new(),
        words: Vec::new(),
        quantities: Vec::new(),
    };
    reading.read();
    let Reading { claims, words, mut quantities, .. } = reading;
    for quantity in &mut quantities {
        quantity.span = scan.origin(&quantity.span);
    }
    Claims {
        sight: claims.iter().fold(Sight::default(), |all, claim| all.and(&claim.sight)),
        claims: claims.into(),
        words: words.into(),
        quantities: quantities.into(),
        own: own.into(),
    }
}

/// Appends what belongs to one claim; where it is.
fn keep<T>(kept: &mut Vec<T>, more: Vec<T>) -> Range<u16> {
    // 16 claims of 40 words each, or 8 quantities, are far from the end of u16.
    let start = kept.len() as u16;
    kept.extend(more);
    start..kept.len() as u16
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

/// Reads the claims of one text.
pub(super) struct Reading<'a> {
    pub scan: &'a Scan,
    lexicon: &'static Lexicon,
    pub language: Language,
    /// What was read so far.
    claims: Vec<Claim>,
    words: Vec<Word>,
    quantities: Vec<Quantity>,
}

impl Reading<'_> {
    fn read(&mut self) {
        let tokens = &self.scan.tokens;
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
            if sign != Sign::Question && self.claims.len() < CLAIMS_MAX {
                let claim = self.claim(&tokens[start..at]);
                self.claims.extend(claim);
            }
            start = at + usize::from(ends);
        }
    }

    fn roles(&self, token: &Token) -> Roles {
        let roles = token.known.roles;
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
        let reader = Reader { scan: self.scan, tokens, language: self.language };
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
        self.mark_unsaid(tokens, &roles, &mut words);
        let is_negative = words.iter().any(Word::is_negated);
        // "A or B" leaves open which; "no A or B" does not.
        let open = |at: usize| roles[at].any(Roles::OR) && !quantities.iter().any(|of| of.tokens.end == at);
        if !is_negative && (0..tokens.len()).any(open) {
            return None;
        }
        let first = usize::from(words[0].token);
        let before = first.checked_sub(1).map_or(Roles::default(), |at| roles[at]);
        let manner = Manner {
            is_indefinite: before.any(Roles::INDEFINITE),
            is_personal: roles.iter().any(|roles| roles.any(Roles::PERSON)),
            is_pointing: self.is_pointing(tokens, &roles),
            is_bare: self.is_bare(tokens, &roles),
            is_allowed,
            is_required: tokens.iter().any(|token| self.scan.lower(token) == "must"),
            is_same: self.is_same(tokens),
            denies_aside: is_negative && self.denies_aside(tokens, &roles),
            is_conditional: roles.iter().any(|roles| roles.any(Roles::CONDITION)),
        };
        let sight = Sight::of(&words, &quantities, manner.is_personal);
        let when = self.when(tokens, &roles);
        let span = tokens[0].span.start..tokens[tokens.len() - 1].span.end;
        let negator = negator.map(|span| self.origin(&span));
        Some(Claim {
            words: keep(&mut self.words, words),
            quantities: keep(&mut self.quantities, quantities),
            sight,
            manner,
            span: self.origin(&span),
            negator,
            when,
        })
    }

    /// A span of what was read, in the text as it is written.
    fn origin(&self, span: &Range<u32>) -> Span {
        Span::of(&self.scan.origin(span))
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
            let is_time = || {
                let unit = tokens.get(at + 1).and_then(|next| units::unit(self.scan.lower(next)));
                unit.is_some_and(|(measure, _)| measure == Measure::Duration)
            };
            if roles[at].any(Roles::WHEN) || this && is_time() {
                bits |= bit(token.known.stem);
            }
        }
        bits
    }

    /// The words that matter, quantities aside.
    fn words(&self, tokens: &[Token], roles: &[Roles], quantities: &[Quantity]) -> Vec<Word> {
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
            let (mut stem, mut places) = (token.known.stem, token.known.places);
            let mut span = token.span.clone();
            if let Some(next) = tokens.get(at).filter(|next| next.sign == Sign::Word) {
                let phrase = Lexicon::phrase(stem, next.known.stem);
                let known = self.lexicon.places(phrase, self.language);
                if !known.is_empty() {
                    (stem, places) = (phrase, known);
                    span.end = next.span.end;
                    at += 1;
                }
            }
            let opposed = places.list().iter().any(|place| place.kind == Kind::Opposite);
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
            let (direction, span) = (token.known.direction, self.origin(&span));
            words.push(Word { stem, direction, span, token: number as u16, marks, places });
        }
        words
    }

    /// Marks participles that only tell which thing is meant, because what is said of it comes later, and what begins a
    /// text that says nothing of it. In English: other languages put them elsewhere.
    fn mark_unsaid(&self, tokens: &[Token], roles: &[Roles], words: &mut [Word]) {
        if self.language != Language::English {
            return;
        }
        let says = |at: usize| roles[at].any(Roles::COPULA) || self.scan.written(&tokens[at]) == ":";
        let parts = |at: usize| roles[at].any(Roles::AND.and(Roles::WHICH)) || tokens[at].sign == Sign::Pause;
        let says_nothing = !(0..tokens.len()).any(says);
        for word in words.iter_mut().filter(|word| !word.marks.has(Marks::SAID)) {
            let at = usize::from(word.token);
            let text = self.scan.lower(&tokens[at]);
            let stands_before = roles.get(at + 1).is_some_and(|next| next.is_content())
                && tokens[at + 1].sign == Sign::Word
                && (at + 1..tokens.len()).find(|&at| says(at) || parts(at)).is_some_and(says);
            let is_kind = text.ends_with("ed") && stands_before;
            let is_topic = at == 0 && text.ends_with("ing") && says_nothing;
            word.marks.add(Marks::UNSAID, is_kind || is_topic);
        }
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
        marks.add(Marks::VERB, role.any(Roles::VERB));
        marks.add(Marks::LED, determined);
        marks.add(Marks::ONCE, role.any(Roles::ONCE));
        marks.add(Marks::AS, serves);
        marks.add(Marks::WHICH, determined && next.is_some() && roles[at.end].is_content());
        marks.add(Marks::NAMED, before.any(Roles::COPULA.and(Roles::SINGLE)));
        marks
    }
}

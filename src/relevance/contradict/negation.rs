//! What is negated in a claim, and how far a negation reaches.

use std::ops::Range;

use super::claims::{Marks, Word};
use super::grammar::{Language, Roles};
use super::read::Reading;
use super::scan::{Sign, Token};

/// How far a negation reaches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// To the end of its part of the sentence.
    Part,
    /// To the end of the group of words after it.
    Words,
}

impl Reading<'_> {
    /// Marks what is negated, and tells where the first word is that does it. In English and German two negations undo
    /// each other; in Spanish and French they say the same once more.
    pub(super) fn negate(&self, tokens: &[Token], roles: &[Roles], words: &mut [Word]) -> Option<Range<u32>> {
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
                // A group of words ends where another part of the sentence begins: "no use of the heap" goes on.
                let parts = |at: usize| !roles[at].is_content() && !self.is_of(&tokens[at]);
                if reach == Reach::Words && last.is_some_and(|last| (last + 1..=token).any(parts)) {
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

    fn is_of(&self, token: &Token) -> bool {
        matches!(self.scan.lower(token), "of" | "von" | "de" | "d")
    }

    /// Whether the first negation of a claim stands in a remark that tells which thing is meant: right behind "that" or
    /// "which", with no comma before.
    pub(super) fn denies_aside(&self, tokens: &[Token], roles: &[Roles]) -> bool {
        let Some(at) = (0..tokens.len()).find(|&at| self.negation(tokens, roles, at).is_some()) else {
            return false;
        };
        let word = |at: usize| self.scan.lower(&tokens[at]);
        let is_verb = |at: usize| {
            roles[at].any(Roles::COPULA)
                || matches!(
                    word(at),
                    "do" | "does" | "did" | "can" | "could" | "will" | "would" | "have" | "has"
                )
        };
        // "that don't", "which are not"
        let led = (0..at).rev().find(|&at| !is_verb(at)).filter(|led| at - led <= 2);
        led.is_some_and(|led| {
            let leads = matches!(word(led), "that" | "which" | "who" | "whose");
            let thing = led.checked_sub(1).filter(|&thing| tokens[thing].sign == Sign::Word);
            leads && thing.is_some_and(|thing| roles[thing].is_content())
        })
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

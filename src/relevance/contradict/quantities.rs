//! The quantities of a claim: counts, amounts, measures, dates, times of day, versions and numbered names, each as
//! what it means, however it is written.

use std::ops::Range;

use super::grammar::{Language, Roles, Stem};
use super::numbers::Number;
use super::scan::{Scan, Sign, Token};
use super::units::{self, Bound, Measure};

/// Words after a count that may say what is counted.
const LABEL_WORDS: usize = 3;

/// Most quantities of a claim that are looked at; a list of figures says no one thing that could be contradicted.
pub(super) const QUANTITIES_MAX: usize = 8;

/// A day, as far as it is told; 0 where it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub weekday: u8,
}

impl Date {
    /// Whether both can be the same day.
    fn agrees(self, other: Self) -> bool {
        let same = |a: u16, b: u16| a == 0 || b == 0 || a == b;
        same(self.year, other.year)
            && same(self.month.into(), other.month.into())
            && same(self.day.into(), other.day.into())
            && same(self.weekday.into(), other.weekday.into())
    }

    /// Whether both tell something of the same kind.
    fn is_comparable(self, other: Self) -> bool {
        self.year.min(other.year) > 0
            || self.month.min(other.month) > 0
            || self.weekday.min(other.weekday) > 0
    }
}

/// A quantity of a claim.
#[derive(Clone, Debug)]
pub(super) struct Quantity {
    pub measure: Measure,
    /// From, in base units; the same as `high` if it is one number.
    pub low: f64,
    pub high: f64,
    /// The worth of one in its last digit.
    step: f64,
    /// Base units in its unit.
    factor: f64,
    pub bound: Bound,
    pub date: Date,
    /// What is counted.
    label: [Stem; LABEL_WORDS],
    /// Where its tokens are in the claim.
    pub tokens: Range<usize>,
    /// Where it stands in the text.
    pub span: Range<u32>,
    /// The word before it, if that tells how a date is meant ("before", "until").
    pub lead: Stem,
    /// It is what is said of the subject: "is due on Friday", not "on Friday the queue was full".
    pub is_said: bool,
}

impl Quantity {
    /// Whether both measure the same thing, so that they can be held against each other.
    pub fn is_comparable(&self, other: &Self) -> bool {
        if self.measure != other.measure {
            return false;
        }
        match self.measure {
            Measure::Count | Measure::Label => {
                let (ours, theirs) = (self.label(), other.label());
                (ours.is_empty() && theirs.is_empty()) || ours.iter().any(|word| theirs.contains(word))
            }
            Measure::Date => self.date.is_comparable(other.date),
            _ => true,
        }
    }

    /// What is counted; empty if nothing follows the number.
    pub fn label(&self) -> &[Stem] {
        let end = self.label.iter().position(|&stem| stem == 0).unwrap_or(LABEL_WORDS);
        &self.label[..end]
    }

    /// Whether both can be true of one thing: the same, near enough for how exactly they are told, or a range and
    /// what is in it.
    pub fn agrees(&self, other: &Self) -> bool {
        if self.measure == Measure::Date {
            return self.date.agrees(other.date);
        }
        let slack = self.slack(other);
        let is_limit = matches!(self.bound, Bound::AtLeast | Bound::AtMost);
        if is_limit && self.bound == other.bound {
            return (self.low - other.low).abs() <= slack;
        }
        let ((low, high), (other_low, other_high)) = (self.reach(), other.reach());
        low <= other_high + slack && other_low <= high + slack
    }

    /// How far the two may lie apart and still be the same.
    fn slack(&self, other: &Self) -> f64 {
        let most = self.high.abs().max(other.high.abs());
        let mut slack = most * 1e-9;
        if self.bound == Bound::About || other.bound == Bound::About {
            slack = most * 0.1;
        }
        // A figure that is told with fewer digits is a rounded one.
        if self.step != other.step {
            slack = slack.max(self.step.max(other.step) * 0.499);
        }
        // A kilobyte is 1,000 or 1,024 bytes; a month is four weeks or 30 days.
        let units_differ = self.factor != other.factor;
        match self.measure {
            Measure::Data if units_differ => slack.max(most * 0.1),
            Measure::Duration if units_differ => slack.max(most * 0.08),
            Measure::Length | Measure::Mass | Measure::Speed | Measure::Volume if units_differ => {
                slack.max(most * 0.01)
            }
            _ => slack,
        }
    }

    fn reach(&self) -> (f64, f64) {
        match self.bound {
            Bound::AtLeast | Bound::Over => (self.low, f64::INFINITY),
            Bound::AtMost | Bound::Under => (f64::NEG_INFINITY, self.high),
            Bound::Exact | Bound::About => (self.low, self.high),
        }
    }
}

/// Reads the quantities of one claim.
pub(super) struct Reader<'a> {
    pub scan: &'a Scan,
    pub tokens: &'a [Token],
    pub language: Language,
}

impl Reader<'_> {
    /// The quantities, in order, at most [`QUANTITIES_MAX`].
    pub fn read(&self) -> Vec<Quantity> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() && found.len() < QUANTITIES_MAX {
            if !self.may_begin(at) {
                at += 1;
                continue;
            }
            match self.date(at).or_else(|| self.version(at)).or_else(|| self.measured(at)) {
                Some(quantity) => {
                    at = quantity.tokens.end.max(at + 1);
                    found.push(quantity);
                }
                None => at += 1,
            }
        }
        found
    }

    /// Whether a quantity may begin at a token.
    fn may_begin(&self, at: usize) -> bool {
        let token = &self.tokens[at];
        token.sign == Sign::Number || (token.sign == Sign::Word && token.known.begins_quantity)
    }

    pub(super) fn word(&self, at: usize) -> &str {
        self.tokens
            .get(at)
            .filter(|token| token.sign == Sign::Word)
            .map_or("", |token| self.scan.lower(token))
    }

    pub(super) fn before(&self, at: usize, back: usize) -> &str {
        at.checked_sub(back).map_or("", |at| self.word(at))
    }

    /// The digits of the number at a token; empty if it is none.
    pub(super) fn digits(&self, at: usize) -> &str {
        self.tokens
            .get(at)
            .filter(|token| token.sign == Sign::Number)
            .map_or("", |token| self.scan.lower(token))
    }

    /// What a token does in the sentence, if it is a word.
    pub(super) fn roles(&self, at: usize) -> Roles {
        self.tokens.get(at).map_or(Roles::default(), |token| token.known.roles)
    }

    /// The stem of a token, if it is a word.
    fn stem(&self, at: usize) -> Stem {
        self.tokens.get(at).map_or(0, |token| token.known.stem)
    }

    pub(super) fn is_content(&self, at: usize) -> bool {
        let word = self.word(at);
        word.starts_with(char::is_alphabetic) && self.roles(at).is_content()
    }

    pub(super) fn quantity(&self, measure: Measure, tokens: Range<usize>) -> Quantity {
        let span = self.tokens[tokens.start].span.start..self.tokens[tokens.end - 1].span.end;
        Quantity {
            measure,
            low: 0.0,
            high: 0.0,
            step: 1.0,
            factor: 1.0,
            bound: Bound::Exact,
            date: Date::default(),
            label: [0; LABEL_WORDS],
            lead: tokens.start.checked_sub(1).map_or(0, |before| self.stem(before)),
            is_said: self.is_said(tokens.start),
            tokens,
            span,
        }
    }

    /// Whether "is" or its like stands right before a token, small words aside.
    fn is_said(&self, at: usize) -> bool {
        // An end comes once, too.
        if matches!(self.before(at, 1), "until" | "till" | "bis" | "hasta" | "jusqu" | "jusque") {
            return true;
        }
        let small = Roles::PREPOSITION.and(Roles::FUNCTION).and(Roles::INDEFINITE);
        (0..at)
            .rev()
            .map(|at| self.roles(at))
            .find(|roles| roles.any(Roles::COPULA) || !roles.any(small))
            .is_some_and(|roles| roles.any(Roles::COPULA))
    }

    /// A number with its unit, or with what it counts.
    fn measured(&self, at: usize) -> Option<Quantity> {
        if let Some((percent, end)) = self.fraction(at) {
            let mut quantity = self.quantity(Measure::Percent, at..end);
            (quantity.low, quantity.high) = (percent, percent);
            return Some(quantity);
        }
        let money = at
            .checked_sub(1)
            .and_then(|at| units::unit(self.word(at)))
            .filter(|_| self.tokens[at].glued || matches!(self.before(at, 1), "usd" | "eur" | "gbp" | "chf"));
        let mut number = self.number(at, money.is_some())?;
        let (mut measure, mut factor) = (Measure::Count, 1.0);
        let unit = self.word(number.next);
        if let Some((money, worth)) = money {
            (measure, factor) = (money, worth);
        } else if matches!((unit, self.word(number.next + 1)), ("per" | "pour" | "por", "cent" | "ciento")) {
            (measure, number.next) = (Measure::Percent, number.next + 2);
        } else if let Some((of, worth)) = units::unit(unit).filter(|_| self.is_unit(number.next, &number)) {
            (measure, factor, number.next) = (of, worth, number.next + 1);
        }
        let mut quantity = self.quantity(measure, at..number.next);
        if measure == Measure::Count {
            self.label(&mut quantity, number.digits);
        }
        quantity.low = number.low * factor;
        quantity.high = number.high * factor;
        quantity.step = number.step * factor;
        quantity.factor = factor;
        // "$" stands between the number and the word that bounds it.
        let first = at - usize::from(money.is_some());
        quantity.bound = units::bound_before(self.before(first, 2), self.before(first, 1))
            .or_else(|| units::bound_after(self.word(number.next), self.word(number.next + 1)))
            .unwrap_or_default();
        if money.is_some() {
            quantity.tokens.start = first;
            quantity.span.start = self.tokens[first].span.start;
        }
        Some(quantity)
    }

    /// Whether the word after a number is its unit: some units are also other words ("go", "to", "a", "second").
    fn is_unit(&self, at: usize, number: &Number) -> bool {
        let word = self.word(at);
        match word {
            "go" | "mo" | "ko" | "to" | "an" | "ans" => {
                self.language == Language::French && word != "to" || self.tokens[at].glued
            }
            "us" | "b" => self.tokens[at].glued,
            "t" | "h" | "l" | "w" | "s" | "g" | "m" => number.digits,
            _ => true,
        }
    }

    /// What is counted: the words after the number; a number after a name with nothing behind it is part of that.
    fn label(&self, quantity: &mut Quantity, digits: bool) {
        let mut at = quantity.tokens.end;
        if matches!(self.word(at), "of" | "de" | "d") {
            at += 1;
        }
        let mut labels = quantity.label.iter_mut();
        while self.is_content(at)
            && let Some(label) = labels.next()
        {
            *label = self.stem(at);
            at += 1;
        }
        let start = quantity.tokens.start;
        if (quantity.label[0] == 0 || self.is_subject(start))
            && digits
            && start > 0
            && self.is_numbered(start - 1)
        {
            quantity.measure = Measure::Label;
            quantity.label = [0; LABEL_WORDS];
            quantity.label[0] = self.stem(start - 1);
        }
    }

    /// Whether a number at this place ends the subject of the claim: of "Pump 3 leaks" three leaks are not what is meant,
    /// of "Holds 3 users" three users are.
    fn is_subject(&self, at: usize) -> bool {
        const THE: [&str; 12] =
            ["the", "this", "that", "our", "der", "die", "das", "el", "la", "le", "les", "los"];
        match at {
            1 => !self.word(0).ends_with('s'),
            2 => THE.contains(&self.word(0)),
            _ => false,
        }
    }

    /// Whether the number behind a token is part of its name: "node 3", "WordPress 6", but not "returns 404".
    fn is_numbered(&self, at: usize) -> bool {
        let known = self.roles(at).any(Roles::NUMBERED);
        self.is_content(at) && (known || at < 2 || self.tokens[at].capital)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relevance::contradict::claims::Claims;

    /// The quantities of the text's first claim.
    fn read(text: &str) -> Vec<Quantity> {
        Claims::of(text).claim(0).map_or_else(Vec::new, |claim| claim.quantities.to_vec())
    }

    fn one(text: &str) -> Quantity {
        let found = read(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        found[0].clone()
    }

    #[test]
    fn the_same_written_otherwise_agrees() {
        for (a, b) in [
            ("It holds 1,000 items", "It holds 1k items"),
            ("It holds one thousand items", "It holds 1000 items"),
            ("It costs $2.5m today", "It costs 2,500,000 dollars today"),
            ("The wire has 5 km", "The wire has 5,000 m"),
            ("The film takes 90 minutes", "The film takes 1.5 hours"),
            ("It opens at 3 pm", "It opens at 15:00"),
            ("It opens on 3 March 2026", "It opens on 2026-03-03"),
            ("It opens on March 3rd, 2026", "It opens on 3.3.2026"),
            ("Half of the users agree", "50% agree"),
            ("Der Preis war 1.500 Euro", "Der Preis war 1500 Euro"),
            ("Der Wert ist 3,5 %", "Der Wert ist 3.5 %"),
        ] {
            let (a, b) = (one(a), one(b));
            assert!(a.is_comparable(&b) && a.agrees(&b) && b.agrees(&a), "{a:?} {b:?}");
        }
    }

    #[test]
    fn what_differs_does_not_agree() {
        for (a, b) in [
            ("It holds 1,000 items", "It holds 1,100 items"),
            ("The wire has 5 km", "The wire has 5 m"),
            ("The tool needs Python 3.8", "The tool needs Python 3.11"),
            ("It opens at 3 pm", "It opens at 3 am"),
            ("It opens on 3 March", "It opens on 3 May"),
            ("It takes 2 to 3 days", "It takes 4 days"),
            ("It holds at most 20 items", "It holds at most 50 items"),
        ] {
            let (a, b) = (one(a), one(b));
            assert!(a.is_comparable(&b) && !a.agrees(&b) && !b.agrees(&a), "{a:?} {b:?}");
        }
    }

    #[test]
    fn what_measures_something_else_is_not_compared() {
        for (a, b) in [
            ("The table has 12 columns", "The table has 12 rows"),
            ("It weighs 5 kg", "It is 5 km long"),
            ("It costs 5 dollars", "It costs 5 euros"),
            ("Node 3 is up", "The list has 3 names"),
        ] {
            assert!(!one(a).is_comparable(&one(b)), "{a} {b}");
        }
    }

    #[test]
    fn ranges_and_bounds_contain() {
        for (a, b) in [
            ("It takes 10 to 20 days", "It takes 14 days"),
            ("It takes between 10 and 20 days", "It takes 20 days"),
            ("It has more than 100 users", "It has 135 users"),
            ("About 1,000 users came", "1,012 users came"),
            ("It grows by 3%", "It grows by 3.2%"),
        ] {
            assert!(one(a).agrees(&one(b)), "{a} {b}");
        }
    }

    #[test]
    fn words_that_look_like_numbers_are_none() {
        for text in ["No one of them came", "We may march on", "The one thing is clear", "They go to school"]
        {
            assert_eq!(read(text).len(), 0, "{text}");
        }
    }
}

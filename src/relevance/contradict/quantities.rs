//! The quantities of a claim: counts, amounts, measures, dates, times of day, versions and numbered names, each as
//! what it means, however it is written.

use std::ops::Range;

use super::grammar::{Language, Lexicon, Roles, Stem};
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
    low: f64,
    high: f64,
    /// The worth of one in its last digit.
    step: f64,
    /// Base units in its unit.
    factor: f64,
    bound: Bound,
    date: Date,
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
    pub lexicon: &'a Lexicon,
}

/// A number as read: its ends, the worth of its last digit, and the token after it.
struct Number {
    low: f64,
    high: f64,
    step: f64,
    next: usize,
    /// Written with digits.
    digits: bool,
}

impl Reader<'_> {
    /// The quantities, in order, at most [`QUANTITIES_MAX`].
    pub fn read(&self) -> Vec<Quantity> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() && found.len() < QUANTITIES_MAX {
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

    fn word(&self, at: usize) -> &str {
        self.tokens
            .get(at)
            .filter(|token| token.sign == Sign::Word)
            .map_or("", |token| self.scan.lower(token))
    }

    fn before(&self, at: usize, back: usize) -> &str {
        at.checked_sub(back).map_or("", |at| self.word(at))
    }

    /// The digits of the number at a token; empty if it is none.
    fn digits(&self, at: usize) -> &str {
        self.tokens
            .get(at)
            .filter(|token| token.sign == Sign::Number)
            .map_or("", |token| self.scan.lower(token))
    }

    fn roles(&self, word: &str) -> Roles {
        self.lexicon.roles(word, self.language)
    }

    fn is_content(&self, at: usize) -> bool {
        let word = self.word(at);
        word.starts_with(char::is_alphabetic) && self.roles(word).is_content()
    }

    fn quantity(&self, measure: Measure, tokens: Range<usize>) -> Quantity {
        let lead = self.before(tokens.start, 1);
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
            lead: self.lexicon.stem(lead, self.language),
            is_said: self.is_said(tokens.start),
            tokens,
            span,
        }
    }

    /// Whether "is" or its like stands right before a token, small words aside.
    fn is_said(&self, at: usize) -> bool {
        let small = Roles::PREPOSITION.and(Roles::FUNCTION).and(Roles::INDEFINITE);
        (0..at)
            .rev()
            .map(|at| self.roles(self.word(at)))
            .find(|roles| roles.any(Roles::COPULA) || !roles.any(small))
            .is_some_and(|roles| roles.any(Roles::COPULA))
    }

    /// A date or a time of day that starts at a token.
    fn date(&self, at: usize) -> Option<Quantity> {
        if let Some((minutes, end)) = self.clock(at) {
            let mut quantity = self.quantity(Measure::Clock, at..end);
            (quantity.low, quantity.high) = (minutes, minutes);
            return Some(quantity);
        }
        let (date, end) = self
            .numeric_date(at)
            .or_else(|| self.named_date(at))
            .or_else(|| self.weekday(at))
            .or_else(|| self.bare_year(at))?;
        let mut quantity = self.quantity(Measure::Date, at..end);
        quantity.date = date;
        Some(quantity)
    }

    fn clock(&self, at: usize) -> Option<(f64, usize)> {
        let digits = self.digits(at);
        let (hour, minute) = match digits.split_once([':', '.']) {
            Some((hour, minute)) if minute.len() == 2 => (hour, minute),
            Some(_) => return None,
            None => (digits, "0"),
        };
        let (mut hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
        let after = self.word(at + 1);
        let named = matches!(after, "am" | "pm" | "a.m" | "p.m" | "uhr" | "o" | "oclock")
            && (after != "o" || self.word(at + 2) == "clock");
        if hour > 24 || minute > 59 || !(named || digits.contains(':')) {
            return None;
        }
        match after {
            "pm" | "p.m" if hour < 12 => hour += 12,
            "am" | "a.m" if hour == 12 => hour = 0,
            _ => {}
        }
        Some((f64::from(hour * 60 + minute), at + 1 + usize::from(named)))
    }

    /// `2026-03-01`, `1.3.2026`, `3/1/2026`.
    fn numeric_date(&self, at: usize) -> Option<(Date, usize)> {
        let digits = self.digits(at);
        let joint = digits.find(['-', '/', '.']).map(|at| &digits[at..=at])?;
        let parts: Vec<u16> = digits.split(joint).map(|part| part.parse().unwrap_or(0)).collect();
        let (year, month, day) = match parts[..] {
            [year, month] if joint == "-" => (year, month, 0),
            [year, month, day] if year > 1000 => (year, month, day),
            [month, day, year] if joint == "/" && month <= 12 && self.language == Language::English => {
                (year, month, day)
            }
            [day, month, year] => (year, month, day),
            _ => return None,
        };
        let day_of_month = if parts.len() == 2 { 0..=0 } else { 1..=31 };
        if !is_year(year) || !(1..=12).contains(&month) || !day_of_month.contains(&day) {
            return None;
        }
        Some((Date { year, month: month as u8, day: day as u8, weekday: 0 }, at + 1))
    }

    /// `12 March 2026`, `March 12th, 2026`, `12. März`, `12 de marzo de 2026`, `March 2026`, `in May`.
    fn named_date(&self, at: usize) -> Option<(Date, usize)> {
        let day_at = |at: usize| {
            let day = self.digits(at).parse().ok().filter(|day| (1..=31).contains(day))?;
            let suffixed = matches!(self.word(at + 1), "st" | "nd" | "rd" | "th" | "er");
            Some((day, at + 1 + usize::from(suffixed)))
        };
        let year_at = |mut at: usize| {
            let joined = matches!(self.word(at), "of" | "de" | "del")
                || self.tokens.get(at).is_some_and(|t| t.sign == Sign::Pause);
            at += usize::from(joined);
            let year = self.digits(at).parse().ok().filter(|&year| is_year(year))?;
            Some((year, at + 1))
        };
        let mut date = Date::default();
        let mut next = at;
        if let Some((day, after)) = day_at(at) {
            let after = after + usize::from(matches!(self.word(after), "of" | "de"));
            (date.day, next) = (day, after);
        }
        date.month = units::month(self.word(next))?;
        let capital = self.tokens[next].capital;
        // "may", "march" and "mar" are other words too: a month has a capital or a day beside it.
        let in_lower =
            matches!(self.language, Language::Spanish | Language::French) && self.word(next).len() > 3;
        let starts = next == 0 && matches!(self.word(next), "may" | "march" | "mar" | "jan");
        let alone = date.day == 0 && day_at(next + 1).is_none() && year_at(next + 1).is_none();
        if !(capital || in_lower || date.day > 0) || (alone && starts) {
            return None;
        }
        next += 1;
        if date.day == 0
            && let Some((day, after)) = day_at(next)
        {
            (date.day, next) = (day, after);
        }
        if let Some((year, after)) = year_at(next) {
            (date.year, next) = (year, after);
        }
        Some((date, next))
    }

    fn weekday(&self, at: usize) -> Option<(Date, usize)> {
        let weekday = units::weekday(self.word(at))?;
        Some((Date { weekday, ..Date::default() }, at + 1))
    }

    /// A year alone: four digits where no number of things is told.
    fn bare_year(&self, at: usize) -> Option<(Date, usize)> {
        let digits = self.digits(at);
        let year = digits.parse().ok().filter(|&year| digits.len() == 4 && is_year(year))?;
        let before = self.before(at, 1);
        let led =
            self.roles(before).any(Roles::PREPOSITION) || matches!(before, "year" | "jahr" | "ano" | "annee");
        let unit = units::unit(self.word(at + 1)).is_some() || units::unit(before).is_some();
        let counts = self.is_content(at + 1) && !led;
        (!unit && !counts && (led || at == 0)).then_some((Date { year, ..Date::default() }, at + 1))
    }

    /// `2.4.1`, `v2`, `Python 3.8`, `version 2`.
    fn version(&self, at: usize) -> Option<Quantity> {
        let word = self.word(at);
        let digits = self.digits(at);
        let before = self.before(at, 1);
        let dots = digits.matches('.').count();
        let parts = if !word.is_empty() {
            word.strip_prefix('v').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?
        } else {
            let named = matches!(before, "version" | "v" | "release");
            let capital = at > 0 && self.tokens[at - 1].capital && !before.is_empty();
            let thousands = digits.split('.').skip(1).all(|part| part.len() == 3);
            let several = dots >= 2 && !thousands;
            let measured =
                units::unit(self.word(at + 1)).is_some() || units::multiplier(self.word(at + 1)).is_some();
            let after_name = dots == 1 && capital && at > 1 && !measured && !self.is_content(at + 1);
            if !(several || (dots >= 1 && named) || (after_name && self.roles(before).is_content())) {
                return None;
            }
            digits
        };
        let mut value = 0.0;
        let mut worth = 1e6;
        for part in parts.split('.').take(4) {
            value += part.parse::<f64>().ok()? * worth;
            worth /= 1e3;
        }
        let mut quantity = self.quantity(Measure::Version, at..at + 1);
        (quantity.low, quantity.high) = (value, value);
        quantity.bound = units::bound_after(self.word(at + 1), self.word(at + 2)).unwrap_or_default();
        Some(quantity)
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
            *label = self.lexicon.stem(self.word(at), self.language);
            at += 1;
        }
        let start = quantity.tokens.start;
        if quantity.label[0] == 0 && digits && start > 0 && self.is_numbered(start - 1) {
            quantity.measure = Measure::Label;
            quantity.label[0] = self.lexicon.stem(self.word(start - 1), self.language);
        }
    }

    /// Whether the number behind a token is part of its name: "node 3", "WordPress 6", but not "returns 404".
    fn is_numbered(&self, at: usize) -> bool {
        let known = self.roles(self.word(at)).any(Roles::NUMBERED);
        self.is_content(at) && (known || at < 2 || self.tokens[at].capital)
    }

    /// `half`, `a quarter of`, `two thirds of`, in percent.
    fn fraction(&self, at: usize) -> Option<(f64, usize)> {
        let of = |at: usize| matches!(self.word(at), "of" | "the" | "der" | "de" | "des" | "all");
        if matches!(self.word(at), "half") && of(at + 1) {
            return Some((50.0, at + 1));
        }
        let parts = match self.word(at) {
            "a" | "one" => 1.0_f64,
            "two" => 2.0,
            "three" => 3.0,
            _ => return None,
        };
        let whole = match self.word(at + 1) {
            "half" => 2.0,
            "third" | "thirds" => 3.0,
            "quarter" | "quarters" => 4.0,
            "fifth" | "fifths" => 5.0,
            _ => return None,
        };
        (of(at + 2) && parts < whole).then(|| ((100.0 * parts / whole * 10.0).round() / 10.0, at + 2))
    }

    /// A number in digits or words, or two that are the ends of a range.
    fn number(&self, at: usize, money: bool) -> Option<Number> {
        let mut first = self.single(at, money)?;
        let to = self.word(first.next);
        let between = matches!(self.before(at, 1), "between" | "zwischen" | "entre");
        let joins = matches!(to, "to" | "bis" | "a" | "-") || (between && self.roles(to).any(Roles::AND));
        if joins
            && let Some(second) = self.single(first.next + 1, money)
            && first.low < second.high
        {
            // "2 to 3 million": the word after the second holds for both.
            let scale = if second.high >= 1e3 && first.high < 1e3 && second.step > first.step {
                second.step / first.step
            } else {
                1.0
            };
            first.low *= scale;
            (first.high, first.next) = (second.high, second.next);
        }
        Some(first)
    }

    fn single(&self, at: usize, money: bool) -> Option<Number> {
        if self.digits(at).is_empty() {
            return self.spelt(at);
        }
        let (low, high, step) = value(self.digits(at), self.language)?;
        let mut number = Number { low, high, step, next: at + 1, digits: true };
        let word = self.word(number.next);
        // "5 m" are metres, "$5m" are millions.
        let times = units::multiplier(word).or((money && word == "m").then_some(1e6));
        if let Some(times) = times.filter(|_| word.len() > 1 || self.tokens[number.next].glued || money) {
            number = Number {
                low: low * times,
                high: high * times,
                step: step * times,
                next: number.next + 1,
                digits: true,
            };
        }
        Some(number)
    }

    /// A number in words.
    fn spelt(&self, at: usize) -> Option<Number> {
        let (mut total, mut current, mut next) = (0.0, 0.0_f64, at);
        // "a dozen", "a hundred"
        if self.roles(self.word(at)).any(Roles::INDEFINITE)
            && units::numeral(self.word(at + 1), self.language).is_some_and(|value| value > 11.0)
        {
            next += 1;
        }
        if self.is_pronoun(at) {
            return None;
        }
        let first = next;
        loop {
            let word = self.word(next);
            if next > first
                && let Some(times) = units::multiplier(word)
            {
                total += current.max(1.0) * times;
                current = 0.0;
            } else if let Some(value) = units::numeral(word, self.language) {
                if value == 100.0 || value == 1e3 {
                    current = current.max(1.0) * value;
                } else if value == 12.0 && next > first {
                    current *= value;
                } else {
                    current += value;
                }
            } else {
                break;
            }
            next += 1;
        }
        let value = total + current;
        (next > first).then_some(Number { low: value, high: value, step: 1.0, next, digits: false })
    }

    /// "one" and its like where they are no number: "the one", "one of", "no one".
    fn is_pronoun(&self, at: usize) -> bool {
        if !matches!(self.word(at), "one" | "uno" | "eins") {
            return false;
        }
        let after = self.word(at + 1);
        let multiplied = units::multiplier(after).is_some() || after == "hundred";
        let counts = self.is_content(at + 1)
            && !matches!(
                self.before(at, 1),
                "the" | "no" | "this" | "that" | "any" | "every" | "each" | "another"
            );
        !(multiplied || counts)
    }
}

fn is_year(year: u16) -> bool {
    (1900..=2100).contains(&year)
}

/// The ends of a number or range in digits, and the worth of its last digit.
fn value(digits: &str, language: Language) -> Option<(f64, f64, f64)> {
    let unsigned = digits.trim_start_matches(['-', '\u{2212}']);
    if let Some((low, high)) = unsigned.split_once(['-', '–', '/'])
        && let (Some((low, step)), Some((high, _))) = (decimal(low, language), decimal(high, language))
    {
        return Some((low.min(high), low.max(high), step));
    }
    let (value, step) = decimal(unsigned, language)?;
    let value = if unsigned.len() < digits.len() { -value } else { value };
    Some((value, value, step))
}

/// A number with its separators read as the language has them, and the worth of its last digit.
fn decimal(digits: &str, language: Language) -> Option<(f64, f64)> {
    let (group, point) = match language {
        Language::English => (',', '.'),
        _ => ('.', ','),
    };
    let groups = |mark: char| digits.split(mark).skip(1).all(|part| part.len() == 3);
    // One kind of mark only: it is the point if it stands once and does not part groups of three.
    let (group, point) = if digits.contains(group) && !digits.contains(point) && !groups(group) {
        (point, group)
    } else if digits.rfind(group) > digits.rfind(point) && digits.contains(point) {
        (point, group)
    } else {
        (group, point)
    };
    let plain: String = digits
        .chars()
        .filter(|&c| c != group && c != ' ')
        .map(|c| if c == point { '.' } else { c })
        .collect();
    let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len().min(12));
    let value: f64 = plain.parse().ok().filter(|value: &f64| value.is_finite())?;
    Some((value, 0.1_f64.powi(decimals as i32)))
}

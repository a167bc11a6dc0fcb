//! Numbers as written: in digits, in words, as fractions and as ranges.

use super::grammar::{Language, Roles};
use super::quantities::Reader;
use super::units;

/// A number as read: its ends, the worth of its last digit, and the token after it.
pub(super) struct Number {
    pub low: f64,
    pub high: f64,
    pub step: f64,
    pub next: usize,
    /// Written with digits.
    pub digits: bool,
}

impl Reader<'_> {
    /// `half`, `a quarter of`, `two thirds of`, in percent.
    pub(super) fn fraction(&self, at: usize) -> Option<(f64, usize)> {
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
    pub(super) fn number(&self, at: usize, money: bool) -> Option<Number> {
        let mut first = self.single(at, money)?;
        let to = self.word(first.next);
        let between = matches!(self.before(at, 1), "between" | "zwischen" | "entre");
        let joins =
            matches!(to, "to" | "bis" | "a" | "-") || (between && self.roles(first.next).any(Roles::AND));
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
        if self.roles(at).any(Roles::INDEFINITE)
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
    // One kind of mark only is the point if it does not part groups of three; of two kinds, the last is.
    let is_point = !digits.contains(point) && !groups(group);
    let stands_last = digits.contains(point) && digits.rfind(group) > digits.rfind(point);
    let turned = digits.contains(group) && (is_point || stands_last);
    let (group, point) = if turned { (point, group) } else { (group, point) };
    let plain: String = digits
        .chars()
        .filter(|&c| c != group && c != ' ')
        .map(|c| if c == point { '.' } else { c })
        .collect();
    let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len().min(12));
    let value: f64 = plain.parse().ok().filter(|value: &f64| value.is_finite())?;
    Some((value, 0.1_f64.powi(decimals as i32)))
}

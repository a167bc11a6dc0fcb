//! Dates, times of day and versions among the quantities of a claim.

use super::grammar::{Language, Roles};
use super::quantities::{Date, Quantity, Reader};
use super::scan::Sign;
use super::units::{self, Measure};

impl Reader<'_> {
    /// A date or a time of day that starts at a token.
    pub(super) fn date(&self, at: usize) -> Option<Quantity> {
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
        let led = at.checked_sub(1).is_some_and(|at| self.roles(at).any(Roles::PREPOSITION))
            || matches!(before, "year" | "jahr" | "ano" | "annee");
        let unit = units::unit(self.word(at + 1)).is_some() || units::unit(before).is_some();
        let counts = self.is_content(at + 1) && !led;
        (!unit && !counts && (led || at == 0)).then_some((Date { year, ..Date::default() }, at + 1))
    }

    /// `2.4.1`, `v2`, `Python 3.8`, `version 2`.
    pub(super) fn version(&self, at: usize) -> Option<Quantity> {
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
            if !(several
                || (dots >= 1 && named)
                || (after_name && at.checked_sub(1).is_some_and(|at| self.roles(at).is_content())))
            {
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
}

fn is_year(year: u16) -> bool {
    (1900..=2100).contains(&year)
}

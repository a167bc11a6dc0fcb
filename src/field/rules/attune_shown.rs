//! ATTUNE's answer: the chosen units as they are shown, within their budget of tokens (section 7).

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::super::kept::Wanting;
use super::super::state::{Slot, World};
use super::attune::Selection;
use crate::limits::{ATTUNE_CONFLICTS_MAX, BUDGET_MISFITS_MAX, REPLY_MAX_BYTES};
use crate::protocol::{
    AttuneRequest, Conflict, ContextBudget, Format, MemoryType, ShownUnit, UnitId, UnitStatus, Warning,
};
use crate::relevance::{Budget, Factors, Ranked, Summarizer, Tokens};

/// Longest content in `summary` format, characters (section 7).
const SUMMARY_CHARS: usize = 280;

/// Full text has one part in so many of a budget in which not all fits in full. On conversations, with 1,000 tokens:
/// all of it keeps .73 of the evidence that is asked for, half .79, a quarter .80.
const FULL_SHARE: u64 = 4;

/// ATTUNE's response, borrowing from the world.
#[derive(Serialize)]
pub struct Answer<'a> {
    status: &'static str,
    record: Vec<Scoped<'a>>,
    conflicts: Vec<&'a Conflict>,
    context_budget: ContextBudget,
    epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<Warning>,
}

impl Answer<'_> {
    /// The ids of the units that it shows, best first.
    pub fn ids(&self) -> Vec<UnitId> {
        self.record.iter().map(|scoped| scoped.id).collect()
    }
}

#[derive(Serialize)]
struct Scoped<'a> {
    #[serde(skip)]
    id: UnitId,
    memory_unit: Shown<'a>,
    /// As ranked, not rounded: a shown tie must be a tie, or the newer unit would not come first in it.
    relevance_score: f32,
    relevance_reason: String,
    format: &'static str,
    /// Extension: where it was asked to explain.
    #[serde(skip_serializing_if = "Option::is_none")]
    factors: Option<Explained>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Shown<'a> {
    Unit(ShownUnit<'a>),
    Id {
        id: UnitId,
    },
    /// Either of them, as it was counted.
    Written(Box<RawValue>),
}

/// A summary within a budget: what a unit says, why, by whom, how sure, and where to ask for the rest.
#[derive(Serialize)]
struct Compact<'a> {
    id: UnitId,
    #[serde(rename = "type")]
    kind: MemoryType,
    content: &'a str,
    intent: Why<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<Score>,
    source: Author<'a>,
    status: UnitStatus,
    epoch: u64,
}

#[derive(Serialize)]
struct Why<'a> {
    purpose: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'a str>,
}

#[derive(Serialize)]
struct Score {
    score: f64,
}

#[derive(Serialize)]
struct Author<'a> {
    agent_id: &'a str,
    agent_role: &'a str,
}

impl<'a> Compact<'a> {
    fn of(unit: &'a ShownUnit<'a>) -> Self {
        let ShownUnit { id, kind, intent, source, status, epoch, .. } = *unit;
        let score = unit.confidence.and_then(|confidence| confidence.score);
        Self {
            id,
            kind,
            content: &unit.content,
            intent: Why {
                purpose: &intent.purpose,
                task_id: intent.task_id.as_deref(),
                question: intent.question.as_deref(),
            },
            confidence: score.map(|score| Score { score }),
            source: Author { agent_id: &source.agent_id, agent_role: &source.agent_role },
            status,
            epoch,
        }
    }
}

/// The table of factors behind a score: each one's value and what it adds.
struct Explained(Factors);

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Part {
            value: f32,
            contribution: f32,
        }
        let factors = self.0.all();
        let mut map = serializer.serialize_map(Some(factors.len()))?;
        for (name, factor) in factors {
            map.serialize_entry(name, &Part { value: factor.value, contribution: factor.contribution })?;
        }
        map.end()
    }
}

/// A selection whose units' texts are not all there, and which are missing.
pub struct Unshown {
    /// What was to be shown.
    pub selection: Selection,
    /// Of these the texts are in the log alone.
    pub wanting: Wanting,
}

/// The response that shows a selection. Where the scope has a budget, `tokens` counts what is spent.
///
/// # Errors
/// The selection itself, where texts are missing that it is to show.
pub fn show<'a>(
    world: &'a World,
    tokens: &Tokens,
    epoch: u64,
    request: &'a AttuneRequest,
    selection: Selection,
) -> Result<Answer<'a>, Box<Unshown>> {
    if request.format != Format::IdsOnly
        && let Err(wanting) = Wanting::check(world, selection.chosen.iter().map(|(no, _)| *no))
    {
        return Err(Box::new(Unshown { selection, wanting }));
    }
    let Selection { chosen, available, unembedded } = selection;
    let warning = unembedded.map(|why| {
        super::enrichment_failed(
            format!("What you need could not be embedded, so that only words counted: {why}."),
            "Ask again later, or name in context_hint the words that the units would use.",
        )
    });
    let mut writer = Writer { request, summarizer: None };
    let slots = chosen.into_iter().map(|(no, ranked)| (world.slot(no), ranked));
    let mut budget = request.scope.extended.max_tokens.map(Budget::of);
    let record: Vec<Scoped<'a>> = match &mut budget {
        None => slots.map(|(slot, ranked)| writer.scoped(slot, ranked)).collect(),
        Some(budget) => within(budget, tokens, &mut writer, slots),
    };
    Ok(Answer {
        status: "ok",
        context_budget: ContextBudget {
            units_returned: record.len(),
            units_available: available,
            tokens_used: budget.map(|budget| budget.used()),
            tokens_budget: budget.map(|budget| budget.most()),
        },
        record,
        conflicts: unresolved(world),
        epoch,
        warning,
    })
}

/// As many units as a budget has room for: by rank in full while they fit, then as summaries.
///
/// Where not all fit in full, full text takes at most a quarter of the budget (the best unit may take all of it), since an
/// agent is helped more by what each unit says than by all that stands around a few of them; what the summaries leave
/// goes back to full text, by rank. A unit whose summary does not fit is passed over for the next, so that one long
/// list of evidence does not end the answer.
fn within<'a>(
    budget: &mut Budget,
    tokens: &Tokens,
    writer: &mut Writer<'a>,
    slots: impl Iterator<Item = (&'a Slot, Ranked)>,
) -> Vec<Scoped<'a>> {
    let (slots, mut ranks): (Vec<&Slot>, Vec<Option<Ranked>>) =
        slots.map(|(slot, rank)| (slot, Some(rank))).unzip();
    let mut room = Room { budget, tokens, bytes: 0 };
    let mut kept: Vec<Kept> = match writer.request.format {
        Format::Full => room.best_in_full(writer, &slots),
        Format::Summary | Format::IdsOnly => Vec::new(),
    };
    let in_full = kept.len();
    let shorter = if writer.request.format == Format::Full { Format::Summary } else { writer.request.format };
    let mut misfits = 0;
    for (at, slot) in slots.iter().enumerate().skip(in_full) {
        match writer.compact(slot, shorter).and_then(|text| room.take(at, shorter, text)) {
            Some(fits) => {
                misfits = 0;
                kept.push(fits);
            }
            None => misfits += 1,
        }
        // A door would not send more, budget or not.
        if misfits == BUDGET_MISFITS_MAX || room.bytes > REPLY_MAX_BYTES {
            break;
        }
    }
    if writer.request.format == Format::Full {
        for kept in &mut kept[in_full..] {
            let Some(whole) = writer.written(slots[kept.at], Format::Full) else { break };
            if !room.swap(kept, whole) {
                break;
            }
        }
    }
    let scoped = |kept: Kept| {
        let rank = ranks[kept.at].take()?;
        Some(writer.around(Shown::Written(kept.text), slots[kept.at], rank, kept.format))
    };
    kept.into_iter().filter_map(scoped).collect()
}

/// A unit that found room: its rank, its text as it is sent, what that costs.
struct Kept {
    at: usize,
    format: Format,
    text: Box<RawValue>,
    cost: u64,
}

/// What is left of a budget while an answer is filled.
struct Room<'b> {
    budget: &'b mut Budget,
    tokens: &'b Tokens,
    /// Bytes of what is kept.
    bytes: usize,
}

impl Room<'_> {
    /// The leading units in full: all, where all fit; else those that [`FULL_SHARE`] holds, but the best one
    /// wherever the whole budget does.
    fn best_in_full(&mut self, writer: &mut Writer<'_>, slots: &[&Slot]) -> Vec<Kept> {
        let mut kept: Vec<Kept> = Vec::new();
        for (at, slot) in slots.iter().enumerate() {
            let whole = writer.written(slot, Format::Full);
            match whole.and_then(|text| self.take(at, Format::Full, text)) {
                Some(fits) => kept.push(fits),
                None => break,
            }
        }
        while kept.len() < slots.len()
            && kept.len() > 1
            && self.budget.used() > self.budget.most() / FULL_SHARE
        {
            self.give_back(&kept.remove(kept.len() - 1));
        }
        kept
    }

    /// Keeps a text, if its cost is left.
    fn take(&mut self, at: usize, format: Format, text: Box<RawValue>) -> Option<Kept> {
        let cost = self.budget.spend(self.tokens, text.get())?;
        self.bytes += text.get().len();
        Some(Kept { at, format, text, cost })
    }

    fn give_back(&mut self, kept: &Kept) {
        self.budget.give_back(kept.cost);
        self.bytes -= kept.text.get().len();
    }

    /// Puts a unit's full text in its summary's place, if there is room; whether there was.
    fn swap(&mut self, kept: &mut Kept, whole: Box<RawValue>) -> bool {
        self.give_back(kept);
        let at = kept.at;
        let (taken, fits) = match self.take(at, Format::Full, whole) {
            Some(full) => (Some(full), true),
            // It had room before.
            None => (self.take(at, kept.format, kept.text.clone()), false),
        };
        taken.into_iter().for_each(|taken| *kept = taken);
        fits
    }
}

/// Writes units for one request.
struct Writer<'a> {
    request: &'a AttuneRequest,
    /// Made when the first summary is, so that the need's words are looked up once.
    summarizer: Option<Summarizer>,
}

impl<'a> Writer<'a> {
    fn scoped(&mut self, slot: &'a Slot, ranked: Ranked) -> Scoped<'a> {
        let format = self.request.format;
        let shown = self.shown(slot, format);
        self.around(shown, slot, ranked, format)
    }

    fn shown<'u>(&mut self, slot: &'u Slot, format: Format) -> Shown<'u> {
        // `show` has seen to it that texts that are to be shown are there.
        let Some(whole) = slot.whole().filter(|_| format != Format::IdsOnly) else {
            return Shown::Id { id: slot.id };
        };
        let mut unit = ShownUnit::new(whole, slot.status, slot.epoch);
        match format {
            Format::IdsOnly => {}
            Format::Full => {}
            Format::Summary => {
                let AttuneRequest { scope, context_hint, .. } = self.request;
                let need = context_hint.as_deref().unwrap_or(&scope.role);
                let summarizer = self.summarizer.get_or_insert_with(|| Summarizer::new(need));
                unit.content = summarizer.summarize(&whole.content, SUMMARY_CHARS).into();
            }
        }
        Shown::Unit(unit)
    }

    /// The text of a unit in a shorter format, as a budget counts it.
    fn compact(&mut self, slot: &Slot, format: Format) -> Option<Box<RawValue>> {
        match self.shown(slot, format) {
            Shown::Unit(unit) => to_raw_value(&Compact::of(&unit)).ok(),
            shown => to_raw_value(&shown).ok(),
        }
    }

    /// The text of a unit as it is sent.
    fn written(&mut self, slot: &Slot, format: Format) -> Option<Box<RawValue>> {
        // Units are made of texts and finite numbers: they can be written.
        to_raw_value(&self.shown(slot, format)).ok()
    }

    /// What stands around a unit in the answer.
    fn around(&self, memory_unit: Shown<'a>, slot: &Slot, ranked: Ranked, format: Format) -> Scoped<'a> {
        Scoped {
            id: slot.id,
            memory_unit,
            relevance_score: ranked.score,
            relevance_reason: ranked.reason,
            format: if format == Format::Full { "full" } else { "summary" },
            factors: self.request.explain.then_some(Explained(ranked.factors)),
        }
    }
}

/// Unresolved conflicts, newest first. Their units are committed, so every agent may see them.
fn unresolved(world: &World) -> Vec<&Conflict> {
    let newest = world.unresolved.iter().rev().map(|number| &*world.conflicts[*number as usize]);
    newest.filter(|conflict| world.lists(conflict)).take(ATTUNE_CONFLICTS_MAX).collect()
}

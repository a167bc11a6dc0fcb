//! ATTUNE's answer: the chosen units as they are shown, within their budget of tokens (section 7).

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::super::state::{Slot, World};
use super::attune::Selection;
use crate::limits::{ATTUNE_CONFLICTS_MAX, BUDGET_MISFITS_MAX, REPLY_MAX_BYTES};
use crate::protocol::{AttuneRequest, Conflict, ContextBudget, Format, ShownUnit, UnitId, Warning};
use crate::relevance::{Budget, Factors, Ranked, Summarizer, Tokens};

/// Longest content in `summary` format, characters (section 7).
const SUMMARY_CHARS: usize = 280;

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

/// The response that shows a selection. Where the scope has a budget, `tokens` counts what is spent.
pub fn show<'a>(
    world: &'a World,
    tokens: &Tokens,
    epoch: u64,
    request: &'a AttuneRequest,
    selection: Selection,
) -> Answer<'a> {
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
    Answer {
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
    }
}

/// As many units as a budget has room for: by rank in full while they fit, then as summaries. A unit whose summary
/// does not fit is passed over for the next, so that one long list of evidence does not end the answer.
fn within<'a>(
    budget: &mut Budget,
    tokens: &Tokens,
    writer: &mut Writer<'a>,
    slots: impl Iterator<Item = (&'a Slot, Ranked)>,
) -> Vec<Scoped<'a>> {
    let mut format = writer.request.format;
    let mut record = Vec::new();
    let (mut misfits, mut bytes) = (0, 0);
    for (slot, ranked) in slots {
        let mut spend = |text: &RawValue| budget.spend(tokens, text.get());
        let mut written = writer.written(slot, format).filter(|text| spend(text));
        if written.is_none() && format == Format::Full {
            format = Format::Summary;
            written = writer.written(slot, format).filter(|text| spend(text));
        }
        let Some(text) = written else {
            misfits += 1;
            if misfits == BUDGET_MISFITS_MAX {
                break;
            }
            continue;
        };
        misfits = 0;
        bytes += text.get().len();
        record.push(writer.around(Shown::Written(text), slot, ranked, format));
        // A door would not send more, budget or not.
        if bytes > REPLY_MAX_BYTES {
            break;
        }
    }
    record
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
        let mut unit = ShownUnit::new(&slot.unit, slot.status, slot.epoch);
        match format {
            Format::IdsOnly => return Shown::Id { id: slot.id },
            Format::Full => {}
            Format::Summary => {
                let AttuneRequest { scope, context_hint, .. } = self.request;
                let need = context_hint.as_deref().unwrap_or(&scope.role);
                let summarizer = self.summarizer.get_or_insert_with(|| Summarizer::new(need));
                unit.content = summarizer.summarize(&slot.unit.content, SUMMARY_CHARS).into();
            }
        }
        Shown::Unit(unit)
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
    let newest = world.unresolved.iter().rev().take(ATTUNE_CONFLICTS_MAX);
    newest.map(|number| &*world.conflicts[*number as usize]).collect()
}

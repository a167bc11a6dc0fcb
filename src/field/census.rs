//! What the GET endpoints show of a world (wire, section 1).

use imbl::Vector;
use serde_json::{Map, Value, json};

use super::kept::Wanting;
use super::policy::Policy;
use super::presence::Whereabouts;
use super::rules::{SAID, excerpt};
use super::state::{AgentNo, Slot, UnitNo, World};
use super::visibility::may_see;
use crate::limits::{CONFLICTS_LISTED_MAX, INBOUND_SHOWN_MAX, PAGE_MAX_BYTES};
use crate::protocol::{Conflict, ConflictStatus, Cursor, MemoryType, ShownUnit, UnitStatus};

/// The query of `GET /v1/units`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UnitFilter {
    /// Only units committed after this place.
    pub after: Option<Cursor>,
    /// Only units committed before this place. Beside `after`, or alone with `newest_first`.
    pub before: Option<Cursor>,
    /// The newest first, as people look at memory; else in the order of commits.
    pub newest_first: bool,
    /// Most units, at least 1.
    pub limit: usize,
    /// Only units of this type.
    pub kind: Option<MemoryType>,
    /// Only units in this status; without it, all but drafts.
    pub status: Option<UnitStatus>,
    /// Only units by this agent.
    pub agent: Option<String>,
    /// Only units of this task.
    pub task: Option<String>,
    /// Only units of this session.
    pub session: Option<String>,
    /// Only units that are archived, or only those that are not.
    pub archived: Option<bool>,
}

impl World {
    /// `GET /v1/field/status`, as far as the world knows it.
    pub fn status(&self) -> Map<String, Value> {
        let units: Map<_, _> = UnitStatus::ALL
            .iter()
            .map(|status| (status.name().to_owned(), json!(self.count(*status))))
            .collect();
        let active = self.agents.iter().filter(|record| record.is_active()).count();
        let mut status = Map::new();
        status.insert("units".into(), Value::Object(units));
        status.insert("units_archived".into(), json!(self.archived.len()));
        status.insert(
            "agents".into(),
            json!(self.agents.iter().filter(|record| record.is_registered()).count()),
        );
        status.insert("agents_active".into(), json!(active));
        status.insert("conflicts".into(), json!(self.listed_conflicts().count()));
        status.insert("conflicts_unresolved".into(), json!(self.unresolved.len()));
        status.insert("detection_backlog".into(), json!(self.uncompared.len()));
        status.insert("subscriptions".into(), json!(self.subscriptions.len()));
        status.insert("log_entries".into(), json!(self.entries));
        status
    }

    /// `GET /v1/agents`, with what is known of their presence.
    pub fn agents_shown(&self, presence: &Vector<Whereabouts>) -> Value {
        let agents: Vec<_> = (0usize..)
            .zip(&self.agents)
            .filter(|(_, record)| record.is_registered())
            .map(|(no, record)| {
                let here = presence.get(no).copied().unwrap_or_default();
                let mut shown = json!(record.agent);
                shown["connected"] = json!(here.connections > 0);
                shown["last_seen"] = json!(here.last_seen);
                shown["registered_epoch"] = json!(record.registered_epoch);
                shown
            })
            .collect();
        json!({ "agents": agents })
    }

    /// `GET /v1/conflicts`: those in one of the statuses, or the unresolved ones when none is
    /// given; of more than [`CONFLICTS_LISTED_MAX`] the newest.
    pub fn conflicts_shown(&self, status: &[ConflictStatus]) -> Value {
        let wanted = |conflict: &Conflict| {
            if status.is_empty() { conflict.is_unresolved() } else { status.contains(&conflict.status) }
        };
        let newest = self.listed_conflicts().rev().filter(|conflict| wanted(conflict));
        let mut shown: Vec<_> = newest.take(CONFLICTS_LISTED_MAX).map(|conflict| json!(conflict)).collect();
        shown.reverse();
        json!({ "conflicts": shown })
    }

    /// `GET /v1/units/{id}`, if there is such a unit and `asker` may see it.
    ///
    /// # Errors
    /// Its text is in the log alone.
    pub fn unit_shown(
        &self,
        id: &str,
        asker: Option<&str>,
        policy: &Policy,
    ) -> Result<Option<Value>, Wanting> {
        let asker = asker.and_then(|id| self.agent_no(id));
        let Some(no) = self.find_visible(id, asker, policy) else { return Ok(None) };
        let slot = self.slot(no);
        let mut shown = self.unit_json(no)?;
        let inbound: Vec<_> = self
            .inbound_of(slot.id)
            .take(INBOUND_SHOWN_MAX)
            .map(|(kind, description, source)| {
                let description = description.map(|text| excerpt(text, SAID));
                json!({ "type": kind, "source_id": source.id, "description": description })
            })
            .collect();
        let conflicts: Vec<_> = self
            .disputes
            .get(&no)
            .into_iter()
            .flatten()
            .map(|number| &self.conflicts[*number as usize])
            .filter(|conflict| self.lists(conflict))
            .map(|conflict| conflict.id)
            .collect();
        shown["inbound_relations"] = json!(inbound);
        shown["conflicts"] = json!(conflicts);
        Ok(Some(shown))
    }

    /// `GET /v1/units`: a page in the order of commits or from the newest back, and where to go on (`null` at the end).
    ///
    /// # Errors
    /// The texts of some of the page are in the log alone: these.
    pub fn units_shown(
        &self,
        filter: &UnitFilter,
        asker: Option<&str>,
        policy: &Policy,
    ) -> Result<Value, Wanting> {
        let asker = asker.and_then(|id| self.agent_no(id));
        let in_order = self.in_order(filter);
        let cursor_of = |epoch: u64, no: UnitNo| Cursor::new(epoch, self.slot(no).id.number);
        let mut page = Vec::new();
        let (mut bytes, mut last, mut cursor) = (0, None, None);
        for (epoch, no) in in_order {
            if !self.is_wanted(no, filter) {
                continue;
            }
            let slot = self.slot(no);
            let place = cursor_of(epoch, no);
            let within = filter.after.is_none_or(|after| place > after)
                && filter.before.is_none_or(|before| place < before);
            if !within || !self.matches(slot, filter, asker, policy) {
                continue;
            }
            if page.len() >= filter.limit.max(1) || bytes > PAGE_MAX_BYTES {
                // There is more: go on after the last one of this page.
                cursor = last;
                break;
            }
            bytes += slot.text_bytes();
            last = Some(place);
            page.push(no);
        }
        Wanting::check(self, page.iter().copied())?;
        let units = page.into_iter().map(|no| self.unit_json(no)).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({ "units": units, "cursor": cursor }))
    }

    /// The units between the filter's places, give or take those of the places' own epochs, in the filter's order.
    fn in_order(&self, filter: &UnitFilter) -> Box<dyn Iterator<Item = (u64, UnitNo)> + '_> {
        let from = filter.after.map_or(0, |after| after.epoch);
        let until = filter.before.map_or(u64::MAX, |before| before.epoch.saturating_add(1));
        let (first, end) = (self.committed_before(from), self.committed_before(until));
        let committed = self.timeline.take(end).skip(first.min(end)).into_iter();
        // Drafts, also discarded ones, stand in no timeline.
        let mut offstage = match filter.status {
            Some(UnitStatus::Draft | UnitStatus::Retracted) if from < until => {
                self.offstage.range((from, 0)..(until, 0)).copied().collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        if !offstage.is_empty() {
            offstage.extend(committed.clone());
            offstage.sort_unstable();
        }
        match (offstage.is_empty(), filter.newest_first) {
            (true, false) => Box::new(committed),
            (true, true) => Box::new(committed.rev()),
            (false, false) => Box::new(offstage.into_iter()),
            (false, true) => Box::new(offstage.into_iter().rev()),
        }
    }

    /// By what stands beside the units: of a hundred thousand, those that are not archived are passed by untouched.
    fn is_wanted(&self, no: UnitNo, filter: &UnitFilter) -> bool {
        filter.archived.is_none_or(|archived| self.archived.contains(no) == archived)
    }

    fn matches(&self, slot: &Slot, filter: &UnitFilter, asker: Option<AgentNo>, policy: &Policy) -> bool {
        let same = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        !slot.purged
            && may_see(slot, asker, policy)
            && filter.status.map_or(slot.status != UnitStatus::Draft, |status| slot.status == status)
            && filter.kind.is_none_or(|kind| slot.kind == kind)
            && same(&filter.agent, Some(self.author_of(slot)))
            && same(&filter.task, self.task_of(slot).map(AsRef::as_ref))
            && same(&filter.session, slot.session().map(AsRef::as_ref))
    }
}

impl World {
    fn unit_json(&self, no: UnitNo) -> Result<Value, Wanting> {
        let slot = self.slot(no);
        let unit = slot.whole().ok_or_else(|| Wanting(vec![no]))?;
        let mut shown = json!(ShownUnit::new(unit, slot.status, slot.epoch));
        shown["archived"] = json!(self.is_archived(no));
        Ok(shown)
    }

    /// Whether a conflict is still told of: not once one of its units is purged.
    pub(super) fn lists(&self, conflict: &Conflict) -> bool {
        self.purges.is_empty() || [conflict.unit_a, conflict.unit_b].iter().all(|id| self.find(*id).is_some())
    }

    /// The conflicts that are told of, oldest first.
    pub(super) fn listed_conflicts(&self) -> impl DoubleEndedIterator<Item = &Conflict> {
        self.conflicts.iter().map(|conflict| &**conflict).filter(|conflict| self.lists(conflict))
    }
}

//! A durable operation as followers see it: its notices made once, each written once for everybody.

use std::sync::{Arc, OnceLock};

use serde::Serialize;

use crate::field::{Entry, Notice, Subject, World, announced, document_of, kind, notices};
use crate::protocol::{ConflictId, EventName, EventSet, MemoryType, ShownUnit, UnitId};
use crate::relevance::Portrait;

/// An operation that is durable. Its notices are made when the first follower comes by.
pub(super) struct Committed {
    pub entry: Arc<Entry>,
    /// The connection that asked for it, where that is known: its reply goes out before any push of this.
    pub origin: Option<u64>,
    /// The names of its notices: most followers pass most operations by.
    pub announced: EventSet,
    told: OnceLock<Box<[Told]>>,
}

impl Committed {
    pub fn new(entry: Arc<Entry>, origin: Option<u64>) -> Self {
        let announced = announced(&entry);
        Self { entry, origin, announced, told: OnceLock::new() }
    }

    pub fn epoch(&self) -> u64 {
        self.entry.epoch
    }

    /// Its notices; `world` is any state that has applied it.
    pub fn told(&self, world: impl FnOnce() -> World) -> &[Told] {
        let make = || notices(&world(), &self.entry).into_iter().map(Told::new).collect();
        self.told.get_or_init(make)
    }
}

/// A notice with what is shared by all who are told.
pub(super) struct Told {
    pub notice: Notice,
    /// The end of the notification's JSON, without and with the unit.
    plain: OnceLock<Box<str>>,
    whole: OnceLock<Box<str>>,
    portrait: OnceLock<Portrait>,
}

/// What all notifications of one notice have in common.
#[derive(Serialize)]
struct Common<'a> {
    event: EventName,
    epoch: u64,
    summary: &'a str,
    memory_unit_id: Option<UnitId>,
    conflict_id: Option<ConflictId>,
    agent_id: &'a str,
    task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_unit: Option<ShownUnit<'a>>,
}

impl Told {
    fn new(notice: Notice) -> Self {
        Self { notice, plain: OnceLock::new(), whole: OnceLock::new(), portrait: OnceLock::new() }
    }

    /// The end of the JSON object that tells it, from the key `event` to the closing brace.
    pub fn ending(&self, with_unit: bool) -> &str {
        let form = if with_unit { &self.whole } else { &self.plain };
        form.get_or_init(|| {
            let text = serde_json::to_string(&self.common(with_unit)).unwrap_or_default();
            text.strip_prefix('{').unwrap_or("}").into()
        })
    }

    fn common(&self, with_unit: bool) -> Common<'_> {
        let Notice { cursor, event, actor, subject, summary } = &self.notice;
        let mut common = Common {
            event: *event,
            epoch: cursor.epoch,
            summary,
            memory_unit_id: None,
            conflict_id: None,
            agent_id: actor,
            task_id: None,
            memory_unit: None,
        };
        match subject {
            Subject::Unit { unit, status, epoch } => {
                common.memory_unit_id = Some(unit.id);
                common.task_id = unit.intent.task_id.as_deref();
                common.memory_unit = with_unit.then(|| ShownUnit::new(unit, *status, *epoch));
            }
            Subject::Conflict { id, .. } => common.conflict_id = Some(*id),
            Subject::Agent(id) => common.agent_id = id,
        }
        common
    }

    /// What matters about the unit that it is about, if it is about one; with `meaning`, in other words too.
    pub fn portrait(&self, meaning: bool) -> Option<&Portrait> {
        let Subject::Unit { unit, .. } = &self.notice.subject else { return None };
        Some(self.portrait.get_or_init(|| Portrait::of(&document_of(unit), kind(unit.kind), meaning)))
    }

    /// Whether it tells of a question that was asked.
    pub fn is_question(&self) -> bool {
        let Subject::Unit { unit, .. } = &self.notice.subject else { return false };
        self.notice.event == EventName::MemoryRecorded && unit.kind == MemoryType::Question
    }
}

//! A durable operation as followers see it: its notices made once, each written once for everybody.
//!
//! A COMPACT may archive a million units, and each gives notice. These are made page by page as followers come by, and
//! only a few pages are kept: whoever needs an older one makes it again, from the entry and the world, the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use serde::Serialize;
use tokio::time::Instant;

use super::outbox::LOG_PAUSE;
use super::view::View;
use crate::field::{
    Entry, Notice, Subject, Wanting, World, announced, archived, archived_places, document_of, kind, notices,
    places,
};
use crate::limits::{NOTICE_PAGE_PLACES, NOTICE_PAGES_MAX};
use crate::log::LogError;
use crate::protocol::{ConflictId, EventName, EventSet, MemoryType, ShownUnit, UnitId};
use crate::relevance::Portrait;

/// An operation that is durable. Its notices are made when the first follower comes by.
pub(super) struct Committed {
    pub entry: Arc<Entry>,
    /// The connection that asked for it, where that is known: its reply goes out before any push of this.
    pub origin: Option<u64>,
    /// The names of its notices: most followers pass most operations by.
    pub announced: EventSet,
    first: ArcSwapOption<First>,
    /// How many places its notices take but for those of archived units: one whose subject is purged stays empty.
    places: u32,
    /// How many units it archived.
    archived: u32,
    /// When the log is to be read again that could not be.
    reads_again: Mutex<Option<Instant>>,
    /// Pages of their notices, the one used last at the end, and how many purges they know of.
    pages: Mutex<(usize, VecDeque<(usize, Page)>)>,
}

/// Some notices of an operation, in order.
pub(super) type Page = Arc<[Told]>;

/// An operation's notices but for those of archived units.
struct First {
    told: Page,
    /// Of how many purges they know: nothing is told any more of what is purged since.
    purges: usize,
}

impl Committed {
    pub fn new(entry: Arc<Entry>, origin: Option<u64>) -> Self {
        let (announced, places, archived) = (announced(&entry), places(&entry), archived_places(&entry));
        let first = ArcSwapOption::empty();
        Self {
            entry,
            origin,
            announced,
            first,
            places,
            archived,
            reads_again: Mutex::default(),
            pages: Mutex::default(),
        }
    }

    pub fn epoch(&self) -> u64 {
        self.entry.epoch
    }

    /// Its notices but for those of archived units; `view` is of any state that has applied it and knows of so many purges.
    /// Made once, and anew after `purges` more than they know of. Their places are always the same.
    fn told(&self, purges: usize, view: impl FnOnce() -> Arc<View>) -> Result<Page, LogError> {
        if let Some(first) = self.first.load_full().filter(|first| first.purges >= purges) {
            return Ok(Arc::clone(&first.told));
        }
        let view = view();
        let purges = view.world().purges.len();
        let told = self.made(&view, |world| Ok(notices(world, &self.entry)?.told))?;
        self.first.store(Some(Arc::new(First { told: Arc::clone(&told), purges })));
        Ok(told)
    }

    /// The index of the last place that its notices take; 0 where there is none.
    pub fn last_index(&self) -> u32 {
        (self.places + self.archived).saturating_sub(1)
    }

    /// The notices by pages, of which none need be empty: `None` behind the last.
    ///
    /// # Errors
    /// Texts of archived units are among them, and the log cannot be read. Whoever asks again later may be told.
    pub fn page(
        &self,
        number: usize,
        purges: usize,
        view: impl Fn() -> Arc<View>,
    ) -> Result<Option<Page>, LogError> {
        let Some(behind) = number.checked_sub(1) else { return self.told(purges, view).map(Some) };
        let start = u32::try_from(behind).ok().and_then(|behind| behind.checked_mul(NOTICE_PAGE_PLACES));
        let Some(start) = start.filter(|start| *start < self.archived) else { return Ok(None) };
        let view = view();
        let world = view.world();
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let (purges, pages) = &mut *pages;
        if *purges != world.purges.len() {
            // Nothing is told any more of what is purged since.
            *purges = world.purges.len();
            pages.clear();
        }
        let known = pages.iter().position(|(known, _)| *known == number).and_then(|at| pages.remove(at));
        let page = match known {
            Some((_, page)) => page,
            None => {
                let some = start..start.saturating_add(NOTICE_PAGE_PLACES);
                self.made(&view, |world| archived(world, &self.entry, self.places, some.clone()))?
            }
        };
        pages.push_back((number, Arc::clone(&page)));
        if pages.len() > NOTICE_PAGES_MAX {
            pages.pop_front();
        }
        Ok(Some(page))
    }

    /// Makes notices, with texts from the log where memory does not hold them. A log that could not be read is not asked
    /// again at once, whoever wants to; of what is damaged nothing will ever be told, so it is passed.
    ///
    /// # Errors
    /// The log cannot be read.
    fn made(
        &self,
        view: &View,
        make: impl Fn(&World) -> Result<Vec<Notice>, Wanting>,
    ) -> Result<Page, LogError> {
        let again = || self.reads_again.lock().unwrap_or_else(PoisonError::into_inner);
        if again().is_some_and(|then| then > Instant::now()) {
            return Err(LogError::Broken);
        }
        match view.ask(make) {
            Ok(made) => Ok(made.into_iter().map(Told::new).collect()),
            Err(error @ LogError::Corrupt { .. }) => {
                tracing::error!(epoch = self.epoch(), %error, "some of what an operation did cannot be told");
                Ok(Page::default())
            }
            Err(error) => {
                tracing::warn!(epoch = self.epoch(), %error, "the log cannot be read for notices; it is tried again");
                *again() = Some(Instant::now() + LOG_PAUSE);
                Err(error)
            }
        }
    }

    /// The page that has what comes after a place of this operation.
    pub fn page_after(&self, index: u32) -> usize {
        index
            .saturating_add(1)
            .checked_sub(self.places)
            .map_or(0, |behind| 1 + (behind / NOTICE_PAGE_PLACES) as usize)
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

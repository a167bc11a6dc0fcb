//! At the door: what a message is about to commit is compared with the Field before the actor hears of it.
//!
//! It must not slow writing down. So it is done where there is time: with few writes under way, by as many at once as
//! the pool has threads, at most as long as the budget says. Whatever else is committed without, and compared behind.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use super::Detector;
use crate::field::{Embedded, Message, Statement, Suspected, World};
use crate::hub::courtesy::Writes;
use crate::hub::view::View;
use crate::limits::DETECTED_BESIDE_WRITES_MAX;
use crate::protocol::{CommitRequest, Mode, RecordRequest, Request};
use crate::relevance::Reader;

/// Compares a Field's messages before they are decided.
pub(in crate::hub) struct DetectionDoor {
    detector: Arc<Detector>,
    pool: Arc<rayon::ThreadPool>,
    permits: Arc<Semaphore>,
    budget: Duration,
    /// What was read with and is free: as many as compare at once, since a reader gets faster with each text.
    readers: Arc<Mutex<Vec<Reader>>>,
    writes: Writes,
}

impl std::fmt::Debug for DetectionDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DetectionDoor").finish_non_exhaustive()
    }
}

/// What is committed, taken out of its message so that another thread can read it.
enum Committing {
    Record(Box<RecordRequest>, Arc<str>),
    Draft(Box<CommitRequest>),
}

impl DetectionDoor {
    /// Compares on this pool, beside these writes, each message at most so long.
    pub fn new(
        detector: Arc<Detector>,
        pool: Arc<rayon::ThreadPool>,
        writes: Writes,
        budget: Duration,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(pool.current_num_threads()));
        Self { detector, pool, permits, budget, readers: Arc::default(), writes }
    }

    /// Looks for what a message that was begun contradicts.
    pub async fn look(&self, message: &mut Message, view: Arc<View>) {
        let committing = match &message.request {
            Ok(Request::Record(request)) if commits(request) => {
                let author = Arc::clone(&message.agent_id);
                // Taken before the text is copied: most that find no time are many.
                if self.is_busy() {
                    message.suspected = Suspected::Deferred { timed_out: false };
                    return;
                }
                Committing::Record(request.clone(), author)
            }
            Ok(Request::Commit(request)) => Committing::Draft(request.clone()),
            Ok(Request::Merge(request)) if request.synthesis.is_some() => {
                message.suspected = Suspected::Deferred { timed_out: false };
                return;
            }
            _ => return,
        };
        message.suspected = self.within_budget(committing, message.embedded.clone(), view).await;
    }

    fn is_busy(&self) -> bool {
        self.writes.count() > DETECTED_BESIDE_WRITES_MAX
    }

    async fn within_budget(&self, committing: Committing, embedded: Embedded, view: Arc<View>) -> Suspected {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let (false, Ok(permit)) = (self.is_busy(), permit) else {
            return Suspected::Deferred { timed_out: false };
        };
        let detector = Arc::clone(&self.detector);
        let readers = Arc::clone(&self.readers);
        let (to, found) = oneshot::channel();
        self.pool.spawn(move || {
            let _permit = permit;
            if to.is_closed() {
                return;
            }
            let stop = || to.is_closed();
            let free = || readers.lock().unwrap_or_else(PoisonError::into_inner);
            let mut reader = free().pop().unwrap_or_default();
            let suspected = look(&detector, view.world(), &committing, &embedded, &mut reader, stop);
            free().push(reader);
            let _ = to.send(suspected);
        });
        match tokio::time::timeout(self.budget, found).await {
            Ok(Ok(suspected)) => suspected,
            // The search panicked; the thread behind has its turn.
            Ok(Err(_)) => Suspected::Deferred { timed_out: false },
            Err(_) => Suspected::Deferred { timed_out: true },
        }
    }
}

fn commits(request: &RecordRequest) -> bool {
    request.mode == Mode::Committed && Statement::recorded(request, "").claims()
}

fn look(
    detector: &Detector,
    world: &World,
    committing: &Committing,
    embedded: &Embedded,
    reader: &mut Reader,
    stop: impl Fn() -> bool,
) -> Suspected {
    let statement = match committing {
        Committing::Record(request, author) => Statement::recorded(request, author),
        Committing::Draft(request) => {
            let draft = request.memory_unit_id.parse().ok().and_then(|id| world.find(id));
            // Not durable yet, or not there: the rule says what becomes of it.
            let committed = draft.and_then(|draft| Statement::committed(world.slot(draft), request));
            let Some(committed) = committed else { return Suspected::Deferred { timed_out: false } };
            committed
        }
    };
    if !statement.claims() {
        return Suspected::Unasked;
    }
    let direction = match embedded {
        Embedded::Given(direction) => Some(&**direction),
        Embedded::Unasked | Embedded::Failed(_) => None,
    };
    detector.at_the_door(world, &statement, direction, reader, stop)
}

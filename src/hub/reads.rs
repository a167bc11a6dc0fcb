//! The worker pool's side of reads: ATTUNE, DETECT and REPLAY computed, first answers recalled.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender, WeakSender};
use tokio::sync::oneshot;

use super::actor::Call;
use super::answer::{Answer, Payload, answer_too_large};
use super::courtesy::{READ_NICENESS, step_back};
use super::detection::{Detector, Scan, Scanner};
use super::index::SharedIndex;
use super::notes::Notes;
use super::past::{Closed, Past};
use super::plans::{SummaryDesk, preview};
use super::shelf;
use super::waiting::{Computation, Fetching, Then};
use crate::field::{
    AgentNo, Audit, Chronicle, Embedded, Entry, Policy, Query, Read, Selection, Unshown, World, detect,
    replay, select, show, stands, subscriptions, target,
};
use crate::limits::{READS_MAX, REPLY_MAX_BYTES};
use crate::log::{LogError, LogReader};
use crate::protocol::{
    AttuneRequest, DetectMode, DetectRequest, ErrorCode, Format, Refusal, ReplayRequest, UnitId,
};
use crate::relevance::{Reader, Tokens};

/// Computes reads of one Field.
pub(super) struct Reads {
    pool: Arc<rayon::ThreadPool>,
    policy: Arc<Policy>,
    /// What units cost in budgets of tokens.
    tokens: Tokens,
    /// The connections to the log that are free. Each costs memory, so there are few, and who finds none waits.
    readers: Mutex<Vec<Box<dyn LogReader>>>,
    returned: Condvar,
    /// Reads that were begun and are not finished.
    open: AtomicUsize,
    /// The Field at earlier epochs.
    past: Arc<Past>,
    /// The way back to the actor, for what is audited. Weak: the actor ends when the doors' ends are gone.
    actor: WeakSender<Call>,
    /// What ATTUNEs showed, where that is noted behind their answers.
    notes: Notes,
    /// For checks.
    detector: Arc<Detector>,
    /// For scans.
    scanner: Arc<Scanner>,
    /// For syntheses, where a language model outside writes them.
    desk: Option<Arc<SummaryDesk>>,
}

/// What is asked without being an operation: nothing is stamped, noted or remembered.
#[derive(Debug)]
pub(super) enum Look {
    /// What an ATTUNE would bring.
    Attune {
        /// Through whose eyes; nobody's in particular: `None`.
        asker: Option<AgentNo>,
        request: Box<AttuneRequest>,
        embedded: Embedded,
        /// The epoch it would have.
        epoch: u64,
    },
    /// A timeline as everybody may see it.
    Replay(ReplayRequest),
}

/// A read that was begun; finished when this is dropped.
#[derive(Debug)]
pub(super) struct Begun(Arc<Reads>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Reads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reads").finish_non_exhaustive()
    }
}

impl Reads {
    /// Reads on this pool, with these connections to the log, at least one.
    pub fn new(
        pool: Arc<rayon::ThreadPool>,
        policy: Arc<Policy>,
        readers: Vec<Box<dyn LogReader>>,
        past: Past,
        actor: WeakSender<Call>,
        (detector, scanner): (Arc<Detector>, Arc<Scanner>),
        desk: Option<SummaryDesk>,
    ) -> Self {
        Self {
            pool,
            policy,
            tokens: Tokens::default(),
            readers: Mutex::new(readers),
            returned: Condvar::new(),
            open: AtomicUsize::new(0),
            past: Arc::new(past),
            actor,
            notes: Notes::default(),
            detector,
            scanner,
            desk: desk.map(Arc::new),
        }
    }

    /// Where reads are computed.
    #[cfg(test)]
    pub fn pool(&self) -> &rayon::ThreadPool {
        &self.pool
    }

    /// Begins a read, unless there are too many already.
    pub fn begin(self: &Arc<Self>) -> Option<Begun> {
        let begun = Begun(Arc::clone(self));
        (self.open.fetch_add(1, Ordering::Relaxed) < READS_MAX).then_some(begun)
    }

    /// Computes something on the pool and gives its answer to whoever asked.
    pub fn spawn(self: &Arc<Self>, then: Then, to: oneshot::Sender<Answer>) {
        let reads = Arc::clone(self);
        let then = match then {
            Then::Compute(computation) if past_epoch(&computation).is_some() => {
                return reads.look_back(*computation, to);
            }
            then => then,
        };
        self.pool.spawn(move || {
            // Whoever asked may have gone; then there is nothing to compute. What changes the Field is done all the same.
            if to.is_closed() && !matches!(then, Then::Prepare(_) | Then::Fetch(_)) {
                return;
            }
            match then {
                Then::Compute(computation) => reads.answer(*computation, to),
                Then::Recall { epoch } => {
                    let _ = to.send(Answer { epoch, outcome: reads.recall(epoch) });
                }
                Then::Prepare(planning) => reads.prepare(*planning, to),
                Then::Fetch(fetching) => reads.fetch(*fetching, to),
                Then::Answer(answer) => drop(to.send(answer)),
            }
        });
    }

    /// Answers an ATTUNE of an earlier epoch, on a thread of its own: it may take seconds.
    fn look_back(self: Arc<Self>, computation: Computation, to: oneshot::Sender<Answer>) {
        let epoch = computation.read.epoch;
        let refuse =
            |to: oneshot::Sender<Answer>, refusal| drop(to.send(Answer { epoch, outcome: Err(refusal) }));
        let visit = match self.past.visit() {
            Ok(visit) => visit,
            Err(refusal) => return refuse(to, refusal),
        };
        let reads = Arc::clone(&self);
        let work = move || {
            let _visit = visit;
            step_back(READ_NICENESS);
            if !to.is_closed() {
                reads.answer(computation, to);
            }
        };
        // Where there is no thread to be had the answer is lost with the work, and the door says so.
        if let Err(error) = thread::Builder::new().name("akashik-past".to_owned()).spawn(work) {
            tracing::error!(%error, "no thread for a read of the past");
        }
    }

    /// Answers a read; one of which a note is to be made, by way of the actor or with word to it.
    fn answer(&self, computation: Computation, to: oneshot::Sender<Answer>) {
        if let Query::Detect(DetectRequest { mode, .. }) = &computation.read.query {
            match mode {
                DetectMode::List => {}
                DetectMode::Check { target_id } => {
                    let target_id = target_id.clone();
                    return self.check(computation, &target_id, to);
                }
                DetectMode::Scan => return self.scan(computation, to),
            }
        }
        let Computation { read, world, index, _begun } = computation;
        let (outcome, shown) = self.compute(&read, &world, &index);
        let answer = Answer { epoch: read.epoch, outcome };
        let shown = shown.filter(|shown| answer.outcome.is_ok() && self.is_noted(&read, shown));
        let (Some(shown), Some(actor)) = (shown, self.actor()) else {
            let _ = to.send(answer);
            return;
        };
        let read = Box::new(read);
        if self.policy.audit == Audit::All {
            // An actor that is gone drops the answer with the call, and the door says so.
            let _ = actor.blocking_send(Call::Shown { read, shown, waits: Some((answer, to)) });
            return;
        }
        // Where there is room, the note goes first, so that it stands before whatever the asker does next. Where there
        // is none, the asker does not wait for it.
        let full = match self.notes.leave((read, shown)) {
            Ok(wake) => {
                let _ = to.send(answer);
                if wake {
                    // An actor that has no room for this comes by anyway.
                    let _ = actor.try_send(Call::Noted);
                }
                return;
            }
            Err((read, shown)) => actor.try_send(Call::Shown { read, shown, waits: None }),
        };
        let _ = to.send(answer);
        if let Err(TrySendError::Full(note)) = full {
            let _ = actor.blocking_send(note);
        }
    }

    /// Whether an ATTUNE that showed these units is noted.
    fn is_noted(&self, read: &Read, shown: &[UnitId]) -> bool {
        let with_texts = matches!(&read.query, Query::Attune(request) if request.format != Format::IdsOnly);
        match self.policy.audit {
            Audit::Off => false,
            Audit::Delivered => with_texts && !shown.is_empty(),
            Audit::All => true,
        }
    }

    /// Compares one unit with all others, and has what was found entered before it is told.
    fn check(&self, computation: Computation, target_id: &str, to: oneshot::Sender<Answer>) {
        let Computation { read, world, index: _, _begun: begun } = computation;
        let no = match target(&world, &self.policy, read.asker, target_id) {
            Ok(no) => no,
            Err(refusal) => {
                let _ = to.send(Answer { epoch: read.epoch, outcome: Err(refusal) });
                return;
            }
        };
        let all = 0..u32::try_from(world.timeline.len()).unwrap_or(u32::MAX);
        let stop = || to.is_closed();
        let findings = self.detector.findings(&world, no, all, &mut Reader::default(), stop);
        let standing = world.timeline.iter().filter(|(_, no)| stands(&world, *no)).count();
        let Some(actor) = self.actor.upgrade() else { return };
        let scanned = standing.saturating_sub(1);
        let call = Call::Examined { read: Box::new(read), findings, scanned, made: 0, to, begun };
        let _ = actor.blocking_send(call);
    }

    fn scan(&self, computation: Computation, to: oneshot::Sender<Answer>) {
        let Computation { read, world, index: _, _begun: begun } = computation;
        let epoch = read.epoch;
        if let Err(refused) = self.scanner.hand_in(Scan { read: Box::new(read), world, to, begun }) {
            let (Scan { to, .. }, refusal) = *refused;
            let _ = to.send(Answer { epoch, outcome: Err(refusal) });
        }
    }

    /// Computes a look at a durable world on the pool; nothing where too many reads are open already, or where this one
    /// failed.
    pub async fn look(
        self: &Arc<Self>,
        look: Look,
        world: World,
        index: Arc<SharedIndex>,
    ) -> Option<Result<Payload, Refusal>> {
        let begun = self.begin()?;
        let (to, outcome) = oneshot::channel();
        let reads = Arc::clone(self);
        self.pool.spawn(move || {
            let _begun = begun;
            if !to.is_closed() {
                let _ = to.send(reads.compute_look(&look, &world, &index));
            }
        });
        outcome.await.ok()
    }

    fn compute_look(&self, look: &Look, world: &World, index: &SharedIndex) -> Result<Payload, Refusal> {
        let policy = &*self.policy;
        match look {
            Look::Attune { asker, request, embedded, epoch } => {
                let selection = index
                    .with(world, |index| select(world, index, policy, *epoch, *asker, request, embedded));
                self.shown(world, *epoch, request, selection).0
            }
            Look::Replay(request) => self
                .with_reader(|reader| Ok(replay(world, &mut FromLog(reader), policy, None, request)))
                .map_err(|error| unreadable(&error))
                .flatten()
                .and_then(|answer| payload(&answer)),
        }
    }

    /// The response, and which units an ATTUNE showed.
    fn compute(
        &self,
        read: &Read,
        world: &World,
        index: &SharedIndex,
    ) -> (Result<Payload, Refusal>, Option<Vec<UnitId>>) {
        let policy = &*self.policy;
        let outcome = match &read.query {
            Query::Attune(request) => {
                if let Some(epoch) = as_of(read, world) {
                    return self.compute_past(read, request, world, epoch);
                }
                // Only the choice needs the index; the writing is done without holding it.
                let selection = index.with(world, |index| {
                    select(world, index, policy, read.epoch, Some(read.asker), request, &read.embedded)
                });
                let (answer, ids) = self.shown(world, read.epoch, request, selection);
                return (answer, Some(ids));
            }
            Query::Compact(preparation) => {
                preview(preparation, world, index).and_then(|answer| payload(&answer))
            }
            Query::Detect(request) => detect(world, request, None).and_then(|answer| payload(&answer)),
            Query::Detected(request, coverage) => {
                detect(world, request, Some(coverage.clone())).and_then(|answer| payload(&answer))
            }
            Query::Subscriptions => payload(&subscriptions(world, read.asker)),
            Query::Replay(request) => self
                .with_reader(|reader| {
                    let mut chronicle = FromLog(reader);
                    Ok(replay(world, &mut chronicle, policy, Some(read.asker), request))
                })
                .map_err(|error| unreadable(&error))
                .flatten()
                .and_then(|answer| payload(&answer)),
        };
        (outcome, None)
    }

    /// The response to an ATTUNE of an earlier epoch, and which units it showed.
    fn compute_past(
        &self,
        read: &Read,
        request: &AttuneRequest,
        present: &World,
        epoch: u64,
    ) -> (Result<Payload, Refusal>, Option<Vec<UnitId>>) {
        let then = match self.past.at(self, present, epoch) {
            Ok(then) => then,
            Err(Closed::Refused(refusal)) => return (Err(refusal), None),
            Err(Closed::Unreadable(error)) => return (Err(unreadable(&error)), None),
        };
        // Ages count from that epoch; the answer's own epoch is the operation's.
        let selection = then.index.with(&then.world, |index| {
            select(&then.world, index, &self.policy, epoch, Some(read.asker), request, &read.embedded)
        });
        let (answer, ids) = self.shown(&then.world, read.epoch, request, selection);
        (answer, Some(ids))
    }

    /// The response that shows a selection, with texts from the log where memory does not hold them; and which units it
    /// shows.
    fn shown(
        &self,
        world: &World,
        epoch: u64,
        request: &AttuneRequest,
        selection: Selection,
    ) -> (Result<Payload, Refusal>, Vec<UnitId>) {
        let unshown = match show(world, &self.tokens, epoch, request, selection) {
            Ok(answer) => return (payload(&answer), answer.ids()),
            Err(unshown) => *unshown,
        };
        let mut world = world.clone();
        let Unshown { selection, wanting } = unshown;
        if let Err(error) = self.with_reader(|reader| shelf::give(reader, &mut world, &wanting.0)) {
            return (Err(unreadable(&error)), Vec::new());
        }
        match show(&world, &self.tokens, epoch, request, selection) {
            Ok(answer) => (payload(&answer), answer.ids()),
            // All that it wanted was given.
            Err(_) => (Err(unreadable(&LogError::Broken)), Vec::new()),
        }
    }

    /// Reads the texts that a message's rule wants, and takes the message back to the actor, which decides it again.
    fn fetch(&self, fetching: Fetching, to: oneshot::Sender<Answer>) {
        let Fetching { wanting, mut message, connection, world, shows, begun } = fetching;
        let mut given = world;
        let read = self.with_reader(|reader| shelf::give(reader, &mut given, &wanting.0));
        // Beside those of earlier rounds: what was whole then may have been let go of since.
        message.recalled.extend(wanting.0.iter().filter_map(|no| given.slot(*no).whole().cloned()));
        // The actor must not wait for this thread to let go of what the view shares with its state.
        drop((given, begun));
        if let Err(error) = read {
            let _ = to.send(Answer { epoch: shows, outcome: Err(unreadable(&error)) });
        } else if let Some(actor) = self.actor() {
            let _ = actor.blocking_send(Call::Planned { message, connection, to, errand: None });
        }
    }

    /// The first answer of a message, from the entry that holds it.
    fn recall(&self, epoch: u64) -> Result<Payload, Refusal> {
        let entry =
            self.with_reader(|reader| FromLog(reader).read(epoch)).map_err(|error| unreadable(&error))?;
        entry.and_then(|entry| entry.reply).ok_or_else(|| {
            unreadable(&LogError::Corrupt {
                epoch: Some(epoch),
                what: "the entry or its reply is missing".into(),
            })
        })
    }

    /// Lets go of something large on the pool.
    pub(super) fn let_go(&self, large: impl Send + 'static) {
        self.pool.spawn(move || drop(large));
    }

    /// The language model outside that writes syntheses.
    pub(super) fn desk(&self) -> Option<&Arc<SummaryDesk>> {
        self.desk.as_ref()
    }

    /// How many reads are open.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Notes that wait for the actor.
    pub(super) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The way back to the actor, while it is there.
    pub(super) fn actor(&self) -> Option<Sender<Call>> {
        self.actor.upgrade()
    }

    /// Lends a connection to the log, waiting until one is free.
    pub fn with_reader<T>(
        &self,
        read: impl FnOnce(&dyn LogReader) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let free = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.returned.wait_while(free, |free| free.is_empty()).unwrap_or_else(PoisonError::into_inner);
        let lent = Lent { reads: self, reader: free.pop() };
        drop(free);
        match &lent.reader {
            Some(reader) => read(reader.as_ref()),
            None => Err(LogError::Broken),
        }
    }
}

/// The earlier epoch that an ATTUNE asks for, if it does: what lies at or behind the last change is the present.
fn as_of(read: &Read, world: &World) -> Option<u64> {
    let Query::Attune(request) = &read.query else { return None };
    request.scope.as_of_epoch.filter(|epoch| *epoch < world.last_epoch)
}

fn past_epoch(computation: &Computation) -> Option<u64> {
    as_of(&computation.read, &computation.world)
}

/// A connection on loan; it goes back however the loan ends.
struct Lent<'a> {
    reads: &'a Reads,
    reader: Option<Box<dyn LogReader>>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut free = self.reads.readers.lock().unwrap_or_else(PoisonError::into_inner);
        free.extend(self.reader.take());
        self.reads.returned.notify_one();
    }
}

/// Writes a response, as long as a door would send it: a longer one is given up on the way.
fn payload(answer: &impl Serialize) -> Result<Payload, Refusal> {
    let mut page = Page(Vec::with_capacity(4 * 1024));
    let written = serde_json::to_writer(&mut page, answer);
    if written.as_ref().is_err_and(serde_json::Error::is_io) {
        return Err(answer_too_large());
    }
    let text = written.map(|()| String::from_utf8(page.0).unwrap_or_default());
    match text.and_then(RawValue::from_string) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(Refusal::new(
            ErrorCode::InternalError,
            format!("The answer could not be written: {error}."),
            "Tell the hub's operator.",
        )),
    }
}

/// Takes at most [`REPLY_MAX_BYTES`].
struct Page(Vec<u8>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > REPLY_MAX_BYTES {
            return Err(io::Error::other("the answer is too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn unreadable(error: &LogError) -> Refusal {
    Refusal::new(
        ErrorCode::InternalError,
        format!("The log could not be read: {error}"),
        "Tell the hub's operator; nothing was changed.",
    )
}

/// The log, read entry by entry.
struct FromLog<'a>(&'a dyn LogReader);

impl FromLog<'_> {
    fn read(&self, epoch: u64) -> Result<Option<Entry>, LogError> {
        let Some(row) = self.0.get(epoch)? else { return Ok(None) };
        let damaged =
            |error: serde_json::Error| LogError::Corrupt { epoch: Some(epoch), what: error.to_string() };
        Entry::from_json(&row.body).map(Some).map_err(damaged)
    }
}

impl Chronicle for FromLog<'_> {
    fn entry(&mut self, epoch: u64) -> Result<Option<Entry>, String> {
        self.read(epoch).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_written_up_to_the_bound_and_refused_beyond_it() {
        let quotes = 2;
        let fits = "x".repeat(REPLY_MAX_BYTES - quotes);
        assert_eq!(payload(&fits).map(|text| text.get().len()), Ok(REPLY_MAX_BYTES));
        let refused = payload(&format!("{fits}x")).expect_err("too large");
        assert_eq!(refused.code, ErrorCode::MessageTooLarge);
    }
}

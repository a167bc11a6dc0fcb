//! Behind: one thread of a Field compares what the door had no time for, and scans the Field when asked to.
//!
//! It steps back behind everything else that the hub does, so under load the backlog grows and writing does not slow
//! down; the backlog stands in the state and is as long as there are units at most. What is found goes to the actor in
//! small entries. A scan is one at a time; the backlog has its turn in between.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc::WeakSender;
use tokio::sync::oneshot;

use super::Detector;
use crate::field::{Finding, Read, UnitNo, World, stands};
use crate::hub::actor::{Call, Published};
use crate::hub::answer::Answer;
use crate::hub::courtesy::{DETECTION_NICENESS, Writes, step_back};
use crate::hub::reads::Begun;
use crate::limits::{DETECTED_AN_ENTRY_MAX, DETECTED_BESIDE_WRITES_MAX, DETECTION_BATCH_MAX};
use crate::protocol::{ErrorCode, Refusal, UnitId};
use crate::relevance::Reader;

/// What comes within this time is compared together, and makes one entry.
const GATHERING: Duration = Duration::from_millis(40);
/// How many times as long as it took to compare a unit it rests while many write.
const RESTS: u32 = 9;
/// How long a batch takes at most before what was found is told.
const BATCH: Duration = Duration::from_millis(250);
/// Units whose claims are read ahead in one go.
const AHEAD: u32 = 64;
/// How long an entry of its own may take to become durable before the state is looked at again.
const DURABLE_PATIENCE: Duration = Duration::from_secs(2);
/// How often a scan tells how far it is.
const PROGRESS: Duration = Duration::from_secs(5);

/// A scan that was asked for.
pub(in crate::hub) struct Scan {
    pub read: Box<Read>,
    pub world: World,
    pub to: oneshot::Sender<Answer>,
    pub begun: Begun,
}

/// What the thread and those who want something of it share.
#[derive(Debug, Default)]
struct Desk {
    waiting: Mutex<Option<Scan>>,
    scanning: AtomicBool,
    closing: AtomicBool,
}

/// Where scans are handed in, and the thread is told to end.
#[derive(Debug)]
pub(in crate::hub) struct Scanner {
    desk: Arc<Desk>,
    waker: SyncSender<()>,
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("read", &self.read).finish_non_exhaustive()
    }
}

impl Scanner {
    pub fn new(waker: SyncSender<()>) -> Self {
        Self { desk: Arc::default(), waker }
    }

    /// Hands a scan in.
    ///
    /// # Errors
    /// The scan itself, and `OVERLOADED` while another one is under way.
    pub fn hand_in(&self, scan: Scan) -> Result<(), Box<(Scan, Refusal)>> {
        if self.desk.is_closing() {
            let of = scan.world.timeline.len();
            return Err(Box::new((scan, cut_off(0, of))));
        }
        if self.desk.scanning.swap(true, Ordering::AcqRel) {
            let refusal = Refusal::new(
                ErrorCode::Overloaded,
                "Another scan of this Field is under way.",
                "Repeat the message after the time given; what that scan finds is listed by then.",
            )
            .with("retry_after_ms", json!(5_000));
            return Err(Box::new((scan, refusal)));
        }
        *self.desk.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(scan);
        let _ = self.waker.try_send(());
        // The thread may have taken its last look already.
        match self.desk.is_closing().then(|| self.desk.take()).flatten() {
            Some(scan) => {
                let of = scan.world.timeline.len();
                Err(Box::new((scan, cut_off(0, of))))
            }
            None => Ok(()),
        }
    }

    /// From now on nothing long is begun, and what is under way ends soon.
    pub fn close(&self) {
        self.desk.closing.store(true, Ordering::Release);
        let _ = self.waker.try_send(());
    }
}

impl Desk {
    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn take(&self) -> Option<Scan> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The thread's own.
pub(in crate::hub) struct Behind {
    field: Arc<str>,
    detector: Arc<Detector>,
    desk: Arc<Desk>,
    published: Arc<Published>,
    /// Weak: the actor ends when the doors' ends are gone.
    actor: WeakSender<Call>,
    writes: Writes,
    /// Whether units are compared when they are recorded.
    is_automatic: bool,
}

impl Behind {
    /// `is_automatic`: whether units are compared when they are recorded.
    pub fn new(
        field: &Arc<str>,
        detector: Arc<Detector>,
        scanner: &Scanner,
        (published, actor): (Arc<Published>, WeakSender<Call>),
        writes: Writes,
        is_automatic: bool,
    ) -> Self {
        let (field, desk) = (Arc::clone(field), Arc::clone(&scanner.desk));
        Self { field, detector, desk, published, actor, writes, is_automatic }
    }

    /// Runs until nobody can wake it any more, or the Field is closed.
    pub fn run(self, told: &Receiver<()>) {
        step_back(DETECTION_NICENESS);
        self.writes.let_pass(0);
        let mut reader = Reader::default();
        let mut more = false;
        let units = self.published.view.load().world().timeline.len();
        let mut ahead = if self.is_automatic { u32::try_from(units).unwrap_or(u32::MAX) } else { 0 };
        loop {
            let woken = if more || ahead > 0 { told.try_recv() } else { told.recv().map_err(Into::into) };
            if woken == Err(TryRecvError::Disconnected) || self.desk.is_closing() {
                break;
            }
            match self.desk.take() {
                Some(scan) => {
                    self.scan(scan, &mut reader);
                    self.desk.scanning.store(false, Ordering::Release);
                }
                None if woken.is_ok() && !more => thread::sleep(GATHERING),
                None => {}
            }
            more = self.catch_up(&mut reader);
            if !more && ahead > 0 {
                ahead = self.read_ahead(ahead);
            }
        }
        if let Some(Scan { read, to, world, .. }) = self.desk.take() {
            let outcome = Err(cut_off(0, world.timeline.len()));
            let _ = to.send(Answer { epoch: read.epoch, outcome });
        }
    }

    /// What a unit contradicts. A text that makes comparing panic contradicts nothing: this thread must go on.
    fn findings(
        &self,
        world: &World,
        no: UnitNo,
        places: Range<u32>,
        reader: &mut Reader,
        stop: impl Fn() -> bool,
    ) -> Vec<Finding> {
        let compare = || self.detector.findings(world, no, places, reader, stop);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(compare)).unwrap_or_else(|_| {
            *reader = Reader::default();
            tracing::error!(field = %self.field, unit = %world.slot(no).id, "a unit cannot be compared");
            Vec::new()
        })
    }

    /// Reads what some units claim before anybody asks, the newest first, as long as there is room: at the door each unit
    /// is compared with some two dozen that are seldom the same, and reading those would take longer than all the rest.
    /// Tells before which place of the timeline it is to go on; 0 where that is all.
    fn read_ahead(&self, end: u32) -> u32 {
        let view = self.published.view.load_full();
        let began = Instant::now();
        let first = end.saturating_sub(AHEAD);
        let read = || self.detector.read_ahead(view.world(), first..end);
        // A text that cannot be read is met, and told of, where it is compared.
        let has_room = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or(true);
        self.give_way(began);
        if has_room { first } else { 0 }
    }

    /// Rests where many write: they need the processor, its caches and the index more.
    fn give_way(&self, began: Instant) {
        if self.writes.count() > DETECTED_BESIDE_WRITES_MAX {
            thread::sleep(RESTS * began.elapsed());
        }
    }

    /// Compares some of what is still to be compared; whether there may be more.
    fn catch_up(&self, reader: &mut Reader) -> bool {
        let view = self.published.view.load_full();
        let world = view.world();
        let started = Instant::now();
        let (mut findings, mut through) = (Vec::new(), None);
        for (&place, &compared) in world.uncompared.iter().take(DETECTION_BATCH_MAX) {
            let Some((_, no)) = world.timeline.get(place as usize) else { break };
            let began = Instant::now();
            let found = self.findings(world, *no, compared..place, reader, || self.is_closing());
            self.give_way(began);
            // Not compared to the end.
            if self.is_closing() {
                return false;
            }
            findings.extend(found);
            through = Some(world.slot(*no).id);
            if findings.len() >= DETECTED_AN_ENTRY_MAX || started.elapsed() > BATCH {
                break;
            }
        }
        let Some(through) = through else { return false };
        let Ok((epoch, _)) = self.tell(findings, Some(through)) else {
            // The log cannot be written: it is done again once it can.
            thread::sleep(DURABLE_PATIENCE);
            return true;
        };
        // What is not durable is not in the next view, and would be compared again.
        let patience = Instant::now();
        while self.published.view.load().world().last_epoch < epoch
            && patience.elapsed() < DURABLE_PATIENCE
            && !self.is_closing()
        {
            thread::sleep(Duration::from_millis(1));
        }
        !self.published.view.load().world().uncompared.is_empty()
    }

    /// Hands findings to the actor; tells the epoch of their entry, the last one if there was nothing to enter, and
    /// how many conflicts it made.
    ///
    /// # Errors
    /// Why they cannot be kept; nothing where there is no actor any more.
    fn tell(&self, findings: Vec<Finding>, through: Option<UnitId>) -> Result<(u64, usize), Option<Refusal>> {
        let (to, entered) = oneshot::channel();
        let actor = self.actor.upgrade().ok_or(None)?;
        actor.blocking_send(Call::Detected { findings, through, to }).map_err(|_| None)?;
        drop(actor);
        entered.blocking_recv().map_err(|_| None)?.map_err(Some)
    }

    /// Compares each unit that stands with those before it.
    fn scan(&self, scan: Scan, reader: &mut Reader) {
        let Scan { read, world, to, begun } = scan;
        let started = Instant::now();
        let of = world.timeline.len();
        let (mut scanned, mut made, mut told) = (0, 0, started);
        let mut findings = Vec::new();
        for (place, (_, no)) in (0u32..).zip(&world.timeline) {
            let stop = || self.is_closing() || to.is_closed();
            if stop() {
                made += self.tell(findings, None).map_or(0, |(_, made)| made);
                tracing::info!(field = %self.field, scanned, of, conflicts = made, "a scan was cut off");
                let _ = to.send(Answer { epoch: read.epoch, outcome: Err(cut_off(scanned, of)) });
                return;
            }
            if stands(&world, *no) {
                findings.extend(self.findings(&world, *no, 0..place, reader, stop));
                scanned += 1;
            }
            if findings.len() >= DETECTED_AN_ENTRY_MAX {
                match self.tell(std::mem::take(&mut findings), None) {
                    Ok((_, more)) => made += more,
                    Err(why) => {
                        let refusal = why.map(|why| not_kept(&why, scanned, of));
                        let refusal = refusal.unwrap_or_else(|| cut_off(scanned, of));
                        let _ = to.send(Answer { epoch: read.epoch, outcome: Err(refusal) });
                        return;
                    }
                }
            }
            if told.elapsed() > PROGRESS {
                told = Instant::now();
                tracing::info!(field = %self.field, scanned = place, of, conflicts = made, "scanning for contradictions");
                self.catch_up(reader);
            }
        }
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(field = %self.field, scanned, conflicts = made + findings.len(), took_ms, "scanned for contradictions");
        if let Some(actor) = self.actor.upgrade() {
            let _ = actor.blocking_send(Call::Examined { read, findings, scanned, made, to, begun });
        }
    }

    fn is_closing(&self) -> bool {
        self.desk.is_closing()
    }
}

fn cut_off(scanned: usize, of: usize) -> Refusal {
    Refusal::new(
        ErrorCode::InternalError,
        format!("The hub is shutting down: the scan was cut off after {scanned} of {of} units."),
        "Repeat it once the hub is there again; what it had found is in the Field.",
    )
}

/// The log takes nothing at present, for this reason, which says what is to be done.
fn not_kept(why: &Refusal, scanned: usize, of: usize) -> Refusal {
    let message = format!(
        "The scan was ended after {scanned} of {of} units; what it had entered by then is listed. What it found last could \
         not be: {}",
        why.message
    );
    Refusal { message: message.into(), ..why.clone() }
}

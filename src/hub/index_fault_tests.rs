//! What must not be lost when the log fails for a moment, and what must not come back once it is purged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc as mpsc_blocking;
use std::thread;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

use super::*;
use crate::config::EmbeddingSettings;
use crate::field::World;
use crate::hub::actor::Published;
use crate::hub::endpoint::Endpoint;
use crate::hub::enricher::embed_behind;
use crate::hub::shelf::Shelf;
use crate::limits::EMBEDDING_RETRY_MIN_MS;
use crate::log::{LogReader, Row, Stat};

const DIMENSIONS: usize = 4;

/// A connection to a log that fails as long as it is told to.
struct Failing(Box<dyn LogReader>, Arc<AtomicBool>);

impl Failing {
    fn check(&self) -> Result<(), LogError> {
        let fails = self.1.load(Ordering::SeqCst);
        if fails { Err(LogError::Io("the test wants it so".to_owned())) } else { Ok(()) }
    }
}

impl LogReader for Failing {
    fn scan(&self, after: u64, each: &mut dyn FnMut(u64, &str) -> ControlFlow<()>) -> Result<(), LogError> {
        self.check()?;
        self.0.scan(after, each)
    }

    fn get(&self, epoch: u64) -> Result<Option<Row>, LogError> {
        self.check()?;
        self.0.get(epoch)
    }

    fn last_epoch(&self) -> Result<u64, LogError> {
        self.0.last_epoch()
    }

    fn reserved(&self) -> Result<u64, LogError> {
        self.0.reserved()
    }

    fn stat(&self) -> Result<Stat, LogError> {
        self.0.stat()
    }
}

fn index(meaning: Meaning, keeper: VectorKeeper) -> SharedIndex {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    SharedIndex::new(meaning, Arc::new(pool), keeper)
}

fn vector() -> Vector {
    Vector::new(&[1.0, 2.0, 3.0, 4.0]).expect("a direction")
}

fn known(index: &SharedIndex, units: u32) -> usize {
    (0..units).filter(|place| index.has_vector(*place)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_fails_for_a_moment_costs_no_unit_its_meaning() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(home.path())).await.unwrap();
    register(&hub).await;
    record(&hub, 0, 40).await;
    ask(&hub, "reader", "put away", "COMPACT", json!({ "strategy": "archive" })).await;
    shelved_in_time(&hub, 40).await;
    let view = hub.field(None).unwrap().view();
    let world = view.world();
    let fails = Arc::new(AtomicBool::new(false));
    let shelf = || {
        let reader = open_log_reader(&home.path().join("default")).unwrap();
        Shelf::new(Box::new(Failing(reader, Arc::clone(&fails))))
    };

    let built_in = index(Meaning::BuiltIn, VectorKeeper::none()).reading(shelf());
    fails.store(true, Ordering::SeqCst);
    built_in.catch_up(world);
    for _ in 0..2 {
        assert!(!built_in.embed_missing(world), "as long as the log fails, nothing is to be done");
    }
    assert_eq!(known(&built_in, 40), 0);
    fails.store(false, Ordering::SeqCst);
    while built_in.embed_missing(world) {}
    assert_eq!(known(&built_in, 40), 40);

    let given = index(Meaning::Given { dimensions: DIMENSIONS }, VectorKeeper::none()).reading(shelf());
    given.catch_up(world);
    fails.store(true, Ordering::SeqCst);
    assert_eq!(given.take_missing(world, 100), []);
    fails.store(false, Ordering::SeqCst);
    let taken = given.take_missing(world, 100);
    assert_eq!(taken.len(), 40);
    assert_eq!(given.take_missing(world, 100), [], "what was taken is missing no more");
    fails.store(true, Ordering::SeqCst);
    let made = |taken: &[(u32, String)]| taken.iter().map(|(place, _)| (*place, vector())).collect();
    given.fill(world, made(&taken));
    assert_eq!(known(&given, 40), 0);
    fails.store(false, Ordering::SeqCst);
    let again = given.take_missing(world, 100);
    assert_eq!(again, taken);
    given.fill(world, made(&again));
    assert_eq!(known(&given, 40), 40);
    hub.stop().await;
}

/// A world of two units, and the same with the older one purged.
async fn before_and_after_a_purge(home: &Path) -> (World, World) {
    let hub = Hub::start(config(home)).await.unwrap();
    register(&hub).await;
    record(&hub, 0, 2).await;
    let world = || hub.field(None).unwrap().view().world().clone();
    let before = world();
    let older = json!({ "strategy": "purge", "filter": { "max_age_epochs": 1 } });
    ask(&hub, "reader", "clean", "COMPACT", older).await;
    let after = world();
    hub.stop().await;
    let purged =
        |world: &World| world.timeline.iter().map(|(_, no)| world.slot(*no).purged).collect::<Vec<bool>>();
    assert_eq!((purged(&before), purged(&after)), (vec![false, false], vec![true, false]));
    (before, after)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vector_that_is_made_while_its_unit_is_purged_is_neither_shown_nor_kept() {
    let home = tempfile::tempdir().unwrap();
    let (before, after) = before_and_after_a_purge(home.path()).await;
    let (jobs, jobs_in) = mpsc_blocking::sync_channel(64);
    let file = home.path().join("vectors");
    let keeper = VectorKeeper::new(file, "model", DIMENSIONS, Box::new(|| Some([7; 16])), jobs);
    let index = index(Meaning::Given { dimensions: DIMENSIONS }, keeper);
    index.catch_up(&before);
    assert_eq!(index.take_missing(&before, 9).len(), 2);
    index.catch_up(&after);
    index.forget(&after);
    index.fill(&before, vec![(0, vector()), (1, vector())]);
    let left = index.take_missing(&after, 9);
    index.fill(&after, left.iter().map(|(place, _)| (*place, vector())).collect());
    assert_eq!([0, 1].map(|place| index.has_vector(place)), [false, true]);
    let kept = jobs_in.try_iter().filter_map(|job| match job {
        vector_file::Job::Append(records) => Some(records),
        _ => None,
    });
    let kept: Vec<_> = kept.flatten().map(|record| record.unit).collect();
    assert_eq!(kept, [after.slot(after.timeline[1].1).id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn units_are_forgotten_when_nobody_still_enters_an_older_view() {
    let home = tempfile::tempdir().unwrap();
    let (before, after) = before_and_after_a_purge(home.path()).await;
    let index = index(Meaning::Given { dimensions: DIMENSIONS }, VectorKeeper::none());
    index.catch_up(&before);
    index.fill(&before, vec![(0, vector()), (1, vector())]);
    assert_eq!(known(&index, 2), 2);
    thread::scope(|scope| {
        let turn = index.turn();
        let forgetting = scope.spawn(|| index.forget(&after));
        // Time enough for one who does not wait for the turn.
        let began = Instant::now();
        while index.has_vector(0) && began.elapsed() < Duration::from_millis(200) {
            thread::yield_now();
        }
        // As a follower does, last of all.
        index.take_in([(0, &vector())].into_iter());
        drop(turn);
        forgetting.join().unwrap();
    });
    assert_eq!([0, 1].map(|place| index.has_vector(place)), [false, true]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sessions_are_served_while_the_turn_is_taken() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(home.path())).await.unwrap();
    let view = hub.field(None).unwrap().view();
    let published = Arc::new(Published { view: ArcSwap::new(view), clock: AtomicU64::new(0) });
    let settings = EmbeddingSettings {
        url: "http://127.0.0.1:1/v1/embeddings".to_owned(),
        model: "model".to_owned(),
        dimensions: Some(DIMENSIONS),
        key: None,
        ca_file: None,
        timeout_ms: 1_000,
    };
    let endpoint = Endpoint::agree(&settings).await.unwrap();
    let index = Arc::new(index(Meaning::Given { dimensions: DIMENSIONS }, VectorKeeper::none()));
    let (held, is_held) = mpsc_blocking::channel();
    let (served, was_served) = mpsc_blocking::channel();
    let holder = {
        let index = Arc::clone(&index);
        thread::spawn(move || {
            let _turn = index.turn();
            held.send(()).unwrap();
            was_served.recv_timeout(PATIENCE).is_ok()
        })
    };
    is_held.recv().unwrap();
    let (calls, _calls_in) = mpsc::channel(1);
    let behind = tokio::spawn(embed_behind(endpoint, index, published, calls.downgrade()));
    // Served by the one thread there is, after the embedder came to ask for its turn.
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(3 * EMBEDDING_RETRY_MIN_MS)).await;
        let _ = served.send(());
    });
    let was_served = tokio::task::spawn_blocking(move || holder.join().unwrap()).await.unwrap();
    assert!(was_served);
    drop(calls);
    behind.await.unwrap();
    hub.stop().await;
}

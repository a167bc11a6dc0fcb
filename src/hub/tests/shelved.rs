//! Notices of units whose texts memory does not hold, and a log that cannot be read for them at once.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::super::outbox::Outbox;
use super::stage::{Stage, contradicts};
use super::*;
use crate::field::notices;

/// More than one page of notices of one COMPACT.
const ARCHIVED: usize = 300;

/// What a Field keeps of ada's units being archived, of a conflict between her and bob that eve resolves by superseding bob's
/// unit and an archived one, of an archived unit that is retracted; and of all that being archived in the end.
fn history() -> Vec<Entry> {
    let history = || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let stage = Stage::new().await;
            let mut line = stage.line(1, &["ada", "bob", "eve"]).await;
            let mut old = Vec::new();
            for at in 0..ARCHIVED {
                old.push(line.record("ada", &format!("u{at}"), json!([])).await);
            }
            line.ok("ada", "COMPACT", json!({ "strategy": "archive" })).await;
            let one = line.record("ada", "x", json!([])).await;
            let two = line.record("bob", "y", contradicts(&one)).await;
            let supersedes = |unit: &String| json!({ "type": "supersedes", "target_id": unit });
            line.record("eve", "z", json!([supersedes(&two), supersedes(&old[0])])).await;
            line.ok("ada", "RETRACT", json!({ "memory_unit_id": old[1], "reason": "wrong" })).await;
            line.ok("ada", "COMPACT", json!({ "strategy": "archive" })).await;
            let (entries, _) = stage.entries();
            stage.hub.stop().await;
            entries
        })
    };
    // On a thread of its own: the tests here have a clock of their own.
    std::thread::spawn(history).join().expect("a history")
}

fn first_compact(entries: &[Entry]) -> &Entry {
    let compacts = |entry: &&Entry| entry.events.iter().any(|event| event.units().is_some());
    entries.iter().find(compacts).expect("a COMPACT")
}

/// All of this published, archived texts let go of, and what is to be told of it.
fn shelved(entries: &[Entry]) -> (Rig, Vec<Due>) {
    let mut rig = Rig::new(Bounds::default());
    rig.publish(entries);
    let due = due(entries, &rig.state.world, &observer(EventName::ALL), Cursor::default());
    rig.shelve();
    (rig, due)
}

async fn next(outbox: &mut Outbox) -> Push {
    timeout(Duration::from_secs(20), outbox.next()).await.expect("in time").expect("a push comes")
}

#[tokio::test(start_paused = true)]
async fn notices_whose_texts_cannot_be_read_are_made_once_they_can() {
    let entries = history();
    let (rig, due) = shelved(&entries);
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
    outbox.attach(observer(EventName::ALL), Cursor::default(), true);
    let mut failed = 0;
    rig.shelf.failing.store(1, Ordering::SeqCst);
    for expected in due {
        // Each failure is one of whatever is read next, if anything is.
        failed += usize::from(rig.shelf.failing.swap(1, Ordering::SeqCst) == 0);
        assert_eq!(told(&next(&mut outbox).await), expected);
    }
    // Both pages of the first COMPACT, what was contested, superseded and retracted, and the page of the second one.
    assert_eq!(failed, 6);
    assert!(timeout(Duration::from_secs(3_600), outbox.next()).await.is_err(), "and nothing else");
}

/// What is damaged stays so: who follows is told everything else.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_text_that_is_damaged() {
    let entries = history();
    let (rig, due) = shelved(&entries);
    rig.shelf.damaged.store(true, Ordering::SeqCst);
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
    outbox.attach(observer(EventName::ALL), Cursor::default(), true);
    let mut heard = Vec::new();
    while let Ok(Some(push)) = timeout(Duration::from_secs(3_600), outbox.next()).await {
        heard.push(told(&push));
    }
    assert!(heard.iter().all(|one| due.contains(one)));
    let archived = |one: &&Due| one.1 == EventName::MemoryArchived;
    assert!(due.iter().filter(archived).count() > ARCHIVED && heard.iter().filter(archived).count() == 0);
    let last = heard.iter().rfind(|one| one.1 == EventName::MemoryRecorded).map(|one| one.0.epoch);
    assert!(last > Some(first_compact(&entries).epoch), "what comes behind it is told");
}

/// Many follow, and the log fails: it is not read for each of them again and again.
#[tokio::test(start_paused = true)]
async fn a_log_that_fails_is_tried_once_for_all_who_follow() {
    let entries = history();
    let compact = first_compact(&entries).epoch;
    let entries: Vec<Entry> = entries.into_iter().filter(|entry| entry.epoch <= compact).collect();
    let mut rig = Rig::new(Bounds::default());
    rig.publish(&entries);
    rig.shelve();
    rig.shelf.failing.store(usize::MAX, Ordering::SeqCst);
    let before = Cursor::new(compact - 1, u32::MAX);
    for _ in 0..5 {
        let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
        outbox.attach(observer(EventName::ALL), before, true);
        assert!(timeout(Duration::from_millis(100), outbox.next()).await.is_err());
    }
    assert_eq!(rig.shelf.scans.load(Ordering::SeqCst), 1);
}

/// What an operation itself tells of a unit is told from its entry: the log is asked for the rest alone.
#[test]
fn what_the_entry_holds_is_told_from_the_entry() {
    let entries = history();
    let mut rig = Rig::new(Bounds::default());
    rig.publish(&entries);
    rig.shelve();
    let world = &rig.state.world;
    let created = |entry: &Entry| {
        entry.events.iter().find_map(|event| match event {
            Event::ConflictCreated { conflict, contested } => Some((conflict.unit_a, contested.clone())),
            _ => None,
        })
    };
    let (entry, (older, contested)) =
        entries.iter().find_map(|entry| Some((entry, created(entry)?))).expect("a conflict");
    assert_eq!(contested.len(), 2, "the older one, and the one that is recorded here");
    let wanting = notices(world, entry).expect_err("the older one is in the log alone");
    assert_eq!(wanting.0, [world.find(older).expect("it is there")]);
}

/// Authors are told of their resolved conflicts though nothing can be read when that is durable.
#[tokio::test]
async fn authors_are_woken_without_the_log() {
    let entries = history();
    let resolves = |entry: &Entry| entry.events.iter().any(|event| matches!(event, Event::Merged { .. }));
    let at = entries.iter().position(resolves).expect("it was resolved");
    let mut rig = Rig::new(Bounds::default());
    rig.publish(&entries[..at]);
    rig.shelve();
    let herald = tokio::spawn(Arc::clone(&rig.feed).ring());
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), Some(7));
    outbox.speaks("ada", entries[at - 1].epoch);
    outbox.replied(entries[at - 1].epoch);
    // The herald looks from its first turn on.
    tokio::task::yield_now().await;
    rig.shelf.failing.store(usize::MAX, Ordering::SeqCst);
    rig.publish(&entries[at..=at]);
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
    rig.shelf.failing.store(0, Ordering::SeqCst);
    let (place, event, _) = told(&next(&mut outbox).await);
    assert_eq!((place.epoch, event), (entries[at].epoch, EventName::ConflictResolved));
    herald.abort();
}

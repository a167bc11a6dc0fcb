//! What wakes a reader, what it waits for, and what it never has to look at.

use std::time::Duration;

use futures::FutureExt;
use tokio::time::{Instant, timeout};

use super::super::outbox::Outbox;
use super::*;
use crate::field::tests::random::{Step, past};

/// A history of so many units, then an agent that joins; the places of the last two entries tell them apart.
fn quiet_then_joined(units: usize) -> Vec<Entry> {
    let record =
        || Step::Record { agent: 0, over: None, draft: false, links: Vec::new(), confidence: (0, 0) };
    let join = Step::Register { agent: 3, role: 0, over: None };
    let steps: Vec<_> = std::iter::repeat_with(record).take(units).chain([join]).collect();
    past(&steps).0
}

async fn next(outbox: &mut Outbox) -> Push {
    timeout(Duration::from_secs(20), outbox.next()).await.expect("in time").expect("a push comes")
}

async fn herald_s_turn() {
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
}

/// Puts operations in one at a time; the herald has its turn after each.
async fn trickle(rig: &mut Rig, entries: &[Entry]) {
    for entry in entries {
        rig.publish(std::slice::from_ref(entry));
        herald_s_turn().await;
    }
}

#[tokio::test]
async fn whoever_waits_for_something_rare_reads_no_history() {
    let entries = quiet_then_joined(400);
    let mut rig = Rig::new(Bounds { operations: 8, ..Bounds::default() });
    let herald = tokio::spawn(Arc::clone(&rig.feed).ring());
    trickle(&mut rig, &entries[..3]).await;
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
    outbox.attach(observer(&[EventName::AgentJoined]), rig.feed.now(rig.state.clock), true);
    assert!(outbox.next().now_or_never().is_none());
    let (joined, before) = entries.split_last().expect("entries");
    trickle(&mut rig, &before[3..]).await;
    assert!(outbox.next().now_or_never().is_none(), "none of it was asked for");
    trickle(&mut rig, std::slice::from_ref(joined)).await;
    assert_eq!(told(&next(&mut outbox).await).0, Cursor::new(joined.epoch, 0));
    assert_eq!(rig.watch.scans.load(Ordering::SeqCst), 0, "400 operations were passed over unseen");
    herald.abort();
}

/// The same where the bell has rung for the first of many, and is heard only when they are long out of memory.
#[tokio::test]
async fn whoever_sleeps_through_a_ring_misses_nothing() {
    let entries = quiet_then_joined(100);
    let mut rig = Rig::new(Bounds { operations: 8, ..Bounds::default() });
    let herald = tokio::spawn(Arc::clone(&rig.feed).ring());
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
    outbox.attach(observer(&[EventName::MemoryRecorded]), Cursor::default(), true);
    let mut rare = Outbox::new(Arc::clone(&rig.feed), None);
    rare.attach(observer(&[EventName::AgentJoined]), Cursor::default(), true);
    rare.attach(observer(&[EventName::MemoryContested]), Cursor::default(), true);
    assert!(outbox.next().now_or_never().is_none() && rare.next().now_or_never().is_none());
    trickle(&mut rig, &entries).await;
    let world = rig.state.world.clone();
    for (outbox, event) in [(&mut outbox, EventName::MemoryRecorded), (&mut rare, EventName::AgentJoined)] {
        let due = due(&entries, &world, &observer(&[event]), Cursor::default());
        assert!(due.len() >= 4);
        for expected in due {
            assert_eq!(told(&next(outbox).await), expected);
        }
        assert!(timeout(Duration::from_millis(20), outbox.next()).await.is_err(), "and nothing else");
    }
    herald.abort();
}

/// Two subscriptions of one reader: what is pushed for one must not let the other pass over its own.
#[tokio::test]
async fn a_ring_for_one_subscription_is_kept_for_the_other() {
    let entries = quiet_then_joined(60);
    let mut rig = Rig::new(Bounds { operations: 20, page_epochs: 8, ..Bounds::default() });
    let herald = tokio::spawn(Arc::clone(&rig.feed).ring());
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
    let all = [EventName::MemoryRecorded, EventName::AgentJoined];
    for event in all {
        let listener = Listener::observer(subscription(event.name(), &[event], 0));
        outbox.attach(listener, Cursor::default(), true);
    }
    assert!(outbox.next().now_or_never().is_none());
    let mut seen = Vec::new();
    // Many at once ring once, and they are taken one at a time: one follower has its push, the other waits as before.
    for batch in entries.chunks(16) {
        rig.publish(batch);
        herald_s_turn().await;
        for _ in 0..3 {
            seen.extend(outbox.ready().map(|push| told(&push)));
        }
    }
    let mut due = due(&entries, &rig.state.world, &observer(&all), Cursor::default());
    while seen.len() < due.len() {
        seen.push(told(&next(&mut outbox).await));
    }
    seen.sort_by_key(|(place, ..)| *place);
    due.sort_by_key(|(place, ..)| *place);
    assert_eq!(seen, due);
    assert!(timeout(Duration::from_millis(20), outbox.next()).await.is_err(), "and nothing else");
    herald.abort();
}

/// Pages that end early are gone on from, not walked to.
#[tokio::test]
async fn whoever_is_behind_reads_nothing_twice_however_large_it_is() {
    let entries = quiet_then_joined(200);
    let mut rig = Rig::new(Bounds { operations: 1, page_bytes: 1, pages: 4, ..Bounds::default() });
    rig.publish(&entries);
    let mut scans = 0;
    for behind in [entries.len(), 50] {
        let place = Cursor::new(entries[entries.len() - behind].epoch - 1, 0);
        let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
        outbox.attach(observer(EventName::ALL), place, true);
        let due = due(&entries, &rig.state.world, &observer(EventName::ALL), place);
        for expected in due {
            assert_eq!(told(&next(&mut outbox).await), expected);
        }
        let before = std::mem::replace(&mut scans, rig.watch.scans.load(Ordering::SeqCst));
        assert!(scans - before <= behind + 2, "{} pages of one operation for {behind}", scans - before);
    }
}

/// An operation that has left memory is still somebody's whose reply may be on its way.
#[tokio::test]
async fn what_comes_from_the_log_waits_for_its_reply_too() {
    let entries = quiet_then_joined(20);
    let mut rig = Rig::new(Bounds { operations: 2, ..Bounds::default() });
    let (own, others) = entries.split_at(6);
    rig.publish_of(own, Some(7));
    rig.publish(others);
    let due = due(&entries, &rig.state.world, &observer(EventName::ALL), Cursor::default());
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), Some(7));
    outbox.attach(observer(EventName::ALL), Cursor::default(), true);
    for expected in due.into_iter().filter(|(place, ..)| place.epoch < own[5].epoch) {
        let early = timeout(Duration::from_millis(20), outbox.next()).await;
        assert!(early.is_err(), "{expected:?} is not replied to");
        outbox.replied(expected.0.epoch);
        assert_eq!(told(&next(&mut outbox).await), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_read_is_tried_again_and_nothing_is_lost() {
    let entries = quiet_then_joined(50);
    let mut rig = Rig::new(Bounds { operations: 2, page_epochs: 16, ..Bounds::default() });
    let herald = tokio::spawn(Arc::clone(&rig.feed).ring());
    rig.publish(&entries);
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
    outbox.attach(observer(EventName::ALL), Cursor::default(), true);
    let due = due(&entries, &rig.state.world, &observer(EventName::ALL), Cursor::default());
    for (nth, expected) in due.into_iter().enumerate() {
        if nth % 10 == 0 {
            rig.watch.failing.store(2, Ordering::SeqCst);
        }
        assert_eq!(told(&next(&mut outbox).await), expected);
    }
    assert!(rig.watch.scans.load(Ordering::SeqCst) > 8, "it did fail on the way");
    herald.abort();
}

#[tokio::test(start_paused = true)]
async fn debounced_the_last_state_comes_when_the_pause_is_over() {
    let flap = |agent| {
        [
            Step::Deregister { agent: 0, target: agent, over: None },
            Step::Register { agent, role: 0, over: None },
        ]
    };
    let steps: Vec<_> = std::iter::repeat_with(|| flap(1)).take(5).flatten().chain(flap(2)).collect();
    let (entries, _) = past(&steps);
    let mut rig = Rig::new(Bounds::default());
    let herald = tokio::spawn(Arc::clone(&rig.feed).ring());
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
    let listener = Listener::observer(subscription("watch", &[EventName::AgentJoined], 1_000));
    outbox.attach(listener, Cursor::default(), true);
    rig.publish(&entries);
    let joined: Vec<_> = entries
        .iter()
        .filter(|entry| entry.events.iter().any(|event| matches!(event, Event::Registered { .. })))
        .map(|entry| entry.epoch)
        .collect();
    let began = Instant::now();
    let mut heard = Vec::new();
    for _ in 0..5 {
        let push = next(&mut outbox).await;
        heard.push((told(&push).0.epoch, began.elapsed().as_millis()));
    }
    // ada, bob, eve at once; a pause later the last of bob and of eve.
    assert_eq!(heard[..3], [(joined[0], 0), (joined[1], 0), (joined[2], 0)]);
    let last = [joined[joined.len() - 2], joined[joined.len() - 1]];
    assert_eq!(heard[3..].iter().map(|(epoch, _)| *epoch).collect::<Vec<_>>(), last);
    assert!(heard[3..].iter().all(|(_, ms)| (1_000..1_010).contains(ms)), "{heard:?}");
    assert!(timeout(Duration::from_secs(3_600), outbox.next()).await.is_err(), "and nothing else");
    herald.abort();
}

/// The place of a stream that waits moves on with the Field, so that a poll that heard nothing asks from there.
#[tokio::test]
async fn the_place_of_who_hears_nothing_moves_on() {
    let entries = quiet_then_joined(100);
    let mut rig = Rig::new(Bounds { operations: 8, ..Bounds::default() });
    let herald = tokio::spawn(Arc::clone(&rig.feed).ring());
    let mut outbox = Outbox::new(Arc::clone(&rig.feed), None);
    outbox.attach(observer(&[EventName::AgentFailed]), Cursor::default(), true);
    assert!(outbox.next().now_or_never().is_none());
    trickle(&mut rig, &entries).await;
    assert!(outbox.next().now_or_never().is_none());
    assert_eq!(outbox.cursor().map(|cursor| cursor.epoch), Some(rig.state.world.last_epoch));
    assert_eq!(rig.watch.scans.load(Ordering::SeqCst), 0);
    herald.abort();
}

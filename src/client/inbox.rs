//! What was pushed and not yet taken: one bounded queue for each subscription, and its place in the stream.
//!
//! A taker may be slower than the hub. Its queue is bounded; what does not fit is let go, the subscription counts as
//! *behind*, and once half of the queue is taken it is attached again after the last notification that did fit. So
//! nothing is lost, memory is bounded, and replies to calls on the same connection still come through.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::error::ClientError;
use crate::limits::{NOTIFICATIONS_QUEUED_MAX, NOTIFICATIONS_QUEUED_MAX_BYTES};
use crate::protocol::{Cursor, Notification, Subscribed};

/// What takers tell the link.
#[derive(Debug, Default)]
pub(super) struct Bell {
    /// For the receiving half: there is room again, or somebody waits for a reply.
    pub room: Notify,
    /// For the sending half: a subscription wants to be attached again.
    pub attach: Notify,
}

/// How a subscription stands with the hub on the current connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// What is pushed is queued.
    Live,
    /// Something did not fit: what is pushed is let go until there is room and it is attached again.
    Behind,
    /// It is to be attached again.
    Detached,
    /// That has been asked for; what is pushed before the answer belongs to the attachment before.
    Attaching,
}

/// One subscription's queue, between the link and the taker.
#[derive(Debug)]
pub(super) struct Inbox {
    state: Mutex<State>,
    bell: Arc<Bell>,
    /// Whether what is let go can be asked for again.
    resumable: bool,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<(Notification, usize)>,
    bytes: usize,
    standing: Standing,
    /// The queue has been full, and half of it is not taken yet.
    full: bool,
    /// Everything up to here was queued.
    reached: Cursor,
    /// The cursor of what was taken last.
    taken: Cursor,
    /// Cursors of a debounced subscription may come more than once.
    debounced: bool,
    /// The agent was registered anew for this subscription, and the hub has not taken it back yet.
    returning: bool,
    /// Notifications that were let go for good.
    missed: u64,
    /// Nothing is queued any more, and why.
    end: Option<Option<ClientError>>,
    taker: Option<Waker>,
}

impl Inbox {
    /// The inbox of a subscription that is about to be attached.
    pub fn new(bell: Arc<Bell>) -> Arc<Self> {
        Self::with(bell, true, Standing::Attaching)
    }

    /// The inbox of what is pushed without a subscription, which cannot be resumed.
    pub fn direct(bell: Arc<Bell>) -> Arc<Self> {
        Self::with(bell, false, Standing::Live)
    }

    fn with(bell: Arc<Bell>, resumable: bool, standing: Standing) -> Arc<Self> {
        let state = State {
            queue: VecDeque::new(),
            bytes: 0,
            standing,
            full: false,
            reached: Cursor::default(),
            taken: Cursor::default(),
            debounced: false,
            returning: false,
            missed: 0,
            end: None,
            taker: None,
        };
        Arc::new(Self { state: Mutex::new(state), bell, resumable })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hub has attached the subscription; the first time this also says from where it is told.
    pub fn attached(&self, answer: &Subscribed, first: bool) {
        let mut state = self.state();
        state.standing = Standing::Live;
        state.debounced = answer.subscription.debounce_ms > 0;
        state.returning = false;
        if first {
            (state.reached, state.taken) = (answer.cursor, answer.cursor);
        }
    }

    /// Queues a notification, unless it was queued before, or there is no room.
    pub fn offer(&self, notification: Notification, bytes: usize) {
        let mut state = self.state();
        let known = !state.debounced && notification.cursor <= state.reached;
        if state.end.is_some() || state.standing != Standing::Live || known && self.resumable {
            return;
        }
        if !state.has_room(bytes) {
            if self.resumable {
                state.standing = Standing::Behind;
            } else {
                state.missed += 1;
            }
            return;
        }
        state.reached = state.reached.max(notification.cursor);
        state.bytes += bytes;
        state.queue.push_back((notification, bytes));
        state.full |= !state.has_room(0);
        if let Some(taker) = state.taker.take() {
            drop(state);
            taker.wake();
        }
    }

    /// The next notification, or the end; an error comes once, as the last.
    pub fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Result<Notification, ClientError>>> {
        let mut state = self.state();
        if let Some((notification, bytes)) = state.queue.pop_front() {
            state.bytes -= bytes;
            state.taken = state.taken.max(notification.cursor);
            if state.is_half_empty() && (state.full || state.standing == Standing::Behind) {
                state.full = false;
                self.bell.room.notify_one();
                if state.standing == Standing::Behind {
                    self.bell.attach.notify_one();
                }
            }
            return Poll::Ready(Some(Ok(notification)));
        }
        if let Some(end) = &mut state.end {
            return Poll::Ready(end.take().map(Err));
        }
        if state.taker.as_ref().is_none_or(|known| !known.will_wake(context.waker())) {
            state.taker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// From where to attach the subscription again, if that is to be done now: because the connection is a new one, or
    /// because the taker has caught up. It counts as asked for then.
    pub fn reattach(&self, new_connection: bool) -> Option<Cursor> {
        let mut state = self.state();
        let due = match state.standing {
            Standing::Live | Standing::Attaching => new_connection,
            Standing::Behind => state.is_half_empty(),
            Standing::Detached => true,
        };
        if !self.resumable || state.end.is_some() || !due {
            return None;
        }
        state.standing = Standing::Attaching;
        Some(state.reached)
    }

    /// The hub did not attach it; it is to be tried again.
    pub fn detach(&self) {
        self.state().standing = Standing::Detached;
    }

    /// Notes that the agent is registered anew for its sake; false if that was done already, and was of no use.
    pub fn may_return(&self) -> bool {
        !std::mem::replace(&mut self.state().returning, true)
    }

    /// Nothing more comes, but for what is queued.
    pub fn end(&self, why: Option<ClientError>) {
        let mut state = self.state();
        state.end.get_or_insert(why);
        if let Some(taker) = state.taker.take() {
            drop(state);
            taker.wake();
        }
    }

    /// Whether reading on is of use to it: it has room, or awaits an answer.
    pub fn is_open(&self) -> bool {
        let state = self.state();
        match state.standing {
            Standing::Live => !state.full,
            Standing::Attaching => true,
            Standing::Behind | Standing::Detached => false,
        }
    }

    /// Whether what is let go comes again.
    pub fn is_resumable(&self) -> bool {
        self.resumable
    }

    /// The cursor of what was taken last, or from where the subscription is told.
    pub fn taken(&self) -> Cursor {
        self.state().taken
    }

    /// How many notifications were let go for good.
    pub fn missed(&self) -> u64 {
        self.state().missed
    }
}

impl State {
    /// Room for a notification of this size; one always fits into an empty queue.
    fn has_room(&self, bytes: usize) -> bool {
        self.queue.is_empty()
            || self.queue.len() < NOTIFICATIONS_QUEUED_MAX
                && self.bytes + bytes < NOTIFICATIONS_QUEUED_MAX_BYTES
    }

    fn is_half_empty(&self) -> bool {
        self.queue.len() <= NOTIFICATIONS_QUEUED_MAX / 2 && self.bytes <= NOTIFICATIONS_QUEUED_MAX_BYTES / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{EventName, Subscription};
    use futures::FutureExt;

    fn notice(epoch: u64) -> Notification {
        Notification {
            subscription_id: "s".into(),
            event: EventName::MemoryRecorded,
            epoch,
            relevance_score: 1.0,
            summary: String::new(),
            memory_unit_id: None,
            conflict_id: None,
            requires_action: false,
            cursor: Cursor::new(epoch, 0),
            agent_id: "a".into(),
            task_id: None,
            memory_unit: None,
        }
    }

    fn answer(cursor: u64, debounce_ms: u64) -> Subscribed {
        let subscription = Subscription {
            id: "s".into(),
            events: vec![EventName::MemoryRecorded],
            min_relevance: 0.0,
            debounce_ms,
            include_unit: false,
        };
        Subscribed {
            status: "ok".into(),
            subscription,
            cursor: Cursor::new(cursor, 0),
            websocket_url: None,
            events_url: None,
        }
    }

    fn live(debounce_ms: u64) -> Arc<Inbox> {
        let inbox = Inbox::new(Arc::default());
        inbox.attached(&answer(10, debounce_ms), true);
        inbox
    }

    fn take(inbox: &Inbox) -> Option<Option<Result<u64, ClientError>>> {
        let next = std::future::poll_fn(|context| inbox.poll_take(context));
        next.now_or_never().map(|next| next.map(|next| next.map(|notice| notice.epoch)))
    }

    fn epochs(inbox: &Inbox) -> Vec<u64> {
        std::iter::from_fn(|| take(inbox)?.map(Result::unwrap)).collect()
    }

    #[test]
    fn what_was_queued_is_not_queued_again() {
        let inbox = live(0);
        for epoch in [9, 10, 11, 12, 12, 11, 13] {
            inbox.offer(notice(epoch), 1);
        }
        assert_eq!(epochs(&inbox), [11, 12, 13]);
        assert_eq!(inbox.taken(), Cursor::new(13, 0));
        // A debounced subscription's cursors stand still while something is held back.
        let inbox = live(5);
        for epoch in [11, 11, 12] {
            inbox.offer(notice(epoch), 1);
        }
        assert_eq!(epochs(&inbox), [11, 11, 12]);
    }

    #[test]
    fn who_is_behind_goes_on_where_the_queue_ended() {
        let inbox = live(0);
        let full = 10 + NOTIFICATIONS_QUEUED_MAX as u64;
        (11..=full).for_each(|epoch| inbox.offer(notice(epoch), 1));
        assert!(!inbox.is_open() && inbox.reattach(false).is_none(), "full, and nothing was let go yet");
        inbox.offer(notice(full + 1), 1);
        assert_eq!(inbox.reattach(false), None, "behind, and there is no room yet");
        assert!(take(&inbox).is_some());
        inbox.offer(notice(full + 2), 1);
        let mut got: Vec<u64> =
            (0..NOTIFICATIONS_QUEUED_MAX / 2).map(|_| take(&inbox).unwrap().unwrap().unwrap()).collect();
        assert_eq!(got.pop(), Some(11 + NOTIFICATIONS_QUEUED_MAX as u64 / 2));
        assert_eq!(inbox.bell.attach.notified().now_or_never(), Some(()));
        assert_eq!(inbox.reattach(false), Some(Cursor::new(full, 0)));
        inbox.offer(notice(full + 3), 1);
        assert!(inbox.is_open() && inbox.reattach(false).is_none(), "asked for once");
        inbox.attached(&answer(full, 0), false);
        (full + 1..=full + 3).for_each(|epoch| inbox.offer(notice(epoch), 1));
        let rest = epochs(&inbox);
        assert_eq!(rest.last(), Some(&(full + 3)));
        assert!(rest.windows(2).all(|pair| pair[0] + 1 == pair[1]), "no hole where something was let go");
    }

    #[test]
    fn bytes_are_bounded_and_one_always_fits() {
        let inbox = live(0);
        inbox.offer(notice(11), 2 * NOTIFICATIONS_QUEUED_MAX_BYTES);
        inbox.offer(notice(12), 1);
        assert!(!inbox.is_open());
        assert_eq!(epochs(&inbox), [11]);
        assert_eq!(inbox.reattach(false), Some(Cursor::new(11, 0)));
    }

    #[test]
    fn a_new_connection_attaches_all_but_who_has_no_room() {
        let inbox = live(0);
        inbox.offer(notice(11), 1);
        assert_eq!(inbox.reattach(true), Some(Cursor::new(11, 0)));
        assert_eq!(inbox.reattach(true), Some(Cursor::new(11, 0)), "the answer was lost with the connection");
        inbox.detach();
        assert_eq!(inbox.reattach(false), Some(Cursor::new(11, 0)));
        inbox.attached(&answer(11, 0), false);
        (12..5_000).for_each(|epoch| inbox.offer(notice(epoch), 1));
        assert_eq!(inbox.reattach(true), None);
        assert!(inbox.may_return() && !inbox.may_return());
    }

    #[test]
    fn an_end_comes_after_what_is_queued_and_its_reason_once() {
        let inbox = live(0);
        inbox.offer(notice(11), 1);
        inbox.end(Some(ClientError::Disconnected("x".into())));
        inbox.end(None);
        inbox.offer(notice(12), 1);
        assert_eq!(take(&inbox).unwrap().unwrap().unwrap(), 11);
        assert!(matches!(take(&inbox), Some(Some(Err(ClientError::Disconnected(_))))));
        assert!(matches!(take(&inbox), Some(None)) && matches!(take(&inbox), Some(None)));
        assert_eq!(inbox.reattach(true), None);
    }

    #[test]
    fn what_cannot_come_again_is_counted() {
        let inbox = Inbox::direct(Arc::default());
        (1..=NOTIFICATIONS_QUEUED_MAX as u64 + 3).for_each(|epoch| inbox.offer(notice(epoch), 1));
        assert_eq!((inbox.missed(), epochs(&inbox).len()), (3, NOTIFICATIONS_QUEUED_MAX));
        assert_eq!(inbox.reattach(true), None);
    }
}

//! The subscriptions of one client: which inbox a push belongs to, and what to send to attach them again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::debug;

use super::error::ClientError;
use super::inbox::{Bell, Inbox};
use super::pending::Effect;
use crate::protocol::{AgentStatus, Cursor, ErrorBody, ErrorCode, Notification, Subscribed};

/// Every inbox that something can be pushed to.
#[derive(Debug, Default)]
pub(super) struct Attached {
    inner: Mutex<Inner>,
    pub bell: Arc<Bell>,
    /// The hub could not attach something just now.
    put_off: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the subscription's id.
    inboxes: HashMap<Box<str>, Arc<Inbox>>,
    /// Which message asks to attach which inbox again.
    asked: HashMap<u64, Arc<Inbox>>,
    /// How the agent was registered over this client.
    registration: Option<Box<RawValue>>,
    /// It failed meanwhile, and is to be registered again.
    returns: bool,
    /// The link has ended.
    over: bool,
}

/// How REGISTER was answered.
#[derive(Deserialize)]
struct Status {
    status: String,
}

/// What to send to attach inboxes again.
#[derive(Debug, Default)]
pub(super) struct Again {
    /// First REGISTER, with this payload.
    pub registration: Option<Box<RawValue>>,
    /// Then SUBSCRIBE for each of these.
    pub inboxes: Vec<(Box<str>, Cursor, Arc<Inbox>)>,
}

impl Attached {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is pushed under this id goes there from now on. Whoever took it before is told that it ended.
    pub fn enter(&self, id: &str, inbox: Arc<Inbox>) {
        let mut inner = self.inner();
        if inner.over {
            return inbox.end(None);
        }
        if let Some(before) = inner.inboxes.insert(id.into(), inbox) {
            before.end(None);
        }
    }

    /// Nobody takes from this inbox any more.
    pub fn leave(&self, inbox: &Arc<Inbox>) {
        self.inner().inboxes.retain(|_, known| !Arc::ptr_eq(known, inbox));
        // It may have been what kept the link from waiting, or from reading.
        self.bell.room.notify_one();
    }

    /// The subscription has ended.
    pub fn end(&self, id: &str) {
        if let Some(inbox) = self.inner().inboxes.remove(id) {
            inbox.end(None);
        }
    }

    /// All of them have ended.
    pub fn end_all(&self, why: impl Fn() -> Option<ClientError>) {
        let inboxes = std::mem::take(&mut self.inner().inboxes);
        inboxes.values().for_each(|inbox| inbox.end(why()));
    }

    /// The link has ended: nothing will ever be pushed again.
    pub fn close(&self) {
        self.inner().over = true;
        self.end_all(|| None);
    }

    /// Follows from a good answer to a call, whatever the caller makes of it.
    pub fn follow(&self, effect: &Effect, answer: &RawValue) {
        match effect {
            Effect::None => {}
            Effect::Registers(payload) => {
                let status = serde_json::from_str::<Status>(answer.get()).map(|answer| answer.status);
                if status.is_ok_and(|status| status == "registered") {
                    self.inner().registration = Some(payload.clone());
                }
            }
            Effect::Leaves => {
                self.inner().registration = None;
                self.end_all(|| None);
            }
            Effect::Attaches(inbox) => {
                // Where it cannot be read, the caller says so.
                if let Ok(answer) = serde_json::from_str::<Subscribed>(answer.get()) {
                    inbox.attached(&answer, true);
                    self.enter(&answer.subscription.id, Arc::clone(inbox));
                }
            }
            Effect::Ends(id) => self.end(id),
        }
    }

    /// Hands a push to its inbox. `id` is the message's, `push-<subscription>-<cursor>`.
    pub fn push(&self, id: &str, payload: &RawValue) {
        let subscription = id.strip_prefix("push-").and_then(|rest| rest.rsplit_once('-'));
        let inbox = subscription.and_then(|(name, _)| self.inner().inboxes.get(name).cloned());
        let Some(inbox) = inbox else {
            return debug!(id, "a frame that answers nothing and that nobody listens for is ignored");
        };
        match serde_json::from_str::<Notification>(payload.get()) {
            Ok(notification) => inbox.offer(notification, payload.get().len()),
            Err(error) => {
                // Going on would leave a hole that nobody sees.
                inbox.end(Some(ClientError::Protocol(
                    format!("unreadable notification {id}: {error}").into(),
                )));
                self.leave(&inbox);
            }
        }
    }

    /// What is to be attached again: everything that has room on a new connection, else what has asked for it.
    pub fn again(&self, new_connection: bool) -> Again {
        self.put_off.store(false, Ordering::Relaxed);
        let mut inner = self.inner();
        if new_connection {
            // What was asked on the connection before is not answered any more.
            inner.asked.clear();
        }
        let mut inboxes: Vec<_> = inner
            .inboxes
            .iter()
            .filter_map(|(id, inbox)| Some((id.clone(), inbox.reattach(new_connection)?, Arc::clone(inbox))))
            .collect();
        inboxes.sort_by(|one, other| one.0.cmp(&other.0));
        let returns = std::mem::take(&mut inner.returns);
        Again { registration: inner.registration.clone().filter(|_| returns), inboxes }
    }

    /// The message of this number asks to attach an inbox again.
    pub fn asked(&self, number: u64, inbox: Arc<Inbox>) {
        self.inner().asked.insert(number, inbox);
        // Whoever paused reads on: there is an answer to come.
        self.bell.room.notify_one();
    }

    /// Takes the answer to a message that asked for that; false when it did not.
    pub fn answered(&self, number: u64, outcome: &Result<Box<RawValue>, ClientError>) -> bool {
        let Some(inbox) = self.inner().asked.remove(&number) else { return false };
        match outcome {
            Ok(answer) => match serde_json::from_str::<Subscribed>(answer.get()) {
                Ok(answer) => inbox.attached(&answer, false),
                Err(error) => {
                    let why = format!("unreadable SUBSCRIBE: {error}");
                    self.give_up(&inbox, ClientError::Protocol(why.into()));
                }
            },
            Err(ClientError::Refused(body)) => self.refused(&inbox, body),
            Err(_) => {
                inbox.detach();
                self.put_off.store(true, Ordering::Relaxed);
            }
        }
        true
    }

    /// What a no to attaching means: come back later, come back as who you are, or never.
    fn refused(&self, inbox: &Arc<Inbox>, body: &ErrorBody) {
        match body.code {
            ErrorCode::Overloaded
            | ErrorCode::RateLimited
            | ErrorCode::StorageFull
            | ErrorCode::InternalError => {
                inbox.detach();
                self.put_off.store(true, Ordering::Relaxed);
            }
            // Away for too long. An agent that has left did so on purpose, and its subscriptions are gone.
            ErrorCode::AgentNotRegistered
                if body.details["status"] == AgentStatus::Failed.name()
                    && self.inner().registration.is_some()
                    && inbox.may_return() =>
            {
                self.inner().returns = true;
                inbox.detach();
                self.bell.attach.notify_one();
            }
            _ => self.give_up(inbox, ClientError::Refused(Box::new(body.clone()))),
        }
    }

    fn give_up(&self, inbox: &Arc<Inbox>, why: ClientError) {
        inbox.end(Some(why));
        self.leave(inbox);
    }

    /// Whether something is to be tried again after a pause.
    pub fn is_put_off(&self) -> bool {
        self.put_off.load(Ordering::Relaxed)
    }

    /// Whether there are subscriptions and none of them has room: then reading on would only let things go.
    pub fn is_full(&self) -> bool {
        let inner = self.inner();
        let mut subscribed = inner.inboxes.values().filter(|inbox| inbox.is_resumable()).peekable();
        subscribed.peek().is_some() && !subscribed.any(|inbox| inbox.is_open())
    }
}

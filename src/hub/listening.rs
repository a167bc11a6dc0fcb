//! How a door begins to listen: outboxes for connections, streams and polls.

use std::sync::Arc;

use super::answer::Payload;
use super::field::Field;
use super::outbox::Outbox;
use super::sessions::ConnectionId;
use crate::field::Listener;
use crate::protocol::{Cursor, Operation, Refusal, Subscribed, Subscription, future_cursor, unsupported};

impl Field {
    /// What a connection is pushed: nothing yet.
    pub fn outbox(&self, connection: ConnectionId) -> Outbox {
        Outbox::new(Arc::clone(self.feed()), Some(connection.0))
    }

    /// A stream for one listener, after a place or from now on.
    ///
    /// # Errors
    /// `INVALID_MESSAGE` naming `key` when the place is ahead of the Field.
    pub fn stream(&self, listener: Listener, after: Option<Cursor>, key: &str) -> Result<Outbox, Refusal> {
        if let Some(after) = after {
            self.check_place(after, key)?;
        }
        let mut outbox = Outbox::new(Arc::clone(self.feed()), None);
        self.watch(&mut outbox, listener, after);
        Ok(outbox)
    }

    /// Attaches a listener that lives as long as the outbox, after a place or from now on.
    pub fn watch(&self, outbox: &mut Outbox, listener: Listener, after: Option<Cursor>) {
        outbox.attach(listener, after.unwrap_or_else(|| self.feed().now(self.heard())), true);
    }

    /// Whether a place is one that the Field has come to.
    ///
    /// # Errors
    /// `INVALID_MESSAGE` naming `key` when it is ahead of the Field.
    pub fn check_place(&self, after: Cursor, key: &str) -> Result<(), Refusal> {
        let clock = self.heard();
        if after.epoch > clock { Err(future_cursor(key, after, clock)) } else { Ok(()) }
    }

    /// What the Field does by itself is told at once, and shown by no reply yet.
    fn heard(&self) -> u64 {
        self.clock().max(self.feed().head())
    }

    /// Attaches to a connection's outbox what its SUBSCRIBE was answered with. `resumes`: whether it named a place of
    /// its own to go on from.
    pub fn attach(&self, outbox: &mut Outbox, agent: &str, epoch: u64, answer: &Payload, resumes: bool) {
        let world = self.feed().world();
        let agent = world.agent_no(agent).map(|no| Arc::clone(&world.agent(no).agent.id));
        // A stored reply to something else than `subscribe` has no subscription in it.
        let (Some(agent), Ok(subscribed)) = (agent, serde_json::from_str::<Subscribed>(answer.get())) else {
            return;
        };
        // A repeated message may tell of one that has ended since: then there is nothing to attach.
        let known = world.subscriptions.get(&subscribed.subscription.id);
        if known.is_none_or(|known| world.agent(known.agent).agent.id != agent) {
            return;
        }
        let listener = Listener::new(agent, Arc::new(subscribed.subscription), epoch);
        outbox.attach(listener, subscribed.cursor, resumes);
    }

    /// Whether an operation is served here.
    ///
    /// # Errors
    /// `UNSUPPORTED_OPERATION` where it is not.
    pub fn serves(&self, operation: Operation) -> Result<(), Refusal> {
        let level = self.policy().level;
        if operation.is_served_at(level) { Ok(()) } else { Err(unsupported(operation, level)) }
    }

    /// A known subscription and whose it is.
    pub fn subscription(&self, id: &str) -> Option<Listener> {
        let world = self.feed().world();
        let record = world.subscriptions.get(id)?;
        let agent = Arc::clone(&world.agent(record.agent).agent.id);
        Some(Listener::new(agent, Arc::clone(&record.subscription), world.last_epoch))
    }

    /// A listener on behalf of an agent that is here, for as long as it listens.
    pub fn listener(&self, agent: &str, subscription: Subscription) -> Option<Listener> {
        let world = self.feed().world();
        let record = world.agent(world.agent_no(agent)?);
        let agent = record.is_active().then(|| Arc::clone(&record.agent.id))?;
        Some(Listener::passing(agent, Arc::new(subscription), world.last_epoch))
    }
}

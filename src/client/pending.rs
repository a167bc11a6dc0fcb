//! The messages that wait for their replies, in the order in which they were sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::error::ClientError;
use super::inbox::Inbox;

/// Where the reply to a message goes.
pub(super) type Reply = oneshot::Sender<Result<Box<RawValue>, ClientError>>;

/// What a good reply to a message means for the client itself.
#[derive(Debug)]
pub(super) enum Effect {
    /// Nothing: it is the caller's alone.
    None,
    /// The agent is registered, with this payload.
    Registers(Box<RawValue>),
    /// The agent has left.
    Leaves,
    /// A subscription is attached, and this is where it is pushed to.
    Attaches(Arc<Inbox>),
    /// The subscription of this id has ended.
    Ends(Box<str>),
}

/// A message that has got its reply.
#[derive(Debug)]
pub(super) struct Answered {
    pub reply: Reply,
    pub effect: Effect,
}

/// How many messages may wait before those whose callers are gone are looked for.
const SWEEP_FIRST: usize = 512;

/// How many connections a message may see the end of. Calls usually run out of patience first.
const REPEATS_MAX: u32 = 10;

#[derive(Debug)]
struct Waiting {
    /// The whole frame, as it was first sent: a repeat must be the same message.
    frame: Utf8Bytes,
    reply: Reply,
    effect: Effect,
    /// On how many connections it was sent again.
    repeated: u32,
}

/// The unanswered messages of one client, by their numbers.
#[derive(Debug)]
pub(super) struct Pending {
    waiting: BTreeMap<u64, Waiting>,
    sweep_at: usize,
}

impl Default for Pending {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), sweep_at: SWEEP_FIRST }
    }
}

impl Pending {
    /// Enters a message that is about to be sent.
    pub fn insert(&mut self, number: u64, frame: Utf8Bytes, reply: Reply, effect: Effect) {
        if self.waiting.len() >= self.sweep_at {
            self.forget_abandoned();
            self.sweep_at = SWEEP_FIRST.max(self.waiting.len() * 2);
        }
        self.waiting.insert(number, Waiting { frame, reply, effect, repeated: 0 });
    }

    /// Takes out a message that has got its reply; nothing when none waits under this number.
    pub fn take(&mut self, number: u64) -> Option<Answered> {
        let Waiting { reply, effect, .. } = self.waiting.remove(&number)?;
        Some(Answered { reply, effect })
    }

    /// Whether anybody waits for a reply.
    pub fn is_awaited(&self) -> bool {
        self.waiting.values().any(|waiting| !waiting.reply.is_closed())
    }

    /// The frames to send again on a new connection, oldest first. One that no connection has outlived
    /// fails: it may well be what ends them.
    pub fn repeats(&mut self) -> Vec<Utf8Bytes> {
        self.forget_abandoned();
        let too_often = |w: &mut Waiting| w.repeated >= REPEATS_MAX;
        for (_, waiting) in self.waiting.extract_if(.., |_, w| too_often(w)) {
            let why = "every connection was lost before the hub answered this message";
            // A caller that left needs no telling.
            let _ = waiting.reply.send(Err(ClientError::Disconnected(why.into())));
        }
        self.waiting.values_mut().for_each(|w| w.repeated += 1);
        self.waiting.values().map(|w| w.frame.clone()).collect()
    }

    /// The number of the largest message, the one that the hub must have meant by "too big".
    pub fn largest(&self) -> Option<u64> {
        self.waiting.iter().max_by_key(|(_, w)| w.frame.len()).map(|(number, _)| *number)
    }

    /// Fails all of them.
    pub fn fail_all(&mut self, why: impl Fn() -> ClientError) {
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            // A caller that left needs no telling.
            let _ = waiting.reply.send(Err(why()));
        }
    }

    fn forget_abandoned(&mut self) {
        self.waiting.retain(|_, w| !w.reply.is_closed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn repeats_what_is_unanswered_and_wanted_in_order() {
        let mut pending = Pending::default();
        let (first, mut answered) = oneshot::channel();
        let (second, dropped) = oneshot::channel();
        let (third, _kept) = oneshot::channel();
        let (fourth, _kept_too) = oneshot::channel();
        for (number, reply) in [(1, first), (2, second), (9, third), (10, fourth)] {
            pending.insert(number, format!("frame {number}").into(), reply, Effect::None);
        }
        drop(dropped);
        pending.take(1).unwrap().reply.send(Ok(raw("1"))).unwrap();
        assert!(pending.take(1).is_none(), "a second reply has no taker");
        assert_eq!(answered.try_recv().unwrap().unwrap().get(), "1");
        assert!(pending.is_awaited());
        assert_eq!(pending.repeats(), ["frame 9", "frame 10"]);
    }

    #[test]
    fn abandoned_calls_do_not_pile_up() {
        let mut pending = Pending::default();
        for number in 0..100_000 {
            let (reply, _) = oneshot::channel();
            pending.insert(number, "x".into(), reply, Effect::None);
        }
        assert!(pending.waiting.len() <= SWEEP_FIRST && !pending.is_awaited());
    }

    #[test]
    fn what_ends_every_connection_is_given_up() {
        let mut pending = Pending::default();
        let (reply, mut answered) = oneshot::channel();
        pending.insert(1, "poison".into(), reply, Effect::None);
        for _ in 0..REPEATS_MAX {
            assert_eq!(pending.repeats().len(), 1);
        }
        assert!(pending.repeats().is_empty());
        assert!(matches!(answered.try_recv(), Ok(Err(ClientError::Disconnected(_)))));
    }
}

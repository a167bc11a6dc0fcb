//! How much of large answers may wait for peers to take them, all connections together.
//!
//! A page of events or units is made whole before it is sent. A peer that asks and does not read would hold it for as
//! long as it is let, and a thousand such peers would hold gigabytes: so there is one budget for all, and whoever finds
//! it used up is told to come back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limits::{ANSWERS_MAX_BYTES, QUEUE_PATIENCE_MS};
use crate::protocol::{ErrorCode, Refusal};

/// What one permit stands for.
const UNIT_BYTES: usize = 1_024;

/// The budget.
#[derive(Debug, Clone)]
pub struct Answers(Arc<Semaphore>);

impl Default for Answers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ANSWERS_MAX_BYTES / UNIT_BYTES)))
    }
}

/// Room for an answer.
#[derive(Debug)]
pub struct Room(OwnedSemaphorePermit);

/// An answer with its room, which is given back once it is sent or given up.
struct Held {
    text: String,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Answers {
    /// Room for an answer of at most so many bytes; waits a while for it.
    ///
    /// # Errors
    /// `OVERLOADED` where other peers do not take theirs.
    pub async fn room(&self, most: usize) -> Result<Room, Refusal> {
        let permits = u32::try_from(most.min(ANSWERS_MAX_BYTES).div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let acquired = Arc::clone(&self.0).acquire_many_owned(permits);
        match timeout(Duration::from_millis(QUEUE_PATIENCE_MS), acquired).await {
            Ok(Ok(permit)) => Ok(Room(permit)),
            _ => Err(Refusal::new(
                ErrorCode::Overloaded,
                "Too many large answers wait for those who asked for them.",
                "Ask again after the time given, for less at a time; a stream of events is not bound by this.",
            )
            .with("retry_after_ms", json!(1_000))),
        }
    }
}

impl Room {
    /// Puts an answer into it; what it does not need is given back at once.
    pub fn hold(mut self, text: String) -> Bytes {
        let surplus = self.0.num_permits().saturating_sub(text.len().div_ceil(UNIT_BYTES));
        drop(self.0.split(surplus));
        Bytes::from_owner(Held { text, _room: self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_nobody_takes_leaves_no_room_for_more() {
        let answers = Answers::default();
        let small = answers.room(ANSWERS_MAX_BYTES).await.unwrap().hold("x".repeat(10 * UNIT_BYTES));
        let large = answers.room(ANSWERS_MAX_BYTES - 10 * UNIT_BYTES).await.unwrap();
        let refusal = answers.room(UNIT_BYTES).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::Overloaded);
        drop(small);
        let part = answers.room(10 * UNIT_BYTES).await.unwrap();
        drop((large, part));
        assert!(answers.room(2 * ANSWERS_MAX_BYTES).await.is_ok(), "more than all is all");
    }
}

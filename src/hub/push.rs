//! A notification on its way to one reader: what is its own, in front of what is everybody's.

use std::fmt::Write as _;
use std::sync::Arc;

use super::told::{Page, Told};
use crate::field::{Concern, Listener};
use crate::protocol::{Cursor, PROTOCOL, VERSION};

/// Names as they stand in JSON, quotes included.
pub(super) struct Labels {
    subscription: Box<str>,
    agent: Box<str>,
}

impl Labels {
    pub fn of(listener: &Listener) -> Self {
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default().into_boxed_str();
        Self {
            subscription: quoted(&listener.subscription.id),
            agent: quoted(listener.agent.as_deref().unwrap_or_default()),
        }
    }
}

/// A notification for one reader. Cheap to make; its text is put together when it is sent.
pub struct Push {
    /// The notices among which is the one that it tells, at this place.
    pub(super) page: Page,
    pub(super) at: usize,
    pub(super) labels: Arc<Labels>,
    pub(super) with_unit: bool,
    pub(super) relevance: f32,
    pub(super) requires_action: bool,
    /// Where to resume after it.
    pub(super) cursor: Cursor,
}

impl std::fmt::Debug for Push {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Push").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

/// Room for what stands around the shared part.
const AROUND_BYTES: usize = 320;

impl Push {
    fn told(&self) -> &Told {
        &self.page[self.at]
    }

    /// Where to resume after it.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The entity that it is about.
    pub fn concern(&self) -> Concern {
        self.told().notice.concern()
    }

    /// The name of what happened.
    pub fn event(&self) -> &'static str {
        self.told().notice.event.name()
    }

    /// The notification as a JSON object.
    pub fn payload(&self) -> String {
        let mut text = self.room();
        self.write_payload(&mut text);
        text
    }

    /// The text frame of a WebSocket push (wire, section 2).
    pub fn frame(&self) -> String {
        let mut text = self.room();
        let Labels { subscription, agent } = &*self.labels;
        let epoch = self.told().notice.cursor.epoch;
        // Without its quotes, and no more than those: an id may end with one of its own, escaped.
        let id = &subscription[1..subscription.len() - 1];
        let written = write!(
            text,
            r#"{{"protocol":"{PROTOCOL}","version":"{VERSION}","id":"push-{id}-{}","operation":"SUBSCRIBE","agent_id":{agent},"session_id":null,"epoch":{epoch},"payload":"#,
            self.cursor
        );
        debug_assert!(written.is_ok(), "a String takes everything");
        self.write_payload(&mut text);
        text.push('}');
        text
    }

    /// Adds it to an event stream (wire, section 3). Nothing in it can break the framing: JSON has no bare line ends.
    pub fn write_event(&self, stream: &mut String) {
        let written = write!(stream, "id: {}\nevent: {}\ndata: ", self.cursor, self.event());
        debug_assert!(written.is_ok(), "a String takes everything");
        self.write_payload(stream);
        stream.push_str("\n\n");
    }

    fn room(&self) -> String {
        let Labels { subscription, agent } = &*self.labels;
        let shared = self.told().ending(self.with_unit).len();
        String::with_capacity(shared + 2 * subscription.len() + agent.len() + AROUND_BYTES)
    }

    fn write_payload(&self, text: &mut String) {
        let Self { labels, relevance, requires_action, cursor, .. } = self;
        let written = write!(
            text,
            r#"{{"subscription_id":{},"relevance_score":{relevance:?},"requires_action":{requires_action},"cursor":"{cursor}","#,
            labels.subscription
        );
        debug_assert!(written.is_ok(), "a String takes everything");
        text.push_str(self.told().ending(self.with_unit));
    }
}

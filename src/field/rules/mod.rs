//! One file per operation, or per family of them. Those that change the Field give events; those that look
//! compute an answer from a view of the world.

pub(super) mod attune;
mod attune_shown;
pub(super) mod compact;
mod compare;
pub(super) mod detect;
pub(super) mod detected;
pub(super) mod lifecycle;
pub(super) mod merge;
pub(super) mod record;
pub(super) mod register;
pub(super) mod relate;
pub(super) mod replay;
mod replay_words;
pub(super) mod subscribe;
mod surroundings;
mod syntheses;

use super::command::Embedded;
use super::decide::Ground;
use super::event::Event;
use crate::protocol::{ErrorCode, Mode, Unit, Warning};

pub use attune::{Selection, document, document_of, kind, select};
pub use attune_shown::{Unshown, show};
pub use compact::{Plan, Preparation};
pub use compare::{Stated, Statement, stands, suspicions};
pub use detect::{detect, target};
pub use merge::{Writes, writes};
pub use replay::{Chronicle, replay};
pub use subscribe::subscriptions;
pub use syntheses::{Planned, compose, grouped};

/// Characters of an agent's own words in a conflict's description, in a rationale and beside a unit that they
/// point at: they are shown again and again, and the whole text stands in the unit or in the RETRACT.
pub(super) const SAID: usize = 280;

/// Where a committed unit's embedding could not be made: the event that says so, and what its author is told.
pub(super) fn unenriched(ground: &Ground<'_>, unit: &Unit, events: &mut Vec<Event>) -> Option<Warning> {
    let Embedded::Failed(why) = &ground.message.embedded else { return None };
    (unit.mode == Mode::Committed).then(|| {
        events.push(Event::Unenriched { memory_unit_id: unit.id });
        enrichment_failed(
            format!("The unit is in the Field, but its embedding could not be made yet: {why}."),
            "Nothing needs to be done: it is tried again, and until then the unit is found by its words.",
        )
    })
}

/// What is told of a text whose embedding could not be made.
pub(super) fn enrichment_failed(message: String, suggested_action: &str) -> Warning {
    Warning {
        code: ErrorCode::EnrichmentFailed.name().to_owned(),
        message,
        recoverable: true,
        suggested_action: suggested_action.to_owned(),
    }
}

/// The beginning of a text, on one line, at most `most` characters.
pub(super) fn excerpt(text: &str, most: usize) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        // Bytes are at least as many as characters: enough to stop reading a long text.
        if words.len() > most * 4 {
            break;
        }
    }
    if words.chars().count() <= most {
        return words;
    }
    let mut short: String = words.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

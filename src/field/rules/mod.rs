//! One file per operation, or per family of them. Those that change the Field give events; those that look
//! compute an answer from a view of the world.

pub(super) mod attune;
mod attune_shown;
pub(super) mod detect;
pub(super) mod lifecycle;
pub(super) mod merge;
pub(super) mod record;
pub(super) mod register;
pub(super) mod relate;
pub(super) mod replay;
mod replay_words;
pub(super) mod subscribe;
mod surroundings;

pub use attune::{Selection, document, document_of, kind, select};
pub use attune_shown::show;
pub use detect::detect;
pub use replay::{Chronicle, replay};
pub use subscribe::subscriptions;

/// Characters of an agent's own words in a conflict's description, in a rationale and beside a unit that they
/// point at: they are shown again and again, and the whole text stands in the unit or in the RETRACT.
pub(super) const SAID: usize = 280;

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

//! The heart: a Field as a state machine, pure.
//!
//! No async, no clock, no randomness, no I/O, no threads, no logging (law 1). Everything uncertain is an
//! argument of the [`Command`]; [`decide`] looks at the [`State`] and says what happens, [`apply`] makes it
//! so and cannot fail. Recovery only applies. In reading order:
//!
//! - [`Command`], [`Message`]: what arrives, read and stamped;
//! - [`Entry`], [`Event`]: what happened, as the log keeps it;
//! - [`State`] and its [`World`]: persistent collections, so that a view of the world is a cheap clone;
//! - `visibility`: the one predicate of who may see which unit;
//! - [`decide`]: the order of the rules; `rules/`: one file per operation; [`apply`];
//! - `audience`: what an entry gives notice of, and who hears of it;
//! - [`Snapshot`]: the state as bytes and back;
//! - `census`: what the GET endpoints show of a world.

mod apply;
mod audience;
mod census;
mod command;
mod decide;
mod event;
mod policy;
mod presence;
mod rules;
mod snapshot;
mod state;
#[cfg(test)]
pub(crate) mod tests;
mod visibility;

pub use apply::apply;
pub use audience::{Concern, Listener, Notice, Subject, Turn, announced, notices};
pub use census::UnitFilter;
pub use command::{Command, Embedded, Message, message_key};
pub use decide::{Query, Read, Verdict, audit, connect, decide, enriched, overdue};
pub use event::{Entry, Event, log_lines};
pub use policy::{Audit, Policy};
pub use presence::{Presence, Whereabouts};
pub use rules::{
    Chronicle, Selection, Writes, detect, document, document_of, kind, replay, select, show, subscriptions,
    writes,
};
pub use snapshot::{Assembly, Part, Piece, Snapshot, read_part, snapshot_format};
pub use state::{AgentNo, AgentRecord, Ledger, Slot, State, SubscriptionRecord, UnitNo, World};

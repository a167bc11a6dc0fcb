//! The heart: a Field as a state machine, pure.
//!
//! No async, no clock, no randomness, no I/O, no threads, no logging (law 1). Everything uncertain is an
//! argument of the [`Command`]; [`decide`] looks at the [`State`] and says what happens, [`apply`] makes it
//! so and cannot fail. Recovery only applies. In reading order:
//!
//! - [`Command`], [`Message`]: what arrives, read and stamped;
//! - [`Suspicion`]: what was noticed before it is decided;
//! - [`Entry`], [`Event`]: what happened, as the log keeps it;
//! - [`State`] and its [`World`]: persistent collections, so that a view of the world is a cheap clone;
//! - `visibility`: the one predicate of who may see which unit;
//! - [`decide`]: the order of the rules; `rules/`: one file per operation; [`apply`];
//! - `audience`: what an entry gives notice of, and who hears of it;
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
mod state;
mod suspicion;
#[cfg(test)]
pub(crate) mod tests;
mod visibility;

pub use apply::apply;
pub use audience::{Concern, Listener, Notice, Subject, Turn, announced, notices};
pub use census::UnitFilter;
pub use command::{Command, Embedded, Message, message_key};
pub use decide::{Query, Read, Verdict, audit, connect, decide, detected, enriched, overdue};
pub use event::{Entry, Event, log_lines};
pub use policy::Policy;
pub use presence::{Presence, Whereabouts};
pub use rules::{
    Chronicle, Selection, Stated, Statement, Writes, detect, document, document_of, kind, replay, select,
    show, stands, subscriptions, suspicions, target, writes,
};
pub use state::{AgentNo, AgentRecord, Ledger, Slot, State, SubscriptionRecord, UnitNo, World};
pub use suspicion::{Finding, Suspected, Suspicion};

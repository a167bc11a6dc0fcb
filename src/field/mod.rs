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
//! - `shelf`, `put_away`: which units are archived or purged, and how they come to be; `unit_ids`: many of them in one event;
//! - [`Kept`]: what memory holds of a unit, and how the texts of archived ones leave it;
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
mod kept;
mod policy;
mod presence;
mod put_away;
mod rules;
mod shelf;
mod snapshot;
mod state;
mod suspicion;
#[cfg(test)]
pub(crate) mod tests;
mod unit_ids;
mod visibility;

pub use apply::apply;
pub use audience::{
    Concern, Listener, Notice, Notices, Subject, Turn, announced, archived, archived_places, notices, places,
    resolved_of,
};
pub use census::UnitFilter;
pub use command::{Command, Embedded, Message, message_key};
pub use decide::{Query, Read, Verdict, audit, connect, decide, detected, enriched, overdue};
pub use event::{Entry, Event, log_lines};
pub use kept::{Kept, Stub, Wanting};
pub use policy::{Audit, Policy};
pub use presence::{Presence, Whereabouts};
pub use rules::{
    Chronicle, Plan, Planned, Preparation, Selection, Stated, Statement, Unshown, Writes, compose, detect,
    document, document_of, grouped, kind, replay, select, show, stands, subscriptions, suspicions, target,
    writes,
};
#[cfg(test)]
pub(crate) use snapshot::format_numbered;
pub use snapshot::{Assembly, Part, Piece, Snapshot, read_part, snapshot_format};
pub use state::{AgentNo, AgentRecord, Ledger, Slot, State, SubscriptionRecord, UnitNo, World};
pub use suspicion::{Finding, Suspected, Suspicion};
pub use unit_ids::UnitIds;

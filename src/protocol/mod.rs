//! The language spoken at every door: the protocol's data and its shape, no behaviour.
//!
//! Read in this order. Everything here is plain data that other rooms may use; nothing here knows of
//! state, storage or sockets. The specification is the Akashik Protocol 0.1; section numbers in this
//! crate's documentation are those of its `protocol.md`.

mod agent;
mod answers;
mod compact;
mod conflict;
mod envelope;
mod error;
mod ids;
mod keys;
mod operation;
mod request;
pub mod schema;
mod scope;
mod shapes;
mod shown;
mod subscription;
mod time;
mod unit;

pub use agent::{Agent, AgentStatus};
pub use answers::{
    Acknowledged, Attuned, Capabilities, Cleanup, ContextBudget, DEFERRED, Deregistered, Detected, Limits,
    Merged, Recorded, Registered, RelevanceFactor, ReplayEvent, Replayed, ScanCoverage, ScopedMemoryUnit,
    SideEffects, Warning,
};
pub use compact::{CompactFilter, CompactRequest, CompactStrategy, Compacted};
pub use conflict::{
    Ballot, Conflict, ConflictStatus, ConflictType, DetectedBy, MergeRequest, Resolution, Strategy,
};
pub use envelope::{Envelope, FaultyEnvelope, ReplyEnvelope, RequestEnvelope};
pub(crate) use envelope::{check_id, epoch_overflow};
pub use error::{ErrorBody, ErrorCode, Refusal};
pub use ids::{ConflictId, Cursor, UnitId};
pub use operation::Operation;
pub use request::{
    CommitRequest, DeregisterRequest, DetectFilter, DetectMode, DetectRequest, GiveUpRequest, RecordRequest,
    RegisterRequest, ReplayDepth, ReplayRequest, ReplayTarget, Request,
};
pub(crate) use request::{check_committed, unsupported};
pub use scope::{AttuneRequest, EXTENDED_SCOPE_LEVEL, ExtendedScope, Format, Scope, TemporalLayer};
pub use subscription::{
    Action, DIRECT, EventName, EventSet, Notification, SubscribeRequest, Subscribed, Subscription,
    Subscriptions, Unsubscribed, Wish, future_cursor, read_cursor,
};
pub use time::Timestamp;
pub use unit::{
    Confidence, Intent, MemoryType, MemoryUnit, Mode, Relation, RelationType, ShownUnit, Source, Unit,
    UnitStatus,
};

/// The value of the envelope key `protocol`.
pub const PROTOCOL: &str = "akashik";
/// The value of the envelope key `version`: the protocol version served.
pub const VERSION: &str = "0.1.0";
/// The agent that the Field itself acts as; no agent can register under it.
pub const SYSTEM: &str = "system";

//! akashik-hub serves the Akashik Protocol 0.1: one shared memory, the *Field*, for teams of AI agents.
//!
//! This is the map. Rooms in reading order:
//!
//! | Room | Is |
//! |---|---|
//! | [`protocol`] | the language at every door: data and its shape, no behaviour |
//! | [`relevance`] | text and numbers in, scores out: which units matter to a need |
//! | [`field`] | the heart: a Field as a pure state machine, `decide` and `apply` |
//! | [`log`] | the durable log: the trait, SQLite, its twin in memory, verification |
//! | [`hub`] | the running thing: one actor per Field, its log thread, live sessions, reads, views |
//! | [`mcp`] | the Field as tools and resources for language models, on top of whatever can be asked |
//! | [`transport`] | the doors: HTTP, WebSocket and MCP on one guard, one table of errors |
//! | [`client`] | the Rust SDK: one method per operation, streams of notifications, reconnects, repeats safely |
//! | [`cli`] | the `akashik` program, one file per command |
//! | [`config`], [`limits`] | what an operator can set; every bound with its reason |
//!
//! Who may use whom: `protocol` ← everyone; `relevance` ← `field`; `field`, `log` ← `hub`; `protocol` ← `mcp`;
//! `hub`, `protocol`, `mcp` ← `transport`; `protocol` ← `client`; everything ← `cli`. `tests/walls.rs` keeps it so.
//! `web/` is the dashboard, which `build.rs` builds with npm and embeds. (`hub` also holds each Field's relevance index,
//! which is a cache beside the state, and the files of its vectors and of its snapshot, caches beside the log.)
//!
//! # The way of an operation
//!
//! ```text
//! door (ws, rest, mcp)          parse, limits, identity; the payload read, its digest taken; its text embedded,
//!    │                          where a model outside does that
//!    │  Message + where the answer goes   (bounded channel)
//!    ▼
//! actor (one task per Field)    stamp: epoch, time, connection      → Command
//!    │                          decide(&State, &Command) → an entry, a read, a repeat or a refusal
//!    │                          apply(&mut State, &Entry)
//!    │  batch of entries        (everything gathered while the last batch was written)
//!    ▼
//! log thread                    one transaction, one flush for the batch
//!    │  "durable up to epoch E"
//!    ▼
//! actor                         lets go of the replies up to E, reads and refusals included; publishes the
//!    │                          durable state as a View
//!    ▼
//! read pool                     ATTUNE, DETECT, REPLAY computed from the view taken when they were stamped; a COMPACT
//!                               planned from one, which then goes back to the actor to be decided
//!
//! feed                          the durable operations in order; each listener takes from it at its own pace, from
//!                               memory or from the log: pushes, streams and polls alike
//! ```
//!
//! # The laws
//!
//! 1. The heart is pure: no async, clock, randomness, I/O, threads, logging. The same commands give the same bytes.
//! 2. `decide` looks and may refuse; `apply` cannot fail. Recovery only applies.
//! 3. One log entry per operation: it happens whole or not at all.
//! 4. A failed commit is never papered over: the state is read back from what the log really holds.
//! 5. The DashMap of live sessions decides nothing.
//! 6. Reads do not hold up writes: they are computed elsewhere, from a view that costs a few pointers.
//! 7. No queue without a bound; the actor never waits for a session.
//! 8. Doors are thin, and all give the same answers.
//!
//! # Words
//!
//! *Field*: the shared memory. *Unit*: one memory unit. *Live session*: an agent's open connection (*session* alone
//! is the protocol's). *Command*: operation plus stamp. *Event*: a fact in the log; *entry*: one operation's events.
//! *Notice*: what an entry gives notice of; *notification*: what one listener is told. *Cursor*: `epoch.index`. *Refusal*: the Field's no.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod cli;
pub mod client;
pub mod config;
pub mod field;
pub mod hub;
pub mod limits;
pub mod log;
pub mod mcp;
pub mod protocol;
pub mod relevance;
pub mod transport;

//! Every bound of the hub, with its unit in its name and its reason beside it.
//!
//! Those that an operator may change are defaults of the configuration (see `config`); the rest are fixed.

/// One past the greatest epoch: integers below it are exact in every JSON reader (section 2).
pub const EPOCH_CEILING: u64 = 1 << 53;

/// Longest agent, message, session or task id, and longest role or interest: long enough for a UUID with a
/// prefix, short enough that ids cannot be used to fill memory.
pub const ID_MAX_BYTES: usize = 256;

/// How far ahead of the Field's clock a message's epoch may be (section 2, hostile clocks). Configurable.
pub const EPOCH_LEAD_MAX: u64 = 1_000_000;

/// Longest content of a unit (section 3). Configurable.
pub const CONTENT_MAX_BYTES: usize = 256 * 1024;

/// Longest purpose, question, reason, description, evidence item or assumption: a paragraph or two. What is to be
/// remembered is the content.
pub const TEXT_MAX_BYTES: usize = 16 * 1024;

/// Longest hint: a page or two of context. Only its most telling words count.
pub const HINT_MAX_BYTES: usize = 128 * 1024;

/// Drafts that one ATTUNE judges, and bytes of their texts, the newest first: they are in no index.
pub const DRAFTS_JUDGED_MAX: usize = 1_000;
/// See [`DRAFTS_JUDGED_MAX`].
pub const DRAFTS_JUDGED_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Units of the asker's task, and units of its own, whose relations count in one ATTUNE, the newest: what an agent is
/// at has few units.
pub const CONTEXT_UNITS_MAX: usize = 64;

/// How many of the newest units are looked through for those of the asker, and of the newest entries about its task for
/// the task's: it bounds what a poll costs in a large Field.
pub const CONTEXT_SOUGHT_MAX: usize = 1_024;

/// Relations of one unit that are followed each way when relevance is judged: more make it a hub, which says little.
pub const TIES_A_UNIT_MAX: usize = 32;

/// Most relations of a unit (section 3). Configurable.
pub const RELATIONS_MAX: usize = 64;

/// Most evidence items, and most assumptions, of a unit (section 3). Configurable.
pub const EVIDENCE_MAX: usize = 64;

/// Most interests of an agent: they all take part in every ATTUNE of its.
pub const INTERESTS_MAX: usize = 64;

/// Greatest `max_units` of a scope (section 5).
pub const MAX_UNITS_MAX: u64 = 1_000;

/// Units in a row that do not fit into a budget of tokens, even as summaries, after which no more are tried: what is
/// left of it is too little.
pub const BUDGET_MISFITS_MAX: usize = 16;

/// Most conflicts in an ATTUNE response (section 7).
pub const ATTUNE_CONFLICTS_MAX: usize = 100;

/// Most unresolved conflicts of one unit: the operation that ends the unit settles them all at once.
pub const OPEN_CONFLICTS_MAX: usize = 1_000;

/// How long looking for contradictions may hold up a RECORD, milliseconds (section 7). Configurable.
pub const DETECTION_BUDGET_MS: u64 = 50;

/// Writes under way beside which a RECORD is still compared before it is decided; with more it is compared behind.
pub const DETECTED_BESIDE_WRITES_MAX: usize = 4;

/// Units compared behind, and conflicts found among them, that make one entry: bounds the actor's work for it.
pub const DETECTION_BATCH_MAX: usize = 1_024;
/// See [`DETECTION_BATCH_MAX`].
pub const DETECTED_AN_ENTRY_MAX: usize = 64;

/// What units claim, read and kept for comparing, bytes: of some 200,000 units; others are read again.
pub const CLAIMS_KEPT_MAX_BYTES: usize = 192 * 1024 * 1024;

/// Longest rationale of a MERGE: a paragraph. A conflict carries it wherever it is shown.
pub const RATIONALE_MAX_BYTES: usize = 4 * 1024;

/// Ballots of a full vote (section 7, MERGE). Configurable.
pub const VOTE_QUORUM: usize = 3;

/// Largest quorum that can be configured: a conflict carries its ballots wherever it is shown.
pub const VOTE_QUORUM_MAX: usize = 100;

/// Most conflicts that one answer lists beside ATTUNE's.
pub const CONFLICTS_LISTED_MAX: usize = 10_000;

/// Most inbound relations that are shown with a unit, the newest.
pub const INBOUND_SHOWN_MAX: usize = 1_000;

/// Units that one COMPACT summarizes: their syntheses are one entry of the log, some 20 MiB for as many.
pub const COMPACT_SUMMARIZED_MAX: usize = 100_000;

/// Units of one synthesis, but for those that join it because they have no group of their own: so that its text has room for
/// a sentence of each. With those it has at most [`RELATIONS_MAX`], as every unit.
pub const SYNTHESIS_UNITS_MAX: usize = 24;

/// Longest text of a synthesis that COMPACT makes, characters: a paragraph.
pub const SYNTHESIS_CHARS_MAX: usize = 1_200;

/// How often a COMPACT is planned before units that changed meanwhile are left out.
pub const COMPACT_REPLANNED_MAX: u8 = 3;

/// Units that a purge may delete without confirmation though it leaves none.
pub const PURGE_UNCONFIRMED_MAX: usize = 100;

/// Most events in a REPLAY response (section 7). Configurable.
pub const REPLAY_EVENTS_MAX: usize = 10_000;

/// Largest REPLAY response (section 7). Configurable.
pub const REPLAY_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Most log entries that one REPLAY reads, whatever its depth: it bounds the time and memory of a read.
pub const REPLAY_ENTRIES_MAX: usize = 100_000;

/// ATTUNEs before a decision that its REPLAY tells, the latest, where reads are audited.
pub const REPLAY_SHOWN_MAX: usize = 20;

/// Longest timeline that `summary` depth lists in full; above it only the turning points are listed, so
/// that the depth that is suggested after `REPLAY_TOO_LARGE` stays readable.
pub const REPLAY_SUMMARY_EVENTS_MAX: usize = 1_000;

/// Messages remembered for repeats, at least (section 2, idempotency).
pub const REMEMBERED_MESSAGES_MIN: usize = 100_000;

/// How long messages are remembered for repeats, at least (section 2, idempotency).
pub const REMEMBERED_AGE_MIN_MS: u64 = 24 * 60 * 60 * 1_000;

/// How long an agent whose connection dropped may take to return (section 4). Configurable.
pub const GRACE_MS: u64 = 30_000;

/// Entries after which a snapshot of the state is written: about half a second of reading the log. Configurable.
pub const SNAPSHOT_ENTRIES: u64 = 100_000;

/// Bytes of a snapshot that are written before they are flushed: a flush of the log waits for no more than these.
pub const SNAPSHOT_SLICE_BYTES: usize = 1024 * 1024;

/// Units that a Field may have had at an epoch for which an ATTUNE asks: about 200 MB of memory while it is kept.
pub const PAST_UNITS_MAX: usize = 250_000;

/// ATTUNEs of an earlier epoch that may be under way in a Field: one is computed, the others wait for it.
pub const PAST_READS_MAX: usize = 4;

/// Notes of ATTUNEs that wait for the next commit.
pub const NOTES_MAX: usize = 256;

/// How long the last snapshot may take when the hub stops, within what a stop may take at all.
pub const SNAPSHOT_AT_STOP_MS: u64 = 1_500;

/// How many epochs are reserved ahead of use (section 2, restart). A crash skips at most this many numbers;
/// while the disk is full, this many reads can still be answered.
pub const RESERVE_EPOCHS: u64 = 10_000;

/// Requests that may wait for a Field's actor; beyond it the doors wait, so memory stays bounded.
pub const ACTOR_QUEUE: usize = 4_096;

/// Requests that the actor takes up at a time before it looks at the log thread again.
pub const ACTOR_TURN: usize = 256;

/// Most entries in one transaction: bounds its time and its memory.
pub const BATCH_ENTRIES_MAX: usize = 4_096;

/// Bytes of messages that may wait for a Field's actor, and bytes of entries in one transaction: a few large
/// messages are as much as many small ones.
pub const ACTOR_QUEUE_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Reads of a Field that may wait for the pool or be computed; beyond it `OVERLOADED` is answered, since each
/// holds on to a view of the world.
pub const READS_MAX: usize = 1_024;

/// How long a door waits for room in the actor's queue before it answers `OVERLOADED`.
pub const QUEUE_PATIENCE_MS: u64 = 5_000;

/// Largest HTTP body and largest WebSocket message (wire, sections 1 and 2). Configurable.
pub const MESSAGE_MAX_BYTES: usize = 1024 * 1024;

/// Requests of one WebSocket connection that may be in flight (wire, section 2).
pub const IN_FLIGHT_MAX: usize = 256;

/// Invalid frames in a row after which a WebSocket connection is closed (wire, section 2).
pub const BAD_FRAMES_MAX: u32 = 20;

/// Reads of one WebSocket connection that may be in flight: each may come to [`REPLY_MAX_BYTES`], so this bounds
/// what a peer that does not read can make the hub hold.
pub const READS_IN_FLIGHT_MAX: usize = 4;

/// Subscriptions of one agent: each has its own way through the events wherever it is attached.
pub const SUBSCRIPTIONS_MAX: usize = 256;

/// Longest time between two notifications for the same entity that a subscription can ask for: a day.
pub const DEBOUNCE_MAX_MS: u64 = 86_400_000;

/// Entities whose last notification one debounced subscription remembers; with all of them taken it waits for the
/// oldest to be due again.
pub const DEBOUNCED_MAX: usize = 10_000;

/// Notices of one COMPACT that are made at a time, and how many times so many are kept: an operation may give a million.
pub const NOTICE_PAGE_PLACES: u32 = 256;
/// See [`NOTICE_PAGE_PLACES`].
pub const NOTICE_PAGES_MAX: usize = 8;

/// Newest operations of a Field that are kept in memory for whoever follows them, and their bytes. Who is further
/// behind reads the log.
pub const RECENT_OPERATIONS_MAX: usize = 4_096;
/// See [`RECENT_OPERATIONS_MAX`].
pub const RECENT_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Epochs that one page of the log covers when it is read for whoever is behind.
pub const HISTORY_PAGE_EPOCHS: u64 = 1_024;
/// Bytes after which such a page ends early.
pub const HISTORY_PAGE_MAX_BYTES: usize = 2 * 1024 * 1024;
/// Pages that are kept for others on the same way.
pub const HISTORY_PAGES_MAX: usize = 16;

/// Pages of events, units and log lines that may wait for their peers to take them, all connections together.
pub const ANSWERS_MAX_BYTES: usize = 256 * 1024 * 1024;

/// How long one poll may wait for something to come.
pub const POLL_WAIT_MAX_MS: u64 = 60_000;

/// Notifications that a client keeps for one subscription until they are taken, and their bytes: as much as the hub
/// sends ahead to one connection. What does not fit is asked for again once there is room.
pub const NOTIFICATIONS_QUEUED_MAX: usize = 1_024;
/// See [`NOTIFICATIONS_QUEUED_MAX`].
pub const NOTIFICATIONS_QUEUED_MAX_BYTES: usize = 4 * 1024 * 1024;

/// How long a client that can take nothing more leaves its connection unread while no call waits: less than half of
/// [`STALL_MAX_MS`], after which the hub would close it.
pub const UNREAD_MAX_MS: u64 = 10_000;

/// How long a client waits before it asks again to be attached, after a hub that could not do it just now.
pub const REATTACH_PAUSE_MS: u64 = 1_000;

/// How often the hub pings a WebSocket peer (wire, section 2). Configurable.
pub const HEARTBEAT_MS: u64 = 20_000;

/// How long nothing at all may be heard from a WebSocket peer (wire, section 2). Configurable.
pub const SILENCE_MAX_MS: u64 = 60_000;

/// How long a peer may take no bytes while output is pending (wire, section 2). Configurable.
pub const STALL_MAX_MS: u64 = 30_000;

/// How long a shutdown waits for what is in flight: with what comes after it, at most 10 s (wire, section 1).
pub const DRAIN_MS: u64 = 8_000;

/// Open connections, all doors together: below the usual limit of file descriptors. Configurable.
pub const CONNECTIONS_MAX: usize = 16_384;

/// How long a peer may take to send a request's head, and how long an idle kept-alive connection stays.
pub const HEADER_TIMEOUT_MS: u64 = 30_000;

/// How long a peer may take to send a request's body.
pub const BODY_TIMEOUT_MS: u64 = 30_000;

/// Units, or log lines, that one GET may return.
pub const PAGE_MAX: usize = 1_000;

/// Bytes after which a page of units or log lines ends early.
pub const PAGE_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Units, or log lines, that one GET returns when it does not say.
pub const PAGE_DEFAULT: usize = 100;

/// Largest single reply: what one answer may cost in memory at a door. Twice the largest REPLAY.
pub const REPLY_MAX_BYTES: usize = 16 * 1024 * 1024;

/// How much of a refused request's body is read and thrown away, so that the peer gets to read why: closing
/// with unread bytes would reset the connection under the answer.
pub const DISCARD_MAX_BYTES: usize = 8 * 1024 * 1024;

/// How long such throwing away may take.
pub const DISCARD_MS: u64 = 5_000;

/// How long a WebSocket's goodbye may take: sending the close frame, and as long again hearing the peer's.
pub const FAREWELL_MS: u64 = 1_000;

/// The same for a peer that took nothing: half a frame may have to go out before the reason can.
pub const SLOW_FAREWELL_MS: u64 = 5_000;

/// Responses smaller than this are not worth compressing: about one packet.
pub const COMPRESS_MIN_BYTES: u16 = 1_024;

/// Vectors in one block of the file beside the log: what a checksum covers, and what a crash may lose.
pub const VECTOR_BLOCK_RECORDS_MAX: usize = 1_024;

/// Batches of vectors that wait to be written; behind a disk that is slower, vectors are held.
pub const VECTOR_BLOCKS_WAITING_MAX: usize = 64;

/// Vectors that are held until they can be written, about 32 MiB; more are made again after the next start.
pub const VECTOR_RECORDS_HELD_MAX: usize = 64 * 1_024;

/// Texts in one request to an embedding endpoint: as many as common endpoints take.
pub const EMBEDDING_BATCH_MAX: usize = 64;

/// Requests to an embedding endpoint under way at once.
pub const EMBEDDING_REQUESTS_MAX: usize = 4;

/// Texts that wait to be sent to an embedding endpoint; a door that wants more waits, at most its patience.
pub const EMBEDDING_WAITING_MAX: usize = 1_024;

/// Largest answer of an embedding endpoint that is read: a full batch of the largest directions, written at length.
pub const EMBEDDING_ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;

/// What of a unit's text an embedding endpoint is given: models read some hundred to some thousand words.
pub const EMBEDDED_TEXT_MAX_BYTES: usize = 16 * 1024;

/// Directions of texts that are held between the door and the index; an older one is asked for again.
pub const EMBEDDINGS_PARKED_MAX: usize = 8 * 1024;

/// Pauses between tries to embed what is missing, milliseconds: at first, and at most.
pub const EMBEDDING_RETRY_MIN_MS: u64 = 250;
/// See [`EMBEDDING_RETRY_MIN_MS`].
pub const EMBEDDING_RETRY_MAX_MS: u64 = 60_000;

/// How long an embedding endpoint may take when nothing is set, milliseconds: an agent waits for it.
pub const EMBEDDING_TIMEOUT_MS: u64 = 2_000;

/// How long, after an embedding endpoint failed, doors do not wait for it, milliseconds.
pub const EMBEDDING_REST_MS: u64 = 1_000;

/// Requests to a summary endpoint under way at once, of all Fields.
pub const SUMMARY_REQUESTS_MAX: usize = 4;

/// What a summary endpoint is given of the originals of one synthesis, bytes of their texts: some eight thousand tokens, which
/// small models read.
pub const SUMMARY_ASKED_MAX_BYTES: usize = 32 * 1024;

/// What it is given for all syntheses of one COMPACT; what lies beyond is written without it.
pub const SUMMARY_ASKED_ALL_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Largest answer of a summary endpoint that is read, bytes: a paragraph, and what a model thought before it.
pub const SUMMARY_ANSWER_MAX_BYTES: usize = 256 * 1024;

/// Failures in a row after which a summary endpoint is not asked for the rest of a COMPACT.
pub const SUMMARY_FAILURES_MAX: usize = 4;

/// How long a summary endpoint may take for one synthesis when nothing is set, milliseconds.
pub const SUMMARY_TIMEOUT_MS: u64 = 10_000;

/// And for all of one COMPACT: the Rust client waits 30 seconds for an answer.
pub const SUMMARY_TOTAL_MS: u64 = 20_000;

/// MCP sessions of one Field that are open at once; each costs some tens of KiB. Configurable.
pub const MCP_SESSIONS_MAX: usize = 1_024;

/// How long nothing at all may happen in an MCP session before it ends: a person may be at lunch. Configurable.
pub const MCP_IDLE_MS: u64 = 4 * 60 * 60 * 1_000;

/// Resources that one MCP session may watch.
pub const MCP_WATCHED_MAX: usize = 256;

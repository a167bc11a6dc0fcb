/**
 * What is asked and what is answered (protocol, section 7). The names are the protocol's own. Answers are the hub's JSON
 * as it came: keys of a later version are kept.
 */

export type MemoryType =
  | "finding"
  | "decision"
  | "observation"
  | "intention"
  | "assumption"
  | "constraint"
  | "question"
  | "contradiction"
  | "synthesis"
  | "correction"
  | "human_directive";
export type RelationType =
  | "supports"
  | "contradicts"
  | "depends_on"
  | "supersedes"
  | "caused_by"
  | "elaborates"
  | "answers"
  | "blocks"
  | "informs";
export type ConflictStatus = "detected" | "resolving" | "resolved" | "escalated";
export type ConflictType = "factual" | "interpretive" | "strategic" | "priority";
export type Strategy =
  | "last_write_wins"
  | "confidence_weighted"
  | "human_escalation"
  | "authority"
  | "evidence_count"
  | "synthesis"
  | "vote";
export type EventName =
  | "memory.recorded"
  | "memory.superseded"
  | "memory.contested"
  | "memory.retracted"
  | "memory.archived"
  | "conflict.detected"
  | "conflict.escalated"
  | "conflict.resolved"
  | "task.state_changed"
  | "task.assigned"
  | "task.completed"
  | "handoff.incoming"
  | "agent.joined"
  | "agent.left"
  | "agent.failed"
  | "session.paused"
  | "session.ended";

/** Why a unit is recorded. Every unit needs a purpose. */
export interface Intent {
  purpose: string;
  task_id?: string | null;
  question?: string | null;
}

/** How sure its author is, 0 to 1, and why. Every committed unit needs both. */
export interface Confidence {
  score: number;
  reason: string;
  evidence?: string[];
  assumptions?: string[];
}

/** A tie to another unit. */
export interface Relation {
  type: RelationType;
  target_id: string;
  description?: string | null;
}

// Requests

export interface RegisterRequest {
  role: string;
  interests?: string[];
  required_operations?: string[];
}

export interface RecordRequest {
  type: MemoryType;
  content: string;
  intent: Intent;
  /** Optional in drafts only. */
  confidence?: Confidence;
  relations?: Relation[];
  /** `committed` unless it says `draft`. */
  mode?: "committed" | "draft";
}

export interface Scope {
  role: string;
  /** 1 to 1,000. */
  max_units: number;
  since_epoch?: number;
  max_tokens?: number;
  interests?: string[];
  active_task_id?: string;
  temporal_layers?: ("past" | "present" | "future")[];
  relevance_threshold?: number;
  recency_weight?: number;
  include_own?: boolean;
  include_drafts?: boolean;
  include_archived?: boolean;
  session_id?: string;
  types?: MemoryType[];
}

export interface AttuneRequest {
  scope: Scope;
  /** What the agent is about to do. */
  context_hint?: string;
  format?: "full" | "summary" | "ids_only";
  since_epoch?: number;
  explain?: boolean;
}

export interface DetectRequest {
  mode: "list" | "check" | "scan";
  /** For mode `check`. */
  target_id?: string;
  filter?: { status?: ConflictStatus[]; types?: ConflictType[]; involving_agents?: string[] };
}

export interface MergeRequest {
  conflict_id: string;
  strategy: Strategy;
  resolution: { rationale: string; winner_id?: string; synthesis?: string };
}

export interface ReplayRequest {
  target_type: "task" | "memory_unit" | "decision" | "conflict" | "session";
  target_id: string;
  depth: "summary" | "detailed" | "full_trace";
  as_of_epoch?: number;
}

export interface CompactRequest {
  strategy: "archive" | "summarize" | "purge";
  filter?: {
    max_age_epochs?: number | null;
    session_id?: string | null;
    types?: MemoryType[];
    status?: string[];
  };
  /** Extension: why; stays in the log, whatever the strategy. */
  reason?: string;
  /** Extension: a purge that would leave nothing is meant; every unit is `filter: { max_age_epochs: 0 }`. */
  confirm?: boolean;
  /** Extension: nothing is changed, and the answer tells what would be. */
  dry_run?: boolean;
}

export interface CommitRequest {
  memory_unit_id: string;
  confidence?: Confidence;
  relations?: Relation[];
}

/** What is left out stays as it is where the subscription is known. */
export interface SubscribeRequest {
  /** Under this id it can be found again; without one the Field gives an id. */
  id?: string;
  events?: EventName[];
  min_relevance?: number;
  debounce_ms?: number;
  include_unit?: boolean;
  /** First everything after this cursor, then what comes. Without it: from now on. */
  resume_after?: string;
}

// Answers

/** What did not go as it should in an operation that was done. */
export interface Warning {
  code: string;
  message: string;
  recoverable: boolean;
  suggested_action: string;
}

export interface Agent {
  id: string;
  role: string;
  status: string;
  interests: string[];
  current_task_id: string | null;
}

export interface Capabilities {
  conformance_level: number;
  supported_operations: string[];
  protocol_version: string;
  persistence: boolean;
  conflict_strategies: string[];
  field: string;
  memory_types: string[];
  embedding: { name: string; dimensions: number } | null;
  limits: Record<string, number>;
  extensions: string[];
}

export interface Registered {
  status: "registered" | "rejected";
  agent: Agent | null;
  field_capabilities: Capabilities;
  rejection_reason: string | null;
}

export interface Deregistered {
  status: "ok" | "not_found";
  cleanup: { units_orphaned: number; tasks_reassigned: number };
}

export interface Recorded {
  status: string;
  memory_unit_id: string;
  epoch: number;
  conflicts_detected: string[];
  rejection_reason: string | null;
  warning?: Warning;
}

/** The answer of RETRACT, COMMIT and DISCARD. */
export interface Acknowledged {
  status: string;
  memory_unit_id: string;
  epoch: number;
  /** COMMIT's alone. */
  conflicts_detected?: string[];
  /** COMMIT's alone. */
  warning?: Warning;
}

/** With ATTUNE's format `ids_only` there is nothing but the `id`. */
export interface MemoryUnit {
  id: string;
  mode?: string;
  type?: MemoryType;
  content?: string;
  intent?: Intent;
  confidence?: Partial<Confidence> | null;
  source?: { agent_id: string; agent_role: string; session_id: string | null; timestamp: string };
  relations?: Relation[];
  status?: string;
  epoch?: number;
}

export interface ScopedMemoryUnit {
  memory_unit: MemoryUnit;
  relevance_score: number;
  relevance_reason: string;
  format: string;
  /** Where it was asked to explain. */
  factors?: Record<string, { value: number; contribution: number }>;
}

export interface Conflict {
  id: string;
  type: ConflictType;
  status: ConflictStatus;
  /** The older one. */
  unit_a: string;
  unit_b: string;
  description: string;
  detected_by: string;
  resolution?: {
    strategy: Strategy;
    winner_id: string | null;
    rationale: string;
    resolved_by: string;
    epoch_resolved: number;
  };
  ballots?: { agent_id: string; winner_id: string }[];
  escalation_reason?: string;
}

/** Send its `epoch` as `since_epoch` to poll: no unit is missed or repeated. */
export interface Attuned {
  status: string;
  record: ScopedMemoryUnit[];
  conflicts: Conflict[];
  context_budget: {
    units_returned: number;
    units_available: number;
    tokens_used: number | null;
    tokens_budget: number | null;
  };
  epoch: number;
  warning?: Warning;
}

export interface Detected {
  status: string;
  conflicts: Conflict[];
  scan_coverage: { units_scanned: number; new_conflicts_found: number };
}

export interface Merged {
  status: "resolved" | "escalated" | "pending_vote";
  conflict: Conflict;
  side_effects: { superseded_units: string[]; new_unit_id: string | null; notified_agents: string[] };
  warning?: Warning;
}

export interface ReplayEvent {
  epoch: number;
  event_type: string;
  agent_id: string;
  description: string;
  memory_unit_id: string | null;
  task_id: string | null;
  timestamp: string;
}

export interface Replayed {
  status: string;
  timeline: ReplayEvent[];
  summary: string;
  agents_involved: string[];
  total_events: number;
}

export interface Compacted {
  status: string;
  units_affected: number;
  synthesis_units_created: number;
  storage_reclaimed_bytes: number | null;
  /** Extension: true where nothing was changed, because a preview was asked for. */
  dry_run?: boolean;
  warning?: Warning;
}

export interface Subscription {
  id: string;
  events: EventName[];
  min_relevance: number;
  debounce_ms: number;
  include_unit: boolean;
}

export interface Subscribed {
  status: string;
  subscription: Subscription;
  cursor: string;
  websocket_url?: string;
  events_url?: string;
}

export interface Notification {
  subscription_id: string;
  event: EventName;
  epoch: number;
  relevance_score: number;
  summary: string;
  memory_unit_id: string | null;
  conflict_id: string | null;
  requires_action: boolean;
  /** Its place in the stream, from where a later one can go on. */
  cursor: string;
  agent_id: string | null;
  task_id: string | null;
  memory_unit?: MemoryUnit;
}

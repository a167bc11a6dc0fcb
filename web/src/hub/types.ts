/** The protocol's words, as the hub writes them. */

export const MEMORY_TYPES = [
  'finding', 'decision', 'observation', 'intention', 'assumption', 'constraint', 'question', 'contradiction',
  'synthesis', 'correction', 'human_directive',
] as const;
export type MemoryType = (typeof MEMORY_TYPES)[number];

export const RELATION_TYPES = [
  'supports', 'contradicts', 'depends_on', 'supersedes', 'caused_by', 'elaborates', 'answers', 'blocks', 'informs',
] as const;
export type RelationType = (typeof RELATION_TYPES)[number];

export const UNIT_STATUSES = ['active', 'contested', 'superseded', 'retracted', 'pending_enrichment', 'draft'] as const;
export type UnitStatus = (typeof UNIT_STATUSES)[number];

export interface Relation {
  type: RelationType;
  target_id: string;
  description: string | null;
}

export interface Unit {
  id: string;
  mode: string;
  type: MemoryType;
  content: string;
  intent: { purpose: string; task_id: string | null; question: string | null };
  confidence: { score: number; reason: string; evidence?: string[]; assumptions?: string[] } | null;
  source: { agent_id: string; agent_role: string; session_id: string | null; timestamp: string };
  relations: Relation[];
  status: UnitStatus;
  epoch: number;
  archived?: boolean;
}

/** What GET /v1/units/{id} adds. */
export interface UnitInFull extends Unit {
  inbound_relations: { type: RelationType; source_id: string; description: string | null }[];
  conflicts: string[];
}

export type ConflictStatus = 'detected' | 'resolving' | 'escalated' | 'resolved';

export interface Conflict {
  id: string;
  type: string;
  status: ConflictStatus;
  unit_a: string;
  unit_b: string;
  description: string;
  detected_by: string;
  resolution?: {
    strategy: string;
    winner_id: string | null;
    rationale: string;
    resolved_by: string;
    epoch_resolved: number;
  } | null;
  ballots?: { agent_id: string; winner_id: string }[] | Record<string, string>;
  escalation_reason?: string | null;
}

export interface Agent {
  id: string;
  role: string;
  status: string;
  interests: string[];
  current_task_id: string | null;
  connected: boolean;
  last_seen: string | null;
  registered_epoch: number;
}

export interface Status {
  name: string;
  epoch: number;
  level: number;
  units: Record<UnitStatus, number>;
  /** In any status: archived is a flag beside it. */
  units_archived: number;
  agents: number;
  agents_active: number;
  conflicts: number;
  conflicts_unresolved: number;
  subscriptions: number;
  connections: number;
  log_entries: number;
  log_bytes: number;
  uptime_ms: number;
  version: string;
}

export interface Capabilities {
  conformance_level: number;
  supported_operations: string[];
  protocol_version: string;
  persistence: boolean;
  conflict_strategies: string[];
  field: string;
  embedding: { name: string; dimensions: number } | null;
  limits: Record<string, number>;
  extensions: string[];
}

/** What the stream tells. */
export interface Notification {
  subscription_id: string;
  event: string;
  epoch: number;
  cursor: string;
  summary: string;
  memory_unit_id: string | null;
  conflict_id: string | null;
  agent_id: string;
  task_id: string | null;
  requires_action: boolean;
  memory_unit?: Unit;
}

export interface ReplayEvent {
  epoch: number;
  event_type: string;
  agent_id: string;
  description: string;
  memory_unit_id: string | null;
  task_id: string | null;
  timestamp?: string;
}

export interface Replayed {
  timeline: ReplayEvent[];
  summary: string;
  agents_involved: string[];
  total_events: number;
}

export interface Scored {
  memory_unit: Unit;
  relevance_score: number;
  relevance_reason: string;
  format: 'full' | 'summary';
  factors?: Record<string, { value: number; contribution: number }>;
}

export interface Attuned {
  record: Scored[];
  conflicts: Conflict[];
  context_budget: {
    units_returned: number;
    units_available: number;
    tokens_used: number | null;
    tokens_budget: number | null;
  };
  epoch: number;
  warning?: { code: string; message: string };
}

/** The hub's no. */
export interface Refusal {
  code: string;
  message: string;
  suggested_action?: string;
}

"""What a hub answers, as data (protocol, section 7).

The names are the protocol's own. Values out of a closed set (types, statuses) are plain strings here, so that a later
hub's new ones can be read too. Keys that this version does not know are kept in each object's ``extra``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._reading import Answer

__all__ = [
    "Acknowledged",
    "Agent",
    "Answer",
    "Attuned",
    "Ballot",
    "Capabilities",
    "Caution",
    "Cleanup",
    "Compacted",
    "Confidence",
    "Conflict",
    "ContextBudget",
    "Deregistered",
    "Detected",
    "Intent",
    "MemoryUnit",
    "Merged",
    "Notification",
    "Recorded",
    "Registered",
    "Relation",
    "RelevanceFactor",
    "ReplayEvent",
    "Replayed",
    "Resolution",
    "ScanCoverage",
    "ScopedMemoryUnit",
    "SideEffects",
    "Source",
    "Subscription",
]


@dataclass(frozen=True, kw_only=True)
class Caution(Answer):
    """What did not go as it should in an operation that was done (its key is ``warning``)."""

    code: str
    message: str
    recoverable: bool
    suggested_action: str


@dataclass(frozen=True, kw_only=True)
class Agent(Answer):
    """A registered participant."""

    id: str
    role: str
    status: str
    interests: list[str] = field(default_factory=list[str])
    current_task_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Capabilities(Answer):
    """What a Field can do. What is not served is not listed."""

    conformance_level: int
    supported_operations: list[str]
    protocol_version: str
    persistence: bool
    conflict_strategies: list[str]
    memory_types: list[str] = field(default_factory=list[str])
    embedding: Any = None
    limits: dict[str, Any] = field(default_factory=dict[str, Any])
    extensions: list[str] = field(default_factory=list[str])
    field: str | None = None  # last, for in this class body it hides what makes the defaults above


@dataclass(frozen=True, kw_only=True)
class Registered(Answer):
    """REGISTER's answer. Its ``status`` is ``registered`` or, where required operations are missing, ``rejected``."""

    status: str
    agent: Agent | None
    field_capabilities: Capabilities
    rejection_reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Cleanup(Answer):
    """What became of a leaving agent's work."""

    units_orphaned: int
    tasks_reassigned: int


@dataclass(frozen=True, kw_only=True)
class Deregistered(Answer):
    """DEREGISTER's answer: ``ok`` or ``not_found``."""

    status: str
    cleanup: Cleanup


@dataclass(frozen=True, kw_only=True)
class Recorded(Answer):
    """RECORD's answer."""

    status: str
    memory_unit_id: str
    epoch: int
    conflicts_detected: list[str] = field(default_factory=list[str])
    rejection_reason: str | None = None
    warning: Caution | None = None


@dataclass(frozen=True, kw_only=True)
class Acknowledged(Answer):
    """The answer of RETRACT, COMMIT and DISCARD; ``conflicts_detected`` and ``warning`` are COMMIT's alone."""

    status: str
    memory_unit_id: str
    epoch: int
    conflicts_detected: list[str] = field(default_factory=list[str])
    warning: Caution | None = None


@dataclass(frozen=True, kw_only=True)
class Intent(Answer):
    """Why a unit was recorded."""

    purpose: str
    task_id: str | None = None
    question: str | None = None


@dataclass(frozen=True, kw_only=True)
class Confidence(Answer):
    """How sure its author is, 0 to 1, and why."""

    score: float | None = None
    reason: str | None = None
    evidence: list[str] = field(default_factory=list[str])
    assumptions: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True)
class Source(Answer):
    """Who recorded it and when (RFC 3339, UTC)."""

    agent_id: str
    agent_role: str
    session_id: str | None = None
    timestamp: str = ""


@dataclass(frozen=True, kw_only=True)
class Relation(Answer):
    """A tie to another unit."""

    type: str
    target_id: str
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class MemoryUnit(Answer):
    """The atom of knowledge. With ATTUNE's format ``ids_only`` there is nothing but the ``id``."""

    id: str
    mode: str | None = None
    type: str | None = None
    content: str | None = None
    intent: Intent | None = None
    confidence: Confidence | None = None
    source: Source | None = None
    relations: list[Relation] = field(default_factory=list[Relation])
    status: str | None = None
    epoch: int | None = None


@dataclass(frozen=True, kw_only=True)
class RelevanceFactor(Answer):
    """One factor of a relevance score: how much of it there is, 0 to 1, and what it adds to the score."""

    value: float
    contribution: float


@dataclass(frozen=True, kw_only=True)
class ScopedMemoryUnit(Answer):
    """One unit that ATTUNE brings, and why. ``factors`` are there where it was asked to explain."""

    memory_unit: MemoryUnit
    relevance_score: float
    relevance_reason: str
    format: str
    factors: dict[str, RelevanceFactor] | None = None


@dataclass(frozen=True, kw_only=True)
class ContextBudget(Answer):
    """How much ATTUNE brought of how much there was."""

    units_returned: int
    units_available: int
    tokens_used: int | None = None
    tokens_budget: int | None = None


@dataclass(frozen=True, kw_only=True)
class Resolution(Answer):
    """How a conflict was settled, or to whom it was left."""

    strategy: str
    winner_id: str | None = None
    rationale: str = ""
    resolved_by: str | None = None
    epoch_resolved: int | None = None


@dataclass(frozen=True, kw_only=True)
class Ballot(Answer):
    """One agent's vote on a conflict."""

    agent_id: str
    winner_id: str


@dataclass(frozen=True, kw_only=True)
class Conflict(Answer):
    """Two units that contradict each other; ``unit_a`` is the older one."""

    id: str
    type: str
    status: str
    unit_a: str
    unit_b: str
    description: str
    detected_by: str
    resolution: Resolution | None = None
    ballots: list[Ballot] = field(default_factory=list[Ballot])
    escalation_reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Attuned(Answer):
    """ATTUNE's answer. Send its ``epoch`` as ``since_epoch`` to poll: no unit is missed or repeated."""

    status: str
    record: list[ScopedMemoryUnit]
    conflicts: list[Conflict]
    context_budget: ContextBudget
    epoch: int
    warning: Caution | None = None


@dataclass(frozen=True, kw_only=True)
class ScanCoverage(Answer):
    """How much DETECT looked at."""

    units_scanned: int
    new_conflicts_found: int


@dataclass(frozen=True, kw_only=True)
class Detected(Answer):
    """DETECT's answer."""

    status: str
    conflicts: list[Conflict]
    scan_coverage: ScanCoverage


@dataclass(frozen=True, kw_only=True)
class SideEffects(Answer):
    """What a MERGE did beside resolving the conflict."""

    superseded_units: list[str] = field(default_factory=list[str])
    new_unit_id: str | None = None
    notified_agents: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True)
class Merged(Answer):
    """MERGE's answer. Its ``status`` is ``resolved``, ``escalated`` or ``pending_vote``."""

    status: str
    conflict: Conflict
    side_effects: SideEffects
    warning: Caution | None = None


@dataclass(frozen=True, kw_only=True)
class ReplayEvent(Answer):
    """One event of a REPLAY timeline."""

    epoch: int
    event_type: str
    agent_id: str
    description: str
    memory_unit_id: str | None = None
    task_id: str | None = None
    timestamp: str | None = None


@dataclass(frozen=True, kw_only=True)
class Replayed(Answer):
    """REPLAY's answer."""

    status: str
    timeline: list[ReplayEvent]
    summary: str
    agents_involved: list[str]
    total_events: int


@dataclass(frozen=True, kw_only=True)
class Compacted(Answer):
    """COMPACT's answer."""

    status: str
    units_affected: int
    synthesis_units_created: int
    storage_reclaimed_bytes: int | None = None
    dry_run: bool = False
    """Extension: nothing was changed, because a preview was asked for."""
    warning: Caution | None = None


@dataclass(frozen=True, kw_only=True)
class Subscription(Answer):
    """An agent's standing request to be told of events."""

    id: str
    events: list[str]
    min_relevance: float = 0.0
    debounce_ms: int = 0
    include_unit: bool = False


@dataclass(frozen=True, kw_only=True)
class Notification(Answer):
    """What an agent is told. ``cursor`` is its place in the stream, from where a later one can go on."""

    subscription_id: str
    event: str
    epoch: int
    relevance_score: float
    summary: str
    memory_unit_id: str | None = None
    conflict_id: str | None = None
    requires_action: bool = False
    cursor: str
    agent_id: str | None = None
    task_id: str | None = None
    memory_unit: MemoryUnit | None = None


@dataclass(frozen=True, kw_only=True)
class Subscribed(Answer):
    """SUBSCRIBE's answer to ``subscribe``: from where the subscription is told, and where to listen."""

    status: str
    subscription: Subscription
    cursor: str
    websocket_url: str | None = None
    events_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Subscriptions(Answer):
    """SUBSCRIBE's answer to ``list``."""

    status: str
    subscriptions: list[Subscription]


@dataclass(frozen=True, kw_only=True)
class Polled(Answer):
    """The answer to a poll for notifications; ``cursor`` is where to go on."""

    events: list[Notification]
    cursor: str

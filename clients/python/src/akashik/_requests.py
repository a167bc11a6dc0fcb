"""What can be asked: keyword arguments made into payloads (section 7). What is not given is not sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from .answers import Relation

MemoryType: TypeAlias = Literal[
    "finding",
    "decision",
    "observation",
    "intention",
    "assumption",
    "constraint",
    "question",
    "contradiction",
    "synthesis",
    "correction",
    "human_directive",
]
RelationType: TypeAlias = Literal[
    "supports",
    "contradicts",
    "depends_on",
    "supersedes",
    "caused_by",
    "elaborates",
    "answers",
    "blocks",
    "informs",
]
#: A tie to another unit: ``("contradicts", "mem-3")``, or a :class:`Relation` with a description.
RelationLike: TypeAlias = "Relation | tuple[RelationType, str]"
Mode: TypeAlias = Literal["committed", "draft"]
Format: TypeAlias = Literal["full", "summary", "ids_only"]
TemporalLayer: TypeAlias = Literal["past", "present", "future"]
DetectMode: TypeAlias = Literal["list", "check", "scan"]
ConflictStatus: TypeAlias = Literal["detected", "resolving", "resolved", "escalated"]
ConflictType: TypeAlias = Literal["factual", "interpretive", "strategic", "priority"]
Strategy: TypeAlias = Literal[
    "last_write_wins",
    "confidence_weighted",
    "human_escalation",
    "authority",
    "evidence_count",
    "synthesis",
    "vote",
]
ReplayTarget: TypeAlias = Literal["task", "memory_unit", "decision", "conflict", "session"]
ReplayDepth: TypeAlias = Literal["summary", "detailed", "full_trace"]
CompactStrategy: TypeAlias = Literal["archive", "summarize", "purge"]
EventName: TypeAlias = Literal[
    "memory.recorded",
    "memory.superseded",
    "memory.contested",
    "memory.retracted",
    "memory.archived",
    "conflict.detected",
    "conflict.escalated",
    "conflict.resolved",
    "task.state_changed",
    "task.assigned",
    "task.completed",
    "handoff.incoming",
    "agent.joined",
    "agent.left",
    "agent.failed",
    "session.paused",
    "session.ended",
]

Payload: TypeAlias = dict[str, Any]


def _given(**keys: Any) -> Payload:
    return {key: _plain(value) for key, value in keys.items() if value is not None}


def _plain(value: Any) -> Any:
    """Make lists of what can only be gone through once; texts and objects stay."""
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict)):
        return list(value)
    return value


def _relations(relations: Iterable[RelationLike] | None) -> list[Payload] | None:
    if relations is None:
        return None
    written: list[Payload] = []
    for relation in relations:
        if isinstance(relation, Relation):
            written.append(_given(type=relation.type, target_id=relation.target_id, description=relation.description))
        else:
            kind, target = relation
            written.append({"type": kind, "target_id": target})
    return written


def _confidence(
    score: float | None, reason: str | None, evidence: Iterable[str] | None, assumptions: Iterable[str] | None
) -> Payload | None:
    return _given(score=score, reason=reason, evidence=evidence, assumptions=assumptions) or None


def register(
    agent_id: str, role: str, interests: Iterable[str] | None, required_operations: Iterable[str] | None
) -> Payload:
    """REGISTER."""
    return _given(id=agent_id, role=role, interests=interests, required_operations=required_operations)


def record(
    *,
    kind: str,
    content: str,
    purpose: str | None,
    task_id: str | None,
    question: str | None,
    score: float | None,
    reason: str | None,
    evidence: Iterable[str] | None,
    assumptions: Iterable[str] | None,
    relations: Iterable[RelationLike] | None,
    mode: str | None,
) -> Payload:
    """RECORD."""
    return _given(
        mode=mode,
        type=kind,
        content=content,
        intent=_given(purpose=purpose, task_id=task_id, question=question),
        confidence=_confidence(score, reason, evidence, assumptions),
        relations=_relations(relations),
    )


def attune(
    *,
    role: str,
    max_units: int,
    hint: str | None,
    since_epoch: int | None,
    format: str | None,
    explain: bool | None,
    max_tokens: int | None,
    interests: Iterable[str] | None,
    active_task_id: str | None,
    temporal_layers: Iterable[str] | None,
    relevance_threshold: float | None,
    recency_weight: float | None,
    include_own: bool | None,
    include_drafts: bool | None,
    include_archived: bool | None,
    session_id: str | None,
    types: Iterable[str] | None,
) -> Payload:
    """ATTUNE."""
    scope = _given(
        role=role,
        max_units=max_units,
        max_tokens=max_tokens,
        interests=interests,
        active_task_id=active_task_id,
        temporal_layers=temporal_layers,
        relevance_threshold=relevance_threshold,
        recency_weight=recency_weight,
        include_own=include_own,
        include_drafts=include_drafts,
        include_archived=include_archived,
        session_id=session_id,
        types=types,
    )
    return _given(scope=scope, context_hint=hint, since_epoch=since_epoch, format=format, explain=explain)


def detect(
    *,
    mode: str,
    target_id: str | None,
    status: Iterable[str] | None,
    types: Iterable[str] | None,
    involving_agents: Iterable[str] | None,
) -> Payload:
    """DETECT."""
    found = _given(status=status, types=types, involving_agents=involving_agents)
    return _given(mode=mode, target_id=target_id, filter=found or None)


def merge(conflict_id: str, strategy: str, rationale: str, winner_id: str | None, synthesis: str | None) -> Payload:
    """MERGE."""
    resolution = _given(rationale=rationale, winner_id=winner_id, synthesis=synthesis)
    return _given(conflict_id=conflict_id, strategy=strategy, resolution=resolution)


def replay(target_type: str, target_id: str, depth: str, as_of_epoch: int | None) -> Payload:
    """REPLAY."""
    return _given(target_type=target_type, target_id=target_id, depth=depth, as_of_epoch=as_of_epoch)


def compact(
    *,
    strategy: str,
    max_age_epochs: int | None,
    session_id: str | None,
    types: Iterable[str] | None,
    status: Iterable[str] | None,
    reason: str | None,
    confirm: bool | None,
    dry_run: bool | None,
) -> Payload:
    """COMPACT."""
    found = _given(max_age_epochs=max_age_epochs, session_id=session_id, types=types, status=status)
    return _given(strategy=strategy, filter=found or None, reason=reason, confirm=confirm, dry_run=dry_run)


def commit(
    unit_id: str,
    score: float | None,
    reason: str | None,
    evidence: Iterable[str] | None,
    assumptions: Iterable[str] | None,
    relations: Iterable[RelationLike] | None,
) -> Payload:
    """COMMIT."""
    return _given(
        memory_unit_id=unit_id,
        confidence=_confidence(score, reason, evidence, assumptions),
        relations=_relations(relations),
    )


def give_up(unit_id: str, reason: str) -> Payload:
    """RETRACT and DISCARD."""
    return {"memory_unit_id": unit_id, "reason": reason}


def subscribe(
    *,
    events: Iterable[str] | None,
    id: str | None,
    min_relevance: float | None,
    debounce_ms: int | None,
    include_unit: bool | None,
    resume_after: str | None,
) -> Payload:
    """SUBSCRIBE, action ``subscribe``."""
    subscription = _given(
        id=id,
        events=events,
        min_relevance=min_relevance,
        debounce_ms=debounce_ms,
        include_unit=include_unit,
        resume_after=resume_after,
    )
    return {"action": "subscribe", "subscription": subscription}


def unsubscribe(id: str) -> Payload:
    """SUBSCRIBE, action ``unsubscribe``."""
    return {"action": "unsubscribe", "subscription": {"id": id}}


LIST_SUBSCRIPTIONS: Payload = {"action": "list"}

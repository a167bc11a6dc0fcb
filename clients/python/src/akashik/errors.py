"""Why a call to a hub did not bring what was asked for.

Everything that this package raises on purpose is an :class:`AkashikError`. The Field's no is a :class:`Refused`, of a
class of its own for each code of the protocol (section 9).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "AddressError",
    "AgentIdTaken",
    "AgentNotRegistered",
    "AkashikError",
    "ConflictNotFound",
    "Disconnected",
    "EpochOverflow",
    "FieldNotFound",
    "Forbidden",
    "InternalError",
    "InvalidConfidence",
    "InvalidMessage",
    "InvalidTransition",
    "InvalidType",
    "MergeFailed",
    "MessageTooLarge",
    "MissingConfidence",
    "MissingIntent",
    "Overloaded",
    "ProtocolError",
    "RateLimited",
    "Refused",
    "ReplayTooLarge",
    "StorageFull",
    "SubscriptionNotFound",
    "Unauthenticated",
    "UnitNotFound",
    "Unreachable",
    "UnsupportedOperation",
]


class AkashikError(Exception):
    """What every error of this package is."""


class AddressError(AkashikError, ValueError):
    """The URL is not a hub's address, or the name none that a Field can have."""


class Unreachable(AkashikError, ConnectionError):
    """Nobody answered in time; the message may have been carried out or not."""


class Disconnected(AkashikError, ConnectionError):
    """The connection is gone for good, or the client was closed; the message may have been carried out or not."""


class ProtocolError(AkashikError):
    """The other side does not speak as a hub does, or the message cannot be written as JSON."""


class Refused(AkashikError):
    """The Field said no; nothing was changed.

    ``recoverable`` says whether the same agent can succeed after changing something or waiting, ``suggested_action``
    what to do next, in words that a language model can act on. ``details`` names the offending key, the limit or the
    current state, where there is one. ``body`` is the whole error body as it came.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = dict(body)
        self.code = str(body.get("code", ""))
        self.message = str(body.get("message", ""))
        self.operation = str(body.get("operation", ""))
        self.recoverable = body.get("recoverable") is True
        self.suggested_action = str(body.get("suggested_action", ""))
        details = body.get("details")
        self.details: dict[str, Any] = dict(details) if isinstance(details, Mapping) else {}
        super().__init__(f"{self.code}: {self.message} {self.suggested_action}")

    def __reduce__(self) -> tuple[type[Refused], tuple[dict[str, Any]]]:
        return type(self), (self.body,)

    @property
    def retry_after(self) -> float | None:
        """How many seconds to wait before the next try, where the hub says it (RATE_LIMITED, OVERLOADED)."""
        pause = self.details.get("retry_after_ms")
        return pause / 1000 if isinstance(pause, (int, float)) else None


class MissingIntent(Refused):
    """MISSING_INTENT: a unit without a purpose."""


class MissingConfidence(Refused):
    """MISSING_CONFIDENCE: a committed unit without a score and a reason."""


class InvalidConfidence(Refused):
    """INVALID_CONFIDENCE: the score is no number from 0 to 1."""


class InvalidType(Refused):
    """INVALID_TYPE: an unknown type of unit or relation."""


class AgentNotRegistered(Refused):
    """AGENT_NOT_REGISTERED: unknown, gone, or failed after its connection was away for too long."""


class AgentIdTaken(Refused):
    """AGENT_ID_TAKEN: an active agent has this id."""


class InvalidTransition(Refused):
    """INVALID_TRANSITION: the unit or the conflict is not in a state that allows it."""


class MergeFailed(Refused):
    """MERGE_FAILED: the conflict stays as it was."""


class ConflictNotFound(Refused):
    """CONFLICT_NOT_FOUND."""


class UnitNotFound(Refused):
    """UNIT_NOT_FOUND: also what a REPLAY says of any unknown target."""


class UnsupportedOperation(Refused):
    """UNSUPPORTED_OPERATION: this Field does not serve it."""


class ReplayTooLarge(Refused):
    """REPLAY_TOO_LARGE: ask for less depth, or up to an epoch."""


class StorageFull(Refused):
    """STORAGE_FULL: reads are served, writes are not."""


class EpochOverflow(Refused):
    """EPOCH_OVERFLOW: the message's epoch is too far ahead."""


class InternalError(Refused):
    """INTERNAL_ERROR."""


class InvalidMessage(Refused):
    """INVALID_MESSAGE: ``details["key"]`` names the offending key."""


class MessageTooLarge(Refused):
    """MESSAGE_TOO_LARGE: more bytes than the hub takes in one message."""


class Unauthenticated(Refused):
    """UNAUTHENTICATED: the hub asks for a token."""


class Forbidden(Refused):
    """FORBIDDEN: not this agent, or not with this authority."""


class FieldNotFound(Refused):
    """FIELD_NOT_FOUND: the hub serves no Field of this name."""


class SubscriptionNotFound(Refused):
    """SUBSCRIPTION_NOT_FOUND: there is none of this id, or it was ended."""


class RateLimited(Refused):
    """RATE_LIMITED: see :attr:`Refused.retry_after`."""


class Overloaded(Refused):
    """OVERLOADED: see :attr:`Refused.retry_after`."""


_BY_CODE: dict[str, type[Refused]] = {
    "MISSING_INTENT": MissingIntent,
    "MISSING_CONFIDENCE": MissingConfidence,
    "INVALID_CONFIDENCE": InvalidConfidence,
    "INVALID_TYPE": InvalidType,
    "AGENT_NOT_REGISTERED": AgentNotRegistered,
    "AGENT_ID_TAKEN": AgentIdTaken,
    "INVALID_TRANSITION": InvalidTransition,
    "MERGE_FAILED": MergeFailed,
    "CONFLICT_NOT_FOUND": ConflictNotFound,
    "UNIT_NOT_FOUND": UnitNotFound,
    "UNSUPPORTED_OPERATION": UnsupportedOperation,
    "REPLAY_TOO_LARGE": ReplayTooLarge,
    "STORAGE_FULL": StorageFull,
    "EPOCH_OVERFLOW": EpochOverflow,
    "INTERNAL_ERROR": InternalError,
    "INVALID_MESSAGE": InvalidMessage,
    "MESSAGE_TOO_LARGE": MessageTooLarge,
    "UNAUTHENTICATED": Unauthenticated,
    "FORBIDDEN": Forbidden,
    "FIELD_NOT_FOUND": FieldNotFound,
    "SUBSCRIPTION_NOT_FOUND": SubscriptionNotFound,
    "RATE_LIMITED": RateLimited,
    "OVERLOADED": Overloaded,
}


def is_error_body(payload: Mapping[str, Any]) -> bool:
    """Tell an error body from a response: no response has these keys."""
    return "code" in payload and "suggested_action" in payload


def refused(body: Mapping[str, Any]) -> Refused:
    """Make the exception of an error body; a code of a later version is a plain :class:`Refused`."""
    return _BY_CODE.get(str(body.get("code", "")), Refused)(body)


def too_large(operation: str, size: int | None, most: int | None) -> MessageTooLarge:
    """Make the refusal of a message that is not even sent, or for which the hub closed the connection."""
    known = {"bytes": size, "limit_bytes": most}
    return MessageTooLarge(
        {
            "code": "MESSAGE_TOO_LARGE",
            "message": f"The message has {size} bytes; the hub takes at most {most or 'fewer'}.",
            "operation": operation,
            "recoverable": True,
            "suggested_action": "Send less in one message: shorten the content, or record it as several units.",
            "details": {key: value for key, value in known.items() if value is not None},
        }
    )


def ended_elsewhere(subscription_id: str) -> SubscriptionNotFound:
    """Make the refusal with which a stream ends whose subscription somebody else has ended."""
    return SubscriptionNotFound(
        {
            "code": "SUBSCRIPTION_NOT_FOUND",
            "message": f"The subscription {subscription_id!r} was ended by somebody else.",
            "operation": "SUBSCRIBE",
            "recoverable": False,
            "suggested_action": "SUBSCRIBE again, with the events to be told of.",
            "details": {"subscription_id": subscription_id},
        }
    )

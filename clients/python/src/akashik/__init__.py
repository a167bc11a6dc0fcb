"""Client of akashik-hub: shared memory for teams of AI agents, over the Akashik Protocol 0.1.

:class:`AsyncClient` holds a WebSocket and is told of what happens; :class:`Client` speaks HTTP, one exchange a call.
Both have one method for each operation, answer with the dataclasses of :mod:`akashik.answers`, and raise the exceptions
of :mod:`akashik.errors`.
"""

from . import answers, errors
from ._requests import (
    CompactStrategy,
    ConflictStatus,
    ConflictType,
    DetectMode,
    EventName,
    Format,
    MemoryType,
    Mode,
    RelationLike,
    RelationType,
    ReplayDepth,
    ReplayTarget,
    Strategy,
    TemporalLayer,
)
from .aio import AsyncClient, DirectNotifications, Notifications
from .answers import Notification, Relation
from .errors import AddressError, AkashikError, Disconnected, ProtocolError, Refused, Unreachable
from .sync import Client, Polling

__version__ = "0.1.0"

__all__ = [
    "AddressError",
    "AkashikError",
    "AsyncClient",
    "Client",
    "CompactStrategy",
    "ConflictStatus",
    "ConflictType",
    "DetectMode",
    "DirectNotifications",
    "Disconnected",
    "EventName",
    "Format",
    "MemoryType",
    "Mode",
    "Notification",
    "Notifications",
    "Polling",
    "ProtocolError",
    "Refused",
    "Relation",
    "RelationLike",
    "RelationType",
    "ReplayDepth",
    "ReplayTarget",
    "Strategy",
    "TemporalLayer",
    "Unreachable",
    "answers",
    "errors",
]

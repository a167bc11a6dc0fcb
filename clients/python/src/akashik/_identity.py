"""Who a client is to a hub: the envelopes that it writes, and what it has seen."""

from __future__ import annotations

import itertools
import json
import threading
import uuid
from typing import Any

from .errors import ProtocolError, too_large

PROTOCOL = "akashik"
VERSION = "0.1.0"
#: Epochs stay below this (section 2).
EPOCH_CEILING = 2**53
#: Largest answer of a hub, and the envelope around it, bytes.
ANSWER_MAX_BYTES = 16 * 1024 * 1024 + 64 * 1024


def write_json(value: object) -> str:
    """Write JSON that every hub reads: no NaN, no lone surrogates."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"the payload cannot be written as JSON: {error}") from error
    return text


class Identity:
    """Who speaks, and what it has seen. Safe to share between threads."""

    def __init__(self, agent_id: str, session_id: str | None) -> None:
        self.agent_id = agent_id
        self.session_id = session_id
        #: Largest message that the hub takes, bytes, once it has said so.
        self.message_max_bytes: int | None = None
        # Message ids are this and a number: unique, also across restarts of whoever uses the client.
        self._prefix = f"{uuid.uuid4().hex}-"
        self._numbers = itertools.count(1)
        self._epoch = 0
        self._lock = threading.Lock()

    @property
    def epoch(self) -> int:
        """The greatest epoch seen."""
        return self._epoch

    def saw(self, epoch: object) -> None:
        """Note an epoch that the hub has shown; anything that is none is passed over."""
        if not isinstance(epoch, int) or not 0 <= epoch < EPOCH_CEILING:
            return
        with self._lock:
            self._epoch = max(self._epoch, epoch)

    def learn(self, capabilities: dict[str, Any]) -> None:
        """Learn how large a message may be: a larger one would only cost everybody the connection."""
        limits = capabilities.get("limits")
        most = limits.get("message_bytes") if isinstance(limits, dict) else None
        if isinstance(most, int):
            self.message_max_bytes = most

    def next_number(self) -> int:
        """Return the number of a new message."""
        return next(self._numbers)

    def frame(self, number: int, operation: str, payload: str) -> bytes:
        """Write a message around a payload that is JSON text."""
        head = write_json(
            {
                "protocol": PROTOCOL,
                "version": VERSION,
                "id": f"{self._prefix}{number}",
                "operation": operation,
                "agent_id": self.agent_id,
                "session_id": self.session_id,
                "epoch": self.epoch,
            }
        )
        frame = f'{head[:-1]},"payload":{payload}}}'.encode()
        if self.message_max_bytes is not None and len(frame) > self.message_max_bytes:
            raise too_large(operation, len(frame), self.message_max_bytes)
        return frame

    def number(self, message_id: str) -> int | None:
        """Return the number in a message id of this client."""
        rest = message_id.removeprefix(self._prefix)
        return int(rest) if len(rest) < len(message_id) and rest.isascii() and rest.isdigit() else None

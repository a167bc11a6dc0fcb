"""How long to wait before the next attempt to connect."""

from __future__ import annotations

import random

#: The first delay before jitter, seconds.
FIRST = 0.1
#: The longest delay before jitter, seconds.
CAP = 5.0
#: Doublings after which the cap is certainly reached.
_DOUBLINGS_MAX = 16


class Backoff:
    """Delays that double up to a cap.

    The jitter comes after the cap: otherwise all clients of a hub that was away for long would return in the same
    moment.
    """

    def __init__(self) -> None:
        self._attempts = 0

    def next(self) -> float:
        """Return the next delay, in seconds."""
        doubled: float = FIRST * 2 ** min(self._attempts, _DOUBLINGS_MAX)
        self._attempts += 1
        return min(doubled, CAP) * random.uniform(0.5, 1.5)

    def reset(self) -> None:
        """Start over, after a connection that was of use."""
        self._attempts = 0

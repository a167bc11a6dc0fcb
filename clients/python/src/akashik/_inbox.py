"""What was pushed and not yet taken: one bounded queue for each subscription, and its place in the stream.

A taker may be slower than the hub. Its queue is bounded; what does not fit is let go, the subscription counts as
*behind*, and once half of the queue is taken it is attached again after the last notification that did fit. So
nothing is lost, memory is bounded, and replies to calls on the same connection still come through.
"""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from collections.abc import Callable

from .answers import Notification, Subscribed
from .errors import AkashikError, ProtocolError

#: Notifications that wait for a taker, and their bytes: as much as the hub sends ahead to one connection.
QUEUED_MAX = 1_024
QUEUED_MAX_BYTES = 4 * 1024 * 1024

#: A cursor, comparable: epoch, then index.
Place = tuple[int, int]


def read_cursor(text: str) -> Place:
    """Read ``"<epoch>.<index>"``."""
    epoch, _, index = text.partition(".")
    if not (epoch.isascii() and epoch.isdigit() and index.isascii() and index.isdigit()):
        raise ProtocolError(f"unreadable cursor {text!r}")
    return int(epoch), int(index)


def write_cursor(place: Place) -> str:
    """Write a cursor as it stands in messages."""
    return f"{place[0]}.{place[1]}"


class Standing(enum.Enum):
    """How a subscription stands with the hub on the current connection."""

    #: What is pushed is queued.
    LIVE = enum.auto()
    #: Something did not fit: what is pushed is let go until there is room and it is attached again.
    BEHIND = enum.auto()
    #: It is to be attached again.
    DETACHED = enum.auto()
    #: That has been asked for; what is pushed before the answer belongs to the attachment before.
    ATTACHING = enum.auto()


class Inbox:
    """One subscription's queue, between the link and the taker. Belongs to one event loop."""

    def __init__(self, *, resumable: bool, made_room: Callable[[], None], wants_attach: Callable[[], None]) -> None:
        #: Whether what is let go can be asked for again.
        self.resumable = resumable
        #: Everything up to here was queued.
        self.reached: Place = (0, 0)
        #: The cursor of what was taken last, or from where the subscription is told.
        self.taken: Place = (0, 0)
        #: Notifications that were let go for good.
        self.missed = 0
        self.standing = Standing.ATTACHING if resumable else Standing.LIVE
        self._queue: deque[tuple[Notification, Place, int]] = deque()
        self._bytes = 0
        # The queue has been full, and half of it is not taken yet.
        self._full = False
        # Cursors of a debounced subscription may come more than once.
        self._debounced = False
        # The agent was registered anew for this subscription, and the hub has not taken it back yet.
        self._returning = False
        self._ended = False
        self._why: AkashikError | None = None
        self._news = asyncio.Event()
        self._made_room = made_room
        self._wants_attach = wants_attach

    def attached(self, answer: Subscribed, *, first: bool) -> None:
        """Note that the hub has attached it; the first time this also says from where it is told."""
        if first:
            self.reached = self.taken = read_cursor(answer.cursor)
        self.standing = Standing.LIVE
        self._debounced = answer.subscription.debounce_ms > 0
        self._returning = False

    def offer(self, notification: Notification, size: int) -> None:
        """Queue a notification, unless it was queued before, or there is no room."""
        place = read_cursor(notification.cursor)
        known = self.resumable and not self._debounced and place <= self.reached
        if self._ended or self.standing is not Standing.LIVE or known:
            return
        if not self._has_room(size):
            if self.resumable:
                self.standing = Standing.BEHIND
            else:
                self.missed += 1
            return
        self.reached = max(self.reached, place)
        self._bytes += size
        self._queue.append((notification, place, size))
        # Likely the next one is as large, and what is not read need not be let go.
        self._full = self._full or not self._has_room(size)
        self._news.set()

    def take(self) -> Notification | None:
        """Take the next notification, if one is there."""
        if not self._queue:
            return None
        notification, place, size = self._queue.popleft()
        self._bytes -= size
        self.taken = max(self.taken, place)
        if self._is_half_empty() and (self._full or self.standing is Standing.BEHIND):
            self._full = False
            self._made_room()
            if self.standing is Standing.BEHIND:
                self._wants_attach()
        return notification

    async def next(self) -> Notification | None:
        """Wait for the next notification; nothing once there will be none. An error comes once, as the last.

        Being cancelled loses nothing.
        """
        while True:
            notification = self.take()
            if notification is not None:
                return notification
            if self._ended:
                why, self._why = self._why, None
                if why is not None:
                    raise why
                return None
            self._news.clear()
            await self._news.wait()

    def reattach(self, *, new_connection: bool) -> Place | None:
        """Tell from where to attach it again, if that is to be done now; it counts as asked for then."""
        match self.standing:
            case Standing.LIVE | Standing.ATTACHING:
                due = new_connection
            case Standing.BEHIND:
                due = self._is_half_empty()
            case Standing.DETACHED:
                due = True
        if not self.resumable or self._ended or not due:
            return None
        self.standing = Standing.ATTACHING
        return self.reached

    def may_return(self) -> bool:
        """Note that the agent is registered anew for its sake; false if that was done already, and was of no use."""
        before, self._returning = self._returning, True
        return not before

    def end(self, why: AkashikError | None = None) -> None:
        """Let nothing more come, but for what is queued."""
        if not self._ended:
            self._ended, self._why = True, why
        self._news.set()

    @property
    def is_open(self) -> bool:
        """Whether reading on is of use to it: it has room, or awaits an answer."""
        return self.standing is Standing.ATTACHING or (self.standing is Standing.LIVE and not self._full)

    def _has_room(self, size: int) -> bool:
        # One always fits into an empty queue.
        fits = len(self._queue) < QUEUED_MAX and self._bytes + size < QUEUED_MAX_BYTES
        return not self._queue or fits

    def _is_half_empty(self) -> bool:
        return len(self._queue) <= QUEUED_MAX // 2 and self._bytes <= QUEUED_MAX_BYTES // 2

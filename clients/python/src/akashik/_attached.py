"""The subscriptions of one client: which inbox a push belongs to, and what to send to attach them again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from ._inbox import Inbox, Standing, write_cursor
from ._reading import read
from ._requests import LIST_SUBSCRIPTIONS, Payload
from .answers import Notification, Subscribed, Subscriptions
from .errors import AgentNotRegistered, AkashikError, ProtocolError, Refused, ended_elsewhere

_log = logging.getLogger("akashik")

#: The name under which authors hear of resolved conflicts without a subscription.
DIRECT = "direct"

#: What the hub may say of a moment, and not of the subscription.
_PASSING = {"OVERLOADED", "RATE_LIMITED", "STORAGE_FULL", "INTERNAL_ERROR"}

#: Takes the answer to a message of the client's own: its payload, or why there is none.
Answered = Callable[[dict[str, Any] | AkashikError], None]


class Attached:
    """Every inbox that something can be pushed to. Belongs to one event loop."""

    def __init__(self) -> None:
        #: Rings when there is room again, or somebody waits for a reply: whoever paused reads on.
        self.room = asyncio.Event()
        #: Called when a subscription wants to be attached again.
        self.wants_attach: Callable[[], None] = lambda: None
        #: The hub could not attach something just now.
        self.put_off = False
        #: How the agent was registered over this client: REGISTER's payload.
        self.registration: Payload | None = None
        self._inboxes: dict[str, Inbox] = {}
        # The agent failed meanwhile, and is to be registered again.
        self._returns = False
        self._over = False

    def inbox(self, *, resumable: bool) -> Inbox:
        """Make an inbox, which nothing is pushed to yet."""
        return Inbox(resumable=resumable, made_room=self.room.set, wants_attach=lambda: self.wants_attach())

    def enter(self, subscription_id: str, inbox: Inbox) -> None:
        """Let what is pushed under this id go there from now on. Whoever took it before is told that it ended."""
        if self._over:
            return inbox.end()
        before = self._inboxes.get(subscription_id)
        self._inboxes[subscription_id] = inbox
        if before is not None and before is not inbox:
            before.end()
        return None

    def leave(self, inbox: Inbox) -> None:
        """Note that nobody takes from this inbox any more."""
        self._inboxes = {known: kept for known, kept in self._inboxes.items() if kept is not inbox}
        # It may have been what kept the link from reading.
        self.room.set()

    def end(self, subscription_id: str, why: AkashikError | None = None) -> None:
        """End one of them."""
        inbox = self._inboxes.pop(subscription_id, None)
        if inbox is not None:
            inbox.end(why)
        self.room.set()

    def end_all(self, why: AkashikError | None = None) -> None:
        """End all of them."""
        for known in list(self._inboxes):
            self.end(known, why)

    def leaves(self) -> None:
        """Note that the agent has left, and its subscriptions with it."""
        self.registration = None
        self.end_all()

    def close(self) -> None:
        """End all of them, and whatever would still come."""
        self._over = True
        self.end_all()

    def push(self, message_id: str, payload: dict[str, Any], size: int) -> None:
        """Hand a push to its inbox. The id is the message's, ``push-<subscription>-<cursor>``."""
        name = message_id.removeprefix("push-").rpartition("-")[0] if message_id.startswith("push-") else ""
        inbox = self._inboxes.get(name)
        if inbox is None:
            _log.debug("a frame that answers nothing and that nobody listens for is ignored: %s", message_id)
            return
        try:
            inbox.offer(read(Notification, payload), size)
        except ProtocolError as error:
            # Going on would leave a hole that nobody sees.
            self.end(name, error)

    def again(self, *, new_connection: bool) -> list[tuple[str, Payload, Answered | None]]:
        """Say what is to be sent now: everything that has room on a new connection, else what has asked for it."""
        self.put_off = False
        messages: list[tuple[str, Payload, Answered | None]] = []
        if self._returns and self.registration is not None:
            # Refused, it leaves the subscriptions refused as well, and those say why.
            messages.append(("REGISTER", self.registration, None))
        self._returns = False
        for name in sorted(self._inboxes):
            inbox = self._inboxes[name]
            place = inbox.reattach(new_connection=new_connection)
            if place is not None:
                subscription = {"id": name, "resume_after": write_cursor(place)}
                payload = {"action": "subscribe", "subscription": subscription}
                messages.append(("SUBSCRIBE", payload, self._reattached(name, inbox)))
        return messages

    def _reattached(self, name: str, inbox: Inbox) -> Answered:
        def answered(answer: dict[str, Any] | AkashikError) -> None:
            if self._inboxes.get(name) is not inbox:
                return
            if isinstance(answer, AkashikError):
                self._refused(name, inbox, answer)
                return
            try:
                inbox.attached(read(Subscribed, answer), first=False)
            except ProtocolError as error:
                self.end(name, error)

        return answered

    def look(self) -> tuple[str, Payload, Answered] | None:
        """Ask which subscriptions there still are: one that somebody else ends just falls silent on this connection."""
        live = {name: inbox for name, inbox in self._inboxes.items() if inbox.standing is Standing.LIVE}
        live.pop(DIRECT, None)
        if not live:
            return None

        def answered(answer: dict[str, Any] | AkashikError) -> None:
            known: set[str] | None = None
            refusal = answer if isinstance(answer, AkashikError) else None
            if not isinstance(answer, AkashikError):
                try:
                    known = {subscription.id for subscription in read(Subscriptions, answer).subscriptions}
                except ProtocolError as error:
                    _log.debug("unreadable list of subscriptions: %s", error)
            for name, inbox in live.items():
                if self._inboxes.get(name) is not inbox:
                    continue
                if isinstance(refusal, AgentNotRegistered):
                    self._refused(name, inbox, refusal)
                elif known is not None and name not in known:
                    self.end(name, ended_elsewhere(name))

        return "SUBSCRIBE", LIST_SUBSCRIPTIONS, answered

    def _refused(self, name: str, inbox: Inbox, why: AkashikError) -> None:
        """Take a no to attaching: come back later, come back as who you are, or never."""
        if not isinstance(why, Refused) or why.code in _PASSING:
            inbox.standing = Standing.DETACHED
            self.put_off = True
        elif (
            # Away for too long. An agent that has left did so on purpose, and its subscriptions are gone.
            isinstance(why, AgentNotRegistered)
            and why.details.get("status") == "failed"
            and self.registration is not None
            and inbox.may_return()
        ):
            inbox.standing = Standing.DETACHED
            self._returns = True
            self.wants_attach()
        elif why.code == "INVALID_MESSAGE" and why.details.get("key") == "subscription.events":
            # Unknown, so it would be a new one, and that would have to say its events.
            self.end(name, ended_elsewhere(name))
        else:
            self.end(name, why)

    @property
    def is_full(self) -> bool:
        """Whether there are subscriptions and none of them has room: then reading on would only let things go."""
        subscribed = [inbox for inbox in self._inboxes.values() if inbox.resumable]
        return bool(subscribed) and not any(inbox.is_open for inbox in subscribed)

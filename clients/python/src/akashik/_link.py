"""The task that owns the socket: sends what is asked for, hands out replies, returns when the hub was lost."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    InvalidURI,
    WebSocketException,
)

from ._address import HubAddress
from ._attached import Answered, Attached
from ._backoff import Backoff
from ._identity import ANSWER_MAX_BYTES, EPOCH_CEILING, Identity, write_json
from .errors import (
    AkashikError,
    Disconnected,
    ProtocolError,
    Refused,
    Unreachable,
    is_error_body,
    refused,
    too_large,
)

_log = logging.getLogger("akashik")

#: Messages of one connection that may wait for their replies (wire, section 2).
IN_FLIGHT_MAX = 256
#: How many connections a message may see the end of. Calls usually run out of patience first.
REPEATS_MAX = 10
#: How long one attempt to connect may take, seconds.
_CONNECT_PATIENCE = 10.0
#: How long a closing handshake may take, seconds.
_CLOSE_PATIENCE = 1.0
#: How often a ping goes out, and how long its pong may take, seconds: 60 without a sign of life end a connection.
_PING_EVERY, _PONG_WITHIN = 20.0, 40.0
#: How long a client that can take nothing more leaves its connection unread while no call waits, seconds: less than
#: half of what the hub allows.
_UNREAD_MAX = 10.0
#: How often the watch looks at what is due, seconds.
_WATCH_EVERY = 1.0
#: How much of a body that is no hub's is quoted.
_QUOTED_MAX = 120

#: A read that can match nothing: it tells the hub that this agent is connected again.
_PRESENCE = {
    "scope": {"role": "returning", "max_units": 1},
    "format": "ids_only",
    "since_epoch": EPOCH_CEILING - 1,
}


@dataclass(eq=False)
class Call:
    """A message that waits for its reply."""

    operation: str
    payload: str
    reply: asyncio.Future[dict[str, Any]]
    #: What a good reply means for the client itself; done before the caller is woken, for pushes may come behind it.
    effect: Callable[[dict[str, Any]], None] | None = None
    number: int | None = None
    #: The whole frame, as it was first sent: a repeat must be the same message.
    frame: bytes = b""
    #: On how many connections it was sent again.
    repeated: int = 0

    def fail(self, why: AkashikError) -> None:
        """Let the caller have an error instead of a reply."""
        if not self.reply.done():
            self.reply.set_exception(why)


@dataclass
class _Asked:
    """What the client itself has asked on the current connection."""

    answers: dict[int, Answered] = field(default_factory=dict[int, Answered])
    #: It has asked whether its subscriptions are still there, and has no answer yet.
    looking: bool = False


class Link:
    """The owner of the socket. Belongs to one event loop."""

    def __init__(
        self,
        address: HubAddress,
        identity: Identity,
        attached: Attached,
        *,
        token: str | None,
        proxy: str | None,
        look_every: float,
    ) -> None:
        self.connection: str = "closed"
        self._address = address
        self._identity = identity
        self._attached = attached
        self._token = token
        self._proxy = proxy
        self._look_every = look_every
        self._pending: dict[int, Call] = {}
        self._outbox: deque[Call] = deque()
        # Calls beyond what may be in flight, in order.
        self._line: dict[Call, None] = {}
        self._asked = _Asked()
        # What the client itself is about to ask on the current connection.
        self._questions: deque[bytes] = deque()
        self._backoff = Backoff()
        self._wake = asyncio.Event()
        self._overdue = False
        # The agent has been answered as a registered one, so a connection that returns should say so.
        self._joined = False
        self._last_push = 0.0
        self._socket: ClientConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._over: AkashikError | None = None
        attached.wants_attach = self._wake.set

    async def open(self) -> None:
        """Connect for the first time. A link that was closed stays closed."""
        if self._over is not None:
            raise self._over
        if self._task is not None:
            raise RuntimeError("the client is open already")
        socket = await self._connect()
        self.connection = "open"
        self._task = asyncio.create_task(self._run(socket), name="akashik-link")

    async def close(self) -> None:
        """Close the connection; calls that wait fail, streams end."""
        task, self._task = self._task, None
        self._end(Disconnected("the client was closed"))
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def submit(self, call: Call) -> None:
        """Send a message, at once or as soon as it may be in flight."""
        if self._over is not None or self._task is None:
            call.fail(self._over or Disconnected("the client is not connected: use `async with`, or await it"))
        elif len(self._pending) >= IN_FLIGHT_MAX:
            self._line[call] = None
        else:
            self._enter(call)

    def forget(self, call: Call) -> None:
        """Note that nobody waits for this call any more; the next one in line goes out."""
        self._line.pop(call, None)
        if call.number is not None:
            self._pending.pop(call.number, None)
        while self._line and len(self._pending) < IN_FLIGHT_MAX:
            following = next(iter(self._line))
            del self._line[following]
            self._enter(following)

    def _enter(self, call: Call) -> None:
        number = self._identity.next_number()
        try:
            call.frame = self._identity.frame(number, call.operation, call.payload)
        except AkashikError as error:
            return call.fail(error)
        call.number = number
        self._pending[number] = call
        self._outbox.append(call)
        self._wake.set()
        # Whoever paused reads on: there is a reply to come.
        self._attached.room.set()
        return None

    def _end(self, why: AkashikError) -> None:
        self._over = self._over or why
        self.connection = "closed"
        self._fail_all(why)
        self._attached.close()

    def _fail_all(self, why: AkashikError) -> None:
        for call in [*self._pending.values(), *self._line]:
            call.fail(why)
        self._pending.clear()
        self._line.clear()

    # The life of connections.

    async def _run(self, socket: ClientConnection) -> None:
        try:
            while True:
                lost = await self._serve(socket)
                _log.debug("connection to the hub lost: %s", lost)
                self.connection = "lost"
                self._settle(lost)
                socket = await self._reconnect()
                self.connection = "open"
        except Exception as error:  # a fault of this package must not leave callers waiting for ever
            _log.exception("the link to the hub has failed")
            self._end(Disconnected(f"the link has failed: {error!r}"))

    async def _serve(self, socket: ClientConnection) -> ConnectionClosed | OSError:
        """Speak on one connection until it is lost."""
        self._socket = socket
        first = self._first_frames()
        self._last_push = asyncio.get_running_loop().time()
        # Sending and receiving are tasks of their own: were they one, a hub that waits for us to take replies and a
        # client that waits for the hub to take requests would wait for ever.
        halves = [
            asyncio.create_task(self._send(socket, first)),
            asyncio.create_task(self._receive(socket)),
            asyncio.create_task(self._watch()),
        ]
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = [half for half in halves if half.done()]
            for half in halves:
                half.cancel()
            # A closed client waits here a moment for the hub's goodbye too.
            await asyncio.gather(*halves, socket.close(), return_exceptions=True)
        for half in ended:
            error = half.exception()
            if isinstance(error, (ConnectionClosed, OSError)):
                return error
            if error is not None:
                raise error
        raise AssertionError("the halves of a link only end with an error")

    def _first_frames(self) -> list[bytes]:
        """Say what a new connection begins with: subscriptions, then what is sent again, else a sign of life."""
        self._asked = _Asked()
        self._questions.clear()
        frames = self._attachments(new_connection=True)
        self._outbox.clear()
        for call in [call for call in self._pending.values() if call.repeated >= REPEATS_MAX]:
            call.fail(Disconnected("every connection was lost before the hub answered this message"))
            self.forget(call)
        # What was entered by forgetting others is among them.
        self._outbox.clear()
        for call in self._pending.values():
            call.repeated += 1
            frames.append(call.frame)
        if not frames and self._joined:
            frames.append(self._own("ATTUNE", _PRESENCE, None))
        return frames

    async def _reconnect(self) -> ClientConnection:
        """Try until it succeeds. Calls that come meanwhile wait; their own patience ends them."""
        while True:
            await asyncio.sleep(self._backoff.next())
            try:
                return await self._connect()
            except Refused as no:
                if not no.recoverable:
                    self._fail_all(no)
                    self._attached.end_all(no)
            except AkashikError as error:
                _log.debug("the hub is still away: %s", error)

    async def _connect(self) -> ClientConnection:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        try:
            return await connect(
                self._address.websocket(),
                additional_headers=headers,
                proxy=self._proxy,
                compression=None,
                open_timeout=_CONNECT_PATIENCE,
                close_timeout=_CLOSE_PATIENCE,
                ping_interval=_PING_EVERY,
                ping_timeout=_PONG_WITHIN,
                max_size=ANSWER_MAX_BYTES,
            )
        except InvalidStatus as error:
            raise _not_let_in(error, self._address.authority) from error
        except InvalidURI as error:
            raise ProtocolError(str(error)) from error
        except (OSError, EOFError, TimeoutError, asyncio.TimeoutError) as error:
            raise _unreachable(str(error) or type(error).__name__, self._address.authority) from error
        except (InvalidHandshake, WebSocketException) as error:
            if isinstance(error.__cause__, (EOFError, OSError)):
                raise _unreachable(str(error), self._address.authority) from error
            raise ProtocolError(f"no proper answer to the WebSocket handshake: {error}") from error

    def _settle(self, lost: ConnectionClosed | OSError) -> None:
        """Fail what it would be wrong to send again after a close with this code."""
        received = lost.rcvd if isinstance(lost, ConnectionClosed) else None
        code = None if received is None else received.code
        if code == 1009 and self._pending:
            largest = max(self._pending.values(), key=lambda call: len(call.frame))
            largest.fail(too_large(largest.operation, len(largest.frame), self._identity.message_max_bytes))
            self.forget(largest)
        elif code in (1008, 4001, 4003):
            # Policy, and the hub's own codes for who may not be here.
            self._fail_all(Disconnected(f"the hub closed the connection: {lost}"))

    # The sending half.

    async def _send(self, socket: ClientConnection, first: list[bytes]) -> None:
        for frame in first:
            await socket.send(frame, text=True)
        while True:
            while self._outbox:
                call = self._outbox.popleft()
                # The caller may have left meanwhile.
                if call.number in self._pending:
                    await socket.send(call.frame, text=True)
            self._questions.extend(self._attachments(new_connection=False))
            while self._questions:
                await socket.send(self._questions.popleft(), text=True)
            if not self._outbox:
                await self._wake.wait()
            self._wake.clear()

    def _attachments(self, *, new_connection: bool) -> list[bytes]:
        messages = self._attached.again(new_connection=new_connection)
        return [self._own(operation, payload, answered) for operation, payload, answered in messages]

    def _own(self, operation: str, payload: dict[str, Any], answered: Answered | None) -> bytes:
        """Write a message of the client's own."""
        number = self._identity.next_number()
        if answered is not None:
            self._asked.answers[number] = answered
            self._attached.room.set()
        return self._identity.frame(number, operation, write_json(payload))

    async def _watch(self) -> None:
        """Attach again what was put off, and look after subscriptions that have been quiet for long."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_WATCH_EVERY, self._look_every))
            if self._attached.put_off:
                self._wake.set()
            if self._asked.looking or loop.time() < self._last_push + self._look_every:
                continue
            question = self._attached.look()
            if question is not None:
                self._look(*question)

    def _look(self, operation: str, payload: dict[str, Any], answered: Answered) -> None:
        self._asked.looking = True

        def looked(answer: dict[str, Any] | AkashikError) -> None:
            self._asked.looking = False
            self._last_push = asyncio.get_running_loop().time()
            answered(answer)

        self._questions.append(self._own(operation, payload, looked))
        self._wake.set()

    # The receiving half.

    async def _receive(self, socket: ClientConnection) -> None:
        while True:
            await self._hold_back()
            self._take(await socket.recv(decode=False))

    async def _hold_back(self) -> None:
        """Read nothing while no taker has room and nobody waits for a reply.

        What a reader leaves in the socket, the hub need not send again. Not for too long, for the hub would close the
        connection.
        """
        if not self._attached.is_full:
            self._overdue = False
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + _UNREAD_MAX
        alarm = loop.call_at(until, self._attached.room.set)
        try:
            while not self._overdue and self._attached.is_full and not self._is_awaited():
                self._attached.room.clear()
                await self._attached.room.wait()
                self._overdue = loop.time() >= until
        finally:
            alarm.cancel()

    def _is_awaited(self) -> bool:
        return bool(self._pending or self._asked.answers)

    def _take(self, data: bytes) -> None:
        """Take a frame: a reply to one of ours, or something that was pushed."""
        try:
            found = json.loads(data)
        except ValueError as error:
            return _log.debug("a frame that is no JSON is ignored: %s", error)
        frame = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        message_id, payload = frame.get("id"), frame.get("payload")
        if not isinstance(message_id, str) or not isinstance(payload, dict):
            return _log.debug("a frame that is no envelope is ignored")
        answer = cast("dict[str, Any]", payload)
        self._backoff.reset()
        self._identity.saw(frame.get("epoch"))
        number = self._identity.number(message_id)
        if number is None:
            self._last_push = asyncio.get_running_loop().time()
            return self._attached.push(message_id, answer, len(data))
        outcome = refused(answer) if is_error_body(answer) else answer
        self._joined = self._joined or not isinstance(outcome, AkashikError)
        answered = self._asked.answers.pop(number, None)
        if answered is not None:
            return answered(outcome)
        return self._answer(number, outcome)

    def _answer(self, number: int, outcome: dict[str, Any] | AkashikError) -> None:
        call = self._pending.get(number)
        if call is None or call.reply.done():
            return _log.debug("nobody waits for this reply any more: %s", number)
        if isinstance(outcome, AkashikError):
            call.fail(outcome)
        else:
            try:
                if call.effect is not None:
                    call.effect(outcome)
                call.reply.set_result(outcome)
            except AkashikError as error:
                call.fail(error)
        return self.forget(call)


def _unreachable(why: str, authority: str) -> Unreachable:
    return Unreachable(f"the hub at {authority} cannot be reached: {why}; start one with `akashik serve`")


def _not_let_in(error: InvalidStatus, authority: str) -> AkashikError:
    """Tell a hub's no from a proxy's, and that from something that is no hub."""
    status, body = error.response.status_code, bytes(error.response.body or b"")
    no = read_refusal(body)
    if no is not None:
        return no
    if status >= 500:
        return _unreachable(f"status {status}", authority)
    return ProtocolError(f"status {status} to the WebSocket handshake, with {quote(body)}: is it a hub?")


def read_refusal(body: bytes) -> Refused | None:
    """Read an error body, where it is one."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return refused(cast("dict[str, Any]", found)) if isinstance(found, dict) and is_error_body(found) else None


def quote(body: bytes) -> str:
    """Quote the beginning of a body that no hub sends."""
    return f"a body that no hub sends: {body[:_QUOTED_MAX].decode(errors='replace')!r}" if body else "no body"

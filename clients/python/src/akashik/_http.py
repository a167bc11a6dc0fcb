"""HTTP exchanges with a hub that may be away: repeated under their own ids until they are answered."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, cast
from urllib.parse import urlencode

import httpx

from ._address import HubAddress
from ._backoff import Backoff
from ._identity import ANSWER_MAX_BYTES, Identity
from ._link import quote, read_refusal
from .errors import AkashikError, Disconnected, ProtocolError, Unreachable

#: Statuses with which a proxy says that the hub behind it is away.
_AWAY = {502, 503, 504}


class Http:
    """A pool of connections to one hub. Safe to share between threads."""

    def __init__(
        self, address: HubAddress, identity: Identity, *, token: str | None, proxy: str | None, timeout: float
    ) -> None:
        self._address = address
        self._identity = identity
        self._timeout = timeout
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx.Client(headers=headers, proxy=proxy, trust_env=False, follow_redirects=False)
        # Somebody has answered at that address: from then on a hub that is away is waited for.
        self._met = False
        self._closed = threading.Event()

    def close(self) -> None:
        """Close the pool."""
        self._closed.set()
        self._client.close()

    def operate(self, operation: str, payload: str) -> dict[str, Any]:
        """Send an operation; repeats carry the same message id, and the hub does them once."""
        frame = self._identity.frame(self._identity.next_number(), operation, payload)
        # The envelope says which operation it is: no name ends up in a path.
        return self._insist("POST", self._address.http("messages"), frame, self._timeout, self._timeout)

    def get(self, rest: str, query: dict[str, str], *, patience: float | None, slack: float) -> dict[str, Any]:
        """Read something under ``/v1/``, trying for so many seconds, or for ever; ``slack`` is the hub's own wait."""
        path = f"{self._address.http(rest)}?{urlencode(query)}"
        return self._insist("GET", path, None, patience, self._timeout + slack)

    def _insist(self, method: str, url: str, body: bytes | None, patience: float | None, each: float) -> dict[str, Any]:
        deadline = None if patience is None else time.monotonic() + patience
        backoff = Backoff()
        while True:
            left = each if deadline is None else min(each, deadline - time.monotonic())
            try:
                answer = self._exchange(method, url, body, max(left, 0.001))
            except Unreachable as error:
                pause = backoff.next()
                if self._closed.wait(0):
                    raise Disconnected("the client was closed") from error
                if not self._met or (deadline is not None and time.monotonic() + pause >= deadline):
                    raise
                self._closed.wait(pause)
            else:
                return answer

    def _exchange(self, method: str, url: str, body: bytes | None, patience: float) -> dict[str, Any]:
        deadline = time.monotonic() + patience
        if self._closed.is_set():
            raise Disconnected("the client is closed")
        try:
            with self._client.stream(method, url, content=body, timeout=patience) as response:
                status, epoch = response.status_code, response.headers.get("akashik-epoch", "")
                whole = bytearray()
                for piece in response.iter_bytes():
                    whole += piece
                    if len(whole) > ANSWER_MAX_BYTES:
                        raise ProtocolError(f"the answer has more than {ANSWER_MAX_BYTES} bytes")
                    if time.monotonic() > deadline:
                        raise self._unreachable("the answer does not come to its end")
        except httpx.TimeoutException as error:
            self._met = self._met or not isinstance(error, httpx.ConnectTimeout)
            raise self._unreachable(f"no answer within {patience:g} s") from error
        except (httpx.TransportError, httpx.StreamError, RuntimeError, OSError) as error:
            # A RuntimeError is what a closed pool raises.
            raise self._unreachable(str(error) or type(error).__name__) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ProtocolError(str(error)) from error
        if epoch.isascii() and epoch.isdigit():
            self._identity.saw(int(epoch))
        return self._read(status, bytes(whole))

    def _read(self, status: int, body: bytes) -> dict[str, Any]:
        no = read_refusal(body)
        if no is not None:
            self._met = True
            raise no
        if status in _AWAY:
            raise self._unreachable(f"status {status} with {quote(body)}")
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if not 200 <= status < 300 or not isinstance(found, dict):
            raise ProtocolError(f"status {status} with {quote(body)}: is {self._address.authority} a hub?")
        self._met = True
        return cast("dict[str, Any]", found)

    def _unreachable(self, why: str) -> AkashikError:
        authority = self._address.authority
        return Unreachable(f"the hub at {authority} cannot be reached: {why}; start one with `akashik serve`")

"""Where a hub is: a URL, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from .errors import AddressError

_FIELD = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PLAIN = {"http", "ws"}
_TLS = {"https", "wss"}


@dataclass(frozen=True)
class HubAddress:
    """A hub and, where named, one of its Fields."""

    tls: bool
    #: Host and port as they stand in a ``Host`` header.
    authority: str
    #: What stands before ``/v1``, for a hub behind a proxy; mostly empty. Never ends in a slash.
    base: str
    field: str | None

    def path(self, rest: str) -> str:
        """Name the path of what stands under ``/v1/`` of the Field."""
        field = "" if self.field is None else f"fields/{self.field}/"
        return f"{self.base}/v1/{field}{rest}"

    def http(self, rest: str) -> str:
        """Name the URL of what stands under ``/v1/`` of the Field."""
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.path(rest)}"

    def websocket(self) -> str:
        """Name the WebSocket's URL."""
        return f"{'wss' if self.tls else 'ws'}://{self.authority}{self.path('ws')}"

    def with_field(self, field: str) -> HubAddress:
        """Name another Field of the same hub."""
        if not _FIELD.fullmatch(field):
            raise AddressError(f"{field!r} is no Field name: 1 to 64 letters, digits, '_' and '-'")
        return replace(self, field=field)


def read_address(text: str, field: str | None = None) -> HubAddress:
    """Read ``http://host:port`` or ``ws://host:port`` (or with TLS), with ``/v1/fields/NAME`` behind it or not."""

    def wrong(why: str) -> AddressError:
        return AddressError(f"{text!r} is no hub's address: {why}")

    scheme, separator, _ = text.partition("://")
    if not separator or scheme.lower() not in _PLAIN | _TLS:
        raise wrong("it must begin with http://, https://, ws:// or wss://")
    if "?" in text or "#" in text:
        raise wrong("it must not have a query or a fragment")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise wrong("it must not have blanks or characters outside ASCII")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise wrong(str(error)) from None
    if "@" in parts.netloc:
        raise wrong("credentials do not belong into it; use a token")
    if not host:
        raise wrong("it names no host")
    tls = scheme.lower() in _TLS
    host = f"[{host}]" if ":" in host else host
    segments = [segment for segment in parts.path.split("/") if segment]
    at = segments.index("v1") if "v1" in segments else len(segments)
    match segments[at + 1 :]:
        case [] | ["ws"]:
            named = None
        case ["fields", name] | ["fields", name, "ws"]:
            named = name
        case _:
            raise wrong("behind /v1 only /fields/NAME may follow")
    base = "".join(f"/{segment}" for segment in segments[:at])
    authority = host if port is None else f"{host}:{port}"
    address = HubAddress(tls=tls, authority=authority, base=base, field=None)
    chosen = field if field is not None else named
    return address if chosen is None else address.with_field(chosen)

"""Peers that are away, that are no hubs, or that break off in the middle; and addresses that are none."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from peer import playing

from akashik import AddressError, AsyncClient, Client, Disconnected, ProtocolError, Unreachable, errors

HTML = b"<!doctype html><title>502 Bad Gateway</title>"


@contextmanager
def answering(*answers: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve HTTP with these answers, one after the other, the last for ever; its URL, and the bodies that came."""
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answers[min(len(bodies), len(answers)) - 1](self)

        def do_GET(self) -> None:
            answers[0](self)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def say(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def break_off(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"status":')
    handler.close_connection = True


OK = say(200, b'{"status":"ok"}', Akashik_Epoch="12")


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


async def test_nobody_there_is_said_at_once() -> None:
    url = nobody()
    with pytest.raises(Unreachable, match="akashik serve"):
        await AsyncClient(url, "ann")
    with Client(url, "ann") as client, pytest.raises(Unreachable, match="akashik serve"):
        client.register("r")


async def test_whoever_is_not_connected_is_told_so() -> None:
    with pytest.raises(Disconnected, match="async with"):
        await AsyncClient("http://127.0.0.1:1", "ann").register("r")


async def test_a_client_is_opened_once() -> None:
    async with playing() as peer:
        client = await AsyncClient(peer.url, "ann")
        with pytest.raises(RuntimeError, match="open already"):
            await client.open()
        await client.close()
        with pytest.raises(Disconnected, match="closed"):
            await client


async def test_a_page_of_a_proxy_is_no_answer() -> None:
    with answering(say(200, HTML)) as (url, _):
        with Client(url, "ann") as client, pytest.raises(ProtocolError, match=r"status 200.*Bad Gateway"):
            client.register("r")
        with pytest.raises(ProtocolError, match=r"status 200.*Bad Gateway"):
            await AsyncClient(url, "ann")
    with answering(say(302, b"", Location="http://127.0.0.1:1/")) as (url, _):
        with Client(url, "ann") as client, pytest.raises(ProtocolError, match="status 302"):
            client.register("r")
        with pytest.raises((ProtocolError, Unreachable)):
            await AsyncClient(url, "ann")
    with answering(say(502, HTML)) as (url, _):
        with Client(url, "ann") as client, pytest.raises(Unreachable, match="status 502"):
            client.register("r")
        with pytest.raises(Unreachable, match="status 502"):
            await AsyncClient(url, "ann")


async def test_what_is_no_http_is_no_hub() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises((ProtocolError, Unreachable)):
            await AsyncClient(url, "ann")


def test_an_exchange_that_breaks_off_is_repeated_under_its_id() -> None:
    with answering(OK, break_off, say(503, HTML), OK) as (url, bodies), Client(url, "ann") as client:
        client.send("DETECT", {"mode": "list"})
        assert client.send("RECORD", {"n": 1}) == {"status": "ok"}
    assert len(bodies) == 4
    assert bodies[1] == bodies[2] == bodies[3], "the very same message"
    assert (bodies[1]["payload"], bodies[1]["epoch"]) == ({"n": 1}, 12), "and the clock that was shown"
    assert bodies[0]["id"] != bodies[1]["id"]


def test_patience_over_http_ends() -> None:
    with answering(OK, break_off) as (url, bodies), Client(url, "ann", timeout=0.5) as client:
        client.send("DETECT", {})
        with pytest.raises(Unreachable):
            client.send("RECORD", {})
    assert len(bodies) >= 3


def test_a_hub_that_is_silent_is_not_waited_for_too_long() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Client(f"http://127.0.0.1:{silent.getsockname()[1]}", "ann", timeout=0.1) as client,
        pytest.raises(Unreachable, match="no answer within"),
    ):
        client.detect()


def test_an_answer_without_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akashik._http.ANSWER_MAX_BYTES", 1_000)
    with (
        answering(say(200, b" " * 2_000)) as (url, _),
        Client(url, "ann") as client,
        pytest.raises(ProtocolError, match="more than 1000 bytes"),
    ):
        client.detect()


def test_answers_that_are_not_what_they_should_be_name_the_place() -> None:
    wrong = b'{"status":"ok","conflicts":[{"id":7}],"scan_coverage":{}}'
    with (
        answering(say(200, wrong)) as (url, _),
        Client(url, "ann") as client,
        pytest.raises(ProtocolError, match=r"Detected\.conflicts\[0\]\.id is no str"),
    ):
        client.detect()


def test_a_code_of_a_later_version_is_still_a_no() -> None:
    body = {"code": "TOO_EARLY", "message": "m", "operation": "DETECT", "recoverable": True, "suggested_action": "s"}
    late = {**body, "code": "OVERLOADED", "details": {"retry_after_ms": 250}}
    answers = [say(425, json.dumps(body).encode()), say(503, json.dumps(late).encode())]
    with answering(*answers) as (url, _), Client(url, "ann") as client:
        with pytest.raises(errors.Refused) as refused:
            client.detect()
        assert (type(refused.value), refused.value.code) == (errors.Refused, "TOO_EARLY")
        with pytest.raises(errors.Overloaded) as overloaded:
            client.detect()
        assert overloaded.value.retry_after == 0.25


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("127.0.0.1:7420", "begin with"),
        ("ftp://h", "begin with"),
        ("http://", "host"),
        ("http://:80", "host"),
        ("http://u:p@h", "credentials"),
        ("http://h:70000", "[Pp]ort"),
        ("http://h:x", "[Pp]ort"),
        ("http://h/?x", "query"),
        ("http://h/v1/units", "/fields/NAME"),
        ("http://h/v1/fields/a b", "blanks"),
        ("http://h/v1/fields/a.b", "Field name"),
    ],
)
def test_what_is_no_address_is_refused(text: str, why: str) -> None:
    with pytest.raises(AddressError, match=why):
        Client(text, "ann")
    with pytest.raises(AddressError, match=why):
        AsyncClient(text, "ann")

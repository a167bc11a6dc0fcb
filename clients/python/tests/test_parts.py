"""The parts that need no peer."""

from __future__ import annotations

import asyncio

import pytest

from akashik import ProtocolError, answers
from akashik._address import read_address
from akashik._backoff import CAP, FIRST, Backoff
from akashik._identity import EPOCH_CEILING, Identity
from akashik._inbox import QUEUED_MAX, QUEUED_MAX_BYTES, Inbox, Standing, read_cursor
from akashik._reading import read


@pytest.mark.parametrize(
    ("text", "websocket"),
    [
        ("http://127.0.0.1:7420", "ws://127.0.0.1:7420/v1/ws"),
        ("ws://localhost:7420/", "ws://localhost:7420/v1/ws"),
        ("HTTP://hub.example", "ws://hub.example/v1/ws"),
        ("https://hub.example", "wss://hub.example/v1/ws"),
        ("http://[::1]:7420/v1/", "ws://[::1]:7420/v1/ws"),
        ("ws://h:1/v1/ws", "ws://h:1/v1/ws"),
        ("http://h:1/v1/fields/lab-2", "ws://h:1/v1/fields/lab-2/ws"),
        ("http://h:1/hub/v1/fields/x", "ws://h:1/hub/v1/fields/x/ws"),
    ],
)
def test_every_form_of_an_address_is_read(text: str, websocket: str) -> None:
    assert read_address(text).websocket() == websocket
    assert read_address(text, "f").path("record").endswith("/v1/fields/f/record")


def test_delays_double_up_to_the_cap_with_the_jitter_behind_it() -> None:
    backoff = Backoff()
    delays = [backoff.next() for _ in range(200)]
    for n, delay in enumerate(delays):
        middle = min(FIRST * 2**n, CAP)
        assert middle / 2 <= delay <= middle * 1.5
    assert max(delays) > CAP
    assert len(set(delays[20:])) > 100
    backoff.reset()
    assert backoff.next() <= FIRST * 1.5


def test_an_identity_keeps_its_clock_and_knows_its_messages() -> None:
    one, other = Identity("ann", None), Identity("ann", None)
    for epoch in (41, 7, EPOCH_CEILING, -1, "99", None, 50.0):
        one.saw(epoch)
    assert one.epoch == 41
    frame = one.frame(7, "RECORD", "{}")
    assert b'"epoch":41' in frame
    assert b'"payload":{}' in frame
    message_id = frame.split(b'"id":"')[1].split(b'"')[0].decode()
    assert (one.number(message_id), other.number(message_id), one.number("push-s-4.0")) == (7, None, None)


def test_unknown_keys_are_kept_and_numbers_are_told_apart() -> None:
    unit = read(answers.MemoryUnit, {"id": "mem-1", "intent": {"purpose": "p", "mood": "good"}, "colour": "red"})
    assert unit.extra == {"colour": "red"}
    assert unit.intent is not None
    assert unit.intent.extra == {"mood": "good"}
    assert read(answers.Confidence, {"score": 1}).score == 1.0
    wrongs: list[object] = [{"score": True}, {"score": "1"}, {"evidence": [1]}, {"evidence": {}}, []]
    for wrong in wrongs:
        with pytest.raises(ProtocolError, match="Confidence"):
            read(answers.Confidence, wrong)
    with pytest.raises(ProtocolError, match=r"MemoryUnit\.id is missing"):
        read(answers.MemoryUnit, {})


def test_cursors_order_as_numbers() -> None:
    assert read_cursor("9.10") < read_cursor("10.2") < read_cursor("10.11")
    for wrong in ("", "1", "1.", ".1", "-1.0", "1.0.0", "١.٠"):
        with pytest.raises(ProtocolError, match="cursor"):
            read_cursor(wrong)


def notice(epoch: int) -> answers.Notification:
    return answers.Notification(
        subscription_id="s",
        event="memory.recorded",
        epoch=epoch,
        relevance_score=1.0,
        summary="",
        cursor=f"{epoch}.0",
    )


def inbox(debounce_ms: int = 0, *, asked: list[str] | None = None) -> Inbox:
    rung = [] if asked is None else asked
    made = Inbox(resumable=True, made_room=lambda: rung.append("room"), wants_attach=lambda: rung.append("attach"))
    subscription = answers.Subscription(id="s", events=["memory.recorded"], debounce_ms=debounce_ms)
    made.attached(answers.Subscribed(status="ok", subscription=subscription, cursor="10.0"), first=True)
    return made


def taken(box: Inbox) -> list[int]:
    return [notification.epoch for notification in iter(box.take, None)]


def test_what_was_queued_is_not_queued_again_unless_debounced() -> None:
    for debounce_ms, expected in ((0, [11, 12, 13]), (5, [9, 10, 11, 12, 12, 11, 13])):
        box = inbox(debounce_ms)
        for epoch in (9, 10, 11, 12, 12, 11, 13):
            box.offer(notice(epoch), 1)
        assert taken(box) == expected
        assert box.taken == (13, 0)


def test_who_is_behind_goes_on_where_the_queue_ended() -> None:
    asked: list[str] = []
    box = inbox(asked=asked)
    full = 10 + QUEUED_MAX
    for epoch in range(11, full + 1):
        box.offer(notice(epoch), 1)
    assert not box.is_open
    assert box.reattach(new_connection=False) is None, "full, and nothing was let go yet"
    box.offer(notice(full + 1), 1)
    assert box.standing is Standing.BEHIND
    assert box.reattach(new_connection=True) is None, "no room yet"
    for _ in range(QUEUED_MAX // 2):
        assert box.take() is not None
    assert asked == ["room", "attach"]
    assert box.reattach(new_connection=False) == (full, 0)
    box.offer(notice(full + 9), 1)
    assert box.reattach(new_connection=False) is None, "asked for once"
    assert box.is_open
    assert taken(box)[-1] == full


def test_bytes_are_bounded_and_one_always_fits() -> None:
    box = inbox()
    box.offer(notice(11), 2 * QUEUED_MAX_BYTES)
    box.offer(notice(12), 1)
    assert not box.is_open
    assert taken(box) == [11]
    assert box.reattach(new_connection=False) == (11, 0)


async def test_an_end_comes_after_what_is_queued_and_its_reason_once() -> None:
    box = inbox()
    waiting = asyncio.create_task(box.next())
    await asyncio.sleep(0)
    waiting.cancel()
    box.offer(notice(11), 1)
    box.end(ProtocolError("x"))
    box.end()
    box.offer(notice(12), 1)
    found = await box.next()
    assert found is not None
    assert found.epoch == 11, "a cancelled wait has lost nothing"
    with pytest.raises(ProtocolError):
        await box.next()
    assert await box.next() is None
    assert box.reattach(new_connection=True) is None

"""Every operation, over both clients, against a real hub."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from conftest import Hub

from akashik import AsyncClient, Client, Relation, errors

SURE: dict[str, Any] = {"purpose": "to test", "score": 0.5, "reason": "made up"}


async def finding(client: AsyncClient, content: str, **more: Any) -> str:
    recorded = await client.record("finding", content, purpose="to test", score=0.5, reason="made up", **more)
    assert recorded.status == "accepted"
    return recorded.memory_unit_id


async def test_a_team_over_websockets(hub: Hub) -> None:
    async with AsyncClient(hub.url, "ann", session_id="s-1") as ann, AsyncClient(hub.url, "bob") as bob:
        registered = await ann.register("researcher", interests=["market growth"], required_operations=["RECORD"])
        assert registered.status == "registered"
        assert registered.agent is not None
        assert registered.agent.interests == ["market growth"]
        assert registered.field_capabilities.field == "default"
        rejected = await bob.register("researcher", required_operations=["TELEPATHY"])
        assert rejected.status == "rejected"
        assert "TELEPATHY" in (rejected.rejection_reason or "")
        await bob.register("researcher")

        first = await finding(ann, "It grows by 23 %.", task_id="t-1", evidence=["report"], assumptions=["no crisis"])
        second = await bob.record("finding", "It grows by 14 %.", **SURE, relations=[("contradicts", first)])
        (conflict_id,) = second.conflicts_detected
        described = Relation(type="supports", target_id=first, description="same source")
        await finding(ann, "A third report agrees.", relations=[described])

        attuned = await bob.attune("strategist", 5, hint="market growth", explain=True, max_tokens=4_000)
        best = attuned.record[0]
        assert best.memory_unit.source is not None
        assert (best.memory_unit.source.agent_id, best.memory_unit.source.session_id) == ("ann", "s-1")
        assert best.factors is not None
        assert sum(f.contribution for f in best.factors.values()) == pytest.approx(best.relevance_score, abs=1e-3)
        assert attuned.conflicts[0].id == conflict_id
        assert attuned.context_budget.tokens_budget == 4_000
        assert (await bob.attune("x", since_epoch=attuned.epoch)).record == []
        assert attuned.epoch < bob.epoch

        detected = await ann.detect(status=["detected"], types=["factual"], involving_agents=["ann"])
        assert [c.unit_a for c in detected.conflicts] == [first]
        merged = await ann.merge(conflict_id, "synthesis", rationale="Both count.", synthesis="14 to 23 %.")
        assert merged.status == "resolved"
        assert merged.side_effects.new_unit_id is not None
        replayed = await ann.replay("conflict", conflict_id, depth="full_trace")
        assert replayed.timeline[-1].event_type == "MERGE"
        assert (await ann.replay("task", "t-1", depth="summary")).summary

        draft = (await ann.record("decision", "Go.", purpose="to decide", mode="draft")).memory_unit_id
        committed = await ann.commit(draft, score=0.9, reason="thought through", relations=[("informs", first)])
        assert committed.memory_unit_id == draft
        assert (await ann.retract(draft, "Changed our minds.")).status == "ok"
        other = (await ann.record("decision", "Stay.", purpose="to decide", mode="draft")).memory_unit_id
        assert (await ann.discard(other, "No use.")).status == "ok"
        assert (await ann.send("DETECT", {"mode": "list"}))["status"] == "ok"
        assert (await ann.deregister()).status == "ok"
        with pytest.raises(errors.AgentNotRegistered):
            await ann.detect()


async def test_compact_asks_as_the_protocol_says(hub: Hub) -> None:
    async with AsyncClient(hub.url, "ann") as ann:
        served = (await ann.register("researcher")).field_capabilities.supported_operations
        old = await finding(ann, "old")
        await finding(ann, "new", relations=[("supersedes", old)])
        if "COMPACT" in served:
            previewed = await ann.compact("archive", status=["superseded"], dry_run=True)
            assert (previewed.units_affected, previewed.dry_run) == (1, True)
            compacted = await ann.compact("archive", status=["superseded"], reason="Replaced.")
            # The preview left it for this one.
            assert (compacted.units_affected, compacted.synthesis_units_created) == (1, 0)
            assert not compacted.dry_run
        else:
            with pytest.raises(errors.UnsupportedOperation):
                await ann.compact("archive", status=["superseded"])


def test_a_purge_of_everything_has_to_be_confirmed(hub: Hub) -> None:
    with Client(hub.url, "ann") as ann:
        if "level-3-purge" not in ann.register("researcher").field_capabilities.extensions:
            pytest.skip("this hub purges nothing")
        for number in range(101):
            ann.record("finding", f"Crate {number} is full.", **SURE)
        with pytest.raises(errors.InvalidMessage):
            ann.compact("purge", max_age_epochs=0)
        purged = ann.compact("purge", max_age_epochs=0, reason="A test.", confirm=True)
        assert purged.units_affected == 101
        assert purged.storage_reclaimed_bytes


def test_a_team_over_http(hub: Hub) -> None:
    with Client(hub.url, "ann") as ann, Client(hub.url, "bob", session_id="s-2") as bob:
        ann.register("researcher")
        bob.register("researcher", interests=["growth"])
        first = ann.record("finding", "It grows by 23 %.", **SURE).memory_unit_id
        second = bob.record("finding", "By 14 %.", **SURE, relations=[("contradicts", first)])
        (conflict_id,) = second.conflicts_detected
        assert bob.epoch >= second.epoch
        units = ann.attune("strategist", hint="growth", include_own=True).record
        assert {unit.memory_unit.id for unit in units} == {first, second.memory_unit_id}
        assert len(ann.detect().conflicts) == 1
        assert ann.merge(conflict_id, "last_write_wins", rationale="Newer.").status == "resolved"
        assert ann.replay("memory_unit", first).total_events >= 3
        draft = ann.record("decision", "Go.", purpose="to decide", mode="draft").memory_unit_id
        assert ann.commit(draft, score=1, reason="sure").status == "ok"
        assert ann.retract(draft, "No.").status == "ok"
        other = ann.record("decision", "Go.", purpose="to decide", mode="draft").memory_unit_id
        assert ann.discard(other, "No.").status == "ok"
        assert ann.send("SUBSCRIBE", {"action": "list"})["subscriptions"] == []
        assert ann.deregister("bob").status == "ok"
        with pytest.raises(errors.AgentNotRegistered) as refused:
            bob.detect()
        assert refused.value.details["status"] == "offline"


REFUSALS: list[tuple[str, dict[str, Any], type[errors.Refused]]] = [
    ("RECORD", {"type": "finding", "content": "x"}, errors.MissingIntent),
    ("RECORD", {"type": "tale", "content": "x"}, errors.InvalidType),
    ("RECORD", {"type": "finding", "content": "x", "intent": {"purpose": "p"}}, errors.MissingConfidence),
    (
        "MERGE",
        {"conflict_id": "conflict-9", "strategy": "vote", "resolution": {"rationale": "r"}},
        errors.ConflictNotFound,
    ),
    ("REPLAY", {"target_type": "task", "target_id": "none", "depth": "summary"}, errors.UnitNotFound),
    ("HANDOFF", {}, errors.UnsupportedOperation),
    ("ATTUNE", {"scope": {"role": "r"}}, errors.InvalidMessage),
    ("SUBSCRIBE", {"action": "unsubscribe", "subscription": {"id": "none"}}, errors.SubscriptionNotFound),
]


async def test_refusals_are_typed_over_both_doors(hub: Hub) -> None:
    async with AsyncClient(hub.url, "ann") as ann:
        await ann.register("researcher")
        with Client(hub.url, "ann") as over_http:
            for operation, payload, kind in REFUSALS:
                with pytest.raises(kind) as one:
                    await ann.send(operation, payload)
                with pytest.raises(kind) as other:
                    over_http.send(operation, payload)
                assert one.value.body == other.value.body, "both doors give the same answer"
                assert one.value.suggested_action
                assert one.value.operation == operation
            with pytest.raises(errors.AgentIdTaken) as taken:
                over_http.register("another role")
            assert taken.value.recoverable
            copy = pickle.loads(pickle.dumps(taken.value))
            assert (type(copy), copy.body) == (errors.AgentIdTaken, taken.value.body)
        # Refused calls leave everything usable.
        await finding(ann, "still here")


CONTENTS = [
    'Ærøskøbing, Київ, 東京, 🦀🧠, \u202ert\u0301l\u202c, "quoted" \\ and a\nline\tand \u0000? no: \u0001',
    "ß" * 100_000,
    "x" * 200_000,
]


@pytest.mark.parametrize("content", CONTENTS, ids=["scripts", "200 KB of two bytes", "200 KB"])
async def test_contents_come_back_as_they_were(hub: Hub, content: str) -> None:
    content = content.replace("\u0000? no: ", "")
    async with AsyncClient(hub.url, "änn-日本") as ann:
        await ann.register("Forscherin – 研究")
        await finding(ann, content)
        with Client(hub.url, "bob") as bob:
            bob.register("r")
            (unit,) = bob.attune("r").record
            assert unit.memory_unit.content == content
            assert unit.memory_unit.source is not None
            assert unit.memory_unit.source.agent_id == "änn-日本"
            bob.record("finding", content, **SURE)
        (unit,) = (await ann.attune("r")).record
        assert unit.memory_unit.content == content


async def test_fields_are_apart(hub: Hub) -> None:
    hub.stop()
    hub.flags = ("--field", "one", "--field", "two")
    hub.start_again()
    async with AsyncClient(hub.url, "ann", field="two") as ann:
        await ann.register("r")
        await finding(ann, "of two")
    with Client(f"{hub.url}/v1/fields/two", "bob") as bob, Client(hub.url, "bob") as elsewhere:
        assert bob.register("r").field_capabilities.field == "two"
        assert elsewhere.register("r").field_capabilities.field == "one"
        assert len(bob.attune("r").record) == 1
        assert elsewhere.attune("r").record == []
    with pytest.raises(errors.FieldNotFound):
        await AsyncClient(hub.url, "ann", field="three").open()
    with Client(hub.url, "ann", field="three") as lost, pytest.raises(errors.FieldNotFound):
        lost.register("r")


@pytest.mark.parametrize("door", ["websocket", "http"])
async def test_a_message_too_large_changes_nothing(hub: Hub, door: str) -> None:
    too_much = {"type": "finding", "content": "x" * 1_100_000}
    if door == "http":
        with Client(hub.url, "ann") as over_http:
            with pytest.raises(errors.MessageTooLarge):
                over_http.send("RECORD", too_much)
            # Once the hub has said how much it takes, nothing is sent in vain.
            over_http.register("r")
            with pytest.raises(errors.MessageTooLarge) as refused:
                over_http.send("RECORD", too_much)
            assert refused.value.details["limit_bytes"] == 1_048_576
            assert over_http.attune("r", include_own=True).record == []
        return
    async with AsyncClient(hub.url, "ann") as ann:
        # Not told its limit yet: the hub closes the connection, which fails this call alone.
        with pytest.raises(errors.MessageTooLarge):
            await ann.send("RECORD", too_much)
        await ann.register("r")
        with pytest.raises(errors.MessageTooLarge) as refused:
            await ann.send("RECORD", too_much)
        assert refused.value.details["limit_bytes"] == 1_048_576
        with pytest.raises(errors.InvalidMessage) as too_long:
            await finding(ann, "x" * 262_145)
        assert "262144" in str(too_long.value.body)
        assert (await ann.attune("r", include_own=True)).record == []


async def test_what_is_no_json_is_said_before_it_is_sent(hub: Hub) -> None:
    async with AsyncClient(hub.url, "ann") as ann:
        for value in (float("nan"), "\ud800", object()):
            with pytest.raises(errors.ProtocolError):
                await ann.send("RECORD", {"content": value})
        await ann.register("r")
    with Client(hub.url, "ann") as over_http, pytest.raises(errors.ProtocolError):
        over_http.send("RECORD", {"content": float("inf")})


async def test_the_clock_of_a_client_is_kept(hub: Hub) -> None:
    async with AsyncClient(hub.url, "ann") as ann:
        await ann.register("r")
        shown = ann.epoch
        # A client of another Field's clock would be ahead; the hub takes that over.
        ann._identity.saw(shown + 500)
        assert (await ann.record("finding", "x", **SURE)).epoch == shown + 501
    with Client(hub.url, "bob") as bob:
        bob.register("r")
        assert bob.epoch > shown + 500
        bob._identity.saw(bob.epoch + 5_000_000)
        with pytest.raises(errors.EpochOverflow):
            bob.detect()

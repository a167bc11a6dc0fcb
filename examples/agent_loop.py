"""A model that works with tools, its memory in the Field: the loop that agent frameworks run, in the open.

The model here is a stub, so that it runs offline. Put a real one in its place where `Scripted` stands: anything that
takes messages and tool descriptions and answers with tool calls or a text, such as (not tested here)::

    class Real:
        def answer(self, messages, tools):
            from openai import OpenAI
            choice = OpenAI().chat.completions.create(
                model="…", messages=messages,
                tools=[{"type": "function", "function": tool} for tool in tools]).choices[0].message
            calls = [Call(c.id, c.function.name, json.loads(c.function.arguments)) for c in choice.tool_calls or []]
            return Answer(text=choice.content or "", calls=calls)

In LangGraph, `recall`, `Model.answer` and `use` are the nodes of a graph, and `run` the edges between them. Start a hub
(``akashik serve``), then::

    pip install ./clients/python
    python examples/agent_loop.py               # on http://127.0.0.1:7420, or AKASHIK_URL
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from akashik import Client, Refused

URL = os.environ.get("AKASHIK_URL", "http://127.0.0.1:7420")
TURNS_MAX = 8


@dataclass
class Call:
    """A tool that the model wants used."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass
class Answer:
    """What a model says: a text, or tools to use first."""

    text: str = ""
    calls: list[Call] = field(default_factory=list[Call])


class Model(Protocol):
    """What the loop needs of a model."""

    def answer(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Answer:
        """Answer the messages so far."""
        ...


class Scripted:
    """The stub: it acts on what it reads in the messages, as a model would, though by rules."""

    def answer(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Answer:
        """Find the older estimate in the memory, contradict it, correct its own mistake, and report."""
        last = messages[-1]
        if last["role"] == "user":
            # The memory that it was given stands in the first message, one unit a line, the id in front.
            known = next(line for line in messages[0]["content"].splitlines() if "23 %" in line)
            self.contradicted = known.split()[0]
            return self._record(confidence=None)
        if "MISSING_CONFIDENCE" in last["content"]:
            # The refusal says what to do next, and that suffices to do it.
            return self._record(confidence={"score": 0.9, "reason": "Primary data."})
        return Answer(text="The growth is 15 %, not 23 %; the conflict is open for the team to settle.")

    def _record(self, confidence: dict[str, Any] | None) -> Answer:
        arguments: dict[str, Any] = {
            "type": "finding",
            "content": "The market for SMB HR tools grows at 15 % a year.",
            "intent": {"purpose": "Size the market"},
            "relations": [{"type": "contradicts", "target_id": self.contradicted}],
        }
        if confidence is not None:
            arguments["confidence"] = confidence
        return Answer(calls=[Call("call-1", "record", arguments)])


#: The tools: an operation each, described for the model.
TOOLS: list[dict[str, Any]] = [
    {
        "name": "record",
        "description": "Record what you found or decided in the team's shared memory, with why and how sure you are.",
        "parameters": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["finding", "decision", "question", "observation"]},
                "content": {"type": "string"},
                "intent": {"type": "object", "properties": {"purpose": {"type": "string"}}, "required": ["purpose"]},
                "confidence": {
                    "type": "object",
                    "properties": {"score": {"type": "number"}, "reason": {"type": "string"}},
                },
                "relations": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["type", "content", "intent", "confidence"],
        },
    },
    {
        "name": "detect",
        "description": "List the team's open conflicts.",
        "parameters": {"type": "object", "properties": {"mode": {"const": "list"}}, "required": ["mode"]},
    },
]


def recall(client: Client, task: str) -> str:
    """Bring what matters for the task, within a budget of tokens, as lines for the model."""
    found = client.attune("market_researcher", 20, hint=task, max_tokens=2_000)
    lines = [f"{u.memory_unit.id} {u.memory_unit.content} [{u.relevance_reason}]" for u in found.record]
    return "\n".join(["What the team knows:", *lines])


def use(client: Client, call: Call) -> str:
    """Use a tool. A refusal is a result too: the model reads what was wrong, and what to do next."""
    try:
        return json.dumps(client.send(call.name.upper(), call.arguments))
    except Refused as refused:
        return json.dumps(refused.body)


def run(client: Client, model: Model, task: str, tell: Callable[[str], None] = print) -> str:
    """Let the model work on a task until it answers with a text."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": recall(client, task)},
        {"role": "user", "content": task},
    ]
    for _ in range(TURNS_MAX):
        answer = model.answer(messages, TOOLS)
        if not answer.calls:
            return answer.text
        calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in answer.calls]
        messages.append({"role": "assistant", "content": answer.text, "tool_calls": calls})
        for call in answer.calls:
            result = use(client, call)
            said = json.loads(result)
            tell(f"{call.name}: {said.get('code') or said.get('status')}")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise RuntimeError(f"no answer within {TURNS_MAX} turns")


def main() -> None:
    """Let one agent leave an estimate, and another one work on it."""
    with Client(URL, "analyst-41") as analyst, Client(URL, "researcher-41") as researcher:
        # Agents that speak HTTP stay registered until they deregister, so they do that at the end.
        analyst.register("analyst")
        researcher.register("market_researcher", interests=["market growth"])
        try:
            analyst.record(
                "finding",
                "The market for SMB HR tools grows at 23 % a year.",
                purpose="Size the market",
                score=0.6,
                reason="One analyst report.",
            )
            print("model:", run(researcher, Scripted(), "Check the growth estimate of the market for SMB HR tools."))
            conflicts = researcher.detect(status=["detected"], involving_agents=["researcher-41"]).conflicts
            print("open:", conflicts[-1].description)
        finally:
            analyst.deregister()
            researcher.deregister()


if __name__ == "__main__":
    main()

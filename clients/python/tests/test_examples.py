"""The examples, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import DEADLINE, Hub

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(name: str, hub: Hub) -> list[str]:
    environment = {**os.environ, "AKASHIK_URL": hub.url}
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], env=environment, capture_output=True, text=True, timeout=DEADLINE
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    # Ids are made of epochs, and those are not the same in every run.
    return [re.sub(r"(mem|conflict)-[0-9.]+", r"\1-N", line) for line in done.stdout.splitlines()]


def test_three_agents_argue_until_the_conflict_is_merged(hub: Hub) -> None:
    said = run("market_estimate.py", hub)
    # Who tells first of one and the same event is open.
    assert sorted(said[:7]) == [
        "bottom-up argues: the books count services too",
        "bottom-up contradicts: 14 %",
        "strategist has heard 2 arguments",
        "strategist merges: resolved",
        "top-down argues: the reports count licences",
        "top-down estimates 23 %",
        "top-down is contradicted; action required: True",
    ]
    assert said[6] == "strategist merges: resolved"
    assert [line.split(":")[0] for line in said[7:9]] == ["conflict.resolved"] * 2
    assert said[9] == "How it came about:"
    assert [line.split()[0] for line in said[10:]] == ["RECORD", "RECORD", "CONFLICT_CREATED", "MERGE"]
    assert sorted(run("market_estimate.py", hub)[:7]) == sorted(said[:7]), "it runs again on the same hub"


def test_a_model_works_with_its_memory_in_the_field(hub: Hub) -> None:
    said = run("agent_loop.py", hub)
    assert said[:3] == [
        "record: MISSING_CONFIDENCE",
        "record: accepted",
        "model: The growth is 15 %, not 23 %; the conflict is open for the team to settle.",
    ]
    assert said[3].startswith("open: ")
    run("agent_loop.py", hub)

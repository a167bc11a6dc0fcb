"""A hub of one's own for each test: the real binary on a free port, its data in a directory of the test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

#: No test waits longer than this for anything, seconds.
DEADLINE = 30.0


class Hub:
    """A running hub."""

    def __init__(self, data: Path, *flags: str) -> None:
        self.data = data
        self.flags = flags
        self._process = self._start("127.0.0.1:0")

    def _start(self, listen: str) -> subprocess.Popen[str]:
        binary = os.environ.get("AKASHIK_BIN")
        if binary is None:
            pytest.fail("AKASHIK_BIN must name the akashik binary")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("AKASHIK_")}
        arguments = ["serve", "--listen", listen, "--data", str(self.data), "--log-filter", "error", *self.flags]
        process = subprocess.Popen([binary, *arguments], stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("akashik: listening on "), line
        self.url = line.removeprefix("akashik: listening on ").strip()
        return process

    def kill(self) -> None:
        """Kill it as a power cut would."""
        self._process.kill()
        self._close()

    def stop(self) -> None:
        """Stop it in good order."""
        self._process.terminate()
        self._close()

    def _close(self) -> None:
        self._process.wait(DEADLINE)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def start_again(self) -> None:
        """Start it on the same data and the same port."""
        self._process = self._start(self.url.removeprefix("http://"))

    def start_elsewhere(self) -> None:
        """Start it on the same data and another port."""
        self._process = self._start("127.0.0.1:0")

    def end(self) -> None:
        """Make sure that it is gone."""
        if self._process.poll() is None:
            self.kill()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    running = Hub(tmp_path / "data")
    yield running
    running.end()


@pytest.fixture
def hasty_hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub that takes an agent for failed one second after its connection dropped."""
    running = Hub(tmp_path / "data", "--grace-seconds", "1")
    yield running
    running.end()

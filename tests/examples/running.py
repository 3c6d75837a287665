"""Programs of examples/ as processes: their output, line by line, and a stop like Ctrl-C."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from demo.harness.servers import ROOT, Domain, wait_for

EXAMPLES = ROOT / "examples"
GUIDES = ROOT / "docs" / "how-to"
STOP_WITHIN_S = 30.0


def environment(domain: Domain, **more: str) -> dict[str, str]:
    """What a program of an integrator finds: the domain's address and a token, and nothing else of Herald."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERALD_", "DJANGO_", "PYTEST_"))}
    token = domain.token(subject="integrator")
    kept |= {"HERALD_URL": domain.url, "HERALD_TOKEN": token, "PYTHONUNBUFFERED": "1", "no_proxy": "*"}
    return {**kept, "PYTHONPATH": str(ROOT / "client"), **more}


class Program:
    """A running program."""

    def __init__(self, *command: str | Path, env: Mapping[str, str], cwd: Path = ROOT) -> None:
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._process = subprocess.Popen(
            [str(part) for part in command],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((self._process.stdout, self.lines), (self._process.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Any, lines: list[str]) -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))

    def wait_for(self, text: str, count: int = 1) -> list[str]:
        """Wait for `count` lines with this text; returns all lines so far."""

        def there() -> bool:
            if sum(text in line for line in self.lines) >= count:
                return True
            assert self._process.poll() is None, self.told
            return False

        wait_for(there, about=f"{count} lines with {text!r}")
        return list(self.lines)

    @property
    def told(self) -> str:
        """Everything that it printed, for a failure's report."""
        return "\n".join([*self.lines, "--- stderr", *self.errors])

    def ended(self) -> int:
        """Wait until it has ended by itself; returns the exit code."""
        code = self._process.wait(120)
        for reader in self._readers:
            reader.join(10)
        return code

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop it and everything that it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, number)
            try:
                self._process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        for reader in self._readers:
            reader.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def tool(name: str) -> str:
    """The path of a toolchain's program; the test is skipped where there is none."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on PATH")
    return found


@contextmanager
def running(*command: str | Path, domain: Domain, cwd: Path = ROOT, **env: str) -> Iterator[Program]:
    """A program of examples/ with a token of the domain."""
    with Program(*command, env=environment(domain, **env), cwd=cwd) as program:
        yield program


def python(script: str, *arguments: str | Path) -> list[str | Path]:
    """The command of a Python example."""
    return [sys.executable, EXAMPLES / script, *arguments]


def blocks(guide: str, language: str) -> list[str]:
    """The fenced code of a guide in one language."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", (GUIDES / guide).read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{guide} has no {language}"
    return found

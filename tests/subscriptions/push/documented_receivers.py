"""The receivers in docs/how-to, taken from the pages and run as programs: a comment in the first line of the code is the file's name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from demo.harness.servers import ROOT, free_port, wait_for
from tests.subscriptions.push.receiver import own_host

_CODE = re.compile(r"^```[a-z]+\n(?:#|//) ([a-z0-9_]+\.[a-z]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PACKAGES = ROOT / "portal" / "web" / "node_modules"
NODE = shutil.which("node") or str(ROOT / ".venv/bin/node")


def written(folder: Path, page: str) -> dict[str, Path]:
    """Write the programs of a page to a folder; return them by name."""
    found = {}
    for name, code in _CODE.findall((ROOT / "docs" / "how-to" / page).read_text()):
        found[name] = folder / name
        found[name].write_text(code)
    (folder / "node_modules").symlink_to(PACKAGES)
    return found


class DocumentedReceiver:
    """A receiver that runs; `lines` is what it printed."""

    def __init__(self, program: Path, log: Path, at: str, process: subprocess.Popen[bytes]) -> None:
        self.program, self.process = program, process
        self._at = at
        self._log = log

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://{self._at}{path}"

    @property
    def lines(self) -> list[str]:
        """Return the events that it printed."""
        return [line for line in self._log.read_text().splitlines() if line.partition(" ")[0] == "t"]


@contextmanager
def running(program: Path, **environment: str) -> Iterator[DocumentedReceiver]:
    """Run a receiver in Python or JavaScript until the end of the block."""
    host, port = own_host(), free_port()
    command = [NODE, program.name] if program.suffix == ".mjs" else _flask(program, host, port)
    log = program.with_suffix(".log")
    variables = {**os.environ, **environment, "PORT": str(port), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=program.parent, env=variables, stdout=output, stderr=subprocess.STDOUT)
        try:
            receiver = DocumentedReceiver(program, log, f"{host}:{port}", process)
            wait_for(lambda: _listens(receiver, log), about=f"{program.name} listens")
            yield receiver
        finally:
            process.terminate()
            process.wait(10)


def shell(program: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the page; return what came of it."""
    return subprocess.run(
        ["sh", program.name],
        cwd=program.parent,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _flask(program: Path, host: str, port: int) -> list[str]:
    return [sys.executable, "-m", "flask", "--app", program.stem, "run", "--host", host, "--port", str(port)]


def _listens(receiver: DocumentedReceiver, log: Path) -> bool:
    assert receiver.process.poll() is None, log.read_text()
    try:
        httpx.get(receiver.url("/"), trust_env=False, timeout=60)
    except httpx.HTTPError:
        time.sleep(0.02)
        return False
    return True

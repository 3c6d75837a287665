"""The tests of what is written in JavaScript, run with node so that `make test` covers them: the client, the console."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from demo.harness.servers import ROOT

NODE = next(
    (found for found in (shutil.which("node"), str(ROOT / ".venv/bin/node")) if found and Path(found).exists()), ""
)
pytestmark = pytest.mark.skipif(
    not NODE, reason="node is not installed; only tests of what is written in JavaScript need it"
)


def run(folder: Path, *files: str) -> None:
    done = subprocess.run(
        [NODE, "--experimental-websocket", "--test", *files],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "# pass 0" not in done.stdout


def test_the_javascript_client_keeps_its_promises() -> None:
    run(ROOT / "client" / "js", "test/")


def test_the_consoles_modules_keep_theirs() -> None:
    folder = ROOT / "portal" / "web"
    run(folder, *(str(file.relative_to(folder)) for file in sorted((folder / "test").glob("*.test.js"))))

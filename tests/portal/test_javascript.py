"""The JavaScript client's own tests (client/js/test), run with node so that `make test` covers them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.servers import ROOT


@pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not installed; only the JavaScript client's tests need it"
)
def test_the_javascript_client_keeps_its_promises() -> None:
    done = subprocess.run(
        ["node", "--experimental-websocket", "--test", "test/"],
        cwd=ROOT / "client" / "js",
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]

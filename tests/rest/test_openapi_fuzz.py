"""Schemathesis over our own OpenAPI description: whatever it makes up, the answer is never a server error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.server import LiveGateway, Prepared

EXAMPLES = 5  # per operation and phase: some seconds on two cores; raise both when hunting
TIME_S = 8  # of fuzzing and of chains of requests, together
# Streams do not end; adding a peer looks up the names that are made up, outside of this machine (tests/peering has those).


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """A gateway whose made-up long-polls do not outlast the client's patience."""
    with LiveGateway(tmp_path_factory.mktemp("fuzz") / "var", prepared, wait_s_max=1) as running:
        yield running


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.timeout(600)
@pytest.mark.parametrize("credentials", ["administrator", "nobody"])
def test_no_request_that_the_description_allows_or_forbids_is_answered_with_a_server_error(
    patient: LiveGateway, tmp_path: Path, credentials: str
) -> None:
    # Given as a file: it would wait for 10 s at most for what a busy machine may take longer to write.
    with patient.http() as http:
        (tmp_path / "schema.json").write_bytes(http.get("/api/v1/schema", timeout=120).content)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", "schema.json", "--url", patient.url()),
        *("--checks", "not_a_server_error", "--max-examples", str(EXAMPLES), "--generation-deterministic"),
        *(
            "--exclude-path-regex",
            "/stream$|/peers(/look)?$",
            "--request-timeout",
            "60",
            "--no-color",
            "--max-time",
            str(TIME_S),
        ),
        *("--warnings", "off"),
    ]
    if credentials == "administrator":
        command += ["-H", f"Authorization: Bearer {patient.token(admin=True)}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Traceback" not in patient.log

"""Schemathesis over our own OpenAPI description: whatever it makes up, the answer is never a server error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DomainFactory

EXAMPLES = 5  # per operation and phase: a quarter of a minute on two cores; raise both when hunting
TIME_S = 12  # of fuzzing and of chains of requests, together


@pytest.mark.processes
@pytest.mark.timeout(180)
@pytest.mark.parametrize("credentials", ["administrator", "nobody"])
def test_no_request_that_the_description_allows_or_forbids_is_answered_with_a_server_error(
    new_domain: DomainFactory, tmp_path: Path, credentials: str
) -> None:
    domain = new_domain(wait_s_max=1)  # a made-up long-poll must not outlast the client's patience
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{domain.url}/api/v1/schema"),
        *("--checks", "not_a_server_error", "--max-examples", str(EXAMPLES), "--generation-deterministic"),
        *("--exclude-path-regex", "/stream$", "--request-timeout", "20", "--no-color", "--max-time", str(TIME_S)),
        *("--warnings", "off"),
    ]
    if credentials == "administrator":
        command += ["-H", f"Authorization: Bearer {domain.token(admin=True)}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Traceback" not in (domain.data_dir / "logs" / "gateway.log").read_text()

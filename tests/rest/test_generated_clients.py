"""Clients that generators make of the OpenAPI description: they are whole, and publish at a real gateway."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.harness.servers import ROOT
from tests.gateway.server import PLAIN, LiveGateway, Prepared

pytestmark = pytest.mark.processes
PACKAGES = Path(__file__).parent / "generated"
WITHIN_S = 240
LEFT_OUT = {
    ("GET /api/v1/admin/names", "Unsupported content_type application/x-ndjson"),
    ("GET /api/v1/audit/export", "Unsupported content_type application/x-ndjson"),
    ("POST /api/v1/rps/{reference}/events", "type array must have items or prefixItems defined"),
    ("POST /api/v1/rps/{reference}/events", "Missing schema"),
    ("POST /api/v1/rps/{reference}/events", "Unsupported content type text/plain"),
}
"""What openapi-python-client leaves out of the client, and says so: answers in lines, and bodies that it cannot tell apart."""

PUBLISH = """
import importlib, json, pkgutil, sys
import herald_generated
for module in pkgutil.walk_packages(herald_generated.__path__, "herald_generated."):
    importlib.import_module(module.name)
from herald_generated import AuthenticatedClient
from herald_generated.api.rps import rps_create, rps_publish, rps_pull, rps_subscriptions_create
from herald_generated.api.subscriptions import subscriptions_ack, subscriptions_pull
from herald_generated.models import CloudEvent, Problem, Published, Pulled, RendezvousPointCreation
from herald_generated.models import Subscription, SubscriptionCreation, SubscriptionsAckBody
address, token, reference = sys.argv[1:]
def event(number):
    return CloudEvent.from_dict(
        {"specversion": "1.0", "id": f"python-{number}", "source": "/generated", "type": "test", "data": {"n": number}}
    )
with AuthenticatedClient(base_url=address, token=token) as client:
    answer = rps_publish.sync_detailed(reference, client=client, body=event(1))
    assert isinstance(answer.parsed, Published), answer
    made = rps_subscriptions_create.sync(
        reference, client=client, body=SubscriptionCreation.from_dict({"from": "earliest"})
    )
    assert isinstance(made, Subscription), made
    first = rps_pull.sync(reference, client=client, after="earliest")
    assert isinstance(first, Pulled), first
    rps_publish.sync_detailed(reference, client=client, body=event(2))
    resumed = rps_pull.sync(reference, client=client, after=first.cursor)
    durable = subscriptions_pull.sync(made.id, client=client)
    subscriptions_ack.sync(made.id, client=client, body=SubscriptionsAckBody.from_dict({"cursor": first.cursor}))
    acknowledged = subscriptions_pull.sync(made.id, client=client)
    refused = rps_create.sync(client=client, body=RendezvousPointCreation.from_dict({"name": "a//b", "lease_s": 0}))
    assert isinstance(refused, Problem), refused
ids = lambda pulled: [one.id for one in pulled.events]
print(json.dumps({
    "offset": answer.parsed.offset, "id": answer.parsed.id, "read": ids(first), "resumed": ids(resumed),
    "durable": ids(durable), "acknowledged": ids(acknowledged),
    "refused": refused.type_.value, "faults": sorted(one.pointer for one in refused.errors),
}))
"""


def ran(*command: str, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def live_gateway(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    with LiveGateway(tmp_path_factory.mktemp("generated") / "var", prepared) as running:
        yield running
        assert "Traceback" not in running.log


@pytest.fixture
def rp(live_gateway: LiveGateway) -> str:
    return live_gateway.create_rp()


@pytest.fixture
def schema(live_gateway: LiveGateway, tmp_path: Path) -> Path:
    """The description as the gateway gives it, in a file."""
    path = tmp_path / "schema.json"
    path.write_bytes(httpx.get(f"{live_gateway.url()}/api/v1/schema", **PLAIN).content)
    return path


def published(live_gateway: LiveGateway, rp: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = live_gateway.admin.get(f"/api/v1/rps/{rp}/events").json()["events"]
    return events


@pytest.mark.long
def test_a_python_client_is_generated_imported_publishes_and_reads_on(
    live_gateway: LiveGateway, rp: str, schema: Path, tmp_path: Path
) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # it formats with ruff
    command = ("-m", "openapi_python_client", "generate", "--path", str(schema), "--meta", "none")
    told = ran(sys.executable, *command, "--output-path", str(tmp_path / "herald_generated"), cwd=tmp_path, PATH=path)
    assert "removal of" not in told, "a schema of a component was dropped, and all that refers to it"
    parts = re.findall(r"^WARNING parsing (.+?) within \w+\.\n+(.+)$", told, re.MULTILINE)
    found = {
        (where, re.sub(r"^Cannot parse response .* \((.*)\), response will be .*$", r"\1", why)) for where, why in parts
    }
    assert found == LEFT_OUT
    (tmp_path / "publish.py").write_text(PUBLISH)
    answer = json.loads(
        ran(sys.executable, "publish.py", live_gateway.url(), live_gateway.token(), rp, cwd=tmp_path, PYTHONPATH="")
    )
    assert answer == {
        "offset": 1,
        "id": "python-1",
        "read": ["python-1"],
        "resumed": ["python-2"],
        "durable": ["python-1", "python-2"],
        "acknowledged": ["python-2"],
        "refused": "urn:herald:problem:invalid-request",
        "faults": ["/lease_s", "/name"],
    }
    assert [event["data"] for event in published(live_gateway, rp)] == [{"n": 1}, {"n": 2}]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the npm packages of the lock file, and what the test compiles."""
    npm = shutil.which("npm")
    if npm is None:
        assert not os.environ.get("CI"), "continuous integration has npm"
        pytest.skip("npm is not on PATH")
    folder = tmp_path_factory.mktemp("generated")
    for path in PACKAGES.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    done = subprocess.run(
        [npm, "ci", "--prefer-offline", "--loglevel=error"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(f"the packages of openapi-typescript cannot be fetched: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
def test_a_typescript_client_is_generated_compiled_publishes_and_reads_on(
    live_gateway: LiveGateway, rp: str, schema: Path, packages: Path
) -> None:
    binaries = packages / "node_modules" / ".bin"
    ran(str(binaries / "openapi-typescript"), str(schema), "-o", "schema.d.ts", cwd=packages)
    ran(str(binaries / "tsc"), "--project", "tsconfig.json", cwd=packages)
    answer = json.loads(
        ran("node", "publish.js", live_gateway.url(), live_gateway.token(), rp, cwd=packages).splitlines()[0]
    )
    assert answer == {
        "offset": 1,
        "id": "typescript-1",
        "read": ["typescript-1"],
        "resumed": ["typescript-2"],
        "type": "urn:herald:problem:invalid-request",
        "faults": ["/lease_s", "/name"],
    }
    assert [event["id"] for event in published(live_gateway, rp)] == ["typescript-1", "typescript-2"]


def test_the_lock_file_says_nothing_of_where_packages_come_from() -> None:
    lock = json.loads((PACKAGES / "package-lock.json").read_text())
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
    assert ROOT.joinpath("requirements/dev.in").read_text().count("openapi-python-client") == 1

"""Fixtures of the hot path's tests: a shared edge (Redis and one gateway), edges of a test's own, rendezvous points."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.client import Client
from tests.gateway.server import LiveGateway, Prepared

LOG_CHARS_SHOWN = 6000


@pytest.fixture(scope="session")
def shared_live_gateway(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """A running edge that all tests share."""
    with LiveGateway(tmp_path_factory.mktemp("edge") / "var", prepared, request_timeout_s=3, heartbeat_s=5) as running:
        yield running


@pytest.fixture
def live_gateway(shared_live_gateway: LiveGateway) -> Iterator[LiveGateway]:
    """The shared edge; whatever a test sends it, the gateway's log must show no traceback for it."""
    before = len(shared_live_gateway.log)
    yield shared_live_gateway
    assert "Traceback" not in shared_live_gateway.log[before:]


@pytest.fixture
def new_live_gateway(tmp_path: Path, prepared: Prepared) -> Iterator[Callable[..., LiveGateway]]:
    """Makes edges of a test's own, running: `new_live_gateway(gateways=2, session_buffer_bytes=65536)`."""
    made: list[LiveGateway] = []

    def make(**settings: Any) -> LiveGateway:
        made.append(LiveGateway(tmp_path / f"var{len(made)}", prepared, **settings))
        return made[-1].start()

    make.made = made  # type: ignore[attr-defined]
    yield make
    for one in made:
        one.stop()
        assert "Traceback" not in one.log


@pytest.fixture
def rp(live_gateway: LiveGateway) -> str:
    """A new RP of the shared edge."""
    return live_gateway.create_rp()


@pytest.fixture
async def client(live_gateway: LiveGateway) -> AsyncIterator[Client]:
    """A herald.v1 connection to the shared edge."""
    async with Client(live_gateway) as connected:
        yield connected


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of the gateways' logs under a failed test."""
    report = yield
    if report.failed:
        used = getattr(item, "funcargs", {})
        live_gateways = [used["live_gateway"]] if "live_gateway" in used else []
        live_gateways += getattr(used.get("new_live_gateway"), "made", [])
        report.sections += [
            (f"gateway in {live_gateway.data_dir}", live_gateway.log[-LOG_CHARS_SHOWN:])
            for live_gateway in live_gateways
        ]
    return report

"""Fixtures of the hot path's tests: a shared edge (Redis and one gateway), edges of a test's own, rendezvous points."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.edge.client import Client
from tests.edge.server import Edge, Prepared

LOG_CHARS_SHOWN = 6000


@pytest.fixture(scope="session")
def shared_edge(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Edge]:
    """A running edge that all tests share."""
    with Edge(tmp_path_factory.mktemp("edge") / "var", prepared, request_timeout_s=2, heartbeat_s=5) as running:
        yield running


@pytest.fixture
def edge(shared_edge: Edge) -> Iterator[Edge]:
    """The shared edge; whatever a test sends it, the gateway's log must show no traceback for it."""
    before = len(shared_edge.log)
    yield shared_edge
    assert "Traceback" not in shared_edge.log[before:]


@pytest.fixture
def new_edge(tmp_path: Path, prepared: Prepared) -> Iterator[Callable[..., Edge]]:
    """Makes edges of a test's own, running: `new_edge(gateways=2, session_buffer_bytes=65536)`."""
    made: list[Edge] = []

    def make(**settings: Any) -> Edge:
        made.append(Edge(tmp_path / f"var{len(made)}", prepared, **settings))
        return made[-1].start()

    make.made = made  # type: ignore[attr-defined]
    yield make
    for one in made:
        one.stop()
        assert "Traceback" not in one.log


@pytest.fixture
def rp(edge: Edge) -> str:
    """A new RP of the shared edge."""
    return edge.create_rp()


@pytest.fixture
async def client(edge: Edge) -> AsyncIterator[Client]:
    """A herald.v1 connection to the shared edge."""
    async with Client(edge) as connected:
        yield connected


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of the gateways' logs under a failed test."""
    report = yield
    if report.failed:
        used = getattr(item, "funcargs", {})
        edges = [used["edge"]] if "edge" in used else []
        edges += getattr(used.get("new_edge"), "made", [])
        report.sections += [(f"gateway in {edge.data_dir}", edge.log[-LOG_CHARS_SHOWN:]) for edge in edges]
    return report

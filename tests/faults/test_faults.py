"""Seeds of faults under load: no promise to any client is broken; and a loss that is provoked is found (docs/faults.md)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import redis

from demo.harness.servers import wait_for
from eventing.store import keys
from tests.faults.checker import Report, check
from tests.faults.domain import role_of
from tests.faults.history import read
from tests.faults.run import Settings, Stage, domain_of, run, run_faults
from tests.gateway.server import Prepared
from tests.store.cluster_process import Node

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.processes]


def report_of(folder: Path, prepared: Prepared, seed: int, settings: Settings) -> Report:
    """What one seed shows, on a domain of its own."""
    path = folder / "history.jsonl"
    with domain_of(folder / "domain", prepared, settings) as domain:
        run(domain, path, seed, settings)
    return check(read(path))


@pytest.mark.timeout(600)
def test_a_short_run_breaks_no_promise(tmp_path: Path, prepared: Prepared) -> None:
    """Servers only: a gateway takes long to start beside other tests."""
    faults = ("kill primary", "stop primary", "kill replica", "stop replica", "planned failover", "cut gateway")
    settings = Settings(seconds=20, faults=faults, cuts=False)
    assert report_of(tmp_path, prepared, 7, settings).violations == []


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, 21))
def test_twenty_runs_break_no_promise(tmp_path: Path, prepared: Prepared, seed: int) -> None:
    assert report_of(tmp_path, prepared, seed, Settings(seconds=60)).violations == []


def has(node: Node, rp: str) -> bool:
    """Whether a server has the log of an RP."""
    try:
        return bool(node.ask("EXISTS", keys.meta_key(rp)))
    except redis.ResponseError:
        return False  # MOVED


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("level", "lost"), [("replicated:1", True), ("replicated:all", False)])
def test_the_loss_of_a_primary_and_the_replica_that_acknowledged_is_found(
    tmp_path: Path, prepared: Prepared, level: str, lost: bool
) -> None:
    """Scenario C with clients: one of two replicas stands still, the primary and the other one die together, the first one is promoted."""

    def provoke(stage: Stage) -> None:
        cluster = stage.domain.cluster
        assert cluster is not None
        rp = stage.rps[0]
        primary = next(node for node in cluster.primaries if has(node, rp))
        dies, stays = [replica for replica, of in cluster.replica_of.items() if of is primary]
        wait_for(lambda: stage.history.acked[rp] > 5, about="the load has begun")
        stays.pause(True)
        primary.ask("CLIENT", "KILL", "TYPE", "replica")  # what it is sent from now on waits in no buffer of its
        before = stage.history.acked[rp]
        with contextlib.suppress(AssertionError):  # at replicated:all nothing is acknowledged now
            wait_for(lambda: stage.history.acked[rp] > before + 3, 8.0)
        primary.kill()
        dies.kill()
        stays.pause(False)
        wait_for(lambda: role_of(stays) == "master", about="the one that stood still is promoted")
        primary.start()
        dies.start()

    settings = Settings(level, 12.0, replicas=2, cuts=False)
    with domain_of(tmp_path / "domain", prepared, settings) as domain:
        run_faults(domain, tmp_path / "history.jsonl", 1, settings, provoke)
    report = check(read(tmp_path / "history.jsonl"))
    assert ("lost" in report.names) is lost
    if not lost:
        assert report.violations == []

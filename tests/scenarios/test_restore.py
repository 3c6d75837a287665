"""A domain of a federation that is restored from a backup: what peers hold comes back, and nothing contradicts anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.harness.network import Network
from demo.harness.servers import wait_for
from tests.gateway.server import Prepared

pytestmark = [pytest.mark.long, pytest.mark.processes]


@pytest.fixture
def two(tmp_path: Path, prepared: Prepared) -> Iterator[Network]:
    with Network(tmp_path, "ab", seed=prepared.migrated, records=0) as network:
        network.peer("a", "b")
        yield network


def test_a_restored_home_takes_back_what_its_replica_holds_and_begins_a_new_epoch_without_contradiction(
    two: Network, tmp_path: Path
) -> None:
    rp = two.replicated_rp("a", "b", lease_s=3600)
    two.publish(rp, "a", 20)
    two.publish(rp, "b", 10)
    two.converged(rp)
    reader = two.reader(rp, "b")
    result = two["a"].manage("backup", str(tmp_path / "a.tar"))
    assert result.returncode == 0, result.stderr
    two.publish(rp, "a", 15)
    two.publish(rp, "b", 5)
    vector = two.converged(rp)

    two.stop("a")
    shutil.rmtree(two["a"].data_dir)
    result = two["a"].manage("restore", str(tmp_path / "a.tar"))
    assert result.returncode == 0, result.stderr
    two.start("a")
    wait_for(lambda: two.vector(rp, "a") == vector, 60, every_s=0.1, about="what b holds of both feeds is back at a")
    two.publish(rp, "a", 12)
    after = two.converged(rp)
    assert len(after) == len(vector) + 1, "what a publishes now is in a new feed"
    reader.has(two.published[rp])
    for at in "ab":
        assert two.misbehaviour(at) == []
        assert two.quarantined(at) == set()
        assert two[at].manage("verify_chain").returncode == 0

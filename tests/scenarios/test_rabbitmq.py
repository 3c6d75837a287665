"""Two domains whose task queues are at RabbitMQ, each in a virtual host of its own: it is killed and started again, also after longer than
a process may do no work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.harness.network import Network, NetworkDomain
from demo.harness.servers import wait_for
from tests.gateway.server import Prepared
from tests.store.rabbitmq_process import RabbitMQ

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.processes, pytest.mark.timeout(600)]

SOON_S = 25.0
"""From publishing to the arrival at the other domain on a busy machine; below 1 s on a quiet one. What waits for a sweep takes half a minute."""


@pytest.fixture
def rabbitmq(tmp_path: Path) -> Iterator[RabbitMQ]:
    made = RabbitMQ(tmp_path / "rabbitmq")
    yield made
    made.close()


@pytest.fixture
def two(rabbitmq: RabbitMQ, tmp_path: Path, prepared: Prepared) -> Iterator[Network]:
    network = Network(tmp_path, "ab", seed=prepared.migrated, records=0)
    for name in "ab":
        address = rabbitmq.add_host(name)
        network.members[name] = NetworkDomain(tmp_path, name, seed=prepared.migrated, records=0, broker_url=address)
    with network:
        network.peer("a", "b")
        yield network


def test_no_event_is_lost_and_no_process_is_killed_when_rabbitmq_is_away(two: Network, rabbitmq: RabbitMQ) -> None:
    rp = two.replicated_rp("a", "b")
    reader = two.reader(rp, "b")
    two.publish(rp, "a")
    two.converged(rp, within_s=SOON_S)
    pids = {name: two[name].pids for name in "ab"}
    for away_s in (0.0, 60.0):
        publishers = [two.publisher(rp, name, every_s=0.2) for name in "ab"]
        rabbitmq.kill()
        time.sleep(away_s)  # the fault itself
        rabbitmq.start()
        meanwhile = list(two.published[rp])
        began = time.monotonic()
        wait_for(lambda held=meanwhile: set(held) <= set(reader.ids), 90, about="what was published meanwhile arrives")  # type: ignore[misc]
        print(
            f"away {away_s:g} s: {len(meanwhile)} events, at the other domain {time.monotonic() - began:.1f} s after the return"
        )
        for publisher in publishers:
            assert publisher.is_alive(), "publishing was refused while the broker was away"
            publisher.stop()
        two.converged(rp)
        began = time.monotonic()
        two.publish(rp, "a")
        two.converged(rp, within_s=SOON_S)
        print(f"the next event took {time.monotonic() - began:.2f} s")
    time.sleep(35)  # longer than a process that does no work is let live
    reader.has(two.published[rp])
    assert {name: two[name].pids for name in "ab"} == pids, "a process was started again"
    assert [two.misbehaviour(name) for name in "ab"] == [[], []]
    assert "guest:guest" not in two.logs()

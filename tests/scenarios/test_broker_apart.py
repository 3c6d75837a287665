"""Two domains whose task queues are on a Redis of their own: it may be flushed, be away or fall silent, and no event is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.harness.network import Network
from tests.gateway.server import Prepared
from tests.store.redis_process import RedisProcess

pytestmark = [pytest.mark.long, pytest.mark.processes]

AWAY_S = 15.0
AFTERWARDS_S = 10.0
LAG_S = 25.0
"""From publishing at one domain to its arrival at the other, beside other tests; on a quiet machine it is to be below 2 s. What waits
for the sweep, or for the broker to give a lost task out again, takes half a minute at least."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RedisProcess]:
    process = RedisProcess(tmp_path / "broker", appendonly="no")
    process.start()
    yield process
    process.kill()


@pytest.fixture
def apart(broker: RedisProcess, tmp_path: Path, prepared: Prepared) -> Iterator[Network]:
    """Domains a and b, peered, on one broker."""
    with Network(tmp_path / "apart", "ab", seed=prepared.migrated, records=0, broker_url=broker.url) as network:
        network.peer("a", "b")
        yield network


@pytest.mark.parametrize("fault", ["flushed and away", pytest.param("silent", marks=pytest.mark.soak)])
def test_no_event_is_lost_and_forwarding_goes_on_once_the_broker_is_back(
    fault: str, apart: Network, broker: RedisProcess
) -> None:
    rp = apart.replicated_rp("a", "b")
    apart.publish(rp, "a")
    apart.converged(rp)
    assert "celery:" in "".join(_keys(broker)), "the queues are not at the broker"
    pids = {name: apart[name].pids for name in "ab"}
    publishers = [apart.publisher(rp, name) for name in "ab"]
    time.sleep(1.0)  # load before the fault
    if fault == "silent":
        broker.pause(True)
        time.sleep(AWAY_S)  # the fault itself
        broker.pause(False)
    else:
        with broker.client() as client:
            client.flushall()
        broker.kill()
        time.sleep(AWAY_S)  # the fault itself
        broker.start()
    for publisher in publishers:
        assert publisher.is_alive(), "publishing was refused while the broker was away"
    time.sleep(AFTERWARDS_S)  # from then on delays are as ever
    for publisher in publishers:
        publisher.stop()
    apart.converged(rp)
    began = time.monotonic()
    apart.publish(rp, "a")
    apart.converged(rp, within_s=LAG_S)
    print(f"broker {fault}: the next event took {time.monotonic() - began:.2f} s")
    assert len(apart.published[rp]) > 2 * AWAY_S
    assert {name: apart[name].pids for name in "ab"} == pids, "a process was started again"
    assert [apart.misbehaviour(name) for name in "ab"] == [[], []]


def _keys(broker: RedisProcess) -> list[str]:
    with broker.client() as client:
        return [key.decode() for key in client.scan_iter(count=1000)]

"""A gateway with thousands of sessions is killed: how soon all are back at the others, and what that costs the log and the other readers."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Mapping

import httpx
import pytest
import redis

from demo.harness.crowd import Crowd
from demo.harness.fame import READERS_POLICY
from demo.harness.servers import Domain, wait_for
from tests.conftest import DomainFactory

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.soak]

READERS = int(os.environ.get("STORM_READERS", "10000"))  # half of them at the gateway that is killed
BACK_WITHIN_S = 10.0
EVENTS_PER_S = 2  # each goes to all: ten thousand clients in Python take some twenty thousand in a second


class Ticker(threading.Thread):
    """Publishes numbered events until it is stopped."""

    def __init__(self, domain: Domain, rp: str) -> None:
        super().__init__(daemon=True)
        self.number = 0
        self.stopped = threading.Event()
        self._domain, self._rp = domain, rp

    def run(self) -> None:
        with self._domain.http(admin=True) as http:
            for number in itertools.count(1):
                if self.stopped.wait(1 / EVENTS_PER_S):
                    return
                data = {"n": number, "at": time.monotonic()}
                event = {"specversion": "1.0", "id": str(number), "source": "urn:storm", "type": "t", "data": data}
                while not self._published(http, event):
                    self.stopped.wait(0.05)
                self.number = number

    def _published(self, http: httpx.Client, event: Mapping[str, object]) -> bool:
        head = {"content-type": "application/cloudevents+json"}
        try:
            return http.post(f"/api/v1/rps/{self._rp}/events", json=event, headers=head).status_code == 201
        except httpx.TransportError:  # the gateway that is killed
            return False


@pytest.fixture
def domain(new_domain: DomainFactory) -> Domain:
    return new_domain(gateways=2, workers=0, reports="off", records=0, sessions_per_address=0, reader_balancing=0)


def test_all_readers_of_a_killed_gateway_are_back_within_seconds(domain: Domain) -> None:
    with domain.http(admin=True) as http:
        made = http.post("/api/v1/rps", json={"lease_s": 3600, "policy": READERS_POLICY})
        assert made.status_code == 201, made.text
        rp = made.json()["id"]
    ticker = Ticker(domain, rp)
    ticker.start()
    with Crowd(rp, [domain.url], processes=2, measures=True) as crowd:
        crowd.have(READERS, over_s=READERS / 200)
        wait_for(lambda: crowd.state.open == READERS, READERS / 200 + 120, about=f"{READERS} readers")
        wait_for(lambda: (crowd.state.least or 0) >= ticker.number - EVENTS_PER_S, 120, about="all are at the front")
        reads = scripts_run(domain)
        killed_at = time.monotonic()
        domain.kill("gateway-1")
        lost_at = ticker.number
        wait_for(lambda: (crowd.state.least or 0) > lost_at + 2, 120, about="all are back")
        back_s = time.monotonic() - killed_at
        reads = scripts_run(domain) - reads
        state = crowd.state
        late = sorted(delay for _, at, delay in crowd.delays_ms if killed_at <= at <= killed_at + back_s)
    ticker.stopped.set()
    p50, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
    print(f"{READERS} readers: back within {back_s:.1f} s, {reads} scripts, delays p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    assert (state.missing, state.doubled, state.errors) == (0, 0, [])
    assert back_s <= BACK_WITHIN_S


def scripts_run(domain: Domain) -> int:
    """How many scripts its Redis has run."""
    with redis.Redis(unix_socket_path=str(domain.data_dir / "redis.sock")) as client:
        stats = client.info("commandstats")
        return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("eval", "evalsha"))

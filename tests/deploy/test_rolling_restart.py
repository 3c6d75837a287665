"""Gateways behind HAProxy, restarted in turn under load: no reader loses or repeats an event, and they return spread."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from demo.harness.crowd import Crowd
from demo.harness.fame import READERS_POLICY
from demo.harness.servers import Domain, free_port, wait_for
from tests.conftest import DomainFactory
from tests.deploy.balancers import RECIPES, Balancer, balancer, gateway

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.soak]

HAPROXY = next(recipe for recipe in RECIPES if recipe.name == "haproxy")
EVENTS_PER_S = 100
GAP_S, RETURNS_PER_S = 3.0, 1000
STALL_S = 5.0  # by which a busy machine may be late
CHECKS_S = 5  # until HAProxy has noticed that a gateway is not ready


class Size(NamedTuple):
    """Readers, the RPs that they read, and over how many seconds a gateway closes its sessions."""

    readers: int
    rps: int
    drain_s: int


FULL = Size(int(os.environ.get("ROLLING_READERS", "10000")), 100, 20)


class Publisher(threading.Thread):
    """Publishes numbered events to RPs in turn, through the balancer, until it is stopped; repeats by id what was not acknowledged."""

    def __init__(self, url: str, token: str, rps: list[str]) -> None:
        super().__init__(daemon=True)
        self.number = 0  # of the last whole round
        self.late = 0
        self.stopped = threading.Event()
        self._rps = rps
        head = {"Authorization": f"Bearer {token}", "content-type": "application/cloudevents+json"}
        self._http = httpx.Client(base_url=url, headers=head, timeout=30.0, trust_env=False)

    def run(self) -> None:
        due = time.monotonic()
        for number in itertools.count(1):
            for rp in self._rps:
                due = max(due + 1 / EVENTS_PER_S, time.monotonic() - 1)  # what a stall has kept is not made up for
                if self.stopped.wait(max(0.0, due - time.monotonic())):
                    return
                self._publish(rp, number)
            self.number = number

    def _publish(self, rp: str, number: int) -> None:
        data = {"n": number, "at": time.monotonic()}
        event = {"specversion": "1.0", "id": str(number), "source": "urn:rolling", "type": "t", "data": data}
        while not self.stopped.is_set():
            try:
                if self._http.post(f"/api/v1/rps/{rp}/events", json=event).status_code == 201:
                    return
            except httpx.TransportError:
                pass
            self.stopped.wait(0.05)


class Hosts:
    """Three gateways of a domain with an address each, and HAProxy before them."""

    def __init__(self, domain: Domain, folder: Path, drain_s: int, stack: ExitStack) -> None:
        self.domain = domain
        self.ports = [free_port() for _ in range(3)]
        front = free_port()
        self._settings: dict[str, Any] = {
            "drain_lead_s": CHECKS_S,
            "drain_s": drain_s,
            "public_url": f"http://127.0.0.1:{front}",
            "trusted_proxies": "127.0.0.1",
        }
        self._stack = stack
        self._running = {port: self._started(port) for port in self.ports}
        self.balancer: Balancer = stack.enter_context(balancer(HAPROXY, self.ports, folder, front))

    def _started(self, port: int) -> Any:
        return self._stack.enter_context(gateway(self.domain, port, **self._settings))

    def restart(self, port: int) -> None:
        """Stop a gateway in order, wait for its end, and start it."""
        self._running[port].terminate()
        self._running[port].wait(self._settings["drain_s"] + 120)
        self._running[port] = self._started(port)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.mark.parametrize("size", [Size(150, 10, 2), pytest.param(FULL, marks=pytest.mark.soak)], ids=["small", "full"])
def test_gateways_are_restarted_in_turn_and_nobody_notices(
    new_domain: DomainFactory, tmp_path: Path, stack: ExitStack, size: Size
) -> None:
    domain = new_domain(workers=0, reports="off", records=0, sessions_per_address=0, reader_balancing=0)
    with domain.http(admin=True) as http:
        rps = []
        for _ in range(size.rps):
            made = http.post("/api/v1/rps", json={"lease_s": 3600, "policy": READERS_POLICY})
            assert made.status_code == 201, made.text
            rps.append(made.json()["id"])
    hosts = Hosts(domain, tmp_path, size.drain_s, stack)
    publisher = Publisher(hosts.balancer.url, domain.token(admin=True), rps)
    crowd = stack.enter_context(Crowd(",".join(rps), [hosts.balancer.url], processes=2, measures=True))
    ramp_s = size.readers / 200
    crowd.have(size.readers, over_s=ramp_s)
    wait_for(lambda: crowd.state.open == size.readers, ramp_s + 120, about=f"all read: {crowd.state}")
    publisher.start()
    wait_for(lambda: (crowd.state.least or 0) >= 1, 120, about="all have the first event")
    began = time.monotonic()
    for port in hosts.ports:
        hosts.restart(port)
    took_s = time.monotonic() - began
    last = publisher.number + 1
    wait_for(lambda: (crowd.state.least or 0) > last, 120, about="all are at the front")
    publisher.stopped.set()
    publisher.join(60)
    state = crowd.state
    away_s = sorted(away for at, away in crowd.returns)
    each_s = Counter(int(at) for at, _ in crowd.returns)
    p99, most = away_s[len(away_s) * 99 // 100], max(each_s.values())
    print(
        f"{size.readers} readers, three restarts in {took_s:.0f} s: {len(away_s)} returns, at most {most} a second, "
        f"away p50 {away_s[len(away_s) // 2]:.2f} s, p99 {p99:.2f} s, at most {away_s[-1]:.2f} s; "
        f"{state.received} events received, load {os.getloadavg()[0]:.0f}"
    )
    assert (state.missing, state.doubled, state.errors, state.open) == (0, 0, [], size.readers)
    assert len(away_s) >= size.readers // 2, "the gateways had readers"
    assert most <= RETURNS_PER_S
    assert p99 <= GAP_S + STALL_S

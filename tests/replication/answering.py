"""A peer as we call it, which answers as each test says, and rendezvous points that are shared with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from eventing.conf import config
from eventing.core.events.feeds import Feed
from eventing.core.seals.seals import seal_read
from eventing.core.signing import Signed
from eventing.log import control
from eventing.peering.models import PeerDelivery
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.replication.forwarding import wakeups
from eventing.replication.forwarding.outbound import forward
from tests.peering.other_domain import OtherDomain
from tests.planes import events_made
from tests.replication.shared_rp import BOUNDS, head, link, new_rp

THREADS = ThreadPoolExecutor(2)


@dataclass
class FakePeer:
    """A peer that holds vectors, takes every run that follows them, and fails as told, or answers with the bytes it is told.

    Attributes:
        claims: what it says to hold besides, at every RP.
        prunes: feeds that it prunes with every answer.
        newest: by RP, the seals that it shows of our own feed; None: its software is older than that.
    """

    vectors: dict[str, dict[str, int]] = field(default_factory=dict)
    requests: list[wire.ExchangeRequest] = field(default_factory=list)
    fails: list[PeerError] = field(default_factory=list)
    says: list[bytes] = field(default_factory=list)
    refuses: dict[str, str] = field(default_factory=dict)
    deaf: bool = False
    claims: dict[str, int] = field(default_factory=dict)
    prunes: list[str] = field(default_factory=list)
    newest: dict[str, list[Signed]] | None = None
    at_once: int = 0
    at_once_max: int = 0
    slow_s: float = 0.0
    pause_s: float = 0.0

    def begin(
        self, url: str, domain: str, path: str, body: bytes, timeout_s: float, key: object = None
    ) -> Callable[[], bytes]:
        """It answers on a thread of its own, as a peer does, while whoever asked does something else."""
        return THREADS.submit(self._answer, body).result

    def _answer(self, body: bytes) -> bytes:
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        try:
            time.sleep(self.slow_s)
            if self.fails:
                raise self.fails.pop(0)
            if self.says:
                return self.says.pop(0)
            request = wire.request(body)
            self.requests.append(request)
            return wire.encode(self.taken(request))
        finally:
            self.at_once -= 1

    def taken(self, request: wire.ExchangeRequest) -> wire.ExchangeAnswer:
        """Take in a request, and answer it."""
        return wire.ExchangeAnswer(wire.VERSION, [self._part(part) for part in request.parts], self.pause_s)

    def _part(self, part: wire.RpPart) -> wire.RpAnswer:
        if part.rp in self.refuses:
            return wire.RpAnswer(part.rp, error=self.refuses[part.rp])
        have = self.vectors.setdefault(part.rp, {})
        for run in part.runs:
            seal = seal_read(run.seal)
            if not self.deaf and seal.first <= have.get(seal.feed.key, 0) + 1:
                have[seal.feed.key] = max(have.get(seal.feed.key, 0), seal.last)
        answer = wire.RpAnswer(part.rp, {**have, **self.claims}, prune=self.prunes)
        if self.newest is not None:
            answer.newest = self.newest.get(part.rp, []) if part.own else None
        return answer

    def events(self) -> int:
        return sum(len(run.events) for request in self.requests for part in request.parts for run in part.runs)


def shared(b: OtherDomain, events: int = 0) -> str:
    """An RP that is shared with b."""
    rp = new_rp(max_events=10_000)
    link(rp, b)
    publish(rp, events)
    return rp


def publish(rp: str, count: int) -> None:
    if count:
        control.append(rp, events_made(count, publish.begin), BOUNDS)  # type: ignore[attr-defined]
        publish.begin += count  # type: ignore[attr-defined]


publish.begin = 0  # type: ignore[attr-defined]


def own(rp: str) -> str:
    return Feed(config().domain, head(rp).epoch).key


def delivery() -> PeerDelivery:
    found = delivery_get("b.test")
    assert found is not None
    return found


def forward_woken(rp: str) -> None:
    """Forward to b what is new at the RP."""
    wakeups.wake("b.test", [rp])
    forward("b.test")

"""Sudden fame of an RP among real domains: five of them with an overlay, an RP with a publisher, crowds of readers, and the record of what happened.

with famous_network(folder) as network:
    with Fame(network, "a") as fame:
        fame.crowd(5000, over_s=60)
        ...
        fame.record.worst_over_share_s()
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx

from demo.harness.crowd import Crowd
from demo.harness.network import Network, mesh
from demo.harness.servers import wait_for

LOAD_FACTOR = 1.25
READERS_MIN = 100
"""Readers of the RP below which no share counts: domains with fewer sessions serve them (replication/rules/balancing.py)."""
OVERLAY_WITHIN_S = 120.0
PUBLISH_EVERY_S = 1.0
LOOK_S = 1.0
NICE = 10
"""Priority of the crowd. Lower, and on a busy machine readers do not follow redirects in time."""
SMALL: Mapping[str, Any] = {"workers": 0, "reports": "off", "records": 0, "capacity": 0, "sessions_per_address": 0}
"""Settings of a small domain of three processes (docs/decisions/0073), of the least capacity class, all of whose readers may be at this machine."""
READERS_POLICY: list[dict[str, Any]] = [
    {"issuer": "domain", "allow": ["describe", "publish", "subscribe", "history"]},
    {"issuer": "anyone", "allow": ["describe", "subscribe", "history", "replicate"]},
]


def famous_network(folder: Path, names: Sequence[str], *, seed: Path | None = None, **settings: Any) -> Network:
    """Return small domains that peer with each other by their own addresses; not started."""
    return Network(folder, names, seed=seed, proxied=False, **{**SMALL, **settings})


def found_overlay(network: Network, names: Sequence[str]) -> None:
    """Peer all, have the first one found an overlay and the others join it; return when each has all others' loads to go by."""
    network.shape(mesh(names))
    network[names[0]].ask("POST", "/api/v1/overlay/found")
    for name in names[1:]:
        network[name].ask("POST", "/api/v1/overlay/join", {"sponsor": f"{names[0]}.test"})

    def complete() -> bool:
        states = [network[name].ask("GET", "/api/v1/overlay") for name in names]
        return all(one["domains"] == len(names) and one["links"] for one in states)

    wait_for(complete, OVERLAY_WITHIN_S, every_s=0.5, about="all know each other by the overlay")


class FameSample(NamedTuple):
    """A moment: monotonic seconds, readers by domain, and the domains that serve the RP."""

    at_s: float
    readers: Mapping[str, int]
    serving: frozenset[str]

    def over(self) -> list[str]:
        """Return the domains that have more than LOAD_FACTOR times their fair share; they are of one capacity."""
        total = sum(self.readers.values())
        fair = total / max(1, len(self.serving))
        return [name for name, count in self.readers.items() if total >= READERS_MIN and count > LOAD_FACTOR * fair]


@dataclass
class FameRecord:
    """Course of a crowd.

    Attributes:
        samples: one each LOOK_S.
        delays_ms: domain, monotonic seconds of the publish, delay.
        decisions: of the planner, about the RP.
    """

    samples: list[FameSample] = field(default_factory=list)
    delays_ms: list[tuple[str, float, float]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)

    def worst_over_share_s(self) -> float:
        """Return for how long one domain was above its bounded share without a break, at most."""
        worst, since = 0.0, dict[str, float]()
        for sample in self.samples:
            over = sample.over()
            since = {name: since.get(name, sample.at_s) for name in over}
            worst = max([worst, *(sample.at_s - at for at in since.values())])
        return worst

    def p99_ms(self, from_s: float, to_s: float, *, at: str | None = None) -> float:
        """Return the 99th percentile of the delays of events published in this time, at one domain or all; NaN without any."""
        found = sorted(
            ms for name, published_at, ms in self.delays_ms if from_s <= published_at < to_s and at in (None, name)
        )
        return found[min(len(found) - 1, int(0.99 * len(found)))] if found else float("nan")

    def changes(self, within_s: float = 600.0) -> int:
        """Return the most changes of the placement that were begun within so many seconds."""
        begun = sorted(one["at_s"] for one in self.decisions if one["state"] in ("done", "failed", "working"))
        return max((sum(at <= one < at + within_s for one in begun) for at in begun), default=0)


class NumberedPublisher(threading.Thread):
    """Publishes numbered events with their times at a domain until `stop`, each until it is stored; it follows no redirect."""

    def __init__(self, network: Network, rp: str, at: str, every_s: float) -> None:
        super().__init__(name=f"publisher-{at}", daemon=True)
        self.published = 0
        self._member, self._rp, self._every_s = network[at], rp, every_s
        self._ended = threading.Event()
        self.start()

    def run(self) -> None:
        path, began = f"/api/v1/rps/{self._rp}/events", time.monotonic()
        headers = {"content-type": "application/cloudevents+json"}
        with self._member.http(admin=True, subject="publisher") as client:
            while not self._ended.wait(max(0.0, began + (self.published + 1) * self._every_s - time.monotonic())):
                number = self.published + 1
                data = {"n": number, "at": time.monotonic()}
                event = {"specversion": "1.0", "id": str(number), "source": "/fame", "type": "test", "data": data}
                content = json.dumps(event)
                while not self._stored(client, path, content, headers):
                    time.sleep(0.1)
                self.published = number

    def _stored(self, client: httpx.Client, path: str, content: str, headers: Mapping[str, str]) -> bool:
        try:
            answer = client.post(path, content=content, headers=headers)
        except httpx.TransportError:
            return False
        assert answer.status_code in (201, 429, 503), answer.text
        return answer.status_code == 201

    def stop(self) -> None:
        """Stop; return when the last event is stored."""
        self._ended.set()
        self.join(30)


class Fame:
    """An RP whose home is `home`, with a replica at `replica` if stated, its publisher and its crowds.

    Attributes:
        readers: the crowd, at low priority: what thousands of readers cost on this machine is not to slow down the domains.
        witnesses: a few more readers, in a process of their own at ordinary priority, whose delays are kept.
        record: what happened; complete after `close`.
    """

    def __init__(
        self,
        network: Network,
        home: str,
        *,
        replica: str | None = None,
        processes: int = 2,
        publish_every_s: float = PUBLISH_EVERY_S,
        **asked: Any,
    ) -> None:
        self.network, self.home = network, home
        self.record = FameRecord()
        self.rp = network.create_rp(home, policy=READERS_POLICY, **asked)
        begin = [home]
        if replica is not None:
            network.join(self.rp, replica, home)
            begin.append(replica)
        self._names = {network[name].url: name for name in network.names}
        network[home].ask("PATCH", f"/api/v1/plan/rps/{self.rp}", {"mode": "apply"})
        self.witnesses = Crowd(self.rp, [network[name].url for name in begin], measures=True)
        self.readers = Crowd(self.rp, [network[home].url], processes=processes, nice=NICE)
        self.publisher = NumberedPublisher(network, self.rp, home, publish_every_s)
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="fame", daemon=True)
        self._watching.start()

    def sample(self) -> FameSample:
        """Return the present moment."""
        readers = dict.fromkeys(self.network.names, 0)
        for crowd in (self.witnesses, self.readers):
            for url, count in crowd.state.at.items():
                readers[self._names[url]] += count
        participants = self.network.participants(self.rp, self.home)
        return FameSample(time.monotonic(), readers, frozenset(one.removesuffix(".test") for one in participants))

    def all_have(self, number: int, within_s: float = 60.0) -> None:
        """Wait until every reader has the event of this number."""

        def have() -> bool:
            states = [crowd.state for crowd in (self.witnesses, self.readers)]
            return all(not one.open or (one.least or 0) >= number for one in states)

        wait_for(have, within_s, every_s=0.2, about=f"all readers have event {number}")

    def close(self) -> None:
        """End readers and publisher; the record is complete afterwards. Harmless when repeated."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._watching.join(30)
        self.publisher.stop()
        self.witnesses.close()
        self.readers.close()
        self.record.delays_ms = [(self._names[url], at, ms) for url, at, ms in self.witnesses.delays_ms]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
            self.record.samples.append(self.sample())
            self._note_decisions()

    def _note_decisions(self) -> None:
        """Record the planner's decisions about the RP, each with the time at which it was first met."""
        known = {one["id"]: one for one in self.record.decisions}
        page = self.network[self.home].ask("GET", f"/api/v1/plan/decisions?rp={self.rp}&limit=100")
        for one in page["items"]:
            at_s = known[one["id"]]["at_s"] if one["id"] in known else time.monotonic()
            known[one["id"]] = {**one, "at_s": at_s}
        self.record.decisions = list(known.values())

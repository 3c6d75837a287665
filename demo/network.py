"""The five domains of the demo: their start, peering and replicas, and the faults between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from demo.forger import forge
from demo.harness.network import Network, ring
from demo.home_acts import HomeActs
from demo.monitors import Monitor
from eventing.core.events.feeds import Feed

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
LEASE_S = 86_400
USE = ["describe", "publish", "subscribe", "history", "replicate"]
POLICY: list[
    dict[str, Any]
] = [  # tokens of each of the five, and who may replicate it: anyone, not all are its home's peers
    {"issuer": "domain", "allow": USE},
    *({"issuer": f"peer:{name}.test", "allow": USE} for name in NAMES[1:]),
    {"issuer": "anyone", "allow": ["describe", "replicate"]},
]


class Five:
    """The demo's domains; `say` gets the progress of `start`."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.names = NAMES
        self.rp = ""
        self._say = say
        self._network = Network(folder, NAMES, records=0)
        self._pairs = ring(NAMES, chord=True)

    @property
    def clients(self) -> Mapping[str, httpx.Client]:
        """Return administrators' clients of all domains."""
        return {name: self._network[name].admin for name in NAMES}

    def start(self, every_s: float) -> None:
        """Start the domains, peer them, make one RP with replicas everywhere, publish at each."""
        self._say(f"Starting {len(NAMES)} domains, each with its own Redis, gateway, worker and data ...")
        self._network.start(ready=lambda name: self._say(f"  {name}.test is up at {self._network[name].url}"))
        self._say("Peering them: " + ", ".join(f"{one}-{other}" for one, other in self._pairs))
        self._network.shape(self._pairs)
        self.rp = self._network.create_rp(NAMES[0], title="Load of the five hosts", policy=POLICY, lease_s=LEASE_S)
        self._say(f"The rendezvous point {self.rp} has its home at {NAMES[0]}; replicas:")
        self._replicate()
        for name in NAMES:
            member = self._network[name]
            monitor = Monitor(member.url, member.token(subject="monitor"), self.rp, name, every_s)
            self._network.background.spawn(monitor.run())

    def _replicate(self) -> None:
        """Every other domain joins by a neighbour that has the RP already."""
        has = {NAMES[0]}
        while len(has) < len(NAMES):
            for one, other in [*self._pairs, *((other, one) for one, other in self._pairs)]:
                if one in has and other not in has:
                    self._network.join(self.rp, other, via=one, lease_s=LEASE_S)
                    has.add(other)
                    self._say(f"  {other} by way of {one}")

    def stop(self) -> None:
        """Send Ctrl-C to all of them concurrently."""
        self._network.close()

    def kill(self) -> None:
        """End all of them at once."""
        for name in NAMES:
            self._network.kill(name)

    def is_cut(self, one: str, other: str) -> bool:
        """Return whether the route between two domains is cut in either direction."""
        return not (self._network.proxy(one, other).is_open and self._network.proxy(other, one).is_open)

    def cut(self, name: str) -> None:
        """Cut all routes to and from `name`."""
        self._network.isolate(name)

    def heal(self, name: str) -> None:
        """Undo `cut`."""
        self._network.heal(name)

    def kill_one(self, name: str) -> None:
        """Send SIGKILL to all of a domain's processes."""
        self._network.kill(name)

    def start_one(self, name: str) -> None:
        """Start a domain that was killed; returns before it is up."""
        if not self._network[name].is_ready():
            self._network[name].spawn()

    def forge(self, name: str) -> str:
        """Have `name` send each neighbour an event that a third domain never published; return the answers."""
        liar, told = self._network[name], []
        for neighbour in self._neighbours(name):
            victim = next(other for other in NAMES if other not in (name, neighbour))
            held = self._network.vector(self.rp, neighbour)
            epoch = str(self._network[victim].ask("GET", f"/api/v1/rps/{self.rp}")["epoch"])
            status = forge(
                url=self._network.proxy(name, neighbour).url,
                to=self._network[neighbour].name,
                liar=liar.name,
                key=liar.signing_key,
                rp=self.rp,
                victim=self._network[victim].name,
                epoch=epoch,
                first=held.get(Feed(self._network[victim].name, epoch).key, 0) + 1,
            )
            told.append(f"{neighbour} an event of {victim} (answer {status})")
        return f"{name} forges: it sends " + ", ".join(told) + "."

    def home_acts(self, say: Callable[[str], None]) -> HomeActs:
        """Return the acts about the home of the RP."""
        return HomeActs(self._network, self.rp, say)

    def lift(self, name: str) -> list[str]:
        """Have the administrators of all domains that have quarantined `name` lift the quarantine; return which did."""
        lifted = [at for at in NAMES if name in {one.removesuffix(".test") for one in self._network.quarantined(at)}]
        for at in lifted:
            self._network[at].ask("DELETE", f"/api/v1/quarantines/{name}.test")
        return lifted

    def _neighbours(self, name: str) -> list[str]:
        return [other for pair in self._pairs if name in pair for other in pair if other != name]

"""Twelve small domains that nobody wires: one sponsor brings them in, and links form by themselves."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from demo.harness.network import Network
from demo.harness.reader import Reader
from demo.harness.servers import wait_for

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu")
SPONSOR = NAMES[0]
KILLED = 3
LINKS_MIN = 3
PEERED_WITHIN_S = 60.0
LINKED_WITHIN_S = 120.0
CARRIED_WITHIN_S = 60.0
LOOK_S = 2.0
LEASE_S = 86_400


class Twelve:
    """The domains of the act; `say` gets what happens."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.names = NAMES
        self._say = say
        # Without worker and beat three processes make a whole domain (docs/decisions/0073), so that twelve fit two cores.
        self._network = Network(folder, NAMES, workers=0, reports="off", records=0)
        self._readers: dict[str, Reader] = {}
        self._rp = ""

    # The story

    def start(self) -> None:
        """Start the domains, and peer each with the sponsor."""
        self._say(f"Starting {len(NAMES)} domains, each with its own Redis, gateway, forwarder and data ...")
        self._network.start(ready=lambda name: self._say(f"  {name}.test is up at {self._network[name].url}"))
        self._say(f"{SPONSOR} and each of the others agree to be peers: all that administrators do here.")
        for name in NAMES[1:]:
            wait_for(lambda name=name: self._peered(name), PEERED_WITHIN_S, every_s=1.0)  # type: ignore[misc]

    def join(self) -> None:
        """Have the sponsor found an overlay, and all others join it; wait until links stand."""
        self._say(f"{SPONSOR} founds an overlay, the others join it with {SPONSOR} as their sponsor.")
        self._network[SPONSOR].ask("POST", "/api/v1/overlay/found")
        for name in NAMES[1:]:
            self._network[name].ask("POST", "/api/v1/overlay/join", {"sponsor": f"{SPONSOR}.test"})
        self._linked()

    def share(self) -> None:
        """Make an RP at the sponsor with a replica and a reader at each of the others."""
        self._rp = self._network.replicated_rp(SPONSOR, *NAMES[1:], lease_s=LEASE_S)
        self._say(f"A rendezvous point of {SPONSOR} has a replica at each of the others, and a reader at each.")
        for name in NAMES:
            self._read(name)

    def send(self, name: str) -> None:
        """Publish an event at one domain, and return after how long the others had it."""
        if not self._network[name].is_running:
            self._say(f"{name} is down.")
            return
        began = time.monotonic()
        (event,) = self._network.publish(self._rp, name)
        waiting = {other: reader for other, reader in self._readers.items() if self._network[other].is_running}
        first_s: float | None = None
        while waiting and time.monotonic() - began < CARRIED_WITHIN_S:
            waiting = {other: reader for other, reader in waiting.items() if event not in reader.ids[-20:]}
            if first_s is None and len(waiting) < len(self.up()) - 1:
                first_s = time.monotonic() - began
            time.sleep(0.005)
        took_ms = round(1000 * (time.monotonic() - began))
        others = len(self.up()) - 1
        if waiting:
            self._say(f"An event of {name} has not reached {', '.join(sorted(waiting))} within {CARRIED_WITHIN_S:g} s.")
        else:
            self._say(f"An event of {name} has reached the readers at all {others} others after {took_ms} ms.")

    def kill_some(self) -> None:
        """Kill three at once, the sponsor among them."""
        lost = [SPONSOR, *random.sample(NAMES[1:], KILLED - 1)]
        self._say(f"{', '.join(lost[:-1])} and {lost[-1]} are killed at once, all their processes.")
        for name in lost:
            self._network.kill(name)

    def kill(self, name: str) -> None:
        """Kill one domain."""
        self._network.kill(name)
        self._say(f"{name} was killed: all its processes, by SIGKILL.")

    def restart(self, name: str) -> None:
        """Start a domain that was killed, and wait until it is up."""
        if self._network[name].is_running:
            self._say(f"{name} runs.")
            return
        self._network.start(name)
        self._read(name)
        self._say(f"{name} is up again, on its data.")

    def map_lines(self) -> list[str]:
        """Return the links of each domain, a line each; those that administrators made in capitals."""
        lines = []
        for name in NAMES:
            links = self._links(name)
            if links is None:
                lines.append(f"  {name:8} down")
                continue
            shown = [other.upper() if SPONSOR in (name, other) else other for other in sorted(links)]
            lines.append(f"  {name:8} {len(shown):2} links: {' '.join(shown)}")
        return lines

    def console(self) -> str:
        """Return an address that logs into the console of a domain that is up, once."""
        name = self.up()[-1]
        link = self._network[name].manage("login_link").stdout.strip()
        return f"The console of {name}, for one login: {link}  Its page Overlay draws this map."

    def stop(self) -> None:
        """Send Ctrl-C to all of them concurrently."""
        self._network.close()

    def end_now(self) -> None:
        """End all of them at once."""
        for name in NAMES:
            self._network.kill(name)

    def _peered(self, name: str) -> bool:
        try:
            self._network.peer(SPONSOR, name)
        except AssertionError:  # twelve that start keep a small machine busy
            return False
        return True

    # What is seen

    def _linked(self) -> None:
        """Wait until each domain knows all and has links; report the progress."""
        began, said = time.monotonic(), 0.0

        def done() -> bool:
            nonlocal said
            states = [self._network[name].ask("GET", "/api/v1/overlay") for name in NAMES]
            complete = sum(one["domains"] == len(NAMES) for one in states)
            links = sum(one["links"] for one in states)
            if time.monotonic() - said > LOOK_S:
                said = time.monotonic()
                self._say(
                    f"  {said - began:4.0f} s: {complete} of {len(NAMES)} know all others; {links // 2} links stand"
                )
            return complete == len(NAMES) and all(one["links"] >= LINKS_MIN for one in states)

        wait_for(done, LINKED_WITHIN_S, every_s=0.5, about="all domains know each other and have links")
        self._say(f"All know all after {time.monotonic() - began:.0f} s. Links with {SPONSOR} are in capitals;")
        self._say("the domains made all others by themselves:")
        for line in self.map_lines():
            self._say(line)

    def _links(self, name: str) -> list[str] | None:
        if not self._network[name].is_running:
            return None
        items: list[dict[str, Any]] = self._network[name].ask("GET", "/api/v1/overlay/links")["items"]
        return [str(link["peer"]).removesuffix(".test") for link in items if link["up"]]

    def up(self) -> Sequence[str]:
        """Return the domains that run."""
        return [name for name in NAMES if self._network[name].is_running]

    def _read(self, name: str) -> None:
        self._readers[name] = self._network.reader(self._rp, name, from_="now")

"""Acts about the home of a rendezvous point: it is drained before it stops, or lost for good. The domains decide; this asks, kills and reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from demo.harness.crowd import Crowd
from demo.harness.network import Network
from demo.harness.servers import wait_for

SILENCE_S = 5
ELECTORS = 3
DRAIN_S = 600
READERS = 20
WITHIN_S = 120.0
LOOK_S = 0.5


class HomeActs:
    """The acts, for one RP with replicas at all domains.

    Args:
        emit: prints a line of the course.
    """

    def __init__(self, network: Network, rp: str, emit: Callable[[str], None]) -> None:
        self._network = network
        self._rp = rp
        self._emit = emit

    def drain(self, name: str, *, readers: bool = False) -> None:
        """Have a domain hand over what it has, and report until nothing is left.

        Args:
            readers: whether READERS readers of the RP are there, as anyone may read it.
        """
        if not self._is_up(name):
            self._emit(f"{name} is down.")
            return
        with self._reading(name) if readers else _nobody() as crowd:
            self._emit(f"{name} is about to stop: herald domain drain --until {DRAIN_S // 60}m")
            self._network[name].ask("POST", "/api/v1/drain", {"for_s": DRAIN_S})
            told = ""

            def done() -> bool:
                nonlocal told
                found = self._network[name].ask("GET", "/api/v1/drain")
                line = f"  left to hand over: {found['homes']} homes, {found['deliveries']} deliveries, {found['readers']} readers"
                if line != told:
                    self._emit(line)
                told = line
                return bool(found["state"] != "draining")

            wait_for(done, WITHIN_S, every_s=LOOK_S, about=f"{name} has handed over everything")
            if crowd is not None:
                url = self._network[name].url
                wait_for(lambda: url not in crowd.state.at, WITHIN_S, about=f"no reader is at {name}")
                self._tell_readers(crowd)
        handed_over = self._network[name].ask("GET", "/api/v1/drain")["handed_over"]
        home, term = self._home(name)
        self._emit(
            f"Done, {handed_over} homes were handed over: the home of {self._rp} is {home}, of term {term}; {name} is a replica, and may stop."
        )
        self._emit(f"Look: in the console of {name} the page Self-administration, and that of {self._rp}.")
        self._emit(f"undrain {name} ends it. What was handed over stays: herald rp move brings it back.")

    def undrain(self, name: str) -> None:
        """End the drain of a domain."""
        ended = self._network[name].admin.delete("/api/v1/drain").status_code == 200
        self._emit(f"{name} takes over homes again." if ended else f"{name} does not drain.")

    def lose(self, name: str) -> None:
        """Have the home name electors, kill it, and report its successor."""
        if not self._is_up(name):
            self._emit(f"{name} is down.")
            return
        home, term = self._home(name)
        if home != name:
            self._emit(f"{name} is a replica; the home of {self._rp} is {home}: lose {home}")
            return
        electors = self._electors(name)
        self._emit(
            f"{name} names electors: herald rp succession {self._rp} {' '.join(electors)} --silence-s {SILENCE_S}"
        )
        members = {"electors": [f"{one}.test" for one in electors], "silence_s": SILENCE_S}
        plan = self._network[name].ask("POST", f"/api/v1/rps/{self._rp}/succession", members)["succession"]
        wait_for(lambda: all(self._document(one).get("succession") == plan for one in electors), WITHIN_S)
        had = self._network.vector(self._rp, name)
        self._network.kill(name)
        began = time.monotonic()
        self._emit(
            f"{name} was killed: all its processes, by SIGKILL. The electors probe it, and wait for {SILENCE_S} s."
        )
        wait_for(lambda: any(self._home(one)[1] > term for one in electors), WITHIN_S, every_s=0.1)
        took_s = time.monotonic() - began
        wait_for(lambda: len({self._home(one) for one in electors}) == 1, WITHIN_S, every_s=0.1)
        home, term = self._home(electors[0])
        self._emit(
            f"After {took_s:.1f} s {home} is the home, of term {term}, by the signatures of a majority of {len(electors)}."
        )
        self._network[home].ask("PATCH", f"/api/v1/rps/{self._rp}", {"title": f"Of {home}, since {name} is lost"})
        held = self._network.vector(self._rp, home)
        kept = sum(min(held.get(feed, 0), sequence) for feed, sequence in had.items())
        self._emit(
            f"{home} has changed its title, as only a home can, and holds {kept} of {sum(had.values())} events of before."
        )
        self._emit(f"Look: the page of {self._rp} in the console of {home}. start {name}: it comes back as a replica.")

    def _tell_readers(self, crowd: Crowd) -> None:
        names = {self._network[one].url: one for one in self._network.names}

        def shown() -> str:
            return ", ".join(f"{count} at {names.get(url, url)}" for url, count in sorted(crowd.state.at.items()))

        state = crowd.state
        self._emit(f"  The {state.open} readers: {shown()}; {state.missing} events missing, {state.doubled} doubled.")

    @contextmanager
    def _reading(self, name: str) -> Iterator[Crowd]:
        with Crowd(self._rp, [self._network[name].url]) as crowd:
            crowd.have(READERS)
            wait_for(lambda: crowd.state.open == READERS, WITHIN_S, about=f"{READERS} readers at {name}")
            self._emit(f"{READERS} readers read {self._rp} at {name}.")
            yield crowd

    def _electors(self, home: str) -> list[str]:
        """Return peers of the home that are up."""
        found = [one for one in self._network.names if one != home and self._network.peer_state(home, one) == "active"]
        return [one for one in found if self._is_up(one)][:ELECTORS]

    def _is_up(self, name: str) -> bool:
        return self._network[name].is_running

    def _document(self, at: str) -> dict[str, Any]:
        document: dict[str, Any] = self._network[at].ask("GET", f"/api/v1/rps/{self._rp}")
        return document

    def _home(self, at: str) -> tuple[str, int]:
        """Return home and term of the RP as a domain holds them; the term is -1 if it does not answer."""
        try:
            document = self._document(at)
        except httpx.TransportError:
            return "", -1
        return str(document["home"]).removesuffix(".test"), int(document["term"])


@contextmanager
def _nobody() -> Iterator[None]:
    yield None

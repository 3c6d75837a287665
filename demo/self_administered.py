"""Five small domains that administrate themselves: an RP becomes famous, a domain is drained, a home is lost; each a typed command."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from demo.harness.fame import SMALL, Fame, famous_network, found_overlay
from demo.harness.network import OPEN
from demo.harness.servers import wait_for
from demo.home_acts import HomeActs

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
HELP = "fame NAME, drain NAME, undrain NAME, lose NAME, start NAME, home, quit"
LEASE_S = 86_400
READERS, FIRST = 600, 10
GROWS_S, STAYS_S, LEAVES_S = 20.0, 20.0, 5.0
SPREAD_WITHIN_S = 240.0
AGREED_WITHIN_S = 120.0
LOOK_S = 5.0


class SelfAdministered:
    """The domains and their acts; `emit` prints the course."""

    def __init__(self, folder: Path, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._network = famous_network(folder, NAMES)
        self._rp = ""
        self._acts: HomeActs | None = None

    def start(self) -> None:
        """Start the domains, peer them, have them join one overlay, and make an RP with replicas at all of them."""
        self._emit(f"Starting {len(NAMES)} small domains, of capacity class {SMALL['capacity']} (1,000 sessions) ...")
        self._network.start(ready=lambda name: self._emit(f"  {name}.test is up at {self._network[name].url}"))
        self._emit("All become peers, and join an overlay: by it each has the others' loads.")
        found_overlay(self._network, NAMES)
        self._rp = self._network.replicated_rp(NAMES[0], *NAMES[1:], policy=OPEN, lease_s=LEASE_S, title="Readings")
        self._network.publish(self._rp, NAMES[0], 10)
        self._acts = HomeActs(self._network, self._rp, self._emit)
        self._emit(
            f"The rendezvous point {self._rp}, for drain and lose, has its home at {NAMES[0]} and replicas at all others."
        )
        self._emit(self.console(NAMES[0]))

    def console(self, name: str) -> str:
        """Return an address that logs into the console of a domain, once."""
        return f"The console of {name}, for one login: {self._network[name].manage('login_link').stdout.strip()}"

    # The acts

    def fame(self, name: str) -> None:
        """Have an RP become famous at a domain: readers connect, replicas are placed, readers spread, the crowd leaves."""
        if not self._up(name):
            return
        with Fame(self._network, name, processes=1, title="Famous") as fame:
            fame.witnesses.have(FIRST)
            wait_for(lambda: fame.witnesses.state.open == FIRST)
            calm = time.monotonic()
            self._emit(
                f"{fame.rp} at {name} has {FIRST} readers; the planner of {name} may place replicas: herald plan set --mode apply"
            )
            self._emit(self.console(name))
            self._emit(
                f"{READERS} readers come within {GROWS_S:g} s. They read over the client library, and follow its redirects."
            )
            began = time.monotonic()
            fame.readers.have(READERS, over_s=GROWS_S)
            told = set[str]()
            until = began + SPREAD_WITHIN_S
            self._tell_until(fame, lambda: self._is_spread(fame) or time.monotonic() > until, 2 * SPREAD_WITHIN_S, told)
            spread = time.monotonic()
            who = "no domain has" if self._is_spread(fame) else "some domain still has"
            self._emit(f"After {spread - began:.0f} s {who} more than 1.25 times its fair share.")
            self._tell_until(fame, lambda: time.monotonic() > spread + STAYS_S, STAYS_S + 60.0, told)
            fame.all_have(fame.publisher.published)
            states = [fame.readers.state, fame.witnesses.state]
            left = time.monotonic()
            fame.readers.have(0, over_s=LEAVES_S)
            wait_for(lambda: not fame.readers.state.open, about="the crowd has left")
            moves = sum(one.moves for one in states)
        missing, doubled = sum(one.missing for one in states), sum(one.doubled for one in states)
        self._emit(f"{moves} moves of readers; {missing} events missing, {doubled} doubled. The crowd has left.")
        before, after = fame.record.p99_ms(calm, began), fame.record.p99_ms(spread, left)
        self._emit(
            f"Delay from publish to reader, 99th percentile: {before:.0f} ms before, at the home alone; {after:.0f} ms spread over all."
        )
        self._emit("The replicas are drawn in when the home has been calm for five minutes.")
        self._emit(f"Look: herald plan show {fame.rp}; in the console the pages Self-administration, and of this RP.")

    def drain(self, name: str) -> None:
        """Drain a domain with readers."""
        if self._acts is not None:
            self._acts.drain(name, readers=True)

    def undrain(self, name: str) -> None:
        """End a drain."""
        if self._acts is not None and self._up(name):
            self._acts.undrain(name)

    def lose(self, name: str) -> None:
        """Lose the home."""
        if self._acts is not None:
            self._acts.lose(name)

    def restart(self, name: str) -> None:
        """Start a domain that was killed."""
        if self._network[name].is_running:
            self._emit(f"{name} runs.")
            return
        self._network.start(name)
        self._emit(f"{name} is up again, on its data; with the first exchange it is sent who is the home.")
        wait_for(lambda: len(set(self._homes().values())) == 1, AGREED_WITHIN_S, about="all hold the same home")
        self.home()

    def home(self) -> None:
        """State the home of the RP as each domain holds it."""
        homes = self._homes()
        for name in NAMES:
            self._emit(f"  {name:8} {homes.get(name, 'down')}")

    def _homes(self) -> dict[str, str]:
        """Return home and term of the RP as the domains that run hold them."""
        found = {}
        for name in [one for one in NAMES if self._network[one].is_running]:
            document = self._network[name].ask("GET", f"/api/v1/rps/{self._rp}")
            found[name] = f"home {str(document['home']).removesuffix('.test')}, term {document['term']}"
        return found

    def stop(self) -> None:
        """Send Ctrl-C to all of them concurrently."""
        self._network.close()

    def end_now(self) -> None:
        """End all of them at once."""
        for name in NAMES:
            self._network.kill(name)

    # What is seen

    def _up(self, name: str) -> bool:
        if not self._network[name].is_running:
            self._emit(f"{name} is down.")
        return self._network[name].is_running

    def _is_spread(self, fame: Fame) -> bool:
        sample = fame.sample()
        return len(sample.serving) > 1 and sum(sample.readers.values()) == READERS + FIRST and not sample.over()

    def _tell_until(self, fame: Fame, done: Callable[[], bool], within_s: float, told: set[str]) -> None:
        """Report decisions as they are made, except those reported before, and readers every few seconds, until `done`."""
        told_at = time.monotonic()

        def seen() -> bool:
            nonlocal told_at
            for one in list(fame.record.decisions):
                if one["id"] not in told:
                    told.add(one["id"])
                    self._emit(f"  decision {one['id']} of {fame.home}: {_decision(one)}")
            over = done()
            if over or time.monotonic() - told_at > LOOK_S:
                told_at = time.monotonic()
                self._emit(f"  readers: {_readers(fame.sample().readers)}")
            return over

        wait_for(seen, within_s, every_s=0.5, about="the act")


def _decision(one: Mapping[str, Any]) -> str:
    names = [f"a replica at {name.removesuffix('.test')}" for name in one["adds"]]
    names += [f"none at {name.removesuffix('.test')}" for name in one["retires"]]
    return f"{', '.join(names)}. {one['why']}"


def _readers(readers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in readers.items())


ACTS: Mapping[str, Callable[[SelfAdministered, str], None]] = {
    "fame": SelfAdministered.fame,
    "drain": SelfAdministered.drain,
    "undrain": SelfAdministered.undrain,
    "lose": SelfAdministered.lose,
    "start": SelfAdministered.restart,
}


def run(folder: Path, emit: Callable[[str], None]) -> int:
    """Start, then carry out commands until `quit`, the end of the input, or Ctrl-C. Returns 0 if it was stopped in order."""
    domains = SelfAdministered(folder, emit)
    try:
        domains.start()
        _commands(domains, emit)
    except KeyboardInterrupt:
        pass
    except AssertionError as error:  # how the harness reports a failure
        emit(f"\nThe demo cannot continue: {error}")
        return 1
    finally:
        emit("\nStopping five domains ...")
        try:
            domains.stop()
        except KeyboardInterrupt:
            domains.end_now()
        emit("Stopped.")
    return 0


def _commands(domains: SelfAdministered, emit: Callable[[str], None]) -> None:
    emit(f"\nIt is your turn: {HELP}")
    for line in sys.stdin:
        word, _, name = line.strip().partition(" ")
        if word == "quit":
            return
        if word == "home":
            domains.home()
        elif word not in ACTS:
            emit(f"{word!r} is not a command. Commands: {HELP}.")
        elif name not in NAMES:
            emit(f"{word} needs a domain: {', '.join(NAMES)}.")
        else:
            ACTS[word](domains, name)
            emit("")

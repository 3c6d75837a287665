"""Liveness of links: whether a peer answers, found out without believing anybody else.

Each side of a link checks every BEAT_S what it received. A beat is sent to peers from which nothing arrived for half of that, and is
answered, so that one exchange in BEAT_S keeps both sides informed; any message counts as a sign of life. A peer that was silent for
SILENT_S is probed, directly and through links of other groups, again at each look; after FAILED_S without a sign on any way it has failed.
Nothing is removed because of this but the link: a domain leaves the directory by the end of its record's lease only, and "dead" is never
relayed (ex-actor#210, memberlist#312).

A domain for which most links are silent at once suspects itself first, as the observer is what is broken then (consul#5567): it waits
longer (Lifeguard), unless links of WITNESSES other groups are not silent. These receive its messages, or they would have ended the link, so after
half of a federation crashed the survivors lose no time.

A beat on a link that stands on one side only is answered with a disconnect, so both sides agree again within BEAT_S.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from eventing.overlay.links import Disconnect, Outputs, Reason
from eventing.overlay.machine import Chance, Id, SendMessage, SetTimer

BEAT_S = 3.6
SILENT_S = 1.4 * BEAT_S
FAILED_S = 14.6
"""A peer may pause for 10 s, right before a beat, without being taken for failed; and 99 % of failures are found within 15 s."""
HALTED_S = 0.5
"""A timer that is later than this shows that this domain itself was halted: a computer slept, a process was swapped out (guess)."""
HELPERS = 3
"""Links that a silent peer is probed through (SWIM: 3)."""
HEALTH_MAX = 2  # bound: factor by which a domain that suspects itself waits longer; it stays at the bound
SUSPECTS_ITSELF = 0.5
"""Share of silent links above which a domain suspects itself (guess)."""
WITNESSES = 2
"""Groups with a link that is not silent, from which on a domain suspects itself no more (guess: one may be as broken as itself)."""


class Beat(msgspec.Struct, frozen=True, array_like=True, tag="beat", gc=False):
    """A sign of life on a link, and a request for one."""


class Probe(msgspec.Struct, frozen=True, array_like=True, tag="probe", gc=False):
    """A request for a sign of life; `on_behalf` of another domain, or of the sender (None)."""

    on_behalf: Id = None


class Alive(msgspec.Struct, frozen=True, array_like=True, tag="alive", gc=False):
    """The answer to a probe; `of` whom, if of another than the sender."""

    of: Id = None
    on_behalf: Id = None


class ProbeFor(msgspec.Struct, frozen=True, array_like=True, tag="probe-for", gc=False):
    """A request to probe a domain."""

    target: Id


class BeatDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: beat, and look for silent links."""


class SignDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: a silent peer has failed unless it gave a sign of life."""

    peer: Id


class Failed(msgspec.Struct, frozen=True, gc=False):
    """Event: a peer gives no sign of life on any way."""

    peer: Id
    silent_s: float


class SuspectsItself(msgspec.Struct, frozen=True, gc=False):
    """Event: so many links are silent at once that this domain is more likely cut off itself."""

    silent: int
    links: int


BEAT_DUE = BeatDue()
BEAT = Beat()
ALIVE = Alive()


class Liveness:
    """The liveness of one domain's links.

    Attributes:
        health: 1, or the factor by which waiting is longer because this domain suspects itself.
    """

    def __init__(self) -> None:
        self.health = 1
        self._heard: dict[Id, float] = {}
        self._probed: dict[Id, None] = {}
        self._look_at = float("inf")

    def begin(self, now: float, chance: Chance) -> Outputs:
        """Start the timer, at a random phase."""
        after_s = BEAT_S * chance.random()
        self._look_at = now + after_s
        return [SetTimer(BEAT_DUE, after_s)]

    def up(self, peer: Id, now: float) -> None:
        """A link stands."""
        self._heard[peer] = now

    def down(self, peer: Id) -> None:
        """A link has ended."""
        self._heard.pop(peer, None)
        self._probed.pop(peer, None)

    def heard(self, peer: Id, now: float) -> None:
        """Take any message of a peer as a sign of life."""
        if peer in self._heard:
            self._heard[peer] = now
            if self._probed:
                self._probed.pop(peer, None)

    def received(self, peer: Id, message: Any, now: float, out: Outputs) -> None:
        """Answer a beat, a probe or an answer."""
        kind = type(message)
        if kind is Beat:
            out.append(SendMessage(peer, ALIVE if peer in self._heard else Disconnect(Reason.EVICTED)))
        elif kind is Probe:
            out.append(SendMessage(peer, Alive(None, message.on_behalf)))
        elif kind is ProbeFor:
            if message.target in self._heard and peer in self._heard:
                out.append(SendMessage(message.target, Probe(peer)))
        elif kind is Alive:
            if message.on_behalf is not None:
                if message.on_behalf in self._heard:
                    out.append(SendMessage(message.on_behalf, Alive(peer)))
            elif message.of is not None and peer in self._heard:
                self.heard(message.of, now)

    def due(self, timer: Any, now: float, groups: dict[Id, Any], chance: Chance, out: Outputs) -> None:
        """Send beats to peers from which nothing arrived, probe silent ones, or judge one.

        Args:
            groups: the links' peers, each with the group that may fail together with it.
        """
        self._forgive(now)
        if type(timer) is BeatDue:
            after_s = BEAT_S * (0.95 + 0.1 * chance.random())
            self._look_at = now + after_s
            out.append(SetTimer(BEAT_DUE, after_s))
            recent = now - BEAT_S / 2
            out.extend(SendMessage(peer, BEAT) for peer, heard in self._heard.items() if heard <= recent)
            self._probe(now, groups, chance, out)
        elif type(timer) is SignDue and timer.peer in self._probed:
            silent_s = now - self._heard[timer.peer]
            due_s = FAILED_S * self.health
            if silent_s >= due_s - 0.01:
                del self._probed[timer.peer]
                out.append(Failed(timer.peer, silent_s))
            else:
                out.append(SetTimer(timer, due_s - silent_s))

    def _forgive(self, now: float) -> None:
        """Leave the time for which this domain itself was halted out of the silence of its peers."""
        halted_s = now - self._look_at
        if halted_s > HALTED_S:
            self._look_at = now
            for peer, heard in self._heard.items():
                self._heard[peer] = min(now, heard + halted_s)

    def _probe(self, now: float, groups: dict[Id, Any], chance: Chance, out: Outputs) -> None:
        silent = [peer for peer, heard in self._heard.items() if now - heard >= SILENT_S]
        if len(silent) > SUSPECTS_ITSELF * max(2, len(groups)) and not self._witnessed(silent, groups):
            if self.health < HEALTH_MAX:
                self.health = HEALTH_MAX
                out.append(SuspectsItself(len(silent), len(groups)))
        else:
            self.health = 1
        for peer in silent:
            if peer not in self._probed:
                self._probed[peer] = None
                out.append(SetTimer(SignDue(peer), max(0.0, self._heard[peer] + FAILED_S * self.health - now)))
            out.append(SendMessage(peer, Probe()))
            for helper in _others(groups, peer, chance):
                out.append(SendMessage(helper, ProbeFor(peer)))

    def _witnessed(self, silent: Iterable[Id], groups: dict[Id, Any]) -> bool:
        """Return whether links of enough groups are not silent."""
        without = dict.fromkeys(silent)
        return len({groups[peer]: None for peer in groups if peer not in without}) >= WITNESSES


def _others(groups: dict[Id, Any], peer: Id, chance: Chance) -> Iterable[Id]:
    """Up to HELPERS links, one of each group at most, none of the peer's."""
    seen = {groups.get(peer)}
    of: Sequence[Id] = list(groups)
    found: list[Id] = []
    for helper in chance.sample(of, len(of)):
        if groups[helper] not in seen and len(found) < HELPERS:
            seen.add(groups[helper])
            found.append(helper)
    return found


MESSAGES = frozenset({Beat, Probe, Alive, ProbeFor})
TIMERS = frozenset({BeatDue, SignDue})

"""Liveness of links: whether a peer answers, found out without believing anybody else.

Each side of a link sends a beat every BEAT_S; any message counts as one. A peer that was silent for longer is probed, directly and through
links of other groups; one that answers on neither way has failed. Nothing is removed because of this but the link: a domain leaves
the directory by the end of its record's lease only, and "dead" is never relayed (ex-actor#210, memberlist#312).

A domain that finds many of its links silent at once suspects itself first, as the observer is what is broken then (consul#5567): it
waits longer, by a factor of up to HEALTH_MAX (Lifeguard), and fails links one by one.

A beat on a link that stands on one side only is answered with a disconnect, so both sides agree again within BEAT_S.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from eventing.overlay.links import Disconnect, Outputs, Reason
from eventing.overlay.machine import Chance, Id, SendMessage, SetTimer

BEAT_S = 8.0
"""With ANSWER_S twice, a failed link is found within 14 s (wanted: 99 % within 15 s)."""
ANSWER_S = 3.0
"""For the answer to a probe: the longest of the round trips measured between domains is below 1 s."""
HELPERS = 3
"""Links that a silent peer is probed through (SWIM: 3)."""
HEALTH_MAX = 8  # bound: factor by which a domain that suspects itself waits longer; it stays at the bound
SUSPECTS_ITSELF = 0.5
"""Share of silent links above which a domain suspects itself (guess)."""


class Beat(msgspec.Struct, frozen=True, array_like=True, tag="beat", gc=False):
    """A sign of life on a link."""


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


class AnswerDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: the answers to the probes of a peer are due."""

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


class Liveness:
    """The liveness of one domain's links.

    Attributes:
        health: 1, or the factor by which waiting is longer because this domain suspects itself.
    """

    def __init__(self) -> None:
        self.health = 1
        self._heard: dict[Id, float] = {}
        self._probed: dict[Id, float] = {}

    def begin(self, chance: Chance) -> Outputs:
        """Start the timer, at a random phase."""
        return [SetTimer(BEAT_DUE, BEAT_S * chance.random())]

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
            if peer not in self._heard:
                out.append(SendMessage(peer, Disconnect(Reason.EVICTED)))
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
        """Beat on all links and probe those that are silent, or judge a probe.

        Args:
            groups: the links' peers, each with the group that may fail together with it.
        """
        if type(timer) is BeatDue:
            out.append(SetTimer(BEAT_DUE, BEAT_S * (0.95 + 0.1 * chance.random())))
            out.extend(SendMessage(peer, BEAT) for peer in groups)
            self._probe(now, groups, chance, out)
        elif type(timer) is AnswerDue and timer.peer in self._probed:
            since = self._probed.pop(timer.peer)
            heard = self._heard.get(timer.peer, now)
            if heard < since:
                out.append(Failed(timer.peer, now - heard))

    def _probe(self, now: float, groups: dict[Id, Any], chance: Chance, out: Outputs) -> None:
        late = BEAT_S + ANSWER_S * self.health
        silent = [peer for peer, heard in self._heard.items() if now - heard >= late and peer not in self._probed]
        if len(silent) + len(self._probed) > SUSPECTS_ITSELF * max(2, len(groups)):
            if self.health < HEALTH_MAX:
                out.append(SuspectsItself(len(silent), len(groups)))
            self.health = min(HEALTH_MAX, 2 * self.health)
            silent = silent[:1]
        else:
            self.health = max(1, self.health // 2)
        for peer in silent:
            self._probed[peer] = now
            out.append(SendMessage(peer, Probe()))
            for helper in _others(groups, peer, chance):
                out.append(SendMessage(helper, ProbeFor(peer)))
            out.append(SetTimer(AnswerDue(peer), ANSWER_S * self.health))


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
TIMERS = frozenset({BeatDue, AnswerDue})

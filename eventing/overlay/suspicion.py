"""Suspicion: domains that do not answer their monitors, until they rebut it. It lowers service and removes nothing.

Every domain has MONITORS monitors (`monitors`), each of which gets a sign of life from it every PROBE_S or asks for one, TRIES times. A
monitor that gets none accuses the domain in its row of a gossip object (`suspicion_rows`). A domain is *suspected* when QUORUM of its
monitors, of GROUPS groups at least, have accused it for REBUT_S and it has not rebutted. Suspected domains are not chosen for replicas
or eager links; they stay in the directory until their record expires, keep their links while these answer, and are suspected no longer
with their next rebuttal.

Three things protect domains that are alive. The accused reads the accusation like everybody else, and its answer voids all before it
(accusing coalitions make traffic, not suspicions). Accusations go with pings and beats to the accused, so it rebuts also when it is cut
off from gossip (tarantool#4249). And a monitor to which more than SELF_SHARE of its targets are silent suspects itself: it withdraws its
accusations and accuses nobody until that has passed, because the observer is what is broken then (consul#5567, #5928: half-detached
domains accused hundreds). Targets that others suspect already do not count for that.

Life of a suspicion: silent -> accused by one -> accused by QUORUM (`REBUT_S` run) -> `Suspected` -> rebutted or expired ->
`SuspicionEnded`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from eventing.overlay.accusation_index import AccusationIndex
from eventing.overlay.gossip import Contribute, Withdraw
from eventing.overlay.gossip_messages import GossipMessage, GossipPart
from eventing.overlay.gossip_rows import RowSet
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived, SendMessage, SetTimer
from eventing.overlay.monitors import MonitorRing, epoch_of
from eventing.overlay.suspicion_rows import ACCUSED_MAX, accusation_payload, accused_of

PROBE_S = 30.0
"""Between two signs of life that a monitor wants; with TRIES and REBUT_S, all know of a failure within 120 s."""
TRY_S = 4.0
"""For the answer to a ping: the longest round trips measured between domains are below 1 s."""
TRIES = 6
"""Pings without an answer until a target is silent: 24 s, more than twice a pause of 10 s; by loss of 5 % each way once in 10^6 probes."""
QUORUM = 5
"""Accusations needed, of MONITORS (model: liars alone reach them with a probability of 0.033 if a fifth of all domains lie)."""
GROUPS = 3
"""Groups that the accusers are of, at least, if the monitors are: no operator and no sponsor has a domain suspected alone."""
REBUT_S = 30.0
"""For the answer of the accused: gossip reaches it and returns within a few seconds, with rounds only within 20 s."""
SELF_SHARE = 0.1
"""Share of silent targets above which a monitor suspects itself."""
HOLD_S = 300.0
"""A suspicion without enough accusations ends after this, if it was not rebutted: monitors change, and their successors need time."""
LOOK_S = 5.0
"""Between two looks at accusations."""
RING_S = 300.0
"""The ring is made anew so often, from the directory as it is then."""


class MonitorPing(msgspec.Struct, frozen=True, array_like=True, tag="monitor-ping", gc=False):
    """A request for a sign of life."""


class MonitorPong(msgspec.Struct, frozen=True, array_like=True, tag="monitor-pong", gc=False):
    """The answer."""


class PingDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: ask targets for signs of life."""


class PongDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: the answer of a target is due."""

    target: Id
    number: int


class LookDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: look at accusations."""


class Suspected(msgspec.Struct, frozen=True, gc=False):
    """Event: a domain is suspected from now on; with its accusers."""

    domain: Id
    accusers: tuple[Id, ...]


class SuspicionEnded(msgspec.Struct, frozen=True, gc=False):
    """Event: a domain is suspected no longer."""

    domain: Id
    why: str


class Rebutted(msgspec.Struct, frozen=True, gc=False):
    """Event: this domain was accused, and has rebutted it."""

    accusers: tuple[Id, ...]


class AccusesNobody(msgspec.Struct, frozen=True, gc=False):
    """Event: so many targets are silent that this domain suspects itself and stops accusing."""

    silent: int
    targets: int


class AccusesAgain(msgspec.Struct, frozen=True, gc=False):
    """Event: this domain suspects itself no longer."""


PING_DUE, LOOK_DUE = PingDue(), LookDue()
PING, PONG = MonitorPing(), MonitorPong()
Outputs = list[Any]


class MonitoredDomain(msgspec.Struct, gc=False):
    """A target: when it last gave a sign of life, pings without an answer since, and whether all were in vain."""

    heard: float
    tries: int = 0
    silent: bool = False


class Suspicion:
    """Suspicion at one domain, as a monitor of others, as one that others accuse, and as a reader of accusations.

    Outputs `Contribute` and `Withdraw` are commands for the domain's gossip.

    Args:
        me: its id.
        accusations, rebuttals: rows of the gossip objects.
        ring: makes the ring of an epoch, of all domains that can be called.
        group: the group of a domain that may fail or lie together; None: unknown, which counts as one group.
        started_s: wall clock, in seconds since 1970, at time 0 of `now`.

    Attributes:
        suspected: domains that are suspected, with the time since when.
        doubts_itself: whether this domain accuses nobody.
        ring_outdated: whether the ring of now is to be made anew, as many domains have joined.
    """

    def __init__(
        self,
        me: Id,
        accusations: RowSet,
        rebuttals: RowSet,
        *,
        ring: Callable[[int], MonitorRing],
        group: Callable[[Id], Any],
        started_s: float = 0.0,
    ) -> None:
        self.me = me
        self.suspected: dict[Id, float] = {}
        self.doubts_itself = False
        self.ring_outdated: Callable[[], bool] = lambda: False
        self._accusations = accusations
        self._rebuttals = rebuttals
        self._make_ring = ring
        self._group = group
        self._index = AccusationIndex(accusations, rebuttals, self._group_of, quorum=QUORUM, groups=GROUPS)
        self._started_s = started_s
        self._ring: MonitorRing | None = None
        self._ring_at = 0.0
        self._targets: dict[Id, MonitoredDomain] = {}
        self._accused_since: dict[Id, float] = {}
        self._accused_at: dict[Id, float] = {}
        self._rebutted_at = 0.0
        self._answering = False
        self._said: bytes = b""

    def begin(self, chance: Chance) -> Outputs:
        """Start the timers, at random phases."""
        return [SetTimer(PING_DUE, PROBE_S * chance.random()), SetTimer(LOOK_DUE, LOOK_S * chance.random())]

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Take in a message or a timer."""
        out: Outputs = []
        kind = type(given)
        if kind is MessageReceived:
            self.heard(given.peer, now)
            if type(given.message) is MonitorPing:
                out.append(SendMessage(given.peer, PONG))
        elif kind is Fired:
            timer = type(given.timer)
            if timer is PingDue:
                out.append(SetTimer(PING_DUE, PROBE_S * (0.95 + 0.1 * chance.random())))
                self._ping_due(now, out)
            elif timer is PongDue:
                self._pong_due(given.timer, now, out)
            elif timer is LookDue:
                out.append(SetTimer(LOOK_DUE, LOOK_S * (0.95 + 0.1 * chance.random())))
                self._look(now, out)
        return out

    def heard(self, peer: Id, now: float) -> None:
        """Take any message of a target as a sign of life."""
        target = self._targets.get(peer)
        if target is not None:
            target.heard = now
            target.tries = 0
            target.silent = False

    @property
    def observed(self) -> tuple[int, int]:
        """Numbers of domains that this one observes, and of those that do not answer."""
        return len(self._targets), sum(1 for one in self._targets.values() if one.silent)

    @property
    def accused(self) -> Mapping[Id, list[Id]]:
        """Domains that a quorum of their monitors accuses, each with the accusers."""
        return self._index.counted

    def accusers_of(self, domain: Id) -> list[Id]:
        """Return the accusers of a domain, if they are enough to count."""
        return self.accused.get(domain, [])

    def accusers_of_own(self, now: float) -> list[Id]:
        """Return the monitors that accuse this domain, since its last rebuttal; also those that are too few to count."""
        return self._index.valid(self.me, self._ring_now(now)) if self._accusations.rows else []

    def evidence(self, peer: Id) -> GossipMessage | None:
        """Return the accusations of a domain that this one believes: they go with pings and beats to the accused, so that it can rebut
        also when gossip does not reach it. None if a quorum is lacking."""
        accusers = self.accused.get(peer)
        if accusers is None or peer == self.me:
            return None
        rows = (self._accusations.rows.get(by) for by in accusers[: 2 * QUORUM])
        part = GossipPart(self._accusations.definition.name, rows=tuple(row for row in rows if row is not None))
        return GossipMessage((part,))

    # As a monitor

    def _ring_now(self, now: float) -> MonitorRing:
        epoch = epoch_of(self._started_s + now)
        old = self._ring is None or self._ring.epoch != epoch or now >= self._ring_at + RING_S
        if self._ring is None or old or self.ring_outdated():
            self._ring, self._ring_at = self._make_ring(epoch), now
        return self._ring

    def _ping_due(self, now: float, out: Outputs) -> None:
        ring = self._ring_now(now)
        targets = ring.targets(self.me)
        self._targets = {target: self._targets.get(target, MonitoredDomain(now)) for target in targets}
        for target, watched in self._targets.items():
            if now - watched.heard >= 0.9 * PROBE_S and (watched.tries == 0 or watched.silent):
                self._ping(target, watched, now, out)
        self._accuse(now, out)

    def _ping(self, target: Id, watched: MonitoredDomain, now: float, out: Outputs) -> None:
        watched.tries = min(watched.tries + 1, TRIES)
        out.append(SendMessage(target, PING))
        evidence = self.evidence(target)
        if evidence is not None:
            out.append(SendMessage(target, evidence))
        out.append(SetTimer(PongDue(target, watched.tries), TRY_S))

    def _pong_due(self, timer: PongDue, now: float, out: Outputs) -> None:
        watched = self._targets.get(timer.target)
        if watched is None or watched.tries != timer.number:
            return
        if watched.tries < TRIES:
            self._ping(timer.target, watched, now, out)
        else:
            watched.silent = True
            self._accuse(now, out)

    def _accuse(self, now: float, out: Outputs) -> None:
        """State the silent targets, unless they are so many that this domain is more likely cut off itself."""
        silent = [target for target, watched in self._targets.items() if watched.silent]
        alone = [target for target in silent if target not in self.suspected]
        doubts = len(alone) > max(1.0, SELF_SHARE * len(self._targets))
        if doubts != self.doubts_itself:
            self.doubts_itself = doubts
            out.append(AccusesNobody(len(alone), len(self._targets)) if doubts else AccusesAgain())
        named = [] if doubts else silent[:ACCUSED_MAX]
        payload = accusation_payload(tuple((target, self._rebutted(target)) for target in sorted(named)))
        own = self._accusations.rows.get(self.me)
        stated = own.payload if own is not None else b""
        if payload != self._said and (named or self._said or accused_of(stated)):
            self._said = payload
            out.append(Contribute(self._accusations.definition.name, payload))
        elif self._said and not named and stated == payload:
            self._said = b""
            out.append(Withdraw(self._accusations.definition.name))

    def _rebutted(self, domain: Id) -> int:
        """Return the version of a domain's last rebuttal."""
        row = self._rebuttals.rows.get(domain)
        return row.version if row is not None else 0

    def _group_of(self, domain: Id) -> Any:
        return self._group(domain)

    # As a reader, and as one that is accused

    def _look(self, now: float, out: Outputs) -> None:
        self._index.update(self._ring_now(now))
        counted = self.accused
        mine = counted.get(self.me)
        if mine:
            self._rebut(tuple(mine), now, out)
        elif self._answering and now >= self._rebutted_at + PROBE_S:
            self._answering = False
            out.append(Withdraw(self._rebuttals.definition.name))
        if counted or self._accused_since or self.suspected:
            self._look_at_others(counted, now, out)

    def _look_at_others(self, counted: Mapping[Id, list[Id]], now: float, out: Outputs) -> None:
        """Suspect domains that have been accused for long enough, and suspect those no longer that have answered."""
        counted = {domain: by for domain, by in counted.items() if domain != self.me}
        self._accused_since = {domain: self._accused_since.get(domain, now) for domain in counted}
        for domain, since in self._accused_since.items():
            if now - since >= REBUT_S and domain not in self.suspected:
                self.suspected[domain] = now
                out.append(Suspected(domain, tuple(counted[domain])))
        self._accused_at.update(dict.fromkeys(counted, now))
        for domain, since in list(self.suspected.items()):
            rebutted = self._rebutted(domain) > self._started_s + since - REBUT_S
            if rebutted or now - self._accused_at.get(domain, since) >= HOLD_S:
                del self.suspected[domain]
                out.append(SuspicionEnded(domain, "rebutted" if rebutted else "withdrawn"))
        self._accused_at = {domain: at for domain, at in self._accused_at.items() if domain in self.suspected}

    def _rebut(self, accusers: tuple[Id, ...], now: float, out: Outputs) -> None:
        """Sign a row of this time. Gossip signs one every few seconds at most."""
        self._rebutted_at, self._answering = now, True
        out.append(Contribute(self._rebuttals.definition.name, b"", renew=True))
        out.append(Rebutted(accusers))


MESSAGES = frozenset({MonitorPing, MonitorPong})
TIMERS = frozenset({PingDue, PongDue, LookDue})

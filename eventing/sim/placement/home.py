"""The home of the famous RP: the planner of operations/placement, fed by its own load and by what volunteers state.

What it has stored survives its process (`stored`): the planner's state, the replicas, and the invitations under way. An invitation without an outcome
is sent again after CLAIM_S, as a live home does whose process was killed (operations/placement/services/carrying.py).
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from eventing.core.decoding import converted
from eventing.operations.placement.rules.decisions import CLAIM_S
from eventing.operations.placement.rules.freshness import FreshnessMark, following, is_behind, moved_share
from eventing.operations.placement.rules.loads import capacity_units, claimed_pressure, claimed_units
from eventing.operations.placement.rules.planner import PlacementPlanner, PlannerState
from eventing.operations.placement.rules.steps import DelaysWanted, PlacementShortfall, PlacementStep
from eventing.operations.placement.rules.views import (
    HeldReplica,
    PlacedDomain,
    PlacedRp,
    PlacementObserved,
    ReaderGroup,
)
from eventing.overlay.load_rows import DomainLoad
from eventing.overlay.machine import Chance, Down, MessageReceived, SendMessage
from eventing.sim.placement.messages import (
    FAMOUS,
    CaughtUp,
    HomeLoad,
    InvitationRefusedHere,
    InvitationReply,
    Invited,
    LoadStated,
    PlacementChanged,
    PlacementShort,
    Probed,
    ProbeReply,
    Published,
    Released,
    ReplicaEnded,
    ReplicaServes,
    VectorStated,
)

REPLICAS_MAX = 47
SPREAD_S = 20.0
"""Seconds in which readers move to a replica that counts (readers.py)."""
AWAITED_S = 10.0
COUNTS_S = 60.0
"""Seconds within which an invited domain must serve; more than CLAIM_S once the invitation was sent again."""
SERVES_S = 10.0
"""Seconds after which a replica that does not answer is noticed."""
PUBLISH_S = 5.0
"""Seconds between two events."""
FEED = "home"


class ReplicaHeld(msgspec.Struct):
    """A replica as the home has it. Times are its own.

    Attributes:
        invited: time of the last invitation.
        claimed_until: the invitation is sent again then, unless it has an outcome; None: it has.
        counted: from when on it counts.
        silent: from when on it does not answer.
        mark: what it must reach.
        sequence: that it states.
    """

    invited: float
    claimed_until: float | None
    counted: float | None = None
    silent: float | None = None
    mark: FreshnessMark | None = None
    sequence: int = 0


class HomeStored(msgspec.Struct):
    """Stored state of the home."""

    planner: PlannerState = msgspec.field(default_factory=PlannerState)
    replicas: dict[int, ReplicaHeld] = {}
    sequence: int = 0
    published: float = 0.0


class PlacementHome:
    """Domain 0.

    Args:
        volunteers: the other domains.
        zones: of every domain.
        capacity: class of every domain.
        stored: from before a restart; None: begins anew.

    Attributes:
        replicas: by domain.
        sequence: of its last event.
    """

    def __init__(self, volunteers: range, zones: bytes, capacity: int, stored: HomeStored | None = None) -> None:
        self.me = 0
        self.restore(HomeStored() if stored is None else stored)
        self._volunteers = volunteers
        self._zones = zones
        self._capacity = capacity
        self._loads: dict[int, DomainLoad] = {}
        self._delays: dict[int, float] = {}

    def stored(self) -> HomeStored:
        """Return what is stored, as another process reads it."""
        state = converted(msgspec.to_builtins(self.planner.state), PlannerState)
        return HomeStored(state, deepcopy(self.replicas), self.sequence, self._published)

    def restore(self, held: HomeStored) -> None:
        """Begin with what is stored."""
        self.planner = PlacementPlanner(held.planner)
        self.replicas = held.replicas
        self.sequence = held.sequence
        self._published = held.published

    def answers(self, domain: int, now: float, *, whether: bool) -> None:
        """Take notice that a replica that counts stopped answering, or answers again."""
        held = self.replicas.get(domain)
        if held is not None:
            held.silent = None if whether else now if held.silent is None else held.silent

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Take in an input."""
        match given:
            case HomeLoad(units, pressure):
                return [*self._publish(now), *self._invite_again(now), *self._plan(units, pressure, now)]
            case MessageReceived(peer, LoadStated(load)):
                self._loads[int(str(peer))] = load
            case MessageReceived(peer, ProbeReply(sent_at)):
                self._delays[int(str(peer))] = 1000 * (now - sent_at)
            case MessageReceived(peer, InvitationReply(reason)) if int(str(peer)) in self.replicas:
                if reason:
                    return self._lost(int(str(peer)), reason, now)
                self.replicas[int(str(peer))].claimed_until = None
            case MessageReceived(peer, CaughtUp()) if int(str(peer)) in self.replicas:
                return self._counts(int(str(peer)), now)
            case MessageReceived(peer, VectorStated(sequence)) if int(str(peer)) in self.replicas:
                self._states(self.replicas[int(str(peer))], sequence, now)
            case Down(peer):
                return self._unreachable(int(str(peer)), now)
        return []

    def _publish(self, now: float) -> list[Any]:
        if 0.0 <= now - self._published < PUBLISH_S:
            return []
        self._published, self.sequence = now, self.sequence + 1
        counting = [domain for domain, held in self.replicas.items() if held.counted is not None]
        return [SendMessage(domain, Published(self.sequence)) for domain in counting]

    def _invite_again(self, now: float) -> list[Any]:
        out = []
        for domain, held in self.replicas.items():
            if held.claimed_until is not None and not now < held.claimed_until <= now + CLAIM_S:
                held.invited, held.claimed_until = now, now + CLAIM_S
                out.append(SendMessage(domain, Invited(FAMOUS)))
        return out

    def _counts(self, domain: int, now: float) -> list[Any]:
        held = self.replicas[domain]
        held.counted, held.claimed_until = now, None
        held.mark = FreshnessMark({FEED: self.sequence}, now)
        self.planner.accepted(_name(domain))
        return [ReplicaServes(domain)]

    def _states(self, held: ReplicaHeld, sequence: int, now: float) -> None:
        held.sequence = sequence
        if held.mark is not None:
            held.mark = following(held.mark, {FEED: sequence}, {FEED: self.sequence}, now)

    def _unreachable(self, domain: int, now: float) -> list[Any]:
        held = self.replicas.get(domain)
        if held is not None and held.counted is None:
            return self._lost(domain, "unreachable", now)
        if held is None:
            self.planner.refused(_name(domain), now)
        return []

    def _lost(self, domain: int, reason: str, now: float) -> list[Any]:
        del self.replicas[domain]
        self.planner.refused(_name(domain), now)
        return [InvitationRefusedHere(domain, reason)]

    def _plan(self, units: float, pressure: float, now: float) -> list[Any]:
        out: list[Any] = []
        for output in self.planner.handle(self._observed(units, pressure, now), now):
            match output:
                case DelaysWanted(domains=domains):
                    out += [SendMessage(_number(name), Probed(now)) for name in domains]
                case PlacementShortfall(why=why):
                    out.append(PlacementShort(why))
                case PlacementStep():
                    out += self._step(output, now)
        return out

    def _step(self, step: PlacementStep, now: float) -> list[Any]:
        self.planner.begun(step, now)
        out: list[Any] = [PlacementChanged(step.reason, len(step.adds), len(step.retires))]
        for name in step.adds:
            self.replicas[_number(name)] = ReplicaHeld(now, now + CLAIM_S)
            out.append(SendMessage(_number(name), Invited(FAMOUS)))
        for name in step.retires:
            domain = _number(name)
            failed = self._failing(self.replicas.pop(domain), now)
            out += [SendMessage(domain, Released()), ReplicaEnded(domain)]
            if failed:
                self.planner.refused(name, now)
        return out

    def _observed(self, units: float, pressure: float, now: float) -> PlacementObserved:
        replicas = []
        for domain, held in self.replicas.items():
            spread = 0.0 if held.counted is None else moved_share(now - held.counted, SPREAD_S)
            replicas.append(
                HeldReplica(
                    domain=_name(domain),
                    counts=held.counted is not None,
                    ours=True,
                    failing=self._failing(held, now),
                    awaited=held.counted is not None or abs(now - held.invited) <= AWAITED_S,
                    spread=spread,
                )
            )
        near = ReaderGroup(zone=str(self._zones[0]), share=1.0)
        rp = PlacedRp(rp=FAMOUS, units=units, replicas=tuple(replicas), readers=(near,), replicas_max=REPLICAS_MAX)
        return PlacementObserved(
            home=self._place(0),
            pressure=pressure,
            units=units,
            domains=tuple(self._place(domain) for domain in self._volunteers),
            rps=(rp,),
        )

    def _failing(self, held: ReplicaHeld, now: float) -> bool:
        """Return whether a replica does not serve what it accepted."""
        late = held.counted is None and held.claimed_until is None and abs(now - held.invited) > COUNTS_S
        gone = held.silent is not None and abs(now - held.silent) > SERVES_S
        return late or gone or (held.mark is not None and is_behind(held.mark, {FEED: held.sequence}, now))

    def _place(self, domain: int) -> PlacedDomain:
        load, room = self._loads.get(domain), capacity_units(self._capacity)
        return PlacedDomain(
            name=_name(domain),
            zone=str(self._zones[domain]),
            capacity=self._capacity,
            pressure=None if load is None else claimed_pressure(load, self._capacity),
            room=room if load is None else room - claimed_units(load, self._capacity),
            delay_ms=self._delays.get(domain),
        )


def _name(domain: int) -> str:
    return f"d{domain}"


def _number(name: str) -> int:
    return int(name[1:])

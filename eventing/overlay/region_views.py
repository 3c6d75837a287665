"""Views of all regions of a domain: one link machine (links.py) for each region, and the union of their links. Pure.

A domain that has a link in one region has it in every region that both share: overlapping regions cost one link, and a
region whose participants change keeps the links of those that remain. Both ends take a link over by the same rule, so no
message is needed.

Life of a region's view: its participants are known -> links that stand already are taken over -> the machine asks
candidates for what is lacking, and answers those who ask -> the participants change, or the region ends.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from eventing.overlay.links import (
    Disconnect,
    DropLink,
    FindLinks,
    LinkDown,
    Links,
    Neighbor,
    NeighborLink,
    NeighborReply,
    Reason,
)
from eventing.overlay.machine import Chance, Down, Fired, Id, MessageReceived, SendMessage, SetTimer
from eventing.overlay.regions import RegionCandidates, region_parameters

QUARANTINED_S = 3600.0
"""A domain that misbehaved gets no link for this long."""
QUARANTINED_MAX = 1024  # bound: quarantined domains; the first may get a link again early
# Regions of a domain are as many as sets of participants among its RPs; each costs some kilobytes and a timer.
REGIONS_MAX = 1000  # bound: regions with a view; RPs of the others are exchanged with peers and existing acquaintances


class RegionMembers(NamedTuple):
    """The other participants of a region.

    Attributes:
        candidates: those that are no peers and may be called, each with the group of domains that may fail or lie
            together with it; None: unknown.
        peers: number of approved peers.
    """

    candidates: Mapping[Id, Any]
    peers: int


class RegionMessage(NamedTuple):
    """A message to send."""

    region: str
    peer: Id
    message: Any


class RegionViews:
    """The views of one domain.

    Args:
        me: its name.
        chance: secret randomness, so that nobody can foresee whom this domain asks.

    Attributes:
        outbox: messages to send; the caller takes them.
        reasons: by domain, why its last link ended.
    """

    def __init__(self, me: Id, chance: Chance) -> None:
        self.me = me
        self.outbox: list[RegionMessage] = []
        self.reasons: dict[Id, Reason] = {}
        self._chance = chance
        self._views: dict[str, Links] = {}
        self._timers: list[tuple[float, int, str, Any]] = []
        self._numbers = itertools.count()
        self._quarantined: dict[Id, float] = {}

    @property
    def regions(self) -> Collection[str]:
        """The regions with a view."""
        return self._views.keys()

    def linked(self) -> set[Id]:
        """Return the domains with a link in any region."""
        return {peer for view in self._views.values() for peer in view.active}

    def update(self, regions: Mapping[str, RegionMembers], standing: Collection[Id], now: float) -> None:
        """Take in the regions as they are now.

        Args:
            standing: domains with which a link stands, also from before a restart.
        """
        standing = sorted({*standing, *self.linked()})
        for region in [one for one in self._views if one not in regions]:
            del self._views[region]
        for region, members in itertools.islice(regions.items(), REGIONS_MAX):
            view = self._views.get(region)
            if view is None:
                self._begin(region, members, standing, now)
            else:
                self._change(region, view, members, now)

    def received(self, region: str, peer: Id, message: Any, now: float) -> None:
        """Take in a message of a participant; the caller verified who sent it. Others are refused."""
        view = self._views.get(region)
        if view is None:
            return
        if peer not in view.candidates.members or self._quarantined.get(peer, 0.0) > now:  # type: ignore[attr-defined]
            if type(message) is Neighbor:
                self.outbox.append(RegionMessage(region, peer, NeighborReply(False)))
            return
        self._handle(region, view, MessageReceived(peer, message), now)

    def tick(self, now: float) -> None:
        """Fire the timers that are due."""
        while self._timers and self._timers[0][0] <= now:
            _, _, region, timer = heapq.heappop(self._timers)
            view = self._views.get(region)
            if view is not None:
                self._handle(region, view, Fired(timer), now)

    def down(self, peer: Id, now: float) -> None:
        """A domain cannot be reached."""
        for region, view in list(self._views.items()):
            if peer in view.active or peer in view.pending:
                self._handle(region, view, Down(peer), now)

    def refused(self, region: str, peer: Id, now: float) -> None:
        """A domain refused a message of the region: it does not know, or not want, the link."""
        view = self._views.get(region)
        if view is not None and peer in view.pending:
            self._handle(region, view, MessageReceived(peer, NeighborReply(False)), now)

    def quarantine(self, peer: Id, now: float) -> None:
        """End the links with a domain that misbehaved, and make none for QUARANTINED_S."""
        self._quarantined.pop(peer, None)
        self._quarantined[peer] = now + QUARANTINED_S
        if len(self._quarantined) > QUARANTINED_MAX:
            del self._quarantined[next(iter(self._quarantined))]
        for region, view in list(self._views.items()):
            view.candidates.members.pop(peer, None)  # type: ignore[attr-defined]
            self._handle(region, view, DropLink(peer), now)

    def drop(self, peer: Id, now: float) -> None:
        """End the links with a domain for which there is no room here."""
        for region, view in list(self._views.items()):
            if peer in view.active:
                view.candidates.refused(peer, now)
                self.outbox.append(RegionMessage(region, peer, Disconnect(Reason.EVICTED)))
                self._handle(region, view, MessageReceived(peer, Disconnect(Reason.EVICTED)), now)

    def _begin(self, region: str, members: RegionMembers, standing: list[Id], now: float) -> None:
        candidates = self._candidates(members, now)
        parameters = region_parameters(len(candidates), members.peers)
        view = self._views[region] = Links(self.me, parameters, RegionCandidates(candidates))
        for number, peer in enumerate(peer for peer in standing if peer in candidates):
            chosen, group = number < parameters.chosen, view.candidates.group(peer)
            view.active[peer] = NeighborLink(chosen, False, now, 0.0, group)
        self._handle(region, view, FindLinks(), now)

    def _change(self, region: str, view: Links, members: RegionMembers, now: float) -> None:
        candidates = self._candidates(members, now)
        held: RegionCandidates = view.candidates  # type: ignore[assignment]
        parameters = region_parameters(len(candidates), members.peers)
        if held.members == candidates and view.parameters == parameters:
            return
        held.members, view.parameters = candidates, parameters
        for peer in [peer for peer in (*view.active, *view.pending) if peer not in candidates]:
            self._handle(region, view, MessageReceived(peer, Disconnect(Reason.LEAVING)), now)  # a peer now, or gone
        out: list[Any] = []
        view.repair(now, self._chance, out)
        self._carry_out(region, out, now)

    def _candidates(self, members: RegionMembers, now: float) -> dict[Id, Any]:
        return {one: group for one, group in members.candidates.items() if self._quarantined.get(one, 0.0) <= now}

    def _handle(self, region: str, view: Links, given: Any, now: float) -> None:
        self._carry_out(region, view.handle(given, now, self._chance), now)

    def _carry_out(self, region: str, outputs: list[Any], now: float) -> None:
        for one in outputs:
            kind = type(one)
            if kind is SendMessage:
                self.outbox.append(RegionMessage(region, one.peer, one.message))
            elif kind is SetTimer:
                heapq.heappush(self._timers, (now + one.after_s, next(self._numbers), region, one.timer))
            elif kind is LinkDown:
                self.reasons[one.peer] = one.reason

"""Broadcasts: events of one RP that all domains take part in, published by origins of a pattern, and how far and how fast they get."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from eventing.core.events.feeds import FEEDS_MAX
from eventing.overlay.dissemination_messages import DEFAULTS, DisseminationParameters, Publish, RunReceived
from eventing.overlay.replica_log import ReplicaLog
from eventing.sim.broadcasting_member import BroadcastingMember
from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values
from eventing.sim.measurements.broadcasting import TREE_WARM, Fates, feed_of
from eventing.sim.scenario import Positive, Seconds
from eventing.sim.scored_member import OfRp, ScoredMember

SETTLED = 0.3
"""Samples are of the last event that is older than this share of the time between two."""
FLOODED_HOPS_FROM = 5
"""Origins from which the hops of flooding are computed."""


class Broadcasts(Measurement, frozen=True, kw_only=True):
    """Events and their fates.

    Values: `reached`: share of the domains that ran at the publication which the last event has reached; `rmr`: redundant payloads for
    each one that was needed; `hops`: of the longest path of an event, `hops_mean`: the mean over events; `last_hop`, `last_hop_mean`: of the path to the domain that was reached last; `t50_s`, `t99_s`, `last_s`: from publication to arrival at half, 99 %
    and all of those reached, of the slowest event; `p99_s`: below which 99 % of all arrivals are; `flooding_hops`: of flooding over the same links, at the first event.
    In the summary: `cold_…` of the first event, `warm_…` of the events of origins that had published 20 before, `…` of all events;
    `over_flooding`: hops of the longest warm path beyond those of flooding; `missed`: events that a running domain does not hold at the end,
    summed over domains; `in_time`: share of the arrivals within `within_s`, of all that there could be. Where there are liars, all that is of
    honest domains: origins, arrivals and what is missed.

    Attributes:
        origins: `one` domain, `random` ones in turn, or `all` at once. An RP has at most 64 feeds, so that many publish.
        rounds: events; of `all`, rounds of one event by each origin.
        gap_s: between two rounds.
        from_s: of the first.
        origins_max: origins of `random` and `all`.
        anti_entropy_s: between two comparisons with the peer of one link; 0: never.
        within_s: the time within which `in_time` counts arrivals.
        scores: whether honest domains score their links; needed where replicas lie.
        rp: name of the RP, where there are several.
    """

    kind: ClassVar[str] = "broadcasts"
    origins: Literal["one", "random", "all"] = "one"
    rounds: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 40
    gap_s: Positive = 3.0
    from_s: Seconds = 0.0
    origins_max: Annotated[int, msgspec.Meta(ge=1, le=FEEDS_MAX)] = FEEDS_MAX
    anti_entropy_s: Seconds = DEFAULTS.anti_entropy_s
    within_s: Positive = 10.0
    scores: bool = False
    rp: str = ""

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return BroadcastsProbe(run, self)


class BroadcastsProbe:
    """The events of one run."""

    def __init__(self, run: SimulationContext, plan: Broadcasts) -> None:
        self._run = run
        self._plan = plan
        self._logs: dict[int, ReplicaLog] = {}
        self._fates = Fates()
        self._flooding_hops = 0
        doubt_s = 0.0 if run.scenario.parameters == "paper" else DEFAULTS.doubt_s
        self._parameters = DisseminationParameters(anti_entropy_s=plan.anti_entropy_s, doubt_s=doubt_s)
        chance = run.make_chance(f"{run.seed} broadcasts")
        honest = [domain for domain in range(run.scenario.domains) if domain not in run.role_of]
        self._origins = chance.sample(honest, min(len(honest), plan.origins_max if plan.origins != "one" else 1))
        self._spare = chance.sample(honest, len(honest))
        self._chance = chance
        self._marked = plan.scores or bool(plan.rp)
        run.wrap(self._wrapped)
        run.on([RunReceived], self._received)
        run.at(plan.from_s, lambda: self._round(plan.rounds))

    def _wrapped(self, domain: int, member: Any) -> BroadcastingMember:
        log = self._logs.get(domain)
        if log is None:
            log = self._logs[domain] = ReplicaLog(domain, self._feed(domain))
        if self._marked:
            return ScoredMember(member, log, self._parameters, self._plan.rp)
        return BroadcastingMember(member, log, self._parameters)

    def _feed(self, domain: int) -> str:
        return self._plan.rp + feed_of(domain)

    def _received(self, domain: int, event: RunReceived, now: float) -> None:
        if domain not in self._run.role_of:
            self._fates.received(domain, event, now)

    def _round(self, left: int) -> None:
        if not self._fates.all:
            self._flooding_hops = self._flooded()
        origins = [self._running(origin) for origin in self._origins]
        if self._plan.origins == "random":
            origins = [origins[self._chance.randrange(len(origins))]]
        meant = len(self._honest()) - 1
        for origin in dict.fromkeys(origins):
            self._fates.published(self._feed(origin), self._run.world.now, meant)
            command = Publish(None)
            self._run.world.give(origin, OfRp(self._plan.rp, command) if self._marked else command)
        if left > 1:
            self._run.at(self._run.time + self._plan.gap_s, lambda: self._round(left - 1))

    def _honest(self) -> list[int]:
        """The honest domains that run."""
        return [domain for domain in self._run.running if domain not in self._run.role_of]

    def _running(self, origin: int) -> int:
        """The origin, or another where it does not run."""
        if self._run.world.up[origin]:
            return origin
        return next((one for one in self._spare if self._run.world.up[one]), origin)

    def _flooded(self) -> int:
        """The hops of flooding over the present links, the most from a few origins."""
        most = 0
        for origin in self._origins[:FLOODED_HOPS_FROM]:
            hops, reached, edge = 0, {self._running(origin): None}, [self._running(origin)]
            while edge:
                there = [peer for domain in edge for peer in self._run.population.links(domain)]
                edge = [peer for peer in dict.fromkeys(there) if peer not in reached and self._run.world.up[peer]]
                reached.update(dict.fromkeys(edge))
                hops += bool(edge)
            most = max(most, hops)
        return most

    def sample(self) -> Values:
        """Values of the last event, or of the last round of `all`."""
        many = len(self._origins) if self._plan.origins == "all" else 1
        until = self._run.world.now - SETTLED * self._plan.gap_s
        settled = sum(1 for fate in self._fates.all if fate.at <= until)
        return self._fates.values(self._fates.all[max(0, settled - many) : max(settled, many)])

    def summary(self) -> Values:
        """Values over all events."""
        events = self._fates.all
        if not events:
            return {}
        first = events[: len(self._origins)] if self._plan.origins == "all" else events[:1]
        warm = [fate for fate in events if fate.sequence > TREE_WARM]
        values = self._fates.values(events)
        values |= {f"cold_{name}": value for name, value in self._fates.values(first).items()}
        values |= {f"warm_{name}": value for name, value in self._fates.values(warm).items()}
        sequences: dict[str, int] = {}
        for fate in events:
            sequences[fate.feed] = fate.sequence
        values["missed"] = sum(
            max(0, last - self._logs[domain].vector.get(feed, 0))
            for domain in self._honest()
            for feed, last in sequences.items()
        )
        values["in_time"] = self._fates.arrived_within(self._plan.within_s)
        values["flooding_hops"] = self._flooding_hops
        if warm:
            values["over_flooding"] = max(fate.hops for fate in warm) - self._flooding_hops
        return values

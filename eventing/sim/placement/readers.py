"""Readers of the famous RP: where they read, and how they go elsewhere.

- New readers are pointed at once to the domain with most room below its fair share of the domains that serve (bounded loads); readers above
  the fair share of a domain move at 1 / MOVE_S of the excess a second.
- Readers of a domain that stops serving, or that they cannot reach, find out after NOTICE_S, and go on at another with their cursor.
- In a partition readers are on the side with most domains; of equal sides, on the home's.
- A domain that redirects in circles sends its readers to the next such domain; each reader follows HOPS_MAX redirects, as live clients do, and
  insists on the last one then.
- A reader loses events if it was without a serving domain for longer than the history of HISTORY_S.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from eventing.replication.rules.reader_moves import HOPS_MAX
from eventing.sim.context import SimulationContext
from eventing.sim.placement.home import PlacementHome
from eventing.sim.placement.volunteer import CIRCLES
from eventing.sim.world import UP

MOVE_S = 5.0
NOTICE_S = 40.0
"""Two pings without an answer (docs/federation/moving.md)."""
HISTORY_S = 600.0


class SimulatedReaders:
    """Readers by domain.

    Attributes:
        at: readers of each domain that serves.
        redirected: redirects followed at domains that redirect in circles.
        circled: readers that reached such a domain.
        lost: readers that lost events.
        stranded_s_max: longest time of readers without a domain.
    """

    def __init__(self, run: SimulationContext) -> None:
        self.at: dict[int, float] = {0: 0.0}
        self.redirected = self.circled = 0.0
        self.lost = 0.0
        self.stranded_s_max = 0.0
        self._run = run
        self._stranded: deque[tuple[float, float, float]] = deque()
        self._left: dict[int, None] = {}

    def turn(self, demand: float, now: float, turn_s: float) -> None:
        """Let readers notice, begin, end and move."""
        self._notice(now)
        if self.at:
            self._arrive(demand)
            self._spread(turn_s)

    def join(self, domain: int) -> None:
        """Readers may move to a replica."""
        self.at.setdefault(domain, 0.0)
        self._left.pop(domain, None)

    def leave(self, domain: int) -> None:
        """Point the readers of a domain that ends its replica to the others: at once, or when the home reaches it."""
        if not self._run.network.reaches(0, domain):
            self._left[domain] = None
            return
        count = self.at.pop(domain, 0.0)
        if count:
            self._place(count)

    def circles(self, domain: int) -> bool:
        """Return whether a domain redirects in circles."""
        return bool(domain) and self._run.population.members[domain].conduct == CIRCLES

    def _notice(self, now: float) -> None:
        """Find domains that stopped serving; their readers are stranded until they notice."""
        members, home = self._run.population.members, self._run.population.members[0]
        for domain in [one for one in self._left if self._run.network.reaches(0, one)]:
            del self._left[domain]
            self.leave(domain)
        for domain in [one for one in self.at if not self._serves(one, members[one])]:
            self._stranded.append((now, now + NOTICE_S, self.at.pop(domain)))
        if 0 not in self.at and self._serves(0, home):
            self.at[0] = 0.0
        for domain, held in home.replicas.items() if isinstance(home, PlacementHome) else ():
            if held.counted is not None:
                serves = self._run.world.up[domain] == UP and members[domain].serves
                home.answers(domain, self._run.world.now, whether=serves and self._run.network.reaches(0, domain))
                if domain not in self.at and self._serves(domain, members[domain]):
                    self.at[domain] = 0.0
        while self._stranded and self._stranded[0][1] <= now and self.at:
            began, _, count = self._stranded.popleft()
            self.stranded_s_max = max(self.stranded_s_max, now - began)
            if now - began > HISTORY_S:
                self.lost += count
            self._place(count)

    def _serves(self, domain: int, member: Any) -> bool:
        sides = self._run.network.conditions.sides
        there = sides is None or sides[domain] == _readers_side(sides)
        return bool(there and self._run.world.up[domain] == UP and (domain == 0 or member.serves))

    def _arrive(self, demand: float) -> None:
        """Let readers begin and end; stranded ones count as readers."""
        wanted = demand - sum(count for _, _, count in self._stranded)
        there = sum(self.at.values())
        if wanted < there:
            for domain in self.at:
                self.at[domain] *= max(0.0, wanted) / there if there else 0.0
        else:
            self._place(wanted - there)

    def _place(self, readers: float) -> None:
        """Put readers where there is most room below the fair share; where no domain serves, they look again after NOTICE_S."""
        if not self.at:
            self._stranded.append((self._run.time, self._run.time + NOTICE_S, readers))
            return
        share = (sum(self.at.values()) + readers) / len(self.at)
        room = {domain: max(0.0, share - count) for domain, count in self.at.items()}
        total = sum(room.values())
        for domain in self.at:
            here = readers * (room[domain] / total if total else 1 / len(self.at))
            self.at[domain] += here
            if here and self.circles(domain):
                self._follow(domain, here)

    def _follow(self, domain: int, readers: float) -> None:
        """Have readers follow the redirects of domains in a circle, from one to the next."""
        circle = [one for one in self.at if self.circles(one)]
        hops = HOPS_MAX if len(circle) > 1 else 0
        self.circled += readers
        self.redirected += hops * readers
        self.at[domain] -= readers
        self.at[circle[(circle.index(domain) + hops) % len(circle)]] += readers

    def _spread(self, turn_s: float) -> None:
        share = sum(self.at.values()) / len(self.at)
        moving = 0.0
        for domain, count in self.at.items():
            if count > share:
                leaving = (count - share) * min(1.0, turn_s / MOVE_S)
                self.at[domain] -= leaving
                moving += leaving
        if moving:
            self._place(moving)


def _readers_side(sides: bytearray) -> int:
    """Return the side of a partition on which readers are."""
    most = max(sides.count(side) for side in dict.fromkeys(sides))
    largest = [side for side in dict.fromkeys(sides) if sides.count(side) == most]
    return sides[0] if sides[0] in largest else largest[0]

"""Places for requests in flight: bounded in all, for failing endpoints, and for each host. Who finds none waits in line.

Endpoints that failed last time have few places of their own, so that however many of them hang, the others' places stay
free, and begin one after the other. Those that hang for the first time are moved to places for slow ones after SLOW_S. A host has few places too: one
that hangs delays nothing but itself. Waiting courses are taken in the order in which they stood in line, each for one
request at a time.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import NamedTuple

from eventing.subscriptions.push.process.course import Course, Host

IN_FLIGHT_MAX = 1024  # bound: requests in flight to endpoints in order; further ones wait
# bound: requests in flight to endpoints that failed last time, or never answered; further ones wait
FAILING_IN_FLIGHT_MAX = 128
SLOW_IN_FLIGHT_MAX = 2048  # bound: requests in flight for more than SLOW_S; further ones keep their first places
SLOW_S = 0.25
# Beginning a hundred requests at once keeps the event loop from the others for tens of milliseconds.
FAILING_EVERY_S = (
    0.005  # bound: seconds between the begins of two requests to endpoints that failed last time; further ones wait
)
HOST_IN_FLIGHT_MAX = 64  # bound: requests in flight to one host and port; further ones wait


@dataclass(eq=False, slots=True)
class RequestPlace:
    """A place of one request: at a host, taken at a time of the loop's clock; `kind` is healthy, failing or slow."""

    host: Host
    taken_at: float
    kind: str


class Placed(NamedTuple):
    """A course and the place that it has."""

    course: Course
    place: RequestPlace


HEALTHY, FAILING, SLOW = "healthy", "failing", "slow"
PLACES = {HEALTHY: IN_FLIGHT_MAX, FAILING: FAILING_IN_FLIGHT_MAX, SLOW: SLOW_IN_FLIGHT_MAX}


class RequestPlaces:
    """The places of one deliverer."""

    def __init__(self) -> None:
        self._free = dict(PLACES)
        self._failing_at = float("-inf")
        self._lines: dict[str, deque[Course]] = {HEALTHY: deque(), FAILING: deque()}
        self._hosts: dict[Host, int] = {}
        self._host_lines: dict[Host, deque[Course]] = {}
        self._taken: OrderedDict[RequestPlace, None] = OrderedDict()  # healthy ones, the oldest first

    def stand_in_line(self, course: Course) -> None:
        """Have a course wait for its turn, unless it waits already."""
        if not course.queued:
            course.queued = True
            self._lines[_kind(course)].append(course)

    def next(self, now: float) -> Placed | None:
        """Return the next course with its place, which it has until `leave`; None if there is none.

        Args:
            now: time of the loop's clock.
        """
        for kind in (HEALTHY, FAILING):
            line = self._lines[kind]
            while line and self._free[kind] > 0 and (kind == HEALTHY or now >= self._failing_at):
                course = line.popleft()
                if _kind(course) != kind:
                    self._lines[_kind(course)].append(course)
                    if kind == HEALTHY:
                        continue
                    return self.next(now)
                if self._hosts.get(course.host, 0) >= HOST_IN_FLIGHT_MAX:
                    self._host_lines.setdefault(course.host, deque()).append(course)
                    continue
                course.queued = False
                return Placed(course, self._take(course.host, kind, now))
        return None

    @property
    def failing_wait(self) -> bool:
        """True if a failing endpoint has a place, and waits only for the time after the one before it."""
        return bool(self._lines[FAILING]) and self._free[FAILING] > 0

    def leave(self, place: RequestPlace) -> None:
        """Give a place back."""
        self._free[place.kind] += 1
        self._taken.pop(place, None)
        self._hosts[place.host] -= 1
        if not self._hosts[place.host]:
            del self._hosts[place.host]
        waiting = self._host_lines.get(place.host)
        if waiting:
            course = waiting.popleft()
            self._lines[_kind(course)].append(course)
            if not waiting:
                del self._host_lines[place.host]

    def in_flight(self) -> dict[str, int]:
        """Return the number of places that are taken, by kind."""
        return {kind: most - self._free[kind] for kind, most in PLACES.items()}

    @property
    def waiting(self) -> int:
        """Courses that wait for a place."""
        return sum(map(len, self._lines.values())) + sum(map(len, self._host_lines.values()))

    def part_slow_ones(self, now: float) -> int:
        """Move requests that take long to places for slow ones. Returns the number of places that became free."""
        count = 0
        while self._taken and self._free[SLOW] > 0:
            place = next(iter(self._taken))
            if now - place.taken_at < SLOW_S:
                break
            del self._taken[place]
            place.kind = SLOW
            self._free[SLOW] -= 1
            self._free[HEALTHY] += 1
            count += 1
        return count

    def _take(self, host: Host, kind: str, now: float) -> RequestPlace:
        self._free[kind] -= 1
        self._hosts[host] = self._hosts.get(host, 0) + 1
        place = RequestPlace(host, now, kind)
        if kind == HEALTHY:
            self._taken[place] = None
        else:
            self._failing_at = now + FAILING_EVERY_S
        return place


def _kind(course: Course) -> str:
    return FAILING if course.is_failing else HEALTHY

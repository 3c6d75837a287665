"""Places for requests in flight: bounded in all, for failing endpoints, and for each host. Who finds none waits in line.

Endpoints that failed last time have few places of their own, so that however many of them hang, the others' places stay
free. A host has few places too: one that hangs delays nothing but itself. Waiting courses are taken in the order of their
coming, each for one request at a time.
"""

from __future__ import annotations

from collections import deque

from eventing.subscriptions.push.process.course import Course, Host

IN_FLIGHT_MAX = 512  # bound: requests in flight to endpoints in order; further ones wait
# bound: requests in flight to endpoints that failed last time, or never answered; further ones wait
FAILING_IN_FLIGHT_MAX = 128
HOST_IN_FLIGHT_MAX = 64  # bound: requests in flight to one host and port; further ones wait


class Places:
    """The places of one deliverer."""

    def __init__(self) -> None:
        self._free = {False: IN_FLIGHT_MAX, True: FAILING_IN_FLIGHT_MAX}
        self._lines: dict[bool, deque[Course]] = {False: deque(), True: deque()}
        self._hosts: dict[Host, int] = {}
        self._host_lines: dict[Host, deque[Course]] = {}

    @property
    def in_flight(self) -> int:
        """Requests in flight."""
        return IN_FLIGHT_MAX + FAILING_IN_FLIGHT_MAX - self._free[False] - self._free[True]

    def stand_in_line(self, course: Course) -> None:
        """Have a course wait for its turn, unless it waits already."""
        if not course.queued:
            course.queued = True
            self._lines[course.is_failing].append(course)

    def next(self) -> Course | None:
        """Return the next course that has a place, which it then has until `leave`; None if there is none."""
        for failing in (False, True):
            line = self._lines[failing]
            while line and self._free[failing] > 0:
                course = line.popleft()
                if course.is_failing is not failing:
                    self._lines[not failing].append(course)
                    if not failing:
                        continue
                    return self.next()
                if self._hosts.get(course.host, 0) >= HOST_IN_FLIGHT_MAX:
                    self._host_lines.setdefault(course.host, deque()).append(course)
                    continue
                course.queued = False
                self._free[failing] -= 1
                self._hosts[course.host] = self._hosts.get(course.host, 0) + 1
                return course
        return None

    def leave(self, host: Host, failing: bool) -> None:
        """Give a place back.

        Args:
            host, failing: as the course had them when `next` returned it.
        """
        self._free[failing] += 1
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]
        waiting = self._host_lines.get(host)
        if waiting:
            course = waiting.popleft()
            self._lines[course.is_failing].append(course)
            if not waiting:
                del self._host_lines[host]

"""Commands on their way to several servers: each to the home of its keys, answers in order, and what was not carried out again.

Without input and output, for the three clients that send them (routed.py, routed_async.py, bulk_links.py):

    work = Spreading(plane, commands)
    while True:
        for batch in work.batches():
            work.take(batch, ...)       # the answers, or the error of the connection
        pause_s = work.pause_s()
        if pause_s is None:
            break                       # work.answers
        ...                             # wait so long, and have the plane look again since work.began
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any, NamedTuple

from redis.exceptions import AskError, MovedError, RedisError

from eventing.core.data_plane import ServerAddress, key_of_command
from eventing.store.plane import Plane, is_of_connection, is_of_topology

RETRY_S = 8.0  # bound: seconds that a command is repeated during a failover; the last error is raised
PAUSE_S = (0.02, 0.5)  # between repetitions, doubling; the first one follows at once


class Batch(NamedTuple):
    """Commands for one server, by index. `asking`: each after ASKING, because its slot is being moved there."""

    place: ServerAddress
    indexes: list[int]
    asking: bool = False


class Spreading:
    """The commands and what is known of their answers.

    Args:
        commands: each begins with its name, in capitals.
        retry_s: seconds that commands are repeated.
        repeats_lost: also repeat what was sent over a connection that broke, and may have been carried out.

    Attributes:
        answers: by index; errors are values.
        began: when the last round began, monotonic seconds.
    """

    def __init__(
        self, plane: Plane, commands: Sequence[Sequence[Any]], retry_s: float = RETRY_S, *, repeats_lost: bool = True
    ) -> None:
        self.answers: list[Any] = [None] * len(commands)
        self.began = monotonic()
        self._plane = plane
        self._commands = commands
        self._repeats_lost = repeats_lost
        self._until = self.began + retry_s
        self._pause_s = 0.0
        self._again: Sequence[int] = range(len(commands))
        self._asked: dict[ServerAddress, list[int]] = {}
        plane.refresh()

    def batches(self) -> list[Batch]:
        """Begin a round: return what is to be sent now, in any order. Raises redis.RedisError where no topology is known."""
        self.began = monotonic()
        self._plane.topology()
        homes: dict[ServerAddress, list[int]] = {}
        left, self._again = self._again, (again := [])
        for at in left:
            try:
                homes.setdefault(self._plane.home_of_key(key_of_command(self._commands[at])).place, []).append(at)
            except RedisError as error:
                self.answers[at] = error
                again.append(at)
        asked, self._asked = self._asked, {}
        return [
            *(Batch(place, some) for place, some in homes.items()),
            *(Batch(place, some, True) for place, some in asked.items()),
        ]

    def take(self, batch: Batch, outcome: Sequence[Any] | Exception) -> None:
        """Take a batch's answers, or the error with which it ended. Raises an error that is not of a connection."""
        if isinstance(outcome, Exception):
            if not is_of_connection(outcome):
                raise outcome
            for at in batch.indexes:
                self.answers[at] = outcome
            if self._repeats_lost:
                self._again = [*self._again, *batch.indexes]
            return
        for at, answer in zip(batch.indexes, outcome, strict=True):
            self.answers[at] = answer
            if not isinstance(answer, RedisError):
                continue
            if isinstance(answer, AskError) and not isinstance(answer, MovedError):
                self._asked.setdefault(ServerAddress(answer.host or batch.place.host, answer.port), []).append(at)
            elif is_of_topology(answer):
                self._again = [*self._again, at]

    def pause_s(self) -> float | None:
        """End a round: return the seconds until the next one; None if there is none."""
        if not self._again and not self._asked:
            return None
        pause_s = self._pause_s if self._again else 0.0
        if monotonic() + pause_s > self._until:
            return None
        if self._again:
            self._again = sorted(self._again)
            self._pause_s = min(max(2 * self._pause_s, PAUSE_S[0]), PAUSE_S[1])
        return pause_s

    def result(self) -> list[Any]:
        """Return the answers. Raises the error of a connection, if one is among them."""
        for answer in self.answers:
            if is_of_connection(answer):
                raise answer
        return self.answers

"""Liveness of the processes behind the gateways, by work done instead of by being there.

A process that hangs, or whose consumer silently stopped consuming, keeps its process id, its connections and its heartbeat. So each one
proves that its work continues: a thread asks its `WorkWatch` every PROVED_EVERY_S, and if so writes to the pipe by which it reported that it
was ready. The supervisor kills a child without a proof for DEAD_AFTER_S (children.py), and starts it again. Broker, database and peers that are away
are no reason: a turn that failed has ended, too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from typing import NamedTuple

from portal.queues import BrokerAway
from portal.supervisor.parent_watchdog import prove_work

PROVED_EVERY_S = 5.0
logger = logging.getLogger(__name__)


class WorkProgress(NamedTuple):
    """Work that a process has done.

    Attributes:
        turns: changes whenever a piece of work begins or ends.
        under_way: whether a piece of work is under way.
    """

    turns: Hashable
    under_way: bool


class WorkWatch:
    """Judgement whether the work of a process continues. Times are monotonic seconds.

    Args:
        progress: returns what the process has done.
        waiting: returns how much work waits for it. Raises BrokerAway.
        busy_s: longest time that a piece of work may take.
        now: the clock.
    """

    def __init__(
        self,
        progress: Callable[[], WorkProgress],
        waiting: Callable[[], int],
        *,
        busy_s: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._progress, self._waiting, self._busy_s, self._now = progress, waiting, busy_s, now
        self._seen: Hashable = None
        self._moved_at = now()

    def goes_on(self) -> bool:
        """Return whether a piece of work began or ended since the last call, or one may still take its time, or none waits."""
        turns, under_way = self._progress()
        if turns != self._seen:
            self._seen, self._moved_at = turns, self._now()
            return True
        if under_way and self._now() - self._moved_at <= self._busy_s:
            return True
        try:
            return not self._waiting()
        except BrokerAway as error:
            logger.debug("Whether work waits is not known: %s", error)
            return True


def prove_in_background(*parts: Callable[[], bool]) -> None:
    """Prove the work of this process from a thread, while all of its parts go on."""
    threading.Thread(target=_prove_forever, args=(parts,), name="alive", daemon=True).start()


def _prove_forever(parts: tuple[Callable[[], bool], ...]) -> None:
    while True:
        going_on = [goes_on() for goes_on in parts]  # each is asked: it compares with what it saw last
        if all(going_on):
            prove_work()
        time.sleep(PROVED_EVERY_S)

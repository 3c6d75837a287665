"""Measures while links of this domain fail, or are in doubt: others' vectors are sent sooner (overlay/announcements.py), and where many
fail at once, lazy links are reopened (overlay/reopening.py).

Failures are found by turns of forwarding, doubts by a thread of this process: it looks after the requests that are under way, whose own
threads wait for their answers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Sequence

from eventing.core.container import per_process
from eventing.overlay import announcements
from eventing.overlay.reopening import EVERY_S, FOR_S, AnswerTimes, many_doubted
from eventing.replication.forwarding import wakeups
from eventing.replication.forwarding.new_events import events_forward
from eventing.replication.forwarding.vector_times import vector_times
from eventing.store import peer_state, waiting_vectors
from eventing.store.errors import RedisError

LOOK_S = 0.3  # between two looks at the requests under way; without any nothing looks
# Twice the number of peers.
PEERS_MAX = 2000  # bound: peers whose times of answers are remembered; all are learned anew
log = logging.getLogger(__name__)


def links_failing(silent: Collection[str], names: Sequence[str]) -> None:
    """Note that links fail, and have the others' peers sent what is on its way. Raises redis.RedisError.

    Args:
        silent: linked domains that do not answer.
        names: all linked domains that are asked anything.
    """
    others = [name for name in names if name not in silent]
    waiting_vectors.vectors_urgent_set(announcements.DISTURBED_S)
    woken = dict.fromkeys(vector_times().disturbed(time.time()))
    if many_doubted(len(names) - len(others), len(names)) and waiting_vectors.reopening_begins(
        time.time(), FOR_S, EVERY_S
    ):
        log.warning("%d of %d peers do not answer; events go by all links to the others.", len(silent), len(names))
        lately = waiting_vectors.vectors_lately(others, wakeups.RPS_MAX)
        events_forward(lately, reopen={rp for some in lately.values() for rp in some})
    woken |= dict.fromkeys(waiting_vectors.vectors_waiting(others))
    wakeups.wake_all({other: () for other in woken if other in others})


class RequestsUnderWay:
    """The peers that were asked something and have not answered yet. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: dict[str, AnswerTimes] = {}
        self._doubted: set[str] = set()
        self._asked: dict[str, Sequence[str]] = {}
        self._any = threading.Event()
        self._watching = False

    def asked(self, peer: str, names: Sequence[str]) -> None:
        """Note a request; `names` are all partners, linked or not."""
        with self._lock:
            if len(self._times) >= PEERS_MAX:
                for remembered in (self._times, self._doubted, self._asked):
                    remembered.clear()
            self._times.setdefault(peer, AnswerTimes()).asked(time.monotonic())
            self._asked[peer] = names
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="doubts", daemon=True).start()
        self._any.set()

    def answered(self, peer: str) -> None:
        """Note an answer, whatever its status."""
        with self._lock:
            if peer in self._times:
                self._times[peer].heard(time.monotonic())
            self._doubted.discard(peer)
            self._asked.pop(peer, None)

    def ended(self, peer: str) -> None:
        """Note that a request has ended, with an answer or without."""
        with self._lock:
            self._asked.pop(peer, None)

    def doubted(self) -> set[str]:
        """Return the peers whose links are in doubt."""
        with self._lock:
            return set(self._doubted)

    def look(self) -> tuple[set[str], list[str]]:
        """Return the peers whose links are in doubt, if there are others than at the last look, and all that are linked."""
        now = time.monotonic()
        with self._lock:
            found = {peer for peer in self._asked if peer not in self._doubted and self._times[peer].in_doubt(now)}
            self._doubted |= found
            return (set(self._doubted), self._linked(self._asked[min(found)])) if found else (set(), [])

    def linked(self, names: Sequence[str]) -> list[str]:
        """Return those of the partners that this process has asked anything: a peer without a common RP is none of them."""
        with self._lock:
            return self._linked(names)

    def _linked(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self._times]

    def _watch(self) -> None:
        while True:
            self._any.wait()
            time.sleep(LOOK_S)
            with self._lock:
                if not self._asked:
                    self._any.clear()
                    continue
            silent, names = self.look()
            if silent:
                try:
                    links_failing(silent.union(peer_state.cut_off(names)), names)
                except RedisError as error:
                    log.warning("Peers could not be woken; the sweep will find what they lack: %s", error)


requests_under_way = per_process(RequestsUnderWay)

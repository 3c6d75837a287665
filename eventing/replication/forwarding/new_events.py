"""New events at RPs with links: forwarding is woken to the peers that are to be sent them; towards the others, whose links are lazy for
their feeds, it is noted that a vector waits.

With eight links to a domain most are lazy, for each event. A turn of forwarding for each of them, which would only find that a vector is to wait,
took most of the processor time of an event, and held the threads for which the turns that carry it waited.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from eventing.conf import config
from eventing.core.events import vectors
from eventing.core.events.feeds import Feed
from eventing.core.events.vectors import Vector
from eventing.log import federated, watermarks
from eventing.log.appender import Destination
from eventing.log.federated import LogHead
from eventing.overlay import broadcast, link_planning
from eventing.overlay.link_planning import LinkPlan
from eventing.overlay.link_state import Link
from eventing.replication.forwarding import wakeups
from eventing.store import peer_state, waiting_vectors
from eventing.store.errors import RedisError

GATHER_S = 0.005  # after a notification, so that a busy gateway reports many events at once
log = logging.getLogger(__name__)


def events_forward(
    noted: Mapping[str, Iterable[str]], ours: Mapping[str, Vector] | None = None, *, reopen: Collection[str] = ()
) -> None:
    """Have new events forwarded: `noted` are the RPs that have some, by linked peer. Raises redis.RedisError.

    Args:
        ours: the vectors of these RPs with the new events, as of `held`; None: they are read.
        reopen: those of the RPs whose links are reopened for what their peers lack (overlay/reopening.py).
    """
    now = time.time()
    links = watermarks.links_of_peers(noted)
    if ours is None:
        rps = list(dict.fromkeys(rp for some in links.values() for rp in some))
        ours = {rp: held(head) for rp, head in zip(rps, federated.heads(rps), strict=True) if head is not None}
    here = ours
    waking: dict[str, list[str]] = {}
    announced: dict[str, list[str]] = {}
    for peer, some in links.items():
        again = [rp for rp in some if rp in reopen and rp in here]
        if again:
            some |= watermarks.links_change(peer, again, lambda rp, link: broadcast.reopened(link, here[rp]))
        for rp, link in some.items():
            plan = link_planning.plan(link, ours[rp], now=now) if rp in ours else LinkPlan.NOTHING
            if plan is LinkPlan.VECTOR and not link_planning.asks(link, now=now):
                announced.setdefault(peer, []).append(rp)
            elif plan is not LinkPlan.NOTHING:
                waking.setdefault(peer, []).append(rp)
    wakeups.wake_all(waking)
    if announced and waiting_vectors.vectors_note(announced, now):
        wakeups.wake_all(announced)


def vectors_still_wait(peer: str, rps: Mapping[str, float]) -> bool:
    """Return whether the peer lacks something at these RPs, whose vectors were taken since the given times. These wait again; a peer
    has mostly received by now what was announced on its link.
    """
    links = watermarks.links_read(peer, list(rps))
    now = time.time()
    waiting: dict[float, list[str]] = {}
    for (rp, since), head in zip(rps.items(), federated.heads(list(rps)), strict=True):
        if head is not None and link_planning.plan(links[rp], held(head), now=now) is not LinkPlan.NOTHING:
            waiting.setdefault(since, []).append(rp)
    for since, some in waiting.items():
        waiting_vectors.vectors_note({peer: some}, since)
    return bool(waiting)


def timers_expired(peer: str, rps: Sequence[str]) -> bool:
    """Return whether a turn is needed for expired timers of the links at these RPs. They are set again for it; timers that wait for
    what has arrived end here.
    """
    now = time.time()
    ours = {rp: held(head) for rp, head in zip(rps, federated.heads(rps), strict=True) if head is not None}

    def ended(rp: str, link: Link) -> Link:
        timer = link.timer
        if timer.ask_at is None or now < timer.ask_at or not vectors.covers(ours[rp], timer.awaited):
            return link
        return broadcast.due(link, ours=ours[rp], now=now, jitter=random.random()).link  # noqa: S311 - not a secret

    needed: list[str] = []
    announced: list[str] = []
    for rp, link in watermarks.links_change(peer, ours, ended).items():
        plan = link_planning.plan(link, ours[rp], now=now)
        asks = link_planning.asks(link, now=now) or (link.timer.ask_at is not None and link.timer.ask_at <= now)
        if plan is LinkPlan.RUNS or asks:
            needed.append(rp)
        elif plan is LinkPlan.VECTOR:
            announced.append(rp)
    watermarks.check_again(peer, needed, now)
    waiting_vectors.vectors_note({peer: announced}, now)
    return bool(needed) or peer_state.is_dirty(peer)


def held(head: LogHead) -> dict[str, int]:
    """Return the vector of all events in a log, with own ones that are sealed when they are forwarded."""
    vector = dict(head.foreign)
    if head.own:
        vector[Feed(config().domain, head.epoch).key] = head.own
    return vector


class ForwardingNotifier:
    """Forwarding of the events that one gateway process appends at RPs with links.

    The hot path notes the RP and its peers, two dictionary operations. A dedicated thread then has them forwarded; notes
    made meanwhile are included in its next turn. The sweep covers failures.
    """

    def __init__(self) -> None:
        self._noted: dict[str, set[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waking")

    def appended(self, descriptor: Destination) -> None:
        """Note that events were appended at an RP with links."""
        for peer in descriptor.links:
            noted = self._noted.get(peer)
            if noted is None:
                self._noted[peer] = {descriptor.id}
            else:
                noted.add(descriptor.id)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._notify())

    async def close(self) -> None:
        """Have the noted events forwarded, and stop."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=False)

    async def _notify(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._noted:
                noted, self._noted = self._noted, {}
                await loop.run_in_executor(self._thread, _forwarded, noted)
                await asyncio.sleep(GATHER_S)
        finally:
            self._task = None


def _forwarded(noted: dict[str, set[str]]) -> None:
    try:
        events_forward(noted)
    except RedisError as error:
        log.warning("Peers could not be woken; the sweep will find their backlog: %s", error)

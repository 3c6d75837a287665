"""Upkeep by the clock of a run of the overlay, beside its machines.

It measures the own load and links, shows a picture to gateways, and stores the state that the next run takes up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from django.db import DatabaseError, connection

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.membership.ports import own_load
from eventing.membership.process.link_statements import LinkStatements
from eventing.membership.process.picture import PictureMaker
from eventing.membership.rules.steady_load import steady
from eventing.overlay.aggregates import LoadMeasured
from eventing.overlay.load_rows import DomainLoad
from eventing.overlay.member import OverlayMember
from eventing.store.errors import RedisError
from eventing.store.overlay_pictures import state_store, state_stored

LOAD_S = 60.0
"""Between two measurements of the own load: gossip states it once a minute at most."""
FIRST_LOAD_S = 2.0
STATE_S = 300.0
"""Between two stores of the state. What a crash loses of it, gossip brings again."""
STATE_BYTES_MAX = (
    16 * 1024 * 1024
)  # bound: bytes of a stored state; a larger one is not stored, and the next run begins without
log = logging.getLogger(__name__)


class MemberState(msgspec.Struct, array_like=True):
    """State of the machines that survives a restart.

    Attributes:
        stored_s: when it was stored, seconds since 1970.
        gossip, scores: as these machines dump it.
    """

    stored_s: float
    gossip: dict[str, Any]
    scores: dict[str, Any]


_read = msgpack_reader(MemberState)
_encode = msgspec.msgpack.Encoder().encode


class RunUpkeep:
    """The upkeep of one run.

    Args:
        started_s: seconds since 1970 at the time 0 of the machines.
        rtt_ms: smoothed round-trip times by domain.
        take: hands an input to the member.
    """

    def __init__(
        self,
        member: OverlayMember,
        started_s: float,
        rtt_ms: Callable[[], Mapping[str, float]],
        take: Callable[[Any], None],
    ) -> None:
        self.pictures = PictureMaker(member, started_s, rtt_ms)
        self._links = LinkStatements(member, started_s, take)
        self._member = member
        self._started_s = started_s
        self._take = take
        self._load_at = FIRST_LOAD_S
        self._stated: DomainLoad | None = None
        self._state_at = STATE_S

    def next_at(self) -> float:
        """Return when something is to be done."""
        return min(self._load_at, self._state_at, self.pictures.next_at(), self._links.next_at())

    def due(self, now: float) -> None:
        """Do what is due. Failures of Redis and SQL are logged; all is done again later."""
        if now < self.next_at():
            return
        try:
            if now >= self._load_at:
                self._load_at = now + LOAD_S
                self._measure()
            if now >= self._state_at:
                self._state_at = now + STATE_S
                self.store(now)
            self.pictures.due(now)
            self._links.due(now)
        except RedisError as error:
            log.warning("overlay: what the overlay shows could not be stored: %s", error)
        except DatabaseError as error:
            connection.close()
            log.warning("overlay: the own load or links could not be read: %s", error)

    def store(self, now: float) -> None:
        """Store the state of the machines. Raises redis.RedisError."""
        gossip, scores = self._member.gossip, self._member.scores
        if gossip is None or scores is None:
            return
        data = _encode(MemberState(self._started_s + now, gossip.dump(), scores.dump(now)))
        if len(data) <= STATE_BYTES_MAX:
            state_store(data)

    def _measure(self) -> None:
        if own_load.provider is None:
            return
        measured = msgspec.structs.replace(own_load(), links=len(self._member.links.active))
        self._stated = steady(measured, self._stated)
        self._take(LoadMeasured(self._stated))


def state_load(member: OverlayMember, started_s: float) -> None:
    """Give a new member the state of the run before, if there is one. Raises redis.RedisError."""
    stored = state_stored()
    if stored is None or member.gossip is None or member.scores is None:
        return
    try:
        state = _read(stored)
        member.gossip.load(state.gossip)
        member.scores.load(state.scores, state.stored_s - started_s)
    except (Undecodable, KeyError, TypeError, ValueError) as error:
        log.warning("overlay: the state of the last run is not understood: %s", error)

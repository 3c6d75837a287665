"""Questions to the other domains that serve an RP for their present readers, while this domain balances its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from eventing.peering.selectors.partners import Partner, partner_get
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.endpoints import LOAD
from eventing.peering.wire.messages import BadMessage
from eventing.replication.loads.messages import inquiry, statement_read
from eventing.replication.rules.ranking import ReplicaServer

ASKED_MAX = 48  # bound: domains asked for their loads at once; of the others the overlay's figures count
ASK_S = (
    2.0  # bound: seconds of all questions about one RP; of a domain that has not answered the overlay's figure counts
)
ASKING = 8  # questions under way at once


def loads_asked(rp: str, servers: Sequence[ReplicaServer], own: str) -> list[ReplicaServer]:
    """Return the domains that serve an RP with their present loads, as far as they answer. Blocks for about ASK_S at most.

    A stated load counts up to the domain's capacity. Domains of older versions, and those that this domain has no link with, do not answer.
    """
    asked = [one for server in servers if server.domain != own and (one := partner_get(server.domain)) is not None]
    asked = asked[:ASKED_MAX]
    until, body = time.monotonic() + ASK_S, inquiry(rp)
    answers: dict[str, int | None] = {}
    if asked:
        with ThreadPoolExecutor(min(ASKING, len(asked)), thread_name_prefix="loads") as threads:
            found = threads.map(lambda one: _ask(one, body, until), asked)
            answers = {one.name: answer for one, answer in zip(asked, found, strict=True)}
    return [_answered(server, answers.get(server.domain)) for server in servers]


def _answered(server: ReplicaServer, sessions: int | None) -> ReplicaServer:
    return server if sessions is None else server._replace(sessions=min(sessions, server.capacity), fresh=True)


def _ask(partner: Partner, body: bytes, until: float) -> int | None:
    left_s = until - time.monotonic()
    try:
        return statement_read(call(partner.url, partner.name, LOAD, body, left_s)) if left_s > 0 else None
    except (PeerError, BadMessage):
        return None
    finally:
        connection.close()

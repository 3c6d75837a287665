"""Paths gathered: what this domain knows of an event's path, and the answers of the domains that it exchanges the event's RP with.

Nothing here is proved: a path is a list of names that the domains on it wrote beside the event, outside of what is
signed. Each hop is therefore shown with the domains that state it; the receiver of a hop is the one that can know it.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import connection

from eventing.access.rules.rates import Bucket, Rate
from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import RateLimited
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.timestamps import timestamp
from eventing.membership.selectors.directory import zones_of
from eventing.overlay import exchange
from eventing.peering.selectors.partners import Partner, partner_get
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.endpoints import PATH
from eventing.peering.wire.messages import BadMessage
from eventing.replication.joining.presenters import replicas_shown
from eventing.replication.paths.messages import PathReply, question, reply_read
from eventing.replication.paths.places import KnownPath
from eventing.replication.selectors.forwarding import participations
from eventing.replication.shapes import EventHop, EventPathAnswer, PathDomain
from eventing.rps.models import RendezvousPoint
from eventing.rps.shapes import ParticipantAnswer

ASKED_MAX = 32  # bound: domains asked for one path; the others are shown as not asked
ASK_S = 3.0  # bound: seconds of all questions for one path; a domain that has not answered by then is shown so
ASKING = 8  # questions under way at once
# Each costs other domains a request and a few reads.
ASKS = Rate(
    per_s=2.0, window_s=10.0
)  # bound: paths for which a process asks other domains: 2 per second, 20 at once; 429
STORED_MS_MAX = 253_402_300_799_999  # the end of the year 9999


class _Asks:
    """The rate at which this process asks other domains, held under `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bucket = Bucket(ASKS)


_asks = per_process(_Asks)


class CollectedReply(NamedTuple):
    """Answer of one domain; `problem` is a sentence where it did not, or not credibly."""

    answer: PathReply | None
    problem: str


def path_shown(
    row: RendezvousPoint, known: KnownPath, replies: Mapping[str, CollectedReply] | None = None
) -> EventPathAnswer:
    """Return the path of an event as answers show it.

    Args:
        replies: answers by domain; None where nobody was asked.
    """
    arrivals = {config().domain: (known.path, known.stored_ms or 0)} if known.held else {}
    for domain, one in (replies or {}).items():
        if one.answer is not None and one.answer.held:
            arrivals[domain] = (tuple(one.answer.path), one.answer.stored_ms)
    stored = {domain: stored_ms for domain, (_, stored_ms) in arrivals.items()}
    # Without a path, and of another origin: the seal with the path has left the history there.
    routes = {domain: (*path, domain) for domain, (path, _) in arrivals.items() if path or domain == known.origin}
    holders = _holders(replies or {})
    shown = replicas_shown(row)
    passed = dict.fromkeys(name for route in routes.values() for name in route)
    zones = zones_of([*passed, *(one.domain for one in shown)])
    domains = [
        _participant(one, known, (replies or {}).get(one.domain), routes, stored, holders, zones.get(one.domain))
        for one in shown
    ]
    named = {one.domain for one in domains}
    domains += [PathDomain.named(name, zones.get(name)) for name in passed if name not in named]
    return EventPathAnswer(
        rp=row.id,
        feed=known.feed,
        sequence=known.sequence,
        origin=known.origin,
        offset=known.offset,
        route=list(routes.get(config().domain, [])),
        hops=_hops(routes, stored),
        domains=domains,
        asked=replies is not None,
    )


def path_ask(rp: str, known: KnownPath) -> dict[str, CollectedReply]:
    """Ask the domains that events of the RP are exchanged with for the path. Blocks for ASK_S at most. Returns their answers.

    Raises RateLimited.
    """
    _count()
    links = participations([rp])[rp].links
    partners = [one for name in links if (one := partner_get(name)) is not None][:ASKED_MAX]
    if not partners:
        return {}
    until = time.monotonic() + ASK_S
    body = question(rp, known.feed, known.sequence)
    with ThreadPoolExecutor(min(ASKING, len(partners)), thread_name_prefix="paths") as threads:
        answers = threads.map(lambda one: _ask(one, body, until, known), partners)
        return {one.name: reply for one, reply in zip(partners, answers, strict=True)}


def _count() -> None:
    held = _asks()
    with held.lock:
        if held.bucket.take(1, time.monotonic()):
            return
    raise RateLimited("Too many paths are asked for. Try again, or leave out `ask`.", retry_after_s=2)


def _ask(partner: Partner, body: bytes, until: float, known: KnownPath) -> CollectedReply:
    left_s = until - time.monotonic()
    try:
        if left_s <= 0:
            return CollectedReply(None, "It was not asked in time.")
        answer = reply_read(call(partner.url, partner.name, PATH, body, left_s))
    except PeerError as error:
        return CollectedReply(None, error.detail)
    except BadMessage as error:
        return CollectedReply(None, str(error))
    finally:
        connection.close()
    problem = _problem(answer, partner.name, known)
    return CollectedReply(None if problem else answer, problem)


def _problem(answer: PathReply, domain: str, known: KnownPath) -> str:
    """Describe why an answer cannot be true, in a sentence; empty if it can."""
    if answer.stored_ms > STORED_MS_MAX:
        return "It states a time that cannot be."
    if not all(DOMAIN_PATTERN.fullmatch(name) for name in (*answer.path, *answer.holders)):
        return "It names what is no domain."
    if not answer.path:
        return ""
    if domain in answer.path:
        return "It states a path to itself through itself."
    origin = known.origin or answer.path[0]
    return exchange.path_problem(answer.path, origin, answer.path[-1])


def _hops(routes: Mapping[str, tuple[str, ...]], stored: Mapping[str, int]) -> list[EventHop]:
    """Return the hops of all routes, each with the domains that state it; those by their receivers have a time."""
    by: dict[tuple[str, str], list[str]] = {}
    for domain, route in routes.items():
        for hop in itertools.pairwise(route):
            by.setdefault(hop, []).append(domain)
    return [
        EventHop(
            source=source,
            target=target,
            stated_by=domains,
            at=_moment(stored.get(target, 0)) if target in domains else None,
        )
        for (source, target), domains in by.items()
    ]


def _participant(
    shown: ParticipantAnswer,
    known: KnownPath,
    reply: CollectedReply | None,
    routes: Mapping[str, tuple[str, ...]],
    stored: Mapping[str, int],
    holders: Mapping[str, list[str]],
    zone: str | None,
) -> PathDomain:
    """Return a participant with what is known of the event there: best from itself, then from its vector, then from others."""
    name, here = shown.domain, shown.domain == config().domain
    held: bool | None = known.held if here else None
    if reply is not None and reply.answer is not None:
        held = reply.answer.held
    elif not here and shown.link is not None:
        held = shown.vector.get(known.feed, 0) >= known.sequence
    elif not here and (name in holders or any(name in route for route in routes.values())):
        held = True
    return PathDomain(
        domain=name,
        zone=zone,
        role=shown.role,
        link=shown.link,
        held=held,
        route=list(routes[name]) if name in routes else None,
        stored_at=_moment(stored.get(name, 0)),
        answered=None if here or reply is None else reply.answer is not None,
        detail="" if reply is None else reply.problem,
        known_from=holders.get(name, []),
    )


def _holders(replies: Mapping[str, CollectedReply]) -> dict[str, list[str]]:
    """Return the domains that hold the event by the answers of others, each with the domains that state it."""
    found: dict[str, list[str]] = {}
    for sender, one in replies.items():
        for domain, held in one.answer.holders.items() if one.answer is not None else ():
            if held:
                found.setdefault(domain, []).append(sender)
    return found


def _moment(stored_ms: int) -> str | None:
    return timestamp(datetime.fromtimestamp(stored_ms / 1000, UTC)) if stored_ms else None

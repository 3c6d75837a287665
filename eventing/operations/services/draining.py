"""Draining of this domain: it hands over the homes of its RPs, the delivery of shared subscriptions, and its readers.

The life of a drain: an administrator begins it, until a time -> each sweep hands over homes to participants, points readers to other
domains, has peers hold pull subscriptions that only this domain holds, and leaves the delivery of shared ones to their other holders
(`draining`, read where these are decided) -> of a domain that closes, the subscribers that are left are notified -> everything is
handed over: `done_at`, reported -> it ends at its time, or is ended. What other domains hold no part of stays: it is counted. While it lasts
this domain takes over no home. The state is in SQL, so a drain continues after a restart.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import ApplicationError, Conflict, Forbidden, InvalidRequest, NotFound
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp
from eventing.operations.models import DomainDrain
from eventing.operations.rules.draining import homes_in_order
from eventing.operations.selectors.draining import (
    drain_active,
    drain_latest,
    home_candidates,
    own_homes,
    readers_left,
)
from eventing.operations.services.drain_preview import endpoints_left
from eventing.operations.shapes import DrainAnswer, DrainRefusal
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.replication.homes.moving import home_hand_over
from eventing.replication.rules.reader_moves import BY_DRAINING, MOVE_S_MAX
from eventing.replication.selectors.replica_servers import replica_servers
from eventing.replication.services.reader_moves import reader_moves, readers_move
from eventing.rps.models import RendezvousPoint
from eventing.store.errors import RedisError
from eventing.subscriptions.push.services.closing import endpoints_close
from eventing.subscriptions.selectors.alone import shareable
from eventing.subscriptions.services.subscription_sharing import subscription_share
from eventing.subscriptions.sharing.shared_subscriptions import delivering_here

UNTIL_S_MAX = 7 * 86_400  # bound: seconds until the end of a drain; it is refused: 422 `invalid-request`
SWEEP_S = 15.0  # bound: seconds of hand-overs in one sweep; the other RPs are left to the next sweep
SHARED_AT_ONCE = 100  # bound: subscriptions that one sweep shares; the others are left to the next sweep
CLOSING_S = 60.0  # seconds before the end of a drain of a domain that closes in which subscribers are notified, whatever is left
REFUSED_MAX = 1000  # bound: RPs whose refusals are stored; the others are asked for again with each sweep
READERS_S = 600.0  # a move of readers while draining; begun anew when it is over
SPREAD_S = 10.0
FOLLOWED_S = 30.0
"""Seconds after which readers that are still here count as those who do not follow: the drain does not wait for them."""
SHOWN_MAX = 100  # bound: refusals in an answer; further ones are counted
logger = logging.getLogger(__name__)


def drain_begin(
    *, principal: Principal, until: datetime, closes: bool = False, now: datetime | None = None
) -> DrainAnswer:
    """Begin a drain, or change the end of the one under way, with RPs that were refused tried anew.

    Args:
        closes: the domain stops for good: subscribers of what nobody takes over are notified once all else is done, or CLOSING_S
            before the end.

    Raises Forbidden (not an administrator), InvalidRequest.
    """
    now = now or timezone.now()
    require_drain_administrator(principal)
    if not 0 < (until - now).total_seconds() <= UNTIL_S_MAX:
        raise InvalidRequest(f"until is in the future, at most {UNTIL_S_MAX} s from now.")
    with change(now) as outbox:
        began = drain_active(now=now)
        began_at = began.began_at if began is not None else now
        handed_over = began.handed_over if began is not None else 0
        counted = {"closed": began.closed, "shared": began.shared} if began is not None else {"closed": 0, "shared": 0}
        DomainDrain.objects.update_or_create(
            id=1,
            defaults={
                "by": principal.identity,
                "began_at": began_at,
                "until": until,
                "ended_at": None,
                "done_at": None,
                "handed_over": handed_over,
                "refusals": {},
                "closes": closes,
                **counted,
            },
        )
        outbox.act("domain.drain", principal, "domain", "", until=timestamp(until), closes=closes)
        data = {"state": "draining", "until": timestamp(until), "by": principal.identity, "handed_over": handed_over}
        outbox.event(events.DOMAIN_DRAINING, DOMAIN_ADMIN, data)
    return drain_shown(now=now)


def drain_end(*, principal: Principal, now: datetime | None = None) -> DrainAnswer:
    """End the drain under way: what was handed over stays where it is. Raises Forbidden, Conflict for none."""
    now = now or timezone.now()
    require_drain_administrator(principal)
    with change(now) as outbox:
        drain = drain_active(now=now)
        if drain is None:
            raise Conflict("This domain does not drain.")
        DomainDrain.objects.filter(id=1).update(ended_at=now)
        outbox.act("domain.undrain", principal, "domain", "")
        outbox.event(
            events.DOMAIN_DRAINING,
            DOMAIN_ADMIN,
            {
                "state": "ended",
                "until": timestamp(drain.until),
                "by": principal.identity,
                "handed_over": drain.handed_over,
            },
        )
    return drain_shown(now=now)


def drain_sweep(*, now: datetime | None = None) -> int:
    """Hand over what can be, in the drain under way. Returns how many homes were. Safe to run twice and concurrently."""
    now = now or timezone.now()
    drain = drain_active(now=now)
    if drain is None:
        return 0
    until = time.monotonic() + SWEEP_S
    handed = 0
    for row in own_homes(drain, now).rows:
        if time.monotonic() > until:
            break
        handed += _hand_over(row, drain)
    shared = _subscriptions_leave(drain, now)
    DomainDrain.objects.filter(id=1).update(
        handed_over=drain.handed_over + handed, shared=drain.shared + shared, refusals=drain.refusals
    )
    _readers_leave(drain, now)
    shown = drain_shown(now=now)
    waits = shown.readers and (now - drain.began_at).total_seconds() < FOLLOWED_S
    left = shown.homes or shown.deliveries or waits or shown.subscriptions
    if drain.closes and (not left or (drain.until - now).total_seconds() < CLOSING_S):
        closed = endpoints_close(now=now)
        DomainDrain.objects.filter(id=1).update(closed=F("closed") + closed)
        left = left or endpoints_left(closes=True, now=now)
    if drain.done_at is None and not left:
        with change(now) as outbox:
            DomainDrain.objects.filter(id=1).update(done_at=now)
            outbox.event(
                events.DOMAIN_DRAINING,
                DOMAIN_ADMIN,
                {"state": "done", "until": timestamp(drain.until), "by": drain.by, "handed_over": shown.handed_over},
            )
    return handed


def drain_shown(*, now: datetime | None = None) -> DrainAnswer:
    """Return the state of the latest drain, and what is still to be handed over."""
    now = now or timezone.now()
    drain = drain_latest()
    if drain is None:
        return DrainAnswer("none", None, None, None, 0, 0, 0, 0, 0, [])
    active = drain.ended_at is None and drain.until > now
    state = "ended" if not active else "done" if drain.done_at is not None else "draining"
    homes = own_homes(drain, now)
    refusals = [
        DrainRefusal(rp, domain, reason)
        for rp, tried in sorted(drain.refusals.items())
        for domain, reason in sorted(tried.items())
    ]
    return DrainAnswer(
        state,
        timestamp(drain.began_at),
        timestamp(drain.until),
        None if drain.done_at is None else timestamp(drain.done_at),
        drain.handed_over,
        homes.left,
        homes.staying,
        delivering_here(now=now),
        readers_left(now).total() if active else 0,
        refusals[:SHOWN_MAX],
        drain.closes,
        drain.shared,
        shareable(now).exclude(id__in=list(drain.refusals)).count(),
        endpoints_left(closes=drain.closes, now=now),
        drain.closed,
    )


def _hand_over(row: RendezvousPoint, drain: DomainDrain) -> bool:
    """Hand over the home of an RP to the first participant that takes it; record the refusals of others."""
    tried = dict(drain.refusals.get(row.id, {}))
    for domain in homes_in_order(home_candidates(row), tried):
        try:
            home_hand_over(row, domain, None)
        except ApplicationError as error:
            logger.info("%s does not take over the home of %s: %s", domain, row.id, error.detail)
            if isinstance(error, Conflict | Forbidden | InvalidRequest | NotFound):
                tried[domain] = error.detail[:255]
            continue
        drain.refusals.pop(row.id, None)
        return True
    if tried and (row.id in drain.refusals or len(drain.refusals) < REFUSED_MAX):
        drain.refusals[row.id] = tried
    return False


def _subscriptions_leave(drain: DomainDrain, now: datetime) -> int:
    """Have peers hold the pull subscriptions that only this domain holds; record why others stay. Returns how many were shared."""
    shared = 0
    for one in shareable(now).exclude(id__in=list(drain.refusals)).order_by("id")[:SHARED_AT_ONCE]:
        try:
            subscription_share(one.id, now=now)
        except RedisError as error:
            logger.info("Subscriptions are shared with the next sweep: %s", error)
            break
        except ApplicationError as error:
            if len(drain.refusals) < REFUSED_MAX:
                drain.refusals[one.id] = {config().domain: error.detail[:255]}
        else:
            shared += 1
    return shared


def _readers_leave(drain: DomainDrain, now: datetime) -> None:
    """Point the readers of RPs that other domains serve to these."""
    try:
        moving = {move.rp for move in reader_moves(now=now) if move.by == BY_DRAINING}
        until = min(drain.until, now + timedelta(seconds=min(READERS_S, MOVE_S_MAX)))
        left = [rp for rp, _ in readers_left(now).most_common() if rp not in moving]
        for rp, servers in replica_servers(left).items():
            if servers:
                reason = "This domain drains."
                readers_move(rp=rp, share=1.0, until=until, spread_s=SPREAD_S, reason=reason, by=BY_DRAINING, now=now)
    except (ApplicationError, RedisError) as error:
        logger.info("Readers are pointed elsewhere with the next sweep: %s", error)


def require_drain_administrator(principal: Principal) -> None:
    """Raise Forbidden unless the principal may begin and end drains."""
    if not (principal.admin and principal.local) or principal.narrowed:
        raise Forbidden("Draining requires an administrator's token of this domain that is not narrowed.")

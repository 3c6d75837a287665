"""Quarantine: an origin whose events are refused here until an administrator decides otherwise.

It begins when an origin is proved to have told two stories (peering/services/evidence.py). What it published before stays; its
later runs are refused, whoever carries them. It ends by an administrator's word only: proofs do not age.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Forbidden, NotFound
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.models import Evidence, Quarantine
from eventing.peering.models.quarantine import WHY_CHARS
from eventing.peering.selectors.quarantines import quarantined_origins

SEEN_S = 1.0  # how long a process believes what it read: so soon every process refuses, or takes again
log = logging.getLogger(__name__)

_seen: tuple[float, frozenset[str]] = (float("-inf"), frozenset())


def quarantined(origin: str) -> bool:
    """Whether the origin's events are refused here; asked per run, so read from SQL at most once in SEEN_S."""
    global _seen
    read_at, origins = _seen
    if time.monotonic() - read_at > SEEN_S:
        origins = quarantined_origins()
        _seen = (time.monotonic(), origins)
    return origin in origins


def quarantine(origin: str, why: str, *, evidence: Evidence | None = None, now: datetime | None = None) -> bool:
    """Refuse the origin's events from now on, and tell `domain.admin`. Returns whether it was not in quarantine before.

    This domain itself is never quarantined here: a proof against it is an operator's matter, and is logged.
    """
    now = now or timezone.now()
    if origin == config().domain:
        log.error("There is a proof that this domain told two stories: %s. Was it restored, or its key copied?", why)
        return False
    with change(now) as outbox:
        defaults = {"why": why[:WHY_CHARS], "evidence": evidence, "since": now}
        _, made = Quarantine.objects.get_or_create(origin=origin, defaults=defaults)
        if made:
            outbox.event(events.ORIGIN_QUARANTINED, DOMAIN_ADMIN, {"origin": origin, "why": why[:WHY_CHARS]})
    _look_again()
    return made


def quarantine_lift(*, principal: Principal, origin: str, now: datetime | None = None) -> None:
    """Take the origin's events again. The proofs are kept, and the same proof does not put it back.

    Raises Forbidden for all but administrators whose token is not narrowed, and NotFound.
    """
    now = now or timezone.now()
    if not principal.admin or principal.narrowed:
        raise Forbidden("Only an administrator's token that is not narrowed lifts a quarantine.")
    with change(now) as outbox:
        if not Quarantine.objects.filter(origin=origin).delete()[0]:
            raise NotFound(f"The domain {origin} is not in quarantine here.")
        outbox.event(events.ORIGIN_RELEASED, DOMAIN_ADMIN, {"origin": origin})
        outbox.act("quarantine.lift", principal, "domain", origin)
    _look_again()


def _look_again() -> None:
    global _seen
    _seen = (float("-inf"), frozenset())

"""Quarantine: an origin whose events are refused here until an administrator lifts the quarantine.

It begins when an origin is proved to have equivocated (peering/services/evidence.py). Events that it published before
stay; its later runs are refused, whichever domain carries them. Only an administrator ends it: proofs do not age.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import Forbidden, NotFound
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.models import Evidence, Quarantine
from eventing.peering.models.quarantine import WHY_CHARS
from eventing.peering.selectors.quarantines import quarantined_origins
from eventing.peering.selectors.recent_keys import Recent

log = logging.getLogger(__name__)


@per_process
def _recent() -> Recent[frozenset[str]]:
    return Recent(lambda _: quarantined_origins())


def quarantined(origin: str) -> bool:
    """Return whether the origin's events are refused here; called for each run, so read from SQL at most once a second."""
    return origin in _recent().get("")


def quarantine(origin: str, why: str, *, evidence: Evidence | None = None, now: datetime | None = None) -> bool:
    """Refuse the origin's events from now on, and report that on `domain.admin`. Returns whether the quarantine is new.

    This domain itself is never quarantined here: a proof against it is for its operator, and is logged.

    Args:
        why: one sentence for administrators.
        evidence: the proof; None if put by hand.
    """
    now = now or timezone.now()
    if origin == config().domain:
        log.error(
            "There is a proof that this domain equivocated: %s. Check whether it was restored from a copy, or "
            "its key copied.",
            why,
        )
        return False
    with change(now) as outbox:
        defaults = {"why": why[:WHY_CHARS], "evidence": evidence, "since": now}
        _, made = Quarantine.objects.get_or_create(origin=origin, defaults=defaults)
        if made:
            outbox.event(events.ORIGIN_QUARANTINED, DOMAIN_ADMIN, {"origin": origin, "why": why[:WHY_CHARS]})
    _recent().forget()
    return made


def quarantine_lift(*, principal: Principal, origin: str, now: datetime | None = None) -> None:
    """Accept the origin's events again. The proofs are kept, and the same proof does not renew the quarantine.

    Raises Forbidden for all but administrators whose token is not narrowed, and NotFound.
    """
    now = now or timezone.now()
    if not principal.admin or principal.narrowed:
        raise Forbidden("Lifting a quarantine requires an administrator's token that is not narrowed.")
    with change(now) as outbox:
        if not Quarantine.objects.filter(origin=origin).delete()[0]:
            raise NotFound(f"The domain {origin} is not in quarantine here.")
        outbox.event(events.ORIGIN_RELEASED, DOMAIN_ADMIN, {"origin": origin})
        outbox.act("quarantine.lift", principal, "domain", origin)
    _recent().forget()

"""Write of the switches of the planner of routes, by people."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.replication.models import RoutesSwitch
from eventing.replication.selectors.route_modes import DOMAIN, routes_mode, routes_switches
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get


def routes_switch(
    *, reference: str | None, principal: Principal, mode: str | None, now: datetime | None = None
) -> RoutesSwitch:
    """Switch the planner of routes, for an RP or with None for the domain. For operators. It takes effect with the next look.

    An RP is switched for this domain alone: each participant plans for its own links. Switches of RPs that have ended are removed.

    Args:
        mode: of MODES; None: as the domain, or its setting.

    Raises Forbidden, NotFound, Gone.
    """
    require_operator(principal)
    rp = DOMAIN if reference is None else rendezvous_point_get(reference).id
    now = now or timezone.now()
    with change(now) as outbox:
        row = RoutesSwitch.objects.select_for_update().filter(rp=rp).first()
        before = row.mode if row is not None else ""
        row = row or RoutesSwitch(rp=rp)
        row.mode, row.changed_at, row.changed_by = mode or "", now, principal.identity
        row.save()
        ended = RoutesSwitch.objects.exclude(rp=DOMAIN).exclude(rp__in=RendezvousPoint.objects.values("id"))
        ended.delete()
        data = {"before": before, "after": row.mode, "in_force": routes_mode(rp, routes_switches())}
        about = {"rp": rp or None, **data, "by": principal.identity}
        outbox.event(events.ROUTES_SWITCHED, rp or DOMAIN_ADMIN, about, domain_too=bool(rp))
        outbox.act("routes.switch", principal, "rp" if rp else "domain", rp or "routes", **data)
    return row

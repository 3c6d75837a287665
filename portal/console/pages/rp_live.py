"""Endpoints for the script of an RP's page beside the REST interface: the last hour, and the sealing of feeds."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from eventing.conf import config
from eventing.core.events.feeds import Feed
from eventing.core.ids import admin_id
from eventing.core.timestamps import timestamp
from eventing.log import federated
from eventing.replication.selectors.seals import seal_heads
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.descriptors import descriptor_get, descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require
from portal.console.pages.access import current_user, endpoint, principal_of
from portal.console.pages.overview import range_of
from portal.console.rp_history import rp_history


@endpoint
@require_GET
def past(request: HttpRequest, reference: str) -> JsonResponse:
    """Answer the history of the administrative RP in `?range=` (rp_history). For principals who may read that RP."""
    row = rendezvous_point_get(reference)
    require(descriptor_get(admin_id(row.id)), principal_of(current_user(request)), "subscribe")
    return JsonResponse(rp_history(row.id, range_of(request)))


@endpoint
@require_GET
def seals(request: HttpRequest, reference: str) -> JsonResponse:
    """Answer the sealing of the own feed (`_sealing`). For principals who may describe the RP."""
    row = rendezvous_point_get(reference)
    require(descriptor_of(row), principal_of(current_user(request)), "describe")
    return JsonResponse(_sealing(row))


def _sealing(row: RendezvousPoint) -> dict[str, Any]:
    """`own`: {"feed", "last", "sealed", "at"} of the own feed in this epoch (sequences; `at` of the newest seal), null before
    anything was published; `others`: [{"feed", "last"}, ...]; `epochs`: of ended ones, [{"epoch", "sealed", "at"}, ...].
    """
    (head,) = federated.heads([row.id])
    heads = {one.epoch: one for one in seal_heads(row.id)}
    if head is None:
        return {"own": None, "others": [], "epochs": []}
    newest = heads.pop(head.epoch, None)
    own = {
        "feed": Feed(config().domain, head.epoch).key,
        "last": head.own,
        "sealed": head.sealed,
        "at": timestamp(newest.sealed_at) if newest else None,
    }
    return {
        "own": own if head.own else None,
        "others": [{"feed": feed, "last": last} for feed, last in sorted(head.foreign.items())],
        "epochs": [{"epoch": one.epoch, "sealed": one.last, "at": timestamp(one.sealed_at)} for one in heads.values()],
    }

"""The console's pages about one rendezvous point. Each view reads the request, makes one call, and answers."""

from __future__ import annotations

import json
import math
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from eventing.conf import config
from eventing.core.events.ack_level import Ack
from eventing.core.events.positions import LogState
from eventing.core.ids import admin_id
from eventing.core.principals import Principal
from eventing.core.roles import operates, oversees
from eventing.intakes.rules.formats import FORMATS
from eventing.log import control
from eventing.operations.selectors.lease_notices import rp_notice
from eventing.rps.models import RendezvousPoint
from eventing.rps.ports import discovery_field
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.rules.home_terms import plan_in_force
from eventing.rps.selectors.descriptors import descriptor_get, descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require
from eventing.rps.services.rendezvous_points import rendezvous_point_delete, rendezvous_point_renew
from eventing.sql.leases import renewed_from
from portal.console.pages import words
from portal.console.pages.access import current_user, page, principal_of
from portal.console.pages.creation import create_from
from portal.console.pages.forms import LeaseForm, RendezvousPointForm
from portal.console.pages.watching import loss_rules_given, watch_kinds

RECENT_EVENTS = 100


@page
@require_http_methods(["GET", "POST"])
def rp_create(request: HttpRequest) -> HttpResponse:
    """Create an RP."""
    form = RendezvousPointForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        rp = create_from(request, form)
        if rp is not None:
            shortened = _shortened(rp.granted_s, form.wanted()["lease_s"])
            messages.success(request, f"Created. {rp_notice(rp, None)}{shortened}")
            return redirect("portal:rp", rp.id)
    return render(request, "portal/rp_create.html", _creation(form), status=400 if form.errors else 200)


@page
@require_GET
def rp(request: HttpRequest, reference: str) -> HttpResponse:
    """Show one RP: its facts; the script shows the rest live. The field `Link` names its WebSub hub and topic."""
    principal = principal_of(current_user(request))
    row = rendezvous_point_get(reference)
    descriptor = descriptor_of(row)
    require(descriptor, principal, "describe")
    response = render(request, "portal/rp.html", {**_facts(row), **_rights(row, descriptor, principal)})
    if link := discovery_field(row.id):
        response["Link"] = link
    return response


@page
@require_POST
def rp_renew(request: HttpRequest, reference: str) -> HttpResponse:
    """Renew the lease."""
    form = LeaseForm(request.POST)
    if form.is_valid():
        asked_s = form.seconds("lease")
        lease = rendezvous_point_renew(
            reference=reference, principal=principal_of(current_user(request)), lease_s=asked_s
        )
        messages.success(request, "The lease is renewed." + _shortened(lease.granted_s, asked_s))
    else:
        messages.error(
            request, "The lease was not renewed: enter a whole number of minutes, hours or days, at least 1."
        )
    return redirect("portal:rp", reference)


@page
@require_http_methods(["GET", "POST"])
def rp_delete(request: HttpRequest, reference: str) -> HttpResponse:
    """Delete an RP after a page that lists the losses: for browsers without scripts."""
    principal = principal_of(current_user(request))
    row = rendezvous_point_get(reference)
    require(descriptor_of(row), principal, "administer")
    if request.method == "POST":
        rendezvous_point_delete(reference=reference, principal=principal)
        messages.success(request, f"{words.label(row)} is deleted.")
        return redirect("portal:rp-list")
    log = control.log_state(row.id)
    return render(request, "portal/rp_delete.html", {"rp": row, "label": words.label(row), "held": _held(log)})


def _creation(form: RendezvousPointForm) -> dict[str, Any]:
    return {"form": form, "name_prefix": f"/{config().domain}/"}


def _shortened(granted_s: int, asked_s: int | None) -> str:
    """Return the addition to a message when the domain granted less than was requested."""
    if asked_s is None or granted_s >= asked_s:
        return ""
    return f" The lease is {words.duration(granted_s)}, the longest that this domain grants."


def _rights(row: RendezvousPoint, descriptor: Descriptor, principal: Principal) -> dict[str, bool]:
    """Return what the page offers. A replica is changed, renewed and deleted at its home."""
    administers = descriptor.allows(principal, "administer")
    return {
        "may_administer": administers,
        "may_change": administers and not row.home,
        "may_publish": descriptor.allows(principal, "publish"),
        "may_search": descriptor.allows(principal, "history"),
        "may_read": descriptor.allows(principal, "subscribe"),
        "may_watch": descriptor_get(admin_id(row.id)).allows(principal, "subscribe"),
        "may_oversee": oversees(principal),
        "may_operate": operates(principal),
    }


def _facts(row: RendezvousPoint) -> dict[str, Any]:
    log = control.log_state(row.id)
    return {
        "rp": row,
        "succession": plan_in_force(row.home_record),
        "label": words.label(row),
        "log": log,
        "recent": _recent(log),
        "held": _held(log),
        "held_events": f"{_held(log):,}",
        "held_bytes": words.size(log.bytes if log else 0),
        "max_events": f"{row.max_events:,}",
        "max_bytes": words.size(row.max_bytes),
        "max_age": "never" if row.max_age_s is None else words.duration(row.max_age_s),
        "ack_text": words.ack_text(Ack.parse(row.ack)),
        "policy": json.dumps(row.policy, indent=2, ensure_ascii=False),
        "commands": words.commands(words.reference(row)),
        "intake_formats": {one.name: {"about": one.about, "needs": one.secret_needed} for one in FORMATS.values()},
        "watch_kinds": watch_kinds(),
        "loss_rules": loss_rules_given(),
        "renew_form": LeaseForm(lease_s=row.granted_s),
        "renewed_by_use": renewed_from(row) < math.inf,
    }


def _held(log: LogState | None) -> int:
    return log.next - log.first if log else 0


def _recent(log: LogState | None) -> str:
    """Return the cursor before the newest RECENT_EVENTS events."""
    if log is None:
        return "earliest"
    return f"{log.epoch}:{max(log.first - 1, log.next - 1 - RECENT_EVENTS)}"

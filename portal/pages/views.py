"""The console's pages about rendezvous points. Each view reads the request, makes one call, and answers."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from eventing.conf import config
from eventing.core.descriptor import Ack
from eventing.core.errors import Forbidden, HeraldError
from eventing.core.names import NAME_CHARS_MAX, is_id
from eventing.core.positions import LogState
from eventing.core.principals import Principal
from eventing.log import control
from eventing.models import RendezvousPoint
from eventing.selectors.console import rendezvous_points_named
from eventing.selectors.descriptors import descriptor_of
from eventing.selectors.rendezvous_points import rendezvous_point_get, rendezvous_points_page
from eventing.services.access import require
from eventing.services.rendezvous_points import (
    rendezvous_point_create,
    rendezvous_point_delete,
    rendezvous_point_renew,
)
from portal.auditing import refusal_of_form
from portal.pages import words
from portal.pages.access import current_user, page, principal_of
from portal.pages.forms import LeaseForm, RendezvousPointForm

PAGE_ROWS = 50
RECENT_EVENTS = 100
EXAMPLE_NAME = "hello/world"


@page
@require_GET
def rp_list(request: HttpRequest) -> HttpResponse:
    """The RPs, newest first, or by name those that begin with `?prefix=`."""
    prefix = request.GET.get("prefix", "").strip()[:NAME_CHARS_MAX]
    cursor = request.GET.get("cursor") or None
    if is_id(prefix):
        return redirect("portal:rp", prefix)
    principal = principal_of(current_user(request))
    if prefix:
        found = rendezvous_points_named(principal=principal, text=prefix, cursor=cursor, limit=PAGE_ROWS)
    else:
        found = rendezvous_points_page(principal=principal, cursor=cursor, limit=PAGE_ROWS)
    rows = [
        {"rp": item.rp, "label": words.label(item.rp), "log": item.log, "count": _count(item.log)}
        for item in found.items
    ]
    start_here = not (rows or prefix or cursor or found.next)
    context = {
        "rows": rows,
        "next": found.next,
        "prefix": prefix,
        "cursor": cursor,
        "start_here": start_here,
        "may_create": principal.permits("administer"),
    }
    if start_here:
        context |= _creation(RendezvousPointForm()) | {"commands": words.commands(EXAMPLE_NAME)}
    return render(request, "portal/rp_list.html", context)


@page
@require_http_methods(["GET", "POST"])
def rp_create(request: HttpRequest) -> HttpResponse:
    """Create an RP."""
    form = RendezvousPointForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        wanted = form.wanted()
        try:
            rp = rendezvous_point_create(principal=principal_of(current_user(request)), **wanted)
        except Forbidden:
            raise  # no other words in the form would help
        except HeraldError as error:
            form.refuse(error)
            refusal_of_form(request, error)
        else:
            messages.success(request, "Created." + _shortened(rp.granted_s, wanted["lease_s"]))
            return redirect("portal:rp", rp.id)
    return render(request, "portal/rp_create.html", _creation(form), status=400 if form.errors else 200)


@page
@require_GET
def rp(request: HttpRequest, reference: str) -> HttpResponse:
    """One RP: its facts, and its events live."""
    principal = principal_of(current_user(request))
    row = rendezvous_point_get(reference)
    require(descriptor_of(row), principal, "describe")
    return render(request, "portal/rp.html", _facts(row, principal))


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
        messages.success(request, "The lease is renewed." + _shortened(lease["granted_s"], asked_s))
    else:
        messages.error(
            request, "The lease was not renewed: it is a whole number of minutes, hours or days, at least 1."
        )
    return redirect("portal:rp", reference)


@page
@require_http_methods(["GET", "POST"])
def rp_delete(request: HttpRequest, reference: str) -> HttpResponse:
    """Delete an RP, after a page that says what is lost."""
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
    """What to add to a message when the domain granted less than was asked."""
    if asked_s is None or granted_s >= asked_s:
        return ""
    return f" The lease is {words.duration(granted_s)}: that is the longest this domain grants."


def _facts(row: RendezvousPoint, principal: Principal) -> dict[str, Any]:
    log = control.log_state(row.id)
    descriptor = descriptor_of(row)
    return {
        "rp": row,
        "label": words.label(row),
        "log": log,
        "recent": _recent(log),
        "held": _held(log),
        "held_events": f"{_held(log):,}",
        "held_bytes": words.size(log.bytes if log else 0),
        "max_events": f"{row.max_events:,}",
        "max_bytes": words.size(row.max_bytes),
        "max_age": "never: they are kept whatever their age"
        if row.max_age_s is None
        else words.duration(row.max_age_s),
        "ack_text": words.ack_text(Ack.parse(row.ack)),
        "policy": json.dumps(row.policy, indent=2, ensure_ascii=False),
        "commands": words.commands(row.name or row.id),
        "renew_form": LeaseForm(lease_s=row.granted_s),
        "may_administer": descriptor.allows(principal, "administer"),
        "may_publish": descriptor.allows(principal, "publish"),
    }


def _held(log: LogState | None) -> int:
    return log.next - log.first if log else 0


def _count(log: LogState | None) -> str:
    return f"{log.next - 1:,}" if log else "0"


def _recent(log: LogState | None) -> str:
    """The cursor that stands before the newest RECENT_EVENTS events."""
    if log is None:
        return "earliest"
    return f"{log.epoch}:{max(log.first - 1, log.next - 1 - RECENT_EVENTS)}"

"""List of rendezvous points: search, order and pages; the script keeps it live."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from eventing.core.names import NAME_CHARS_MAX, is_id
from eventing.core.roles import oversees
from eventing.operations.selectors.console import EXTENTS_MAX
from eventing.operations.selectors.rp_figures import rp_figures
from eventing.rps.selectors.rendezvous_point_lists import Q_CHARS_MAX, SORTS, rendezvous_points_listed_by
from eventing.rps.selectors.rendezvous_points import Listed
from portal.console.pages import words
from portal.console.pages.access import current_user, endpoint, page, principal_of

PAGE_ROWS = 50


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Query of the list. `sort` is one of SORTS; the default is by name in a subtree, else newest first."""

    q: str
    prefix: str
    sort: str
    cursor: str | None

    def address(self, **changes: str | None) -> str:
        """Return the query of this list with `changes`; empty members and the default order are left out."""
        members = {"q": self.q, "prefix": self.prefix, "sort": self.sort, "cursor": self.cursor, **changes}
        if members["sort"] == _default_sort(members["prefix"]):
            members["sort"] = None
        return "?" + urlencode({name: text for name, text in members.items() if text})


@endpoint
@require_GET
def figures(request: HttpRequest) -> JsonResponse:
    """Answer size, readers, lag and alarms of the RPs of `?ids=a,b`, those of a shown page (rp_figures)."""
    ids = request.GET.get("ids", "").split(",", EXTENTS_MAX)[:EXTENTS_MAX]
    found = rp_figures(principal=principal_of(current_user(request)), ids=ids)
    return JsonResponse({rp: asdict(one) for rp, one in found.items()})


@dataclass(frozen=True, slots=True)
class SortLink:
    """Order of the list, as a link in a column's head. `direction` is "" for orders not in use."""

    address: str
    direction: str


@page
@require_GET
def rp_list(request: HttpRequest) -> HttpResponse:
    """Show a page of the RPs that the user may describe: `?q=` (text), `?prefix=` (a subtree of names), `?sort=`,
    `?cursor=`."""
    asked = _asked(request)
    if is_id(asked.q):
        return redirect("portal:rp", asked.q)
    principal = principal_of(current_user(request))
    found = rendezvous_points_listed_by(
        principal=principal,
        sort=asked.sort,
        text=asked.q,
        prefix=asked.prefix or None,
        cursor=asked.cursor,
        limit=PAGE_ROWS,
    )
    context = {
        "asked": asked,
        "rows": [_row(item) for item in found.items],
        "orders": {
            sort: SortLink(asked.address(sort=sort, cursor=None), _direction(sort) if sort == asked.sort else "")
            for sort in SORTS
        },
        "first": asked.address(cursor=None) if asked.cursor else "",
        "next": asked.address(cursor=found.next) if found.next else "",
        "without_prefix": asked.address(prefix=None, cursor=None, sort=None),
        "may_create": principal.permits("administer"),
        "oversees": oversees(principal),
    }
    return render(request, "portal/rp_list.html", context)


def _asked(request: HttpRequest) -> ListQuery:
    prefix = request.GET.get("prefix", "").strip()[:NAME_CHARS_MAX]
    return ListQuery(
        q=request.GET.get("q", "").strip()[:Q_CHARS_MAX],
        prefix=prefix,
        sort=request.GET.get("sort") or _default_sort(prefix),
        cursor=request.GET.get("cursor") or None,
    )


def _default_sort(prefix: str | None) -> str:
    return "name" if prefix else "created"


def _direction(sort: str) -> str:
    return "descending" if sort == "created" else "ascending"


def _row(item: Listed) -> dict[str, Any]:
    return {"rp": item.rp, "label": words.label(item.rp), "log": item.log}

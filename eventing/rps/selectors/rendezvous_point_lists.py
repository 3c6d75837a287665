"""Lists of rendezvous points for operators: in several orders, searched, and as a tree of names.

A page is found by the end of the previous one, so the thousandth costs as much as the first. A search reads names,
titles and beginnings of ids of all RPs in an index that holds nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from django.db.models import Count, Q, QuerySet, Value
from django.db.models.functions import StrIndex, Substr
from django.utils import timezone

from eventing.conf import config
from eventing.core import names
from eventing.core.errors import InvalidCursor, InvalidRequest
from eventing.core.principals import Principal
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import Listed, subtree
from eventing.rps.shapes import BranchAnswer
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of

Sort = Literal["created", "name", "ends"]
SORTS: tuple[Sort, ...] = ("created", "name", "ends")
Q_CHARS_MAX = 100
FEW_MAX = 500  # matches of a search that are looked up one by one
BRANCHES_MAX = 200  # bound: branches of a page of the name tree; the others are on the next page
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRONG = "Use the `next` of the previous page, with the same filters."
_TIMES: Mapping[Sort, tuple[str, bool]] = {"created": ("created_at", True), "ends": ("expires_at", False)}
"""Column of an order by time, and whether the latest is first."""


def rendezvous_points_listed_by(
    *,
    principal: Principal,
    sort: str = "created",
    text: str = "",
    prefix: str | None = None,
    cursor: str | None = None,
    limit: int = LIMIT_DEFAULT,
    now: datetime | None = None,
) -> Page[Listed]:
    """Read a page of the RPs that `principal` may describe.

    Args:
        sort: `created` (newest first), `name` (RPs without a name last), `ends` (earliest end of the lease first).
        text: only RPs with this text in name or title, in any case, or at the beginning of the id.
        prefix: only RPs of this subtree of names.
        limit: bounds the RPs examined for the page, so the page may be short.

    Raises InvalidRequest, InvalidCursor.
    """
    order = _sort(sort)
    rows = RendezvousPoint.objects.filter(expires_at__gt=now or timezone.now())
    if prefix is not None:
        rows = subtree(rows, prefix)
    if text:
        rows = _searched(rows, text)
    found = _by_name(rows, cursor, limit, bool(text)) if order == "name" else _by_time(rows, order, cursor, limit)
    more, found = len(found) > limit, found[:limit]
    seen = [row for row in found if descriptor_of(row).allows(principal, "describe")]
    logs = control.log_states([row.id for row in seen])
    listed = [Listed(row, log) for row, log in zip(seen, logs, strict=True)]
    return Page(listed, _cursor(order, found[-1]) if more else None)


def _sort(text: str) -> Sort:
    for known in SORTS:
        if text == known:
            return known
    raise InvalidRequest(f"sort is one of {', '.join(SORTS)}.")


def _searched(rows: QuerySet[RendezvousPoint], text: str) -> QuerySet[RendezvousPoint]:
    """Filter `rows` by `text`. A few matches are looked up by id; with many, a page fills quickly in any order."""
    if len(text) > Q_CHARS_MAX or "\0" in text:
        raise InvalidRequest(f"q is a text of at most {Q_CHARS_MAX} characters.")
    found = RendezvousPoint.objects.filter(_found(text)).order_by()
    ids = list(found.values_list("id", flat=True)[: FEW_MAX + 1])
    return rows.filter(id__in=ids) if len(ids) <= FEW_MAX else rows.filter(_found(text))


def _found(text: str) -> Q:
    return Q(name__icontains=text) | Q(title__icontains=text) | Q(id__startswith=text.lower())


def _by_time(rows: QuerySet[RendezvousPoint], order: Sort, cursor: str | None, limit: int) -> list[RendezvousPoint]:
    column, latest_first = _TIMES[order]
    if cursor is not None:
        micros, _, rp = key_of(f"rps-{order}", cursor).partition(" ")
        if not (micros.isascii() and micros.isdigit() and len(micros) <= 17):
            raise InvalidCursor(_WRONG)
        moment, beyond = _EPOCH + timedelta(microseconds=int(micros)), "lt" if latest_first else "gt"
        rows = rows.filter(Q(**{f"{column}__{beyond}": moment}) | Q(**{column: moment, f"id__{beyond}": rp}))
    sign = "-" if latest_first else ""
    return list(rows.order_by(f"{sign}{column}", f"{sign}id")[: limit + 1])


def _by_name(rows: QuerySet[RendezvousPoint], cursor: str | None, limit: int, searched: bool) -> list[RendezvousPoint]:
    """Order by name: first RPs with a name, then the others by id; each part has an index."""
    kind, _, key = ("", "", "") if cursor is None else key_of("rps-name", cursor).partition(" ")
    if kind not in ("", "named", "nameless"):
        raise InvalidCursor(_WRONG)
    found: list[RendezvousPoint] = []
    if kind != "nameless":
        named = rows.filter(name__isnull=False).order_by("name")
        found = list((named.filter(name__gt=key) if kind else named)[: limit + 1])
    if len(found) <= limit:
        # Matches of a search must not be looked up among all RPs without a name: the condition is written so that no
        # index of names fits.
        nameless = (rows.exclude(name__gt="") if searched else rows.filter(name=None)).order_by("id")
        found += (nameless.filter(id__gt=key) if kind == "nameless" else nameless)[: limit + 1 - len(found)]
    return found


def _cursor(order: Sort, row: RendezvousPoint) -> str:
    if order == "name":
        return cursor_of("rps-name", f"named {row.name}" if row.name is not None else f"nameless {row.id}")
    moment = getattr(row, _TIMES[order][0])
    return cursor_of(f"rps-{order}", f"{(moment - _EPOCH) // timedelta(microseconds=1)} {row.id}")


def names_below(
    *, prefix: str | None = None, cursor: str | None = None, limit: int = BRANCHES_MAX
) -> Page[BranchAnswer]:
    """Read a page of the branches of the tree of names below `prefix` (None: below this domain), by name, at most
    BRANCHES_MAX.

    Raises InvalidRequest, InvalidCursor.
    """
    limit = min(limit, BRANCHES_MAX)
    path = f"/{config().domain}/"
    if prefix not in (None, "", "/", path):
        path = names.normalise(str(prefix), config().domain)
    rest = Substr("name", len(path) + 1)
    rows = subtree(RendezvousPoint.objects.order_by(), path).exclude(name=path)
    rows = rows.annotate(part=Substr(rest, 1, StrIndex(rest, Value("/")) - 1))
    if cursor is not None:
        rows = rows.filter(part__gt=key_of("names", cursor))
    counted = list(rows.values_list("part").annotate(rps=Count("*")).order_by("part")[: limit + 1])
    more, counted = len(counted) > limit, counted[:limit]
    whole = [f"{path}{part}/" for part, _ in counted]
    exact = dict(RendezvousPoint.objects.filter(name__in=whole).values_list("name", "id"))
    branches = [
        BranchAnswer(part=part, name=name, rps=rps, rp=exact.get(name))
        for (part, rps), name in zip(counted, whole, strict=True)
    ]
    return Page(branches, cursor_of("names", counted[-1][0]) if more else None)

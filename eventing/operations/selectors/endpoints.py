"""The list of all endpoints to which events are sent, for operators and owners: state, backlog, last requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Case, Count, IntegerField, Q, QuerySet, Value, When
from django.utils import timezone

from eventing.core.errors import InvalidCursor, InvalidRequest
from eventing.sql.pages import LIMIT_DEFAULT, cursor_of, key_of
from eventing.store.push_attempts import attempts_read_each
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushDeadLetter, PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import EndpointState
from eventing.subscriptions.push.rules.request_figures import request_figures
from eventing.subscriptions.push.shapes import ListedEndpointAnswer, RequestFiguresAnswer
from eventing.subscriptions.selectors.subscription_lists import SubscriptionLag, listed_by_lag, subscriptions_behind

SORTS = ("attention", "backlog", "next", "id")
TROUBLED = "troubled"
STATES = (TROUBLED, *(one.value for one in EndpointState))
_S = EndpointState
_ATTENTION = (_S.PAUSED, _S.GONE, _S.FAILING, _S.THROTTLED, _S.UNVERIFIED, _S.ACTIVE)
"""States in the order in which they need a person's attention."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NONE = 10**17  # microseconds after every next attempt: where endpoints without one stand
_WRONG = "Use `next` of the previous page, with the same filters."


def endpoints_listed(
    *,
    at: str | None = None,
    owner: str | None = None,
    state: str | None = None,
    sort: str = "attention",
    cursor: str | None = None,
    limit: int = LIMIT_DEFAULT,
    now: datetime | None = None,
) -> tuple[list[ListedEndpointAnswer], str | None, bool]:
    """Return a page of the endpoints, the cursor of the next one, and whether the order covers all that match.

    Args:
        at: only those of subscriptions at the RP with this id.
        owner: only this identity's.
        state: of STATES; `troubled`: those that are not active.
        sort: of SORTS: those that need attention first, the greatest backlog, the soonest next attempt, or by id.

    Raises InvalidRequest, InvalidCursor, redis.RedisError.
    """
    if sort not in SORTS:
        raise InvalidRequest(f"sort must be one of {', '.join(SORTS)}.")
    if state is not None and state not in STATES:
        raise InvalidRequest(f"state must be one of {', '.join(STATES)}.")
    wanted = Q(expires_at__gt=now or timezone.now(), push__isnull=False)
    wanted &= Q() if at is None else Q(at=at)
    wanted &= Q() if owner is None else Q(owner=owner)
    if state is not None:
        wanted &= ~Q(push__state=_S.ACTIVE) if state == TROUBLED else Q(push__state=state)
    rows = Subscription.objects.filter(wanted)
    if sort == "backlog":
        found = listed_by_lag(rows, cursor, limit)
        return _shown(found.items), found.next, found.complete
    ranked = _ranked(rows, sort)
    if cursor is not None:
        ranked = ranked.filter(_after(sort, cursor))
    page = list(ranked.order_by("place", "id")[: limit + 1])
    more, page = len(page) > limit, page[:limit]
    following = cursor_of(f"endpoints-{sort}", f"{_place(page[-1].place)} {page[-1].id}") if more else None
    return _shown(subscriptions_behind(page)), following, True


def _ranked(rows: QuerySet[Subscription], sort: str) -> QuerySet[Any]:
    """Annotate `place`, by which rows are ordered before their id."""
    if sort == "attention":
        whens = [When(push__state=state, then=Value(place)) for place, state in enumerate(_ATTENTION)]
        return rows.annotate(place=Case(*whens, default=Value(len(whens)), output_field=IntegerField()))
    if sort == "next":
        last = _EPOCH + timedelta(microseconds=_NONE)
        return rows.annotate(place=Case(When(push__next_at__isnull=False, then="push__next_at"), default=Value(last)))
    return rows.annotate(place=Value(0))


def _place(value: int | datetime) -> int:
    return value if isinstance(value, int) else (value - _EPOCH) // timedelta(microseconds=1)


def _after(sort: str, cursor: str) -> Q:
    place, _, one = key_of(f"endpoints-{sort}", cursor).partition(" ")
    if not (place.isascii() and place.isdigit() and len(place) <= 18):
        raise InvalidCursor(_WRONG)
    value = _EPOCH + timedelta(microseconds=min(int(place), _NONE)) if sort == "next" else min(int(place), len(_S))
    return Q(place__gt=value) | Q(place=value, id__gt=one)


def _shown(found: Sequence[SubscriptionLag]) -> list[ListedEndpointAnswer]:
    ids = [one.row.id for one in found]
    endpoints = PushEndpoint.objects.in_bulk(ids)
    letters = PushDeadLetter.objects.filter(subscription__in=ids).values_list("subscription").annotate(Count("id"))
    dead = dict(letters.order_by())
    attempts = attempts_read_each([(one.row.at, one.row.id) for one in found])
    return [
        ListedEndpointAnswer.of(
            endpoints[one.row.id],
            subscription=one.row.id,
            rp=one.row.at,
            owner=one.row.owner,
            mode=str(one.row.deliver["mode"]),
            url=str(one.row.deliver.get("url", "")),
            cursor=str(one.cursor),
            lag=one.lag.events,
            lost=one.lag.lost,
            dead_letters=dead.get(one.row.id, 0),
            recent=RequestFiguresAnswer.of(request_figures((it.what, it.verdict, it.took_ms) for it in some)),
        )
        for one, some in zip(found, attempts, strict=True)
        if one.row.id in endpoints
    ]

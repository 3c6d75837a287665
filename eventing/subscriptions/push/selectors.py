"""Reads of push: endpoints as the deliverer needs them, and as their owners see them; dead letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, Window
from django.db.models.functions import Coalesce, RowNumber
from django.utils import timezone

from eventing.core.errors import NotFound
from eventing.core.events.history import HistoryBounds
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushDeadLetter, PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import BY_OWNER, RECEIVING, EndpointStanding, EndpointState
from eventing.subscriptions.rules.delivery_ability import EndpointAbility

PAGE = 1000
REPLAYS_MAX = 1000  # bound: replays that the deliverer holds at once; the others are read when these are done
_AWAKE = (*(one.value for one in EndpointState if one not in (EndpointState.PAUSED, EndpointState.GONE)),)
_COLUMNS = (
    "subscription_id", "subscription__at", "subscription__start", "subscription__owner", "subscription__expires_at",
    "subscription__max_events", "subscription__max_bytes", "subscription__max_age_s", "subscription__deliver",
    "subscription__keeper", "sealed", "generation", "test_id", "allowed_rate", "state", "failures", "failing_since", "next_at",
    "reason", "verified",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint with its subscription, as one row.

    Attributes:
        start: the cursor at which the subscription began.
        expires_at: Unix seconds.
        deliver: the shown options.
        allowed_rate: requests a minute that the endpoint allows; None for no bound.
        keeper: the domain where a shared subscription was created; empty for one that only this domain holds.
    """

    id: str
    rp: str
    start: str
    owner: str
    expires_at: float
    history: HistoryBounds
    deliver: Mapping[str, Any]
    keeper: str
    sealed: bytes
    generation: int
    test_id: str
    allowed_rate: int | None
    standing: EndpointStanding


@dataclass(frozen=True, slots=True)
class Replay:
    """Events that are to be sent again; `attempts` were made before."""

    id: int
    subscription: str
    epoch: str
    first: int
    last: int
    attempts: int


@dataclass(frozen=True, slots=True)
class FailingEndpoint:
    """An endpoint that fails: the subscription's id and RP, the RP in words, the address without its query."""

    id: str
    rp: str
    label: str
    url: str
    state: str
    reason: str
    since: datetime


def endpoints_page(after: str) -> tuple[list[EndpointRow], str | None]:
    """Return the endpoints after this id that are neither paused nor gone, and the id to continue after; None: no more."""
    rows = PushEndpoint.objects.filter(_wanted(), pk__gt=after).order_by("pk").values_list(*_COLUMNS)[:PAGE]
    found = [_row(row) for row in rows]
    return found, found[-1].id if len(found) == PAGE else None


def endpoints_named(ids: Sequence[str]) -> dict[str, EndpointRow]:
    """Return those of the endpoints that are neither paused nor gone."""
    rows = PushEndpoint.objects.filter(_wanted(), pk__in=ids).values_list(*_COLUMNS)
    return {row[0]: _row(row) for row in rows}


def generations() -> dict[str, int]:
    """Return the generation of each endpoint that is neither paused nor gone; to find notices that were lost."""
    return dict(PushEndpoint.objects.filter(_wanted()).values_list("pk", "generation"))


def endpoints_able(ids: Sequence[str]) -> dict[str, EndpointAbility]:
    """Return those of the endpoints that events can be sent to (subscriptions/ports.py: endpoints_able)."""
    rows = PushEndpoint.objects.filter(pk__in=ids, state__in=RECEIVING).values_list("pk", "state", "next_at")
    return {
        one: EndpointAbility(
            round(next_at.timestamp() * 1000) if state == EndpointState.FAILING and next_at is not None else 0
        )
        for one, state, next_at in rows
    }


def endpoints_failing(rps: Sequence[str] | None, count: int) -> list[FailingEndpoint]:
    """Return the endpoints of these RPs (None: of all) that have failed for longest: `count` of each RP, or of all.

    Those that were paused by their owner, and those that have not consented yet or are gone, are not among them.
    """
    rows = PushEndpoint.objects.filter(subscription__expires_at__gt=timezone.now())
    failing = rows.filter(state__in=(EndpointState.FAILING, EndpointState.THROTTLED)) | rows.filter(
        state=EndpointState.PAUSED
    ).exclude(reason=BY_OWNER)
    failing = failing.annotate(since=Coalesce("failing_since", "state_at")).order_by("since", "pk")
    if rps is None:
        found = list(failing.select_related("subscription__rp")[:count])
    else:
        longest = Window(RowNumber(), partition_by="subscription__at", order_by=[F("since"), F("pk")])
        of_rps = failing.filter(subscription__at__in=rps).annotate(place=longest)
        found = list(of_rps.filter(place__lte=count).select_related("subscription__rp"))
    return [_failing(row) for row in found]


def replays_waiting(without: Sequence[int], count: int) -> list[Replay]:
    """Return dead letters that are to be sent again, the oldest first."""
    rows = PushDeadLetter.objects.filter(replay=True).exclude(id__in=without).order_by("id")[:count]
    return [Replay(row.id, row.subscription_id, row.epoch, row.first, row.last, row.attempts) for row in rows]


def endpoint_get(subscription_id: str, *, lock: bool = False) -> PushEndpoint:
    """Return the endpoint's row; `lock` locks it. Raises NotFound for a subscription without one."""
    rows = PushEndpoint.objects.select_for_update() if lock else PushEndpoint.objects.all()
    row = rows.filter(pk=subscription_id).first()
    if row is None:
        raise NotFound(
            "The subscription has no endpoint here: its events are pulled, or sent by another domain that holds it."
        )
    return row


def endpoints_of(
    owner: str, mode: str, *, cursor: str | None = None, limit: int = LIMIT_DEFAULT, now: datetime | None = None
) -> Page[Subscription]:
    """Return a page of an owner's subscriptions with this mode of delivery, by id. Raises InvalidCursor."""
    rows = Subscription.objects.filter(owner=owner, deliver__mode=mode, expires_at__gt=now or timezone.now())
    if cursor is not None:
        rows = rows.filter(id__gt=key_of("endpoints", cursor))
    found = list(rows.order_by("id")[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of("endpoints", found[-1].id) if more else None)


def unverified_count(*, owner: str = "", host: str = "") -> int:
    """Count the endpoints without consent, of an owner or at a host."""
    rows = PushEndpoint.objects.filter(state=EndpointState.UNVERIFIED)
    return rows.filter(subscription__owner=owner).count() if owner else rows.filter(host=host).count()


def states_count() -> dict[str, int]:
    """Count the endpoints by state."""
    found = dict(PushEndpoint.objects.values_list("state").annotate(Count("pk")).order_by())
    return {one.value: found.get(one.value, 0) for one in EndpointState}


def endpoint_states_at(rp: str) -> dict[str, tuple[str, datetime]]:
    """Return the state of each endpoint of the subscriptions at an RP, and since when."""
    rows = PushEndpoint.objects.filter(subscription__at=rp).values_list("pk", "state", "state_at")
    return {row: (state, since) for row, state, since in rows}


def dead_letters_page(
    subscription_id: str, *, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> Page[PushDeadLetter]:
    """Return a page of a subscription's dead letters, the oldest first. Raises InvalidCursor."""
    rows = PushDeadLetter.objects.filter(subscription=subscription_id).order_by("id")
    if cursor is not None:
        key = key_of("dead-letters", cursor)
        rows = rows.filter(id__gt=int(key) if key.isascii() and key.isdigit() else 0)
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of("dead-letters", str(found[-1].id)) if more else None)


def dead_letters_count(subscription_id: str) -> int:
    """Count the dead letters of a subscription."""
    return PushDeadLetter.objects.filter(subscription=subscription_id).count()


def standing_of(row: PushEndpoint) -> EndpointStanding:
    """Return the standing in a row."""
    return EndpointStanding(
        EndpointState(row.state),
        row.failures,
        row.failing_since.timestamp() if row.failing_since else None,
        row.next_at.timestamp() if row.next_at else 0.0,
        row.reason,
        row.verified,
    )


def _wanted() -> Q:
    return Q(state__in=_AWAKE, subscription__expires_at__gt=timezone.now())


def _row(values: tuple[Any, ...]) -> EndpointRow:
    row = dict(zip(_COLUMNS, values, strict=True))
    since: datetime | None = row["failing_since"]
    next_at: datetime | None = row["next_at"]
    return EndpointRow(
        id=row["subscription_id"],
        rp=row["subscription__at"],
        start=row["subscription__start"],
        owner=row["subscription__owner"],
        expires_at=row["subscription__expires_at"].timestamp(),
        history=HistoryBounds(
            row["subscription__max_events"], row["subscription__max_bytes"], row["subscription__max_age_s"]
        ),
        deliver=row["subscription__deliver"],
        keeper=row["subscription__keeper"],
        sealed=bytes(row["sealed"]),
        generation=row["generation"],
        test_id=row["test_id"],
        allowed_rate=row["allowed_rate"],
        standing=EndpointStanding(
            EndpointState(row["state"]),
            row["failures"],
            since.timestamp() if since else None,
            next_at.timestamp() if next_at else 0.0,
            row["reason"],
            row["verified"],
        ),
    )


def _failing(row: PushEndpoint) -> FailingEndpoint:
    subscription = row.subscription
    rp = subscription.rp
    return FailingEndpoint(
        id=row.pk,
        rp=subscription.at,
        label=subscription.at if rp is None or subscription.at != rp.pk else rp.name or rp.pk,
        url=str(subscription.deliver.get("url", "")),
        state=row.state,
        reason=row.reason,
        since=row.failing_since or row.state_at,
    )

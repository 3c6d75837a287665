"""The end of durable subscriptions with lost events: lasting alarms, and entries of the audit.

An alarm about a subscription is cleared by measurements (eventing/operations/alarms/losses.py). After the
subscription's end there are none, and lost events cannot be recovered: its alarm stays open, as a lasting one, until an
operator acknowledges it. If an operator deletes the subscription, the alarm is cleared, with the same numbers. Each
expiry with a loss is an entry of the audit.
"""

from __future__ import annotations

from collections.abc import Mapping

from eventing.core.events.lag import Lag, in_words
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMIN, DOMAIN_ADMINS
from eventing.core.principals import Principal
from eventing.core.roles import operates
from eventing.operations.models import Alarm
from eventing.operations.rules.alarms import LASTING, Value
from eventing.operations.services.alarms import alarm_last, alarms_end
from eventing.outbox.services import Outbox
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.watches import LOSS
from eventing.subscriptions.models import Subscription

DOMAIN = "domain"
"""Actor recorded for automatic acts."""


def subscription_ended(
    row: Subscription, outbox: Outbox, reason: str, *, lag: Lag | None = None, by: Principal | None = None
) -> None:
    """Settle the alarms about a subscription that ends, within the caller's transaction.

    Args:
        lag: its lag; None if not known: the values of its open alarm are used.
        reason: why it ends: `deleted`, `lease-expired`.
        by: the principal that deleted it; None for none here.
    """
    rp = "" if row.at in DOMAIN_ADMINS else row.at.removesuffix(ADMIN_SUFFIX)
    open_ = list(Alarm.objects.select_for_update().filter(rp=rp, about=row.id, cleared_at=None).exclude(rule=LASTING))
    losing = sorted((one for one in open_ if one.kind == LOSS), key=lambda one: one.severity)
    lag = lag or _told(losing)
    expired = reason == "lease-expired"
    why = "Its lease expired" if expired else "It was deleted"
    if not lag.lost:
        alarms_end(open_, outbox, f"{why}: the subscription no longer exists.")
        return
    if expired:
        numbers = {"rp": row.at, "owner": row.owner, "lag": lag.events, "lost": lag.lost}
        outbox.act("subscription.expire", None, "subscription", row.id, who=DOMAIN, **numbers)
    if not expired and (by is None or operates(by)):
        alarms_end(open_, outbox, f"{why} while it was {in_words(lag)}.")
        return
    label = RendezvousPoint.objects.filter(id=rp).values_list("name", flat=True).first() or rp or DOMAIN_ADMIN
    ended = "its lease expired" if expired else f"{row.owner} deleted it"
    detail = f"The durable subscription {row.id} of {label} was {in_words(lag)}, when {ended}."
    values = (Value("events", lag.events, row.max_events, "events"), Value("lost", lag.lost, 0, "events"))
    alarm_last(
        losing[0] if losing else None,
        outbox,
        rp=rp,
        about=row.id,
        kind=LOSS,
        detail=detail,
        values=values,
        link=f"/audit?on={row.id}",
    )
    alarms_end([one for one in open_ if one not in losing[:1]], outbox, f"{why} while it was {in_words(lag)}.")


def rp_expired(row: RendezvousPoint, outbox: Outbox, found: Mapping[str, Lag]) -> None:
    """Raise an alarm and write an entry of the audit for an expired RP whose subscriptions had lost events.

    Must be called before the RP is removed, within the caller's transaction.
    """
    lost = [lag.lost for lag in found.values() if lag.lost]
    if not lost:
        return
    outbox.act("rp.expire", None, "rp", row.id, who=DOMAIN, name=row.name, subscriptions=len(lost), lost=sum(lost))
    many = "a durable subscription" if len(lost) == 1 else f"{len(lost):,} durable subscriptions"
    detail = f"The lease of {row.name or row.id} expired, and with it {many} that had lost {sum(lost):,} events."
    values = (Value("lost", sum(lost), 0, "events"),)
    alarm_last(None, outbox, rp="", about=row.id, kind=LOSS, detail=detail, values=values, link=f"/audit?on={row.id}")


def _told(alarms: list[Alarm]) -> Lag:
    """Return the numbers in the alarm."""
    for row in alarms:
        values = {one["name"]: int(one["value"]) for one in row.values}
        if values.get("lost"):
            return Lag(values.get("events", values["lost"]), values["lost"])
    return Lag(0, 0)

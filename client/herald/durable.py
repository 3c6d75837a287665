"""Management of durable subscriptions over REST, and reading them by pull: `client.subscriptions`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from herald.answers import reading
from herald.cloud_event import Event
from herald.events import Gap
from herald.leases import Lease
from herald.rest import TIMEOUT_S, Rest, rp_path, subscription_path
from herald.starts import start_text, starting


@dataclass(frozen=True, slots=True)
class DurableSubscription:
    """The domain's statement of a durable subscription; `document` is all of it."""

    id: str
    rp: str
    lease: Lease
    document: Mapping[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> DurableSubscription:
        """Read the domain's document."""
        return cls(str(document.get("id", "")), str(document.get("rp", "")), Lease.of(document), document)


@dataclass(frozen=True, slots=True)
class Pulled:
    """An answer to a pull.

    Attributes:
        events: CloudEvents in log order, contiguous; empty if none arrived within the wait.
        epoch, offset: place of the last event; without events, of the reader.
        cursor: to be acknowledged once the events are processed.
        recovered: False if events were lost; `gap` then has which.
    """

    events: list[Event]
    epoch: str
    offset: int
    cursor: str
    recovered: bool
    gap: Gap | None


class DurableSubscriptions:
    """Create, describe, renew, delete, pull and acknowledge. All methods raise HeraldError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def create(
        self,
        rp: str,
        *,
        lease_s: int | None = None,
        history: Mapping[str, int] | None = None,
        from_: str | datetime = "now",
        **properties: Any,
    ) -> DurableSubscription:
        """Create a durable subscription at an RP (id or name), once, however often the request has to be repeated.

        Arguments:
            lease_s: seconds to live unless used or renewed; the domain may grant less. None for the domain's default, a
                week.
            history: `max_events`, `max_bytes`, `max_age_s`: events to keep for later reading; within the RP's own
                bounds.
            from_: where reading begins: `now`, `earliest`, `last`, a cursor, a datetime, or `time:` and a time.
        """
        begin = start_text(from_)
        members: dict[str, Any] = {"from": begin, "deliver": {"mode": "pull"}, **properties}
        if lease_s is not None:
            members["lease_s"] = lease_s
        if history is not None:
            members["history"] = dict(history)
        key = {"Idempotency-Key": str(uuid.uuid4())}
        path = rp_path(rp, "/subscriptions")
        with starting(begin):
            return DurableSubscription.of(await self._rest.members("POST", path, members, headers=key, again=True))

    async def get(self, subscription_id: str, *, at: str | None = None) -> DurableSubscription:
        """Return one, from the domain at the URL `at` that holds it as well; None for the first."""
        path = subscription_path(subscription_id)
        return DurableSubscription.of(await self._rest.members("GET", path, again=True, at=at))

    async def renew(self, subscription_id: str, lease_s: int | None = None) -> Lease:
        """Renew the lease from now."""
        members = {} if lease_s is None else {"lease_s": lease_s}
        path = subscription_path(subscription_id, "/renew")
        return Lease.of(await self._rest.members("POST", path, members, again=True))

    async def delete(self, subscription_id: str) -> None:
        """End a durable subscription; it loses its unread events."""
        await self._rest.request("DELETE", subscription_path(subscription_id), again=False)

    async def pull(
        self, subscription_id: str, *, limit: int = 100, wait_s: float = 0.0, after: str | None = None
    ) -> Pulled:
        """Read on after the acknowledged position (or `after` a cursor).

        Arguments:
            limit: most events in the answer, 1 to 1000.
            wait_s: seconds to wait for an event if there is none; 0 to 60.
        """
        params = {"limit": limit, "wait_s": wait_s, "after": after}
        answer = await self._rest.members(
            "GET",
            subscription_path(subscription_id, "/events"),
            params=params,
            again=True,
            timeout_s=wait_s + TIMEOUT_S,
        )
        found = pulled(answer)
        if found.gap is None:
            return found
        # The answer states what is missing, not where: that is the subscription's rendezvous point.
        rp = (await self.get(subscription_id)).rp
        return replace(found, gap=replace(found.gap, rp=rp))

    async def ack(self, subscription_id: str, cursor: str) -> None:
        """Acknowledge everything up to `cursor`: it is not delivered again."""
        await self._rest.request("POST", subscription_path(subscription_id, "/ack"), {"cursor": cursor}, again=True)


def _rewound(withdrawn: Mapping[str, Any] | None) -> tuple[str, int, int] | None:
    if withdrawn is None:
        return None
    return str(withdrawn["epoch"]), int(withdrawn["from"]), int(withdrawn["to"])


def pulled(answer: Mapping[str, Any], rp: str = "") -> Pulled:
    """Read the answer to a pull."""
    with reading("The answer to a pull"):
        return _pulled(answer, rp)


def _pulled(answer: Mapping[str, Any], rp: str) -> Pulled:
    gap = None
    lost = answer.get("gap")
    if isinstance(lost, Mapping):
        epoch, end = str(lost["epoch"]), int(lost["to"])
        gap = Gap(rp, epoch, int(lost["from"]), end, None, f"{epoch}:{end}", rewound=_rewound(lost.get("rewound")))
    events, offset = list(answer["events"]), int(answer["offset"])
    if not all(isinstance(event, dict) for event in events):
        raise TypeError("an event is not an object")
    return Pulled(
        [Event(event) for event in events],
        str(answer["epoch"]),
        offset,
        str(answer["cursor"]),
        answer.get("recovered") is not False,
        gap,
    )

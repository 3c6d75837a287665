"""Shared durable subscriptions at their keeper: recorded at other replicas as well, changed, renewed, ended.

The life of a shared subscription: created here with `replicas` -> peers with replicas of the RP are chosen -> the
record is signed and sent (subscriptions/sharing/shared_subscriptions.py) -> one holder delivers, this domain first,
others when its lease lapses (overlay/takeover.py) -> changes and renewals are a new version of the record -> it is
deleted, by a last version, or its lease expires at every holder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.core.errors import Conflict, InvalidCursor, InvalidRequest, Moved
from eventing.core.events.cursors import VECTOR_FEEDS_MAX, Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.vectors import merged
from eventing.core.ids import is_admin
from eventing.log import control, federated
from eventing.log.scripts import OWN, NoLog
from eventing.log.shared_subscriptions import (
    KEPT_S,
    StandingChange,
    SubscriptionKey,
    due_set,
    join,
    read_all,
    write_all,
)
from eventing.overlay import takeover
from eventing.rps.rules.statements import packed
from eventing.subscriptions.models import SharedSubscription, Subscription
from eventing.subscriptions.rules.shared_subscriptions import REPLICAS_MAX, VERSION, History, Record, abroad, sign
from eventing.subscriptions.selectors.alone import peers_to_hold
from eventing.subscriptions.selectors.shared_subscriptions import record_of, url_of

TOMBSTONE_S = 3600  # least seconds that an end is kept, for holders that cannot be reached at once


@dataclass(slots=True)
class Prepared:
    """A shared subscription about to be created."""

    row: Subscription
    record: Record
    now: datetime

    def begin(self) -> None:
        """Record the subscription within the creating transaction, and deliver it here from now on."""
        record = self.record
        SharedSubscription.objects.create(
            id=record.id,
            rp=record.rp,
            keeper=record.keeper,
            version=record.version,
            statement=packed(sign(record, _key(self.now))),
            expires_at=self.row.expires_at + timedelta(seconds=TOMBSTONE_S),
        )
        place, keep_s = SubscriptionKey(record.rp, record.id), keep_s_of(self.row, self.now)
        join(place, record.start, keep_s)
        standing = takeover.first(record.rules, record.keeper, now_ms(self.now))
        write_all([StandingChange(place, b"", standing, b"", keep_s)])
        due_set({record.id: 0})


def shared_prepare(row: Subscription, replicas: int, wanted: object, cursor: Cursor, now: datetime) -> Prepared | None:
    """Choose the holders of a new subscription. None for one that only this domain holds.

    Args:
        row: complete but for `keeper`, which is set.
        replicas: number of domains that hold it, this one included.
        wanted: the start that the owner asked for: a place, or a cursor with a vector.
        cursor: that start as a place in the log here.

    Raises InvalidRequest, InvalidCursor, Conflict.
    """
    if not 1 <= replicas <= REPLICAS_MAX:
        raise InvalidRequest(f"replicas must be a number from 1 to {REPLICAS_MAX}.")
    if replicas == 1:
        return None
    if is_admin(row.at):
        raise InvalidRequest("Administrative rendezvous points have no replicas. Leave `replicas` out.")
    me = config().domain
    record = Record(
        v=VERSION,
        kind="record",
        id=row.id,
        rp=row.at,
        keeper=me,
        version=1,
        owner=abroad(row.owner, me),
        holders=[me, *_chosen(row.at, row.id, replicas - 1)],
        lease_ms=config().delivery_lease_s * 1000,
        start=_start(row.at, wanted, cursor),
        history=_history(row),
        mode=row.deliver["mode"],
        expires_at_ms=now_ms(row.expires_at),
        at_ms=now_ms(now),
        ended=False,
    )
    row.keeper = me
    return Prepared(row, record, now)


def require_keeper(row: Subscription) -> None:
    """Raise Moved at a holder that is not the keeper: a subscription is changed only where it was created."""
    if row.keeper not in ("", config().domain):
        raise moved(row, row.keeper, f"This subscription was created at {row.keeper}. Change or delete it there.")


def require_renewable(row: Subscription, now: datetime) -> None:
    """Raise Moved at a holder whose renewal would reach nobody: only the keeper and the delivering holder can renew."""
    if row.keeper in ("", config().domain):
        return
    standing = read_all([SubscriptionKey(row.at, row.id)])[0].standing
    me, at_ms = config().domain, now_ms(now)
    if standing is not None and takeover.delivers(standing, me, at_ms):
        return
    to = (takeover.elsewhere(standing, me, at_ms) if standing is not None else "") or row.keeper
    raise moved(row, to, f"This subscription is delivered at {to}. Renew it there.")


def moved(row: Subscription, domain: str, detail: str) -> Moved | Conflict:
    """Return the redirect of an operation on a subscription to another holder."""
    url = url_of(row.at, domain)
    if not url:
        return Conflict(f"{detail} That domain's address is not known here.", domain=domain)
    return Moved(detail, rp=row.at, to=[url], subscription=row.id, domain=domain)


def shared_changed(row: Subscription, now: datetime) -> None:
    """Make the new record due at the other holders, within the transaction that changed or renewed the subscription."""
    if row.keeper == config().domain:
        _issue(row, now, ended=False)
    if row.keeper:
        due_set({row.id: 0})


def shared_removed(row: Subscription, reason: str, now: datetime) -> None:
    """End the subscription everywhere if it was deleted at its keeper, within the transaction that removes it.

    One whose lease expired here expires everywhere by itself, and one of another keeper ends here only.
    """
    if not row.keeper:
        return
    if row.keeper == config().domain and reason == "deleted":
        _issue(row, now, ended=True)
        due_set({row.id: 0})
    elif row.keeper == config().domain or reason != "deleted":
        SharedSubscription.objects.filter(id=row.id).delete()


def own_vector(rp: str, offset: int) -> dict[str, int]:
    """Return the vector of the log here up to `offset`, by feed key. Raises InvalidCursor if it is no longer known."""
    try:
        found = federated.vector_at(rp, offset)
        state = control.log_state(rp)
    except NoLog:
        found, state = None, None
    if found is None or state is None:
        raise InvalidCursor(
            "That place is not in the history here. Begin at now, earliest, last or a more recent cursor."
        )
    vector = dict(found)
    vector[Feed(config().domain, state.root).key] = vector.pop(OWN, 0)
    return vector


def now_ms(now: datetime) -> int:
    """Return Unix milliseconds."""
    return int(now.timestamp() * 1000)


def keep_s_of(row: Subscription, now: datetime) -> int:
    """Return for how many seconds the standing in the data plane is kept."""
    return int((row.expires_at - now).total_seconds()) + KEPT_S


def _issue(row: Subscription, now: datetime, *, ended: bool) -> None:
    """Sign the next version of a record."""
    shared = SharedSubscription.objects.select_for_update().filter(id=row.id).first()
    if shared is None:
        return
    record = msgspec.structs.replace(
        record_of(shared),
        version=shared.version + 1,
        history=_history(row),
        expires_at_ms=now_ms(row.expires_at),
        at_ms=now_ms(now),
        ended=ended,
    )
    shared.version, shared.ended = record.version, ended
    shared.statement = packed(sign(record, _key(now)))
    shared.expires_at = max(row.expires_at, now) + timedelta(seconds=TOMBSTONE_S)
    shared.save()


def _chosen(rp: str, subscription: str, count: int) -> list[str]:
    """Return peers for a new subscription: linked at the RP and trusting this domain. The subscription's id spreads the
    choice.
    """
    fit = peers_to_hold(rp)
    if len(fit) < count:
        raise Conflict(
            f"replicas: {count} other domains are needed that hold a replica of {rp}, are active peers, and are "
            f"trusted with `host`; there are {len(fit)}. Ask for fewer, or have more domains join.",
            available=len(fit) + 1,
        )
    return sorted(fit, key=lambda name: hashlib.sha256(f"{subscription}\n{name}".encode()).digest())[:count]


def _start(rp: str, wanted: object, cursor: Cursor) -> dict[str, int]:
    """Return the vector at which a subscription begins, valid at every holder."""
    state = control.log_state(rp)
    if state is None or cursor.epoch != state.epoch:
        raise InvalidCursor(
            "A shared subscription must begin at a place that is held here, or at a cursor with a vector."
        )
    begin = own_vector(rp, cursor.offset)
    if not isinstance(wanted, Cursor) or wanted.vector is None:
        return begin
    own = Feed(config().domain, state.root).key
    ahead: Mapping[str, int] = {feed: held for feed, held in wanted.vector.items() if feed != own}
    both = merged(begin, ahead)
    return both if len(both) <= VECTOR_FEEDS_MAX else begin


def _history(row: Subscription) -> History:
    return History(row.max_events, row.max_bytes, row.max_age_s)


def _key(now: datetime) -> dict[str, object]:
    key = signing_key(now)
    if key is None:
        raise Conflict("This domain has no signing key yet. Try again.")
    return key

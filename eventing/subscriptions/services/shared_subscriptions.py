"""Shared durable subscriptions at their keeper: recorded at other replicas as well, changed, renewed, ended.

The life of one: created here with `replicas` -> peers that hold replicas of the RP are chosen -> the record is signed and
sent (subscriptions/sharing/shared_subscriptions.py) -> one holder delivers, this domain first, others when its lease lapses
(overlay/takeover.py) -> changes and renewals are a new version of the record -> it is deleted, by a last version, or its
lease ends everywhere by itself.
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
from eventing.log.shared_subscriptions import KEPT_S, Change, Place, due_set, join, read_all, write_all
from eventing.overlay import takeover
from eventing.peering.selectors.peers import peer_get
from eventing.rps.ports import links_of_rps
from eventing.rps.rules.statements import packed
from eventing.subscriptions.models import SharedSubscription, Subscription
from eventing.subscriptions.rules.shared_subscriptions import REPLICAS_MAX, VERSION, History, Record, abroad, sign
from eventing.subscriptions.selectors.shared_subscriptions import record_of, url_of

TOMBSTONE_S = 3600  # at least this long an end is remembered, for holders that cannot be told at once


@dataclass(slots=True)
class Prepared:
    """A shared subscription about to be created."""

    row: Subscription
    record: Record
    now: datetime

    def begin(self) -> None:
        """Within the transaction that creates it: record it, and deliver it here from now on."""
        record = self.record
        SharedSubscription.objects.create(
            id=record.id,
            rp=record.rp,
            keeper=record.keeper,
            version=record.version,
            statement=packed(sign(record, _key(self.now))),
            expires_at=self.row.expires_at + timedelta(seconds=TOMBSTONE_S),
        )
        place, keep_s = Place(record.rp, record.id), keep_s_of(self.row, self.now)
        join(place, record.start, keep_s)
        standing = takeover.first(record.rules, record.keeper, now_ms(self.now))
        write_all([Change(place, b"", standing, b"", keep_s)])
        due_set({record.id: 0})


def shared_prepare(row: Subscription, replicas: int, wanted: object, cursor: Cursor, now: datetime) -> Prepared | None:
    """Choose the holders of a new subscription. None for one that is to be this domain's alone.

    Args:
        row: complete but for `keeper`, which is set.
        replicas: how many domains are to hold it, this one among them.
        wanted: what the owner asked to begin at: a place, or a cursor whose vector counts.
        cursor: the same as a place in the log here.

    Raises InvalidRequest, InvalidCursor, Conflict.
    """
    if not 1 <= replicas <= REPLICAS_MAX:
        raise InvalidRequest(f"replicas is a number from 1 to {REPLICAS_MAX}.")
    if replicas == 1:
        return None
    if is_admin(row.at):
        raise InvalidRequest("Administrative rendezvous points have no replicas: leave replicas out.")
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
    """Raises Moved at a holder that is not the keeper: what a subscription is, is changed where it was created."""
    if row.keeper not in ("", config().domain):
        raise moved(row, row.keeper, f"This subscription was created at {row.keeper}: change or delete it there.")


def require_renewable(row: Subscription, now: datetime) -> None:
    """Raises Moved at a holder whose renewal would reach nobody: the keeper and who delivers can renew."""
    if row.keeper in ("", config().domain):
        return
    standing = read_all([Place(row.at, row.id)])[0].standing
    me, at_ms = config().domain, now_ms(now)
    if standing is not None and takeover.delivers(standing, me, at_ms):
        return
    to = (takeover.elsewhere(standing, me, at_ms) if standing is not None else "") or row.keeper
    raise moved(row, to, f"This subscription is delivered at {to}: renew it there.")


def moved(row: Subscription, domain: str, detail: str) -> Moved | Conflict:
    """The redirect of an operation on a subscription to another holder."""
    url = url_of(row.at, domain)
    if not url:
        return Conflict(f"{detail} Its address is not known here.", domain=domain)
    return Moved(detail, rp=row.at, to=[url], subscription=row.id, domain=domain)


def shared_changed(row: Subscription, now: datetime) -> None:
    """Within the transaction that changed or renewed a subscription: have the other holders told."""
    if row.keeper == config().domain:
        _issue(row, now, ended=False)
    if row.keeper:
        due_set({row.id: 0})


def shared_removed(row: Subscription, reason: str, now: datetime) -> None:
    """Within the transaction that removes a subscription: end it everywhere if it was deleted where it was created.

    One whose lease ended here ends everywhere by itself, and one of another keeper ends here only.
    """
    if not row.keeper:
        return
    if row.keeper == config().domain and reason == "deleted":
        _issue(row, now, ended=True)
        due_set({row.id: 0})
    elif row.keeper == config().domain or reason != "deleted":
        SharedSubscription.objects.filter(id=row.id).delete()


def own_vector(rp: str, offset: int) -> dict[str, int]:
    """What stands up to `offset` in the log here, by feed key. Raises InvalidCursor if that is not known any more."""
    try:
        found = federated.vector_at(rp, offset)
        state = control.log_state(rp)
    except NoLog:
        found, state = None, None
    if found is None or state is None:
        raise InvalidCursor("That place is not in the history here; begin at now, earliest, last or a cursor of today.")
    vector = dict(found)
    vector[Feed(config().domain, state.epoch).key] = vector.pop(OWN, 0)
    return vector


def now_ms(now: datetime) -> int:
    """Unix milliseconds."""
    return int(now.timestamp() * 1000)


def keep_s_of(row: Subscription, now: datetime) -> int:
    """How long what moves is kept."""
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
    """Peers for a new subscription: linked at the RP, and let us have them host. Spread over all by the subscription's id."""
    peers = ((name, peer_get(name)) for name in links_of_rps([rp]).get(rp, ()))
    fit = [name for name, peer in peers if peer is not None and peer.active and peer.host]
    if len(fit) < count:
        raise Conflict(
            f"replicas: {count} other domains are needed that hold a replica of {rp}, are active peers, and are trusted "
            f"with `host`; there are {len(fit)}. Ask for fewer, or have more join.",
            available=len(fit) + 1,
        )
    return sorted(fit, key=lambda name: hashlib.sha256(f"{subscription}\n{name}".encode()).digest())[:count]


def _start(rp: str, wanted: object, cursor: Cursor) -> dict[str, int]:
    """The vector that a subscription begins at, which counts at every holder."""
    state = control.log_state(rp)
    if state is None or cursor.epoch != state.epoch:
        raise InvalidCursor("A shared subscription begins at a place that is held here, or at a cursor with a vector.")
    begin = own_vector(rp, cursor.offset)
    if not isinstance(wanted, Cursor) or wanted.vector is None:
        return begin
    own = Feed(config().domain, state.epoch).key
    ahead: Mapping[str, int] = {feed: held for feed, held in wanted.vector.items() if feed != own}
    both = merged(begin, ahead)
    return both if len(both) <= VECTOR_FEEDS_MAX else begin


def _history(row: Subscription) -> History:
    return History(row.max_events, row.max_bytes, row.max_age_s)


def _key(now: datetime) -> dict[str, object]:
    key = signing_key(now)
    if key is None:
        raise Conflict("This domain has no key yet that signs.")
    return key

"""Shared durable subscriptions received by a holder: records of their keepers, lines of the delivering holders.

Everything is verified: a record is accepted if its keeper signed it and takes part in the RP, and if its carrier is a
peer with the trust `host`; a line if a holder of the record signed it. The policy is checked whenever the owner reads,
with the owner's token (gateway/endpoints/pull.py). Everything that a peer makes this domain store is counted against a
bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, Gone, NotFound, QuotaExceeded
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds, tightest
from eventing.core.events.positions import believed
from eventing.core.events.vectors import covers
from eventing.core.leases import grant
from eventing.core.signing import Signed
from eventing.log import control, federated
from eventing.log.shared_subscriptions import Kept, StandingChange, SubscriptionKey, due_set, join, read_all, write_all
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.overlay import takeover
from eventing.peering.models import Peer
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.rps.models import RendezvousPoint
from eventing.rps.ports import links_of_rps
from eventing.rps.rules.statements import BadStatement, packed, unpacked
from eventing.sql.leases import LEASE_COLUMNS
from eventing.subscriptions.models import SharedSubscription, Subscription
from eventing.subscriptions.ports import endpoint_set, takes_part
from eventing.subscriptions.rules.shared_subscriptions import (
    LineStatement,
    Record,
    here,
    line_read,
    record_read,
    verified,
)
from eventing.subscriptions.selectors.event_data import subscription_data
from eventing.subscriptions.selectors.shared_subscriptions import record_of, shared_running
from eventing.subscriptions.services import subscriptions
from eventing.subscriptions.services.shared_subscriptions import TOMBSTONE_S, keep_s_of, now_ms

PER_KEEPER_MAX = 1000  # subscriptions of one keeper that are held here; a line each some seconds, 10 KB each
TRIES_MAX = (
    8  # attempts at one change of a standing; each fails only if another process changed it in the same milliseconds
)
RENEWED_S = 1  # seconds; a smaller extension of a lease by a line is not written


def record_take(statement: Signed, *, carrier: Peer, now: datetime) -> str:
    """Accept a record from a peer. Returns the subscription's id.

    Raises BadStatement, NotFound (no such RP here), Forbidden, QuotaExceeded, Conflict, Gone.
    """
    try:
        record = record_read(statement)
    except BadStatement as error:
        misbehaviour_note("malformed", carrier=carrier.name, detail=str(error))
        raise
    me = config().domain
    if me not in record.holders or me == record.keeper or carrier.name not in record.holders:
        raise Forbidden("Only a subscription's holders record it and send its record.")
    rp = RendezvousPoint.objects.filter(id=record.rp, expires_at__gt=now).first()
    if rp is None:
        raise NotFound("There is no such rendezvous point in this domain.")
    if not carrier.host or carrier.name not in links_of_rps([record.rp]).get(record.rp, ()):
        raise Forbidden(
            f"{me} holds subscriptions only for peers that take part in the rendezvous point and are "
            "trusted with `host`."
        )
    if not takes_part(record.rp, record.keeper, now):
        raise Forbidden("The keeper does not take part in the rendezvous point.")
    keys = domain_keys(record.keeper)
    if not keys:
        raise NotFound(f"The keys of {record.keeper} are not known here.")
    try:
        verified(statement, record.at_ms, keys, now_ms(now))
    except BadStatement as error:
        misbehaviour_note("forged", carrier=carrier.name, origin=record.keeper, rp=record.rp, detail=str(error))
        raise
    with change(now) as outbox:
        _store(record, statement, rp, outbox, carrier.name)
    return record.id


def _store(record: Record, statement: Signed, rp: RendezvousPoint, outbox: Outbox, carrier: str) -> None:
    """Keep a verified record, unless a better one is held, within the caller's transaction."""
    now = outbox.now
    shared = SharedSubscription.objects.select_for_update().filter(id=record.id).first()
    row = Subscription.objects.select_for_update().filter(id=record.id).first()
    if shared is None and row is not None:
        raise Conflict("Another subscription with this id exists here.")
    if shared is not None:
        if (shared.keeper, shared.rp) != (record.keeper, record.rp):
            raise Forbidden("The subscription with this id is of another domain, or at another rendezvous point.")
        if not _preferred(record, statement, shared, carrier):
            return
    until = min(datetime.fromtimestamp(record.expires_at_ms / 1000, UTC), now + timedelta(seconds=config().lease_s_max))
    if record.ended:
        if row is not None:
            subscriptions.remove(row, outbox, "deleted")
        if shared is not None:
            _keep(shared, record, statement, max(until, now))
        return
    if row is None and until <= now:
        raise Gone("The subscription's lease has expired.")
    if shared is None:
        _require_room(record, now)
        shared = SharedSubscription(id=record.id, rp=record.rp, keeper=record.keeper)
    _keep(shared, record, statement, until)
    _row(row, record, rp, until, outbox)


def _preferred(record: Record, statement: Signed, shared: SharedSubscription, carrier: str) -> bool:
    """Return whether a record replaces the held one: it is newer; of two contradictory ones every domain prefers the
    same.
    """
    held = bytes(shared.statement)
    if record.version != shared.version:
        return record.version > shared.version
    if packed(statement) == held or statement.payload == _payload(held):
        return False
    detail = "Two different records of one version of a subscription."
    misbehaviour_note("equivocation", carrier=carrier, origin=record.keeper, rp=record.rp, detail=detail)
    return statement.payload > _payload(held)


def _payload(held: bytes) -> bytes:
    return unpacked(held).payload


def _keep(shared: SharedSubscription, record: Record, statement: Signed, until: datetime) -> None:
    shared.version, shared.ended, shared.statement = record.version, record.ended, packed(statement)
    shared.expires_at = until + timedelta(seconds=TOMBSTONE_S)
    shared.save()


def _row(
    row: Subscription | None, record: Record, rp: RendezvousPoint, until: datetime, outbox: Outbox
) -> Subscription:
    """Return the subscription's row here, as the record states."""
    now = outbox.now
    new = row is None
    if row is None:
        row = Subscription(id=record.id, rp_id=rp.id, at=rp.id, keeper=record.keeper, created_at=now)
        row.start = _begin_here(record, rp)
        row.expires_at = until
    row.owner = here(record.owner, config().domain)
    if row.deliver is None or row.deliver["mode"] != record.mode:  # else with the endpoint that is stated here
        if not new:
            endpoint_set(row, None, outbox)
        row.deliver = {"mode": record.mode}
    stated = record.history
    row.bounds_set(tightest(HistoryBounds(stated.max_events, stated.max_bytes, stated.max_age_s), rp.bounds))
    if new or until > row.expires_at + timedelta(seconds=RENEWED_S):
        _lease(row, until, now)
    if new:
        _listen(row, record, now)
        row.save(force_insert=True)
        created = {"subscription": subscription_data(row)}
        outbox.event(events.SUBSCRIPTION_CREATED, row.at, created, domain_too=True, counted=True)
    else:
        row.version += 1
        row.save()
        changed = {"subscription": subscription_data(row)}
        outbox.event(events.SUBSCRIPTION_CHANGED, row.at, changed, domain_too=True)
    return row


def _begin_here(record: Record, rp: RendezvousPoint) -> str:
    """Return the cursor in the log here before the first event that the record's start does not cover."""
    log = control.log_state(rp.id) or control.ensure_log(rp.id, rp.bounds)
    own = Feed(config().domain, log.root).key
    lacking = federated.first_lacking(rp.id, believed(record.start, log, own), own)
    return f"{log.epoch}:{max(0, lacking - 1)}"


def _listen(row: Subscription, record: Record, now: datetime) -> None:
    """Begin as a holder: store the start, and wait for the line of the delivering holder."""
    place, keep_s = SubscriptionKey(record.rp, record.id), keep_s_of(row, now)
    join(place, record.start, keep_s)
    kept = read_all([place])[0]
    if kept.standing is None:
        write_all([StandingChange(place, kept.raw, takeover.newcomer(record.rules, now_ms(now)), b"", keep_s)])
    due_set({record.id: now_ms(now) + record.lease_ms})


def _lease(row: Subscription, until: datetime, now: datetime) -> None:
    """Set the end of the lease to `until`, with the warning before it."""
    left_s = max(1, int((until - now).total_seconds()))
    granted = grant(left_s, now, default_s=left_s, longest_s=left_s)
    row.asked_s, row.granted_s, row.warned_at = None, left_s, None
    row.warn_at, row.expires_at = min(granted.warn_at, until), until


def _require_room(record: Record, now: datetime) -> None:
    """Raise QuotaExceeded if the keeper's or the RP's quota is reached."""
    if SharedSubscription.objects.filter(keeper=record.keeper).count() >= PER_KEEPER_MAX:
        raise QuotaExceeded(
            f"{PER_KEEPER_MAX} subscriptions of this domain are held here already, which is the most.",
            limit=PER_KEEPER_MAX,
        )
    limit = config().subscriptions_per_rp_max
    if Subscription.objects.filter(at=record.rp).count() >= limit:
        raise QuotaExceeded(f"A rendezvous point has at most {limit} durable subscriptions.", limit=limit)


# Lines


@dataclass(slots=True)
class Taken:
    """The outcome of the lines in one message.

    Attributes:
        unknown: ids of subscriptions that are not recorded here.
        news: held lines newer than the received ones, for the sender.
        acked: acknowledgements beyond a received line's, for the sender.
    """

    unknown: list[str] = field(default_factory=list)
    news: list[str] = field(default_factory=list)
    acked: list[str] = field(default_factory=list)


def lines_take(lines: list[tuple[Signed, int]], *, carrier: Peer, now: datetime) -> Taken:
    """Process lines from a peer, each with the milliseconds of the lease that the peer saw left. Invalid ones are
    counted.
    """
    taken = Taken()
    read: list[tuple[Signed, LineStatement, int]] = []
    for statement, left_ms in lines:
        try:
            read.append((statement, line_read(statement), left_ms))
        except BadStatement as error:
            misbehaviour_note("malformed", carrier=carrier.name, detail=str(error))
    known = shared_running(line.id for _, line, _ in read)
    keys: dict[str, Mapping[str, Mapping[str, Any]]] = {}
    for statement, line, left_ms in read:
        if line.id not in known:
            taken.unknown.append(line.id)
            continue
        shared, row = known[line.id]
        record = record_of(shared)
        if carrier.name not in record.holders or line.by not in record.holders:
            misbehaviour_note("forged", carrier=carrier.name, rp=record.rp, detail="A line that no holder signed.")
            continue
        if line.by not in keys:
            keys[line.by] = domain_keys(line.by)
        try:
            verified(statement, line.at_ms, keys[line.by], now_ms(now))
        except BadStatement as error:
            misbehaviour_note("forged", carrier=carrier.name, origin=line.by, rp=record.rp, detail=str(error))
            continue
        if not takes_part(record.rp, line.by, now):
            continue  # it takes part no longer, so its lines are void
        kept = _line_take(record, row, statement, line, left_ms, now)
        standing = kept.standing
        if standing is not None and (standing.term, standing.deliverer) != (line.term, line.by):
            taken.news.append(line.id)
        if not covers(line.acked, kept.acked):
            taken.acked.append(line.id)
    return taken


def _line_take(
    record: Record, row: Subscription, statement: Signed, line: LineStatement, left_ms: int, now: datetime
) -> Kept:
    """Apply a verified line. Returns the standing afterwards."""
    me, place, keep_s = config().domain, SubscriptionKey(record.rp, record.id), keep_s_of(row, now)
    join(place, line.acked, keep_s)
    _prolong(row, line, now)
    said = takeover.DeliveryLine(line.term, line.by, line.beat, left_ms)
    kept = read_all([place])[0]
    for _ in range(TRIES_MAX):
        before = kept.standing or takeover.newcomer(record.rules, now_ms(now))
        after = takeover.on_line(record.rules, me, before, said, now_ms(now))
        if after == kept.standing or not takeover.newer(record.rules, before, said):
            break
        if write_all([StandingChange(place, kept.raw, after, packed(statement), keep_s)])[0]:
            relays = set(record.holders) - {me, line.by, *line.told}
            due_set({record.id: 0 if relays else takeover.due_ms(record.rules, me, after, now_ms(now))})
            return kept._replace(standing=after)
        kept = read_all([place])[0]
    return kept


def _prolong(row: Subscription, line: LineStatement, now: datetime) -> None:
    """Extend the subscription's lease to the end stated by the delivering holder."""
    until = min(datetime.fromtimestamp(line.expires_at_ms / 1000, UTC), now + timedelta(seconds=config().lease_s_max))
    if until <= row.expires_at + timedelta(seconds=RENEWED_S):
        return
    with change(now) as outbox:
        fresh = Subscription.objects.select_for_update().filter(id=row.id).first()
        if fresh is None or until <= fresh.expires_at + timedelta(seconds=RENEWED_S):
            return
        _lease(fresh, until, now)
        fresh.save(update_fields=LEASE_COLUMNS)
        SharedSubscription.objects.filter(id=row.id).update(expires_at=until + timedelta(seconds=TOMBSTONE_S))
        outbox.lease_event(events.LEASE_RENEWED, fresh)
    row.expires_at = until


def shared_purge(*, now: datetime) -> int:
    """Remove expired ends, and records whose subscription ended with its RP. Returns how many."""
    over, _ = SharedSubscription.objects.filter(expires_at__lte=now).delete()
    running = SharedSubscription.objects.filter(ended=False)
    lost = running.exclude(id__in=Subscription.objects.exclude(keeper="").values("id"))
    gone, _ = lost.delete()
    return over + gone


@transaction.atomic
def record_held(subscription: str, holder: str, version: int) -> bool:
    """Note which version of the record another holder has; 0: none. Returns whether that is new."""
    shared = SharedSubscription.objects.select_for_update().filter(id=subscription).first()
    if shared is None or holder not in record_of(shared).holders or shared.told.get(holder) == version:
        return False
    told: dict[str, Any] = {**shared.told, holder: version}
    shared.told = told
    shared.save(update_fields=["told"])
    return True

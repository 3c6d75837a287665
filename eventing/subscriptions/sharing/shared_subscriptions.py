"""Exchange of shared durable subscriptions between their holders: sending and receiving records and lines, and
timeouts.

The life of a line: the sweep (once a second) finds that the beat of a subscription delivered here is due, or that its
owner acknowledged -> the standing is written, then the line signed -> all subscriptions' lines for one peer are sent in
one request -> the peer applies them, and answers with newer lines of its own -> holders that the deliverer does not
reach receive them from those that it does. A holder without a line for the length of the lease takes over in its turn
(overlay/takeover.py), after it has asked the others for a delivering holder: it may have been cut off itself.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import IntegrityError, connection
from django.utils import timezone

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.core.errors import ApplicationError
from eventing.core.events.cursors import VECTOR_FEEDS_MAX
from eventing.core.signing import Signed
from eventing.log.shared_subscriptions import (
    Kept,
    StandingChange,
    SubscriptionKey,
    due,
    due_add,
    due_forget,
    due_set,
    index_begin,
    indexed,
    read_all,
    sweep_lease,
    write_all,
)
from eventing.overlay import takeover
from eventing.overlay.takeover import HolderStanding
from eventing.peering.models import Peer
from eventing.peering.selectors.peers import peer_get
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import VERSION, BadMessage
from eventing.rps.rules.statements import BadStatement, packed, unpacked
from eventing.subscriptions.models import SharedSubscription, Subscription
from eventing.subscriptions.ports import draining, endpoints_able
from eventing.subscriptions.rules.delivery_ability import EndpointAbility, is_held_back
from eventing.subscriptions.rules.shared_subscriptions import VERSION as STATEMENT_VERSION
from eventing.subscriptions.rules.shared_subscriptions import LineStatement, line_read, sign
from eventing.subscriptions.selectors.shared_subscriptions import (
    record_of,
    shared_ids,
    shared_kept,
    shared_running,
    statement_of,
)
from eventing.subscriptions.services.shared_records import Taken, lines_take, record_held, record_take, shared_purge
from eventing.subscriptions.services.shared_subscriptions import keep_s_of, now_ms
from eventing.subscriptions.sharing.messages import (
    LINES_MAX,
    RECORDS_MAX,
    SENTENCE_CHARS_MAX,
    RefusedRecord,
    SentLine,
    SharingAnswer,
    SharingMessage,
    decoded,
    encode,
)

PATH = "/federation/v1/subscriptions"
BATCH = 500  # subscriptions of one sweep; more are due again at the next
CALL_S_MAX = 2.0  # of one request; a peer that does not answer must not delay the beats to others
TURN_MS = 8000  # longer than a sweep's two rounds take; a process that died with the lock blocks others no longer
AT_ONCE = 8  # peers
INDEXED_S = 10  # seconds between two repairs of the index of due times
STAND_ASIDE_LEASES = 10  # leases for which a holder that drains leaves the delivery to others; then it delivers again
ABLE_AGAIN_MS = 1000  # before a holder that cannot deliver to the endpoint is asked again whether it can
RECORD_AGAIN_MS = 2000  # before a record that was not acknowledged is sent again
PULL = "pull"
logger = logging.getLogger(__name__)


# Receiving


def subscriptions(sender: Sender, body: bytes) -> bytes:
    """Answer a message of an active peer (peering/wire/endpoints.py). Raises wire.BadMessage, redis.RedisError."""
    peer = sender.peer
    assert peer is not None  # noqa: S101 - only hello is open to others
    message, now = decoded(body, SharingMessage), timezone.now()
    refused = []
    for position, statement in enumerate(message.records):
        try:
            record_take(statement, carrier=peer, now=now)
        except BadStatement as error:
            refused.append(RefusedRecord(position, str(error)[:SENTENCE_CHARS_MAX]))
        except ApplicationError as error:
            refused.append(RefusedRecord(position, error.detail[:SENTENCE_CHARS_MAX]))
        except IntegrityError:
            refused.append(RefusedRecord(position, "The subscription is being recorded at the moment. Try again."))
    taken = lines_take([(one.statement, one.left_ms) for one in message.lines], carrier=peer, now=now)
    return encode(SharingAnswer(VERSION, refused, taken.unknown[:LINES_MAX], _news(taken, now)))


def _news(taken: Taken, now: datetime) -> list[SentLine]:
    """Return newer information held here: lines of delivering holders, and acknowledgements."""
    held = list(shared_running({*taken.news, *taken.acked}).items())
    found: list[SentLine] = []
    for (one, (shared, row)), kept in zip(
        held, read_all([SubscriptionKey(row.at, one) for one, (_, row) in held]), strict=True
    ):
        line = _line(shared, row, kept, kept.standing, now)
        ours = line is not None and line_read(line.statement).by == config().domain
        if line is not None and (one in taken.news or ours):
            found.append(line)
        if one in taken.acked and not ours and (key := signing_key(now)) is not None:
            found.append(SentLine(sign(_stated(shared, row, kept, now, 0, 1), key), 0))
    return found[:LINES_MAX]


# The sweep


@dataclass(slots=True)
class _Outgoing:
    """The message to one peer. `sent` are the ids and versions of the records, in their order."""

    records: list[Signed] = field(default_factory=list)
    sent: list[tuple[str, int]] = field(default_factory=list)
    lines: list[SentLine] = field(default_factory=list)


def subscriptions_sweep(*, now: datetime | None = None) -> int:
    """Carry out what is due for the shared subscriptions held here. Safe to run twice and concurrently: one process has
    the lock.

    Returns how many were due. Raises redis.RedisError.
    """
    now, lease = now or timezone.now(), sweep_lease(secrets.token_hex(8), TURN_MS)
    if not due(now_ms(now), 1) and indexed():
        return 0  # without a write: most domains have no shared subscription
    if not lease.acquire():
        return 0
    try:
        if index_begin(INDEXED_S):
            due_add(shared_ids(), now_ms(now))
            shared_purge(now=now)
        ids, began = due(now_ms(now), BATCH), time.monotonic()
        if ids:
            asked, outgoing = _due(ids, now)
            silent = _send_all(outgoing)
            left = [line for name, what in outgoing.items() if name not in silent for line in what.lines]
            unsent = {line_read(line.statement).id for line in left}  # out of time: they are asked in the next sweep
            if asked := [one for one in asked if one not in unsent]:
                _, outgoing = _due(asked, now + timedelta(seconds=time.monotonic() - began), asked=True)
                _send_all({name: what for name, what in outgoing.items() if name not in silent})
        return len(ids)
    finally:
        lease.release()


def _due(ids: list[str], now: datetime, *, asked: bool = False) -> tuple[list[str], dict[str, _Outgoing]]:
    """Apply the passing of time to these subscriptions.

    Returns: Those to take over next, unless another holder's answer is against it; and the messages by peer. `asked`
    states that these answers have been received.
    """
    held = shared_kept(ids)
    running = shared_running(ids)
    due_forget([one for one in ids if one not in held])
    outgoing: dict[str, _Outgoing] = {}
    when: dict[str, int] = {}
    asking: list[str] = []
    silent = [one for one in held if one not in running]
    for one in silent:
        if _records(held[one], outgoing):
            when[one] = now_ms(now) + RECORD_AGAIN_MS
    due_forget([one for one in silent if one not in when])
    able = _able(running)
    for one, (kept, standing) in _ticked(running, able, now, asked=asked).items():
        shared, row = running[one]
        rules = record_of(shared).rules
        held_back = _held_back(row, shared, standing, able, now)
        if not held_back and takeover.takes_over(rules, config().domain, standing, now_ms(now)):
            asking.append(one)
            _question(shared, row, kept, now, outgoing)
        else:
            _lines(shared, row, kept, standing, now, outgoing)
        again = takeover.due_ms(rules, config().domain, standing, now_ms(now))
        if held_back:
            again = max(again, now_ms(now) + ABLE_AGAIN_MS)
        if _records(shared, outgoing):
            again = min(again, now_ms(now) + RECORD_AGAIN_MS)
        when[one] = again
    due_set(when)
    return asking, outgoing


def delivering_here(*, now: datetime | None = None) -> int:
    """Return how many shared subscriptions this domain delivers now. Raises redis.RedisError."""
    at_ms = now_ms(now or timezone.now())
    places = [SubscriptionKey(row.at, row.id) for _, row in shared_running(shared_ids()).values()]
    me = config().domain
    return sum(kept.standing is not None and takeover.delivers(kept.standing, me, at_ms) for kept in read_all(places))


def _able(running: dict[str, tuple[SharedSubscription, Subscription]]) -> Mapping[str, EndpointAbility]:
    """Return the endpoints here that events can be sent to, of subscriptions that have one."""
    pushed = [one for one, (_, row) in running.items() if row.deliver["mode"] != PULL]
    return endpoints_able(pushed) if pushed else {}


def _held_back(
    row: Subscription,
    shared: SharedSubscription,
    standing: HolderStanding,
    able: Mapping[str, EndpointAbility],
    now: datetime,
) -> bool:
    """Return True if this holder takes its next step not now: it stands aside while it drains, or because of its endpoint."""
    rules = record_of(shared).rules
    if draining() and len(rules.holders) > 1 and now_ms(now) < standing.until_ms + STAND_ASIDE_LEASES * rules.lease_ms:
        return True
    if row.deliver["mode"] == PULL:
        return False
    return is_held_back(rules, config().domain, standing, able.get(row.id), now_ms(now))


def _ticked(
    running: dict[str, tuple[SharedSubscription, Subscription]],
    able: Mapping[str, EndpointAbility],
    now: datetime,
    *,
    asked: bool,
) -> dict[str, tuple[Kept, HolderStanding]]:
    """Return the standings after time has passed, as written; without those that another process changed meanwhile.

    Those that would be taken over are left until the other holders have been asked.
    """
    me, at_ms = config().domain, now_ms(now)
    places = {one: SubscriptionKey(row.at, row.id) for one, (_, row) in running.items()}
    found: dict[str, tuple[Kept, HolderStanding]] = {}
    changes: list[StandingChange] = []
    for one, kept in zip(places, read_all(list(places.values())), strict=True):
        shared, row = running[one]
        rules = record_of(shared).rules
        before = kept.standing or takeover.newcomer(rules, at_ms)
        waits = not asked and takeover.takes_over(rules, me, before, at_ms)
        waits = waits or _held_back(row, shared, before, able, now)
        standing = before if waits else takeover.tick(rules, me, before, at_ms)
        found[one] = (kept, standing)
        if standing != kept.standing:
            line = _line(shared, row, kept, standing, now)
            own = packed(line.statement) if line is not None and standing.deliverer == me else b""
            changes.append(StandingChange(places[one], kept.raw, standing, own, keep_s_of(row, now)))
            if standing.deliverer == me and standing.term > 1 and standing.beat == 1:
                logger.info("This domain delivers the subscription %s from now on, term %d.", one, standing.term)
    for change, written in zip(changes, write_all(changes), strict=True):
        if not written:  # it is still due, and read again
            del found[change.place.id]
    return found


def _line(
    shared: SharedSubscription, row: Subscription, kept: Kept, standing: HolderStanding | None, now: datetime
) -> SentLine | None:
    """Return the line to send: this domain's own if it delivers, else the received one; None if no delivering holder is
    known.
    """
    me, at_ms = config().domain, now_ms(now)
    if standing is None:
        return None
    if takeover.delivers(standing, me, at_ms):
        key = signing_key(now)
        if key is None:
            return None
        line = _stated(shared, row, kept, now, standing.term, standing.beat)
        return SentLine(sign(line, key), standing.until_ms - at_ms)
    if not kept.line or standing.deliverer == me:
        return None
    return SentLine(unpacked(kept.line), max(0, min(standing.until_ms - at_ms, record_of(shared).lease_ms)))


def _stated(
    shared: SharedSubscription, row: Subscription, kept: Kept, now: datetime, term: int, beat: int
) -> LineStatement:
    """Return a line of this domain; in term 0 with acknowledgements only."""
    return LineStatement(
        v=STATEMENT_VERSION,
        kind="line",
        id=row.id,
        by=config().domain,
        term=term,
        beat=beat,
        acked=dict(sorted(kept.acked.items())[:VECTOR_FEEDS_MAX]),
        expires_at_ms=now_ms(row.expires_at),
        told=[peer.name for peer in _reached(shared)],
        at_ms=now_ms(now),
    )


def _lines(
    shared: SharedSubscription,
    row: Subscription,
    kept: Kept,
    standing: HolderStanding,
    now: datetime,
    outgoing: dict[str, _Outgoing],
) -> None:
    """Add this domain's line for all holders in reach, or another's for those that the other does not reach itself."""
    line = _line(shared, row, kept, standing, now)
    if line is None:
        return
    own = standing.deliverer == config().domain
    told = set() if own else {standing.deliverer, *line_read(line.statement).told}
    for peer in _reached(shared):
        if peer.name not in told:
            outgoing.setdefault(peer.name, _Outgoing()).lines.append(line)


def _question(
    shared: SharedSubscription, row: Subscription, kept: Kept, now: datetime, outgoing: dict[str, _Outgoing]
) -> None:
    """Add the acknowledgements here for all holders in reach: one that knows of a deliverer answers with its line."""
    key = signing_key(now)
    if key is None:
        return
    line = SentLine(sign(_stated(shared, row, kept, now, 0, 1), key), 0)
    for peer in _reached(shared):
        outgoing.setdefault(peer.name, _Outgoing()).lines.append(line)


def _records(shared: SharedSubscription, outgoing: dict[str, _Outgoing]) -> bool:
    """Add the record for the holders that lack it. Returns whether there are any."""
    mine, lacking = shared.keeper == config().domain, False
    for holder in record_of(shared).holders:
        if holder == config().domain or (not mine and holder not in shared.told):
            continue
        if shared.told.get(holder, 0) < shared.version:
            lacking = True
            if _active(holder) is not None:
                to = outgoing.setdefault(holder, _Outgoing())
                to.records.append(statement_of(shared))
                to.sent.append((shared.id, shared.version))
    return lacking


def _reached(shared: SharedSubscription) -> list[Peer]:
    """Return the other holders that this domain can reach."""
    others = (_active(holder) for holder in record_of(shared).holders if holder != config().domain)
    return [peer for peer in others if peer is not None]


def _active(name: str) -> Peer | None:
    peer = peer_get(name)
    return peer if peer is not None and peer.active else None


def _send_all(outgoing: dict[str, _Outgoing]) -> set[str]:
    """Send all peers their messages concurrently. Returns those that did not answer."""
    work = sorted(outgoing.items())
    if len(work) <= 1:
        return {name for name, what in work if not _send(name, what)}
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="subscriptions") as threads:
        answered = list(threads.map(lambda one: _send_on_thread(*one), work))
    return {name for (name, _), did in zip(work, answered, strict=True) if not did}


def _send_on_thread(name: str, what: _Outgoing) -> bool:
    try:
        return _send(name, what)
    except Exception:
        logger.exception(
            "The message to %s about shared subscriptions failed; it is sent again with the next sweep.", name
        )
        return False
    finally:
        connection.close()


def _send(name: str, what: _Outgoing) -> bool:
    """Send one peer its message, in as few requests as the bounds allow. Returns whether it answers; `what` keeps the
    unsent rest.
    """
    until = time.monotonic() + CALL_S_MAX
    while (what.records or what.lines) and (left_s := until - time.monotonic()) > 0:
        records, what.records = what.records[:RECORDS_MAX], what.records[RECORDS_MAX:]
        sent, what.sent = what.sent[:RECORDS_MAX], what.sent[RECORDS_MAX:]
        lines, what.lines = what.lines[:LINES_MAX], what.lines[LINES_MAX:]
        peer = _active(name)
        if peer is None:
            return False
        try:
            data = call(peer.url, name, PATH, encode(SharingMessage(VERSION, records, lines)), left_s)
            _answered(peer, sent, decoded(data, SharingAnswer))
        except PeerError as error:
            logger.info("%s refuses the message about shared subscriptions: %s", name, error.detail)
            return False
        except BadMessage as error:
            misbehaviour_note("malformed", carrier=name, detail=str(error))
            return False
    return True


def _answered(peer: Peer, sent: list[tuple[str, int]], answer: SharingAnswer) -> None:
    """Record what the peer has acknowledged, and apply its newer lines."""
    refused = {one.position: one.why for one in answer.refused}
    for position, (one, version) in enumerate(sent):
        if position in refused:
            why = "".join(filter(str.isprintable, refused[position]))
            logger.info("%s does not hold the subscription %s: %s", peer.name, one, why)
        else:
            _told(one, peer.name, version)
    for one in answer.unknown:
        _told(one, peer.name, 0)
    lines_take([(one.statement, one.left_ms) for one in answer.lines], carrier=peer, now=timezone.now())


def _told(subscription: str, holder: str, version: int) -> None:
    """Record that the holder has this version of the record; 0: it lacks the record."""
    if record_held(subscription, holder, version) and not version:
        due_set({subscription: 0})

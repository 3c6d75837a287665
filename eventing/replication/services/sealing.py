"""Sealing: own runs are signed before they leave the domain, once, and no number is ever used for two events.

The life of a seal: a peer is to get events (replication/forwarding/outbound.py), or a reader requests a proof ->
`seals_own` takes what no seal covers, at most a run of RUN_EVENTS_MAX events and RUN_BYTES_MAX bytes at a time -> it
signs them -> it moves the RP's SealHead in SQL, which only one of several processes can, because the row must still be
the previous seal -> it stores the seal in the log, from where runs are sent. A crash between the two is repaired by the
next process that seals.

A log that is older than its SealHead was restored from a copy: its numbers have left the domain already, for other
events. It begins a new epoch, with the events that it received since; other replicas return what they hold of the old
one. A domain whose SQL was restored as well learns it from a peer that sends an own seal beyond the own head
(`own_seal_seen`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from django.db import connection, transaction
from django.utils import timezone

from eventing.access.selectors.keys import signing_key
from eventing.access.services.keys import ensure_domain_key
from eventing.conf import config
from eventing.core import merkle, signing
from eventing.core.container import per_process
from eventing.core.decoding import msgpack_reader
from eventing.core.events.feeds import Feed
from eventing.core.ids import is_admin
from eventing.core.seals import seals
from eventing.core.seals.heads import HEAD_BYTES
from eventing.core.seals.seal_heads import same_events, verdict
from eventing.core.seals.seals import BadSeal
from eventing.core.signing import Signed
from eventing.log import control, federated, federated_bulk
from eventing.log.federated import LogHead, StoredRun, StoredSeal, Unsealed
from eventing.log.federated_bulk import OwnSeal
from eventing.log.scripts import OWN, NoLog
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.replication.models import SealHead
from eventing.replication.selectors.seals import epoch_heads, sealed_rps
from eventing.replication.services.sealing_turns import SealingTurns
from eventing.rps.models import RendezvousPoint
from eventing.store.sealing_holds import held_since
from eventing.telemetry import metrics

# One fsync for all of them.
RPS_AT_ONCE = 500  # bound: RPs sealed in one transaction; the others are in the next transaction
READ_AT_ONCE = (
    32  # RPs whose events are in memory at once: 32 MiB at most, in fact far less; more where these cannot have more
)
CHECKED_AT_ONCE = 500  # logs compared with their heads in one round trip
KEPT_DAYS = 30  # heads of a removed RP
PURGE_BATCH = 5000
# The bound of one request.
FRESH_EVENTS_MAX = 1000  # bound: events kept for the request after sealing; the others are read from the log again
FRESH_BYTES_MAX = 1024 * 1024
ROUNDS_MAX = 10_000  # rounds of RUN_EVENTS_MAX events each; more than any history holds
_HEAD_UPDATE = (
    f"UPDATE {SealHead._meta.db_table} SET last = %s, digest = %s, statement = %s, leaves = %s, sealed_at = %s "  # noqa: S608
    "WHERE rp = %s AND epoch = %s AND last = %s AND digest = %s"
)
_encode = msgspec.msgpack.Encoder().encode
_signed = msgpack_reader(Signed)
_turns = per_process(SealingTurns)
log = logging.getLogger(__name__)


def own_feed(epoch: str) -> Feed:
    """Return this domain's feed in that epoch of an RP."""
    return Feed(config().domain, epoch)


def seal_own(rp: str) -> int:
    """Seal what is unsealed of the own feed of one RP: see `seals_own`."""
    return seals_own([rp]).get(rp, 0)


def seals_own(rps: Iterable[str]) -> dict[str, int]:
    """Seal what is unsealed of the own feeds of `rps`; a log that is older than its seals begins a new epoch first.

    Returns per RP the last own sequence that a seal covers (0: none yet), without RPs that have no log. Nothing new is
    sealed at an RP that is held back (replication/forwarding/holding.py).
    Raises redis.RedisError; what was sealed until then stays.
    """
    reached: dict[str, int] = {}
    wanted: dict[str, int] = {}
    todo = list(dict.fromkeys(rps))
    for _ in range(ROUNDS_MAX):
        done = seals_next(todo)
        reached |= {rp: head.sealed for rp, head in done.heads.items()}
        for rp, head in done.heads.items():
            wanted.setdefault(rp, head.own)  # events that arrive meanwhile are not waited for: there may always be more
        todo = [rp for rp in done.more if done.heads[rp].sealed < wanted[rp] or done.heads[rp].own < wanted[rp]]
        if not todo:
            break
    return reached


class SealedNext(NamedTuple):
    """The outcome of one round of sealing.

    Attributes:
        heads: the present logs.
        more: RPs with more unsealed events than one run covers, or where another process is sealing: continue.
        runs: those that were sealed just now, as far as they fit FRESH_EVENTS_MAX and FRESH_BYTES_MAX together.
    """

    heads: dict[str, LogHead]
    more: list[str]
    runs: dict[str, StoredRun]


def seals_next(rps: Iterable[str]) -> SealedNext:
    """Seal one run of each own feed with unsealed events: everything, unless it is more than one run may have.

    As `seals_own`, but it ends while publishers continue, and their events make the next run larger.
    """
    heads: dict[str, LogHead] = {}
    more: list[str] = []
    fresh = _Fresh()
    left = iter([rp for rp in dict.fromkeys(rps) if not is_admin(rp)])  # those never leave the domain
    while some := list(islice(left, RPS_AT_ONCE)):
        check = _Check(some)
        todo = [rp for rp, state in check.states.items() if state.own > state.sealed]
        waiting = held_since(todo)
        todo = [rp for rp in todo if rp not in waiting]
        heads |= check.states
        if todo:
            with _turns().taken(todo) as mine:
                done = _seal_next(mine, check.states, check.digests, fresh) if mine else []
            for run in done:
                heads[run.rp] = heads[run.rp]._replace(sealed=run.last, own_head=run.digest[:HEAD_BYTES])
            heads |= _sealed_by_others(todo, mine, done)
        more += [rp for rp in todo if heads[rp].own > heads[rp].sealed]
    return SealedNext(heads, more, fresh.runs)


def heads_checked() -> int:
    """Compare all logs with their seals, so that a stale one accepts no event in its old epoch. Returns how many were
    stale.

    For the start of a process, and when Redis answers again. Raises redis.RedisError.
    """
    stale = 0
    rps = sealed_rps()
    while some := list(islice(rps, CHECKED_AT_ONCE)):
        stale += _Check(some).renewed
    return stale


def head_checked(rp: str) -> bool:
    """Compare one RP's log with its seals; return whether it was stale and has begun a new epoch."""
    return _Check([rp]).renewed > 0


def own_seal_seen(rp: str, statement: Signed) -> bool:
    """Process a received seal in this domain's name: an own one outside the own chain shows that this domain was
    restored from a copy.

    Returns whether a new epoch began. A seal that this domain did not sign, of an earlier epoch, or known here has no
    effect.
    Raises redis.RedisError.
    """
    try:
        seal = seals.seal_read(statement)
    except BadSeal:
        return False
    state = federated.heads([rp])[0]
    if state is None or (seal.rp, seal.feed) != (rp, own_feed(state.epoch)):
        return False
    if not seals.signed_by(signing.SEAL, statement, seal.sealed_at_ms, domain_keys(seal.origin)):
        return False
    held = federated.seal_of(rp, seal.feed.key, seal.last) if seal.last <= state.sealed else None
    if held is not None and _signed(held.seal).payload == statement.payload:
        return False
    if held is None and seal.last <= state.sealed:
        return False  # it was trimmed: nothing shows it any more
    row = SealHead.objects.filter(rp=rp, epoch=seal.epoch).first()
    if row is None or row.last < seal.last:
        _head_set(
            rp, seal.epoch, statement, b""
        )  # the epoch's numbers up to there are used, whatever is restored later
    newest_ms = seal.sealed_at_ms if row is None else max(seal.sealed_at_ms, int(row.sealed_at.timestamp() * 1000))
    _renew(rp, seal.epoch, seal.last, newest_ms)
    return True


def low_water_mark_own(rp: str) -> Signed | None:
    """Return the own low-water mark, signed; None if nothing was trimmed, or there is no log."""
    state = federated.heads([rp])[0]
    try:
        held = federated.vector_at(rp, state.first - 1) if state is not None else None
    except NoLog:
        return None
    if state is None or held is None or not (gone := held.get(OWN, 0)):
        return None
    key = _private_key()
    now_ms = int(timezone.now().timestamp() * 1000)
    return seals.low_water_mark_make(
        rp=rp, feed=own_feed(state.epoch), first=gone + 1, stated_at_ms=now_ms, private_jwk=key
    )


def seal_heads_purge(*, now: datetime | None = None) -> int:
    """Delete the heads of RPs that were removed more than KEPT_DAYS ago, at most PURGE_BATCH. Returns how many.

    Not at once: a domain that leaves an RP and joins it again must still know which epochs it has used.
    """
    before = (now or timezone.now()) - timedelta(days=KEPT_DAYS)
    gone = SealHead.objects.filter(sealed_at__lt=before).exclude(rp__in=RendezvousPoint.objects.values("id"))
    return SealHead.objects.filter(id__in=list(gone.values_list("id", flat=True)[:PURGE_BATCH])).delete()[0]


class _Check:
    """One comparison of logs with their heads, and its consequences.

    Attributes:
        states: of the existing logs that agree with SQL now.
        renewed: how many began a new epoch.
        digests: of the newest seals in SQL, by RP and epoch; valid only while no process moves a head.
    """

    def __init__(self, rps: Sequence[str]) -> None:
        known, self.digests = epoch_heads(rps)  # SQL first: core/seals/seal_heads.py states why
        self.states: dict[str, LogHead] = {}
        self.renewed = 0
        for rp, state in zip(rps, federated.heads(rps), strict=True):
            if state is not None:
                self._check(rp, state, known.get(rp, {}))

    def _check(self, rp: str, state: LogHead, heads: Mapping[str, int]) -> None:
        match verdict(heads, state.epoch, state.own, state.sealed):
            case "equal":
                fine = True
            case "ahead":
                fine = _adopted(rp, state)
            case "behind":
                fine = _finished(rp, state)
            case "stale":
                fine = False
        if not fine:
            row = SealHead.objects.filter(rp=rp, epoch=state.epoch).defer("leaves").first()
            newest_ms = int(row.sealed_at.timestamp() * 1000) if row is not None else None
            _renew(rp, state.epoch, heads.get(state.epoch, 0), newest_ms)
            self.renewed += 1
        now = federated.heads([rp])[0] if not fine or heads.get(state.epoch, 0) > state.sealed else state
        if now is not None:
            self.states[rp] = now


class _Draft(NamedTuple):
    """A run to seal, and the content of its seal; `after` is the last sequence that was sealed according to the log."""

    rp: str
    epoch: str
    after: int
    first: int
    last: int
    leaves: bytes
    previous: bytes
    o: int
    z: int
    payload: bytes


class _Run(NamedTuple):
    """A sealed run that is not in SQL yet, with the members of its draft, the digest of its seal and the seal as it is stored."""

    rp: str
    epoch: str
    after: int
    first: int
    last: int
    leaves: bytes
    previous: bytes
    o: int
    z: int
    statement: Signed
    digest: bytes
    packed: bytes


class _Fresh:
    """The events of the runs of one round, and these runs once they are stored: the first that fit."""

    def __init__(self) -> None:
        self.runs: dict[str, StoredRun] = {}
        self._events: dict[str, list[bytes]] = {}
        self._events_left, self._bytes_left = FRESH_EVENTS_MAX, FRESH_BYTES_MAX

    def note(self, rp: str, own: Unsealed) -> None:
        """Note events that are being sealed."""
        size = sum(map(len, own.events))
        if len(own.events) <= self._events_left and size <= self._bytes_left:
            self._events[rp] = own.events
            self._events_left, self._bytes_left = self._events_left - len(own.events), self._bytes_left - size

    def kept(self, run: _Run, seal: OwnSeal) -> None:
        """Note that the seal of the run is stored."""
        events = self._events.get(run.rp)
        if events is not None:
            self.runs[run.rp] = StoredRun(seal.feed_key, run.first, run.last, seal.seal, b"", events, ())


def _seal_next(
    rps: Sequence[str], heads: Mapping[str, LogHead], digests: Mapping[tuple[str, str], bytes], fresh: _Fresh
) -> list[_Run]:
    """Seal the next run of each RP; return those that are stored. If another process seals the same, one of them
    succeeds.
    """
    key = _private_key()
    now = timezone.now()  # after the key began: a seal from before its window is no seal
    drafts: list[_Draft] = []
    for some in _batches(rps, heads):
        for rp, own in zip(some, federated_bulk.unsealed_all(some), strict=True):
            if own is not None and own.events:
                drafts.append(_draft(rp, own, digests, now))
                fresh.note(rp, own)
    statements = signing.sign_all(signing.SEAL, [draft.payload for draft in drafts], key)
    runs = [
        _Run(*draft[:-1], statement, seals.digest(statement), _encode(statement))
        for draft, statement in zip(drafts, statements, strict=True)
    ]
    won = _heads_moved(runs, now)
    own_seals = [_own_seal(run) for run in won]
    found = zip(won, own_seals, federated_bulk.seals_keep(own_seals), strict=True)
    done: list[_Run] = []
    for run, seal, is_kept in found:  # another process has stored the others
        if is_kept:
            done.append(run)
            fresh.kept(run, seal)
    metrics.SEALS.inc(len(done))
    return done


def _sealed_by_others(rps: Sequence[str], mine: Sequence[str], done: Sequence[_Run]) -> dict[str, LogHead]:
    """Return the logs of the RPs that are not in `done`, once no other thread of this process is sealing those that are not `mine`."""
    late = sorted(set(rps).difference(run.rp for run in done))
    if not late:
        return {}
    _turns().wait(sorted(set(late).difference(mine)))
    return {rp: head for rp, head in zip(late, federated.heads(late), strict=True) if head is not None}


def _batches(rps: Sequence[str], heads: Mapping[str, LogHead]) -> Iterator[list[str]]:
    """Divide RPs so that the unsealed events of a part have at most the bytes of READ_AT_ONCE runs."""
    some: list[str] = []
    room = READ_AT_ONCE * seals.RUN_BYTES_MAX
    for rp in rps:
        head = heads[rp]
        size = min((head.own - head.sealed) * config().event_bytes_max, seals.RUN_BYTES_MAX)
        if some and size > room:
            yield some
            some, room = [], READ_AT_ONCE * seals.RUN_BYTES_MAX
        some.append(rp)
        room -= size
    if some:
        yield some


def _draft(rp: str, own: Unsealed, digests: Mapping[tuple[str, str], bytes], now: datetime) -> _Draft:
    """Return the next run of one RP, to be signed."""
    leaves = merkle.leaves(own.events)
    previous = digests.get((rp, own.epoch), b"")
    payload = seals.payload_make(
        rp=rp,
        feed=own_feed(own.epoch),
        first=own.lost,
        leaves=leaves,
        previous=previous,
        sealed_at_ms=int(now.timestamp() * 1000),
    )
    return _Draft(rp, own.epoch, own.first - 1, own.lost, own.last, leaves, previous, own.o, own.z, payload)


def _heads_moved(runs: Sequence[_Run], now: datetime) -> list[_Run]:
    """Move the heads in SQL, in one transaction; return the runs whose seal is the head now, the others were late.

    Every process takes the rows in one order, so that none waits for another that waits for it.
    """
    ordered = sorted(runs, key=lambda run: (run.rp, run.epoch))
    new = [_row(run, now) for run in ordered if not run.previous and not run.after]
    old = [run for run in ordered if run.previous or run.after]
    with transaction.atomic():
        if new:
            SealHead.objects.bulk_create(new, ignore_conflicts=True)  # the first writer prevails
        if _heads_update(old, now) == len(old) and not new:
            return list(runs)
        rows = SealHead.objects.filter(rp__among=[run.rp for run in runs])
        won = {(rp, epoch): bytes(digest) for rp, epoch, digest in rows.values_list("rp", "epoch", "digest")}
    return [run for run in runs if won.get((run.rp, run.epoch)) == run.digest]


def _heads_update(runs: Sequence[_Run], now: datetime) -> int:
    """Write the heads that are still the seals before these, by one prepared statement; return how many there were.

    The ORM, which makes an object and an expression of every value, costs as much as reading, signing and storing the runs.
    """
    if not runs:
        return 0
    sealed_at = connection.ops.adapt_datetimefield_value(now)
    values = [
        (run.last, run.digest, run.packed, run.leaves, sealed_at, run.rp, run.epoch, run.after, run.previous)
        for run in runs
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_HEAD_UPDATE, values)
        return int(cursor.rowcount)


def _row(run: _Run, now: datetime) -> SealHead:
    return SealHead(
        rp=run.rp,
        epoch=run.epoch,
        last=run.last,
        digest=run.digest,
        statement=run.packed,
        leaves=run.leaves,
        sealed_at=now,
    )


def _own_seal(run: _Run) -> OwnSeal:
    key = own_feed(run.epoch).key
    return OwnSeal(run.rp, key, run.first, run.last, run.packed, run.leaves, run.o, run.z, run.epoch, run.digest)


def _adopted(rp: str, state: LogHead) -> bool:
    """Adopt a seal in the log that SQL lacks, if it is an own one. False: the log cannot be trusted."""
    if SealHead.objects.filter(rp=rp, epoch=state.epoch, last__gte=state.sealed).exists():
        return True  # made between the two reads
    stored = federated.seal_of(rp, own_feed(state.epoch).key, state.sealed)
    if stored is None or not _ours(rp, state, stored):
        return False
    log.warning(
        "The database had older seals of %s than its log: it was restored from a copy, and adopts seal %d.",
        rp,
        stored.last,
    )
    _head_set(rp, state.epoch, _signed(stored.seal), stored.leaves)
    return True


def _ours(rp: str, state: LogHead, stored: StoredSeal) -> bool:
    statement = _signed(stored.seal)
    try:
        seal = seals.seal_read(statement)
    except BadSeal:
        return False
    if (seal.rp, seal.feed, seal.last) != (rp, own_feed(state.epoch), stored.last):
        return False
    return seals.signed_by(signing.SEAL, statement, seal.sealed_at_ms, domain_keys(config().domain))


def _finished(rp: str, state: LogHead) -> bool:
    """Store a seal in the log that only SQL has, if the log holds its events. False: the log holds others."""
    row = SealHead.objects.filter(rp=rp, epoch=state.epoch).first()
    if row is None:
        return True  # another process does it
    statement, leaves = _signed(bytes(row.statement)), bytes(row.leaves)
    seal = seals.seal_read(statement)
    (held,) = federated_bulk.unsealed_all([rp])
    if held is None or held.epoch != state.epoch or held.first > seal.last:
        return True  # another process has done it
    if held.last > seal.last:
        (held,) = federated_bulk.unsealed_all([rp], max(1, seal.last - held.lost + 1))
        if held is None:
            return True
    if not same_events(seal, leaves, held.lost, held.events):
        now = federated.heads([rp])[0]  # another process may have stored it between the two reads
        return now is None or (now.epoch, now.sealed) != (state.epoch, state.sealed)
    run = _Run(
        rp,
        row.epoch,
        held.first - 1,
        seal.first,
        seal.last,
        leaves,
        seal.previous,
        held.o,
        held.z,
        statement,
        seals.digest(statement),
        bytes(row.statement),
    )
    return federated_bulk.seals_keep([_own_seal(run)])[0] or federated.heads([rp])[0] != state


def _head_set(rp: str, epoch: str, statement: Signed, leaves: bytes) -> None:
    """Set a head to a verified own seal, unless the head is further already."""
    seal = seals.seal_read(statement)
    values = {
        "last": seal.last,
        "digest": seals.digest(statement),
        "statement": _encode(statement),
        "leaves": leaves,
        "sealed_at": datetime.fromtimestamp(seal.sealed_at_ms / 1000, UTC),
    }
    with transaction.atomic():
        _, made = SealHead.objects.get_or_create(rp=rp, epoch=epoch, defaults=values)
        if not made:
            SealHead.objects.filter(rp=rp, epoch=epoch, last__lt=seal.last).update(**values)


def _renew(rp: str, was: str, sealed: int, newest_ms: int | None) -> None:
    """Begin a new epoch of a log that was restored from a copy, report it, and have gateways read it again.

    Args:
        newest_ms: when the newest seal of the old epoch was made: events appended later are in no seal and never left
            the domain, but their publishers were answered, so they are carried over. None: nothing is.
    """
    try:
        epoch = federated.renumber(rp, was, carry_after_ms=newest_ms)
    except NoLog:
        return
    log.error(
        "The log of %s was older than what had left this domain (sealed up to %s:%d): the epoch %s began.",
        rp,
        was,
        sealed,
        epoch,
    )
    with change(timezone.now()) as outbox:
        state = None if is_admin(rp) else control.log_state(rp)
        if state is not None:
            data = {"was": was, "sealed": sealed, **events.log_data(state)}
            outbox.event(events.EPOCH_RENEWED, rp, data, domain_too=True)
    control.announce_change(rp)


def _private_key() -> dict[str, Any]:
    """Return the present signing key."""
    key = signing_key()
    if key is None:
        ensure_domain_key()
        key = signing_key()
    assert key is not None  # noqa: S101 - it has just been made
    return key

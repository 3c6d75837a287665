"""Sealing: own runs are signed before they leave the domain, once, and no number is ever used for two events.

The life of a seal: a peer is to get events (replication/forwarding/outbound.py), or a reader asks for a proof -> `seals_own` takes
what no seal covers, at most a run of RUN_EVENTS_MAX events and RUN_BYTES_MAX bytes at a time -> it signs them -> it moves
the RP's SealHead in SQL, which only one of several processes can, because the row must still be the seal before -> it
keeps the seal in the log, from where runs are sent. A crash between the two is made good by whoever comes next.

A log that is older than its SealHead was put back from a copy: its numbers are out in the world already, on other events.
It begins a new epoch, with the events that it took since; what other replicas hold of the old one comes back from them. A
domain whose SQL was put back as well learns it from a peer that shows a seal of ours beyond our head (`own_seal_seen`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from django.db import transaction
from django.utils import timezone

from eventing.access.selectors.keys import signing_key
from eventing.access.services.keys import ensure_domain_key
from eventing.conf import config
from eventing.core import merkle, signing
from eventing.core.decoding import msgpack_reader
from eventing.core.events.feeds import Feed
from eventing.core.ids import is_admin
from eventing.core.seals import seals
from eventing.core.seals.heads import tip
from eventing.core.seals.seal_heads import same_events, verdict
from eventing.core.seals.seals import RUN_BYTES_MAX, RUN_EVENTS_MAX, BadSeal
from eventing.core.signing import Signed
from eventing.log import control, federated, federated_bulk
from eventing.log.federated import Head, NoLog, StoredRun, StoredSeal, Unsealed
from eventing.log.federated_bulk import OwnSeal
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.replication.models import SealHead
from eventing.replication.selectors.seals import epoch_heads, sealed_rps
from eventing.rps.models import RendezvousPoint
from eventing.store.keys import SEALING_HELD_KEY
from eventing.telemetry import metrics

RPS_AT_ONCE = 500  # sealed in one transaction: one fsync for all of them
READ_AT_ONCE = 32  # RPs whose events are in memory at once: 32 MiB at most, in fact far less
CHECKED_AT_ONCE = 500  # logs compared with their heads in one round trip
KEPT_DAYS = 30  # the heads of an RP that is gone
PURGE_BATCH = 5000
FRESH_EVENTS_MAX = 1000  # sealed in one round and kept in memory: what one request carries
FRESH_BYTES_MAX = 1024 * 1024
ROUNDS_MAX = 10_000  # of RUN_EVENTS_MAX events each; more than any history holds
_encode = msgspec.msgpack.Encoder().encode
_signed = msgpack_reader(Signed)
log = logging.getLogger(__name__)


def own_feed(epoch: str) -> Feed:
    """This domain's feed in that epoch of an RP."""
    return Feed(config().domain, epoch)


def seal_own(rp: str) -> int:
    """Seal what is unsealed of the own feed of one RP: see `seals_own`."""
    return seals_own([rp]).get(rp, 0)


def seals_own(rps: Iterable[str]) -> dict[str, int]:
    """Seal what is unsealed of the own feeds of `rps`; a log that is older than its seals begins a new epoch first.

    Returns per RP the last own sequence that a seal covers (0: none yet); an RP without a log is left out. Nothing new is
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
            wanted.setdefault(rp, head.own)  # what comes while this goes on is not waited for: it may never end
        todo = [rp for rp in done.more if done.heads[rp].sealed < wanted[rp] or done.heads[rp].own < wanted[rp]]
        if not todo:
            break
    return reached


class SealedNext(NamedTuple):
    """What one round of sealing came to.

    Attributes:
        heads: the logs there are, as they are now.
        more: of these RPs more was unsealed than one run covers, or another process was at it: go on.
        runs: those that were sealed just now, as far as they fit FRESH_EVENTS_MAX and FRESH_BYTES_MAX together.
    """

    heads: dict[str, Head]
    more: list[str]
    runs: dict[str, StoredRun]


def seals_next(rps: Iterable[str]) -> SealedNext:
    """Seal one run of each own feed that has something unsealed: everything, unless it is more than one run may have.

    As `seals_own`, but it ends while publishers go on, and what they add meanwhile makes the next run larger.
    """
    heads: dict[str, Head] = {}
    more: list[str] = []
    fresh = _Fresh()
    left = iter([rp for rp in dict.fromkeys(rps) if not is_admin(rp)])  # those never leave the domain
    while some := list(islice(left, RPS_AT_ONCE)):
        check = _Check(some)
        todo = [rp for rp, state in check.states.items() if state.own > state.sealed]
        waiting = held_back(todo)
        todo = [rp for rp in todo if rp not in waiting]
        heads |= check.states
        if todo:
            done = _seal_next(todo, check.digests, fresh)
            heads |= {run.rp: heads[run.rp]._replace(sealed=run.last, tip=tip(run.statement)) for run in done}
        more += [rp for rp in todo if heads[rp].own > heads[rp].sealed]
    return SealedNext(heads, more, fresh.runs)


def held_back(rps: Sequence[str]) -> dict[str, float]:
    """Those of `rps` whose own feed is held back, and since when (Unix seconds)."""
    if not rps:
        return {}
    since: Any = control.client().zmscore(SEALING_HELD_KEY, list(rps))
    return {rp: float(at) for rp, at in zip(rps, since, strict=True) if at is not None}


def heads_checked() -> int:
    """Compare all logs with their seals, so that a stale one takes no event in its old epoch. Returns how many were stale.

    For the start of a process, and when Redis has come back. Raises redis.RedisError.
    """
    stale = 0
    rps = sealed_rps()
    while some := list(islice(rps, CHECKED_AT_ONCE)):
        stale += _Check(some).renewed
    return stale


def head_checked(rp: str) -> bool:
    """The same for one RP: whether its log was stale and has begun a new epoch."""
    return _Check([rp]).renewed > 0


def own_seal_seen(rp: str, statement: Signed) -> bool:
    """Judge a seal in our own name that somebody sent us: if it is ours and not in our chain, we were put back.

    Returns whether a new epoch began. What is not signed by us, of an epoch before, or known here changes nothing.
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
        return False  # it left the history: nobody can say any more
    row = SealHead.objects.filter(rp=rp, epoch=seal.epoch).first()
    if row is None or row.last < seal.last:
        _head_set(rp, seal.epoch, statement, b"")  # the epoch's numbers up to there are used, whatever comes back later
    newest_ms = seal.sealed_at_ms if row is None else max(seal.sealed_at_ms, int(row.sealed_at.timestamp() * 1000))
    _renew(rp, seal.epoch, seal.last, newest_ms)
    return True


def floor_own(rp: str) -> Signed | None:
    """State which sequences of our feed are out of the history for everybody; None if none is, or there is no log."""
    state = federated.heads([rp])[0]
    try:
        held = federated.vector_at(rp, state.first - 1) if state is not None else None
    except NoLog:
        return None
    if state is None or held is None or not (gone := held.get(federated.OWN, 0)):
        return None
    now_ms = int(timezone.now().timestamp() * 1000)
    return seals.floor_make(
        rp=rp, feed=own_feed(state.epoch), first=gone + 1, stated_at_ms=now_ms, private_jwk=_private_key()
    )


def seal_heads_purge(*, now: datetime | None = None) -> int:
    """Forget the heads of RPs that have been gone for KEPT_DAYS, at most PURGE_BATCH. Returns how many.

    Not at once: a domain that leaves an RP and joins it again must still know which epochs it has used.
    """
    before = (now or timezone.now()) - timedelta(days=KEPT_DAYS)
    gone = SealHead.objects.filter(sealed_at__lt=before).exclude(rp__in=RendezvousPoint.objects.values("id"))
    return SealHead.objects.filter(id__in=list(gone.values_list("id", flat=True)[:PURGE_BATCH])).delete()[0]


class _Check:
    """One comparison of logs with their heads, and what was done about it.

    Attributes:
        states: of the logs there are and that agree with SQL now.
        renewed: how many began a new epoch.
        digests: of the newest seals in SQL, by RP and epoch; to be believed only as far as nobody moves a head meanwhile.
    """

    def __init__(self, rps: Sequence[str]) -> None:
        known, self.digests = epoch_heads(rps)  # SQL first: core/seals/seal_heads.py says why
        self.states: dict[str, Head] = {}
        self.renewed = 0
        for rp, state in zip(rps, federated.heads(rps), strict=True):
            if state is not None:
                self._judge(rp, state, known.get(rp, {}))

    def _judge(self, rp: str, state: Head, heads: Mapping[str, int]) -> None:
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
    """A run that is to be sealed, and what its seal says; `after` is the last sequence that the log knew to be sealed."""

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
    """A run that is sealed and not in SQL yet, as its draft."""

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


class _Fresh:
    """The events of the runs of one round, and these runs once they are kept: the first that fit."""

    def __init__(self) -> None:
        self.runs: dict[str, StoredRun] = {}
        self._events: dict[str, list[bytes]] = {}
        self._events_left, self._bytes_left = FRESH_EVENTS_MAX, FRESH_BYTES_MAX

    def note(self, rp: str, own: Unsealed) -> None:
        """These events are being sealed."""
        size = sum(map(len, own.events))
        if len(own.events) <= self._events_left and size <= self._bytes_left:
            self._events[rp] = own.events
            self._events_left, self._bytes_left = self._events_left - len(own.events), self._bytes_left - size

    def kept(self, run: _Run, seal: OwnSeal) -> None:
        """The seal of the run is kept."""
        events = self._events.get(run.rp)
        if events is not None:
            self.runs[run.rp] = StoredRun(seal.feed_key, run.first, run.last, seal.seal, b"", events, ())


def _seal_next(rps: Sequence[str], digests: Mapping[tuple[str, str], bytes], fresh: _Fresh) -> list[_Run]:
    """Seal the next run of each RP; returns those that are kept. Whoever else seals the same meanwhile: one of us has it."""
    now = timezone.now()
    key = _private_key()
    drafts: list[_Draft] = []
    for begin in range(0, len(rps), READ_AT_ONCE):
        some = rps[begin : begin + READ_AT_ONCE]
        for rp, own in zip(some, federated_bulk.unsealed_all(some), strict=True):
            if own is not None and own.events:
                drafts.append(_draft(rp, own, digests, now))
                fresh.note(rp, own)
    statements = signing.sign_all(signing.SEAL, [draft.payload for draft in drafts], key)
    runs = [_Run(*draft[:-1], statement) for draft, statement in zip(drafts, statements, strict=True)]
    won = _heads_moved(runs, now)
    own_seals = [_own_seal(run) for run in won]
    found = zip(won, own_seals, federated_bulk.seals_keep(own_seals), strict=True)
    done: list[_Run] = []
    for run, seal, is_kept in found:  # one that is not was kept by somebody else
        if is_kept:
            done.append(run)
            fresh.kept(run, seal)
    metrics.SEALS.inc(len(done))
    return done


def _draft(rp: str, own: Unsealed, digests: Mapping[tuple[str, str], bytes], now: datetime) -> _Draft:
    """The next run of one RP, to be signed."""
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
    """Move the heads in SQL, in one transaction; returns the runs whose seal is the head now, the others were late."""
    with transaction.atomic():
        rows = SealHead.objects.select_for_update().filter(rp__in=[run.rp for run in runs]).order_by("id")
        held = {
            (rp, epoch): (last, bytes(digest))
            for rp, epoch, last, digest in rows.values_list("rp", "epoch", "last", "digest")
        }
        new, moved, done = [], [], []
        for run in runs:
            row = held.get((run.rp, run.epoch))
            if row is None and not run.previous and not run.after:
                new.append(_row(run, now))
            elif row == (run.after, run.previous):
                moved.append(_row(run, now))
            else:
                continue
            done.append(run)
        SealHead.objects.bulk_create(new, ignore_conflicts=True)  # whoever came first stays, see below
        SealHead.objects.bulk_create(  # these rows are there, and ours until the end: a fifth of bulk_update's cost
            moved,
            update_conflicts=True,
            unique_fields=["rp", "epoch"],
            update_fields=["last", "digest", "statement", "leaves", "sealed_at"],
        )
    if not new:
        return done
    rows = SealHead.objects.filter(rp__in=[row.rp for row in new])
    won = {(rp, epoch): bytes(digest) for rp, epoch, digest in rows.values_list("rp", "epoch", "digest")}
    return [run for run in done if run.previous or won.get((run.rp, run.epoch)) == seals.digest(run.statement)]


def _row(run: _Run, now: datetime) -> SealHead:
    return SealHead(
        rp=run.rp,
        epoch=run.epoch,
        last=run.last,
        digest=seals.digest(run.statement),
        statement=_encode(run.statement),
        leaves=run.leaves,
        sealed_at=now,
    )


def _own_seal(run: _Run) -> OwnSeal:
    key, seal = own_feed(run.epoch).key, _encode(run.statement)
    return OwnSeal(run.rp, key, run.first, run.last, seal, run.leaves, run.o, run.z, run.epoch, tip(run.statement))


def _adopted(rp: str, state: Head) -> bool:
    """The log holds a seal that SQL does not know: take it over if it is ours. False: the log cannot be trusted."""
    stored = federated.seal_of(rp, own_feed(state.epoch).key, state.sealed)
    if stored is None or not _ours(rp, state, stored):
        return False
    log.warning("The database knew less of %s than its log: it was put back, and takes over seal %d.", rp, stored.last)
    _head_set(rp, state.epoch, _signed(stored.seal), stored.leaves)
    return True


def _ours(rp: str, state: Head, stored: StoredSeal) -> bool:
    statement = _signed(stored.seal)
    try:
        seal = seals.seal_read(statement)
    except BadSeal:
        return False
    if (seal.rp, seal.feed, seal.last) != (rp, own_feed(state.epoch), stored.last):
        return False
    return seals.signed_by(signing.SEAL, statement, seal.sealed_at_ms, domain_keys(config().domain))


def _finished(rp: str, state: Head) -> bool:
    """SQL has a seal that the log lacks: put it there if the log holds what it covers. False: it holds something else."""
    row = SealHead.objects.filter(rp=rp, epoch=state.epoch).first()
    if row is None:
        return True  # somebody else is at it
    statement, leaves = _signed(bytes(row.statement)), bytes(row.leaves)
    seal = seals.seal_read(statement)
    try:
        held = federated.unsealed(rp, RUN_EVENTS_MAX, RUN_BYTES_MAX)
        if held.epoch != state.epoch or held.first > seal.last:
            return True  # somebody else was faster
        if held.last > seal.last:
            held = federated.unsealed(rp, max(1, seal.last - held.lost + 1), RUN_BYTES_MAX)
        if not same_events(seal, leaves, held.lost, held.events):
            now = federated.heads([rp])[0]  # somebody may have put it there between two of our looks
            return now is None or (now.epoch, now.sealed) != (state.epoch, state.sealed)
        run = _Run(
            rp, row.epoch, held.first - 1, seal.first, seal.last, leaves, seal.previous, held.o, held.z, statement
        )
        return federated_bulk.seals_keep([_own_seal(run)])[0] or federated.heads([rp])[0] != state
    except NoLog:
        return True


def _head_set(rp: str, epoch: str, statement: Signed, leaves: bytes) -> None:
    """Set a head to a seal that is known to be ours, unless the head is further already."""
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
    """Begin a new epoch of a log that was put back, say so, and have gateways look at it again.

    Args:
        newest_ms: when the newest seal of the old epoch was made: what was appended later is in no seal, so it was never
            told elsewhere; its publishers were answered, and it is taken along. None: nothing is.
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
    """The key that signs now."""
    key = signing_key()
    if key is None:
        ensure_domain_key()
        key = signing_key()
    assert key is not None  # noqa: S101 - it has just been made
    return key

"""Verification of a log by its seals: every held event, of every feed, against what its origin signed.

The life of a check: the heads in SQL and the log's feeds are read -> each feed's seals are walked, the oldest first:
each must be signed by its origin's key within that key's window, follow the one before it, and have the root of its
leaf hashes -> then the events are walked: each must be the leaf of its place in its feed's seal -> the own head in SQL
must be the last own seal. Memory is that of one seal and one batch of events, whatever the log's length.

A log that is written meanwhile is checked up to its end at the beginning; events trimmed meanwhile are not missed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from eventing.conf import config
from eventing.core import merkle, signing
from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.events.feeds import Feed
from eventing.core.seals import seals
from eventing.core.seals.seals import BadSeal, Seal
from eventing.core.signing import Signed
from eventing.log import federated
from eventing.log.federated import LogHead, StoredSeal
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.replication.selectors.seals import seal_heads

SEALS_AT_ONCE = 50  # of one query: at most 1.6 MiB of leaf hashes
EVENTS_AT_ONCE = 500
HEAD_ATTEMPTS, HEAD_PAUSE_S = 3, 0.3  # sealing takes milliseconds between SQL and the log
WORST_SHOWN = 20
_signed = msgpack_reader(Signed)


@dataclass(slots=True)
class FeedCheck:
    """The result for one feed. `origin` and `epoch` are empty while no seal of it could be read."""

    key: str
    origin: str = ""
    epoch: str = ""
    seals: int = 0
    events: int = 0
    sealed: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class SealChainCheck:
    """The result for one log.

    Attributes:
        rp: id of the RP.
        epoch: of the log; empty if there is none.
        feeds: by key, the own one first.
        events: number of events held and compared with their seals.
        unsealed: own events that no seal covers yet: they have not left the domain, and nothing proves them.
        wrong: sentences, at most WORST_SHOWN.
    """

    rp: str
    epoch: str = ""
    feeds: dict[str, FeedCheck] = field(default_factory=dict)
    events: int = 0
    unsealed: int = 0
    wrong: list[str] = field(default_factory=list)

    def say(self, sentence: str) -> None:
        """Record a fault."""
        if len(self.wrong) < WORST_SHOWN:
            self.wrong.append(sentence)


def chain_check(rp: str, progress: Callable[[int, int], None] = lambda done, total: None) -> SealChainCheck:
    """Verify the log of one RP by its seals and the heads in SQL.

    Args:
        progress: called from time to time with the compared and the total number of events.

    Raises redis.RedisError.
    """
    found = SealChainCheck(rp)
    state = federated.heads([rp])[0]
    if state is None:
        return found
    found.epoch = state.epoch
    own = Feed(config().domain, state.epoch).key
    for key in (own, *sorted(state.foreign)):
        found.feeds[key] = FeedCheck(key)
        _check_seals(found, found.feeds[key], state.sealed if key == own else state.foreign[key], own=key == own)
    _check_head(found, state, found.feeds[own])
    _check_events(found, state, own, progress)
    return found


def _check_seals(found: SealChainCheck, feed: FeedCheck, upto: int, *, own: bool) -> None:
    """Walk one feed's seals. In another domain's feed runs may be missing, by an accepted gap; in the own one none may
    be.
    """
    before: Signed | None = None
    jwks: Any = None
    for stored in _seals(found.rp, feed.key):
        if stored.first > upto:
            break
        where = f"The seal of {stored.first} to {stored.last} of feed {feed.key}"
        statement, seal = _read(stored)
        if statement is None or seal is None:
            found.say(f"{where} cannot be read.")
            continue
        if not feed.origin:
            feed.origin, feed.epoch, jwks = seal.origin, seal.epoch, domain_keys(seal.origin)
            if not jwks:
                found.say(f"The keys of {seal.origin} are not known here: its seals prove nothing.")
        where = f"The seal of {stored.first} to {stored.last} by {seal.origin}"
        if (seal.rp, seal.feed.key, seal.first, seal.last) != (found.rp, feed.key, stored.first, stored.last):
            found.say(f"{where} belongs to another place: {seal.rp} {seal.epoch}:{seal.first} to {seal.last}.")
        elif jwks and not seals.signed_by(signing.SEAL, statement, seal.sealed_at_ms, jwks):
            found.say(f"{where} is not signed by a key of that domain, or outside the key's window.")
        if merkle.root(stored.leaves) != seal.root:
            found.say(f"{where} has another Merkle root than its leaf hashes.")
        gap = before is not None and seal.first > feed.sealed + 1
        if before is not None and not _follows(seal, before) and (own or not gap):
            found.say(f"{where} does not follow the seal before it: one of them was replaced, or one is missing.")
        elif gap:
            feed.gaps.append((feed.sealed + 1, seal.first - 1))
        feed.seals, feed.sealed, before = feed.seals + 1, seal.last, statement


def _follows(seal: Seal, before: Signed) -> bool:
    try:
        return seals.chained(seal, before)
    except BadSeal:
        return False


def _check_head(found: SealChainCheck, state: LogHead, feed: FeedCheck) -> None:
    """Compare the last own seal with the head in SQL; twice, because a process may be between the two writes."""
    found.unsealed = max(0, state.own - feed.sealed)
    for attempt in range(HEAD_ATTEMPTS):
        time.sleep(HEAD_PAUSE_S if attempt else 0)
        heads = {row.epoch: row for row in seal_heads(found.rp)}
        now = federated.heads([found.rp])[0]
        if now is None or now.epoch != state.epoch:
            return  # another epoch of the log has begun meanwhile
        head, sealed = heads.get(state.epoch), now.sealed
        last = head.last if head is not None else 0
        if sealed == last:
            break
    if sealed < last:
        found.say(
            f"This domain sealed up to {last} in the epoch {state.epoch}, and the log has seals only up to {sealed}: "
            "it is older than what has left the domain."
        )
    elif sealed > last:
        found.say(
            f"The log's seals reach {sealed}, and the database's only {last}: the database was restored from a copy."
        )
    elif head is not None:
        stored = federated.seal_of(found.rp, feed.key, last)
        statement = _read(stored)[0] if stored is not None else None
        if statement is None or seals.digest(statement) != bytes(head.digest):
            found.say(f"The last own seal, up to {last}, does not have the digest in the database.")
    if head is not None and list(heads)[-1] != state.epoch:
        found.say(f"The log is in the epoch {state.epoch}, which ended when {list(heads)[-1]} began.")


def _check_events(found: SealChainCheck, state: LogHead, own: str, progress: Callable[[int, int], None]) -> None:
    """Compare every event with the leaf hash in its seal."""
    held: dict[str, StoredSeal | None] = {}
    last: dict[str, int] = {}
    total = state.next - state.first
    offset = state.first
    progress(0, total)
    while offset < state.next and len(found.wrong) < WORST_SHOWN:
        places = federated.places_from(found.rp, offset, min(EVENTS_AT_ONCE, state.next - offset))
        for at, (key, sequence, body) in places:
            feed = found.feeds.get(key or own)
            if feed is None:
                found.say(f"The event at offset {at} is of the feed {key}, which the log does not have.")
                continue
            if key and sequence != last.get(key, sequence - 1) + 1 and not _in_gap(feed, last[key] + 1, sequence - 1):
                found.say(f"Events {last[key] + 1} to {sequence - 1} of {feed.origin} are missing before offset {at}.")
            last[key] = sequence
            if not key and sequence > feed.sealed:
                continue  # not sealed yet
            if (stored := held.get(key)) is None or not stored.first <= sequence <= stored.last:
                held[key] = stored = federated.seal_of(found.rp, feed.key, sequence)
            if stored is None:
                found.say(f"No seal covers event {sequence} of {feed.origin or feed.key}, at offset {at}.")
            elif not _is_leaf(stored, sequence, body):
                found.say(f"The event at offset {at} is not the one that {feed.origin} sealed as its {sequence}.")
            feed.events += 1
            found.events += 1
        if not places:
            break
        offset = places[-1][0] + 1
        progress(offset - state.first, total)


def _in_gap(feed: FeedCheck, first: int, last: int) -> bool:
    """Return whether these sequences are missing between two seals: trimmed at the origin, or never received here."""
    return any(begin <= first and last <= end for begin, end in feed.gaps)


def _is_leaf(stored: StoredSeal, sequence: int, body: bytes) -> bool:
    at = (sequence - stored.first) * merkle.HASH_BYTES
    return stored.leaves[at : at + merkle.HASH_BYTES] == merkle.leaf(body)


def _read(stored: StoredSeal) -> tuple[Signed | None, Seal | None]:
    try:
        statement = _signed(stored.seal)
        return statement, seals.seal_read(statement)
    except (BadSeal, Undecodable):
        return None, None


def _seals(rp: str, feed_key: str) -> Iterator[StoredSeal]:
    """Yield all stored seals of a feed, the oldest first."""
    after = 0
    while found := federated.seals_after(rp, feed_key, after, SEALS_AT_ONCE):
        yield from found
        if len(found) < SEALS_AT_ONCE:
            return
        after = found[-1].last

"""Run validation: whether a run is what its origin sealed, may be accepted here, and follows what is held.

The checks of a run, the cheapest first; the first fault refuses it and is counted: its path -> its origin (admitted by
the home, not quarantined) -> the seal's signature -> the events against the seal -> the seal's place in the chain. Only
the origin can have made a run that passes (docs/federation/exchange.md has the table of attacks).

Low-water marks in a request are validated in the same order (`low_water_marks_true`). A peer may send those of feeds
that are here, of which it sends a run, or that it states to hold, as it may have no events left to send of them. Of
each feed only the highest is verified, and only if it is higher than the kept one: a request causes no more
verifications of signatures than there are such feeds.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from eventing.conf import config
from eventing.core import signing
from eventing.core.decoding import msgpack_reader
from eventing.core.errors import ApplicationError
from eventing.core.events.cloudevents import Event, parse_structured
from eventing.core.events.feeds import ORIGIN_FEEDS_MAX
from eventing.core.merkle import HASH_BYTES
from eventing.core.seals import seals
from eventing.core.seals.seals import BadSeal, LowWaterMark, Seal, seal_read
from eventing.core.signing import Signed
from eventing.log import federated, gaps, scripts, watermarks
from eventing.log.federated import LogHead, StoredSeal
from eventing.log.federated_bulk import Incoming
from eventing.log.gaps import KeptLowWaterMark
from eventing.overlay import broadcast, exchange
from eventing.peering.rules.misbehaviour import Kind
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.selectors.recent_keys import domain_keys_recent
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.quarantines import quarantined
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import wakeups
from eventing.replication.forwarding.fork_detection import proof_found
from eventing.replication.selectors.forwarding import Participation
from eventing.replication.services.sealing import own_seal_seen

_encode = msgspec.msgpack.Encoder().encode
_signed = msgpack_reader(Signed)

Outcome = Literal["take", "known", "hole", "refused"]


@dataclass(slots=True)
class ValidatedRun:
    """A run and its outcome: `incoming` for one to accept, `stored` the held seal of a known one."""

    outcome: Outcome
    feed_key: str = ""
    incoming: Incoming | None = None
    stored: StoredSeal | None = None


@dataclass(slots=True)
class _Feed:
    """One feed while a request is validated: how far it would be held, the seal there, and whether a run waits behind a
    gap.

    Runs that follow a waiting one wait as well: their gap begins at the same place, so it is accepted no sooner.
    Otherwise a request of a thousand such runs would have every link of the RP read for each of them.
    """

    held: int
    seal: Signed | None = None
    looked: bool = False
    hole: bool = False


@dataclass(slots=True)
class RunValidator:
    """Validates the runs of one RP in one request.

    Args:
        rp: the RP.
        carrier: the peer that sent them.
        who: who takes part in the RP.
        head: the present log and its feeds.
        seal_at: returns the held seal of a feed at a sequence.
        low_water_marks: by feed key, origins' low-water marks; None: read when one is needed.
    """

    rp: str
    carrier: str
    who: Participation
    head: LogHead
    seal_at: Callable[[str, int], StoredSeal | None]
    low_water_marks: Mapping[str, KeptLowWaterMark] | None = None
    renewed: bool = False
    _feeds: dict[str, _Feed] = field(default_factory=dict)
    _new: Counter[str] = field(default_factory=Counter)
    _of_origin: dict[str, int] = field(default_factory=dict)

    def validate(self, run: wire.SealedRun, seal: Seal | None = None) -> ValidatedRun:
        """Validate one run; runs of a feed must be passed in their order. `seal`: its seal, if it was decoded before."""
        try:
            seal = self._read(run, seal)
            key = seal.feed.key
            self._admitted(seal, run)
            if seal.origin == config().domain and seal.epoch == self.head.epoch:
                return self._own(seal, run)
            events = self._true(seal, run)
            return self._placed(seal, run, key, events)
        except _Fault as fault:
            misbehaviour_note(fault.kind, carrier=self.carrier, origin=fault.origin, rp=self.rp, detail=str(fault))
            return ValidatedRun("refused", fault.feed_key)

    def _read(self, run: wire.SealedRun, seal: Seal | None) -> Seal:
        if seal is None:
            try:
                seal = seal_read(run.seal)
            except BadSeal as error:
                raise _Fault("malformed", str(error)) from None
        if seal.rp != self.rp:
            raise _Fault("tampered", "A seal of another rendezvous point.", seal)
        return seal

    def _admitted(self, seal: Seal, run: wire.SealedRun) -> None:
        problem = exchange.path_problem(run.path, seal.origin, self.carrier)
        if problem:
            raise _Fault("loop", problem, seal)
        if quarantined(seal.origin):
            raise _Fault(
                "quarantined",
                "Its origin is in quarantine: its events are refused until an administrator lifts that.",
                seal,
            )
        sealed_at = datetime.fromtimestamp(min(seal.sealed_at_ms, 2**42) / 1000, UTC)
        if not self.who.admits(seal.origin, sealed_at, datetime.now(UTC)):
            raise _Fault("not-admitted", "The home has not admitted this origin, or no longer admits it.", seal)
        if not self._signed(seal, run):
            raise _Fault("forged", "A seal that is not signed by a key of its origin.", seal)

    @staticmethod
    def _signed(seal: Seal, run: wire.SealedRun) -> bool:
        """Verify the signer with cached keys; before the seal counts as forged, with present keys."""
        said = signing.SEAL, run.seal, seal.sealed_at_ms
        return seals.signed_by(*said, domain_keys_recent(seal.origin)) or seals.signed_by(
            *said, domain_keys(seal.origin)
        )

    def _own(self, seal: Seal, run: wire.SealedRun) -> ValidatedRun:
        """Validate a run of the own feed, signed by this domain: known, unless it shows that this domain was restored
        from a copy.
        """
        if own_seal_seen(
            self.rp, run.seal
        ):  # also one within the own numbers: events published since may have taken them
            self.renewed = True
            return ValidatedRun("refused", seal.feed.key)
        return ValidatedRun("known", seal.feed.key)

    def _true(self, seal: Seal, run: wire.SealedRun) -> list[Event]:
        if len(run.leaves) % HASH_BYTES or not seals.run_verified(seal, run.events, run.leaves):
            raise _Fault("tampered", f"The events of {seal.first} to {seal.last} are not those that were sealed.", seal)
        if any(len(event) > config().event_bytes_max for event in run.events):
            raise _Fault("oversize", f"An event has more than {config().event_bytes_max} bytes.", seal)
        try:
            return [parse_structured(event, bytes_max=config().event_bytes_max, sealed=True) for event in run.events]
        except ApplicationError as error:
            raise _Fault(
                "malformed", f"Its origin sealed something that is not a valid event: {error.detail}", seal
            ) from None

    def _placed(self, seal: Seal, run: wire.SealedRun, key: str, events: list[Event]) -> ValidatedRun:
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = _Feed(self.head.foreign.get(key, 0))
        if seal.first <= feed.held:
            return self._known(seal, run, key, feed)
        if not feed.held:
            self._roomy(seal)
        withheld = len(run.leaves) // HASH_BYTES
        gap = exchange.gap_before(feed.held, seal.first, withheld, 0)
        gap_to = None
        if gap is not None:
            if feed.hole:
                return ValidatedRun("hole", key)
            gap = exchange.gap_before(feed.held, seal.first, withheld, self._low_water_mark(key))
            assert gap is not None  # noqa: S101 - the low-water mark decides only whether it is signed
            if not gap.signed and not self._gap_accepted(gap, key, feed.held, seal.origin):
                feed.hole = True
                return ValidatedRun("hole", key)
            if not gap.signed:
                kind: Kind = "withheld" if withheld else "false-gap"
                detail = (
                    f"Sequences {gap.first} to {gap.last} are missing, and the origin did not state that they were "
                    "trimmed."
                )
                misbehaviour_note(kind, carrier=self.carrier, origin=seal.origin, rp=self.rp, detail=detail)
            gap_to = gap.last
            gaps.filled(self.rp, key)
        if seal.first == feed.held + 1:
            self._chained(seal, run, key, feed)
        if not feed.held:
            self._new[seal.origin] += 1
        digests = [scripts.digest(event) for event in events]
        packed = _encode(run.seal)
        incoming = Incoming(
            self.rp,
            key,
            seal.first,
            seal.last,
            run.events,
            digests,
            packed,
            run.leaves,
            run.path,
            gap_to,
            seals.digest(run.seal),
        )
        feed.held, feed.seal, feed.looked = seal.last, run.seal, True
        return ValidatedRun("take", key, incoming)

    def _roomy(self, seal: Seal) -> None:
        """Check that a feed that is not here finds one of its origin's places. Reads the log only if this many feeds
        are here.
        """
        origin = seal.origin
        if len(self.head.foreign) + self._new.total() < ORIGIN_FEEDS_MAX:
            return
        if origin not in self._of_origin:
            self._of_origin[origin] = federated.feeds_of_origin(self.rp, origin)
        if self._of_origin[origin] + self._new[origin] >= ORIGIN_FEEDS_MAX:
            raise _Fault("oversize", f"More than {ORIGIN_FEEDS_MAX} feeds of one origin.", seal)

    def _gap_accepted(self, gap: exchange.FeedGap, key: str, held: int, origin: str) -> bool:
        """Return whether to continue behind a gap that the origin did not sign. Other links are asked to fill it."""
        now = time.time()
        foreign = self.head.foreign
        known = gaps.missing(self.rp, key, held, carrier=self.carrier, last=gap.last, origin=origin, foreign=foreign)
        silent = True
        for other in self.who.links:
            if other == self.carrier:
                continue
            link = watermarks.links_read(other, [self.rp])[self.rp]
            silent = silent and broadcast.silent(link, key, gap, known.since, known.lacking.get(other, 0))
            if broadcast.doubted(link, known.since) is not link:
                watermarks.links_change(other, [self.rp], lambda _, link: broadcast.doubted(link, known.since))
                wakeups.wake(other, [self.rp])
        return exchange.gap_accepted(gap, now - known.since, silent)

    def _known(self, seal: Seal, run: wire.SealedRun, key: str, feed: _Feed) -> ValidatedRun:
        """Check a run that overlaps what is held: it must be the held one."""
        stored = self.seal_at(key, min(seal.last, feed.held))
        if stored is None or stored.seal == _encode(run.seal):
            return ValidatedRun("known", key, stored=stored)
        held = _signed(stored.seal)
        if held.payload == run.seal.payload:
            return ValidatedRun("known", key, stored=stored)
        proof_found(held, run.seal, carrier=self.carrier, whole=False)
        return ValidatedRun("refused", key)

    def _chained(self, seal: Seal, run: wire.SealedRun, key: str, feed: _Feed) -> None:
        """Check that the seal names the one before it by its digest."""
        if not feed.looked:
            if feed.held and seal.previous == self.head.foreign_digests.get(key):
                return
            stored = self.seal_at(key, feed.held) if feed.held else None
            feed.seal, feed.looked = (_signed(stored.seal) if stored is not None else None), True
        if feed.seal is None and feed.held:
            return  # the seal before was trimmed
        if seals.chained(seal, feed.seal):
            return
        if feed.seal is not None and seals.equivocate(feed.seal, run.seal):
            proof_found(feed.seal, run.seal, carrier=self.carrier, whole=False)
        raise _Fault("unchained", f"The seal of {seal.first} to {seal.last} does not follow the one before.", seal)

    def _low_water_mark(self, key: str) -> int:
        if self.low_water_marks is None:
            self.low_water_marks = gaps.low_water_marks_of(self.rp)
        return self.low_water_marks[key][0] if key in self.low_water_marks else 0


class _Fault(Exception):
    """Reason for a refusal of a run; the text is one sentence."""

    def __init__(self, kind: Kind, detail: str, seal: Seal | None = None) -> None:
        super().__init__(detail)
        self.kind: Kind = kind
        self.origin = seal.origin if seal is not None else ""
        self.feed_key = seal.feed.key if seal is not None else ""


class BadLowWaterMark(Exception):
    """A statement that is no low-water mark of this RP, or not its origin's; the text is one sentence."""

    def __init__(self, text: str, origin: str, forged: bool) -> None:
        super().__init__(text)
        self.origin = origin
        self.forged = forged


def low_water_mark_read(rp: str, statement: Signed) -> LowWaterMark:
    """Decode a low-water mark without verifying its signature (see `low_water_mark_signed`). Raises BadLowWaterMark."""
    try:
        low_water_mark = seals.low_water_mark_read(statement)
    except BadSeal as error:
        raise BadLowWaterMark(str(error), "", False) from None
    if low_water_mark.rp != rp:
        raise BadLowWaterMark("A low-water mark of another rendezvous point.", low_water_mark.origin, True)
    return low_water_mark


def low_water_mark_signed(low_water_mark: LowWaterMark, statement: Signed, keys_of: Any) -> None:
    """Verify who signed a low-water mark. `keys_of(origin)` gives that domain's public keys. Raises BadLowWaterMark."""
    if not seals.signed_by(
        signing.LOW_WATER_MARK, statement, low_water_mark.stated_at_ms, keys_of(low_water_mark.origin)
    ):
        raise BadLowWaterMark("A low-water mark that its origin did not sign.", low_water_mark.origin, True)


def low_water_marks_true(
    part: wire.RpPart,
    *,
    carrier: str,
    who: Participation,
    foreign: Mapping[str, int],
    kept: Mapping[str, KeptLowWaterMark],
) -> dict[str, KeptLowWaterMark]:
    """Return the valid low-water marks of a part that are higher than the kept ones, by feed key; faults of others are
    counted.

    Args:
        carrier: the peer that sent them.
        who: who takes part in the RP.
        foreign: the last sequence held of each feed that is here.
        kept: the low-water marks that are kept.
    """
    about = {*foreign, *part.have}
    for run in part.runs:
        with contextlib.suppress(BadSeal):
            about.add(seal_read(run.seal).feed.key)
    highest: dict[str, tuple[LowWaterMark, Signed]] = {}
    for statement in part.low_water_marks:
        try:
            low_water_mark = low_water_mark_read(part.rp, statement)
        except BadLowWaterMark as error:
            _note(error, carrier, part.rp)
            continue
        key = low_water_mark.feed.key
        known = max(kept[key][0] if key in kept else 0, highest[key][0].first if key in highest else 0)
        if _low_water_mark_admitted(low_water_mark, carrier, who) and key in about and low_water_mark.first > known:
            highest[key] = low_water_mark, statement
    found: dict[str, KeptLowWaterMark] = {}
    for key, (low_water_mark, statement) in highest.items():
        try:
            low_water_mark_signed(low_water_mark, statement, domain_keys_recent)
        except BadLowWaterMark as error:
            _note(error, carrier, part.rp)
        else:
            found[key] = low_water_mark.first, statement
    return found


def _low_water_mark_admitted(low_water_mark: LowWaterMark, carrier: str, who: Participation) -> bool:
    kind: Kind = "quarantined"
    detail = "A low-water mark of an origin in quarantine."
    if not quarantined(low_water_mark.origin):
        stated_at = datetime.fromtimestamp(min(low_water_mark.stated_at_ms, 2**42) / 1000, UTC)
        if who.admits(low_water_mark.origin, stated_at, datetime.now(UTC)):
            return True
        kind, detail = (
            "not-admitted",
            "A low-water mark of an origin that the home has not admitted, or no longer admits.",
        )
    misbehaviour_note(kind, carrier=carrier, origin=low_water_mark.origin, rp=low_water_mark.rp, detail=detail)
    return False


def _note(error: BadLowWaterMark, carrier: str, rp: str) -> None:
    kind: Kind = "forged" if error.forged else "malformed"
    misbehaviour_note(kind, carrier=carrier, origin=error.origin, rp=rp, detail=str(error))

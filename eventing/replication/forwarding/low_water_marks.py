"""Low-water marks in a request: which of them are kept. They are validated as runs are (run_validation.py), the
cheapest check first.

A peer may send low-water marks of feeds that are here, of which it sends a run, or that it states to hold, as it may
have no events left to send of them. Of each feed only the highest is verified, and only if it is higher than the kept
one: a request causes no more verifications of signatures than there are such feeds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from eventing.core import signing
from eventing.core.seals import seals
from eventing.core.seals.seals import BadSeal, LowWaterMark, seal_read
from eventing.core.signing import Signed
from eventing.log.gaps import KeptLowWaterMark
from eventing.peering.rules.misbehaviour import Kind
from eventing.peering.selectors.recent_keys import domain_keys_recent
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.quarantines import quarantined
from eventing.peering.wire import messages as wire
from eventing.replication.selectors.forwarding import Participation


class BadLowWaterMark(Exception):
    """A statement that is no low-water mark of this RP, or not its origin's; the text is one sentence."""

    def __init__(self, text: str, origin: str, forged: bool) -> None:
        super().__init__(text)
        self.origin = origin
        self.forged = forged


def low_water_mark_read(rp: str, statement: Signed) -> seals.LowWaterMark:
    """Decode a low-water mark without verifying its signature (see `low_water_mark_signed`). Raises BadLowWaterMark."""
    try:
        low_water_mark = seals.low_water_mark_read(statement)
    except BadSeal as error:
        raise BadLowWaterMark(str(error), "", False) from None
    if low_water_mark.rp != rp:
        raise BadLowWaterMark("A low-water mark of another rendezvous point.", low_water_mark.origin, True)
    return low_water_mark


def low_water_mark_signed(low_water_mark: seals.LowWaterMark, statement: Signed, keys_of: Any) -> None:
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
        if _admitted(low_water_mark, carrier, who) and key in about and low_water_mark.first > known:
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


def _admitted(low_water_mark: LowWaterMark, carrier: str, who: Participation) -> bool:
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

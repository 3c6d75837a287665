"""Floors that a request brings: which of them are kept. They are judged as runs are (run_validation.py), cheapest look first.

A peer may bring floors of feeds that are here, of which it brings a run, or that it says to hold, for it may have nothing left
to bring of them. Of each feed only the highest is looked at, and only where it says more than what is kept: a request has no
more signatures verified than there are such feeds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime

from eventing.core.seals.seals import BadSeal, Floor, seal_read
from eventing.core.signing import Signed
from eventing.peering.rules.misbehaviour import Kind
from eventing.peering.selectors.recent_keys import domain_keys_recent
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.quarantines import quarantined
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import gaps
from eventing.replication.forwarding.gaps import KeptFloor
from eventing.replication.selectors.forwarding import Participation


def floors_true(
    said: wire.RpPart,
    *,
    carrier: str,
    who: Participation,
    foreign: Mapping[str, int],
    kept: Mapping[str, KeptFloor],
) -> dict[str, KeptFloor]:
    """The floors of a part that are true and say more than what is kept, by feed key; what is wrong with others is counted.

    Args:
        carrier: the peer that sent them.
        who: who takes part in the RP.
        foreign: the last sequence held of each feed that is here.
        kept: the floors that are kept.
    """
    about = {*foreign, *said.have}
    for run in said.runs:
        with contextlib.suppress(BadSeal):
            about.add(seal_read(run.seal).feed.key)
    highest: dict[str, tuple[Floor, Signed]] = {}
    for statement in said.floors:
        try:
            floor = gaps.floor_read(said.rp, statement)
        except gaps.BadFloor as error:
            _note(error, carrier, said.rp)
            continue
        key = floor.feed.key
        known = max(kept[key][0] if key in kept else 0, highest[key][0].first if key in highest else 0)
        if _admitted(floor, carrier, who) and key in about and floor.first > known:
            highest[key] = floor, statement
    found: dict[str, KeptFloor] = {}
    for key, (floor, statement) in highest.items():
        try:
            gaps.floor_signed(floor, statement, domain_keys_recent)
        except gaps.BadFloor as error:
            _note(error, carrier, said.rp)
        else:
            found[key] = floor.first, statement
    return found


def _admitted(floor: Floor, carrier: str, who: Participation) -> bool:
    kind: Kind = "quarantined"
    detail = "A floor of an origin whose events are refused until an administrator decides."
    if not quarantined(floor.origin):
        stated_at = datetime.fromtimestamp(min(floor.stated_at_ms, 2**42) / 1000, UTC)
        if who.admits(floor.origin, stated_at, datetime.now(UTC)):
            return True
        kind, detail = "not-admitted", "A floor of an origin that the home has not admitted, or no longer."
    misbehaviour_note(kind, carrier=carrier, origin=floor.origin, rp=floor.rp, detail=detail)
    return False


def _note(error: gaps.BadFloor, carrier: str, rp: str) -> None:
    kind: Kind = "forged" if error.forged else "malformed"
    misbehaviour_note(kind, carrier=carrier, origin=error.origin, rp=rp, detail=str(error))

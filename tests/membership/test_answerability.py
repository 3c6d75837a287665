"""Records that are held against their sender: those that an honest domain would have refused, whatever its clock and founders."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eventing.membership.rules.answerability import CLOCKS_S, KEPT_S, answerable
from eventing.overlay.directory_records import AHEAD_S, EXPIRY_S, QUOTA_PER_DAY, DomainRecord, Sponsorship
from tests.membership.signers import NOW_S, Signer

FOUNDER = Signer("founder.example")
MEMBER = Signer("member.example", FOUNDER)


def changed(**members: Any) -> DomainRecord:
    """A record with other members; whatever they are, its signature is checked last."""
    return msgspec.structs.replace(MEMBER.record(), **members)


@pytest.mark.parametrize(
    "record",
    [
        MEMBER.record(),
        Signer("stranger.example", Signer("elsewhere.example")).record(),
        Signer("founder.of.others.example").record(),
    ],
    ids=["fine", "sponsor unknown here", "founder unknown here"],
)
def test_a_record_that_another_may_hold_in_good_faith(record: DomainRecord) -> None:
    assert not answerable(record, NOW_S)
    assert not answerable(record, NOW_S - AHEAD_S - CLOCKS_S), "its clock is as far ahead as clocks may be"
    assert not answerable(record, NOW_S + EXPIRY_S + KEPT_S), "it expired lately"


@pytest.mark.parametrize(
    "record",
    [
        changed(version=2**64 - 1),
        changed(issued_s=float("nan")),
        changed(expires_s=float("nan")),
        changed(expires_s=NOW_S + EXPIRY_S + 1),
        changed(expires_s=NOW_S - EXPIRY_S),
        changed(version=0),
        changed(sponsorship=Sponsorship(FOUNDER.name, MEMBER.name, 20_833, QUOTA_PER_DAY)),
        changed(sponsorship=Sponsorship(FOUNDER.name, "other.example", 20_833, 0)),
        changed(sponsorship=Sponsorship(FOUNDER.name, MEMBER.name, 2**63, 0)),
        changed(url="https://liar.example"),
        changed(key="no key"),
    ],
    ids=["version", "issued", "expires", "lease", "old", "none", "number", "newcomer", "day", "forged", "key"],
)
def test_a_record_that_no_honest_domain_would_send(record: DomainRecord) -> None:
    assert answerable(record, NOW_S)

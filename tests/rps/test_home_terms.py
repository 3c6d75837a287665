"""Which domain is the home is verified from the id alone, and every domain keeps the same of two answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from eventing.core import signing
from eventing.core.ids import rp_id
from eventing.rps.rules.home_terms import (
    MOVE,
    NO_RECORD,
    SUCCESSION,
    Cosigned,
    Elector,
    HandOver,
    HomeRecord,
    HomeTerm,
    SuccessionPlan,
    UnknownSigner,
    digest,
    equivocations,
    hand_over_payload,
    plan_payload,
    prevails,
    record_packed,
    record_read,
    record_verify,
    signature_make,
)
from eventing.rps.rules.statements import BadStatement, Keys
from tests.peering.other_domain import OtherDomain

A, B, C, D, E = (OtherDomain(f"{name}.test", url=f"https://{name}.test") for name in "abcde")
DOMAINS = {one.name: one for one in (A, B, C, D, E)}
GENESIS = {"domain": A.name, "key": A.fingerprint, "creator": "ann", "created_at": "then", "nonce": "n"}
RP = rp_id(GENESIS)


def keys_of(name: str, fingerprint: str) -> Keys:
    domain = DOMAINS.get(name)
    if domain is None or domain.fingerprint != fingerprint:
        return {}
    return {str(key["kid"]): {"kty": "OKP", "crv": "Ed25519", "x": key["x"]} for key in domain.keys}


def signed(context: bytes, payload: bytes, by: Sequence[OtherDomain]) -> Cosigned:
    return Cosigned(payload, [signature_make(context, payload, one.name, one.keys[-1]) for one in by])


def hand_over(to: OtherDomain, by: Sequence[OtherDomain], record: HomeRecord = NO_RECORD, **changes: Any) -> HomeRecord:
    """The record with one hand-over more."""
    term = record_verify(RP, GENESIS, record, keys_of)
    previous = digest(record.hand_overs[-1].payload) if record.hand_overs else ""
    plan = digest(record.plans[-1].payload) if record.plans else ""
    said: dict[str, Any] = {
        "rp": RP,
        "term": term.term + 1,
        "kind": MOVE,
        "former": term.domain,
        "domain": to.name,
        "url": to.url,
        "fingerprint": to.fingerprint,
        "previous": previous,
        "plan": plan,
        "at_ms": 1,
    }
    one = signed(signing.HAND_OVER, hand_over_payload(HandOver(**{**said, **changes})), by)
    return HomeRecord([*record.hand_overs, one], record.plans)


def planned(
    electors: Sequence[OtherDomain], by: Sequence[OtherDomain], record: HomeRecord = NO_RECORD, **changes: Any
) -> HomeRecord:
    """The record with one version of the plan more."""
    term = record_verify(RP, GENESIS, record, keys_of)
    said: dict[str, Any] = {
        "rp": RP,
        "version": len(record.plans) + 1,
        "term": term.term,
        "home": term.domain,
        "electors": tuple(Elector(one.name, one.fingerprint) for one in electors),
        "silence_s": 5,
        "previous": digest(record.plans[-1].payload) if record.plans else "",
        "at_ms": 1,
    }
    one = signed(signing.SUCCESSION_PLAN, plan_payload(SuccessionPlan(**{**said, **changes})), by)
    return HomeRecord(record.hand_overs, [*record.plans, one])


def verified(record: HomeRecord) -> HomeTerm:
    return record_verify(RP, GENESIS, record_read(record_packed(record)), keys_of)


def test_without_a_hand_over_the_genesis_names_the_home() -> None:
    assert verified(HomeRecord()) == (0, A.name, A.fingerprint)


def test_a_move_that_both_homes_signed_begins_the_next_term() -> None:
    once = hand_over(B, [A, B])
    assert verified(once) == (1, B.name, B.fingerprint)
    assert verified(hand_over(A, [B, A], once)) == (2, A.name, A.fingerprint)


@pytest.mark.parametrize("by", [[A], [B], [A, C], [B, C]])
def test_a_move_is_nothing_without_both_signatures(by: list[OtherDomain]) -> None:
    with pytest.raises(BadStatement, match="missing"):
        verified(hand_over(B, by))


def test_a_former_home_cannot_hand_over_again() -> None:
    once = hand_over(B, [A, B])
    with pytest.raises(BadStatement, match="continue"):
        verified(hand_over(C, [A, C], once, former=A.name))


@pytest.mark.parametrize("change", [{"term": 1}, {"previous": "0" * 64}, {"rp": "a" * 26}])
def test_a_hand_over_continues_the_one_before(change: dict[str, Any]) -> None:
    with pytest.raises(BadStatement, match="continue"):
        verified(hand_over(C, [B, C], hand_over(B, [A, B]), **change))


def test_a_signer_whose_document_is_not_known_is_no_forger() -> None:
    stranger = OtherDomain("x.test")
    with pytest.raises(UnknownSigner):
        verified(hand_over(stranger, [A, stranger]))


def test_the_majority_of_the_electors_names_one_of_them_the_home() -> None:
    plan = planned([B, C, D], [A])
    elected = hand_over(C, [B, C], plan, kind=SUCCESSION)
    assert verified(elected) == (1, C.name, C.fingerprint)
    with pytest.raises(BadStatement, match="majority"):
        verified(hand_over(C, [C], plan, kind=SUCCESSION))
    with pytest.raises(BadStatement, match="names the next home"):
        verified(hand_over(E, [B, C, E], plan, kind=SUCCESSION))
    with pytest.raises(BadStatement, match="names the next home"):
        verified(hand_over(C, [A, B, C], kind=SUCCESSION))


def test_a_move_needs_the_electors_once_there_are_any() -> None:
    plan = planned([B, C, D], [A])
    with pytest.raises(BadStatement, match="majority"):
        verified(hand_over(B, [A, B], plan))
    assert verified(hand_over(B, [A, B, C], plan)).domain == B.name


def test_electors_are_replaced_with_the_consent_of_their_majority_only() -> None:
    plan = planned([B, C, D], [A])
    with pytest.raises(BadStatement, match="majority"):
        verified(planned([D, E], [A], plan))
    with pytest.raises(BadStatement, match="missing"):
        verified(planned([D, E], [B, C], plan))
    changed = planned([D, E], [A, B, C], plan)
    assert verified(hand_over(E, [D, E], changed, kind=SUCCESSION)).domain == E.name


def test_a_plan_of_a_home_that_handed_over_before_is_worth_nothing() -> None:
    """A former home could name cronies as electors afterwards: its move without a plan prevails over what they sign."""
    moved = hand_over(B, [A, B])
    grabbed = hand_over(D, [D, E], planned([D, E], [A]), kind=SUCCESSION, term=1000)
    assert verified(grabbed).domain == D.name, "by itself it is well signed"
    assert prevails(moved, grabbed)
    assert not prevails(grabbed, moved)


def test_every_domain_keeps_the_same_of_two_homes_in_one_term() -> None:
    plan = planned([B, C, D], [A])
    one, other = (hand_over(to, [C, to], plan, kind=SUCCESSION) for to in (B, D))
    assert prevails(one, other) != prevails(other, one)
    found = equivocations(one, other)
    assert list(found) == [C.name], "who voted twice is named"
    assert B.name in found[C.name]
    assert D.name in found[C.name]


@pytest.mark.parametrize("term", [1, 2])
def test_a_home_that_moves_without_the_plan_that_it_stated_is_named(term: int) -> None:
    plan = planned([B, C, D], [A])
    succeeded = hand_over(B, [B, C], plan, kind=SUCCESSION, term=term)
    grabbed = hand_over(E, [A, E])
    assert verified(grabbed).domain == E.name, "by itself it is well signed"
    assert prevails(grabbed, succeeded)
    for one, other in ((grabbed, succeeded), (succeeded, grabbed)):
        assert equivocations(one, other) == {
            A.name: f"It moved {RP} to {E.name} without the succession plan that it had stated."
        }


def test_a_home_that_moves_once_its_electors_let_it_withdraw_the_plan_is_honest() -> None:
    plan = planned([B, C, D], [A])
    withdrawn = planned([], [A, B, C], plan)
    moved = hand_over(E, [A, E], withdrawn, plan="")
    succeeded = hand_over(B, [B, C], plan, kind=SUCCESSION)
    assert verified(moved).domain == E.name
    assert list(equivocations(moved, succeeded)) == []


def test_the_higher_term_prevails_and_a_longer_record_over_its_beginning() -> None:
    plan = planned([B, C, D], [A])
    first, later = hand_over(B, [B, C], plan, kind=SUCCESSION), hand_over(C, [C, D], plan, kind=SUCCESSION, term=2)
    assert prevails(later, first)
    assert not prevails(first, later)
    assert equivocations(first, later) == {}, "of two terms: no proof of anything"
    assert prevails(hand_over(A, [B, A, C], first), first)
    assert prevails(plan, HomeRecord())

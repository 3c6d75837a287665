"""What a revocation covers: by id and issuer, and of a subject by when its tokens were issued."""

from __future__ import annotations

from typing import Any

import pytest

from eventing.access.rules.revocations import (
    KEY_REVOKED,
    SUBJECT_REVOKED,
    TOKEN_REVOKED,
    RevocationEntry,
    RevocationSet,
    moment,
)
from eventing.access.rules.tokens import SKEW_S
from eventing.core.principals import ANONYMOUS, Principal


def bearer(iat: Any = 1000, *, issuer: str = "here", jti: str = "t1", keys_from: str = "") -> Principal:
    claims = {} if iat is None else {"iat": iat}
    return Principal(issuer, "ann", False, 9e9, claims, token_id=jti, key_id="k1", keys_from=keys_from)


def entry(
    kind: Any, value: str, serial: int = 1, *, issuer: str = "here", before: float = 0, **more: Any
) -> RevocationEntry:
    return RevocationEntry(serial, kind, issuer, value, before, 9e9, **more)


def test_nothing_is_revoked_at_first() -> None:
    assert RevocationSet().covers(bearer()) is None


@pytest.mark.parametrize(
    ("revoked", "reason"),
    [
        (entry("token", "t1"), TOKEN_REVOKED),
        (entry("key", "k1"), KEY_REVOKED),
        (entry("subject", "ann", before=1001), SUBJECT_REVOKED),
    ],
)
def test_a_revocation_covers_its_own_issuers_and_nobody_elses(revoked: RevocationEntry, reason: str) -> None:
    held = RevocationSet([revoked])
    assert held.covers(bearer()) == reason
    assert held.covers(bearer(issuer="https://elsewhere.example")) is None
    assert held.covers(bearer(keys_from="https://elsewhere.example/jwks")) is None
    assert held.covers(ANONYMOUS) is None


def test_the_kinds_are_not_mixed_up() -> None:
    held = RevocationSet([entry("token", "k1"), entry("token", "ann"), entry("key", "t1"), entry("subject", "t1")])
    assert held.covers(bearer()) is None


@pytest.mark.parametrize(
    ("iat", "revoked"),
    [(999, True), (999.999, True), (1000, False), (1001, False), (None, True), (True, True), ("2000", True)],
)
def test_of_a_subject_the_tokens_issued_before_the_moment_are_revoked(iat: Any, revoked: bool) -> None:
    held = RevocationSet([entry("subject", "ann", before=1000)])
    assert (held.covers(bearer(iat)) is not None) == revoked


def test_the_moment_covers_the_second_that_runs_and_a_foreign_clock_that_is_ahead() -> None:
    assert moment(1000.0, local=True) == moment(1000.999, local=True) == 1001
    assert moment(1000.5, local=False) == 1001 + SKEW_S


def test_the_latest_serial_decides_in_whatever_order_entries_come() -> None:
    revoked = entry("subject", "ann", 1, before=2000)
    lifted = entry("subject", "ann", 2, before=2000, lifted=True)
    again = entry("subject", "ann", 3, before=3000)
    held = RevocationSet([revoked])
    assert held.apply(lifted)
    assert held.covers(bearer()) is None
    assert held.apply(again)
    assert not held.apply(revoked)
    assert not held.apply(lifted)
    assert held.covers(bearer(2500)) == SUBJECT_REVOKED
    assert len(held) == 1


def test_what_was_lifted_before_it_was_ever_seen_leaves_nothing() -> None:
    held = RevocationSet()
    assert not held.apply(entry("subject", "ann", 2, before=2000, lifted=True))
    assert len(held) == 0

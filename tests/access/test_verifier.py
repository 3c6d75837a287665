"""This domain's own tokens: what the verifier keeps, and how seldom it asks SQL."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import OperationalError
from joserfc.jwk import OKPKey

from eventing.access.rules import tokens
from eventing.access.selectors import keys as key_selectors
from eventing.access.verification import issuers as issuers_module
from eventing.access.verification import verifier as verifier_module
from eventing.access.verification.revocations import revocations
from eventing.access.verification.verifier import KEYS_RELOAD_S, KEYS_S, RECHECK_S, Verifier
from eventing.conf import config
from eventing.core.errors import TokenRevoked, Unauthenticated
from eventing.core.principals import ANONYMOUS

_KEY = OKPKey.generate_key("Ed25519")
PRIVATE = {**_KEY.as_dict(private=True), "kid": "k1"}
PUBLIC = {"k1": _KEY.as_dict(private=False)}


class Sql:
    """What SQL would say, and how often it was asked."""

    def __init__(self) -> None:
        self.keys: Any = PUBLIC
        self.sources: Any = {}
        self.asked = 0

    def __call__(self, answer: str) -> Any:
        self.asked += 1
        value = getattr(self, answer)
        if isinstance(value, Exception):
            raise value
        return dict(value)


class Clock:
    """Wall clock and monotonic clock of the verifier, moved together."""

    def __init__(self) -> None:
        self.now = time.time()

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def sql(monkeypatch: pytest.MonkeyPatch) -> Sql:
    made = Sql()
    monkeypatch.setattr(key_selectors, "verification_keys", lambda: made("keys"))
    monkeypatch.setattr(issuers_module, "policy_sources", lambda: made("sources"))
    monkeypatch.setattr(type(revocations()), "loaded", True)
    monkeypatch.setattr(type(revocations()), "refresh_if_due", lambda self: None)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(verifier_module, "time", made)
    return made


@pytest.fixture
def verifier(sql: Sql, clock: Clock) -> Verifier:
    return Verifier(config(), clock=clock.time, issuers=issuers_module.Issuers(clock.monotonic))


def token(subject: str = "ann", **claims: Any) -> str:
    now = time.time()
    return tokens.sign({"iss": "localhost", "aud": "localhost", "sub": subject, "exp": now + 3600, **claims}, PRIVATE)


def test_sql_is_asked_once_for_any_number_of_tokens(verifier: Verifier, sql: Sql) -> None:
    for number in range(50):
        assert verifier.verify(token(f"s{number}")).subject == f"s{number}"
    assert sql.asked == 1


def test_unknown_kid_flood_costs_one_query_in_a_while(verifier: Verifier, sql: Sql, clock: Clock) -> None:
    verifier.verify(token())
    for round_ in range(3):
        for number in range(100):
            forged = tokens.sign({"iss": "localhost"}, {**PRIVATE, "kid": f"unknown-{round_}-{number}"})
            with pytest.raises(Unauthenticated, match="no key of this domain"):
                verifier.verify(forged)
        assert sql.asked == 1 + round_
        clock.now += KEYS_S


def test_unknown_issuer_flood_costs_one_query_in_a_while(verifier: Verifier, sql: Sql, clock: Clock) -> None:
    verifier.verify(token())
    for round_ in range(3):
        for number in range(100):
            with pytest.raises(Unauthenticated, match="No policy here names"):
                verifier.verify(token(iss=f"https://{number}.example"))
        assert sql.asked == 2 + round_
        clock.now += issuers_module.REFRESH_S


def test_a_key_that_is_gone_from_sql_is_gone_within_a_minute_without_any_announcement(
    verifier: Verifier, sql: Sql, clock: Clock
) -> None:
    known = token()
    verifier.verify(known)
    sql.keys = {}
    clock.now += KEYS_RELOAD_S
    with pytest.raises(Unauthenticated):
        verifier.verify(token("new"))
    assert verifier.peek(known) is None
    with pytest.raises(Unauthenticated):
        verifier.verify(known)


def test_what_is_known_goes_on_while_sql_does_not_answer(verifier: Verifier, sql: Sql, clock: Clock) -> None:
    verifier.verify(token())
    sql.keys = OperationalError("gone")
    for _ in range(3):
        clock.now += KEYS_RELOAD_S
        assert verifier.verify(token("new")).subject == "new"


def test_keys_that_were_never_read_are_an_outage_and_no_refusal(verifier: Verifier, sql: Sql) -> None:
    sql.keys = OperationalError("gone")
    with pytest.raises(OperationalError):
        verifier.verify(token())


def test_a_token_is_verified_again_after_a_while_and_never_known_beyond_its_end(
    verifier: Verifier, clock: Clock
) -> None:
    long, short = token(), token(exp=clock.now + 10)
    for one in (long, short):
        verifier.verify(one)
        assert verifier.peek(one) is not None
    clock.now += 10
    for _ in range(2):
        with pytest.raises(Unauthenticated, match="expired"):
            verifier.verify(short)
    clock.now += RECHECK_S
    assert verifier.peek(long) is None
    assert verifier.verify(long).subject == "ann"


def test_a_revoked_token_is_refused_known_or_not(verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> None:
    known = token()
    verifier.verify(known)
    monkeypatch.setattr(type(revocations()), "revoked", lambda self, principal: "It was revoked.")
    for one in (known, token("new")):
        with pytest.raises(TokenRevoked, match="It was revoked"):
            verifier.verify(one)
    with pytest.raises(TokenRevoked):
        verifier.peek(known)
    assert len(verifier) == 1, "what is revoked is not kept"


def test_no_token_is_a_stranger_where_a_policy_admits_anyone_only(verifier: Verifier, sql: Sql, clock: Clock) -> None:
    with pytest.raises(Unauthenticated, match="Send a token"):
        verifier.verify("")
    sql.sources = {"anyone": ("",)}
    clock.now += issuers_module.REFRESH_S
    assert verifier.verify("") is ANONYMOUS
    sql.sources = {}
    verifier.issuers.policies_changed()
    clock.now += issuers_module.ANNOUNCED_REFRESH_S + 0.01
    with pytest.raises(Unauthenticated):
        verifier.verify("")

"""A home's policy decides at its replicas: the same people may do the same things, whoever issued their tokens."""

from __future__ import annotations

import math
from typing import Any

import pytest

from eventing.access.rules.policy import compile_policy
from eventing.core.events.ack_level import Ack
from eventing.core.events.history import HistoryBounds
from eventing.core.principals import ANONYMOUS, Principal
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.rules.policy_explain import explain

HOME, HERE, ELSEWHERE, OIDC = "a.example", "b.example", "c.example", "https://id.example.org"
POLICY: list[dict[str, Any]] = [
    {"issuer": "domain", "allow": ["publish", "subscribe"]},
    {"issuer": f"peer:{HERE}", "claims": {"sub": {"in": ["ben"]}}, "allow": ["subscribe", "history"]},
    {"issuer": f"peer:{ELSEWHERE}", "allow": ["history"]},
    {"issuer": OIDC, "allow": ["publish"]},
    {"issuer": "anyone", "allow": ["describe"]},
]
OPERATIONS = ("describe", "publish", "subscribe", "history", "administer", "replicate")


def bearer(issuer: str, subject: str, at: str, *, admin: bool = False) -> Principal:
    """Whoever holds a token of `issuer`, as the domain `at` sees them."""
    return Principal(issuer, subject, admin and issuer == at, math.inf, {"sub": subject}, local=issuer == at)


def descriptor(at: str) -> Descriptor:
    """The descriptor at the home or at a replica."""
    policy = compile_policy(POLICY)
    home = "" if at == HOME else HOME
    return Descriptor(
        "a" * 26,
        "ann" if at == HOME else "",
        1,
        policy if at == HOME else policy.seen_from(at, HOME),
        Ack.parse("stored"),
        HistoryBounds(1, 1),
        math.inf,
        home=home,
        authority=home,
    )


@pytest.mark.parametrize(
    ("issuer", "subject"),
    [(HOME, "carl"), (HERE, "ben"), (HERE, "dora"), (ELSEWHERE, "eve"), (OIDC, "fred"), ("d.example", "gus")],
)
def test_everybody_may_do_at_a_replica_what_they_may_do_at_the_home(issuer: str, subject: str) -> None:
    for operation in OPERATIONS:
        at_home = descriptor(HOME).allows(bearer(issuer, subject, HOME), operation)
        for at in (HERE, ELSEWHERE):
            assert descriptor(at).allows(bearer(issuer, subject, at), operation) is at_home, (at, operation)


@pytest.mark.parametrize(
    ("issuer", "subject"),
    [(HOME, "carl"), (HERE, "ben"), (HERE, "dora"), (HERE, "root"), (ELSEWHERE, "eve"), (OIDC, "fred")],
)
def test_the_explanation_at_a_replica_is_what_is_decided_there(issuer: str, subject: str) -> None:
    who = bearer(issuer, subject, HERE, admin=subject == "root")
    for operation in OPERATIONS:
        found = explain(descriptor(HERE), who, operation, now=0)
        assert found.allowed is descriptor(HERE).allows(who, operation)
        assert [rule.matches for rule in found.rules].count(True) <= 1


def test_strangers_may_do_what_the_policy_lets_anyone_do() -> None:
    assert descriptor(HERE).allows(ANONYMOUS, "describe")
    assert not descriptor(HERE).allows(ANONYMOUS, "publish")


def test_the_homes_creator_and_administrators_administer_nothing_at_a_replica() -> None:
    creator = bearer(HOME, "ann", HERE)
    root = bearer(HOME, "root", HERE, admin=True)
    namesake = bearer(HERE, "ann", HERE)
    for who in (creator, root, namesake):
        assert not descriptor(HERE).allows(who, "administer")
    assert descriptor(HOME).allows(bearer(HOME, "ann", HOME), "administer")


def test_administrators_of_the_replicas_domain_may_see_and_end_it_and_no_more() -> None:
    root = bearer(HERE, "root", HERE, admin=True)
    allowed = {operation for operation in OPERATIONS if descriptor(HERE).allows(root, operation)}
    assert allowed == {"describe", "administer"}


def test_a_domain_that_a_policy_calls_by_the_homes_own_name_gets_nothing_more() -> None:
    """A rule peer:HOME in the home's own policy is about nobody; at a replica it must not become one about the home."""
    policy = compile_policy([{"issuer": f"peer:{HOME}", "allow": ["publish"]}])
    assert not policy.allows(bearer(HOME, "carl", HOME), "publish")
    assert not policy.seen_from(HERE, HOME).allows(bearer(HOME, "carl", HERE), "publish")

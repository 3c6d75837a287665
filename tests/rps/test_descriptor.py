"""Descriptors: acknowledgement levels, and who is allowed what before the policy is asked."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.access.rules.policy import ADMINISTRATORS_ONLY, OPEN_TO_DOMAIN, Policy, compile_policy
from eventing.core.errors import InvalidRequest
from eventing.core.events.ack_level import REPLICAS_MAX, Ack
from eventing.core.events.history import HistoryBounds
from eventing.core.principals import OPERATIONS, Principal, Scope
from eventing.rps.rules.descriptor import Descriptor

OPEN, CLOSED = compile_policy(OPEN_TO_DOMAIN), compile_policy(ADMINISTRATORS_ONLY)


def descriptor(policy: Policy, creator: str = "ann") -> Descriptor:
    return Descriptor("a" * 26, creator, 1, policy, Ack.parse("stored"), HistoryBounds(1, 1), 0)


def principal(subject: str, *, admin: bool = False, scopes: frozenset[str] | None = None) -> Principal:
    narrowed = None if scopes is None else (Scope(("*",), scopes),)
    return Principal("localhost", subject, admin, 0, {"sub": subject}, narrowed)


def allowed(rp: Descriptor, who: Principal) -> set[str]:
    return {operation for operation in OPERATIONS if rp.allows(who, operation)}


@pytest.mark.parametrize(
    "level", ["accepted", "stored", "replicated:1", f"replicated:{REPLICAS_MAX}", "replicated:all"]
)
def test_ack_level_survives_being_read_and_written(level: str) -> None:
    assert str(Ack.parse(level)) == level


def test_stronger_levels_include_the_weaker() -> None:
    assert Ack.parse("accepted") == Ack(stored=False, replicas=0)
    assert Ack.parse("stored") == Ack(stored=True, replicas=0)
    assert Ack.parse("replicated:2") == Ack(stored=True, replicas=2)
    assert Ack.parse("replicated:all") == Ack(stored=True, replicas=0, all=True)


@pytest.mark.parametrize(
    "level",
    [
        "",
        "Stored",
        "stored\n",
        "replicated",
        "replicated:",
        "replicated:0",
        "replicated:01",
        f"replicated:{REPLICAS_MAX + 1}",
    ],
)
def test_other_levels_are_refused(level: str) -> None:
    with pytest.raises(InvalidRequest, match="accepted, stored, replicated:all or replicated:n"):
        Ack.parse(level)


@given(st.text())
def test_text_is_refused_or_is_a_level(text: str) -> None:
    with contextlib.suppress(InvalidRequest):
        assert str(Ack.parse(text)) == text


def test_creator_and_administrators_may_do_everything() -> None:
    assert allowed(descriptor(CLOSED), principal("ann")) == set(OPERATIONS)
    assert allowed(descriptor(CLOSED), principal("eve", admin=True)) == set(OPERATIONS)


def test_others_may_do_what_the_policy_allows() -> None:
    assert allowed(descriptor(CLOSED), principal("ben")) == set()
    assert allowed(descriptor(OPEN), principal("ben")) == set(OPERATIONS) - {"administer", "replicate"}


def test_narrowed_token_may_do_no_more_than_it_says() -> None:
    narrow = frozenset({"publish"})
    assert allowed(descriptor(OPEN), principal("ann", scopes=narrow)) == {"publish"}
    assert allowed(descriptor(OPEN), principal("eve", admin=True, scopes=narrow)) == {"publish"}
    assert allowed(descriptor(CLOSED), principal("ben", scopes=narrow)) == set()
    assert allowed(descriptor(OPEN), principal("ann", scopes=frozenset())) == set()


def test_rp_of_the_domain_has_no_creator_to_be() -> None:
    assert allowed(descriptor(CLOSED, creator=""), principal("")) == set()

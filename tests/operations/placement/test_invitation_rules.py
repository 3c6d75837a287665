"""The standing policy admits whom and as much as it says, and one that contradicts itself is refused by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eventing.operations.placement.rules.invitations import (
    InvitationAsked,
    InvitationPolicy,
    contradictions,
    history_granted,
    judged,
)

ASKED = InvitationAsked(home="a.test", host=True, history_bytes=1000, events_per_s=5.0)


def reason(policy: InvitationPolicy, **changes: Any) -> str | None:
    refused = judged(msgspec.structs.replace(ASKED, **changes), policy)
    return None if refused is None else refused.reason


def test_the_default_accepts_peers_that_are_trusted_to_host_and_no_others() -> None:
    assert contradictions(InvitationPolicy()) == []
    assert reason(InvitationPolicy()) is None
    assert reason(InvitationPolicy(), host=False) == "not-trusted"
    refused = judged(msgspec.structs.replace(ASKED, host=False), InvitationPolicy())
    assert refused is not None
    assert refused.detail.endswith("herald peer change a.test --host")


def test_whom_names_who_is_accepted() -> None:
    assert reason(InvitationPolicy(whom="peers"), host=False) is None
    assert reason(InvitationPolicy(whom="peers", refused=("a.test",))) == "not-trusted"
    assert reason(InvitationPolicy(whom="named", named=("a.test",)), host=False) is None
    assert reason(InvitationPolicy(whom="named", named=("b.test",))) == "not-trusted"
    assert reason(InvitationPolicy(whom="nobody")) == "not-trusted"


@pytest.mark.parametrize(
    ("changes", "expected", "later"),
    [
        ({"asked_last_hour": 60}, "too-many", True),
        ({"pressure": 0.81}, "busy", True),
        ({"replicas": 200}, "full", True),
        ({"replicas_of_home": 50}, "home-full", True),
        ({"events_per_s": 1001.0}, "rate", False),
        ({"history_bytes_total": 4 * 2**30 - 999}, "history", True),
    ],
)
def test_each_bound_refuses_with_its_reason(changes: dict[str, Any], expected: str, later: bool) -> None:
    refused = judged(msgspec.structs.replace(ASKED, **changes), InvitationPolicy())
    assert refused is not None
    assert (refused.reason, refused.later) == (expected, later)
    assert refused.detail.endswith(".")


def test_an_unstated_history_counts_as_the_most_of_one_replica() -> None:
    assert history_granted(None, InvitationPolicy(history_bytes_max=500)) == 500
    assert history_granted(1000, InvitationPolicy(history_bytes_max=500)) == 500
    assert history_granted(100, InvitationPolicy(history_bytes_max=500)) == 100


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"whom": "friends"}, "whom"),
        ({"whom": "named", "named": ("a.test",), "refused": ("a.test",)}, "a.test"),
        ({"whom": "named"}, "named is empty"),
        ({"named": ("a.test",)}, "no effect"),
        ({"replicas_max": 1, "replicas_per_home_max": 2}, "replicas_per_home_max"),
        ({"history_bytes_max": 2, "history_bytes_total_max": 1}, "history_bytes_total_max"),
        ({"replicas_max": 0, "replicas_per_home_max": 0}, "nobody"),
        ({"refused": ("no domain",)}, "no domain"),
    ],
)
def test_a_contradiction_is_named(members: dict[str, Any], named: str) -> None:
    found = contradictions(InvitationPolicy(**members))
    assert any(named in sentence for sentence in found), found

"""A replica is made of what the home signed, within what there is room for, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eventing.core.errors import Conflict, InvalidRequest, QuotaExceeded
from eventing.core.principals import Principal
from eventing.log import control
from eventing.replication.models import ReplicaAdmission
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.descriptors import descriptor_get
from tests.peering.other_domain import OtherDomain
from tests.planes import types_at
from tests.replication.homes import (
    ANN,
    BEN,
    ROOT,
    Home,
    make,
)

pytestmark = pytest.mark.usefixtures("home_stores")


def test_a_replica_is_made_of_what_the_home_signed(a: Home) -> None:
    row = make(a)
    found = descriptor_get(a.rp)
    assert (found.home, found.creator, found.name, row.version) == ("a.test", "", "/a.test/weather/", 1)
    assert found.history.max_bytes == 100_000
    assert control.log_state(a.rp) is not None
    assert row.creator == "ann", "who asked for it here"
    assert {"replica.added", "lease.granted"} <= set(types_at(f"{a.rp}.admin"))
    # Its policy is the home's: `domain` is the home's people, not ours.
    assert found.allows(Principal("a.test", "carl", False, float("inf"), {}, local=False), "publish")
    assert not found.allows(BEN, "publish")
    assert not found.allows(ANN, "administer")


def test_a_replica_reserves_its_history_here_or_is_refused_whole(a: Home, configure: Callable[..., None]) -> None:
    configure(history_quota_bytes=99_999)
    with pytest.raises(QuotaExceeded, match="Request less"):
        make(a)
    assert not RendezvousPoint.objects.exists()
    assert not ReplicaAdmission.objects.exists()
    row = make(a, history={"max_bytes": 50_000})
    assert (row.max_bytes, row.max_events) == (50_000, 100)


def test_a_replica_counts_against_the_quota_of_who_asked_for_it(a: Home, configure: Callable[..., None]) -> None:
    configure(history_bytes_per_principal=50_000)
    with pytest.raises(QuotaExceeded, match="you have 50000 left"):
        make(a)
    assert make(a, who=ROOT).max_bytes == 100_000


def test_a_replica_keeps_no_more_than_one_rp_may_here(a: Home, configure: Callable[..., None]) -> None:
    configure(history_bytes_max=10_000, history_events_max=7)
    row = make(a)
    assert (row.max_events, row.max_bytes) == (7, 10_000)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"admissions": []}, "did not admit this domain"),
        ({"rp": "b" * 26}, "another rendezvous point"),
    ],
)
def test_an_answer_that_admits_nobody_or_is_about_something_else_makes_nothing(
    a: Home, wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        make(a, **wrong)
    assert not RendezvousPoint.objects.exists()


def test_an_expired_admission_makes_nothing(a: Home) -> None:
    with pytest.raises(InvalidRequest, match="did not admit this domain"):
        make(a, admissions=[a.admission(lasts_s=-1)])


def test_a_forged_admission_makes_nothing(a: Home) -> None:
    with pytest.raises(InvalidRequest, match="is invalid"):
        make(a, admissions=[a.admission(by=OtherDomain("m.test").keys[0])])


def test_a_home_that_nobody_knows_is_not_believed() -> None:
    with pytest.raises(InvalidRequest, match="not known here"):
        make(Home("z.test"))


def test_an_rp_that_has_ended_is_not_joined(a: Home) -> None:
    with pytest.raises(Conflict, match="has ended"):
        make(a, descriptor=a.descriptor(ended=True))


def test_there_is_one_replica_of_an_rp(a: Home) -> None:
    make(a)
    with pytest.raises(Conflict, match="already"):
        make(a)


def test_a_policy_naming_more_issuers_than_we_take_lets_their_people_in_nowhere(
    a: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventing.access.services.policy_issuers.SOURCES_MAX", 0)
    policy = [{"issuer": "https://id.example.org", "allow": ["publish"]}]
    row = make(a, descriptor=a.descriptor(policy=policy))
    assert row.policy == policy
    assert not row.policy_issuers.exists()

"""The lookup `among` finds what `in` finds, in both databases."""

from __future__ import annotations

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventing.replication.models import ReplicaLink, SealHead
from tests.peering.other_domain import OtherDomain
from tests.replication.shared_rp import link, new_rp, peer_made

pytestmark = pytest.mark.django_db

NAMES = ["a", "b'", 'c"', "d\\", "é", "%s", "[]", ""]
TEXTS = st.one_of(st.sampled_from(NAMES), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20))


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(wanted=st.lists(TEXTS, max_size=10))
def test_rows_are_those_of_in_whatever_the_values(wanted: list[str]) -> None:
    if not SealHead.objects.exists():
        now = timezone.now()
        SealHead.objects.bulk_create(
            SealHead(rp=name, epoch="e", last=1, digest=b"d", statement=b"s", leaves=b"", sealed_at=now)
            for name in NAMES
        )
    found = SealHead.objects.filter(rp__among=wanted).order_by("id").values_list("rp", flat=True)
    assert list(found) == [name for name in NAMES if name in wanted]
    assert list(found) == list(SealHead.objects.filter(rp__in=wanted).order_by("id").values_list("rp", flat=True))


@pytest.mark.usefixtures("redis_url")
def test_keys_of_other_tables_are_found_as_well() -> None:
    b = OtherDomain("b.test")
    peer_made(b)
    rps = [new_rp() for _ in range(3)]
    for rp in rps:
        link(rp, b)
    found = ReplicaLink.objects.filter(rp__among=[*rps[:2], "z"]).values_list("rp_id", flat=True)
    assert sorted(found) == sorted(rps[:2])


def test_thousands_of_values_are_one_parameter() -> None:
    assert not SealHead.objects.filter(rp__among=[str(at) for at in range(100_000)]).exists()

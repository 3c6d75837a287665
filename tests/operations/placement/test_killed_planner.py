"""A planner's process that is killed before any of its writes leaves no half-made replica: the next one ends what it began, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from eventing.operations.placement.models import PlacedReplicaRow, PlacementDecision, PlannerRecord
from eventing.operations.placement.rules.decisions import APPROVED, CLAIM_S, DONE, OPEN
from eventing.operations.placement.services import planning
from eventing.operations.placement.services.bounds import placement_bound
from eventing.operations.placement.services.carrying import placement_carry_out
from eventing.operations.placement.services.planning import placement_plan
from eventing.replication.joining import client as joining
from eventing.replication.models import ReplicaAdmission
from eventing.rps.models import RendezvousPoint
from tests.operations.placement.volunteers import Volunteers, famous, load_is, volunteers_made
from tests.replication.homes import ROOT

pytestmark = pytest.mark.usefixtures("home_stores")

NAMES = ("b.test", "c.test")
WRITES = ("INSERT", "UPDATE", "DELETE")


class Killed(BaseException):
    """The process ends: nothing after it runs, and its transaction is rolled back."""


class Killer:
    """Kills before the n-th write of the planner; what other processes write in between is not its."""

    def __init__(self, volunteers: Volunteers) -> None:
        self.at = self.writes = 0
        self.elsewhere = False
        self._volunteers = volunteers

    def call(self, *args: Any) -> bytes:
        """Have the peer answer; its join is written by a gateway."""
        self.elsewhere = True
        try:
            return self._volunteers.call(*args)
        finally:
            self.elsewhere = False

    @contextmanager
    def before(self, at: int) -> Iterator[None]:
        """Kill what runs within before this write, if it has as many."""
        self.at, self.writes = at, 0
        with connection.execute_wrapper(self._execute):
            yield

    def _execute(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(WRITES) and not self.elsewhere:
            self.writes += 1
            if self.writes == self.at:
                raise Killed
        return execute(sql, params, many, context)


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Killer:
    made = Killer(volunteers_made(monkeypatch, *NAMES))
    monkeypatch.setattr(joining, "call", made.call)
    monkeypatch.setattr(planning, "call", made.call)
    return made


def killed(run: Callable[[], object], killer: Killer, at: int) -> bool:
    try:
        with killer.before(at):
            run()
    except Killed:
        return True
    return False


def decided(rp: RendezvousPoint, adds: list[str], retires: list[str]) -> PlacementDecision:
    now = timezone.now()
    return PlacementDecision.objects.create(
        rp=rp.id, state=APPROVED, reason="load", why="", adds=adds, retires=retires, created_at=now, changed_at=now
    )


def participants(rp: RendezvousPoint) -> list[str]:
    held = ReplicaAdmission.objects.filter(rp=rp, revoked=False, expires_at__gt=timezone.now() + timedelta(seconds=1))
    return sorted(held.values_list("domain", flat=True))


@pytest.mark.parametrize(
    ("adds", "retires"),
    [
        pytest.param(["b.test"], [], id="add", marks=pytest.mark.long),
        pytest.param([], ["c.test"], id="retire", marks=pytest.mark.long),
        pytest.param(["b.test"], ["c.test"], id="move"),
    ],
)
def test_a_planner_killed_before_any_write_leaves_no_half_made_replica(
    killer: Killer, adds: list[str], retires: list[str]
) -> None:
    for at in count(1):
        rp = famous(*NAMES)
        if retires:
            decided(rp, retires, [])
            placement_carry_out()
            assert participants(rp) == retires
        row = decided(rp, adds, retires)
        died = killed(placement_carry_out, killer, at)
        later = timezone.now()
        for _ in range(3):  # the next process, once the claim of the killed one is over
            later += timedelta(seconds=CLAIM_S + 1)
            placement_carry_out(now=later)
        row.refresh_from_db()
        assert (row.state, sorted(row.progress)) == (DONE, sorted([*adds, *retires])), at
        assert participants(rp) == adds, at
        assert list(PlacedReplicaRow.objects.filter(rp=rp.id).values_list("domain", flat=True)) == adds, at
        if not died:
            break
    assert at > 6, "there were writes to be killed before"


def test_a_planner_killed_before_any_write_decides_once(killer: Killer) -> None:
    placement_bound(reference=None, principal=ROOT, mode="apply")
    for at in count(1):
        PlacementDecision.objects.all().delete()
        PlannerRecord.objects.update(state={})
        rp = famous(*NAMES)
        load_is(rp.id, 9_000)
        turns = (timezone.now() + timedelta(seconds=3 * turn) for turn in count(1))
        died = killed(lambda turns=turns: [placement_plan(now=next(turns)) for _ in range(5)], killer, at)  # type: ignore[misc]
        for _ in range(5):
            placement_plan(now=next(turns))
        found = PlacementDecision.objects.filter(rp=rp.id, state__in=OPEN)
        assert [len(one.adds) for one in found] == [1], at
        if not died:
            break
    assert at > 6, "there were writes to be killed before"

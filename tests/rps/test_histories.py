"""The data plane stays within bounds: aged events leave, and logs without an owner are swept; nothing else is touched."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from eventing.core.events.history import HistoryBounds
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.core.principals import Principal
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from eventing.rps.services import histories
from eventing.rps.services.histories import TRIM_EVERY_S, histories_trim, logs_sweep
from eventing.rps.services.rendezvous_points import rendezvous_point_delete
from tests.planes import events_at, events_made, types_at

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]


def soon() -> object:
    return timezone.now() + timedelta(seconds=TRIM_EVERY_S + 1)


def test_events_older_than_the_bound_leave_and_are_reported(new_rp: NewRp) -> None:
    rp = new_rp(history={"max_age_s": 1})
    control.append(rp.id, events_made(3), rp.bounds)
    deadline = time.monotonic() + 30
    while not (removed := histories_trim(now=soon())) and time.monotonic() < deadline:  # type: ignore[arg-type]
        time.sleep(0.05)
        RendezvousPoint.objects.update(trimmed_at=timezone.now())
    assert removed == 3
    report = events_at(admin_id(rp.id))[-1]
    state = control.log_state(rp.id)
    assert state is not None
    assert report["type"] == "io.herald.history.trimmed"
    assert report["data"] == {"removed": 3, "first": 4, "next": 4, "bytes": 0, "epoch": state.epoch}


def test_what_appends_dropped_is_in_the_report(new_rp: NewRp) -> None:
    rp = new_rp(history={"max_events": 2})
    control.append(rp.id, events_made(7), rp.bounds)
    assert histories_trim(now=soon()) == 5  # type: ignore[arg-type]
    assert events_at(admin_id(rp.id))[-1]["data"]["first"] == 6


def test_an_rp_is_looked_at_in_turn_and_left_alone_between(new_rp: NewRp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "TRIM_BATCH", 1)
    for _ in range(2):
        rp = new_rp(history={"max_events": 1})
        control.append(rp.id, events_made(2), rp.bounds)
    assert histories_trim() == 0
    when = soon()
    assert [histories_trim(now=when) for _ in range(3)] == [1, 1, 0]  # type: ignore[arg-type]


def test_nothing_trimmed_is_not_reported(new_rp: NewRp) -> None:
    rp = new_rp()
    control.append(rp.id, events_made(2), rp.bounds)
    assert histories_trim(now=soon()) == 0  # type: ignore[arg-type]
    assert "history.trimmed" not in types_at(admin_id(rp.id))


def test_logs_without_an_owner_are_swept_and_no_others(new_rp: NewRp, ann: Principal) -> None:
    kept, gone = new_rp(), new_rp()
    rendezvous_point_delete(reference=gone.id, principal=ann)
    control.ensure_log(gone.id, HistoryBounds(10, 1000))  # by a publish that was under way
    control.ensure_log("a" * 26, HistoryBounds(10, 1000))
    assert logs_sweep() == 3
    assert set(control.logs()) == {kept.id, admin_id(kept.id), DOMAIN_ADMIN}
    assert logs_sweep() == 0

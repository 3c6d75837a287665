"""What cannot be sent: events that left the history, for which low-water marks stand, and runs whose path is full."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from eventing.core.events.history import HistoryBounds
from eventing.core.seals.seals import low_water_mark_read, seal_read
from eventing.log import control
from eventing.overlay import graft_timer
from eventing.peering.models import Peer
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import outbound, outbound_request, wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.services.sealing import seal_own
from tests.peering.other_domain import OtherDomain
from tests.planes import events_made
from tests.replication.answering import FakePeer, forward_woken, own, publish, shared
from tests.replication.shared_rp import (
    BOUNDS,
    Origin,
    admit,
    counted,
    head,
    held,
    link,
    new_rp,
    peer_made,
    send_runs,
)

pytestmark = pytest.mark.usefixtures("shared_stores")


def test_the_origin_signs_what_is_gone_and_says_so_with_the_runs(peer: FakePeer, b: OtherDomain) -> None:
    rp = new_rp(max_events=10)
    link(rp, b)
    for _ in range(5):
        control.append(rp, events_made(10, publish.begin), HistoryBounds(10, BOUNDS.max_bytes, None))  # type: ignore[attr-defined]
        publish.begin += 10  # type: ignore[attr-defined]
        seal_own(rp)
    forward_woken(rp)
    floors = [floor for request in peer.requests for part in request.parts for floor in part.low_water_marks]
    runs = [run for request in peer.requests for part in request.parts for run in part.runs]
    assert len(floors) >= 1
    assert seal_read(runs[0].seal).first > 1


def empty(rp: str) -> None:
    """Everything leaves the history."""
    state = head(rp)
    assert control.trim_log_before(rp, state.epoch, state.next).removed


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What forwarding looked for requests at."""
    looked: list[str] = []
    build = outbound_request.request_build

    def noted(peer: str, rps: Sequence[str], *rest: Any, **more: Any) -> Any:
        looked.extend(rps)
        return build(peer, rps, *rest, **more)

    monkeypatch.setattr(outbound, "request_build", noted)
    return looked


def test_of_a_history_that_is_empty_the_floor_is_said_and_then_it_is_left_alone(
    peer: FakePeer, b: OtherDomain, looks: list[str]
) -> None:
    rp = shared(b, 20)
    assert seal_own(rp) == 20
    empty(rp)
    wakeups.wake("b.test", [rp])
    assert forward("b.test") is False
    assert len(peer.requests) < 5
    assert len(looks) < 5
    said = [part for request in peer.requests for part in request.parts if part.low_water_marks]
    assert {(len(part.runs), low_water_mark_read(part.low_water_marks[0]).first) for part in said} == {(0, 21)}
    publish(rp, 2)
    forward_woken(rp)
    (run,) = [run for request in peer.requests for part in request.parts for run in part.runs]
    assert seal_read(run.seal).first == 21, "what is new is not kept waiting for what is gone"


def test_what_is_gone_and_what_is_held_of_other_rps_go_side_by_side(
    peer: FakePeer, b: OtherDomain, looks: list[str]
) -> None:
    rps = [shared(b, 20) for _ in range(4)]
    for rp in rps:
        seal_own(rp)
    for rp in rps[:2]:
        empty(rp)
    wakeups.wake("b.test", rps)
    assert forward("b.test") is False
    assert {rp: peer.vectors[rp] for rp in rps} == {rp: {own(rp): 20} if rp in rps[2:] else {} for rp in rps}
    assert len(looks) < 5 * len(rps)


def test_a_run_that_came_by_as_many_domains_as_it_may_is_not_looked_at_again_and_again(
    peer: FakePeer, b: OtherDomain, looks: list[str]
) -> None:
    c = OtherDomain("c.test")
    carrier = peer_made(c)
    rp = shared(b)
    link(rp, c)
    origin = Origin(c, rp)
    d = OtherDomain("d.test")
    peer_made(d)
    admit(rp, d)
    other = Origin(d, rp)
    far = other.run(3, *[f"x{n}.test" for n in range(wire.PATH_MAX - 2)], "c.test")
    send_runs(carrier, rp, far, origin.run(2))
    assert len(held(rp)) == 5
    wakeups.wake("b.test", [rp])
    assert forward("b.test") is False
    assert peer.vectors[rp] == {origin.feed.key: 2}
    assert len(looks) < 5
    assert len(peer.requests) < 5


def test_a_peer_whose_origin_says_that_it_is_gone_is_not_called_a_liar(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp = shared(b, 1)
    origin = Origin(b, rp)
    send_runs(Peer.objects.get(name="b.test"), rp, have={origin.feed.key: 99}, low_water_marks=[origin.floor(100)])
    peer.claims = {origin.feed.key: 99}
    forward_woken(rp)
    now = time.time()
    for _ in range(10):
        now += 40
        monkeypatch.setattr(time, "time", lambda at=now: at)
        forward("b.test")
    asked = [part.graft for request in peer.requests for part in request.parts if part.graft]
    assert 0 < len(asked) < graft_timer.GRAFTS_FUTILE, "others may keep it longer: it is asked, but not for ever"
    assert not counted()

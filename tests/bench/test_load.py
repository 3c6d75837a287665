"""The load generator counts what was sent, to the event: its numbers can be believed, and so can its complaints."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench import wire
from bench.load import ConnectionScript, Load, LoadError, LoadOutcome, LoadPlan, compile_load
from tests.bench.frame_server import FrameServer, running

SESSIONS, EVENTS = 20, 50

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_load(tmp_path_factory.mktemp("load"))


def plan_for(server: FrameServer) -> LoadPlan:
    upgrade = wire.upgrade(server.port, "/")
    return LoadPlan(
        port=server.port,
        sessions=[ConnectionScript(upgrade, wire.frame(b"subscribe"))] * SESSIONS,
        publishers=[ConnectionScript(upgrade)],
        templates=[wire.frame(b'"' + wire.data(0) + b'"')],
        ready='"op":"ok"',
        good='"op":"ok"',
        bad=['"op":"error"'],
        offset='"offset":',
        rate=1000,
        seconds=10,
        count=EVENTS,
        window=8,
        deliveries_per_event=SESSIONS,
        drain_s=0.3,
    )


def outcome_of(program: Path, server: FrameServer) -> LoadOutcome:
    with running(server), Load(program, plan_for(server), program.with_name("plan")) as load:
        load.open()
        load.ready()
        return load.run()


def test_every_event_at_every_session_is_counted_once(program: Path) -> None:
    outcome = outcome_of(program, FrameServer())
    assert (outcome.published, outcome.good, outcome.deliveries) == (EVENTS, EVENTS, SESSIONS * EVENTS)
    assert outcome.flaws == []
    assert 0 < outcome.p50_ms <= outcome.p99_ms <= outcome.max_ms < 5000
    assert 0 < outcome.answer_p50_ms <= outcome.answer_p99_ms


def test_sessions_may_be_at_another_server_than_publishers(program: Path) -> None:
    published, read = FrameServer(), FrameServer()
    with running(published), running(read):
        plan = replace(plan_for(published), sessions_port=read.port, drain_s=0.1)
        with Load(program, plan, program.with_name("plan")) as load:
            load.open()
            load.ready()
            outcome = load.run()
    assert (outcome.good, outcome.deliveries) == (EVENTS, 0)  # these two servers do not know of each other
    assert (outcome.lost, outcome.sessions_short) == (SESSIONS * EVENTS, SESSIONS)


def test_frames_that_arrive_in_pieces_are_whole(program: Path) -> None:
    outcome = outcome_of(program, FrameServer(split=7))
    assert outcome.deliveries == SESSIONS * EVENTS
    assert outcome.flaws == []


def test_a_lost_event_is_missed_at_the_session_that_lost_it(program: Path) -> None:
    outcome = outcome_of(program, FrameServer(drop=10))
    assert (outcome.lost, outcome.sessions_short, outcome.skipped) == (1, 1, 1)
    assert outcome.broken_offsets == 1


def test_the_loss_of_the_last_event_is_seen_too(program: Path) -> None:
    outcome = outcome_of(program, FrameServer(drop=EVENTS))
    assert (outcome.lost, outcome.sessions_short, outcome.skipped) == (1, 1, 0)


def test_a_repeated_event_is_not_a_delivery(program: Path) -> None:
    outcome = outcome_of(program, FrameServer(repeat=10))
    assert (outcome.deliveries, outcome.repeated) == (SESSIONS * EVENTS, 1)


def test_a_jump_of_offsets_is_seen_at_every_session(program: Path) -> None:
    assert outcome_of(program, FrameServer(offset_jump=5)).broken_offsets == SESSIONS


def test_a_refused_publish_is_no_answer(program: Path) -> None:
    outcome = outcome_of(program, FrameServer(refuse=3))
    assert (outcome.good, outcome.bad) == (EVENTS - 1, 1)
    assert "1 refused" in outcome.flaws


def test_an_event_whose_publish_has_no_answer_is_not_called_lost(program: Path) -> None:
    outcome = outcome_of(program, FrameServer(ignore=EVENTS))
    assert (outcome.unanswered, outcome.lost, outcome.deliveries) == (1, 0, SESSIONS * (EVENTS - 1))
    assert outcome.flaws == ["1 unanswered"]


def test_pings_are_answered(program: Path) -> None:
    server = FrameServer(ping=True)
    assert outcome_of(program, server).flaws == []
    assert server.pongs == SESSIONS


def test_a_server_that_is_not_there_is_an_error_with_its_reason(program: Path) -> None:
    server = FrameServer()
    with running(server):
        pass
    load = Load(program, plan_for(server), program.with_name("plan"))
    with load, pytest.raises(LoadError, match="Connection refused"):
        load.open()

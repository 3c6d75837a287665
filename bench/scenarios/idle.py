"""Idle sessions: many WebSocket sessions, each with one subscription, that receive nothing.

Resident bytes per session of the process that holds them (against the same process after a first hundred sessions were opened
and closed, so that what is loaded once is not counted), and accepts per server CPU-second: TCP, upgrade, authentication.
Subscribing is a second figure, except where opening is subscribing. At the end one event is sent to all, as proof of life.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator

from bench.load import LoadPlan
from bench.measure import Bench, BenchMeasurement, per
from bench.peers.base import BenchServer

FIRST_SESSIONS = 100
FILES_KEPT = 300  # of the limit, for what is not a session


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield one row."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_KEPT
    wanted = bench.options.idle_sessions
    sessions = min(wanted, limit, server.sessions_max)
    server.prepare(1)
    with bench.load(_plan(server, FIRST_SESSIONS)) as load:
        load.open()
        load.ready()
        load.run()
    resident = server.resident_bytes()
    cpu = [server.processes.cpu_s()]
    with bench.load(_plan(server, sessions)) as load:
        open_s = load.open()
        cpu.append(server.processes.cpu_s())
        load.ready()
        cpu.append(server.processes.cpu_s())
        resident_each = (server.resident_bytes() - resident) / sessions
        outcome = load.run()
    values = {
        "sessions": sessions,
        "resident_kib_each": resident_each / 1024,
        "accepts_per_cpu_s": per(sessions, cpu[1] - cpu[0]),
        "accepts_per_s": sessions / open_s,
        "one_event_to_all_ms": outcome.max_ms,
    }
    if server.ready:
        values["subscribes_per_cpu_s"] = per(sessions, cpu[2] - cpu[1])
    notes = []
    if sessions < wanted:
        notes.append(
            f"{sessions:,} sessions: " + ("more take too long" if sessions == server.sessions_max else "file limit")
        )
    yield BenchMeasurement("idle", f"{wanted:,} sessions", server.name, values, tuple(outcome.flaws), tuple(notes))


def _plan(server: BenchServer, sessions: int) -> LoadPlan:
    answers = server.routes[server.fanout_route]
    return LoadPlan(
        port=server.port,
        sessions=[server.reader([0])] * sessions,
        publishers=[server.publisher(server.fanout_route)],
        templates=[server.request(server.fanout_route, 0)],
        ready=server.ready,
        publisher_ready=answers.publisher_ready,
        good=answers.good,
        bad=answers.bad,
        rate=1,
        seconds=1,
        deliveries_per_event=sessions,
        drain_s=5.0,
    )

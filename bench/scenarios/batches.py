"""Publishing in bulk: batches of 100 events, and one connection with 64 single-event requests in flight.

Events per server CPU-second, answered. Over HTTP four connections with one batch each in flight; over WebSocket one
connection with four. A server without batches is measured with 64 in flight only, pipelined where it is HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.measure import Bench, BenchMeasurement
from bench.peers.base import BenchServer, Route
from bench.scenarios.publish import publish_case

BATCH_EVENTS = 100
BATCHES_IN_FLIGHT = 4
IN_FLIGHT = 64


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield one row per way of bulk publishing that the server has."""
    server.prepare(1)
    yield publish_case(bench, server, "batches", f"{IN_FLIGHT} in flight", server.fanout_route, 1, IN_FLIGHT, 1)
    if server.batches:
        http = f"HTTP, batches of {BATCH_EVENTS}"
        yield publish_case(bench, server, "batches", http, Route.HTTP, BATCHES_IN_FLIGHT, 1, BATCH_EVENTS)
        websocket = f"WebSocket, batches of {BATCH_EVENTS}"
        yield publish_case(bench, server, "batches", websocket, Route.WEBSOCKET, 1, BATCHES_IN_FLIGHT, BATCH_EVENTS)

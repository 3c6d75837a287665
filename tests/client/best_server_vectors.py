"""Vectors for the choice of the best server, which exists in Python and in JavaScript: what happens, and what must be decided then.

Written by hand after the laws at the head of client/herald/best_server.py. Times are milliseconds, every random number is one half.
Inputs are `{"do": ...}`: named, forget, redirected, measured, arrived, failed. Expected after each: when the next measurement is due
(`measure_at`), the servers that it is to measure if it is due by then (`measures`, for the input `due`), where to go (`go`), and the
hop count that is stated (`hops`).

    .venv/bin/python -m tests.client.best_server_vectors
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("best_server_vectors.json")
A, B, C, D = "https://a.example", "https://b.example", "https://c.example", "https://d.example"
SLOWER, ASKS = "is slower", "asks to go on elsewhere"
JsonObject = dict[str, Any]
SCENARIOS: list[JsonObject] = []


def scenario(name: str, *steps: JsonObject) -> None:
    """Add a scenario that begins at server A."""
    SCENARIOS.append({"name": name, "current": A, "steps": list(steps)})


def step(at: int, do: str, measure_at: int | None, *, go: list[str] | None = None, hops: int = 0, **given: Any) -> Any:
    """An input at a time, and what is expected then."""
    measures = {"measures": given.pop("measures")} if "measures" in given else {}
    return {"at": at, "in": {"do": do, **given}, "out": {"measure_at": measure_at, "go": go, "hops": hops, **measures}}


def named(at: int, measure_at: int | None, *urls: str, rp: str = "r", **then: Any) -> Any:
    """The domain names alternatives."""
    return step(at, "named", measure_at, rp=rp, urls=list(urls), **then)


def due(at: int, *measures: str, **then: Any) -> Any:
    """A measurement begins."""
    return step(at, "due", None, measures=list(measures), **then)


def measured(at: int, measure_at: int | None, delays: JsonObject, **then: Any) -> Any:
    """It has these results."""
    return step(at, "measured", measure_at, delays=delays, **then)


def redirected(
    at: int, measure_at: int | None, *urls: str, by_hops: int = 1, valid_ms: int = 60_000, **then: Any
) -> Any:
    """The domain advises to move."""
    return step(at, "redirected", measure_at, urls=list(urls), by_hops=by_hops, valid_ms=valid_ms, **then)


def arrived(at: int, url: str, measure_at: int | None = None, **then: Any) -> Any:
    """The connection is at a server."""
    return step(at, "arrived", measure_at, url=url, **then)


scenario(
    "a clearly faster server is chosen once a second measurement agrees",
    named(0, 22_500, B, C),
    due(22_500, A, B, C),
    measured(23_000, 33_000, {A: 80, B: 60, C: 20}),
    due(33_000, A, B, C),
    measured(33_500, None, {A: 78, B: 60, C: 21}, go=[C, SLOWER]),
    arrived(34_000, C),
    named(34_100, 56_600, A, B),
)
scenario(
    "a server that is faster by less than ten milliseconds is no reason to move",
    named(0, 22_500, B),
    due(22_500, A, B),
    measured(23_000, 473_000, {A: 30, B: 20.5}),
    due(473_000, A, B),
    measured(473_500, 483_500, {A: 30, B: 20}),
)
scenario(
    "an advantage that does not last is no reason to move",
    named(0, 22_500, B),
    due(22_500, A, B),
    measured(23_000, 33_000, {A: 300, B: 20}),
    due(33_000, A, B),
    measured(33_500, 483_500, {A: 22, B: 20}),
)
scenario(
    "of servers that are equally near the one that the domain names first is chosen",
    named(0, 22_500, C, B, D),
    due(22_500, A, C, B, D),
    measured(23_000, 33_000, {A: 90, B: 20, C: 25, D: 26}),
    due(33_000, A, C, B, D),
    measured(33_500, None, {A: 90, B: 20, C: 25, D: 26}, go=[C, SLOWER]),
)
scenario(
    "servers that do not answer are not chosen, nor is any while the present one is not measured",
    named(0, 22_500, B, C),
    due(22_500, A, B, C),
    measured(23_000, 473_000, {A: None, B: 10, C: None}),
    due(473_000, A, B, C),
    measured(473_100, 923_100, {A: 80, B: None, C: None}),
)
scenario(
    "only servers of every rendezvous point of the connection are alternatives",
    named(0, 22_500, B, C),
    named(10, 22_500, C, D, rp="s"),
    due(22_500, A, C),
    measured(23_000, 473_000, {A: 20, C: 20}),
    named(24_000, 473_000, rp="alone"),
    due(473_000),
    step(473_100, "forget", None, rp="alone"),
    named(473_200, 495_700, B, C),
)
scenario(
    "a redirect is followed after one measurement, to the first of its near servers",
    redirected(0, 0, B, C, D),
    due(0, A, B, C, D),
    measured(300, None, {A: 5, B: None, C: 44, D: 30}, go=[C, ASKS]),
    arrived(400, C, hops=1),
)
scenario(
    "a redirect that expired before its servers were measured is not followed",
    redirected(0, 0, B, valid_ms=1_000),
    due(0, A, B),
    measured(1_000, None, {A: 5, B: 5}),
    redirected(2_000, 2_000, B, valid_ms=1_000),
    due(3_000),
    redirected(4_000, None, B, valid_ms=0),
    redirected(4_000, None, B, valid_ms=-5),
)
scenario(
    "a client whose redirect leads nowhere stays",
    redirected(0, 0, B, C),
    due(0, A, B, C),
    measured(5_000, None, {A: 5, B: None, C: None}),
    redirected(6_000, 6_000, B),
    due(6_000, A, B),
    measured(6_100, None, {A: 5, B: 9}, go=[B, ASKS]),
    step(6_200, "failed", None, url=B),
    redirected(7_000, None, B),
    redirected(306_200, 306_200, B),
)
scenario(
    "a redirect that arrives during a measurement is followed after the next one",
    named(0, 22_500, B),
    due(22_500, A, B),
    redirected(22_600, 22_600, C),
    measured(23_000, 23_000, {A: 80, B: 20}),
    due(23_000, A, C),
    measured(23_100, None, {A: 80, C: 90}, go=[C, ASKS]),
)
scenario(
    "two domains that point to each other move a client once",
    redirected(0, 0, B),
    due(0, A, B),
    measured(100, None, {A: 5, B: 5}, go=[B, ASKS]),
    arrived(200, B, hops=1),
    redirected(300, None, A, hops=1),
    redirected(600_199, None, A, hops=1),
    redirected(600_200, 600_200, A),
)
scenario(
    "domains that point on in a circle move a client twice",
    redirected(0, 0, B),
    due(0, A, B),
    measured(100, None, {A: 5, B: 5}, go=[B, ASKS]),
    arrived(200, B, hops=1),
    redirected(300, 300, C, hops=1),
    due(300, B, C, hops=1),
    measured(400, None, {B: 5, C: 5}, go=[C, ASKS], hops=1),
    arrived(500, C, hops=2),
    redirected(600, None, D, A, hops=2),
    redirected(600_199, None, D, hops=2),
    redirected(600_200, 600_200, D, hops=1),
)
scenario(
    "a redirect that states more hops than are allowed is not followed",
    redirected(0, None, B, by_hops=3),
    redirected(0, 0, B, by_hops=2),
)
scenario(
    "the server that sent a client away is chosen by its delay after an hour, and sooner only if asked to",
    redirected(0, 0, B),
    due(0, A, B),
    measured(100, None, {A: 5, B: 60}, go=[B, ASKS]),
    arrived(200, B, hops=1),
    named(300, None, A, hops=1),
    named(600_200, 622_700, A),
    due(622_700, B, A),
    measured(623_000, 1_073_000, {B: 60, A: 5}),
    due(3_600_100, B, A),
    measured(3_600_200, 3_610_200, {B: 60, A: 5}),
    due(3_610_200, B, A),
    measured(3_610_300, None, {B: 60, A: 5}, go=[A, SLOWER]),
)
scenario(
    "after a move the next waits, twice as long each time",
    named(0, 22_500, B),
    due(22_500, A, B),
    measured(23_000, 33_000, {A: 80, B: 20}),
    due(33_000, A, B),
    measured(33_000, None, {A: 80, B: 20}, go=[B, SLOWER]),
    arrived(33_000, B),
    named(33_000, 55_500, A),
    due(55_500, B, A),
    measured(55_500, 505_500, {B: 80, A: 20}),
    due(505_500, B, A),
    measured(505_500, 515_500, {B: 80, A: 20}),
    due(515_500, B, A),
    measured(515_500, None, {B: 80, A: 20}, go=[A, SLOWER]),
    arrived(515_500, A),
    named(515_500, 538_000, B),
    due(630_000, A, B),
    measured(630_000, 1_080_000, {A: 80, B: 20}),
    due(1_080_000, A, B),
    measured(1_080_000, 1_090_000, {A: 80, B: 20}),
)
scenario(
    "a connection that was lost and is at another server begins anew",
    named(0, 22_500, B),
    arrived(5_000, B),
    due(22_500),
    named(23_000, 45_500, A),
    arrived(24_000, B, 45_500),
)


def document() -> str:
    """The file's text."""
    return json.dumps({"scenarios": SCENARIOS}, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(document())

"""The choice of the best server answers every vector as expected; client/js/test/best_server.test.js proves the same of JavaScript."""

from __future__ import annotations

import json
from typing import Any

import pytest
from herald.best_server import HOPS_MAX, BestServer

from tests.client.best_server_vectors import FILE, SCENARIOS, document


class Half:
    """Randomness that is none."""

    def random(self) -> float:
        return 0.5


def test_the_vectors_are_current() -> None:
    stale = "run: .venv/bin/python -m tests.client.best_server_vectors"
    assert FILE.exists(), stale
    assert FILE.read_text() == document(), stale


def take(best: BestServer, given: dict[str, Any], now: float) -> dict[str, Any]:
    """Give one input; what is more to be seen than the state."""
    match given["do"]:
        case "named":
            best.named(given["rp"], given["urls"], now)
        case "forget":
            best.forget(given["rp"])
        case "redirected":
            best.redirected(given["urls"], given["by_hops"], given["valid_ms"] / 1000, now)
        case "due":
            return {"measures": best.measures(now)}
        case "measured":
            best.measured(given["delays"], now)
        case "arrived":
            best.arrived(given["url"], now)
        case "failed":
            best.failed(given["url"], now)
    return {}


@pytest.mark.parametrize("scenario", json.loads(document())["scenarios"], ids=[one["name"] for one in SCENARIOS])
def test_every_step_gives_what_the_vector_says(scenario: dict[str, Any]) -> None:
    best = BestServer(Half(), scenario["current"])  # type: ignore[arg-type]
    for number, one in enumerate(scenario["steps"], 1):
        now = one["at"] / 1000
        more = take(best, one["in"], now)
        found = {
            "measure_at": None if best.measure_at is None else round(best.measure_at * 1000),
            "go": None if best.go is None else [best.go.url, best.go.reason],
            "hops": best.hops(now),
            **more,
        }
        assert found == one["out"], f"step {number}: {one['in']}"


def test_whatever_lying_domains_say_a_client_follows_no_third_redirect_in_ten_minutes() -> None:
    """A thousand domains, each of which redirects every client to the others, as often as it can."""
    servers = [f"https://d{n}.example" for n in range(1000)]
    best, moves = BestServer(Half(), servers[0]), []  # type: ignore[arg-type]
    for second in range(3600):
        best.redirected(servers, 0, 60.0, float(second))
        if best.measure_at is not None and (measures := best.measures(float(second))):
            best.measured(dict.fromkeys(measures, 1.0), float(second))
        if best.go is not None:
            best.arrived(best.go.url, float(second))
            moves.append(second)
    for at in moves:
        assert sum(at <= other < at + 600 for other in moves) <= HOPS_MAX
    assert len(moves) <= HOPS_MAX * 6

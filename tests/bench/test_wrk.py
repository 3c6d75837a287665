"""wrk as a load generator: what it sends, and what is made of what it counts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bench import wrk
from bench.load import LoadError
from bench.measure import BenchMeasurement
from bench.targets import PUBLISH_WRK_AT_LEAST, checks

POST = wrk.Post(
    "case", "/events", [("Content-Type", 'text/"plain"\\'), ("Authorization", "Bearer x.y")], '{"id":"{number}-%d"}'
)
needs_wrk = pytest.mark.skipif(wrk.find() is None, reason=wrk.MISSING)


class Taker(ThreadingHTTPServer):
    """Answers every POST, each third with 400 if it `refuses`, and keeps what came."""

    def __init__(self, refuses: bool) -> None:
        taker = self
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.refuses = refuses

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                taker.came.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(400 if taker.refuses and len(taker.came) % 3 == 0 else 201)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture(params=[False, True])
def taker(request: pytest.FixtureRequest) -> Iterator[Taker]:
    with Taker(request.param) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@needs_wrk
def test_each_answer_is_counted_and_each_event_has_its_number(taker: Taker, tmp_path: Path) -> None:
    outcome = wrk.run(wrk.find() or "", tmp_path, taker.server_address[1], POST, 2, 1)
    assert outcome.requests > 0
    assert 0 <= len(taker.came) - outcome.requests <= 2
    assert outcome.failed == 0
    assert (outcome.refused > 0) == taker.refuses
    assert 0.5 < outcome.seconds < 20
    assert 0 < outcome.p50_ms <= outcome.p99_ms
    headers, _ = taker.came[0]
    assert headers["content-type"] == 'text/"plain"\\'
    assert headers["authorization"] == "Bearer x.y"
    ids = [json.loads(body)["id"] for _, body in taker.came]
    assert len(set(ids)) == len(ids), "an event that repeats an id is not stored again"
    assert all(one.endswith("-%d") for one in ids)


@needs_wrk
def test_a_server_that_is_not_there_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="wrk ended with 1"):
        wrk.run(wrk.find() or "", tmp_path, 1, POST, 2, 1)


@pytest.mark.parametrize(("reached", "passed"), [(PUBLISH_WRK_AT_LEAST, True), (PUBLISH_WRK_AT_LEAST - 1, False)])
def test_what_wrk_measured_has_a_target_of_its_own(reached: float, passed: bool) -> None:
    row = BenchMeasurement("publish", "wrk -t1 -c16, text/plain", "herald", {"events_per_cpu_s": reached})
    assert [check.passed for check in checks([row]) if "wrk" in check.what] == [passed]

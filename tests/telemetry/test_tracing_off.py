"""Where no collector is configured nothing of tracing is loaded, and the hot path has its ordinary classes."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from demo.harness.servers import ROOT
from eventing.core.config import Config
from eventing.core.errors import ConfigError
from eventing.gateway.observation.tracing import _route
from eventing.telemetry import tracing
from tests.gateway.server import environment

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_LOOK = """
import json, sys
from portal import asgi
from eventing.telemetry import tracing
loaded = [name for name in sys.modules if name.startswith(("opentelemetry.exporter", "opentelemetry.sdk.trace"))]
print(json.dumps({"application": type(asgi.application).__name__, "on": tracing.is_on(), "loaded": loaded}))
"""


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9"], ids=["off", "on"])
def test_a_gateway_has_what_it_needs_and_nothing_else(tmp_path: Path, url: str) -> None:
    surroundings = {name: value for name, value in environment(tmp_path, otlp_url=url).items() if "OTEL" not in name}
    looked = subprocess.run(
        [sys.executable, "-c", _LOOK],
        env=surroundings,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    found = json.loads(looked.stdout)
    assert found["on"] == bool(found["loaded"]) == bool(url)
    assert found["application"] == ("Traced" if url else "RequestIds")


def test_while_it_is_off_everything_is_nothing() -> None:
    assert not tracing.is_on()
    assert (tracing.trace_id(), tracing.headers(), tracing.link_here()) == ("", {}, None)
    with tracing.span("anything", attributes={"a": 1}) as span:
        assert span is None
    tracing.attributes_set(state="FAILURE")
    tracing.stop()


def test_ours_comes_before_opentelemetrys_own_setting() -> None:
    theirs = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://theirs:4318/"}
    assert tracing.endpoint(Config(), theirs) == "http://theirs:4318"
    assert tracing.endpoint(Config(otlp_url="http://ours:4318"), theirs) == "http://ours:4318"
    assert tracing.endpoint(Config(), {}) == ""
    assert os.environ.get("HERALD_OTLP_URL") is None


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/federation/v1/exchange", "/federation/v1/exchange"),
        ("/federation/v1/whateversomebodyinvents", ""),
        ("/federation/v1/x/exchange", ""),
        ("/api/v1/rps/x/events", "/api/v1/rps/{id}/events"),
        ("/api/v1/rps/x", ""),
    ],
)
def test_strangers_do_not_name_spans(path: str, route: str) -> None:
    assert _route(path) == route


@pytest.mark.parametrize(
    ("parent", "state"),
    [("0" * 600, ""), (TRACE, "a" * 600), (TRACE, "not a member")],
    ids=["long-parent", "long-state", "bad-state"],
)
def test_a_trace_that_a_stranger_gets_wrong_fills_no_log(parent: str, state: str) -> None:
    said: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = said.append  # type: ignore[method-assign, assignment]
    logging.getLogger().addHandler(handler)
    try:
        tracing.carried_by(parent, state)
    finally:
        logging.getLogger().removeHandler(handler)
    assert said == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("HERALD_OTLP_URL", "collector:4318"), ("HERALD_METRICS_TOKEN", "short"), ("HERALD_LOG_FORMAT", "xml")],
)
def test_a_setting_that_cannot_be_meant_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Config.from_env({name: value})

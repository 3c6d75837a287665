"""What a gateway that is stopped has traced is sent before it ends."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from tests.gateway.server import LiveGateway, event
from tests.telemetry.collector import Collector


@pytest.mark.processes
def test_the_spans_of_a_gateway_that_is_stopped_are_sent(new_live_gateway: Callable[..., LiveGateway]) -> None:
    trace = secrets.token_hex(16)
    with Collector() as collector:
        gateway = new_live_gateway(otlp_url=collector.url)
        rp = gateway.create_rp()
        head = {"traceparent": f"00-{trace}-{'1' * 16}-01"}
        gateway.admin.post(f"/api/v1/rps/{rp}/events", json=event("e1"), headers=head).raise_for_status()
        gateway.terminate_gateway()  # the next batch of spans would be sent seconds later
        assert gateway.wait_stopped() == 0
        assert collector.of(trace)

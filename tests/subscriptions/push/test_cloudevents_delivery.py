"""Deliveries of whole domains to endpoints of CloudEvents: consent by the handshake, its rate, client certificates."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from demo.harness.servers import wait_for
from tests.subscriptions.push.certificates import certificate_made, demanding
from tests.subscriptions.push.documented_receivers import NODE, PACKAGES
from tests.subscriptions.push.owner import Owner
from tests.subscriptions.push.receiver import Received, Receiver

pytestmark = pytest.mark.processes

MODE = "cloudevents-http"


def test_an_endpoint_that_allows_the_origin_receives_and_no_challenge(owner: Owner, receiver: Receiver) -> None:
    receiver.allows["/ce"] = {"WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "*"}
    hook = owner.hook(receiver.url("/ce"), mode=MODE)
    owner.publish(1, 2, 3)
    wait_for(lambda: receiver.data("/ce") == [1, 2, 3], about="all arrive")
    assert [one.method for one in receiver.received[:2]] == ["OPTIONS", "POST"]
    assert len({one.headers["webhook-request-origin"] for one in receiver.received}) == 1
    assert owner.endpoint(hook)["allowed_rate"] is None


def test_nothing_is_sent_where_the_origin_is_not_allowed(owner: Owner, receiver: Receiver) -> None:
    receiver.allows["/other"] = {"WebHook-Allowed-Origin": "other.example"}
    hook = owner.hook(receiver.url("/other"), mode=MODE)
    owner.publish(1)
    wait_for(lambda: owner.attempts(hook), about="it was asked")
    wait_for(lambda: owner.endpoint(hook)["reason"] == "no-consent", about="its standing is stored, after the attempt")
    assert receiver.requests("/other") == []


def test_the_rate_that_an_endpoint_allows_is_kept(owner: Owner, receiver: Receiver) -> None:
    receiver.allows["/rate"] = {"WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "120"}
    hook = owner.hook(receiver.url("/rate"), mode=MODE, rate=100_000)
    owner.wait_state(hook, "active")
    owner.publish(*range(4))
    wait_for(lambda: len(receiver.data("/rate")) == 4, about="all arrive")
    wait_for(lambda: len(sent_at(owner, hook)) == 4, about="their attempts are stored")
    at = sent_at(owner, hook)  # as they were sent: a busy machine may take them together
    assert min(later - before for before, later in pairwise(at)) > 0.45, "120 a minute: one each 0.5 s"
    assert owner.endpoint(hook)["allowed_rate"] == 120


def sent_at(owner: Owner, hook: str) -> list[float]:
    """Unix seconds of the begins of the attempts to deliver, the oldest first."""
    return sorted(
        datetime.fromisoformat(one["at"]).timestamp() for one in owner.attempts(hook) if one["what"] == "event"
    )


def by_npm_sdk(folder: Path, request: Received) -> Any:
    """The event that the SDK for JavaScript reads from a request."""
    (folder / "node_modules").symlink_to(PACKAGES)
    program = shutil.copy(Path(__file__).with_name("cloudevents_sdk.mjs"), folder)
    stated = json.dumps({"headers": dict(request.headers), "body": request.body.decode()})
    done = subprocess.run([NODE, program], input=stated, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("form", ["structured", "binary"])
def test_the_sdks_of_cloudevents_receive_what_a_subscription_of_their_interface_delivers(
    owner: Owner, receiver: Receiver, form: str, tmp_path: Path
) -> None:
    receiver.allows["/sdk"] = {"WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "*"}
    stated = {
        "config": {"rp": owner.rp},
        "protocol": "HTTP",
        "sink": receiver.url("/sdk"),
        "protocolsettings": {"format": form, "headers": {"X-Tenant": "a"}},
        "sinkcredential": {"credentialtype": "PLAIN", "identifier": "ben", "secret": "s"},
    }
    made = owner.http.post("/api/v1/cloudevents/subscriptions", json=stated)
    assert made.status_code == 201, made.text
    owner.publish({"celsius": 21.5})
    wait_for(lambda: receiver.requests("/sdk"), about="it arrives")
    (request,) = receiver.requests("/sdk")
    event = from_http_event(HTTPMessage(request.headers, request.body))
    assert (event.get_source(), event.get_type(), event.get_data()) == ("/t", "t", {"celsius": 21.5})
    assert by_npm_sdk(tmp_path, request) == {"source": "/t", "type": "t", "data": {"celsius": 21.5}}
    assert (request.headers["x-tenant"], request.headers["authorization"]) == ("a", "Basic YmVuOnM=")
    assert owner.http.delete(f"/api/v1/cloudevents/subscriptions/{made.json()['id']}").status_code == 200


def test_an_expired_token_of_a_sink_pauses_its_endpoint(owner: Owner, receiver: Receiver) -> None:
    receiver.allows["/expired"] = {"WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "*"}
    stated = {
        "config": {"rp": owner.rp},
        "protocol": "HTTP",
        "sink": receiver.url("/expired"),
        "sinkcredential": {
            "credentialtype": "ACCESSTOKEN",
            "accesstoken": "t",
            "accesstokenexpiresutc": "2020-01-01T00:00:00Z",
        },
    }
    made = owner.http.post("/api/v1/cloudevents/subscriptions", json=stated).json()["id"]
    owner.wait_state(made, "paused")
    assert owner.endpoint(made)["reason"] == "credential-expired"
    assert receiver.received == []


def test_a_client_certificate_is_presented_and_never_shown(owner: Owner, served: Path) -> None:
    certificate, key = certificate_made()
    with Receiver(tls=demanding(served, certificate)) as receiver:
        hook = owner.hook(receiver.url("/mutual"), client_certificate=certificate, client_key=key)
        owner.publish("secret")
        wait_for(lambda: receiver.data("/mutual") == ["secret"], about="it arrives")
        without = owner.hook(receiver.url("/mutual"))
        wait_for(lambda: owner.attempts(without), about="it was tried")
        assert owner.endpoint(without)["state"] == "unverified"
    shown = json.dumps(owner.http.get(f"/api/v1/subscriptions/{hook}").json())
    assert "sha256:" in shown
    assert base64.b64encode(key.encode()).decode() not in shown
    assert "PRIVATE" not in shown
    assert "CERTIFICATE" not in shown

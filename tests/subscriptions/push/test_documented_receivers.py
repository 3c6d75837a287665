"""The receivers in docs/how-to/webhooks.md and cloudevents.md, run as they are there, against deliveries of a whole domain."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from demo.harness.servers import wait_for
from tests.subscriptions.push.documented_receivers import DocumentedReceiver, running, shell, written
from tests.subscriptions.push.owner import SECRET, Owner
from tests.subscriptions.push.receiver import Received, Receiver

pytestmark = pytest.mark.processes

TOKEN = "mF_9.B5f-4.1JqM"


@pytest.fixture
def webhooks(tmp_path: Path) -> dict[str, Path]:
    """The programs of the page about webhooks."""
    return written(tmp_path, "webhooks.md")


@pytest.fixture
def cloudevents(tmp_path: Path) -> dict[str, Path]:
    """The programs of the page about CloudEvents."""
    return written(tmp_path, "cloudevents.md")


def test_the_pages_have_a_receiver_in_each_language(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert sorted(written(tmp_path / "a", "webhooks.md")) == [
        "receiver.mjs", "receiver.py", "receiver_v1a.mjs", "receiver_v1a.py", "send.sh", "verify.sh", "verify_v1a.sh",
    ]  # fmt: skip
    assert sorted(written(tmp_path / "b", "cloudevents.md")) == ["sink.mjs", "sink.py", "try.sh"]


def refuses_the_unsigned(receiver: DocumentedReceiver) -> bool:
    """Send an event with a signature by another secret, one without any, and an old one."""
    body = '{"specversion":"1.0","id":"1","source":"/s","type":"t","data":"forged"}'
    now, old = int(time.time()), int(time.time()) - 3600
    other = "whsec_" + "B" * 40
    forged = [
        {"webhook-id": "m", "webhook-timestamp": str(at), "webhook-signature": signature}
        for at, signature in (
            (now, _signature(other, now, body)),
            (old, _signature(SECRET, old, body)),
            (now, "v1a,AAAA"),
        )
    ]
    url = receiver.url("/hook")
    statuses = [
        httpx.post(url, content=body, headers=one, trust_env=False, timeout=60).status_code for one in [*forged, {}]
    ]
    return statuses == [401] * 4 and "forged" not in "".join(receiver.lines)


def _signature(secret: str, at: int, body: str) -> str:
    return Webhook(secret).sign("m", datetime.fromtimestamp(at, tz=UTC), body)


@pytest.mark.parametrize("name", ["receiver.py", "receiver.mjs"])
def test_a_receiver_with_a_secret_takes_deliveries_and_nothing_forged(
    owner: Owner, webhooks: dict[str, Path], name: str
) -> None:
    with running(webhooks[name], WEBHOOK_SECRET=SECRET) as receiver:
        owner.hook(receiver.url("/hook"), secret=SECRET)
        owner.publish({"celsius": 21.5}, "Zürich")
        wait_for(lambda: len(receiver.lines) == 2, about="both arrive")
        assert receiver.lines[0].replace(" ", "") == 't{"celsius":21.5}'
        assert refuses_the_unsigned(receiver)
        sent = shell(webhooks["send.sh"], WEBHOOK_SECRET=SECRET, RECEIVER_URL=receiver.url("/hook"))
        assert sent.stdout.strip() == "204", sent.stderr
        wrong = shell(webhooks["send.sh"], WEBHOOK_SECRET="whsec_" + "B" * 40, RECEIVER_URL=receiver.url("/hook"))
        assert wrong.stdout.strip() == "401", wrong.stderr


@pytest.mark.parametrize("name", ["receiver_v1a.py", "receiver_v1a.mjs"])
def test_a_receiver_with_the_public_key_takes_deliveries_and_nothing_forged(
    owner: Owner, receiver: Receiver, webhooks: dict[str, Path], name: str
) -> None:
    hook = owner.hook(receiver.url("/mute"))  # made first, as the page says: its public key is needed
    key = owner.endpoint(hook)["public_key"]
    with running(webhooks[name], WEBHOOK_KEY=key) as program:
        deliver = {"mode": "webhook", "url": program.url("/hook")}
        owner.http.patch(f"/api/v1/subscriptions/{hook}", json={"deliver": deliver}).raise_for_status()
        owner.publish({"celsius": 21.5}, "Zürich")
        wait_for(lambda: len(program.lines) == 2, about="both arrive")
        assert refuses_the_unsigned(program)


def test_the_scripts_verify_a_delivery_by_openssl_alone(
    owner: Owner, receiver: Receiver, webhooks: dict[str, Path]
) -> None:
    hook = owner.hook(receiver.url("/ok"), secret=SECRET, signature="both")
    owner.publish("Zürich\n")
    wait_for(lambda: receiver.requests("/ok"), about="it arrives")
    (request,) = receiver.requests("/ok")
    verified = {
        "verify.sh": {"WEBHOOK_SECRET": SECRET},
        "verify_v1a.sh": {"WEBHOOK_KEY": owner.endpoint(hook)["public_key"]},
    }
    for name, secret in verified.items():
        (webhooks[name].parent / "body").write_bytes(request.body)
        found = shell(webhooks[name], **secret, **_signed(request))
        assert found.returncode == 0, found.stderr
        (webhooks[name].parent / "body").write_bytes(request.body + b" ")
        assert shell(webhooks[name], **secret, **_signed(request)).returncode != 0


def _signed(request: Received) -> dict[str, str]:
    return {
        name.upper().replace("-", "_"): request.headers[name]
        for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    }


@pytest.mark.parametrize(
    ("name", "form"),
    [("sink.py", "structured"), ("sink.mjs", "binary"), pytest.param("sink.mjs", "batch", marks=pytest.mark.long)],
)
def test_a_sink_of_cloudevents_consents_and_takes_deliveries(
    owner: Owner, cloudevents: dict[str, Path], name: str, form: str
) -> None:
    with running(cloudevents[name], SINK_TOKEN=TOKEN) as receiver:
        credential = {"accesstoken": TOKEN, "accesstokenexpiresutc": "2099-01-01T00:00:00Z"}
        stated: dict[str, Any] = {
            "config": {"rp": owner.rp},
            "protocol": "HTTP",
            "sink": receiver.url("/events"),
            "protocolsettings": {"format": form},
            "sinkcredential": {"credentialtype": "ACCESSTOKEN", **credential},
        }
        owner.http.post("/api/v1/cloudevents/subscriptions", json=stated).raise_for_status()
        owner.publish({"celsius": 21.5}, "Zürich")
        wait_for(lambda: len(receiver.lines) == 2, about="both arrive")
        assert receiver.lines[0].replace(" ", "") == 't{"celsius":21.5}'
        tried = shell(cloudevents["try.sh"], SINK_TOKEN=TOKEN, SINK_URL=receiver.url("/events"))
        assert "webhook-allowed-origin: herald.example.org" in tried.stdout.lower(), tried.stderr
        assert tried.stdout.strip().endswith("204")
        refused = shell(cloudevents["try.sh"], SINK_TOKEN="other", SINK_URL=receiver.url("/events"))
        assert refused.stdout.strip().endswith("401")

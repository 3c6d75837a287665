"""Contact points: who is notified of what, once, by a real receiver and a real mail server; and what is not shown or repeated."""

from __future__ import annotations

import dataclasses
import email
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import policy
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from rest_framework.test import APIClient
from standardwebhooks.webhooks import Webhook

from demo.harness.servers import free_port, wait_for
from eventing.access.services.tokens import token_create
from eventing.audit.models import AuditEntry
from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, QuotaExceeded
from eventing.operations.notification.models import ContactPoint
from eventing.operations.notification.rules.contact_points import CONTACT_POINTS_MAX, retry_s
from eventing.operations.notification.services.contact_points import (
    contact_point_change,
    contact_point_create,
    contact_point_delete,
)
from eventing.operations.notification.services.sending import contact_point_test, notices_send
from eventing.operations.rules.alarms import Changed, Cleared, Raised, Stated
from eventing.operations.selectors.alarms import alarms_open
from eventing.operations.services.alarm_mutes import alarm_mute
from eventing.operations.services.alarms import alarm_acknowledge, alarms_apply
from tests.replication.homes import ANN, ROOT
from tests.subscriptions.push.receiver import Receiver, own_host
from workers.schedule import PERIODS_S
from workers.tasks import notify_of_alarms

pytestmark = pytest.mark.usefixtures("planes")
BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook on this machine, which the domain may call."""
    settings = dataclasses.replace(config(), push_private=True, push_ports="1-65535")
    with override_settings(HERALD=settings), Receiver(host=own_host()) as running:
        yield running


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def apply(*outputs: Any, seconds: float) -> None:
    alarms_apply(outputs, now=at(seconds))


def stated(about: str, detail: str = "is behind", severity: str = "critical") -> Stated:
    return Stated("rule", about, "", "lag", severity, f"{about} {detail}.", (), "/subscriptions", BEGIN.timestamp())


def told(receiver: Receiver, path: str = "/ok") -> list[list[tuple[str, str]]]:
    """Of each message the alarms, with their status."""
    return [[(one["about"], one["status"]) for one in data["alarms"]] for data in receiver.data(path)]


def test_each_alarm_is_notified_once_when_it_begins_and_once_when_it_ends(receiver: Receiver) -> None:
    row, secret = contact_point_create(
        principal=ROOT, name="on call", kind="webhook", url=receiver.url("/ok?token=1"), group_s=60, now=at(0)
    )
    assert secret is not None
    apply(Raised(stated("a")), Raised(stated("b", severity="warning")), seconds=0)
    assert notices_send(now=at(1)) == 0, "what is raised together is notified together"
    assert notices_send(now=at(3)) == 1
    path = "/ok?token=1"
    assert told(receiver, path) == [[("b", "raised"), ("a", "raised")]]
    (request,) = receiver.requests(path)
    Webhook(secret).verify(request.body, request.headers)
    event = json.loads(request.body)
    assert (event["type"], event["source"]) == ("io.herald.alarms.notified", "herald://localhost/alarms")
    assert event["data"]["text"] == "2 alarms raised"
    assert event["data"]["alarms"][0]["runbook"] == f"{config().base_url}/docs/alarms#lag"

    apply(Changed(stated("a", "is further behind")), seconds=10)
    apply(Raised(stated("c")), Raised(stated("d")), Raised(stated("e")), Raised(stated("f")), seconds=20)
    apply(Cleared("rule", "f", "It was short."), Cleared("rule", "a", "Kept again."), seconds=21)
    by_about = {one.about: str(one.id) for one in alarms_open()}
    alarm_mute(alarm_id=by_about["d"], principal=ROOT, for_s=600, now=at(22))
    alarm_acknowledge(alarm_id=by_about["e"], principal=ROOT, now=at(22))
    assert notices_send(now=at(40)) == 0, "not within the grouping interval"
    assert notices_send(now=at(64)) == 1
    assert told(receiver, path)[1] == [("c", "raised"), ("a", "resolved")]
    assert notices_send(now=at(200)) == 0, "nothing is repeated"
    assert notices_send(now=at(700)) == 1
    assert told(receiver, path)[2] == [("d", "raised")], "when its mute has ended"
    held = ContactPoint.objects.get(id=row.id)
    assert "token" not in held.shown
    assert (held.failures, held.delivered_at) == (0, at(700))


def test_what_fails_is_retried_with_what_is_so_by_then_and_delays_no_other(receiver: Receiver) -> None:
    receiver.answer["/fails"] = 503
    for name, path in (("failing", "/fails"), ("working", "/ok")):
        contact_point_create(principal=ROOT, name=name, kind="webhook", url=receiver.url(path), now=at(0))
    contact_point_create(
        principal=ROOT, name="silent", kind="webhook", url=f"http://127.0.0.1:{free_port()}/", now=at(0)
    )
    apply(Raised(stated("a")), Raised(stated("b")), seconds=0)
    assert notices_send(now=at(3)) == 1
    failing = ContactPoint.objects.get(name="failing")
    assert (failing.failures, failing.failure) == (1, "http-503")
    assert at(3) < failing.next_at <= at(14)
    assert ContactPoint.objects.get(name="silent").failure == "not-connected"
    assert notices_send(now=at(4)) == 0
    receiver.answer["/fails"] = 204
    apply(Cleared("rule", "a", "Kept again."), seconds=5)
    contact_point_delete(contact_point="silent", principal=ROOT)
    assert notices_send(now=at(15)) == 1
    assert told(receiver, "/fails")[-1] == [("b", "raised")], "the alarm that came and went is not told afterwards"
    assert [retry_s(failures, 0.5) for failures in (1, 2, 6, 99)] == [10, 30, 600, 600]


def test_the_periodic_task_sends(receiver: Receiver) -> None:
    contact_point_create(principal=ROOT, name="on call", kind="webhook", url=receiver.url("/ok"))
    alarms_apply([Raised(stated("a"))], now=datetime.now(UTC) - timedelta(seconds=10))
    notify_of_alarms()
    notify_of_alarms()
    assert told(receiver) == [[("a", "raised")]]
    assert "workers.tasks.notify_of_alarms" in PERIODS_S


def test_a_filter_by_severity_a_test_and_who_may(receiver: Receiver) -> None:
    row, _ = contact_point_create(
        principal=ROOT,
        name="critical only",
        kind="webhook",
        url=receiver.url("/ok"),
        severity="critical",
        resolved=False,
        now=at(0),
    )
    apply(Raised(stated("a", severity="warning")), seconds=0)
    assert notices_send(now=at(3)) == 0
    tested = contact_point_test(contact_point="critical only", principal=ROOT)
    assert (tested.delivered, tested.reason) == (True, "http-204")
    assert receiver.events("/ok")[0]["type"] == "io.herald.alarms.tested"
    apply(Raised(stated("b")), seconds=10)
    assert notices_send(now=datetime.now(UTC) + timedelta(days=3650)) == 1
    apply(Cleared("rule", "b", "Kept again."), seconds=20)
    contact_point_change(contact_point=row.id, principal=ROOT, changes={"resolved": True}, now=at(30))
    assert notices_send(now=at(40)) == 0, "its end was before that was wanted"

    with pytest.raises(Conflict):
        contact_point_create(principal=ROOT, name="critical only", kind="webhook", url=receiver.url("/ok"))
    for wrong in ({"kind": "pigeon"}, {"kind": "mail", "to": ["a@b.example"]}, {"kind": "webhook", "url": "ftp://x"}):
        with pytest.raises(InvalidRequest):
            contact_point_create(principal=ROOT, name="wrong", **wrong)
    with pytest.raises(Forbidden):
        contact_point_test(contact_point=row.id, principal=ANN)
    with pytest.raises(NotFound):
        contact_point_delete(contact_point="nobody", principal=ROOT)
    for number in range(1, CONTACT_POINTS_MAX):
        contact_point_create(principal=ROOT, name=f"n{number}", kind="webhook", url=receiver.url("/ok"))
    with pytest.raises(QuotaExceeded):
        contact_point_create(principal=ROOT, name="one more", kind="webhook", url=receiver.url("/ok"))


def test_secrets_are_shown_once_and_are_in_no_list_and_not_in_the_audit(receiver: Receiver) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(subject='root', admin=True, lease_s=60).token}")
    url = receiver.url("/ok?key=hidden")
    made = client.post("/api/v1/contact-points", {"name": "hook", "kind": "webhook", "url": url}, format="json")
    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    changed = client.patch("/api/v1/contact-points/hook", {"severity": "critical"}, format="json")
    listed = client.get("/api/v1/contact-points")
    kept = json.dumps([entry.details for entry in AuditEntry.objects.all()])
    for text in (changed.content.decode(), listed.content.decode(), kept):
        assert "hook" in text
        assert secret not in text
        assert "hidden" not in text
    sealed = bytes(ContactPoint.objects.get().sealed)
    assert secret.encode() not in sealed
    assert b"hidden" not in sealed
    assert client.post("/api/v1/contact-points/hook/test", {}, format="json").json()["delivered"] is True
    Webhook(secret).verify(receiver.received[-1].body, receiver.received[-1].headers)
    assert client.delete("/api/v1/contact-points/hook").status_code == 204


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Path]:
    """A mail server, a process of its own, which puts what it receives into a Maildir; the domain sends by it."""
    port, folder = free_port(), tmp_path / "mail"
    command = [sys.executable, "-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{port}"]
    server = subprocess.Popen([*command, "-c", "aiosmtpd.handlers.Mailbox", str(folder)])
    settings = dataclasses.replace(
        config(), smtp_host="127.0.0.1", smtp_port=port, smtp_security="none", mail_from="herald@a.example"
    )
    try:
        wait_for(lambda: listens(port), about="the mail server listens")
        with override_settings(HERALD=settings):
            yield folder
    finally:
        server.terminate()
        server.wait(30)


def test_mail_says_what_is_wrong_and_what_to_do(mailbox: Path) -> None:
    contact_point_create(
        principal=ROOT, name="operators", kind="mail", to=["ops@a.example", "night@a.example"], now=at(0)
    )
    apply(Raised(stated("a", "is behind\r\nBcc: all@a.example")), seconds=0)
    assert notices_send(now=at(3)) == 1
    apply(Cleared("rule", "a", "Kept again."), seconds=10)
    assert notices_send(now=at(80)) == 1
    assert contact_point_test(contact_point="operators", principal=ROOT).reason == "accepted"
    mails = sorted(
        (email.message_from_bytes(path.read_bytes(), policy=policy.default) for path in (mailbox / "new").iterdir()),
        key=lambda mail: str(mail["Subject"]),
    )
    raised, resolved, tested = mails
    assert raised["Subject"] == "[Herald localhost] Critical: a is behind Bcc: all@a.example."
    assert (raised["To"], raised["From"], raised["Bcc"]) == (
        "ops@a.example, night@a.example",
        "herald@a.example",
        None,
    )
    body = raised.get_content()
    assert f"{config().base_url}/docs/alarms#lag" in body
    assert "RAISED  critical  lag" in body
    assert resolved["Subject"].startswith("[Herald localhost] Resolved: a is behind")
    assert "Kept again." in resolved.get_content()
    assert "Test of the contact point operators by root." in tested["Subject"]
    with pytest.raises(InvalidRequest):
        contact_point_change(contact_point="operators", principal=ROOT, changes={"to": ["no address"]})

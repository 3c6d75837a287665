"""A webhook becomes an event with its sender's id and type, its data untouched."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from eventing.core.errors import InvalidEvent, TooLarge
from eventing.core.events.cloudevents import Event
from eventing.core.events.cloudevents_http import read_head
from eventing.intakes.rules.conversion import SAME_S, ConversionBounds, events_of
from eventing.intakes.rules.formats import ALERTMANAGER, CLOUDEVENTS, GITHUB, GRAFANA, NAMES, PLAIN, STANDARD, STRIPE

NOW = 1_700_000_040.0
JSON = {"content-type": "application/json"}
GITHUB_HEADERS = {**JSON, "x-github-event": "issues", "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958"}


def converted(
    kind: str, headers: dict[str, str], body: bytes, *, now: float = NOW, bytes_max: int = 65_536
) -> list[Event]:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    found, _ = events_of(
        kind,
        read_head(raw),
        headers,
        body,
        source="/localhost/intakes/in_a",
        bounds=ConversionBounds(bytes_max, 10),
        make_id=lambda: "random",
        now=now,
        now_text=lambda: "2026-11-23T00:00:00.000000Z",
    )
    return found


def one(kind: str, headers: dict[str, str], body: Any, **options: Any) -> dict[str, Any]:
    (event,) = converted(kind, headers, body if isinstance(body, bytes) else json.dumps(body).encode(), **options)
    document: dict[str, Any] = json.loads(event.body)
    assert (document["id"], document["source"], document["type"]) == (event.id, event.source, event.type)
    return document


def test_a_webhook_of_github_has_its_delivery_event_action_and_repository() -> None:
    payload = {
        "action": "opened",
        "issue": {"n": 1.10},
        "repository": {"url": "https://api.github.com/repos/o/r", "id": 1},
    }
    found = one(GITHUB, GITHUB_HEADERS, payload)
    assert found["id"] == "72d3162e-cc78-11e3-81ab-4c9367dc0958"
    assert found["type"] == "com.github.issues.opened"
    assert found["source"] == "https://api.github.com/repos/o/r"
    assert found["data"] == payload


def test_data_is_the_bytes_that_were_received() -> None:
    body = b'{"action" : "a", "n":1.10,  "e":1E400,"s":"\\u00e9"}'
    (event,) = converted(GITHUB, GITHUB_HEADERS, body)
    assert event.body.endswith(b',"data":' + body + b"}")


def test_github_may_send_a_form() -> None:
    form = urlencode({"payload": '{"zen": "Keep it logically awesome."}'}).encode()
    headers = {**GITHUB_HEADERS, "content-type": "application/x-www-form-urlencoded", "x-github-event": "ping"}
    found = one(GITHUB, headers, form)
    assert found["type"] == "com.github.ping"
    assert found["datacontenttype"] == "application/json"
    assert found["data"] == {"zen": "Keep it logically awesome."}
    assert found["source"] == "/localhost/intakes/in_a"


def test_a_webhook_of_stripe_has_its_events_id_type_and_time() -> None:
    found = one(
        STRIPE, JSON, {"id": "evt_1Nx", "object": "event", "type": "charge.succeeded", "created": 1_700_000_000}
    )
    assert (found["id"], found["type"]) == ("evt_1Nx", "com.stripe.charge.succeeded")
    assert found["time"] == "2023-11-14T22:13:20.000000Z"


def test_a_standard_webhook_has_its_id_and_the_payloads_type_and_time() -> None:
    headers = {**JSON, "webhook-id": "msg_1"}
    found = one(STANDARD, headers, {"type": "invoice.paid", "timestamp": "2022-11-03T20:26:10.344522Z", "data": {}})
    assert (found["id"], found["type"], found["time"]) == ("msg_1", "invoice.paid", "2022-11-03T20:26:10.344522Z")
    other = one(STANDARD, {**headers, "content-type": "text/plain"}, b"not JSON")
    assert (other["id"], other["type"], other["data"]) == ("msg_1", "io.herald.message", "not JSON")


@pytest.mark.parametrize(
    ("kind", "prefix"), [(GRAFANA, "com.grafana.alerting"), (ALERTMANAGER, "io.prometheus.alertmanager")]
)
def test_a_notification_is_one_event_of_its_group(kind: str, prefix: str) -> None:
    payload = {"version": "4", "status": "firing", "groupKey": '{}:{alertname="Down"}', "alerts": [{}, {}]}
    found = one(kind, JSON, payload)
    assert (found["type"], found["subject"]) == (f"{prefix}.firing", '{}:{alertname="Down"}')
    assert found["data"] == payload


def test_a_notification_that_is_repeated_at_once_is_the_same_event_and_minutes_later_another() -> None:
    body = {"status": "firing", "groupKey": "g"}
    first = one(ALERTMANAGER, JSON, body)["id"]
    assert one(ALERTMANAGER, JSON, body, now=NOW + 10)["id"] == first
    assert one(ALERTMANAGER, JSON, body, now=NOW + SAME_S)["id"] != first
    assert one(ALERTMANAGER, JSON, {**body, "status": "resolved"})["id"] != first


def test_anything_else_is_wrapped_with_its_idempotency_key_if_it_has_one() -> None:
    assert one(PLAIN, JSON, {"a": 1})["id"] == "random"
    found = one(PLAIN, {"content-type": "text/plain", "idempotency-key": "k-1"}, "grüß Gott".encode())
    assert (found["id"], found["data"]) == ("k-1", "grüß Gott")
    assert one(PLAIN, {}, b"\xff\x00")["data_base64"] == "/wA="


def test_cloudevents_are_taken_in_every_mode() -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    structured = {"content-type": "application/cloudevents+json"}
    assert one(CLOUDEVENTS, structured, event) == event
    binary = {"ce-specversion": "1.0", "ce-id": "2", "ce-source": "/s", "ce-type": "t", "content-type": "text/plain"}
    assert one(CLOUDEVENTS, binary, b"x")["data"] == "x"
    batch = {"content-type": "application/cloudevents-batch+json"}
    assert len(converted(CLOUDEVENTS, batch, json.dumps([event, {**event, "id": "2"}]).encode())) == 2


@pytest.mark.parametrize(
    ("kind", "headers", "body"),
    [
        (GITHUB, JSON, b"{}"),
        (GITHUB, {**GITHUB_HEADERS, "x-github-event": "Not An Event"}, b"{}"),
        (GITHUB, {**GITHUB_HEADERS, "x-github-delivery": "with space"}, b"{}"),
        (GITHUB, GITHUB_HEADERS, b"not JSON"),
        (GITHUB, GITHUB_HEADERS, b'{"action": 7}'),
        (GITHUB, {**GITHUB_HEADERS, "content-type": "application/x-www-form-urlencoded"}, b"a=1"),
        (GITHUB, {**GITHUB_HEADERS, "content-type": "application/x-www-form-urlencoded"}, b"\xff"),
        (STRIPE, JSON, b"{}"),
        (STRIPE, JSON, b'{"id": "e\\n", "type": "t"}'),
        (STRIPE, JSON, b"[" * 5000),
        (STANDARD, JSON, b"{}"),
        (STANDARD, {**JSON, "webhook-id": "msg.1614265330"}, b"{}"),
        (GRAFANA, JSON, b'{"status": "on fire"}'),
        (ALERTMANAGER, JSON, b"[]"),
        (PLAIN, JSON, b"not JSON"),
        (CLOUDEVENTS, {"content-type": "application/cloudevents+json"}, b"{}"),
    ],
)
def test_what_is_not_of_the_format_is_refused(kind: str, headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(InvalidEvent):
        converted(kind, headers, body)


@pytest.mark.parametrize("kind", NAMES)
def test_an_event_larger_than_allowed_is_refused(kind: str) -> None:
    headers = {**GITHUB_HEADERS, "webhook-id": "m"}
    body = json.dumps({"id": "e", "type": "t", "status": "firing", "pad": "x" * 2000}).encode()
    with pytest.raises((TooLarge, InvalidEvent)) as found:
        converted(kind, headers, body, bytes_max=1024)
    assert kind == CLOUDEVENTS or found.type is TooLarge

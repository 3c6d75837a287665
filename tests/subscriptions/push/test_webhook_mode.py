"""Requests of webhooks, verified by foreign programs: standardwebhooks, and the SDK of CloudEvents."""

from __future__ import annotations

import base64
import json
import os
import time
from typing import Any

import pytest
import yaml
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from jsonschema import Draft202012Validator, ValidationError
from standardwebhooks import Webhook, WebhookVerificationError

from demo.harness.servers import ROOT
from eventing.subscriptions.push.modes import PushRequest, PushTarget, StoredEvent
from eventing.subscriptions.push.rules.addresses import EndpointUrl
from eventing.subscriptions.push.rules.signatures import public_key_text, secret_parse, signature_key
from eventing.subscriptions.push.rules.verdicts import PushAnswer
from eventing.subscriptions.push.webhook.binary import binary_form
from eventing.subscriptions.push.webhook.mode import TEST_KIND, WARNING_KIND, WebhookMode, made_event

OLD, NEW = ("whsec_" + base64.b64encode(os.urandom(32)).decode() for _ in range(2))
KEY = signature_key(b"m" * 32, "sub_a")
URL = EndpointUrl("https", "example.org", 443, "/hook")
MODE = WebhookMode()


def target(**stated: Any) -> PushTarget:
    return PushTarget("sub_a", "rp", "herald.test", URL, **stated)


def event(data: Any = None, **attributes: Any) -> bytes:
    members = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", **attributes}
    return json.dumps(members if data is None else {**members, "data": data}).encode()


def request(bodies: list[bytes], **stated: Any) -> PushRequest:
    events = [StoredEvent("abc", 7 + index, body) for index, body in enumerate(bodies)]
    return MODE.request(target(**stated), events, int(time.time()))


def test_standardwebhooks_verifies_a_delivery_and_refuses_another_body() -> None:
    made = request([event({"n": "ü"})], secrets=(secret_parse(OLD),))
    assert Webhook(OLD).verify(made.body, dict(made.headers)) == json.loads(made.body)
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(made.body + b" ", dict(made.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(made.body, dict(made.headers))


def test_during_a_rotation_both_secrets_verify() -> None:
    made = request([event()], secrets=(secret_parse(NEW), secret_parse(OLD)))
    for secret in (OLD, NEW):
        Webhook(secret).verify(made.body, dict(made.headers))


def test_the_public_key_verifies_v1a() -> None:
    made = request([event()], key=KEY)
    fields = dict(made.headers)
    version, signature = fields["webhook-signature"].split(",")
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key_text(KEY).removeprefix("whpk_")))
    signed = f"{fields['webhook-id']}.{fields['webhook-timestamp']}.".encode() + made.body
    key.verify(base64.b64decode(signature), signed)
    assert version == "v1a"
    with pytest.raises(InvalidSignature):
        key.verify(base64.b64decode(signature), signed + b" ")


def test_keys_of_two_subscriptions_are_different() -> None:
    assert public_key_text(signature_key(b"m" * 32, "sub_b")) != public_key_text(KEY)


def test_a_structured_delivery_is_the_event_byte_for_byte_and_its_id_is_constant() -> None:
    body = b'{ "specversion":"1.0", "id":"1","source":"/s","type":"t" }'
    first, again = request([body]), request([body])
    assert first.body == body
    assert dict(first.headers)["webhook-id"] == dict(again.headers)["webhook-id"] == "msg_abc_7"
    assert dict(first.headers)["Content-Type"] == "application/cloudevents+json; charset=utf-8"


def test_a_batch_is_an_array_of_the_events() -> None:
    made = request([event(1), event(2)], form="batch", batch=100)
    assert [one["data"] for one in json.loads(made.body)] == [1, 2]
    assert dict(made.headers)["Content-Type"].startswith("application/cloudevents-batch+json")


@pytest.mark.parametrize("data", [{"a": [1, "ü"]}, "text", 5])
def test_the_sdk_of_cloudevents_reads_a_binary_delivery(data: Any) -> None:
    stated = event(data, subject="Zürich 100%", datacontenttype="application/json", count=3, flag=True)
    made = request([stated], form="binary")
    found = from_http_event(HTTPMessage(dict(made.headers), made.body))
    assert found.get_data() == data
    assert (found.get_id(), found.get_source(), found.get_type()) == ("1", "/s", "t")
    assert found.get_subject() == "Zürich 100%"
    assert dict(made.headers)["ce-count"] == "3"
    assert dict(made.headers)["ce-flag"] == "true"


def test_raw_data_is_the_data_alone() -> None:
    text = request([event("héllo", datacontenttype="text/plain")], form="raw")
    assert (text.body, dict(text.headers)["Content-Type"]) == ("héllo".encode(), "text/plain")
    binary = json.dumps({**json.loads(event(datacontenttype="image/png")), "data_base64": "AAEC"}).encode()
    assert request([binary], form="raw").body == b"\x00\x01\x02"
    assert not [name for name, _ in text.headers if name.startswith("ce-")]


def test_attributes_too_long_for_fields_are_sent_in_structured_mode() -> None:
    long = event(1, subject="x" * 9000)
    assert binary_form(long) is None
    assert request([long], form="binary").body == long


def test_no_attribute_can_begin_another_header() -> None:
    made = request([event(1, subject="a\r\nX-Evil: 1\n")], form="binary")
    assert all("\r" not in value and "\n" not in value for _, value in made.headers)
    assert dict(made.headers)["ce-subject"] == "a%0D%0AX-Evil:%201%0A"


def test_an_endpoint_consents_by_repeating_the_challenge() -> None:
    made = MODE.consent_request(target(), "tok-en", 1)
    assert json.loads(made.body)["data"] == {"challenge": "tok-en"}
    assert MODE.consents(target(), "tok-en", PushAnswer(200, excerpt=b'{"challenge":"tok-en"}'))
    assert not MODE.consents(target(), "tok-en", PushAnswer(200, excerpt=b"ok"))
    assert not MODE.consents(target(), "tok-en", PushAnswer(404, excerpt=b"tok-en"))


@pytest.mark.parametrize(
    ("headers", "consents"),
    [
        ((("webhook-allowed-origin", "herald.test"),), True),
        ((("webhook-allowed-origin", "*"),), True),
        ((("webhook-allowed-origin", "other.test"),), False),
        ((), False),
    ],
)
def test_the_handshake_of_cloudevents_is_judged_by_its_field_not_its_status(headers: Any, consents: bool) -> None:
    asked = target(verification="cloudevents")
    made = MODE.consent_request(asked, "t", 1)
    assert (made.method, dict(made.headers)["WebHook-Request-Origin"]) == ("OPTIONS", "herald.test")
    assert MODE.consents(asked, "t", PushAnswer(200, headers=headers)) is consents


def described(name: str) -> Draft202012Validator:
    """Return the validator of a message's payload and headers, as docs/asyncapi.yaml describes it."""
    whole = yaml.safe_load((ROOT / "docs" / "asyncapi.yaml").read_text())
    message = whole["components"]["messages"][name]
    members = {"payload": message["payload"], "headers": message["headers"]}
    return Draft202012Validator({"type": "object", "properties": members, "components": whole["components"]})


def test_requests_are_what_asyncapi_describes() -> None:
    stated = target(secrets=(secret_parse(OLD), secret_parse(NEW)), key=KEY)
    warning = {
        "subscription": "sub_a", "endpoint": "https://example.org/", "state": "paused", "reason": "http-500", "failures": 9,
        "state_at": "2030-01-01T00:00:00.000000Z", "failing_since": None,
    }  # fmt: skip
    made = {
        "delivery": request([event({"n": 1})], key=KEY),
        "deliveryBatch": request([event(1), event(2)], form="batch", key=KEY),
        "deliveryChallenge": MODE.consent_request(stated, "token", 1),
        "deliveryTest": request([made_event(stated, TEST_KIND, "t", {"test": "t"})], key=KEY),
        "deliveryWarning": request([made_event(stated, WARNING_KIND, "w", warning)], key=KEY),
    }
    for name, one in made.items():
        described(name).validate({"payload": json.loads(one.body), "headers": dict(one.headers)})
    with pytest.raises(ValidationError):
        described("deliveryWarning").validate({"payload": json.loads(made["deliveryTest"].body), "headers": {}})

"""The mode `cloudevents-http`: its handshake, the rate that an endpoint allows, and what the SDK of CloudEvents reads."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from eventing.core.errors import InvalidRequest
from eventing.subscriptions.push.cloudevents_http.mode import CloudEventsHttpMode
from eventing.subscriptions.push.modes import PushTarget, StoredEvent
from eventing.subscriptions.push.rules.addresses import EndpointUrl
from eventing.subscriptions.push.rules.client_identities import client_identity
from eventing.subscriptions.push.rules.credentials import stated_credential
from eventing.subscriptions.push.rules.options import webhook_options
from eventing.subscriptions.push.rules.request_rates import effective_rate, pause_s
from eventing.subscriptions.push.rules.verdicts import PushAnswer
from eventing.subscriptions.push.webhook.handshake import handshake_rate
from tests.subscriptions.push.certificates import certificate_made

MODE = CloudEventsHttpMode()
URL = EndpointUrl("https", "example.org", 443, "/hook")
ORIGIN, RATE = "webhook-allowed-origin", "webhook-allowed-rate"


def target(**stated: Any) -> PushTarget:
    return PushTarget("sub_a", "rp", "herald.test", URL, verification="cloudevents", **stated)


def options(**stated: Any) -> Any:
    members = {"mode": "cloudevents-http", "url": "https://app.example.org/in?key=hidden", **stated}
    return webhook_options(members, ports=frozenset({443}), private=False)


@pytest.mark.parametrize(
    ("asked", "fields", "consents"),
    [
        (None, {ORIGIN: "herald.test"}, True),
        (None, {ORIGIN: "Herald.TEST", RATE: "100"}, True),
        (None, {ORIGIN: "*", RATE: "*"}, True),
        (None, {ORIGIN: "other.test"}, False),
        (None, {ORIGIN: "other.test, herald.test"}, False),
        (None, {}, False),
        (None, {ORIGIN: "*", RATE: "0"}, False),
        (None, {ORIGIN: "*", RATE: "many"}, False),
        (120, {ORIGIN: "*"}, False),
        (120, {ORIGIN: "*", RATE: "60"}, True),
    ],
)
def test_consent_is_both_fields_where_a_rate_was_asked_for(
    asked: int | None, fields: dict[str, str], consents: bool
) -> None:
    made = MODE.consent_request(target(rate=asked), "token", 1)
    assert made.method == "OPTIONS"
    assert dict(made.headers)["WebHook-Request-Origin"] == "herald.test"
    assert dict(made.headers).get("WebHook-Request-Rate") == (str(asked) if asked else None)
    assert MODE.consents(target(rate=asked), "token", PushAnswer(405, headers=tuple(fields.items()))) is consents


def test_the_lower_one_of_two_rates_spaces_requests_evenly() -> None:
    assert handshake_rate(PushAnswer(200, headers=((RATE, "100"),))) == 100
    assert handshake_rate(PushAnswer(200, headers=((RATE, "*"),))) is None
    assert effective_rate(120, 100) == 100
    assert effective_rate(None, None) is None
    assert (pause_s(120), pause_s(None)) == (0.5, 0.0)


@pytest.mark.parametrize("form", ["structured", "binary"])
def test_the_sdk_of_cloudevents_reads_both_modes(form: str) -> None:
    stored = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "subject": "Zürich", "data": {"n": 1}}
    made = MODE.request(target(form=form), [StoredEvent("e", 1, json.dumps(stored).encode())], int(time.time()))
    found = from_http_event(HTTPMessage(dict(made.headers), made.body))
    assert (found.get_id(), found.get_subject(), found.get_data()) == ("1", "Zürich", {"n": 1})
    assert dict(made.headers)["WebHook-Request-Origin"] == "herald.test"


def test_no_request_is_without_payload() -> None:
    stored = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}'
    made = MODE.request(target(form="binary"), [StoredEvent("e", 1, stored)], 1)
    assert made.body == stored
    assert dict(made.headers)["Content-Type"].startswith("application/cloudevents+json")


def test_it_has_neither_raw_data_nor_a_challenge() -> None:
    for stated in ({"format": "raw"}, {"verification": "challenge"}):
        with pytest.raises(InvalidRequest):
            options(**stated)
    assert "hidden" not in str(options().shown)


def test_a_client_certificate_needs_its_own_key_and_https() -> None:
    (mine, key), (_, other) = certificate_made(), certificate_made()
    assert options(client_certificate=mine, client_key=key).shown["client_certificate"].startswith("sha256:")
    for stated in (
        {"client_certificate": mine},
        {"client_certificate": mine, "client_key": other},
        {"client_certificate": "none", "client_key": key},
        {"client_certificate": mine, "client_key": "none"},
    ):
        with pytest.raises(InvalidRequest):
            options(**stated)
    members = {"mode": "webhook", "url": "http://10.0.0.1/", "client_certificate": mine, "client_key": key}
    with pytest.raises(InvalidRequest):
        webhook_options(members, ports=frozenset({80}), private=True)
    assert client_identity(mine, key).digest == client_identity(mine + "\n", key).digest


def test_credentials_become_the_authorization_field() -> None:
    plain = stated_credential({"credentialtype": "PLAIN", "identifier": "ben", "secret": "über"})
    assert plain.field == "Basic YmVuOsO8YmVy"
    token = {"credentialtype": "ACCESSTOKEN", "accesstoken": "a.b-c", "accesstokenexpiresutc": 1.0}
    assert stated_credential(token).field == "Bearer a.b-c"
    for wrong in (
        {**token, "accesstoken": "a b"},
        {**token, "accesstokentype": "mac"},
        {"credentialtype": "ACCESSTOKEN", "accesstoken": "a"},
        {**token, "accesstokenexpiresutc": 253_402_300_799.999999},
        {**token, "accesstokenexpiresutc": -1.0},
        {"credentialtype": "PLAIN", "identifier": "a", "secret": "\ud800"},
        {"credentialtype": "REFRESHTOKEN", "accesstoken": "a", "refreshtoken": "b"},
        {"credentialtype": "PLAIN", "identifier": "a:b", "secret": "c"},
        {"credentialtype": "PLAIN", "identifier": "a", "secret": "c\r\nX-Evil: 1"},
        {},
    ):
        with pytest.raises(InvalidRequest):
            stated_credential(wrong)
    with pytest.raises(InvalidRequest):
        options(credential=token, headers={"Authorization": "Bearer other"})

"""The mode `websub` distributes the stored bytes with the fields that the Recommendation requires."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from eventing.subscriptions.push.modes import PushTarget, StoredEvent
from eventing.subscriptions.push.rules.addresses import endpoint_url
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, PushAnswer
from eventing.subscriptions.push.websub.mode import WebSubMode
from eventing.subscriptions.push.websub.topics import topic_rp, topic_url
from tests.subscriptions.push.test_webhook_mode import described

RP, BASE = "a" * 26, "https://herald.example"
BODY = b'{"specversion":"1.0","id":"1","source":"/s","type":"t", "data":{"n": 1}}'


def request(**stated: Any) -> Any:
    """Return the distribution of an event."""
    url = endpoint_url("https://sub.example/cb?x=1", ports=(443,), private=False)
    target = PushTarget(subscription="sub_a", rp=RP, origin="herald.example", url=url, base=BASE, **stated)
    return WebSubMode().request(target, [StoredEvent("e", 1, BODY)], 0)


@pytest.mark.parametrize("method", ["sha256", "sha384", "sha512"])
def test_a_distribution_is_what_asyncapi_describes(method: str) -> None:
    made = request(secrets=("g\u00e9heim".encode(),), signature=method)
    headers = dict(made.headers)
    described("distribution").validate({"payload": json.loads(made.body), "headers": headers})
    expected = hmac.new("g\u00e9heim".encode(), BODY, getattr(hashlib, method)).hexdigest()
    assert (made.method, made.body) == ("POST", BODY)
    assert headers["X-Hub-Signature"] == f"{method}={expected}"


def test_without_a_secret_nothing_is_signed() -> None:
    made = request(signature="none")
    assert "X-Hub-Signature" not in dict(made.headers)
    described("distribution").validate({"payload": json.loads(made.body), "headers": dict(made.headers)})


@pytest.mark.parametrize(
    ("status", "verdict"), [(204, "delivered"), (410, "gone"), (302, "failed"), (404, "failed"), (429, "throttled")]
)
def test_the_status_alone_decides(status: int, verdict: str) -> None:
    assert WebSubMode().verdict(PushAnswer(status)) == AttemptVerdict(verdict)


@pytest.mark.parametrize(
    ("topic", "rp"),
    [
        (topic_url(BASE, RP), RP),
        (topic_url(BASE, f"{RP}.admin"), f"{RP}.admin"),
        (topic_url(BASE, RP) + "?a", None),
        (topic_url(BASE, RP) + "/", None),
        (topic_url(BASE, "sensors/"), None),
        (topic_url("https://other.example", RP), None),
        (RP, None),
    ],
)
def test_only_the_canonical_address_of_this_domain_is_a_topic(topic: str, rp: str | None) -> None:
    assert topic_rp(BASE, topic) == rp

"""Requests to a WebSub hub are read as the Recommendation says, and what is malformed is told in a sentence."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from eventing.subscriptions.push.websub.callbacks import (
    LEASE_S_DEFAULT,
    denial_url,
    granted_lease_s,
    is_verified,
    verification_url,
)
from eventing.subscriptions.push.websub.distribution import METHODS, distribution_fields
from eventing.subscriptions.push.websub.requests import (
    BODY_BYTES_MAX,
    FORM,
    ContentPing,
    HubRequestMalformed,
    SubscriptionWish,
    UnsubscriptionWish,
    read_hub_request,
)

CALLBACK, TOPIC = "https://sub.example/cb?id=1&x=%C3%A9", "https://herald.example/rps/a"


def form(**parameters: str | list[str]) -> bytes:
    named = {f"hub.{name}": value for name, value in parameters.items()}
    return urlencode({"hub.callback": CALLBACK, "hub.topic": TOPIC, **named}, doseq=True).encode()


def test_a_subscription_is_read_and_unknown_parameters_are_ignored() -> None:
    body = form(mode="subscribe", lease_seconds="864000", secret="gehe\u00efm", foo="bar", verify="sync")
    assert read_hub_request(f"{FORM}; charset=utf-8", body) == SubscriptionWish(CALLBACK, TOPIC, 864_000, "gehe\u00efm")
    assert read_hub_request(FORM.upper(), form(mode="subscribe")) == SubscriptionWish(CALLBACK, TOPIC, None, "")


def test_a_lease_is_ignored_when_unsubscribing() -> None:
    assert read_hub_request(FORM, form(mode="unsubscribe", lease_seconds="-1")) == UnsubscriptionWish(CALLBACK, TOPIC)


def test_a_publisher_names_topics_by_either_name_and_several_at_once() -> None:
    assert read_hub_request(FORM, urlencode({"hub.mode": "publish", "hub.url": TOPIC}).encode()) == ContentPing(
        (TOPIC,)
    )
    several = urlencode([("hub.mode", "publish"), ("hub.topic", TOPIC), ("hub.url", "http://b/"), ("hub.url", TOPIC)])
    assert read_hub_request(FORM, several.encode()) == ContentPing(("http://b/", TOPIC))


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("", form(mode="subscribe")),
        ("application/json", b"{}"),
        (FORM, b""),
        (FORM, form()),
        (FORM, form(mode="Subscribe")),
        (FORM, form(mode=["subscribe", "unsubscribe"])),
        (FORM, form(mode="subscribe", topic=[TOPIC, TOPIC])),
        (FORM, b"hub.mode=subscribe&hub.topic=http://a/"),
        (FORM, form(mode="subscribe", callback="")),
        (FORM, form(mode="subscribe", callback="ftp://a/")),
        (FORM, form(mode="subscribe", callback="//a/")),
        (FORM, form(mode="subscribe", callback="https://")),
        (FORM, form(mode="subscribe", callback="https://a:99999/")),
        (FORM, form(mode="subscribe", callback="https://a/#f")),
        (FORM, form(mode="subscribe", callback="https://me:secret@a/")),
        (FORM, form(mode="subscribe", callback="https://a/\r\nHost: b")),
        (FORM, form(mode="subscribe", callback="https://a/" + "x" * 2048)),
        (FORM, form(mode="subscribe", lease_seconds="0")),
        (FORM, form(mode="subscribe", lease_seconds="-5")),
        (FORM, form(mode="subscribe", lease_seconds="1.5")),
        (FORM, form(mode="subscribe", lease_seconds="9" * 11)),
        (FORM, form(mode="subscribe", secret="s" * 200)),
        (FORM, form(mode="subscribe", secret="\u00e9" * 100)),
        (FORM, b"hub.mode=publish"),
        (FORM, urlencode([("hub.mode", "publish"), *(("hub.url", f"http://a/{n}") for n in range(17))]).encode()),
        (FORM, b"hub.mode=subscribe&hub.topic=%ff&hub.callback=http://a/"),
        (FORM, b"hub.mode=\xe9"),
        (FORM, b"&".join(b"a=%d" % n for n in range(65))),
        (FORM, b"a" * (BODY_BYTES_MAX + 1)),
    ],
)
def test_a_malformed_request_is_refused_without_repeating_a_secret(content_type: str, body: bytes) -> None:
    with pytest.raises(HubRequestMalformed) as found:
        read_hub_request(content_type, body)
    assert str(found.value).endswith(".")
    assert "secret@" not in str(found.value)


def test_a_callbacks_own_query_is_kept() -> None:
    stated = "hub.mode=subscribe&hub.topic=http%3A%2F%2Ft%2F%3Fa%3D1%262&hub.challenge=c&hub.lease_seconds=60"
    assert verification_url("http://a/cb", "subscribe", "http://t/?a=1&2", "c", 60) == f"http://a/cb?{stated}"
    assert (
        verification_url("http://a/cb?x=1&x=2", "subscribe", "http://t/?a=1&2", "c", 60)
        == f"http://a/cb?x=1&x=2&{stated}"
    )
    ended = verification_url("http://a/?", "unsubscribe", "http://t/", "c", 60)
    assert ended == "http://a/?hub.mode=unsubscribe&hub.topic=http%3A%2F%2Ft%2F&hub.challenge=c"
    assert denial_url("http://a/", "http://t/", "not you") == (
        "http://a/?hub.mode=denied&hub.topic=http%3A%2F%2Ft%2F&hub.reason=not%20you"
    )


@pytest.mark.parametrize(
    ("status", "body", "verified"),
    [
        (200, b"c", True),
        (204, b"c", True),
        (200, b"c\n", False),
        (200, b"", False),
        (302, b"c", False),
        (404, b"c", False),
    ],
)
def test_only_the_challenge_itself_in_a_2xx_answer_verifies(status: int, body: bytes, verified: bool) -> None:
    assert is_verified(status, body, "c") is verified


def test_no_lease_is_without_end() -> None:
    assert granted_lease_s(None, longest_s=10**9) == LEASE_S_DEFAULT
    assert granted_lease_s(10**9, longest_s=3600) == 3600
    assert granted_lease_s(60, longest_s=3600) == 60


@pytest.mark.parametrize("method", METHODS)
def test_content_is_signed_only_with_a_secret(method: str) -> None:
    stated = {"hub": "https://h/", "topic": TOPIC, "content_type": "application/json", "body": b"{}"}
    fields = dict(distribution_fields(**stated, secret=b"s", method=method))  # type: ignore[arg-type]
    assert fields["Content-Type"] == "application/json"
    assert fields["Link"] == f'<https://h/>; rel="hub", <{TOPIC}>; rel="self"'
    assert fields["X-Hub-Signature"].startswith(f"{method}=")
    assert "X-Hub-Signature" not in dict(distribution_fields(**stated))  # type: ignore[arg-type]

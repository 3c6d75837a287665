"""The short way of signatures is the library's way to the byte, and takes nothing that the library would not."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from http_message_signatures import HTTPMessageSigner
from http_message_signatures.algorithms import ED25519
from hypothesis import given
from hypothesis import strategies as st

from eventing.peering.wire import signature_base, signatures
from eventing.peering.wire.signatures import (
    ANSWER_COMPONENTS,
    FROM,
    REQUEST_COMPONENTS,
    RETRY_AFTER,
    TO,
    BadSignature,
    SignedAnswer,
    SignedRequest,
    VerifiedSignature,
)
from tests.peering.played_domain import new_key

KEY = new_key()
KEYS = {KEY["kid"]: {"x": KEY["x"], "nbf": 0}}
NOW = 1_800_000_000.0
domains = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,40}[a-z0-9])?", fullmatch=True)
nonces = st.from_regex(r"[A-Za-z0-9_-]{16,64}", fullmatch=True)
addresses = st.builds(
    lambda scheme, host, port: f"{scheme}://{host}{port}/federation/v1/overlay",
    st.sampled_from(["http", "https"]),
    st.sampled_from(["b.example", "B.Example", "127.0.0.1", "[::1]", "xn--bcher-kva.example"]),
    st.sampled_from(["", ":80", ":443", ":8000"]),
)


def by_library(message: Any, body: bytes, components: tuple[str, ...], nonce: str, created: float) -> None:
    """Sign as before there was a short way."""
    from datetime import UTC, datetime

    HTTPMessageSigner(signature_algorithm=ED25519, key_resolver=signatures._OneKey(KEY)).sign(
        message,
        key_id=KEY["kid"],
        created=datetime.fromtimestamp(int(created), UTC),
        nonce=nonce,
        label="herald",
        tag="herald",
        covered_component_ids=components,
        body=body,
    )
    for name in list(message.headers):
        message.headers[name.lower()] = message.headers.pop(name)


def request_of(url: str, origin: str, destination: str) -> SignedRequest:
    return SignedRequest("POST", url, {"content-type": signatures.CONTENT_TYPE, TO: destination, FROM: origin})


@given(addresses, domains, domains, nonces, st.binary(max_size=50), st.integers(0, 2**33))
def test_a_request_has_the_bytes_that_the_library_gives_it(
    url: str, origin: str, destination: str, nonce: str, body: bytes, created: int
) -> None:
    ours = signatures.request_signed(
        url, body, origin=origin, destination=destination, key=KEY, nonce=nonce, now=created
    )
    theirs = request_of(url, origin, destination)
    by_library(theirs, body, REQUEST_COMPONENTS, nonce, created)
    assert ours.headers == theirs.headers


@given(st.integers(200, 599), st.none() | st.integers(0, 3600), st.binary(max_size=50), nonces)
def test_an_answer_has_the_bytes_that_the_library_gives_it(
    status: int, retry_after_s: int | None, body: bytes, nonce: str
) -> None:
    request = signatures.request_signed(
        "https://b.example/x", b"", origin="a.example", destination="b.example", key=KEY, nonce=nonce, now=NOW
    )
    ours = signatures.answer_signed(
        request,
        status,
        body,
        content_type="application/msgpack",
        retry_after_s=retry_after_s,
        key=KEY,
        origin="b.example",
        nonce=nonce,
        now=NOW,
    )
    more = {} if retry_after_s is None else {RETRY_AFTER: str(retry_after_s)}
    headers = {"content-type": "application/msgpack", TO: "a.example", FROM: "b.example", **more}
    theirs = SignedAnswer(status, headers, request)
    by_library(theirs, body, (*ANSWER_COMPONENTS, *more), nonce, NOW)
    assert ours.headers == theirs.headers
    assert signatures.answer_verified(ours, body, origin="b.example", jwks=KEYS, now=NOW).nonce == nonce


def outcome(request: SignedRequest) -> VerifiedSignature | str:
    try:
        return signatures.request_verified(request, destination="b.example", jwks=KEYS, now=NOW)
    except BadSignature as error:
        return error.code


def a_request() -> SignedRequest:
    return signatures.request_signed(
        "https://b.example/federation/v1/overlay",
        b"body",
        origin="a.example",
        destination="b.example",
        key=KEY,
        nonce=secrets.token_urlsafe(18),
        now=NOW,
    )


@pytest.mark.parametrize("name", ["signature-input", "signature", "content-digest", "content-type", TO, FROM])
@given(data=st.data())
def test_whatever_is_changed_both_ways_say_the_same(name: str, data: st.DataObject) -> None:
    request = a_request()
    value = request.headers[name]
    at = data.draw(st.integers(0, len(value) - 1))
    put = data.draw(st.sampled_from(["", " ", "a", '"', ";", ":", "=", ",", "0", "\t", value[at] * 2]))
    request.headers[name] = value[:at] + put + value[at + 1 :]
    short = outcome(request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signature_base, "read", lambda *_: None)
        long = outcome(request)
    assert isinstance(short, str) == isinstance(long, str), (short, long)
    if not isinstance(short, str):
        assert short == long


def test_our_own_requests_go_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "_Verifier", lambda **_: pytest.fail("the library was asked"))
    assert isinstance(outcome(a_request()), VerifiedSignature)

"""Signed requests and answers between domains: what the verifier takes, and every way to cheat it that it must not."""

from __future__ import annotations

import base64
import dataclasses
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from http_message_signatures import HTTPMessageSigner
from http_message_signatures.algorithms import ED25519
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey

from eventing.peering.wire import signatures
from eventing.peering.wire.signatures import (
    BadSignature,
    SignedAnswer,
    SignedRequest,
    answer_verified,
    request_verified,
    verified,
)

NOW = 1_800_000_000.0
URL = "https://b.example/federation/v1/exchange"
BODY = b"\x93some events"


def new_key(**more: Any) -> dict[str, Any]:
    key = OKPKey.generate_key("Ed25519")
    return {**key.as_dict(private=True), "kid": key.thumbprint(), "nbf": int(NOW) - 1000, **more}


def public(*keys: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {key["kid"]: {name: key[name] for name in key if name != "d"} for key in keys}


A, B = new_key(), new_key()


def nonce() -> str:
    return secrets.token_urlsafe(18)


def a_request(
    url: str = URL, body: bytes = BODY, key: dict[str, Any] = A, now: float = NOW, **more: Any
) -> SignedRequest:
    given = {"origin": "a.example", "destination": "b.example", "nonce": nonce(), **more}
    return signatures.request_signed(url, body, key=key, now=now, **given)


def an_answer(request: SignedRequest, body: bytes = b"yes", key: dict[str, Any] = B, **more: Any) -> SignedAnswer:
    given = {"content_type": "application/msgpack", "retry_after_s": None, "origin": "b.example", **more}
    return signatures.answer_signed(request, given.pop("status", 200), body, key=key, nonce=nonce(), now=NOW, **given)


def check(
    request: SignedRequest, body: bytes = BODY, now: float = NOW, jwks: Any = None
) -> signatures.VerifiedSignature:
    """What the endpoint does: the head first, then the body."""
    proof = request_verified(request, destination="b.example", jwks=public(A) if jwks is None else jwks, now=now)
    signatures.body_checked(request, body)
    return proof


def code_of(work: Callable[[], object]) -> str:
    with pytest.raises(BadSignature) as refused:
        work()
    return refused.value.code


# RFC 9421, appendix B: the examples that are signed with test-key-ed25519

RFC_KEY = {
    "test-key-ed25519": {"kty": "OKP", "crv": "Ed25519", "x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"},
}
B26_COMPONENTS = ("date", "@method", "@path", "@authority", "content-type", "content-length")


def b26() -> SignedRequest:
    """B.2.6: Signing a Request Using ed25519."""
    return SignedRequest(
        "POST",
        "https://example.com/foo?param=Value&Pet=dog",
        {
            "host": "example.com",
            "date": "Tue, 20 Apr 2021 02:07:55 GMT",
            "content-type": "application/json",
            "content-digest": "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
            "content-length": "18",
            "signature-input": 'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length")'
            ';created=1618884473;keyid="test-key-ed25519"',
            "signature": "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
        },
    )


def b4() -> SignedRequest:
    """B.4: HTTP Message Transformations, the request they begin with."""
    return SignedRequest(
        "GET",
        "https://example.org/demo?name1=Value1&Name2=value2",
        {
            "host": "example.org",
            "date": "Fri, 15 Jul 2022 14:24:55 GMT",
            "accept": "application/json, */*",
            "signature-input": 'transform=("@method" "@path" "@authority" "accept");created=1618884473;keyid="test-key-ed25519"',
            "signature": "transform=:ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA==:",
        },
    )


def rfc(request: SignedRequest, components: tuple[str, ...]) -> signatures.VerifiedSignature:
    return verified(request, components, jwks=RFC_KEY, now=NOW, window_s=None, tag=None)


def test_rfc_9421_b_2_6_verifies() -> None:
    assert rfc(b26(), B26_COMPONENTS) == signatures.VerifiedSignature("test-key-ed25519", 1618884473, "")


def test_rfc_9421_b_2_6_is_what_our_key_would_have_signed() -> None:
    request = b26()
    key = {"kid": "test-key-ed25519", "d": "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"}
    del request.headers["content-digest"]  # the example does not sign it
    prepared = HTTPMessageSigner(signature_algorithm=ED25519).prepare(
        request,
        key_id=key["kid"],
        created=datetime.fromtimestamp(1618884473, UTC),
        include_alg=False,
        covered_component_ids=B26_COMPONENTS,
    )
    assert (
        base64.b64encode(signatures._private(key["d"]).sign(prepared.signature_base)).decode()
        in request.headers["signature"]
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("date", "Tue, 20 Apr 2021 02:07:56 GMT"),
        ("content-type", "application/json; charset=utf-8"),
        ("content-length", "19"),
        ("signature", "sig-b26=:" + "A" * 86 + "==:"),
        ("signature-input", b26().headers["signature-input"].replace("1618884473", "1618884474")),
        ("signature-input", b26().headers["signature-input"].replace('"@path" "@authority"', '"@authority" "@path"')),
    ],
)
def test_rfc_9421_b_2_6_altered_is_refused(name: str, value: str) -> None:
    request = b26()
    request.headers[name] = value
    assert code_of(lambda: rfc(request, B26_COMPONENTS)) == "wrong"


@pytest.mark.parametrize(
    "change", [{"method": "PUT"}, {"url": "https://example.com/bar"}, {"url": "https://example.net/foo"}]
)
def test_rfc_9421_b_2_6_of_another_target_is_refused(change: dict[str, Any]) -> None:
    request = dataclasses.replace(b26(), **change)
    assert code_of(lambda: rfc(request, B26_COMPONENTS)) == "wrong"


def test_rfc_9421_b_2_6_does_not_cover_its_body() -> None:
    """The example has a digest that is not signed: whoever asks for one to be covered refuses it."""
    assert code_of(lambda: rfc(b26(), (*B26_COMPONENTS, "content-digest"))) == "wrong"
    with pytest.raises(BadSignature):
        verified(b26(), B26_COMPONENTS, jwks=RFC_KEY, now=NOW, window_s=None, tag=None, body=b'{"hello": "world"}')


def test_rfc_9421_b_4_verifies_and_its_allowed_transformations_too() -> None:
    components = ("@method", "@path", "@authority", "accept")
    assert rfc(b4(), components)
    added = b4()
    added.headers["accept-language"] = "en-US,en;q=0.5"
    assert rfc(added, components)
    removed = dataclasses.replace(b4(), url="https://example.org/demo?name1=Value1&Name2=value2&param=added")
    removed.headers["date"] = "Sat, 16 Jul 2022 00:00:00 GMT"
    assert rfc(removed, components)
    assert rfc(dataclasses.replace(b4(), url="https://EXAMPLE.org:443/demo?name1=Value1"), components)


@pytest.mark.parametrize(
    ("change", "accept"),
    [
        ({"method": "POST"}, None),
        ({"url": "https://example.com/demo?name1=Value1&Name2=value2"}, None),
        ({}, "*/*, application/json"),
        ({}, "application/json"),
    ],
)
def test_rfc_9421_b_4_its_forbidden_transformations_are_refused(change: dict[str, Any], accept: str | None) -> None:
    request = dataclasses.replace(b4(), **change)
    request.headers["accept"] = accept or request.headers["accept"]
    assert code_of(lambda: rfc(request, ("@method", "@path", "@authority", "accept"))) == "wrong"


# Requests


def test_a_signed_request_verifies_and_says_who_signed_it() -> None:
    proof = check(a_request(nonce="n" * 24))
    assert (proof.kid, proof.created, proof.nonce) == (A["kid"], int(NOW), "n" * 24)


def test_what_a_request_covers() -> None:
    for component in ("@method", "@authority", "@path", "content-digest", "content-type", "herald-to", "herald-from"):
        assert f'"{component}"' in a_request().headers["signature-input"]


def test_a_tampered_body_is_refused() -> None:
    assert code_of(lambda: check(a_request(), BODY + b"!")) == "digest"


def test_a_tampered_body_with_its_digest_made_anew_is_refused() -> None:
    request = a_request()
    request.headers["content-digest"] = a_request(body=b"other").headers["content-digest"]
    assert code_of(lambda: check(request, b"other")) == "wrong"


def test_a_dropped_digest_is_refused() -> None:
    request = a_request()
    del request.headers["content-digest"]
    assert code_of(lambda: check(request)) in ("wrong", "malformed")


def test_a_digest_that_is_not_covered_is_refused() -> None:
    """A good signature of the sender over less than the profile: what it leaves out, somebody else could change."""
    for left_out in signatures.REQUEST_COMPONENTS:
        rest = tuple(name for name in signatures.REQUEST_COMPONENTS if name != left_out)
        request = SignedRequest(
            "POST", URL, {"content-type": "application/msgpack", "herald-to": "b.example", "herald-from": "a.example"}
        )
        signatures._sign(request, BODY, rest, A, nonce(), NOW)
        if left_out == "content-digest":  # the signer adds it by itself
            assert check(request)
            request.headers["signature-input"] = request.headers["signature-input"].replace(' "content-digest"', "")
        assert code_of(partial(check, request)) == "wrong", left_out


def test_a_request_to_another_destination_is_refused() -> None:
    assert code_of(lambda: check(a_request(destination="c.example"))) == "destination"


def test_a_request_whose_destination_was_rewritten_is_refused() -> None:
    request = a_request(destination="c.example")
    request.headers["herald-to"] = "b.example"
    assert code_of(lambda: check(request)) == "wrong"


@pytest.mark.parametrize(
    "change",
    [
        {"method": "PUT"},
        {"url": "https://b.example/federation/v1/join"},
        {"url": "https://c.example/federation/v1/exchange"},
        {"url": "https://b.example:8443/federation/v1/exchange"},
    ],
)
def test_a_request_moved_to_another_method_path_or_authority_is_refused(change: dict[str, Any]) -> None:
    assert code_of(lambda: check(dataclasses.replace(a_request(), **change))) == "wrong"


def test_a_request_in_another_sender_s_name_is_refused() -> None:
    request = a_request()
    request.headers["herald-from"] = "c.example"
    assert code_of(lambda: check(request)) == "wrong"


@pytest.mark.parametrize("age_s", [signatures.WINDOW_S + 1, -signatures.WINDOW_S - 1])
def test_a_stale_or_future_request_is_refused(age_s: int) -> None:
    assert code_of(lambda: check(a_request(now=NOW - age_s))) == "clock"
    assert check(a_request(now=NOW - age_s), now=NOW - age_s)


def resigned(old: str, new: str) -> SignedRequest:
    """A request that its sender signed with other parameters than the profile's."""
    request = a_request()
    components = signatures.REQUEST_COMPONENTS
    prepared = HTTPMessageSigner(signature_algorithm=ED25519).prepare(
        request,
        key_id=A["kid"],
        created=datetime.fromtimestamp(NOW, UTC),
        nonce=nonce(),
        tag="herald",
        covered_component_ids=components,
        use_existing_digest=True,
    )
    base = prepared.signature_base.decode()
    assert old in prepared.signature_params
    signature = signatures._private(A["d"]).sign(base.replace(old, new).encode())
    request.headers["signature-input"] = "herald=" + prepared.signature_params.replace(old, new)
    request.headers["signature"] = f"herald=:{base64.b64encode(signature).decode()}:"
    return request


def test_a_request_without_created_is_refused() -> None:
    assert check(resigned(";tag", ";tag"))
    assert code_of(lambda: check(resigned(f";created={int(NOW)}", ""))) == "clock"


def test_a_request_that_says_it_expired_is_refused() -> None:
    assert check(resigned(";nonce", f";expires={int(NOW) + 1};nonce"))
    assert code_of(lambda: check(resigned(";nonce", f";expires={int(NOW)};nonce"))) == "clock"


def test_a_request_with_another_tag_or_none_is_refused() -> None:
    for new in (';tag="other"', ""):
        request = resigned(';tag="herald"', new)
        assert code_of(partial(check, request)) == "wrong"


def test_a_request_without_a_key_id_or_of_another_algorithm_is_refused() -> None:
    assert code_of(lambda: check(resigned(f';keyid="{A["kid"]}"', ""))) == "wrong"
    assert code_of(lambda: check(resigned('alg="ed25519"', 'alg="hmac-sha256"'))) == "wrong"


def test_an_unknown_key_is_refused() -> None:
    assert code_of(lambda: check(a_request(key=new_key()))) == "unknown-key"
    assert code_of(lambda: check(a_request(), jwks={})) == "unknown-key"


def test_another_key_under_a_known_name_is_refused() -> None:
    assert code_of(lambda: check(a_request(key={**new_key(), "kid": A["kid"]}))) == "wrong"


@pytest.mark.parametrize("window", [{"nbf": int(NOW) + 120}, {"exp": int(NOW)}])
def test_a_key_outside_its_window_is_refused(window: dict[str, int]) -> None:
    key = new_key(**window)
    assert code_of(lambda: check(a_request(key=key), jwks=public(key))) == "key-window"


@pytest.mark.parametrize("name", ["signature", "signature-input"])
def test_a_stripped_signature_is_refused(name: str) -> None:
    request = a_request()
    del request.headers[name]
    assert code_of(lambda: check(request)) == "unsigned"


def test_two_signatures_are_refused() -> None:
    request, other = a_request(), a_request()
    for name in ("signature", "signature-input"):
        request.headers[name] += ", " + other.headers[name].replace("herald=", "second=", 1)
    assert code_of(lambda: check(request)) == "wrong"


def test_the_same_label_twice_is_refused() -> None:
    request, other = a_request(), a_request()
    for name in ("signature", "signature-input"):
        request.headers[name] += ", " + other.headers[name]
    assert code_of(lambda: check(request)) in ("wrong", "malformed")


@pytest.mark.parametrize("given", ["", "short", "n" * 65, "with spaces in here", 'quote"' * 4])
def test_a_request_without_a_proper_nonce_is_refused(given: str) -> None:
    assert code_of(lambda: check(a_request(nonce=given))) == "malformed"


# Header fields as they come


def test_fields_are_read_in_lower_case_and_others_left_alone() -> None:
    read = signatures.fields_read([("Signature", "x"), ("X-Forwarded-For", "1"), ("X-Forwarded-For", "2")])
    assert read == {"signature": "x"}


@pytest.mark.parametrize("name", ["signature", "signature-input", "content-digest", "herald-to", "herald-from", "host"])
def test_a_field_that_is_there_twice_is_refused(name: str) -> None:
    assert code_of(lambda: signatures.fields_read([(name, "x"), (name.title(), "x")])) == "malformed"


@pytest.mark.parametrize(
    "fields",
    [
        [("signature-input", "x" * 1025)],
        [("signature", "x" * 257)],
        [("cookie", "x" * signatures.HEADERS_BYTES_MAX)],
        [(f"x-{number}", "") for number in range(signatures.HEADERS_MAX + 1)],
        [("herald-from", "ä")],
        [("signature", "with\x7fsomething")],
    ],
)
def test_oversized_headers_are_refused(fields: list[tuple[str, str]]) -> None:
    assert code_of(lambda: signatures.fields_read(fields)) == "malformed"


@given(
    st.text(st.characters(min_codepoint=9, max_codepoint=255), max_size=120),
    st.sampled_from(["signature", "signature-input"]),
)
def test_whatever_stands_in_the_fields_is_refused_and_raises_nothing_else(text: str, name: str) -> None:
    request = a_request()
    request.headers[name] = text
    with pytest.raises(BadSignature):
        check(request)


@given(st.data())
def test_no_change_of_a_character_of_the_signed_fields_goes_through(data: st.DataObject) -> None:
    request = a_request()
    before = dict(request.headers)
    name = data.draw(st.sampled_from(sorted(before)))
    place = data.draw(st.integers(0, len(before[name]) - 1))
    other = data.draw(st.characters(min_codepoint=32, max_codepoint=126).filter(lambda c: c != before[name][place]))
    request.headers[name] = before[name][:place] + other + before[name][place + 1 :]
    try:
        check(request)
    except BadSignature:
        return
    # What still verifies says the same: a label, which nothing depends on, or another way to write the same bytes.
    assert name in ("signature", "signature-input", "content-digest")
    assert request.headers["herald-from"] == "a.example"
    signatures.body_checked(request, BODY)


# Answers


def test_an_answer_verifies() -> None:
    request = a_request()
    assert answer_verified(an_answer(request), b"yes", origin="b.example", jwks=public(B), now=NOW).kid == B["kid"]


def answer_code(answer: SignedAnswer, body: bytes = b"yes", jwks: Any = None) -> str:
    keys = public(B) if jwks is None else jwks
    return code_of(lambda: answer_verified(answer, body, origin="b.example", jwks=keys, now=NOW))


def test_an_answer_of_another_request_played_back_is_refused() -> None:
    mine, other = a_request(), a_request()
    played = an_answer(other)
    assert answer_code(SignedAnswer(200, played.headers, mine)) == "wrong"


def test_an_unsigned_answer_is_refused() -> None:
    answer = an_answer(a_request())
    del answer.headers["signature"]
    assert answer_code(answer) == "unsigned"


def test_a_tampered_answer_is_refused() -> None:
    assert answer_code(an_answer(a_request()), b"no") == "wrong"
    answer = an_answer(a_request(), status=403)
    assert answer_code(dataclasses.replace(answer, status_code=200)) == "wrong"


def test_an_answer_of_another_domain_is_refused() -> None:
    assert answer_code(an_answer(a_request(), origin="c.example")) == "wrong"
    assert answer_code(an_answer(a_request(), key=A)) == "unknown-key"


def test_our_own_request_is_not_an_answer_to_it() -> None:
    request = a_request()
    assert answer_code(SignedAnswer(200, dict(request.headers), request)) == "wrong"


def test_a_retry_after_that_somebody_else_wrote_is_refused() -> None:
    good = an_answer(a_request(), status=503, retry_after_s=5)
    assert answer_verified(good, b"yes", origin="b.example", jwks=public(B), now=NOW)
    good.headers["retry-after"] = "3600"
    assert answer_code(good) == "wrong"
    added = an_answer(a_request(), status=503)
    added.headers["retry-after"] = "3600"
    assert answer_code(added) == "wrong"

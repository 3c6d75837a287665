"""Webhooks are verified as their senders sign them: by published examples, and by bodies, times and secrets that are wrong."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from eventing.core.errors import InvalidRequest, SignatureInvalid
from eventing.intakes.rules.formats import ALERTMANAGER, GITHUB, GRAFANA, PLAIN, STANDARD, STRIPE
from eventing.intakes.rules.signatures import TOLERANCE_S, check_secret, verify

NOW = 1_614_265_330.0
SECRET = "a-long-enough-secret"
OTHER = "another-secret-of-this-intake"
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD_BODY = b'{"test": 2432232314}'
STANDARD_HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def hex_of(secret: str, text: bytes) -> str:
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


def refused(
    kind: str, headers: dict[str, str], body: bytes, *, secrets: tuple[str, ...] = (SECRET,), header: str = ""
) -> str:
    with pytest.raises(SignatureInvalid) as found:
        verify(kind, secrets, headers, body, now=NOW, timestamp_header=header)
    assert not any(secret in found.value.detail for secret in secrets)
    return found.value.detail


def test_the_example_of_githubs_documentation_is_valid_and_another_body_is_not() -> None:
    secret = "It's a Secret to Everybody"
    headers = {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    verify(GITHUB, [secret], headers, b"Hello, World!", now=NOW)
    refused(GITHUB, headers, b"Hello, World?", secrets=(secret,))


@pytest.mark.parametrize(
    "header", ["", "sha1=0000", "sha256=", "sha256=zz", "sha256=" + "0" * 64, "sha256=" + "\xe9" * 64]
)
def test_github_without_a_valid_signature_is_refused(header: str) -> None:
    refused(GITHUB, {"x-hub-signature-256": header}, b"{}")


def test_the_example_of_standard_webhooks_is_valid_and_another_body_id_or_time_is_not() -> None:
    verify(STANDARD, [STANDARD_SECRET], STANDARD_HEADERS, STANDARD_BODY, now=NOW)
    refused(STANDARD, STANDARD_HEADERS, STANDARD_BODY + b" ", secrets=(STANDARD_SECRET,))
    refused(STANDARD, {**STANDARD_HEADERS, "webhook-id": "msg_other"}, STANDARD_BODY, secrets=(STANDARD_SECRET,))
    later = {**STANDARD_HEADERS, "webhook-timestamp": "1614265331"}
    refused(STANDARD, later, STANDARD_BODY, secrets=(STANDARD_SECRET,))


def test_one_of_several_standard_signatures_is_enough_and_unknown_versions_are_passed_over() -> None:
    several = f"v9,abc v1,!!! {STANDARD_HEADERS['webhook-signature']}"
    verify(STANDARD, [STANDARD_SECRET], {**STANDARD_HEADERS, "webhook-signature": several}, STANDARD_BODY, now=NOW)


def test_an_asymmetric_standard_signature_is_valid_for_its_key_only() -> None:
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    public = "whpk_" + base64.b64encode(key.public_key().public_bytes_raw()).decode()
    check_secret(STANDARD, public)
    signed = b"msg_1.1614265330." + STANDARD_BODY
    headers = {"webhook-id": "msg_1", "webhook-timestamp": "1614265330"}
    headers["webhook-signature"] = "v1a," + base64.b64encode(key.sign(signed)).decode()
    verify(STANDARD, [public], headers, STANDARD_BODY, now=NOW)
    headers["webhook-signature"] = "v1a," + base64.b64encode(other.sign(signed)).decode()
    refused(STANDARD, headers, STANDARD_BODY, secrets=(public,))
    # A public key is known to everybody: nobody may use it as the secret of an HMAC.
    forged = hmac.new(key.public_key().public_bytes_raw(), signed, hashlib.sha256).digest()
    headers["webhook-signature"] = "v1," + base64.b64encode(forged).decode()
    refused(STANDARD, headers, STANDARD_BODY, secrets=(public,))


@pytest.mark.parametrize("age_s", [0, TOLERANCE_S, -TOLERANCE_S])
def test_a_time_within_the_tolerance_is_valid(age_s: int) -> None:
    moment = f"{NOW - age_s:.0f}"
    signature = hex_of(SECRET, moment.encode() + b".{}")
    verify(STRIPE, [SECRET], {"stripe-signature": f"t={moment},v1={signature}"}, b"{}", now=NOW)


@pytest.mark.parametrize("age_s", [TOLERANCE_S + 1, -TOLERANCE_S - 1, 86_400])
@pytest.mark.parametrize("kind", [STRIPE, STANDARD, GRAFANA])
def test_a_replayed_signature_is_refused_after_the_tolerance(kind: str, age_s: int) -> None:
    moment, body = f"{NOW - age_s:.0f}", b"{}"
    key = base64.b64decode(STANDARD_SECRET.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.new(key, f"m.{moment}.".encode() + body, hashlib.sha256).digest()).decode()
    headers = {
        "stripe-signature": f"t={moment},v1={hex_of(SECRET, f'{moment}.'.encode() + body)}",
        "webhook-id": "m",
        "webhook-timestamp": moment,
        "webhook-signature": f"v1,{signature}",
        "x-grafana-alerting-signature": hex_of(SECRET, f"{moment}:".encode() + body),
        "x-moment": moment,
    }
    secret = STANDARD_SECRET if kind == STANDARD else SECRET
    assert "clock" in refused(kind, headers, body, secrets=(secret,), header="x-moment")


@pytest.mark.parametrize(
    "header",
    ["", "v1=00", "t=,v1=00", "t=soon,v1=00", "t=1614265330", "t=1614265330,t=1614265330,v1=00", "t=1614265330,v0=00"],
)
def test_a_malformed_header_of_stripe_is_refused(header: str) -> None:
    refused(STRIPE, {"stripe-signature": header}, b"{}")


def test_stripe_may_sign_with_two_secrets_while_it_rotates_them() -> None:
    good, bad = hex_of(SECRET, b"1614265330.{}"), hex_of(OTHER, b"1614265330.{}")
    verify(STRIPE, [SECRET], {"stripe-signature": f"t=1614265330,v1={bad},v1={good},v0=x"}, b"{}", now=NOW)


def test_grafana_signs_the_body_or_time_and_body_as_configured() -> None:
    bare = {"x-grafana-alerting-signature": hex_of(SECRET, b"{}")}
    verify(GRAFANA, [SECRET], bare, b"{}", now=NOW)
    refused(GRAFANA, bare, b"{}", header="x-moment")
    timed = {"x-grafana-alerting-signature": hex_of(SECRET, b"1614265330:{}"), "x-moment": "1614265330"}
    verify(GRAFANA, [SECRET], timed, b"{}", now=NOW, timestamp_header="x-moment")
    refused(GRAFANA, timed, b"{}")


@pytest.mark.parametrize("kind", [ALERTMANAGER, PLAIN])
def test_a_sender_that_signs_nothing_shows_the_secret_as_password_or_bearer(kind: str) -> None:
    basic = base64.b64encode(f"anybody:{SECRET}".encode()).decode()
    verify(kind, [SECRET], {"authorization": f"Basic {basic}"}, b"{}", now=NOW)
    verify(kind, [SECRET], {"authorization": f"bearer {SECRET}"}, b"{}", now=NOW)
    for wrong in ("", "Bearer", f"Bearer {SECRET}x", f"Digest {SECRET}", "Basic !!!", "Basic YTpi"):
        refused(kind, {"authorization": wrong}, b"{}")


def test_during_a_rotation_either_secret_is_valid() -> None:
    for secret in (SECRET, OTHER):
        verify(GITHUB, [OTHER, SECRET], {"x-hub-signature-256": f"sha256={hex_of(secret, b'x')}"}, b"x", now=NOW)


def test_without_a_secret_only_formats_that_need_none_are_accepted() -> None:
    verify(PLAIN, [], {}, b"x", now=NOW)
    verify(GRAFANA, [], {}, b"x", now=NOW)
    refused(GITHUB, {}, b"x", secrets=())


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        (GITHUB, "short"),
        (GITHUB, "x" * 513),
        (GITHUB, "not printable\n and long"),
        (STANDARD, "whsec_c2hvcnQgYnV0IG9r"),
        (STANDARD, "whsec_not base64 at all!"),
        (STANDARD, "whpk_" + "A" * 43 + "="),
    ],
)
def test_a_secret_that_the_format_cannot_have_is_refused_without_repeating_it(kind: str, secret: str) -> None:
    with pytest.raises(InvalidRequest) as found:
        check_secret(kind, secret)
    assert secret not in found.value.detail

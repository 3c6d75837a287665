"""A token is accepted exactly if this domain signed it for itself, it runs, and every part of it is in order."""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from rest_framework.test import APIClient

from eventing.access.models import DomainKey
from eventing.access.rules import tokens
from eventing.access.selectors.issued_tokens import tokens_issued
from eventing.access.selectors.keys import public_keys, signing_key, verification_keys
from eventing.access.services.keys import key_retire
from eventing.access.services.tokens import ensure_domain_key, token_create
from eventing.core.errors import InvalidRequest, Unauthenticated
from eventing.core.principals import Principal, Scope

pytestmark = pytest.mark.usefixtures("stores")

NOW = 1_800_000_000.0
_KEY = OKPKey.generate_key("Ed25519")
PRIVATE = {**_KEY.as_dict(private=True), "kid": _KEY.thumbprint()}
KEYS = {_KEY.thumbprint(): _KEY.as_dict(private=False)}
CLAIMS = {
    "iss": "example.org",
    "aud": "example.org",
    "sub": "ann",
    "iat": int(NOW) - 10,
    "exp": int(NOW) + 60,
    "jti": "1",
}


def verify(token: str, keys: Mapping[str, Any] = KEYS, now: float = NOW) -> Any:
    return tokens.verify(token, keys, issuer="example.org", audience="example.org", now=now)


def signed(header: Mapping[str, Any], claims: Any, key: OKPKey = _KEY) -> str:
    """A compact JWS of anything."""

    def part(value: Any) -> str:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    signing_input = f"{part(header)}.{part(claims)}"
    return f"{signing_input}.{part(key.private_key.sign(signing_input.encode()))}"  # type: ignore[union-attr]


HEADER = {"alg": "Ed25519", "typ": "JWT", "kid": _KEY.thumbprint()}


def test_a_signed_token_speaks_for_its_subject() -> None:
    principal = verify(tokens.sign({**CLAIMS, "ops": ["publish"], "admin": True, "team": "a"}, PRIVATE))
    assert (principal.issuer, principal.subject, principal.admin) == ("example.org", "ann", True)
    assert principal.expires_at == NOW + 60
    assert principal.scopes == (Scope(("*",), frozenset({"publish"})),)
    assert principal.claims["team"] == "a"


def test_the_older_name_of_the_algorithm_is_accepted() -> None:
    assert verify(signed({**HEADER, "alg": "EdDSA"}, CLAIMS)).subject == "ann"


def test_a_token_without_narrowing_has_no_scopes() -> None:
    principal = verify(tokens.sign(CLAIMS, PRIVATE))
    assert principal.scopes is None
    assert principal.admin is False


def test_an_audience_may_be_a_list() -> None:
    assert verify(signed(HEADER, {**CLAIMS, "aud": ["other", "example.org"]})).subject == "ann"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"iss": "evil.org"}, "issued"),
        ({"iss": None}, "issued"),
        ({"iss": ["example.org"]}, "issued"),
        ({"aud": "evil.org"}, "not for"),
        ({"aud": None}, "not for"),
        ({"aud": [["example.org"]]}, "not for"),
        ({"aud": ["x"] * 1000 + ["example.org"]}, "not for"),
        ({"sub": ""}, "sub"),
        ({"sub": None}, "sub"),
        ({"sub": 5}, "sub"),
        ({"sub": "x" * 256}, "sub"),
        ({"exp": None}, "exp"),
        ({"exp": True}, "exp"),
        ({"exp": "2030"}, "exp"),
        ({"exp": int(NOW)}, "expired"),
        ({"exp": -1}, "expired"),
        ({"nbf": NOW + 31}, "future"),
        ({"iat": NOW + 31}, "future"),
        ({"iat": [1]}, "iat"),
        ({"jti": 1}, "jti"),
        ({"admin": 1}, "admin"),
        ({"admin": "true"}, "admin"),
        ({"ops": "publish"}, "ops"),
        ({"ops": [1]}, "ops"),
        ({"ops": ["publish"] * 33}, "ops"),
        ({"scopes": {"rps": ["*"], "ops": ["publish"]}}, "scopes"),
        ({"scopes": ["publish"]}, "scope"),
        ({"scopes": [{"rps": ["*"]}]}, "scope"),
        ({"scopes": [{"rps": ["*"], "ops": ["publish"], "until": 1}]}, "scope"),
        ({"scopes": [{"rps": [""], "ops": ["publish"]}]}, "scope"),
        ({"scopes": [{"rps": ["x"] * 33, "ops": ["publish"]}]}, "scope"),
        ({"scopes": [{"rps": ["*"], "ops": [1]}]}, "scopes"),
        ({"scopes": [{"rps": ["*"], "ops": ["publish"]}] * 17}, "scopes"),
        ({"sub": "https://id.example#ann"}, "#"),
        ({f"c{n}": n for n in range(64)}, "claims"),
    ],
)
def test_a_claim_that_is_not_in_order_is_refused_by_name(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        verify(signed(HEADER, {**CLAIMS, **changes}))
    assert says in refused.value.detail


@pytest.mark.parametrize("skewed", [{"nbf": NOW + 29}, {"iat": NOW + 29}])
def test_clocks_may_differ_by_half_a_minute(skewed: dict[str, Any]) -> None:
    assert verify(signed(HEADER, {**CLAIMS, **skewed})).subject == "ann"


@pytest.mark.parametrize(
    "header",
    [
        {**HEADER, "alg": "none"},
        {**HEADER, "alg": "HS256"},
        {**HEADER, "alg": ["Ed25519"]},
        {**HEADER, "typ": "at+jwt"},
        {"alg": "Ed25519", "kid": HEADER["kid"]},
        {"alg": "Ed25519", "typ": "JWT"},
        {**HEADER, "kid": "unknown"},
        {**HEADER, "kid": ["x"]},
        {**HEADER, "crit": ["b64"], "b64": False},
        {**HEADER, "jwk": KEYS[HEADER["kid"]]},
        ["Ed25519"],
    ],
)
def test_any_other_header_is_refused(header: Any) -> None:
    with pytest.raises(Unauthenticated):
        verify(signed(header, CLAIMS))


@pytest.mark.parametrize("claims", [b"[]", b"{", b"\xff", b'{"sub":"a","sub":"b"}', b"[" * 3000, b'{"exp":1e999}'])
def test_claims_that_are_not_strict_json_objects_are_refused(claims: bytes) -> None:
    with pytest.raises(Unauthenticated):
        verify(signed(HEADER, claims))


def test_another_key_under_the_same_kid_is_refused() -> None:
    with pytest.raises(Unauthenticated, match="signature"):
        verify(signed(HEADER, CLAIMS, OKPKey.generate_key("Ed25519")))


def test_a_changed_payload_is_refused() -> None:
    head, _, signature = tokens.sign(CLAIMS, PRIVATE).split(".")
    forged = base64.urlsafe_b64encode(json.dumps({**CLAIMS, "admin": True}).encode()).decode().rstrip("=")
    with pytest.raises(Unauthenticated, match="signature"):
        verify(f"{head}.{forged}.{signature}")


def test_a_token_that_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(Unauthenticated, match="longer"):
        verify(tokens.sign({**CLAIMS, "x": "y" * tokens.TOKEN_CHARS_MAX}, PRIVATE))


@given(st.text(max_size=300) | st.from_regex(r"[\w-]{0,40}\.[\w-]{0,40}\.[\w-]{0,90}"))
def test_any_text_is_refused_as_a_token_with_a_reason(text: str) -> None:
    with pytest.raises(Unauthenticated):
        verify(text)


def test_scopes_and_operations_of_one_token_grant_what_both_do() -> None:
    scopes = [{"rps": ["/example.org/a/*"], "ops": ["publish", "subscribe"]}, {"rps": ["*"], "ops": ["describe"]}]
    principal = verify(tokens.sign({**CLAIMS, "scopes": scopes, "ops": ["publish", "history"]}, PRIVATE))
    assert principal.permits("publish", "id", "/example.org/a/b/")
    assert not principal.permits("publish", "id", "/example.org/b/")
    assert not principal.permits("publish", "id", "")
    for operation in ("subscribe", "describe", "history"):
        assert not principal.permits(operation, "id", "/example.org/a/b/")
    assert verify(tokens.sign({**CLAIMS, "scopes": []}, PRIVATE)).narrowed, "to nothing"


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("*", "*"),
        ("xiqk5k5qzcxbyjkpq2mkvxv3ti", "xiqk5k5qzcxbyjkpq2mkvxv3ti"),
        ("domain.admin", "domain.admin"),
        ("weather", "/localhost/weather/"),
        ("weather/*", "/localhost/weather/*"),
        ("/other.example/a/b/", "/other.example/a/b/"),
        ("/other.example/*", "/other.example/*"),
    ],
)
def test_patterns_of_a_scope_are_kept_as_names_are(pattern: str, kept: str) -> None:
    issued = token_create(subject="ann", scopes=[{"rps": [pattern], "ops": ["publish"]}])
    assert issued.scopes == (Scope((kept,), frozenset({"publish"})),)
    read = tokens.read(issued.token)
    assert read.claims["scopes"] == [{"rps": [kept], "ops": ["publish"]}]


def test_a_token_for_another_domain_is_not_accepted_here() -> None:
    issued = token_create(subject="ann", audience="other.example")
    with pytest.raises(Unauthenticated, match="not for"):
        tokens.verify(issued.token, verification_keys(), issuer="localhost", audience="localhost", now=time.time())


def test_tokens_of_the_domain_verify_with_its_published_keys(configure: Callable[..., None]) -> None:
    configure(domain="example.org")
    issued = token_create(subject="ann", lease_s=60, operations=["publish", "publish", "describe"])
    principal = tokens.verify(
        issued.token,
        {key["kid"]: key for key in public_keys()},
        issuer="example.org",
        audience="example.org",
        now=time.time(),
    )
    assert principal.scopes == (Scope(("*",), frozenset({"publish", "describe"})),)
    assert issued.granted_s == 60
    assert principal.expires_at == issued.expires_at.timestamp()


def test_a_token_outlives_no_longest_lease(configure: Callable[..., None]) -> None:
    configure(lease_s_max=3600, lease_s_default=60)
    assert token_create(subject="a", lease_s=10**15).granted_s == 3600
    assert token_create(subject="a").granted_s == 60


@pytest.mark.parametrize(
    "asked",
    [{"subject": ""}, {"subject": "x" * 256}, {"subject": "a\0"}, {"subject": "https://id.example#a"}, {"subject": "a", "audience": ""},
     {"subject": "a", "scopes": [{}]}, {"subject": "a", "scopes": [{"rps": ["*"], "ops": ["fly"]}]},
     {"subject": "a", "scopes": [{"rps": ["a*"], "ops": ["publish"]}]}, {"subject": "a", "scopes": [{"rps": ["*"], "ops": ["publish"]}] * 17},
     {"subject": "a", "scopes": [{"rps": [f"/localhost/{n:060}/*" for n in range(32)], "ops": ["publish"]}] * 8}, {"subject": "a", "lease_s": 0},
     {"subject": "a", "operations": ["fly"]}],
)  # fmt: skip
def test_a_token_that_could_not_be_used_is_not_signed(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        token_create(**asked)


def test_the_first_key_is_made_once() -> None:
    assert signing_key() is None
    kid = ensure_domain_key()
    assert ensure_domain_key() == kid
    assert DomainKey.objects.count() == 1
    assert list(verification_keys()) == [kid]
    assert "d" not in public_keys()[0]


def test_a_key_neither_signs_nor_verifies_outside_its_window() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    kid = ensure_domain_key(now=now)
    DomainKey.objects.update(not_after=now + timedelta(days=1))
    assert list(verification_keys(now)) == [kid]
    token = token_create(subject="ann", lease_s=86_400, now=now).token

    def verified(when: datetime) -> Any:
        return tokens.verify(
            token, verification_keys(now), issuer="localhost", audience="localhost", now=when.timestamp()
        )

    assert verified(now).subject == "ann"
    for outside in (now - timedelta(seconds=tokens.SKEW_S + 1), now + timedelta(days=1)):
        with pytest.raises(Unauthenticated):
            verified(outside)
    assert verification_keys(now + timedelta(days=1)) == {}
    assert ensure_domain_key(now=now + timedelta(days=1)) != kid


def test_the_command_prints_only_the_token() -> None:
    out = io.StringIO()
    call_command("token_create", "--admin", "--lease-s", "60", stdout=out)
    principal = tokens.verify(
        out.getvalue().strip(), verification_keys(), issuer="localhost", audience="localhost", now=time.time()
    )
    assert (principal.subject, principal.admin) == ("admin", True)
    out = io.StringIO()
    call_command("token_create", "--subject", "ann", "--ops", "publish", "--json", stdout=out)
    assert json.loads(out.getvalue())["subject"] == "ann"


def test_the_command_narrows_to_scopes() -> None:
    out = io.StringIO()
    call_command("token_create", "--scope", "weather/*,roof=publish,describe", "--audience", "localhost", stdout=out)
    assert tokens.read(out.getvalue().strip()).claims["scopes"] == [
        {"rps": ["/localhost/weather/*", "/localhost/roof/"], "ops": ["describe", "publish"]}
    ]
    for wrong in ("weather", "=publish", "weather=", "weather=fly"):
        with pytest.raises(CommandError):
            call_command("token_create", "--scope", wrong)


def test_the_command_says_what_is_wrong() -> None:
    with pytest.raises(CommandError, match="ops is a list"):
        call_command("token_create", "--ops", "fly")


def test_what_was_issued_is_listed_with_what_became_of_it(api: APIClient) -> None:
    root = APIClient()
    root.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(subject='root', admin=True).token}")
    now = timezone.now()
    scopes = [{"rps": ["weather/*", "roof"], "ops": ["publish"]}]
    narrow = token_create(subject="issued-roof", scopes=scopes, lease_s=600)
    token_create(subject="issued-short", lease_s=60, now=now - timedelta(minutes=5))
    token_create(subject="issued-old", now=now - timedelta(days=31))
    for subject in ("issued-eve", "issued-mallory"):
        made = token_create(subject=subject, now=now - timedelta(seconds=5))
        revoked = (
            {"kind": "token", "value": made.id} if subject == "issued-eve" else {"kind": "subject", "value": subject}
        )
        assert root.post("/api/v1/revocations", revoked, format="json").status_code == 201
    later = token_create(subject="issued-mallory", now=now + timedelta(hours=1))

    def listed(**query: Any) -> dict[str, dict[str, Any]]:
        items: dict[str, dict[str, Any]] = {}
        cursor = None
        while True:
            page = root.get("/api/v1/tokens", {**query, **({"cursor": cursor} if cursor else {})}).json()
            items |= {one["id"]: one for one in page["items"] if one["subject"].startswith("issued-")}
            if (cursor := page["next"]) is None:
                return items

    states = [(one["subject"], one["state"]) for one in listed(limit=2).values()]
    assert sorted(states) == [
        ("issued-eve", "revoked"),
        ("issued-mallory", "revoked"),
        ("issued-mallory", "valid"),
        ("issued-roof", "valid"),
        ("issued-short", "expired"),
    ]
    assert set(listed(state="valid", limit=1)) == {narrow.id, later.id}
    one = listed()[narrow.id]
    assert (one["rps"], one["scopes"]) == (["/localhost/weather/*", "/localhost/roof/"], 1)
    assert (one["ops"], one["admin"]) == (["publish"], False)
    assert narrow.token not in json.dumps(listed())
    assert root.get("/api/v1/tokens", {"state": "lost"}).status_code == 400
    long = token_create(subject="\U0001f5dd" * 255, lease_s=600)  # more than the details of an entry hold
    (one,) = [one for one in root.get("/api/v1/tokens").json()["items"] if one["id"] == long.id]
    assert (one["subject"], one["state"]) == ("", "valid")
    assert api.get("/api/v1/tokens").status_code == 403


def test_tokens_of_a_retired_key_are_listed_as_revoked() -> None:
    made, root = token_create(subject="issued-retired"), Principal("localhost", "root", True, 2.0**40, {})
    key_retire(principal=root, kid=verified_key(made.token))
    (one,) = [one for one in tokens_issued().items if one.id == made.id]
    assert one.state == "revoked"


def verified_key(token: str) -> str:
    """The id of the key that signed a token."""
    head = token.split(".")[0]
    return str(json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["kid"])

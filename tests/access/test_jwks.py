"""Key sets of foreign issuers: what is poisoned is refused whole, what cannot be used is ignored, nothing is confused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, OKPKey, RSAKey

from eventing.access.rules import jwks, tokens
from eventing.access.rules.jwks import BadKeys
from eventing.core.algorithms import parse_algorithms
from eventing.core.errors import ConfigError, Unauthenticated
from tests.access.issuer_server import SigningKey, base64url
from tests.core.ed25519_vectors import NOT_CANONICAL, NOT_ON_THE_CURVE, SMALL_ORDER

ALL = parse_algorithms("Ed25519,ES256,RS256")
DEFAULT = parse_algorithms("Ed25519")
KEY = SigningKey("k1")
EC = ECKey.generate_key("P-256")
RSA = RSAKey.generate_key(2048)
CLAIMS = {"iss": "https://id.example", "aud": "localhost", "sub": "x", "exp": time.time() + 86_400}


def document(*keys: Any, **more: Any) -> bytes:
    return json.dumps({"keys": list(keys), **more}).encode()


def parse(*keys: Any, algorithms: tuple[str, ...] = DEFAULT) -> dict[str, jwks.ForeignKey]:
    return jwks.parse(document(*keys), algorithms)


def verified(token: str, key: jwks.ForeignKey, algorithms: tuple[str, ...] = ALL) -> None:
    read = tokens.read(token)
    jwks.check_header(read)
    jwks.verify(read, token, key, algorithms)


# Poisoned sets


def test_poisoned_two_keys_of_one_id_refuse_the_set() -> None:
    with pytest.raises(BadKeys, match="two keys"):
        parse(KEY.public, {**SigningKey("k1").public})
    with pytest.raises(BadKeys, match="two keys"):  # also when one of them could not be used
        parse(KEY.public, {**RSA.as_dict(private=False), "kid": "k1"})


@pytest.mark.parametrize(
    "key",
    [
        {**KEY.jwk.as_dict(private=True), "kid": "k1"},
        {**EC.as_dict(private=True), "kid": "k1"},
        {**RSA.as_dict(private=True), "kid": "k1"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k1"},
    ],
)
def test_poisoned_a_published_private_key_or_secret_refuses_the_set(key: dict[str, Any]) -> None:
    with pytest.raises(BadKeys, match="private key"):
        parse(SigningKey("good").public, key, algorithms=ALL)


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64, 4096])
def test_poisoned_an_x_of_wrong_length_is_no_key(length: int) -> None:
    assert parse({**KEY.public, "x": base64url(b"x" * length)}) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"keys": {}}',
        b'{"keys": [1]}',
        b'{"keys": [], "keys": []}',
        b'{"keys": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        document(*[{"kty": "OKP"}] * (jwks.KEYS_MAX + 1)),
        document(pad="x" * jwks.BYTES_MAX),
    ],
    ids=["empty", "html", "list", "cut", "bytes", "object", "numbers", "twice", "deep", "many", "huge"],
)
def test_poisoned_what_is_no_key_set_is_refused_whole(content: bytes) -> None:
    with pytest.raises(BadKeys):
        jwks.parse(content, DEFAULT)


@pytest.mark.parametrize(
    "changes",
    [
        {"use": "enc"},
        {"use": ["sig"]},
        {"alg": "RS256"},
        {"alg": "HS256"},
        {"alg": ["EdDSA"]},
        {"key_ops": ["sign"]},
        {"crv": "X25519"},
        {"crv": "Ed448"},
        {"kty": "EC"},
        {"x": None},
        {"x": 5},
        {"x": "=" * 43},
        {"kid": None},
        {"kid": ""},
        {"kid": "k" * 256},
        {"kid": ["k1"]},
    ],
)
def test_a_key_that_is_not_meant_for_this_is_ignored(changes: dict[str, Any]) -> None:
    assert parse({**KEY.public, **changes}, algorithms=ALL) == {}


def test_other_kinds_of_keys_are_ignored_unless_they_are_asked_for() -> None:
    ec, rsa = {**EC.as_dict(private=False), "kid": "ec"}, {**RSA.as_dict(private=False), "kid": "rsa"}
    assert set(parse(KEY.public, ec, rsa)) == {"k1"}
    assert set(parse(KEY.public, ec, rsa, algorithms=ALL)) == {"k1", "ec", "rsa"}


@pytest.mark.parametrize(
    "changes",
    [
        {"n": RSAKey.generate_key(1024).as_dict(private=False)["n"]},
        {"n": base64url(b"\xff" * 2048)},
        {"e": base64url(b"\x01")},
        {"e": base64url(b"\x02")},
        {"e": base64url(b"\xff" * 8)},
    ],
    ids=["short", "huge modulus", "one", "even", "huge exponent"],
)
def test_an_rsa_key_that_is_weak_or_slow_on_purpose_is_ignored(changes: dict[str, Any]) -> None:
    assert parse({**RSA.as_dict(private=False), "kid": "rsa", **changes}, algorithms=ALL) == {}


@pytest.mark.parametrize("text", [*SMALL_ORDER, *NOT_CANONICAL, *NOT_ON_THE_CURVE])
def test_a_set_with_an_ed25519_key_that_others_can_sign_for_is_refused(text: str) -> None:
    weak = {**KEY.public, "kid": "k2", "x": base64url(bytes.fromhex(text))}
    for keys in ([weak], [KEY.public, weak]):
        with pytest.raises(BadKeys, match="'k2' of the key set is not usable"):
            parse(*keys)


def test_an_ed25519_key_with_padding_is_the_same_key() -> None:
    assert parse({**KEY.public, "x": KEY.public["x"] + "="}) == parse(KEY.public)


def test_a_point_that_is_not_on_the_curve_is_ignored() -> None:
    assert parse({**EC.as_dict(private=False), "kid": "ec", "y": base64url(b"\x01" * 32)}, algorithms=ALL) == {}


# Signatures


@pytest.mark.parametrize(
    ("key", "algorithm"), [(KEY.jwk, "EdDSA"), (KEY.jwk, "Ed25519"), (EC, "ES256"), (RSA, "RS256")]
)
def test_each_algorithm_verifies_with_its_own_kind_of_key_only(key: Any, algorithm: str) -> None:
    keys: dict[str, Any] = {"OKP": KEY.jwk, "EC": EC, "RSA": RSA}
    published = {
        kind: parse({**other.as_dict(private=False), "kid": "k1"}, algorithms=ALL)["k1"] for kind, other in keys.items()
    }
    header = {"alg": algorithm, "kid": "k1"}
    token = jws.serialize_compact(header, json.dumps(CLAIMS).encode(), key, algorithms=[algorithm])
    for kind, other in published.items():
        if kind == key.key_type:
            verified(token, other)
        else:
            with pytest.raises(Unauthenticated, match="alg"):
                verified(token, other)
    with pytest.raises(Unauthenticated, match="signature"):
        verified(token[:-8] + ("AAAAAAAA" if token[-8:] != "AAAAAAAA" else "BBBBBBBB"), published[key.key_type])


def test_an_algorithm_that_the_domain_does_not_accept_is_refused_whatever_the_key() -> None:
    key = parse({**RSA.as_dict(private=False), "kid": "k1"}, algorithms=ALL)["k1"]
    token = jws.serialize_compact({"alg": "RS256", "kid": "k1"}, b"{}", RSA, algorithms=["RS256"])
    with pytest.raises(Unauthenticated, match="alg"):
        verified(token, key, DEFAULT)


@pytest.mark.parametrize("public", [KEY.jwk, EC, RSA], ids=["Ed25519", "P-256", "RSA"])
def test_hs256_with_the_public_key_as_secret_is_refused(public: Any) -> None:
    """Key confusion: a verifier that lets the token choose would take the public key for a shared secret."""
    published = parse({**public.as_dict(private=False), "kid": "k1"}, algorithms=ALL)["k1"]
    secrets = [public.as_pem(private=False), public.as_der(private=False)]
    if public is KEY.jwk:
        secrets.append(base64.urlsafe_b64decode(KEY.public["x"] + "="))
    for secret in secrets:
        for algorithm in ("HS256", "EdDSA", "ES256", "RS256"):
            head = f"{base64url(json.dumps({'alg': algorithm, 'kid': 'k1'}).encode())}.{base64url(json.dumps(CLAIMS).encode())}"
            forged = f"{head}.{base64url(hmac.new(secret, head.encode(), hashlib.sha256).digest())}"
            with pytest.raises(Unauthenticated):
                verified(forged, published)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, ["EdDSA"], "HS256", "PS256", "Ed448", "eddsa"])
def test_any_other_algorithm_is_refused(algorithm: Any) -> None:
    key = parse(KEY.public)["k1"]
    token = KEY.sign(CLAIMS, alg=algorithm)
    for candidate in (token, token.rpartition(".")[0] + "."):
        with pytest.raises(Unauthenticated):
            verified(candidate, key)


@pytest.mark.parametrize(
    "header",
    [
        {"jwk": SigningKey("k1").public},
        {"jku": "https://evil.example/jwks"},
        {"x5u": "https://evil.example/cert"},
        {"x5c": ["MIIB"]},
        {"crit": ["b64"], "b64": False},
        {"zip": "DEF"},
        {"kid": None},
        {"kid": ["k1"]},
        {"kid": "k" * 300},
        {"typ": "secevent+jwt"},
        {"typ": 1},
    ],
    ids=lambda header: next(iter(header)),
)
def test_a_header_that_brings_its_own_key_or_changes_the_rules_is_refused(header: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated):
        jwks.check_header(tokens.read(KEY.sign(CLAIMS, **header)))


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", None])
def test_the_types_that_providers_use_are_taken(kind: str | None) -> None:
    jwks.check_header(tokens.read(KEY.sign(CLAIMS, typ=kind)))


# Claims


def test_claims_of_a_foreign_token_grant_nothing_and_may_narrow() -> None:
    def principal(**claims: Any) -> Any:
        read = tokens.read(KEY.sign({**CLAIMS, **claims}))
        return jwks.principal_of(read, audience=["localhost"], now=time.time())

    admin = principal(admin=True, ops=["administer", "publish"])
    assert (admin.admin, admin.local) == (False, False)
    assert admin.permits("publish", "rp")
    assert not admin.permits("subscribe", "rp")
    scoped = principal(scopes=[{"rps": ["/localhost/a/*"], "ops": ["publish"]}])
    assert scoped.permits("publish", "x", "/localhost/a/b/")
    assert not scoped.permits("publish", "x", "/localhost/b/")
    others: tuple[dict[str, Any], ...] = (
        {"scopes": ["openid", "email"]},
        {"scopes": []},
        {"ops": "x"},
        {"scopes": "openid"},
    )
    for not_ours in others:
        assert principal(**not_ours).scopes is None
    with pytest.raises(Unauthenticated, match="scope"):
        principal(scopes=[{"rps": ["*"], "ops": ["publish"], "until": "tomorrow"}])


def test_a_discovery_document_of_another_issuer_is_refused() -> None:
    good = {"issuer": "https://a.example", "jwks_uri": "https://a.example/keys"}
    assert jwks.parse_discovery(json.dumps(good).encode(), "https://a.example") == "https://a.example/keys"
    wrong: tuple[Any, ...] = (
        {**good, "issuer": "https://a.example/"},
        {**good, "jwks_uri": None},
        {**good, "issuer": None},
        [],
    )
    for bad in wrong:
        with pytest.raises(BadKeys):
            jwks.parse_discovery(json.dumps(bad).encode(), "https://a.example")


@pytest.mark.parametrize("text", ["", " , ", "HS256", "Ed25519,none", "EdDSA"])
def test_a_setting_of_algorithms_that_is_not_understood_refuses_the_start(text: str) -> None:
    with pytest.raises(ConfigError, match="HERALD_FOREIGN_ALGORITHMS"):
        parse_algorithms(text)


def test_the_ed25519_of_a_jwk_is_that_of_the_rfc() -> None:
    """RFC 8037, appendix A: key, signing input and signature."""
    x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    token = (
        "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki"
        "4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    )
    head, payload, signature = token.split(".")
    read = tokens.Read({}, {}, f"{head}.{payload}".encode(), base64.urlsafe_b64decode(signature + "=="))
    tokens.verify_ed25519(x, read)
    assert OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": x}).thumbprint() == (
        "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    )

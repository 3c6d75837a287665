"""The domain's keys: rotated so that nobody notices, retired so that everybody does."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from eventing.access.models import DomainKey, PolicyIssuer, Revocation
from eventing.access.rules import tokens
from eventing.access.selectors.keys import public_keys, signing_key, verification_keys
from eventing.access.selectors.policy_issuers import policy_sources
from eventing.access.services import keys as key_services
from eventing.access.services import policy_issuers
from eventing.access.services.keys import SIGNS_AFTER_S, ensure_domain_key, key_new, key_retire, key_rotate
from eventing.access.services.tokens import token_create
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, QuotaExceeded, Unauthenticated
from eventing.core.principals import Principal
from eventing.operations.services.leases import leases_reap
from eventing.rps.services.rendezvous_points import rendezvous_point_delete, rendezvous_point_update
from eventing.store import keys
from eventing.store.client import client as redis_client
from tests.planes import principal, problem_code

pytestmark = pytest.mark.usefixtures("stores")

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def verified(token: str, when: datetime) -> Principal:
    return tokens.verify(token, verification_keys(when), issuer="localhost", audience="localhost", now=when.timestamp())


def kid_of(token: str) -> str:
    return tokens.read(token).key_id


def test_a_new_key_is_published_before_it_signs(root: Principal) -> None:
    old = ensure_domain_key(now=NOW)
    made = key_rotate(principal=root, now=NOW)
    begins = NOW + timedelta(seconds=SIGNS_AFTER_S)
    assert made.not_before == begins
    published = {key["kid"]: key for key in public_keys(NOW)}
    assert set(published) == {old, made.kid}
    assert published[made.kid]["nbf"] == int(begins.timestamp())
    assert SIGNS_AFTER_S >= 2 * 60, "who keeps the publication for its max-age has read it twice by then"
    before, after = begins - timedelta(seconds=1), begins
    assert kid_of(token_create(subject="a", now=before).token) == old
    assert kid_of(token_create(subject="a", now=after).token) == made.kid


def test_the_old_key_verifies_until_the_longest_token_it_signed_has_ended(
    root: Principal, configure: Callable[..., None]
) -> None:
    configure(lease_s_max=7200, lease_s_default=60)
    old = ensure_domain_key(now=NOW)
    key_rotate(principal=root, now=NOW)
    last = NOW + timedelta(seconds=SIGNS_AFTER_S - 1)
    token = token_create(subject="a", lease_s=7200, now=last)
    assert (kid_of(token.token), token.granted_s) == (old, 7200)
    assert verified(token.token, last + timedelta(seconds=7199)).subject == "a"
    ends = NOW + timedelta(seconds=SIGNS_AFTER_S + 7200 + tokens.SKEW_S)
    assert old in verification_keys(ends - timedelta(seconds=1))
    assert old not in verification_keys(ends)
    assert old not in {key["kid"] for key in public_keys(ends)}


def test_no_token_outlives_the_key_that_signed_it(root: Principal, configure: Callable[..., None]) -> None:
    configure(lease_s_max=60, lease_s_default=60)
    ensure_domain_key(now=NOW)
    key_rotate(principal=root, signs_after_s=1000, now=NOW)
    configure(lease_s_max=10_000, lease_s_default=60)  # raised when the end of the key was set already
    token = token_create(subject="a", lease_s=10_000, now=NOW)
    assert token.granted_s == 1000 + 60 + tokens.SKEW_S
    assert verified(token.token, NOW).expires_at == token.expires_at.timestamp()


def test_one_rotation_at_a_time(root: Principal) -> None:
    ensure_domain_key(now=NOW)
    key_rotate(principal=root, now=NOW)
    with pytest.raises(Conflict, match="in progress"):
        key_rotate(principal=root, now=NOW + timedelta(seconds=SIGNS_AFTER_S - 1))
    key_rotate(principal=root, now=NOW + timedelta(seconds=SIGNS_AFTER_S))


def test_keys_are_bounded(root: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_services, "KEYS_MAX", 3)
    ensure_domain_key(now=NOW)
    for _ in range(2):
        key_rotate(principal=root, signs_after_s=0, now=NOW)
    with pytest.raises(QuotaExceeded):
        key_rotate(principal=root, signs_after_s=0, now=NOW)


@pytest.mark.parametrize("seconds", [-1, 86_401])
def test_a_rotation_too_far_off_is_refused(root: Principal, seconds: int) -> None:
    with pytest.raises(InvalidRequest):
        key_rotate(principal=root, signs_after_s=seconds)


def test_a_rotation_is_announced_to_the_gateways(root: Principal) -> None:
    listening = redis_client().pubsub()
    listening.subscribe(keys.KEYS_CHANNEL)
    assert listening.get_message(timeout=20)["type"] == "subscribe"
    key_rotate(principal=root)
    assert listening.get_message(timeout=20)["type"] == "message"
    listening.close()


def test_a_retired_key_is_gone_at_once_and_another_signs(root: Principal) -> None:
    now = datetime.now(UTC)
    old = ensure_domain_key(now=now)
    token = token_create(subject="a", now=now).token
    ended = key_retire(principal=root, kid=old, reason="stolen", now=now)
    assert ended.not_after is not None
    assert ended.not_after <= now + timedelta(milliseconds=1)
    after = now + timedelta(seconds=1)
    with pytest.raises(Unauthenticated):
        verified(token, after)
    signing = signing_key(after)
    assert signing is not None
    assert signing["kid"] != old
    assert Revocation.objects.get(kind="key", value=old).reason == "stolen"
    assert verified(token_create(subject="a", now=after).token, after).subject == "a"


def test_the_key_that_was_to_follow_takes_over_from_a_retired_one(root: Principal) -> None:
    now = datetime.now(UTC)
    old = ensure_domain_key(now=now)
    follows = key_rotate(principal=root, now=now).kid
    key_retire(principal=root, kid=old, now=now)
    assert (signing_key(now) or {})["kid"] == follows
    assert DomainKey.objects.count() == 2


def test_a_rotation_can_be_taken_back_by_retiring_the_key_that_was_to_follow(root: Principal) -> None:
    now = datetime.now(UTC)
    ensure_domain_key(now=now)
    follows = key_rotate(principal=root, now=now).kid
    key_retire(principal=root, kid=follows, now=now)
    assert follows not in {key["kid"] for key in public_keys(now)}
    later = now + timedelta(seconds=SIGNS_AFTER_S + 1)
    signing = signing_key(later)
    assert signing is not None
    assert signing["kid"] != follows
    assert "exp" not in signing, "a key without an end signs: the next rotation is due when somebody wants it"


def test_retiring_twice_changes_nothing_and_an_unknown_key_is_told(root: Principal) -> None:
    now = datetime.now(UTC)
    old = ensure_domain_key(now=now)
    for _ in range(2):
        key_retire(principal=root, kid=old, now=now)
    assert DomainKey.objects.count() == 2
    with pytest.raises(NotFound):
        key_retire(principal=root, kid="unknown")


@pytest.mark.parametrize("who", [principal("ann"), principal("root", admin=True, ops=["administer"])])
def test_only_administrators_touch_keys(who: Principal) -> None:
    with pytest.raises(Forbidden):
        key_rotate(principal=who)
    with pytest.raises(Forbidden):
        key_retire(principal=who, kid="x")


# REST


def test_keys_are_listed_with_window_and_state_and_never_with_their_secret(
    client_of: Callable[..., APIClient], api: APIClient
) -> None:
    admin = client_of("root", admin=True)
    assert admin.post("/api/v1/keys/rotate", {"signs_after_s": 3600}, format="json").status_code == 201
    listed = admin.get("/api/v1/keys")
    states = [(key["state"], key["not_after"] is None) for key in listed.json()["items"]]
    assert states == [("published", True), ("signing", False)]
    assert set(listed.json()["items"][0]) == {"kid", "state", "not_before", "not_after", "created_at"}
    for answer in (
        api.get("/api/v1/keys"),
        api.post("/api/v1/keys/rotate", {}, format="json"),
        api.post("/api/v1/keys/x/retire", {}, format="json"),
        client_of("root", admin=True, operations=["administer"]).get("/api/v1/keys"),
    ):
        assert (answer.status_code, problem_code(answer)) == (403, "forbidden")
    assert admin.post("/api/v1/keys/rotate", {"signs_after_s": -1}, format="json").status_code == 400
    assert admin.post("/api/v1/keys/rotate", {"now": True}, format="json").status_code == 400


def test_an_administrator_whose_own_token_the_retired_key_signed_is_out_too(
    client_of: Callable[..., APIClient],
) -> None:
    admin = client_of("root", admin=True)
    kid = admin.get("/api/v1/keys").json()["items"][0]["kid"]
    retired = admin.post(f"/api/v1/keys/{kid}/retire", {"reason": "stolen"}, format="json")
    assert (retired.status_code, retired.json()["state"]) == (200, "retired")
    assert admin.get("/api/v1/keys").status_code == 401
    states = {key["kid"]: key["state"] for key in client_of("root", admin=True).get("/api/v1/keys").json()["items"]}
    assert states.pop(kid) == "retired"
    assert list(states.values()) == ["signing"]


def test_a_token_with_scopes_can_be_had_from_an_administrator(client_of: Callable[..., APIClient]) -> None:
    admin = client_of("root", admin=True)
    asked = {"subject": "roof", "scopes": [{"rps": ["sensors/*"], "ops": ["publish"]}]}
    issued = admin.post("/api/v1/tokens", asked, format="json")
    assert issued.status_code == 201, issued.content
    assert issued.json()["scopes"] == [{"rps": ["/localhost/sensors/*"], "ops": ["publish"]}]
    for bad in (
        {"scopes": "x"},
        {"scopes": [{"rps": ["*"]}]},
        {"scopes": [{"rps": [], "ops": ["publish"]}]},
        {"scopes": [{"rps": ["*"], "ops": []}]},
        {"scopes": [{"rps": ["*"], "ops": ["fly"]}]},
        {"scopes": [{"rps": ["a*b"], "ops": ["publish"]}]},
        {"scopes": [{"rps": ["*"], "ops": ["publish"], "x": 1}]},
        {"scopes": [{"rps": ["*"], "ops": ["publish"]}] * 17},
        {"audience": ""},
        {"subject": "a#b"},
    ):
        refused = admin.post("/api/v1/tokens", {"subject": "roof", **bad}, format="json")
        assert (refused.status_code, problem_code(refused)) == (400, "invalid-request"), bad


# Which issuers policies name

ISSUER = "https://id.example.org"


def rule(issuer: str = ISSUER, **more: Any) -> dict[str, Any]:
    return {"issuer": issuer, "allow": ["subscribe"], **more}


def test_what_a_policy_names_is_kept_with_it(new_rp: Callable[..., Any], ann: Principal) -> None:
    row = new_rp(
        policy=[rule(), rule("https://b.example", jwks="https://b.example/keys"), rule("anyone"), rule("domain")]
    )
    new_rp(policy=[rule()])
    new_rp(policy=[rule("peer:other.example")])
    assert policy_sources() == {ISSUER: ("",), "https://b.example": ("https://b.example/keys",), "anyone": ("",)}
    rendezvous_point_update(reference=row.id, principal=ann, changes={"policy": [rule("https://c.example")]})
    assert set(policy_sources()) == {ISSUER, "https://c.example"}
    rendezvous_point_update(reference=row.id, principal=ann, changes={"title": "other"})
    assert set(policy_sources()) == {ISSUER, "https://c.example"}
    rendezvous_point_delete(reference=row.id, principal=ann)
    assert set(policy_sources()) == {ISSUER}


def test_an_rp_that_is_reaped_names_nobody_any_more(new_rp: Callable[..., Any]) -> None:
    row = new_rp(policy=[rule()], lease_s=1)
    assert PolicyIssuer.objects.count() == 1
    leases_reap(now=row.expires_at + timedelta(seconds=1))
    assert PolicyIssuer.objects.count() == 0


def test_jwks_addresses_of_one_issuer_are_bounded(new_rp: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may have to be asked for a key that no other has; the issuer's own discovery is not counted."""
    for number in range(policy_issuers.SOURCES_OF_ISSUER_MAX):
        new_rp(policy=[rule(jwks=f"https://mallory.example/{number}")])
    with pytest.raises(QuotaExceeded, match="JWKS addresses"):
        new_rp(policy=[rule(jwks="https://mallory.example/more")])
    new_rp(policy=[rule(jwks="https://mallory.example/0")])
    new_rp(policy=[rule()])
    assert policy_sources()[ISSUER][0] == "", "its own discovery is asked first"
    monkeypatch.setattr(policy_issuers, "SOURCES_MAX", 9)
    with pytest.raises(QuotaExceeded, match="at most 9"):
        new_rp(policy=[rule("https://another.example")])
    assert PolicyIssuer.objects.filter(issuer="https://another.example").count() == 0, "refused whole"


def test_only_bearers_of_the_domains_own_tokens_create(new_rp: Callable[..., Any]) -> None:
    citizen = Principal(ISSUER, "x", False, time.time() + 60, {}, local=False)
    with pytest.raises(Forbidden, match="requires a token of this domain"):
        new_rp(principal=citizen)


def test_no_kid_begins_with_a_hyphen_so_that_a_command_line_takes_it_for_one() -> None:
    # One in 64 thumbprints would: 500 keys without the rule would all pass once in 2,600 runs.
    assert not [kid for kid in (key_new().thumbprint() for _ in range(500)) if kid.startswith("-")]

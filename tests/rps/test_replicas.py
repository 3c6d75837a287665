"""What domains sign about replicas: only the home's word counts, whoever carries it, and only its latest."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from joserfc.jwk import OKPKey

from eventing.core import signing
from eventing.core.ids import canonical_json, rp_id
from eventing.core.signing import Signed
from eventing.rps.rules.statements import (
    DESCRIPTOR_BYTES_MAX,
    JOIN_WINDOW_S,
    Admission,
    BadStatement,
    DescriptorStatement,
    Join,
    StatementOrder,
    admission_make,
    admission_read,
    admission_verified,
    descriptor_make,
    descriptor_order,
    descriptor_read,
    descriptor_verified,
    is_descriptor,
    join_make,
    join_verified,
    packed,
    preferred,
    unpacked,
)

NOW_MS = 1_800_000_000_000
HOME, MEMBER = "a.example", "b.example"


def key() -> dict[str, Any]:
    """An Ed25519 key as the domain keeps it."""
    made = OKPKey.generate_key("Ed25519")
    return {**made.as_dict(private=True), "kid": made.thumbprint()}


def public(*keys: dict[str, Any], **window: int) -> dict[str, dict[str, Any]]:
    """Keys as a domain document lists them, the first first."""
    return {one["kid"]: {"kty": "OKP", "crv": "Ed25519", "x": one["x"], "kid": one["kid"], **window} for one in keys}


FIRST, SECOND, STRANGER = key(), key(), key()
KEYS = public(FIRST, SECOND)
GENESIS = {"domain": HOME, "key": FIRST["kid"], "creator": "ann", "created_at": "2026-11-21T00:00:00Z", "nonce": "n"}
RP = rp_id(GENESIS)
DESCRIPTOR = DescriptorStatement(
    rp=RP,
    version=2,
    home=HOME,
    genesis=GENESIS,
    serial=7,
    issued_at_ms=NOW_MS,
    ended=False,
    name=f"/{HOME}/weather/",
    title="Weather",
    history={"max_events": 10, "max_bytes": 1000, "max_age_s": None},
    policy=[{"issuer": f"peer:{MEMBER}", "allow": ["replicate", "publish"]}],
    ack="stored",
)
ADMISSION = Admission(RP, HOME, MEMBER, "https://b.example", SECOND["kid"], NOW_MS, NOW_MS + 60_000, publishes=True)
JOIN = Join(RP, MEMBER, "https://b.example", 60, NOW_MS)


def descriptor(by: dict[str, Any] = FIRST, **changes: Any) -> Signed:
    """A signed descriptor with some members changed."""
    return descriptor_make(dataclasses.replace(DESCRIPTOR, **changes), by)


def with_payload(statement: Signed, /, **members: Any) -> Signed:
    """A statement whose payload was changed on the way; its signature stays."""
    body = {**json.loads(statement.payload), **members}
    return Signed(canonical_json(body), statement.kid, statement.signature)


def test_what_was_signed_is_read_again() -> None:
    assert descriptor_verified(descriptor(), KEYS) == DESCRIPTOR
    assert descriptor_verified(descriptor(SECOND), KEYS) == DESCRIPTOR, "any key of the home's signs"
    assert admission_verified(admission_make(ADMISSION, FIRST), KEYS, rp=RP, home=HOME) == ADMISSION
    assert join_verified(join_make(JOIN, STRANGER), public(STRANGER), NOW_MS) == JOIN
    assert unpacked(packed(descriptor())) == descriptor()
    assert is_descriptor(descriptor())
    assert not is_descriptor(admission_make(ADMISSION, FIRST))


@pytest.mark.parametrize("ended", [False, True])
def test_an_end_is_a_descriptor_like_any_other(ended: bool) -> None:
    assert descriptor_verified(descriptor(ended=ended), KEYS).ended is ended


# Forged descriptors


def test_a_descriptor_signed_by_another_domain_is_refused() -> None:
    with pytest.raises(BadStatement, match=r"does not belong to a\.example"):
        descriptor_verified(descriptor(STRANGER), KEYS)


def test_a_descriptor_that_names_the_homes_key_and_is_signed_by_another_is_refused() -> None:
    forged = descriptor(STRANGER)
    with pytest.raises(BadStatement, match="signature"):
        descriptor_verified(Signed(forged.payload, FIRST["kid"], forged.signature), KEYS)


def test_a_policy_changed_on_the_way_is_refused() -> None:
    statement = descriptor()
    body = json.loads(statement.payload)
    body["statement"]["policy"] = [{"issuer": "anyone", "allow": ["publish"]}]
    with pytest.raises(BadStatement, match="signature"):
        descriptor_verified(Signed(canonical_json(body), statement.kid, statement.signature), KEYS)


def test_another_genesis_is_refused_whoever_signed_it() -> None:
    with pytest.raises(BadStatement, match="hash of the genesis"):
        descriptor_read(descriptor(genesis={**GENESIS, "creator": "mallory"}))


def test_a_genesis_of_another_home_is_refused() -> None:
    genesis = {**GENESIS, "domain": "mallory.example"}
    with pytest.raises(BadStatement, match="different homes"):
        descriptor_read(descriptor(genesis=genesis, rp=rp_id(genesis)))


def test_a_domain_that_took_the_homes_name_is_refused() -> None:
    """Mallory has keys of its own and says that it is a.example: the id names the first key of the real one."""
    with pytest.raises(BadStatement, match="names another key"):
        descriptor_verified(descriptor(STRANGER), public(STRANGER))
    with pytest.raises(BadStatement, match="names another key"):
        descriptor_verified(descriptor(STRANGER), public(STRANGER, FIRST))  # whoever lists the key is not who has it


def test_a_genesis_without_a_key_cannot_be_replicated() -> None:
    genesis = {name: value for name, value in GENESIS.items() if name != "key"}
    with pytest.raises(BadStatement, match="older than replicas"):
        descriptor_read(descriptor(genesis=genesis, rp=rp_id(genesis)))


def test_a_statement_of_one_kind_is_none_of_another() -> None:
    admission = admission_make(ADMISSION, FIRST)
    as_descriptor = signing.sign(signing.ADMISSION, descriptor().payload, FIRST)
    with pytest.raises(BadStatement, match="signature"):
        descriptor_verified(as_descriptor, KEYS)
    with pytest.raises(BadStatement, match="members"):
        descriptor_read(admission)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "/c.example/weather/"}, "begins with /a.example/"),
        ({"name": "/a.example/weather"}, "begins with /a.example/"),
        ({"policy": [{"issuer": "nobody"}]}, "is invalid"),
        ({"policy": "open"}, "is invalid"),
        ({"ack": "never"}, "is invalid"),
        ({"history": {"max_events": 0, "max_bytes": 1, "max_age_s": None}}, "max_events"),
        ({"history": {"max_events": 1, "max_bytes": True, "max_age_s": None}}, "max_bytes"),
        ({"version": 0}, "version"),
        ({"version": 2**53}, "canonical"),
        ({"title": "t" * 256}, "title"),
        ({"home": "A.example"}, "home"),
    ],
)
def test_a_descriptor_beyond_its_bounds_is_refused(changes: dict[str, Any], words: str) -> None:
    if isinstance(changes.get("policy"), str):
        statement = with_payload(descriptor(), statement={**json.loads(descriptor().payload)["statement"], **changes})
    else:
        statement = descriptor(**changes)
    with pytest.raises(BadStatement, match=words):
        descriptor_read(statement)


def test_oversize_unknown_members_and_other_byte_forms_are_refused() -> None:
    statement = descriptor()
    for payload in (
        statement.payload + b" ",
        json.dumps(json.loads(statement.payload)).encode(),
        b"[]",
        b"\xff",
        b"{" * 100,
    ):
        with pytest.raises(BadStatement, match="canonical"):
            descriptor_read(Signed(payload, FIRST["kid"], statement.signature))
    with pytest.raises(BadStatement, match="exactly the members"):
        descriptor_read(with_payload(statement, more=1))
    with pytest.raises(BadStatement, match="at most"):
        descriptor_read(Signed(b" " * (DESCRIPTOR_BYTES_MAX + 1), FIRST["kid"], statement.signature))
    with pytest.raises(BadStatement, match="version 2"):
        descriptor_read(with_payload(statement, v=2))


def test_a_key_signs_in_its_window_only() -> None:
    at_s = NOW_MS // 1000
    ended = public(FIRST, exp=at_s - 3600)
    later = public(FIRST, nbf=at_s + 3600)
    for keys in (ended, later):
        with pytest.raises(BadStatement, match="was not valid at that time"):
            descriptor_verified(descriptor(), keys)
    assert descriptor_verified(descriptor(issued_at_ms=NOW_MS - 7_200_000), ended)


# Versions


def test_a_descriptor_is_never_taken_back_to_an_older_version() -> None:
    old, new = descriptor(version=1), descriptor(version=2)
    assert descriptor_order(new, old) is StatementOrder.NEWER
    assert descriptor_order(old, new) is StatementOrder.OLDER
    assert preferred(new, old)
    assert not preferred(old, new)
    assert descriptor_order(new, descriptor(SECOND, version=2)) is StatementOrder.SAME, (
        "the same words, signed by another key"
    )


def test_of_two_descriptors_of_one_version_all_keep_the_same() -> None:
    one, other = descriptor(title="one"), descriptor(title="other")
    assert descriptor_order(one, other) is StatementOrder.CONTRADICTS
    assert preferred(one, other) is not preferred(other, one)


# Admissions


def test_an_admission_by_anybody_but_the_home_is_refused() -> None:
    with pytest.raises(BadStatement, match="does not belong to"):
        admission_verified(admission_make(ADMISSION, STRANGER), KEYS, rp=RP, home=HOME)


def test_an_admission_prolonged_on_the_way_is_refused() -> None:
    longer = with_payload(admission_make(ADMISSION, FIRST), expires_at_ms=NOW_MS * 2)
    with pytest.raises(BadStatement, match="signature"):
        admission_verified(longer, KEYS, rp=RP, home=HOME)


def test_an_admission_to_one_rp_admits_to_no_other() -> None:
    elsewhere = admission_make(dataclasses.replace(ADMISSION, rp="a" * 26), FIRST)
    with pytest.raises(BadStatement, match="another rendezvous point"):
        admission_verified(elsewhere, KEYS, rp=RP, home=HOME)


def test_a_home_admits_itself_to_nothing() -> None:
    with pytest.raises(BadStatement, match="cannot be admitted to its own"):
        admission_verified(admission_make(dataclasses.replace(ADMISSION, domain=HOME), FIRST), KEYS, rp=RP, home=HOME)


def test_an_admission_taken_back_says_so() -> None:
    assert not admission_read(admission_make(dataclasses.replace(ADMISSION, publishes=False), FIRST)).publishes


@pytest.mark.parametrize("members", [{"may": ["administer"]}, {"fingerprint": "no kid!"}, {"domain": ""}, {"rp": "x"}])
def test_an_admission_beyond_its_form_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(BadStatement):
        admission_read(with_payload(admission_make(ADMISSION, FIRST), **members))


# Joins


def test_a_join_signed_by_another_domain_is_refused() -> None:
    with pytest.raises(BadStatement, match=r"does not belong to b\.example"):
        join_verified(join_make(JOIN, STRANGER), public(SECOND), NOW_MS)


@pytest.mark.parametrize("off_s", [JOIN_WINDOW_S + 1, -JOIN_WINDOW_S - 1])
def test_a_join_replayed_later_or_signed_ahead_is_refused(off_s: int) -> None:
    with pytest.raises(BadStatement, match="clocks"):
        join_verified(join_make(JOIN, STRANGER), public(STRANGER), NOW_MS + off_s * 1000)

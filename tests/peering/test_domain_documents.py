"""Domain documents: what one says, how trust goes from one key to the next, and what does not pass for one."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from joserfc.jwk import OKPKey

from eventing.access.models import DomainKey
from eventing.access.services.keys import ensure_domain_key, key_retire, key_rotate
from eventing.conf import config
from eventing.core.ed25519 import public_key_text
from eventing.core.ids import canonical_json
from eventing.core.principals import Principal
from eventing.core.signing import DOMAIN, Signed, sign, verified
from eventing.peering.models import DomainDocument
from eventing.peering.rules import domain_documents
from eventing.peering.rules.domain_documents import KEYS_MAX, BadDocument, from_published, make, published, read
from eventing.peering.selectors.domain_documents import (
    domain_document,
    domain_keys,
    domain_known,
    domain_statement,
    domain_statements,
)
from eventing.peering.services.domain_documents import document_accept, document_forget, document_pin, own_document
from tests.core.ed25519_vectors import NEUTRAL, NOT_CANONICAL, NOT_ON_THE_CURVE, SMALL_ORDER

NOW = int(timezone.now().timestamp())
OTHER = "other.example"


def new_key(**window: int) -> dict[str, Any]:
    key = OKPKey.generate_key("Ed25519")
    return {**key.as_dict(private=True), "kid": key.thumbprint(), "nbf": NOW - 1000, **window}


FIRST, SECOND, THIRD = new_key(), new_key(nbf=NOW - 500), new_key(nbf=NOW - 100)
CONTENT = {
    "domain": OTHER,
    "url": "https://other.example",
    "websocket": "wss://other.example/ws",
    "versions": [1],
    "serial": 7,
    "issued_at": NOW,
}


def document(*keys: dict[str, Any], **changed: Any) -> Signed:
    return make({**CONTENT, **changed}, keys or (FIRST,))


def without(statement: Signed, *keys: dict[str, Any]) -> Signed:
    """The document as a carrier hands it on who leaves out the signatures of `keys`."""
    out = {key["kid"] for key in keys}
    left = [(kid, 64 * place) for place, kid in enumerate(statement.kid.split(" ")) if kid not in out]
    signature = b"".join(statement.signature[at : at + 64] for _, at in left)
    return Signed(statement.payload, " ".join(kid for kid, _ in left), signature)


def weakened(x: str, *, first: bool = False) -> Signed:
    """A document that lists the key `x`, for which nobody has a secret, beside an honest one; signed by the first."""
    keys = [
        {name: FIRST[name] for name in ("kid", "x", "nbf")},
        {"kid": domain_documents.thumbprint(x), "x": x, "nbf": 0},
    ]
    payload = canonical_json({**CONTENT, "keys": keys[::-1] if first else keys})
    if first:
        return Signed(payload, keys[1]["kid"], NEUTRAL + bytes(32))
    return Signed(payload, FIRST["kid"], sign(DOMAIN, payload, FIRST).signature)


# What a document says


def test_a_document_says_what_was_put_into_it_and_is_signed_by_all_keys() -> None:
    ended = new_key(exp=NOW - 10)
    made = read(document(FIRST, ended, SECOND))
    assert (made.domain, made.url, made.websocket) == (OTHER, "https://other.example", "wss://other.example/ws")
    assert (made.versions, made.serial, made.issued_at) == ((1,), 7, NOW)
    assert list(made.jwks) == [FIRST["kid"], ended["kid"], SECOND["kid"]]
    assert made.jwks[ended["kid"]] == {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": ended["x"],
        "kid": ended["kid"],
        "nbf": NOW - 1000,
        "exp": NOW - 10,
    }
    assert made.signers == set(made.jwks)
    assert made.fingerprint == FIRST["kid"]


@pytest.mark.parametrize(
    ("text", "says"),
    [(text, "small order") for text in SMALL_ORDER]
    + [(text, "not canonical") for text in NOT_CANONICAL]
    + [(text, "not a point of the curve") for text in NOT_ON_THE_CURVE],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_document_with_a_key_that_others_can_sign_for_is_refused(text: str, says: str, first: bool) -> None:
    with pytest.raises(BadDocument, match=f"not usable: .*{says}"):
        read(weakened(public_key_text(bytes.fromhex(text)), first=first))


@pytest.mark.django_db
def test_a_stored_document_that_would_be_refused_today_gives_no_keys() -> None:
    statement = weakened(public_key_text(bytes.fromhex(SMALL_ORDER[0])))
    stored = {"payload": statement.payload, "kids": statement.kid, "signature": statement.signature}
    DomainDocument.objects.create(name=OTHER, serial=7, fingerprint=FIRST["kid"], received_at=timezone.now(), **stored)
    assert domain_keys(OTHER) == {}
    assert domain_document(OTHER) is None
    assert domain_statement(OTHER) is None
    assert domain_statements([OTHER]) == []
    with pytest.raises(BadDocument):
        document_accept(document(SECOND, serial=8), fingerprint=FIRST["kid"])
    assert document_accept(document(serial=8), fingerprint=FIRST["kid"]).serial == 8
    assert list(domain_keys(OTHER)) == [FIRST["kid"]]


def test_no_private_key_is_in_a_document() -> None:
    assert FIRST["d"].encode() not in document().payload


def test_the_published_form_brings_the_same_document_back() -> None:
    statement = document(FIRST, SECOND)
    assert from_published(json.loads(json.dumps(published(statement)))) == statement


@pytest.mark.parametrize("junk", [None, [], {}, {"payload": "x", "kids": [], "signature": ""}, {"payload": 1}])
def test_what_is_no_published_document_is_refused(junk: object) -> None:
    with pytest.raises(BadDocument):
        from_published(junk)


def test_fingerprints_are_shown_in_groups_and_read_as_people_type_them() -> None:
    shown = domain_documents.fingerprint_shown(FIRST["kid"])
    assert {len(group) for group in shown.split(" ")[:-1]} == {4}
    assert domain_documents.fingerprint_read(f" {shown}\n") == FIRST["kid"]


# What is no document


@pytest.mark.parametrize(
    "changed",
    [
        {"domain": "Not A Name"},
        {"domain": None},
        {"url": "http://other.example"},
        {"url": "https://other.example/"},
        {"url": "https://user@other.example"},
        {"url": "javascript:alert(1)"},
        {"websocket": "https://other.example/ws"},
        {"versions": []},
        {"versions": ["1"]},
        {"versions": [True]},
        {"versions": list(range(1, 18))},
        {"serial": -1},
        {"serial": 1.5},
        {"serial": True},
        {"serial": 2**53},
        {"issued_at": "today"},
    ],
)
def test_a_document_with_a_member_that_is_not_what_it_must_be_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(BadDocument):
        read(document(**changed))


@pytest.mark.parametrize(
    "changed", [{"kid": "other"}, {"x": "short"}, {"nbf": -1}, {"nbf": None}, {"exp": NOW - 2000}, {"exp": "never"}]
)
def test_a_document_with_a_key_that_is_not_what_it_must_be_is_refused(changed: dict[str, Any]) -> None:
    keys = [{**{name: FIRST[name] for name in ("kid", "x", "nbf")}, **changed}]
    payload = canonical_json({**CONTENT, "keys": keys})
    with pytest.raises(BadDocument):
        read(sign(DOMAIN, payload, FIRST))


@pytest.mark.parametrize("keys", [[], None, [1], "keys"])
def test_a_document_without_a_list_of_keys_is_refused(keys: object) -> None:
    with pytest.raises(BadDocument):
        read(sign(DOMAIN, canonical_json({**CONTENT, "keys": keys}), FIRST))


def test_a_document_beyond_its_bounds_is_refused() -> None:
    assert len(read(document(*(new_key() for _ in range(KEYS_MAX)))).jwks) == KEYS_MAX
    with pytest.raises(BadDocument, match="1 to 32 keys"):
        read(document(*(new_key() for _ in range(KEYS_MAX + 1))))
    with pytest.raises(BadDocument, match="at most"):
        read(document(more="x" * domain_documents.PAYLOAD_BYTES_MAX))


def test_members_that_later_versions_add_are_left_alone() -> None:
    assert read(document(more={"of": "this"})).serial == 7


@pytest.mark.parametrize("payload", [b"", b"[]", b"{", b'{"domain":"a","domain":"b"}', b"\xff"])
def test_what_is_no_json_object_is_refused(payload: bytes) -> None:
    with pytest.raises(BadDocument):
        read(sign(DOMAIN, payload, FIRST))


def test_a_tampered_document_is_refused() -> None:
    statement = document()
    with pytest.raises(BadDocument, match="signature"):
        read(Signed(statement.payload.replace(b'"serial":7', b'"serial":8'), statement.kid, statement.signature))


def test_one_wrong_signature_among_good_ones_is_refused() -> None:
    statement = document(FIRST, SECOND)
    with pytest.raises(BadDocument, match="signature"):
        read(Signed(statement.payload, statement.kid, statement.signature[:64] * 2))


@pytest.mark.parametrize(
    ("kid", "signature"),
    [("", b""), (FIRST["kid"], b"x" * 63), (f"{FIRST['kid']} {FIRST['kid']}", b"x" * 128), ("unknown", b"x" * 64)],
    ids=["none", "short", "repeated", "unknown"],
)
def test_signatures_that_are_not_one_for_each_key_are_refused(kid: str, signature: bytes) -> None:
    with pytest.raises(BadDocument):
        read(Signed(document().payload, kid, signature))


def test_a_statement_of_another_kind_is_no_document() -> None:
    statement = sign(b"herald seal v1", document().payload, FIRST)
    with pytest.raises(BadDocument):
        read(statement)


def test_a_stolen_fingerprint_is_refused() -> None:
    """Whoever lists another domain's first key shows its fingerprint, but cannot sign with it."""
    mallory = new_key()
    forged = without(document(FIRST, mallory), FIRST)
    with pytest.raises(BadDocument, match="first key"):
        read(forged)


# Whom to believe


def pin(statement: Signed, fingerprint: str = FIRST["kid"]) -> None:
    document_pin(statement, fingerprint=fingerprint)


@pytest.fixture
def pinned(db: None) -> Signed:
    """The other domain's document, which an administrator has pinned."""
    statement = document()
    pin(statement)
    return statement


def refused(work: Callable[[], object], match: str) -> None:
    with pytest.raises(BadDocument, match=match):
        work()


def test_a_pinned_document_gives_its_keys(pinned: Signed) -> None:
    assert domain_known(OTHER)
    assert domain_statement(OTHER) == pinned
    assert list(domain_keys(OTHER)) == [FIRST["kid"]]
    document_forget(OTHER)
    assert not domain_known(OTHER)
    assert domain_keys(OTHER) == {}


def test_a_document_is_pinned_by_its_fingerprint_only(db: None) -> None:
    refused(lambda: pin(document(), SECOND["kid"]), "fingerprint")
    refused(lambda: pin(document(new_key(exp=NOW - 1))), "fingerprint")
    assert not domain_known(OTHER)


def test_a_document_without_a_key_that_may_sign_now_is_not_pinned(db: None) -> None:
    ended, later = new_key(exp=NOW - 1), new_key(nbf=NOW + 3600)
    refused(lambda: pin(document(ended), ended["kid"]), "may sign now")
    refused(lambda: pin(document(later), later["kid"]), "may sign now")


def test_a_document_of_a_domain_that_nobody_vouches_for_is_not_taken(db: None) -> None:
    refused(lambda: document_accept(document()), "not known")
    refused(lambda: document_accept(document(), fingerprint=SECOND["kid"]), "fingerprint")
    assert document_accept(document(), fingerprint=FIRST["kid"]).domain == OTHER


def test_a_document_that_is_of_no_use_here_costs_at_most_one_signature(
    pinned: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each copy with other signatures left out is one that no cache knows."""
    looked_at: list[Signed] = []

    def counting(context: bytes, statement: Signed, jwk: dict[str, Any]) -> bool:
        looked_at.append(statement)
        return verified(context, statement, jwk)

    keys = [new_key() for _ in range(4)]
    newest = document(FIRST, *keys, serial=9)
    document_accept(newest)
    unknown = without(document(FIRST, *keys, domain="unknown.example"), keys[0])
    older, same = without(document(FIRST, *keys, serial=8), keys[1]), without(newest, keys[1])
    strangers, wrong = document(*keys, serial=10), document(FIRST, *keys, serial=10)
    wrong = Signed(wrong.payload, wrong.kid, bytes(64) + wrong.signature[64:])
    monkeypatch.setattr("eventing.peering.rules.domain_documents.verified", counting)
    refused(lambda: document_accept(unknown), "not known")
    assert document_accept(older).serial == document_accept(same).serial == 9
    refused(lambda: document_accept(strangers), "fingerprint")
    assert looked_at == []
    refused(lambda: document_accept(wrong), "not signed by a key that is trusted")
    assert len(looked_at) == 1


def test_a_rotation_is_followed_from_key_to_key(pinned: Signed) -> None:
    ending = {**FIRST, "exp": NOW + 600}
    document_accept(document(ending, SECOND, serial=8))
    document_accept(document({**FIRST, "exp": NOW - 1}, SECOND, THIRD, serial=9))
    assert list(domain_keys(OTHER)) == [FIRST["kid"], SECOND["kid"], THIRD["kid"]]
    assert domain_keys(OTHER)[FIRST["kid"]]["exp"] == NOW - 1, "ended keys stay: what they sealed still verifies"
    ended_too = document({**FIRST, "exp": NOW - 1}, {**SECOND, "exp": NOW - 1}, THIRD, serial=10)
    assert document_accept(ended_too).serial == 10


def test_an_older_or_the_same_document_changes_nothing(pinned: Signed) -> None:
    newest = document(FIRST, SECOND, serial=8)
    document_accept(newest)
    for one in (pinned, newest, without(newest, SECOND)):
        assert document_accept(one).serial == 8
    assert domain_statement(OTHER) == newest


def test_a_newer_document_that_no_trusted_key_signed_is_refused(pinned: Signed) -> None:
    document_accept(document({**FIRST, "exp": NOW + 100}, SECOND, serial=8))
    later = timezone.now() + timedelta(seconds=200)
    thief = document({**FIRST, "exp": NOW + 2**20}, new_key(), serial=9)
    refused(lambda: document_accept(thief, now=later), "not signed by a key that is trusted")
    stripped = without(document(FIRST, SECOND, THIRD, serial=9), SECOND)
    refused(lambda: document_accept(stripped, now=later), "not signed by a key that is trusted")
    assert domain_document(OTHER).serial == 8  # type: ignore[union-attr]


def test_a_key_signs_no_document_before_it_begins(pinned: Signed) -> None:
    soon = new_key(nbf=NOW + 3600)
    document_accept(document({**FIRST, "exp": NOW + 100}, soon, serial=8))
    later = timezone.now() + timedelta(seconds=200)
    following = document(FIRST, soon, serial=9)
    refused(lambda: document_accept(following, now=later), "not signed by a key that is trusted")
    assert document_accept(following, now=later + timedelta(hours=1)).serial == 9


def test_two_documents_of_one_serial_are_refused(pinned: Signed) -> None:
    refused(lambda: document_accept(document(url="https://elsewhere.example")), "two different")


def test_the_fingerprint_never_changes(pinned: Signed) -> None:
    refused(lambda: document_accept(document(SECOND, FIRST, serial=8)), "fingerprint")
    refused(lambda: document_accept(document(serial=8), fingerprint=SECOND["kid"]), "fingerprint")


def test_an_administrator_s_pin_takes_the_place_of_what_was_trusted(pinned: Signed) -> None:
    document_pin(document(SECOND, serial=1), fingerprint=SECOND["kid"])
    assert list(domain_keys(OTHER)) == [SECOND["kid"]]


def test_pinning_an_older_document_of_the_same_domain_changes_nothing(pinned: Signed) -> None:
    document_accept(document(FIRST, SECOND, serial=8))
    assert document_pin(pinned, fingerprint=FIRST["kid"]).serial == 8


def test_nobody_states_documents_in_our_name(db: None) -> None:
    ours = document(domain=config().domain)
    refused(lambda: pin(ours), "the name of this domain")
    refused(lambda: document_accept(ours, fingerprint=FIRST["kid"]), "the name of this domain")
    own = own_document()
    assert document_accept(document(domain=config().domain, serial=2**50)) == read(own)


def test_documents_are_bounded(pinned: Signed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventing.peering.services.domain_documents.DOCUMENTS_MAX", 1)
    refused(lambda: pin(document(domain="third.example")), "which is the most")
    assert document_accept(document(serial=8)).serial == 8


# Our own document

ROOT = Principal("localhost", "root", expires_at=2.0**40, claims={}, admin=True)


def test_our_document_stays_the_same_until_something_changes(db: None, settings: Any) -> None:
    own = own_document()
    made = read(own)
    assert (made.domain, made.url) == (config().domain, config().base_url)
    assert own_document(now=timezone.now() + timedelta(days=1)) == own
    settings.HERALD = dataclasses.replace(config(), public_url="https://moved.example")
    moved = read(own_document())
    assert (moved.url, moved.websocket) == ("https://moved.example", "wss://moved.example/ws")
    assert moved.serial > made.serial


def test_a_rotation_here_is_one_that_others_follow(db: None) -> None:
    """What a domain issues over a rotation and a retirement in an emergency, another one accepts from step to step."""
    held = read(own_document())
    first = held.fingerprint
    for step in (
        lambda: key_rotate(principal=ROOT),
        lambda: key_retire(principal=ROOT, kid=first),
        lambda: key_rotate(principal=ROOT, signs_after_s=0),
    ):
        step()
        newer = read(own_document())
        assert domain_documents.follows(newer, held, timezone.now().timestamp())
        assert newer.fingerprint == held.fingerprint
        held = newer
    assert list(domain_keys(config().domain)) == list(held.jwks)
    assert not any("d" in jwk for jwk in domain_keys(config().domain).values())


def test_our_keys_are_the_first_and_the_newest(db: None) -> None:
    first = ensure_domain_key()
    template = DomainKey.objects.get(kid=first)
    for number in range(KEYS_MAX + 3):
        key = OKPKey.generate_key("Ed25519")
        DomainKey.objects.create(
            kid=key.thumbprint(),
            private_jwk=key.as_dict(private=True),
            public_jwk=key.as_dict(private=False),
            not_before=template.not_before,
            not_after=template.not_before + timedelta(days=1),
            created_at=template.created_at + timedelta(seconds=number + 1),
        )
    listed = list(read(own_document()).jwks)
    by_age = list(DomainKey.objects.order_by("created_at").values_list("kid", flat=True))
    assert listed == [first, *by_age[-(KEYS_MAX - 1) :]]


def test_a_database_put_back_from_a_copy_issues_no_serial_twice(db: None) -> None:
    own_document()
    row = DomainDocument.objects.get(name=config().domain)
    key_rotate(principal=ROOT, signs_after_s=0)
    lost = read(own_document()).serial
    row.save()  # the copy
    assert read(own_document(now=timezone.now() + timedelta(seconds=1))).serial > lost


def test_what_is_published_is_our_document(client: Any, db: None) -> None:
    answer = client.get("/.well-known/herald").json()
    assert from_published(answer["document"]) == own_document()
    assert base64.b64decode(answer["document"]["payload"]).startswith(b"{")

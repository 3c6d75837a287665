"""Records: whoever carries one can alter nothing of it, and nobody can take a known domain's name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eventing.membership.rules.records import (
    RECORD_BYTES_MAX,
    RecordVerifier,
    fingerprint_of,
    keys_of,
    malformed,
    record_bytes,
    record_read,
    record_sign,
)
from eventing.overlay.directory_records import DomainRecord, Sponsorship
from tests.membership.signers import NOW_S, Signer
from tests.peering.played_domain import new_key

FOUNDER = Signer("founder.example")
MEMBER = Signer("member.example", FOUNDER)
LONGEST = Signer(f"{'a' * 40}.{'b' * 20}.example", FOUNDER)


def verifier(pins: dict[str, str] | None = None, **held: DomainRecord) -> RecordVerifier:
    records = {record.domain: record for record in held.values()}
    return RecordVerifier((pins or {}).get, records.get, lambda name: FOUNDER.x if name == FOUNDER.name else None)


def test_a_record_survives_the_wire_and_is_genuine() -> None:
    for signer in (FOUNDER, MEMBER, LONGEST):
        record = record_read(record_bytes(signer.record(signing=(new_key()["x"],))))
        assert verifier().problem(record) == ""
        assert len(record_bytes(record)) <= RECORD_BYTES_MAX
        assert fingerprint_of(record) == signer.fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 1},
        {"issued_s": NOW_S + 1},
        {"expires_s": NOW_S + 1e6},
        {"url": "https://liar.example"},
        {"zone": "us-1"},
        {"operator": "someone"},
        {"capacity": 3},
        {"domain": "other.example"},
        {"sponsorship": Sponsorship("founder.example", "member.example", 20_833, 1)},
        {"key": f"{FOUNDER.x}"},
        {"key": f"{MEMBER.x} {FOUNDER.x}"},
    ],
)
def test_a_record_that_a_carrier_altered_is_not_genuine(changed: dict[str, Any]) -> None:
    assert not verifier()(msgspec.structs.replace(MEMBER.record(), **changed))


def test_a_known_domain_keeps_its_identity_key_whoever_sponsors_another() -> None:
    impostor = Signer(MEMBER.name, FOUNDER, number=3)
    assert verifier()(impostor.record()), "nobody has seen the domain before"
    assert not verifier({MEMBER.name: MEMBER.fingerprint})(impostor.record())
    assert verifier({MEMBER.name: MEMBER.fingerprint})(MEMBER.record())


def test_a_sponsorship_is_good_for_one_identity_key_only() -> None:
    thief = Signer(MEMBER.name)
    thief.grant = MEMBER.grant
    assert verifier().problem(thief.record()) == "a wrong signature of its sponsor"


def test_a_domain_cannot_sponsor_itself_into_the_directory() -> None:
    selfmade = Signer("self.example")
    selfmade.grant = Signer("self.example", Signer("nobody.example")).grant
    assert verifier().problem(selfmade.record()) == "an unknown sponsor"


def test_keys_of_requests_change_with_a_record_that_the_identity_key_signed() -> None:
    later = new_key()
    record = MEMBER.record(signing=(later["x"],))
    assert verifier(held=MEMBER.record(int(NOW_S) - 1))(record)
    assert list(keys_of(record)) == [MEMBER.fingerprint, later["kid"]]


def test_the_sponsors_signature_is_not_verified_again_with_each_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    held, later = MEMBER.record(), MEMBER.record(int(NOW_S) + 1)
    monkeypatch.setattr("eventing.membership.rules.records.sponsorship_verified", lambda *_: pytest.fail("verified"))
    assert verifier(held=held)(later)


@pytest.mark.parametrize(
    "members",
    [
        {"url": "http://10.0.0.1"},
        {"url": "https://a.example/?q"},
        {"url": "https://" + "a" * 250},
        {"zone": "Zone 1"},
        {"zone": "z" * 40},
        {"capacity": 4},
        {"capacity": -1},
    ],
)
def test_a_record_with_members_that_nobody_could_use_is_malformed(members: dict[str, Any]) -> None:
    record = msgspec.structs.replace(MEMBER.record(), **members)
    assert malformed(record)
    assert not verifier()(record)


def test_a_domain_whose_record_would_be_too_long_is_told_so() -> None:
    long = Signer("a" * 63 + "." + "b" * 63 + "." + "c" * 63 + ".example", FOUNDER)
    with pytest.raises(ValueError, match="too long"):
        record_sign(
            DomainRecord(
                long.name, 1, NOW_S, NOW_S + 1, url="https://" + long.name, sponsorship=MEMBER.record().sponsorship
            ),
            long.identity,
            [new_key()["x"], new_key()["x"]],
            b"x" * 64,
        )


def test_the_small_order_key_that_verifies_everything_is_no_key() -> None:
    from eventing.core.ed25519 import public_key_text
    from tests.core.ed25519_vectors import SMALL_ORDER

    for data in SMALL_ORDER:
        record = msgspec.structs.replace(MEMBER.record(), key=public_key_text(bytes.fromhex(data)))
        assert not verifier()(record)

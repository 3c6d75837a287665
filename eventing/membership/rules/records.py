"""Records of the directory as they are signed: form, keys, signatures. Pure.

A record is one `overlay.directory.DomainRecord`. Its `key` lists public Ed25519 keys, separated by spaces: first the domain's
identity key, which is the first key of its domain document and never changes, then keys with which the domain signs requests now.
The identity key signs the record. So a domain rotates the keys of its requests with a new record, and a record with another identity
key is another domain's, whatever name it has (docs/decisions/0064).

    signature = SIGNATURE by the identity key, 64 bytes || SIGNATURE of the sponsorship by the sponsor's identity key, 64 bytes

The second part is absent from a founder's record. The signed bytes are the MessagePack of the members without the signature; those
of a sponsorship also have the newcomer's identity key, so that nobody else can use it in that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from eventing.access.rules.policy_issuers import is_address
from eventing.core.container import memoized
from eventing.core.decoding import msgpack_reader
from eventing.core.ed25519 import BadPublicKey, public_key, public_key_text
from eventing.core.names import DOMAIN_PATTERN, ZONE_PATTERN
from eventing.core.signing import OVERLAY_RECORD, SIGNATURE_BYTES, SPONSORSHIP, Signed, sign, verified
from eventing.overlay.directory_records import DomainRecord, Sponsorship
from eventing.peering.rules.domain_documents import thumbprint

RECORD_BYTES_MAX = 512  # bound: bytes of a domain's record; the record is refused, and not issued
# The identity key, the present signing key, and the next or the last one.
RECORD_KEYS_MAX = 3  # bound: keys of a record; the record is refused
URL_CHARS_MAX = 200
CAPACITY_MAX = 3
CHAIN_MAX = 8  # bound: records from a domain up to its founder; a domain further away presents no chain, and is known by others' records
KEY_PATTERN = re.compile(r"[A-Za-z0-9_-]{43}( [A-Za-z0-9_-]{43}){0,2}", re.ASCII)
FINGERPRINTS_CACHED = 4096
_encode = msgspec.msgpack.Encoder().encode


class SponsorshipGrant(msgspec.Struct, frozen=True, array_like=True):
    """A sponsorship with the sponsor's signature: what a newcomer puts into its record."""

    sponsorship: Sponsorship
    signature: bytes


_decode_record = msgpack_reader(DomainRecord)
_decode_grant = msgpack_reader(SponsorshipGrant)


def grant_bytes(grant: SponsorshipGrant) -> bytes:
    """Encode a sponsorship as it is stored."""
    return _encode(grant)


def grant_read(data: bytes) -> SponsorshipGrant:
    """Decode a stored sponsorship. Raises Undecodable."""
    return _decode_grant(data)


def record_bytes(record: DomainRecord) -> bytes:
    """Encode a record as it is sent and stored."""
    return _encode(record)


def record_read(data: bytes) -> DomainRecord:
    """Decode a record. Raises Undecodable."""
    return _decode_record(data)


def identity_of(record: DomainRecord) -> str:
    """Return the member `x` of the identity key."""
    return record.key.partition(" ")[0]


def fingerprint_of(record: DomainRecord) -> str:
    """Return the kid of the identity key: the domain's fingerprint, as administrators compare it."""
    return _thumbprint(identity_of(record))


@memoized(maxsize=FINGERPRINTS_CACHED)
def _thumbprint(x: str) -> str:
    return thumbprint(x)


def keys_of(record: DomainRecord) -> dict[str, dict[str, Any]]:
    """Return the public keys of a verified record as JWKs by kid: those that may sign requests."""
    found = {}
    for x in record.key.split(" "):
        kid = _thumbprint(x)
        found[kid] = {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, "nbf": 0}
    return found


def sponsorship_sign(sponsorship: Sponsorship, newcomer_key: str, identity: Mapping[str, Any]) -> SponsorshipGrant:
    """Sign a sponsorship.

    Args:
        newcomer_key: member `x` of the newcomer's identity key.
        identity: private JWK of the sponsor's identity key.
    """
    return SponsorshipGrant(sponsorship, sign(SPONSORSHIP, _sponsorship(sponsorship, newcomer_key), identity).signature)


def sponsorship_verified(grant: SponsorshipGrant, newcomer_key: str, sponsor_key: str) -> bool:
    """Return True if the sponsor's identity key signed the sponsorship for a newcomer with that identity key."""
    payload = _sponsorship(grant.sponsorship, newcomer_key)
    return verified(SPONSORSHIP, Signed(payload, "", grant.signature), {"x": sponsor_key})


def record_sign(
    record: DomainRecord, identity: Mapping[str, Any], signing: Sequence[str], sponsorship_signature: bytes = b""
) -> DomainRecord:
    """Return the record with keys and signatures.

    Args:
        identity: private JWK of the domain's identity key.
        signing: members `x` of the keys with which the domain signs requests, the most important first.
        sponsorship_signature: of the record's sponsorship, by its sponsor.

    Raises ValueError if the record is larger than RECORD_BYTES_MAX.
    """
    own = str(identity["x"])
    keys = [own, *dict.fromkeys(x for x in signing if x != own)][:RECORD_KEYS_MAX]
    unsigned = msgspec.structs.replace(record, key=" ".join(keys), signature=b"")
    signature = sign(OVERLAY_RECORD, _encode(unsigned), identity).signature
    made = msgspec.structs.replace(unsigned, signature=signature + sponsorship_signature)
    if len(_encode(made)) > RECORD_BYTES_MAX:
        raise ValueError(f"The record has more than {RECORD_BYTES_MAX} bytes: its name, address and zone are too long.")
    return made


def record_bytes_most(domain: str, sponsor: str, url: str, zone: str, operator: str) -> int:
    """Return the bytes of the largest record that a domain issues in the course of time, with a second key after a rotation.

    Args:
        sponsor: empty for a founder.
    """
    given = Sponsorship(sponsor, domain, 2**15, 255) if sponsor else None
    key = " ".join([public_key_text(bytes(32))] * 2)
    signature = bytes(SIGNATURE_BYTES * (2 if sponsor else 1))
    return len(_encode(DomainRecord(domain, 2**32, 1.5, 1.5, key, url, zone, operator, 1, given, signature)))


class RecordVerifier:
    """Decides which records are genuine. Cheap checks first; each signature that a held record proves already is not verified again.

    Args:
        pinned: the fingerprint that is trusted for a domain: a peer's, a founder's, or that of an earlier record; None for none.
        held: the newest held record of a domain; None for none.
        ancestor: the identity key (member `x`) of a sponsor whose record is not held; None if unknown.
    """

    def __init__(
        self,
        pinned: Callable[[str], str | None],
        held: Callable[[str], DomainRecord | None],
        ancestor: Callable[[str], str | None],
    ) -> None:
        self._pinned = pinned
        self._held = held
        self._ancestor = ancestor

    def __call__(self, record: DomainRecord) -> bool:
        return not self.problem(record)

    def problem(self, record: DomainRecord) -> str:
        """Return why a record is not genuine, in a few words; empty if it is."""
        problem = malformed(record)
        if problem:
            return problem
        pinned = self._pinned(record.domain)
        if pinned is not None and pinned != fingerprint_of(record):
            return "another identity key than the known one"
        x = identity_of(record)
        try:
            public_key(x)
        except BadPublicKey:
            return "a key that is no key"
        if not self_signed(record):
            return "a wrong signature"
        return self._sponsored(record, x)

    def _sponsored(self, record: DomainRecord, x: str) -> str:
        grant = grant_of(record)
        if grant is None:
            return ""
        before = self._held(record.domain)
        if before is not None and _same_sponsorship(before, record):
            return ""
        by = grant.sponsorship.sponsor
        sponsor = self._held(by)
        key = identity_of(sponsor) if sponsor is not None else self._ancestor(by)
        if key is None:
            return "an unknown sponsor"
        return "" if sponsorship_verified(grant, x, key) else "a wrong signature of its sponsor"


def self_signed(record: DomainRecord) -> bool:
    """Return True if the record's identity key signed it."""
    own = Signed(_encode(msgspec.structs.replace(record, signature=b"")), "", record.signature[:SIGNATURE_BYTES])
    return verified(OVERLAY_RECORD, own, {"x": identity_of(record)})


def grant_of(record: DomainRecord) -> SponsorshipGrant | None:
    """Return the sponsorship in a record with its signature; None for a founder."""
    given = record.sponsorship
    return None if given is None else SponsorshipGrant(given, record.signature[SIGNATURE_BYTES:])


def malformed(record: DomainRecord) -> str:
    """Return what is wrong with the form of a record, in a few words; empty if nothing is."""
    if not DOMAIN_PATTERN.fullmatch(record.domain):
        return "no domain's name"
    if not KEY_PATTERN.fullmatch(record.key):
        return "no keys"
    if record.url and (len(record.url) > URL_CHARS_MAX or "?" in record.url or not is_address(record.url)):
        return "no address"
    if not ZONE_PATTERN.fullmatch(record.zone) or not ZONE_PATTERN.fullmatch(record.operator):
        return "no zone or operator"
    if not 0 <= record.capacity <= CAPACITY_MAX:
        return "no capacity class"
    if len(record.signature) != SIGNATURE_BYTES * (1 if record.sponsorship is None else 2):
        return "no signature"
    if len(_encode(record)) > RECORD_BYTES_MAX:
        return "too many bytes"
    return ""


def _same_sponsorship(one: DomainRecord, other: DomainRecord) -> bool:
    same_key = identity_of(one) == identity_of(other)
    return (
        same_key
        and one.sponsorship == other.sponsorship
        and one.signature[SIGNATURE_BYTES:] == other.signature[SIGNATURE_BYTES:]
    )


def _sponsorship(sponsorship: Sponsorship, newcomer_key: str) -> bytes:
    return _encode((sponsorship, newcomer_key))

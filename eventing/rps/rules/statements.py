"""Signed statements of domains about replicas of an RP: descriptor, properties, admissions, joins. Pure: keys and times
are arguments.

| statement | signed by | meaning |
|---|---|---|
| descriptor | the home | the RP: genesis, version, name, title, history, policy, ack; or that it has ended |
| properties | the home | what the RP asks of its participants beyond the descriptor: a target reliability |
| admission | the home | a domain participates until an expiry, identified by its keys; or is no longer admitted |
| join | the joining domain | a request to participate for a duration; for 0 seconds: the domain leaves |

Each is the canonical JSON of an object with exactly the members below, so there is one form of each and nothing in it
is ignored; but for the members of `properties`, of which a reader uses those that it knows. A reader checks the form first and then the signature, against the signer's keys within their windows.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from eventing.access.rules.policy import POLICY_BYTES_MAX, compile_policy
from eventing.core import names, signing, strict_json
from eventing.core.decoding import msgpack_reader
from eventing.core.errors import ApplicationError
from eventing.core.events.ack_level import Ack
from eventing.core.events.vectors import SEQUENCE_MAX
from eventing.core.ids import RP_ID_PATTERN, canonical_json, rp_id
from eventing.core.signing import KID_PATTERN, Signed

VERSION = 1
NUMBER_MAX = SEQUENCE_MAX  # exact in every JSON reader
TITLE_CHARS_MAX = 255
URL_CHARS_MAX = 255
CREATOR_CHARS_MAX = 767  # an identity: ISSUER|JWKS#SUBJECT
# With the descriptor they fit one part of a request (wire.STATEMENTS_MAX).
ADMISSIONS_MAX = 48  # bound: admissions of an RP; the join is refused
DESCRIPTOR_BYTES_MAX = (
    2 * POLICY_BYTES_MAX + 16 * 1024
)  # bytes: the present policy and that of the genesis, and the rest
STATEMENT_BYTES_MAX = 8 * 1024  # bound: bytes of any other statement; the statement is refused
# Relays and clock differences take some of the time.
JOIN_WINDOW_S = 300  # bound: seconds since a join was signed; the join is refused
SKEW_MS = 60_000  # tolerated clock difference of two domains, for windows of keys

LINK_STATES: Mapping[str, tuple[str, ...]] = MappingProxyType({"live": ("stopped",), "stopped": ("live",)})
"""States of a link: offered as `live`; `stopped` while the peer refuses the RP, and offered again later; then removed."""

PUBLISH = "publish"
RELIABILITY_PPM_MAX = 999_999  # bound: target reliability in millionths; the statement is refused


class BadStatement(Exception):
    """A malformed or oversized statement, or one with a wrong signature; the text is one sentence."""


class StatementOrder(enum.Enum):
    """Relation of a statement to the one that is held."""

    NEWER = "newer"
    SAME = "same"
    OLDER = "older"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class DescriptorStatement:
    """The home's statement that defines the RP.

    Attributes:
        rp: id of the RP, the hash of `genesis`.
        version: from 1, increases with every statement.
        home: name of the home in that term.
        genesis: content certified by the id. Its members `domain` and `key` bind the first home: `key` is its
            fingerprint, the kid of its first key, with which every document of that domain is signed. So a holder of
            the RP's id can distinguish its home from an impostor.
        serial: serial of the home's domain document at the time: a domain with an older document needs that one.
        issued_at_ms: time of the signature, milliseconds of Unix time.
        ended: whether the RP has ended, and all replicas with it.
        name, title, history, policy, ack: as set by the creator at the home. `history` has `max_events`, `max_bytes`,
            `max_age_s` (None: no bound by age).
        term: term of the home (rps/rules/home_terms.py). A member of the signed object from term 1 on, so that term 0 is
            the same statement as before there were terms.
    """

    rp: str
    version: int
    home: str
    genesis: Mapping[str, Any]
    serial: int
    issued_at_ms: int
    ended: bool
    name: str | None
    title: str
    history: Mapping[str, int | None]
    policy: Sequence[Mapping[str, Any]]
    ack: str
    term: int = 0


@dataclass(frozen=True, slots=True)
class Admission:
    """The home's statement that `domain` participates.

    Attributes:
        rp, home: the RP and its home.
        domain: the participating domain, at the address `url`.
        fingerprint: kid of that domain's first key, by which the home identifies it: a domain that does not know the
            participant may accept its domain document on this basis (peering/services/domain_documents.py).
        issued_at_ms: orders the statements about one domain.
        expires_at_ms: expiry: the domain's events are accepted if they were sealed before.
        publishes: whether events of its feed are accepted; False withdraws the admission.
        term: as in a descriptor.
    """

    rp: str
    home: str
    domain: str
    url: str
    fingerprint: str
    issued_at_ms: int
    expires_at_ms: int
    publishes: bool
    term: int = 0


@dataclass(frozen=True, slots=True)
class PropertyStatement:
    """The home's statement of an RP's properties beyond the descriptor, all of which are optional.

    Attributes:
        rp, home: the RP and its home.
        issued_at_ms: orders the statements about one RP.
        reliability: target share of events that arrive at every participant in time, 0 to 1; None for no target.
    """

    rp: str
    home: str
    issued_at_ms: int
    reliability: float | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """A domain's request to participate in an RP for `lease_s` seconds; 0: it leaves. `at_ms` orders its requests."""

    rp: str
    domain: str
    url: str
    lease_s: int
    at_ms: int


Keys = Mapping[str, Mapping[str, Any]]
"""Public JWKs by kid, the domain's first key first, with their windows as `nbf` and `exp` (Unix seconds), as from
peering/selectors/domain_documents.py."""


_signed = msgpack_reader(Signed)


def packed(statement: Signed) -> bytes:
    """Encode a statement for storage."""
    return msgspec.msgpack.encode(statement)


def unpacked(data: bytes | memoryview) -> Signed:
    """Decode the output of `packed`."""
    return _signed(data)


def is_descriptor(statement: Signed) -> bool:
    """Return True if a statement is a descriptor rather than an admission: canonical JSON begins with its first member."""
    return statement.payload.startswith(b'{"ended":')


# Descriptors


def descriptor_make(descriptor: DescriptorStatement, private_jwk: Mapping[str, Any]) -> Signed:
    """Sign a descriptor with the home's key."""
    body = {
        "v": VERSION,
        "rp": descriptor.rp,
        "version": descriptor.version,
        "home": descriptor.home,
        "genesis": dict(descriptor.genesis),
        "serial": descriptor.serial,
        "issued_at_ms": descriptor.issued_at_ms,
        "ended": descriptor.ended,
        "statement": {
            "name": descriptor.name,
            "title": descriptor.title,
            "history": dict(descriptor.history),
            "policy": [dict(rule) for rule in descriptor.policy],
            "ack": descriptor.ack,
        },
        **({"term": descriptor.term} if descriptor.term else {}),
    }
    return signing.sign(signing.DESCRIPTOR, canonical_json(body), private_jwk)


def descriptor_read(statement: Signed) -> DescriptorStatement:
    """Decode a descriptor and check everything that needs no key: form, bounds, and that the id is the hash of the
    genesis. Raises BadStatement."""
    members = "v rp version home genesis serial issued_at_ms ended statement"
    body = object_read(statement.payload, DESCRIPTOR_BYTES_MAX, members, "A descriptor", optional="term")
    said = members_of(body["statement"], "name title history policy ack", "The statement of a descriptor")
    history = members_of(said["history"], "max_events max_bytes max_age_s", "The history of a descriptor")
    genesis = body["genesis"]
    read = DescriptorStatement(
        rp_member(body),
        number_member(body, "version", low=1),
        domain_member(body, "home"),
        genesis if isinstance(genesis, dict) else {},
        number_member(body, "serial"),
        number_member(body, "issued_at_ms"),
        truth_member(body, "ended"),
        None if said["name"] is None else text_member(said, "name", names.NAME_CHARS_MAX),
        text_member(said, "title", TITLE_CHARS_MAX),
        {
            "max_events": number_member(history, "max_events", low=1),
            "max_bytes": number_member(history, "max_bytes", low=1),
            "max_age_s": None if history["max_age_s"] is None else number_member(history, "max_age_s", low=1),
        },
        said["policy"],
        text_member(said, "ack", 16),
        _term(body),
    )
    _check_genesis(read)
    _check_meaning(read)
    return read


def descriptor_verified(
    statement: Signed, keys: Keys, *, term: int = 0, home: str = "", fingerprint: str = ""
) -> DescriptorStatement:
    """Decode a descriptor and verify the home's signature. Raises BadStatement.

    Args:
        keys: the home's keys, the first key first, including ended ones, as its domain document lists them.
        term, home, fingerprint: the home's verified term (rps/rules/home_terms.py); for term 0 the genesis names the
            home.
    """
    read = descriptor_read(statement)
    if read.term != term or (term and read.home != home):
        raise BadStatement(f"The descriptor is of term {read.term} of {read.home}, not of term {term}.")
    if next(iter(keys), "") != (fingerprint if term else read.genesis["key"]):
        raise BadStatement(
            f"The rendezvous point {read.rp} does not belong to the {read.home} known here: its genesis, or the last hand-over, names another key."
        )
    check_signature(signing.DESCRIPTOR, statement, keys, read.issued_at_ms, "The descriptor", read.home)
    return read


def descriptor_order(new: Signed, held: Signed) -> StatementOrder:
    """Compare `new` with `held`, verified descriptors of one RP. Two different ones of one version prove that the home
    equivocates.

    Of those, every domain keeps the greater bytes, so that replicas agree whichever arrived first (`preferred`).
    """
    one, other = descriptor_read(new), descriptor_read(held)
    if (one.term, one.version) != (other.term, other.version):
        later = (one.term, one.version) > (other.term, other.version)
        return StatementOrder.NEWER if later else StatementOrder.OLDER
    return StatementOrder.SAME if new.payload == held.payload else StatementOrder.CONTRADICTS


def preferred(new: Signed, held: Signed) -> bool:
    """Return True if `new`, a verified descriptor, replaces `held`."""
    order = descriptor_order(new, held)
    return order is StatementOrder.NEWER or (order is StatementOrder.CONTRADICTS and new.payload > held.payload)


def _check_genesis(read: DescriptorStatement) -> None:
    genesis = read.genesis
    try:
        matches = rp_id(genesis) == read.rp
    except (ValueError, RecursionError):
        matches = False
    if not matches:
        raise BadStatement("The id is not the hash of the genesis: the descriptor belongs to another rendezvous point.")
    if genesis.get("domain") != read.home and not read.term:
        raise BadStatement("The genesis and the descriptor name different homes.")
    key, creator = genesis.get("key"), genesis.get("creator")
    if not isinstance(key, str) or KID_PATTERN.fullmatch(key) is None:
        raise BadStatement("The genesis names no key: the rendezvous point is older than replicas; create a new one.")
    if not isinstance(creator, str) or len(creator) > CREATOR_CHARS_MAX:
        raise BadStatement("The genesis names no creator.")


def _check_meaning(read: DescriptorStatement) -> None:
    first = str(read.genesis["domain"])  # a name stays under the authority of the domain that gave it
    try:
        if read.name is not None and (
            names.normalise(read.name, first) != read.name or not read.name.startswith(f"/{first}/")
        ):
            raise BadStatement(f"A name of {first}'s begins with /{first}/ and ends with a slash.")
        compile_policy(read.policy)
        Ack.parse(read.ack)
    except ApplicationError as error:
        raise BadStatement(f"The descriptor is invalid: {error.detail}") from None


# Admissions


def admission_make(admission: Admission, private_jwk: Mapping[str, Any]) -> Signed:
    """Sign an admission with the home's key."""
    body = {
        "v": VERSION,
        "rp": admission.rp,
        "home": admission.home,
        "domain": admission.domain,
        "url": admission.url,
        "fingerprint": admission.fingerprint,
        "issued_at_ms": admission.issued_at_ms,
        "expires_at_ms": admission.expires_at_ms,
        "may": [PUBLISH] if admission.publishes else [],
        **({"term": admission.term} if admission.term else {}),
    }
    return signing.sign(signing.ADMISSION, canonical_json(body), private_jwk)


def admission_read(statement: Signed) -> Admission:
    """Decode an admission and check its form. Raises BadStatement."""
    members = "v rp home domain url fingerprint issued_at_ms expires_at_ms may"
    body = object_read(statement.payload, STATEMENT_BYTES_MAX, members, "An admission", optional="term")
    may = body["may"]
    if may not in ([], [PUBLISH]):
        raise BadStatement("may of an admission is empty or lists publish.")
    return Admission(
        rp_member(body),
        domain_member(body, "home"),
        domain_member(body, "domain"),
        text_member(body, "url", URL_CHARS_MAX),
        kid_member(body, "fingerprint"),
        number_member(body, "issued_at_ms"),
        number_member(body, "expires_at_ms"),
        bool(may),
        _term(body),
    )


def admission_verified(statement: Signed, keys: Keys, *, rp: str, home: str, term: int = 0) -> Admission:
    """Decode an admission and verify that `home` signed it for `rp`. The caller checks the expiry. Raises BadStatement."""
    read = admission_read(statement)
    if read.rp != rp or read.home != home or read.term != term:
        raise BadStatement("The admission is about another rendezvous point, or another home's.")
    if read.domain == home:
        raise BadStatement("A home cannot be admitted to its own rendezvous point.")
    check_signature(signing.ADMISSION, statement, keys, read.issued_at_ms, "The admission", home)
    return read


# Properties


def properties_make(properties: PropertyStatement, private_jwk: Mapping[str, Any]) -> Signed:
    """Sign properties with the home's key."""
    stated = {} if properties.reliability is None else {"reliability_ppm": round(properties.reliability * 1_000_000)}
    body = {
        "v": VERSION,
        "rp": properties.rp,
        "home": properties.home,
        "issued_at_ms": properties.issued_at_ms,
        "properties": stated,
    }
    return signing.sign(signing.PROPERTIES, canonical_json(body), private_jwk)


def properties_read(statement: Signed) -> PropertyStatement:
    """Decode properties and check their form. Members of `properties` that are not known here are ignored: a later
    release may have stated them. Raises BadStatement."""
    body = object_read(
        statement.payload, STATEMENT_BYTES_MAX, "v rp home issued_at_ms properties", "A property statement"
    )
    stated = body["properties"]
    if not isinstance(stated, dict):
        raise BadStatement("properties is an object.")
    reliability = None
    if "reliability_ppm" in stated:
        millionths = number_member(stated, "reliability_ppm", low=1)
        if millionths > RELIABILITY_PPM_MAX:
            raise BadStatement(f"reliability_ppm is at most {RELIABILITY_PPM_MAX}.")
        reliability = millionths / 1_000_000
    return PropertyStatement(
        rp_member(body), domain_member(body, "home"), number_member(body, "issued_at_ms"), reliability
    )


def properties_verified(statement: Signed, keys: Keys, *, rp: str, home: str) -> PropertyStatement:
    """Decode properties and verify that `home` signed them for `rp`. Raises BadStatement."""
    read = properties_read(statement)
    if read.rp != rp or read.home != home:
        raise BadStatement("The property statement is about another rendezvous point, or another home's.")
    check_signature(signing.PROPERTIES, statement, keys, read.issued_at_ms, "The property statement", home)
    return read


# Joins


def join_make(join: Join, private_jwk: Mapping[str, Any]) -> Signed:
    """Sign a join (or, with 0 seconds, a leave) with the joining domain's key."""
    body = {
        "v": VERSION,
        "rp": join.rp,
        "domain": join.domain,
        "url": join.url,
        "lease_s": join.lease_s,
        "at_ms": join.at_ms,
    }
    return signing.sign(signing.JOIN, canonical_json(body), private_jwk)


def join_read(statement: Signed) -> Join:
    """Decode a join and check its form. Raises BadStatement."""
    body = object_read(statement.payload, STATEMENT_BYTES_MAX, "v rp domain url lease_s at_ms", "A join")
    return Join(
        rp_member(body),
        domain_member(body, "domain"),
        text_member(body, "url", URL_CHARS_MAX),
        number_member(body, "lease_s"),
        number_member(body, "at_ms"),
    )


def join_verified(statement: Signed, keys: Keys, now_ms: int) -> Join:
    """Decode a join and verify that the joining domain signed it recently. Raises BadStatement."""
    read = join_read(statement)
    if abs(now_ms - read.at_ms) > JOIN_WINDOW_S * 1000:
        raise BadStatement(
            f"The join was signed more than {JOIN_WINDOW_S} s from now: it is old, or one of the clocks is wrong."
        )
    check_signature(signing.JOIN, statement, keys, read.at_ms, "The join", read.domain)
    return read


# Common parts


def check_signature(context: bytes, statement: Signed, keys: Keys, at_ms: int, what: str, who: str) -> None:
    """Verify the signature by a key of `who` within its window. Raises BadStatement."""
    key = keys.get(statement.kid)
    if key is None:
        raise BadStatement(f"{what} is signed by a key that does not belong to {who}.")
    begins_ms, ends_ms = key.get("nbf"), key.get("exp")
    if (begins_ms is not None and at_ms + SKEW_MS < begins_ms * 1000) or (
        ends_ms is not None and at_ms >= ends_ms * 1000 + SKEW_MS
    ):
        raise BadStatement(f"{what} is signed by a key of {who} that was not valid at that time.")
    if not signing.verified(context, statement, key):
        raise BadStatement(f"The signature of {what[0].lower()}{what[1:]} is wrong.")


def object_read(payload: bytes, bytes_max: int, members: str, what: str, *, optional: str = "") -> dict[str, Any]:
    """Decode canonical JSON with exactly these members, and any of the optional ones. Raises BadStatement."""
    if len(payload) > bytes_max:
        raise BadStatement(f"{what} has at most {bytes_max} bytes.")
    try:
        value = strict_json.parse(payload)
        canonical = isinstance(value, dict) and canonical_json(value) == payload
    except (strict_json.NotStrictJson, ValueError, RecursionError):
        canonical = False
    if not canonical:
        raise BadStatement(f"{what} must be canonical JSON: an object, members sorted, no spaces.")
    present = " ".join(name for name in optional.split() if name in value)
    body = members_of(value, f"{members} {present}", what)
    if body["v"] != VERSION:
        raise BadStatement(f"{what} has version {body['v']!r:.20}; this domain supports version {VERSION}.")
    return body


def members_of(value: Any, members: str, what: str) -> dict[str, Any]:
    """Return the object if it has exactly these members. Raises BadStatement."""
    if not isinstance(value, dict) or set(value) != set(members.split()):
        raise BadStatement(f"{what} has exactly the members {', '.join(members.split())}.")
    return value


def rp_member(body: Mapping[str, Any]) -> str:
    """Return the id of the RP. Raises BadStatement."""
    value = body["rp"]
    if not isinstance(value, str) or RP_ID_PATTERN.fullmatch(value) is None:
        raise BadStatement("rp is not the id of a rendezvous point.")
    return value


def domain_member(body: Mapping[str, Any], member: str) -> str:
    """Return the name of a domain. Raises BadStatement."""
    value = body[member]
    if not isinstance(value, str) or len(value) > 253 or names.DOMAIN_PATTERN.fullmatch(value) is None:
        raise BadStatement(f"{member} is not the name of a domain.")
    return value


def _term(body: Mapping[str, Any]) -> int:
    return number_member(body, "term", low=1) if "term" in body else 0


def text_member(body: Mapping[str, Any], member: str, chars_max: int) -> str:
    """Return a bounded text. Raises BadStatement."""
    value = body[member]
    if not isinstance(value, str) or len(value) > chars_max:
        raise BadStatement(f"{member} is a text of at most {chars_max} characters.")
    return value


def number_member(body: Mapping[str, Any], member: str, *, low: int = 0) -> int:
    """Return a whole number from `low`. Raises BadStatement."""
    value = body[member]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= NUMBER_MAX:
        raise BadStatement(f"{member} is a whole number from {low} to {NUMBER_MAX}.")
    return value


def truth_member(body: Mapping[str, Any], member: str) -> bool:
    """Return true or false. Raises BadStatement."""
    value = body[member]
    if not isinstance(value, bool):
        raise BadStatement(f"{member} is true or false.")
    return value


def kid_member(body: Mapping[str, Any], member: str) -> str:
    """Return the id of a key. Raises BadStatement."""
    value = body[member]
    if not isinstance(value, str) or KID_PATTERN.fullmatch(value) is None:
        raise BadStatement(f"{member} is not the id of a key.")
    return value

"""What domains sign about replicas of an RP: its descriptor, who is admitted, who asks to join. Pure: keys and times are passed in.

| statement | signed by | says |
|---|---|---|
| descriptor | the home | what the RP is: genesis, version, name, title, history, policy, ack; or that it has ended |
| admission | the home | a domain participates until an expiry, and by which keys it is known; or is no longer admitted |
| join | the joining domain | it asks to participate for so long; for 0 seconds: it leaves |

Each is the canonical JSON of an object with exactly the members below, so there is one form of each and nothing in it
is ignored. A reader checks the form first and then the signature, against the signer's keys within their windows.
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
from eventing.core.errors import HeraldError
from eventing.core.events.ack_level import Ack
from eventing.core.events.vectors import SEQUENCE_MAX
from eventing.core.ids import RP_ID_PATTERN, canonical_json, rp_id
from eventing.core.signing import KID_PATTERN, Signed

VERSION = 1
NUMBER_MAX = SEQUENCE_MAX  # exact in every JSON reader
TITLE_CHARS_MAX = 255
URL_CHARS_MAX = 255
CREATOR_CHARS_MAX = 767  # an identity: ISSUER|JWKS#SUBJECT
ADMISSIONS_MAX = 48  # of one RP that are kept and sent on: with the descriptor they fit one part (wire.STATEMENTS_MAX)
DESCRIPTOR_BYTES_MAX = 2 * POLICY_BYTES_MAX + 16 * 1024  # the policy of now and of the genesis, and the rest
STATEMENT_BYTES_MAX = 8 * 1024  # of the others
JOIN_WINDOW_S = 300  # a join is answered within this time of being signed: relays and clocks take some
SKEW_MS = 60_000  # how far the clocks of two domains may differ, for windows of keys

LINK_STATES: Mapping[str, tuple[str, ...]] = MappingProxyType({"live": ("stopped",), "stopped": ("live",)})
"""A link is offered `live`; it is `stopped` while the peer refuses the RP, and offered again later; then it is removed."""

PUBLISH = "publish"


class BadStatement(Exception):
    """A statement that is not one, exceeds a bound, or is not signed by whom it must be; the text is one sentence."""


class Order(enum.Enum):
    """How a statement stands to the one that is held."""

    NEWER = "newer"
    SAME = "same"
    OLDER = "older"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The home's statement of what the RP is.

    Attributes:
        rp: the id, which is the hash of `genesis`.
        version: from 1, grows with every statement.
        home: name of the domain that created the RP.
        genesis: what the id certifies. Its members `domain` and `key` bind the home: `key` is the home's fingerprint,
            the kid of its first key, which every document of that domain is signed with. So who holds the id of an RP
            can tell its home from anybody who says to be it.
        serial: of the home's domain document at the time: whoever knows an older one needs that one.
        issued_at_ms: when it was signed, milliseconds of Unix time.
        ended: the RP is no more; every replica of it ends.
        name, title, history, policy, ack: as the home's creator has set them. `history` has `max_events`, `max_bytes`,
            `max_age_s` (None: no bound by age).
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


@dataclass(frozen=True, slots=True)
class Admission:
    """The home's statement that `domain` participates.

    Attributes:
        rp, home: of which RP, and whose it is.
        domain: who participates, found at `url`.
        fingerprint: kid of that domain's first key, by which the home knows it: who does not know the domain may take
            its domain document by this word (peering/services/domain_documents.py).
        issued_at_ms: orders the statements about one domain.
        expires_at_ms: its events are accepted if they were sealed before.
        publishes: whether events of its feed are accepted; an admission without is one taken back.
    """

    rp: str
    home: str
    domain: str
    url: str
    fingerprint: str
    issued_at_ms: int
    expires_at_ms: int
    publishes: bool


@dataclass(frozen=True, slots=True)
class Join:
    """A domain's wish to participate in an RP for `lease_s` seconds; 0: it leaves. `at_ms` orders its wishes."""

    rp: str
    domain: str
    url: str
    lease_s: int
    at_ms: int


Keys = Mapping[str, Mapping[str, Any]]
"""Public JWKs by kid, the domain's first key first, with their windows as `nbf` and `exp` (Unix seconds): as
peering/selectors/domain_documents.py gives them."""


_signed = msgpack_reader(Signed)


def packed(statement: Signed) -> bytes:
    """A statement as it is kept."""
    return msgspec.msgpack.encode(statement)


def unpacked(data: bytes | memoryview) -> Signed:
    """The statement that `packed` made."""
    return _signed(data)


def is_descriptor(statement: Signed) -> bool:
    """Whether a statement, if it is any, is a descriptor rather than an admission: canonical JSON begins with its first member."""
    return statement.payload.startswith(b'{"ended":')


# The descriptor


def descriptor_make(descriptor: Descriptor, private_jwk: Mapping[str, Any]) -> Signed:
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
    }
    return signing.sign(signing.DESCRIPTOR, canonical_json(body), private_jwk)


def descriptor_read(statement: Signed) -> Descriptor:
    """Read a descriptor and check all that needs no key: form, bounds, that the id is the hash of the genesis. Raises BadStatement."""
    members = "v rp version home genesis serial issued_at_ms ended statement"
    body = _object(statement.payload, DESCRIPTOR_BYTES_MAX, members, "A descriptor")
    said = _members(body["statement"], "name title history policy ack", "The statement of a descriptor")
    history = _members(said["history"], "max_events max_bytes max_age_s", "The history of a descriptor")
    genesis = body["genesis"]
    read = Descriptor(
        _rp(body),
        _number(body, "version", low=1),
        _domain(body, "home"),
        genesis if isinstance(genesis, dict) else {},
        _number(body, "serial"),
        _number(body, "issued_at_ms"),
        _truth(body, "ended"),
        None if said["name"] is None else _text(said, "name", names.NAME_CHARS_MAX),
        _text(said, "title", TITLE_CHARS_MAX),
        {
            "max_events": _number(history, "max_events", low=1),
            "max_bytes": _number(history, "max_bytes", low=1),
            "max_age_s": None if history["max_age_s"] is None else _number(history, "max_age_s", low=1),
        },
        said["policy"],
        _text(said, "ack", 16),
    )
    _check_genesis(read)
    _check_meaning(read)
    return read


def descriptor_verified(statement: Signed, keys: Keys) -> Descriptor:
    """The descriptor, if the home signed it. Raises BadStatement.

    Args:
        keys: the home's, its first key first, ended ones too, as its domain document lists them.
    """
    read = descriptor_read(statement)
    if next(iter(keys), "") != read.genesis["key"]:
        raise BadStatement(
            f"The rendezvous point {read.rp} is not of the {read.home} that is known here: its genesis names another key."
        )
    _check_signature(signing.DESCRIPTOR, statement, keys, read.issued_at_ms, "The descriptor", read.home)
    return read


def descriptor_order(new: Signed, held: Signed) -> Order:
    """How `new` stands to `held`, both of one RP and verified. Two of one version that differ prove that the home contradicts itself.

    Of those the greater bytes are kept by everybody, so that replicas agree whatever came first (`preferred`).
    """
    one, other = descriptor_read(new), descriptor_read(held)
    if one.version != other.version:
        return Order.NEWER if one.version > other.version else Order.OLDER
    return Order.SAME if new.payload == held.payload else Order.CONTRADICTS


def preferred(new: Signed, held: Signed) -> bool:
    """Whether `new`, a verified descriptor, takes the place of `held`."""
    order = descriptor_order(new, held)
    return order is Order.NEWER or (order is Order.CONTRADICTS and new.payload > held.payload)


def _check_genesis(read: Descriptor) -> None:
    genesis = read.genesis
    try:
        matches = rp_id(genesis) == read.rp
    except (ValueError, RecursionError):
        matches = False
    if not matches:
        raise BadStatement(
            "The id is not the hash of the genesis: this is not the descriptor of that rendezvous point."
        )
    if genesis.get("domain") != read.home:
        raise BadStatement("The genesis names another home than the descriptor.")
    key, creator = genesis.get("key"), genesis.get("creator")
    if not isinstance(key, str) or KID_PATTERN.fullmatch(key) is None:
        raise BadStatement("The genesis names no key: the rendezvous point was made before replicas; make a new one.")
    if not isinstance(creator, str) or len(creator) > CREATOR_CHARS_MAX:
        raise BadStatement("The genesis names no creator.")


def _check_meaning(read: Descriptor) -> None:
    try:
        if read.name is not None and (
            names.normalise(read.name, read.home) != read.name or not read.name.startswith(f"/{read.home}/")
        ):
            raise BadStatement(f"A name of {read.home}'s begins with /{read.home}/ and ends with a slash.")
        compile_policy(read.policy)
        Ack.parse(read.ack)
    except HeraldError as error:
        raise BadStatement(f"The descriptor does not hold: {error.detail}") from None


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
    }
    return signing.sign(signing.ADMISSION, canonical_json(body), private_jwk)


def admission_read(statement: Signed) -> Admission:
    """Read an admission and check its form. Raises BadStatement."""
    members = "v rp home domain url fingerprint issued_at_ms expires_at_ms may"
    body = _object(statement.payload, STATEMENT_BYTES_MAX, members, "An admission")
    may = body["may"]
    if may not in ([], [PUBLISH]):
        raise BadStatement("may of an admission is empty or lists publish.")
    return Admission(
        _rp(body),
        _domain(body, "home"),
        _domain(body, "domain"),
        _text(body, "url", URL_CHARS_MAX),
        _kid(body, "fingerprint"),
        _number(body, "issued_at_ms"),
        _number(body, "expires_at_ms"),
        bool(may),
    )


def admission_verified(statement: Signed, keys: Keys, *, rp: str, home: str) -> Admission:
    """The admission, if `home` signed it and it is about `rp`. Whether it has expired is for who asks. Raises BadStatement."""
    read = admission_read(statement)
    if read.rp != rp or read.home != home:
        raise BadStatement("The admission is about another rendezvous point, or another home's.")
    if read.domain == home:
        raise BadStatement("A home is not admitted to its own rendezvous point.")
    _check_signature(signing.ADMISSION, statement, keys, read.issued_at_ms, "The admission", home)
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
    """Read a join and check its form. Raises BadStatement."""
    body = _object(statement.payload, STATEMENT_BYTES_MAX, "v rp domain url lease_s at_ms", "A join")
    return Join(
        _rp(body),
        _domain(body, "domain"),
        _text(body, "url", URL_CHARS_MAX),
        _number(body, "lease_s"),
        _number(body, "at_ms"),
    )


def join_verified(statement: Signed, keys: Keys, now_ms: int) -> Join:
    """The join, if the joining domain signed it, and lately. Raises BadStatement."""
    read = join_read(statement)
    if abs(now_ms - read.at_ms) > JOIN_WINDOW_S * 1000:
        raise BadStatement(
            f"The join was signed more than {JOIN_WINDOW_S} s from now: it is old, or one of the clocks is wrong."
        )
    _check_signature(signing.JOIN, statement, keys, read.at_ms, "The join", read.domain)
    return read


# What all share


def _check_signature(context: bytes, statement: Signed, keys: Keys, at_ms: int, what: str, who: str) -> None:
    key = keys.get(statement.kid)
    if key is None:
        raise BadStatement(f"{what} is signed by a key that is none of {who}'s.")
    begins_ms, ends_ms = key.get("nbf"), key.get("exp")
    if (begins_ms is not None and at_ms + SKEW_MS < begins_ms * 1000) or (
        ends_ms is not None and at_ms >= ends_ms * 1000 + SKEW_MS
    ):
        raise BadStatement(f"{what} is signed by a key of {who}'s that did not sign at that time.")
    if not signing.verified(context, statement, key):
        raise BadStatement(f"The signature of {what[0].lower()}{what[1:]} is wrong.")


def _object(payload: bytes, bytes_max: int, members: str, what: str) -> dict[str, Any]:
    if len(payload) > bytes_max:
        raise BadStatement(f"{what} has at most {bytes_max} bytes.")
    try:
        value = strict_json.parse(payload)
        canonical = isinstance(value, dict) and canonical_json(value) == payload
    except (strict_json.NotStrictJson, ValueError, RecursionError):
        canonical = False
    if not canonical:
        raise BadStatement(f"{what} is canonical JSON: an object, members sorted, no spaces.")
    body = _members(value, members, what)
    if body["v"] != VERSION:
        raise BadStatement(f"{what} of version {body['v']!r:.20} is not understood here, only version {VERSION}.")
    return body


def _members(value: Any, members: str, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(members.split()):
        raise BadStatement(f"{what} has exactly the members {', '.join(members.split())}.")
    return value


def _rp(body: Mapping[str, Any]) -> str:
    value = body["rp"]
    if not isinstance(value, str) or RP_ID_PATTERN.fullmatch(value) is None:
        raise BadStatement("rp is not the id of a rendezvous point.")
    return value


def _domain(body: Mapping[str, Any], member: str) -> str:
    value = body[member]
    if not isinstance(value, str) or len(value) > 253 or names.DOMAIN_PATTERN.fullmatch(value) is None:
        raise BadStatement(f"{member} is not the name of a domain.")
    return value


def _text(body: Mapping[str, Any], member: str, chars_max: int) -> str:
    value = body[member]
    if not isinstance(value, str) or len(value) > chars_max:
        raise BadStatement(f"{member} is a text of at most {chars_max} characters.")
    return value


def _number(body: Mapping[str, Any], member: str, *, low: int = 0) -> int:
    value = body[member]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= NUMBER_MAX:
        raise BadStatement(f"{member} is a whole number from {low} to {NUMBER_MAX}.")
    return value


def _truth(body: Mapping[str, Any], member: str) -> bool:
    value = body[member]
    if not isinstance(value, bool):
        raise BadStatement(f"{member} is true or false.")
    return value


def _kid(body: Mapping[str, Any], member: str) -> str:
    value = body[member]
    if not isinstance(value, str) or KID_PATTERN.fullmatch(value) is None:
        raise BadStatement(f"{member} is not the id of a key.")
    return value

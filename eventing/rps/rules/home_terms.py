"""Home terms: the chain of signed hand-overs that states which domain is the home of an RP. Pure: keys are an argument.

Term 0 is the home in the genesis. Each hand-over begins a higher term and names the previous one by its digest, so that
the RP's id suffices to verify the present home.

| kind | signed by | valid with |
|---|---|---|
| `move` | the former home and the next one | where a succession plan is in force: also the majority of its electors |
| `succession` | the electors of the succession plan in force | the majority of them; the next home is one of them |

A succession plan names the electors, in the order in which they succeed, and the silence after which they do. The home
signs it. The majority of the present electors endorses a change, each promising to vote by the former plan no more; two
majorities of one electorate share an elector, so each term has at most one home unless an elector equivocates.

Two valid chains are compared at the first hand-over in which they differ (`prevails`): every domain keeps the same one,
in whatever order they arrive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from eventing.core import signing
from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.ids import canonical_json
from eventing.core.signing import Signed
from eventing.rps.rules.statements import (
    STATEMENT_BYTES_MAX,
    URL_CHARS_MAX,
    VERSION,
    BadStatement,
    Keys,
    check_signature,
    domain_member,
    kid_member,
    members_of,
    number_member,
    object_read,
    rp_member,
    text_member,
)

# A chain is sent whole, 1 KiB a hand-over; whoever meets it first verifies every signature, 0.1 ms each.
HAND_OVERS_MAX = 128  # bound: hand-overs of an RP; a further one is refused: create a new RP
PLANS_MAX = 32  # bound: versions of an RP's succession plan; a further change is refused
ELECTORS_MIN = 2  # one elector alone would take the RP whenever its own line to the home fails
ELECTORS_MAX = 9  # bound: electors of a succession plan; the plan is refused
SILENCE_S_MIN = 5  # bound: seconds of a home's silence; a shorter time is refused: a restart takes as long
SILENCE_S_MAX = 30 * 86_400  # bound: seconds of a home's silence; a longer time is refused
SIGNATURES_MAX = ELECTORS_MAX + 2
DIGEST_CHARS = 64
MOVE, SUCCESSION = "move", "succession"


class DomainSignature(msgspec.Struct, array_like=True, frozen=True):
    """A signature of one of several signers: its domain, the kid of its key, the signature."""

    domain: Annotated[str, Meta(max_length=253)]
    kid: Annotated[str, Meta(max_length=64)]
    signature: Annotated[bytes, Meta(max_length=256)]


class Cosigned(msgspec.Struct, array_like=True, frozen=True):
    """A statement of several domains: exact bytes, and a signature of each."""

    payload: Annotated[bytes, Meta(max_length=STATEMENT_BYTES_MAX)]
    signatures: Annotated[list[DomainSignature], Meta(max_length=SIGNATURES_MAX)]


class HomeRecord(msgspec.Struct, array_like=True, frozen=True):
    """Hand-overs of an RP and versions of its succession plan, each from the first."""

    hand_overs: Annotated[list[Cosigned], Meta(max_length=HAND_OVERS_MAX)] = []
    plans: Annotated[list[Cosigned], Meta(max_length=PLANS_MAX)] = []


class HomeTerm(NamedTuple):
    """A term, its home, and the kid of the home's first key."""

    term: int
    domain: str
    fingerprint: str


class Elector(NamedTuple):
    """An elector of a succession plan: a domain and the kid of its first key."""

    domain: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class HandOver:
    """A hand-over of the home.

    Attributes:
        kind: MOVE or SUCCESSION.
        former: the domain that is the home in the term before.
        domain, url, fingerprint: the next home, its address, the kid of its first key.
        previous: digest of the hand-over before; empty for the first.
        plan: digest of the succession plan in force; empty for none.
        at_ms: time of the signatures, milliseconds of Unix time, for the windows of keys only.
    """

    rp: str
    term: int
    kind: str
    former: str
    domain: str
    url: str
    fingerprint: str
    previous: str
    plan: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class SuccessionPlan:
    """A version of an RP's succession plan; without electors, succession is off.

    Attributes:
        version: from 1, each the next.
        term, home: of the home that signed it.
        electors: in the order in which they succeed.
        silence_s: seconds without a sign of life of the home after which the electors may elect one of them.
        previous: digest of the version before; empty for the first.
        at_ms: as in a hand-over.
    """

    rp: str
    version: int
    term: int
    home: str
    electors: tuple[Elector, ...]
    silence_s: int
    previous: str
    at_ms: int

    @property
    def quorum(self) -> int:
        """The majority of the electors."""
        return quorum(len(self.electors))

    def elects(self, domain: str) -> bool:
        """Return whether the domain is an elector."""
        return any(one.domain == domain for one in self.electors)


KeysOf = Callable[[str, str], Keys]
"""Keys of a domain (name, fingerprint), the first key first; empty where the domain is unknown or has another first key."""

NO_RECORD = HomeRecord()
_record = msgpack_reader(HomeRecord)


class UnknownSigner(BadStatement):
    """A hand-over or plan that cannot be judged here: the document of one of its signers is not known."""


def quorum(electors: int) -> int:
    """Return the majority of that many electors."""
    return electors // 2 + 1


def record_packed(record: HomeRecord) -> bytes:
    """Encode a record for storage."""
    return msgspec.msgpack.encode(record)


def record_unpacked(data: bytes | memoryview | None) -> HomeRecord:
    """Decode the output of `record_packed`; None: the RP never moved and has no succession plan."""
    return NO_RECORD if data is None else _record(data)


def record_read(data: bytes) -> HomeRecord:
    """Decode a record from another domain; empty bytes: none. Raises BadStatement."""
    try:
        return _record(data) if data else NO_RECORD
    except Undecodable as error:
        raise BadStatement(f"The record of hand-overs is not understood: {error}") from None


def digest(payload: bytes) -> str:
    """Return the name by which the next hand-over or plan refers to a payload."""
    return hashlib.sha256(payload).hexdigest()


def hand_over_payload(hand_over: HandOver) -> bytes:
    """Encode a hand-over for signing."""
    members = {name: getattr(hand_over, name) for name in HandOver.__slots__}
    return canonical_json({"v": VERSION, **members})


def hand_over_read(payload: bytes) -> HandOver:
    """Decode a hand-over and check its form. Raises BadStatement."""
    body = object_read(payload, STATEMENT_BYTES_MAX, " ".join(["v", *HandOver.__slots__]), "A hand-over")
    if body["kind"] not in (MOVE, SUCCESSION):
        raise BadStatement("kind of a hand-over is move or succession.")
    return HandOver(
        rp_member(body),
        number_member(body, "term", low=1),
        body["kind"],
        domain_member(body, "former"),
        domain_member(body, "domain"),
        text_member(body, "url", URL_CHARS_MAX),
        kid_member(body, "fingerprint"),
        text_member(body, "previous", DIGEST_CHARS),
        text_member(body, "plan", DIGEST_CHARS),
        number_member(body, "at_ms"),
    )


def plan_payload(plan: SuccessionPlan) -> bytes:
    """Encode a succession plan for signing."""
    members: dict[str, Any] = {name: getattr(plan, name) for name in SuccessionPlan.__slots__}
    members["electors"] = [one._asdict() for one in plan.electors]
    return canonical_json({"v": VERSION, **members})


def plan_read(payload: bytes) -> SuccessionPlan:
    """Decode a succession plan and check its form and bounds. Raises BadStatement."""
    body = object_read(payload, STATEMENT_BYTES_MAX, " ".join(["v", *SuccessionPlan.__slots__]), "A succession plan")
    listed = body["electors"]
    if not isinstance(listed, list) or (listed and not ELECTORS_MIN <= len(listed) <= ELECTORS_MAX):
        raise BadStatement(f"A succession plan has {ELECTORS_MIN} to {ELECTORS_MAX} electors, or none.")
    each = [members_of(one, "domain fingerprint", "An elector") for one in listed]
    electors = tuple(Elector(domain_member(one, "domain"), kid_member(one, "fingerprint")) for one in each)
    if len({one.domain for one in electors}) != len(electors):
        raise BadStatement("A succession plan names each elector once.")
    silence_s = number_member(body, "silence_s", low=SILENCE_S_MIN)
    if silence_s > SILENCE_S_MAX:
        raise BadStatement(f"silence_s of a succession plan is at most {SILENCE_S_MAX}.")
    return SuccessionPlan(
        rp_member(body),
        number_member(body, "version", low=1),
        number_member(body, "term"),
        domain_member(body, "home"),
        electors,
        silence_s,
        text_member(body, "previous", DIGEST_CHARS),
        number_member(body, "at_ms"),
    )


def signature_make(context: bytes, payload: bytes, domain: str, private_jwk: Mapping[str, Any]) -> DomainSignature:
    """Sign a payload as one of its signers."""
    signed = signing.sign(context, payload, private_jwk)
    return DomainSignature(domain, signed.kid, signed.signature)


def first_term(genesis: Mapping[str, Any]) -> HomeTerm:
    """Return term 0: the home in the genesis."""
    return HomeTerm(0, str(genesis.get("domain", "")), str(genesis.get("key", "")))


def last_term(genesis: Mapping[str, Any], record: HomeRecord) -> HomeTerm:
    """Return the present term of a verified record."""
    if not record.hand_overs:
        return first_term(genesis)
    last = hand_over_read(record.hand_overs[-1].payload)
    return HomeTerm(last.term, last.domain, last.fingerprint)


def plan_in_force(record: HomeRecord) -> SuccessionPlan | None:
    """Return the newest succession plan of a verified record; None without one, or if it is off."""
    plan = plan_read(record.plans[-1].payload) if record.plans else None
    return plan if plan is not None and plan.electors else None


def plan_digest(record: HomeRecord) -> str:
    """Return the digest of the newest succession plan of a record, as a hand-over names it; empty for none in force."""
    return digest(record.plans[-1].payload) if plan_in_force(record) is not None else ""


def record_domains(genesis: Mapping[str, Any], record: HomeRecord) -> dict[str, str]:
    """Return the domains whose keys verify a record, with their fingerprints, in the order of their first mention."""
    found = {first_term(genesis).domain: first_term(genesis).fingerprint}
    for plan in record.plans:
        for elector in plan_read(plan.payload).electors:
            found.setdefault(elector.domain, elector.fingerprint)
    for one in record.hand_overs:
        hand_over = hand_over_read(one.payload)
        found.setdefault(hand_over.domain, hand_over.fingerprint)
    return found


def record_verify(
    rp: str, genesis: Mapping[str, Any], record: HomeRecord, keys_of: KeysOf, *, held: HomeRecord = NO_RECORD
) -> HomeTerm:
    """Verify a record, except what is the same in `held`, a verified one. Returns its present term.

    Raises BadStatement; UnknownSigner where the document of a signer is missing.
    """
    terms = {0: first_term(genesis)}
    former, previous = terms[0], ""
    links: list[HandOver] = []
    for one in record.hand_overs:
        link = hand_over_read(one.payload)
        if link.rp != rp or link.term <= former.term or link.former != former.domain or link.previous != previous:
            raise BadStatement("The hand-over does not continue the one before it.")
        former, previous = HomeTerm(link.term, link.domain, link.fingerprint), digest(one.payload)
        terms[former.term] = former
        links.append(link)
    plans = _plans_verified(rp, record, terms, keys_of, held)
    holder = terms[0]
    for number, (one, link) in enumerate(zip(record.hand_overs, links, strict=True)):
        if list(held.hand_overs[number : number + 1]) != [one]:
            _hand_over_verify(one, link, holder, plans, keys_of)
        holder = terms[link.term]
    return holder


def prevails(new: HomeRecord, held: HomeRecord) -> bool:
    """Return whether `new` replaces `held`, both verified and of one RP.

    At the first hand-over in which they differ: a move by a home without a succession plan prevails, since there is
    nobody to succeed it; else the higher term; of two of one term, which prove that an elector or home equivocated, the
    greater bytes. A record that continues the other prevails over it, with hand-overs first and then with plans.
    """
    for one, other in zip(new.hand_overs, held.hand_overs, strict=False):
        if one.payload != other.payload:
            return _precedence(one.payload) > _precedence(other.payload)
    if len(new.hand_overs) != len(held.hand_overs):
        return len(new.hand_overs) > len(held.hand_overs)
    for one, other in zip(new.plans, held.plans, strict=False):
        if one.payload != other.payload:
            return _plan_precedence(one.payload) > _plan_precedence(other.payload)
    return len(new.plans) > len(held.plans)


def first_difference(new: HomeRecord, held: HomeRecord) -> tuple[Cosigned, Cosigned] | None:
    """Return the first two hand-overs in which two records differ; None where one continues the other."""
    for one, other in zip(new.hand_overs, held.hand_overs, strict=False):
        if one.payload != other.payload:
            return one, other
    return None


def equivocations(new: HomeRecord, held: HomeRecord) -> dict[str, str]:
    """Return what the first two different hand-overs of two verified records prove, as a sentence by domain: it signed both
    for one term, or it moved its RP without the succession plan that it had stated and not withdrawn."""
    differing = first_difference(new, held)
    if differing is None:
        return {}
    one, other = differing
    a, b = hand_over_read(one.payload), hand_over_read(other.payload)
    both = {it.domain for it in one.signatures} & {it.domain for it in other.signatures}
    twice = f"It signed two hand-overs of term {a.term} of {a.rp}: to {a.domain} and to {b.domain}."
    found = dict.fromkeys(sorted(both) if a.term == b.term else [], twice)
    for move, moved, rival, against in ((a, new, b, held), (b, held, a, new)):
        if move.kind == MOVE and not move.plan and _withheld(move, moved, rival, against):
            said = f"It moved {move.rp} to {move.domain} without the succession plan that it had stated."
            found.setdefault(move.former, said)
    return found


def _withheld(move: HandOver, moved: HomeRecord, rival: HandOver, against: HomeRecord) -> bool:
    """Return whether the home that moved stated the plan by which its rival took over, and did not switch succession off."""
    plan = next((plan_read(it.payload) for it in against.plans if digest(it.payload) == rival.plan), None)
    known = [plan_read(it.payload) for it in moved.plans]
    off = any(not one.electors and plan is not None and one.version > plan.version for one in known)
    return plan is not None and plan.home == move.former and not off


def valid_signatures(
    context: bytes, one: Cosigned, plan: SuccessionPlan, at_ms: int, keys_of: KeysOf
) -> list[DomainSignature]:
    """Return the valid ones of a statement's signatures that are of electors: an invalid one must not spoil the others."""
    found: list[DomainSignature] = []
    for signature in one.signatures:
        for elector in plan.electors:
            if elector.domain == signature.domain:
                with suppress(BadStatement):
                    _signed_by(context, Cosigned(one.payload, [signature]), elector, at_ms, keys_of)
                    found.append(signature)
    return found


def plan_signed_by_home(one: Cosigned, home: HomeTerm, keys_of: KeysOf) -> None:
    """Verify the home's signature of a succession plan. Raises BadStatement."""
    _signed_by(
        signing.SUCCESSION_PLAN, one, Elector(home.domain, home.fingerprint), plan_read(one.payload).at_ms, keys_of
    )


def _precedence(payload: bytes) -> tuple[bool, int, bytes]:
    link = hand_over_read(payload)
    return link.kind == MOVE and not link.plan, link.term, payload


def _plan_precedence(payload: bytes) -> tuple[int, bytes]:
    return plan_read(payload).term, payload


def _plans_verified(
    rp: str, record: HomeRecord, terms: Mapping[int, HomeTerm], keys_of: KeysOf, held: HomeRecord
) -> dict[str, SuccessionPlan]:
    found: dict[str, SuccessionPlan] = {}
    before: SuccessionPlan | None = None
    previous = ""
    for number, one in enumerate(record.plans):
        plan = plan_read(one.payload)
        home = terms.get(plan.term)
        if plan.rp != rp or plan.version != number + 1 or plan.previous != previous:
            raise BadStatement("The succession plan does not continue the one before it.")
        if home is None or home.domain != plan.home or (before is not None and plan.term < before.term):
            raise BadStatement("The succession plan is not of the home of its term.")
        if list(held.plans[number : number + 1]) != [one]:
            _plan_verify(one, plan, home, before, keys_of)
        previous, before = digest(one.payload), plan
        found[previous] = plan
    return found


def _plan_verify(
    one: Cosigned, plan: SuccessionPlan, home: HomeTerm, before: SuccessionPlan | None, keys_of: KeysOf
) -> None:
    plan_signed_by_home(one, home, keys_of)
    if before is not None and before.electors:
        _quorum_signed(signing.SUCCESSION_PLAN, one, before, plan.at_ms, keys_of)


def _hand_over_verify(
    one: Cosigned, link: HandOver, former: HomeTerm, plans: Mapping[str, SuccessionPlan], keys_of: KeysOf
) -> None:
    plan = plans.get(link.plan) if link.plan else None
    if link.plan and (plan is None or not plan.electors or plan.term > former.term):
        raise BadStatement("The hand-over names a succession plan that is not in force.")
    if link.kind == MOVE:
        _signed_by(signing.HAND_OVER, one, Elector(former.domain, former.fingerprint), link.at_ms, keys_of)
        _signed_by(signing.HAND_OVER, one, Elector(link.domain, link.fingerprint), link.at_ms, keys_of)
    elif plan is None or Elector(link.domain, link.fingerprint) not in plan.electors:
        raise BadStatement("A succession needs a plan that names the next home.")
    if plan is not None:
        _quorum_signed(signing.HAND_OVER, one, plan, link.at_ms, keys_of)


def _quorum_signed(context: bytes, one: Cosigned, plan: SuccessionPlan, at_ms: int, keys_of: KeysOf) -> None:
    """Verify the signatures of the majority of a plan's electors. Raises BadStatement."""
    named = {it.domain for it in one.signatures}
    signed = [elector for elector in plan.electors if elector.domain in named]
    if len(signed) < plan.quorum:
        raise BadStatement(f"{len(signed)} electors signed; the majority is {plan.quorum}.")
    for elector in signed:
        _signed_by(context, one, elector, at_ms, keys_of)


def _signed_by(context: bytes, one: Cosigned, who: Elector, at_ms: int, keys_of: KeysOf) -> None:
    for it in one.signatures:
        if it.domain == who.domain:
            keys = keys_of(who.domain, who.fingerprint)
            if not keys:
                raise UnknownSigner(f"The domain document of {who.domain} is not known here.")
            statement = Signed(one.payload, it.kid, it.signature)
            check_signature(context, statement, keys, at_ms, "The hand-over", who.domain)
            return
    raise BadStatement(f"The signature of {who.domain} is missing.")

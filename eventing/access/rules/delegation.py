"""Delegated tokens: the content of this domain's Biscuits. Pure; rules/biscuits.py parses the format,
verification/biscuits.py verifies signatures.

The authority block, signed by the domain, holds the claims of the JWT from which the Biscuit was made, one fact each
(`claim("sub", "ann")`; a claim that is not text, an integer or a truth value is `claim_json("ops", "[...]")`), and the
public key of its signature (`key("...")`), so that a holder can append a block offline. All claims are included,
because a policy may also refuse by a claim. Blocks appended by holders can only narrow. A check is one of

    check if time($t), $t <= 2030-01-01T00:00:00Z              also <
    check if operation("subscribe") or operation("history")
    check if rp("ID") or rp_name("/authority/a/b/") or rp_name($n), $n.starts_with("/authority/a/")

and everything else is refused, with the whole token.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventing.access.rules.biscuits import BiscuitPredicate, Block, Comparison, Date, Query, Variable
from eventing.core import strict_json
from eventing.core.errors import Unauthenticated
from eventing.core.names import NAME_CHARS_MAX, is_id
from eventing.core.principals import OPERATIONS, Scope

PREFIX = "biscuit:"
ADMITTED = "time($t), $t <= DATE; operation(OP); rp(ID); rp_name(NAME); rp_name($n), $n.starts_with(PREFIX)"


@dataclass(frozen=True, slots=True)
class Attenuation:
    """Rights left by the appended blocks of a token; a Restriction of core/principals.py.

    Attributes:
        operations: remaining operations; None for no narrowing.
        places: patterns of RPs (as in Scope), one group for each check: an RP must be covered by all groups.
    """

    operations: frozenset[str] | None
    places: tuple[Scope, ...]

    def permits(self, operation: str, rp: str, name: str) -> bool:
        """Return True if the blocks permit `operation` at this RP; `rp` is empty for operations of the domain."""
        if self.operations is not None and operation not in self.operations:
            return False
        return all(place.covers(operation, rp, name) for place in self.places)


@dataclass(frozen=True, slots=True)
class ClaimFact:
    """A claim as a fact: `name(claim, value)`."""

    name: str
    claim: str
    value: str | int | bool


def claim_facts(claims: Mapping[str, Any]) -> list[ClaimFact]:
    """Make the facts of an authority block for `claims`; `claims_of` is the inverse."""
    return [
        ClaimFact("claim", claim, value)
        if isinstance(value, str | bool | int)
        else ClaimFact("claim_json", claim, json.dumps(value, separators=(",", ":"), ensure_ascii=False))
        for claim, value in claims.items()
    ]


def claims_of(authority: Block) -> dict[str, Any]:
    """Read the claims of an authority block. Raises Unauthenticated unless it is one of this domain."""
    claims: dict[str, Any] = {}
    for fact in authority.facts:
        if fact.name == "key":
            continue  # for holders; verifiers know the domain's keys
        if len(fact.terms) != 2 or fact.name not in ("claim", "claim_json"):
            raise Unauthenticated("The Biscuit's authority block has a fact other than claim and key.")
        claim, value = fact.terms
        if not isinstance(claim, str) or not isinstance(value, str | int) or claim in claims:
            raise Unauthenticated("The Biscuit's authority block has a malformed claim.")
        claims[claim] = value if fact.name == "claim" else _json(value)
    if authority.checks:
        raise Unauthenticated("The Biscuit's authority block is not one of this domain: it has checks.")
    return claims


def attenuation_of(blocks: Sequence[Block]) -> tuple[Attenuation | None, float]:
    """Compute the rights that appended blocks leave, and their expiry in Unix seconds (infinity: none).

    None if there is no block. A block that only narrows in time also gives an Attenuation: its token counts as
    narrowed, so it cannot sign other tokens that would outlive it. Raises Unauthenticated for inadmissible blocks.
    """
    operations: frozenset[str] | None = None
    places: list[Scope] = []
    ends = math.inf
    for block in blocks:
        if block.facts:
            raise Unauthenticated("The Biscuit has a fact in an appended block; only checks are admitted.")
        for check in block.checks:
            if check[0].conditions[:1] and check[0].conditions[0].name == "time":
                ends = min(ends, _end(check))
            elif check[0].conditions[:1] and check[0].conditions[0].name == "operation":
                left = frozenset(_operation(query) for query in check)
                operations = left if operations is None else operations & left
            else:
                place = Scope(tuple(_place(query) for query in check), frozenset(OPERATIONS))
                if place not in places:
                    places.append(place)
    return (Attenuation(operations, tuple(places)) if blocks else None), ends


def _end(check: Iterable[Query]) -> float:
    (query, *more) = check
    match query:
        case Query(
            (BiscuitPredicate("time", (Variable(given),)),),
            (Comparison(Variable(compared), "<" | "<=", Date(at)),),
        ) if given == compared and not more:
            return float(at)
    raise _not_admitted()


def _operation(query: Query) -> str:
    match query:
        case Query((BiscuitPredicate("operation", (str(operation),)),), ()) if operation in OPERATIONS:
            return operation
    raise _not_admitted(f" Operations are {', '.join(OPERATIONS)}.")


def _place(query: Query) -> str:
    match query:
        case Query((BiscuitPredicate("rp", (str(rp),)),), ()) if is_id(rp):
            return rp
        case Query((BiscuitPredicate("rp_name", (str(name),)),), ()) if _is_name(name):
            return name
        case Query(
            (BiscuitPredicate("rp_name", (Variable(given),)),),
            (Comparison(Variable(compared), "starts_with", str(prefix)),),
        ) if given == compared and _is_name(prefix):
            return prefix + "*"
    raise _not_admitted(" A name, or a prefix of names, begins and ends with a slash.")


def _is_name(text: str) -> bool:
    return 3 <= len(text) <= NAME_CHARS_MAX and text[0] == "/" and text[-1] == "/"


def _not_admitted(more: str = "") -> Unauthenticated:
    return Unauthenticated(f"The Biscuit has a check that is not admitted; admitted are: {ADMITTED}.{more}")


def _json(value: object) -> Any:
    try:
        return strict_json.parse(value.encode()) if isinstance(value, str) else None
    except (strict_json.NotStrictJson, UnicodeEncodeError):
        raise Unauthenticated("The Biscuit's authority block has a claim that is not strict JSON.") from None

"""Why a principal may or may not do something at an RP, in words: the same decision as Descriptor.allows, told. Pure.

Told are claims of the bearer and what the policy says, each cut to VALUE_CHARS_MAX; never a token's text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from eventing.access.rules.policy import Policy, Rule
from eventing.access.rules.policy_issuers import ANYONE, DOMAIN, PEER
from eventing.access.rules.policy_predicates import MISSING, Predicate
from eventing.core.principals import Principal, Scope
from eventing.rps.rules.descriptor import AT_A_REPLICA, Descriptor

VALUE_CHARS_MAX = 64  # of a claim or a predicate's value as told
LISTED_MAX = 5  # members of a list as told


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What a rule that was looked at said: the rule's number and issuer, whether it matched, and why (not)."""

    rule: int
    issuer: str
    matches: bool
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision.

    Attributes:
        allowed: what was decided.
        decided_by: `rule N`, `no rule`, `administrator`, `creator`, `scopes`, `restriction`, `expiry` or `token`.
        reason: one sentence.
        rules: the rules up to the one that decided, in order; none if the policy was not asked.
    """

    allowed: bool
    decided_by: str
    reason: str
    rules: tuple[RuleFinding, ...] = ()


def explain(descriptor: Descriptor, principal: Principal, operation: str, *, now: float) -> Explanation:
    """Whether `principal` may do `operation` at the RP at `now` (Unix seconds), and what decides it."""
    if principal.expires_at <= now:
        return Explanation(False, "expiry", "The token has expired; get a new one.")
    if not _scopes_grant(principal.scopes, operation, descriptor):
        return Explanation(False, "scopes", _scopes_said(principal.scopes or (), operation))
    if not principal.permits(operation, descriptor.id, descriptor.name):
        return Explanation(
            False,
            "restriction",
            f"A condition that the delegated token carries does not hold now for {operation} here.",
        )
    if descriptor.created_by(principal):
        return Explanation(True, "creator", "The bearer created this rendezvous point and may do everything here.")
    if descriptor.home and descriptor.administered_by(principal) and operation in AT_A_REPLICA:
        reason = f"The token administers this domain, which holds a replica of an RP of {descriptor.home}'s."
        return Explanation(True, "administrator", reason)
    if not descriptor.home and descriptor.administered_by(principal):
        return Explanation(True, "administrator", "The token administers this domain, which allows everything.")
    # At a replica the rules speak of people as their home sees them.
    seen_as = replace(principal, local=principal.issuer == descriptor.home) if descriptor.home else principal
    return _by_policy(descriptor.policy, principal, operation, seen_as)


def _by_policy(policy: Policy, principal: Principal, operation: str, seen_as: Principal) -> Explanation:
    decisive = policy.decide(principal)
    seen = policy.rules if decisive is None else policy.rules[: decisive.number]
    findings = tuple(_finding(rule, seen_as, matches=rule is decisive) for rule in seen)
    if decisive is None:
        count = len(policy.rules)
        reason = (
            f"None of the policy's {count} rules matches the bearer, and what no rule allows is refused."
            if count
            else "The policy has no rules: only the creator and administrators may do anything here."
        )
        return Explanation(False, "no rule", reason, findings)
    reason = f"Rule {decisive.number} is the first that matches the bearer, and it"
    if operation in decisive.allow:
        return Explanation(True, f"rule {decisive.number}", f"{reason} allows {operation}.", findings)
    allowed = f"allows {', '.join(sorted(decisive.allow))} only" if decisive.allow else "allows nothing"
    return Explanation(
        False, f"rule {decisive.number}", f"{reason} {allowed}: {operation} is refused, whatever follows.", findings
    )


def _finding(rule: Rule, principal: Principal, *, matches: bool) -> RuleFinding:
    if matches:
        about = "all its predicates hold" if rule.predicates else "it asks for no claims"
        why = (
            f"The issuer is the bearer's, and {about}." if rule.issuer != ANYONE else f"It is for anyone, and {about}."
        )
    else:
        why = _why_not(rule, principal)
    return RuleFinding(rule.number, rule.issuer, matches, why)


def _why_not(rule: Rule, principal: Principal) -> str:
    if rule.issuer != ANYONE:
        if principal.anonymous:
            return "The bearer shows no token."
        if rule.issuer == DOMAIN and not principal.local:
            return f"The token is of {_shown(principal.issuer)}, not of this domain."
        if rule.issuer != DOMAIN and principal.local:
            return "The token is of this domain."
        if rule.issuer != DOMAIN and rule.issuer.removeprefix(PEER) != principal.issuer:
            return f"The token is of {_shown(principal.issuer)}."
        if principal.keys_from not in ("", rule.jwks) and not principal.local:
            return "The token was signed with keys from an address that this policy does not name."
    failing = next(predicate for predicate in rule.predicates if not predicate.holds(principal.claims))
    return _failed(failing, failing.find(principal.claims))


def _failed(predicate: Predicate, actual: Any) -> str:
    """Why a predicate does not hold, in one sentence."""
    claim = f"Claim {predicate.claim}"
    if actual is MISSING:
        return f"{claim} is missing."
    if predicate.test == "exists":
        return f"{claim} is there, and should not be."
    return f"{claim} is {_shown(actual)}{_NOTES.get(type(actual), '')}, {_wanted(predicate)}."


_NOTES = {list: " (a list)", str: " (a text)", bool: " (a truth value)"}


def _wanted(predicate: Predicate) -> str:
    stated = predicate.stated
    match predicate.test:
        case "in":
            few = ", ".join(_shown(value) for value in stated[:LISTED_MAX])
            return "not one of none" if not stated else f"not one of {few}" + _more(len(stated) - LISTED_MAX)
        case "prefix":
            return f"which does not begin with {_shown(stated)}"
        case "range":
            bounds = [f"{word} {_shown(stated[end])}" for end, word in _ENDS.items() if end in stated]
            return f"not a number {' and '.join(bounds)}"
        case "audience":
            return f"which neither is nor lists {_shown(stated)}"
    return f"not {_shown(stated)}{_NOTES.get(type(stated), '')}"


_ENDS = {"min": "of at least", "max": "of at most"}


def _scopes_grant(scopes: Sequence[Scope] | None, operation: str, descriptor: Descriptor) -> bool:
    return scopes is None or any(scope.covers(operation, descriptor.id, descriptor.name) for scope in scopes)


def _scopes_said(scopes: Sequence[Scope], operation: str) -> str:
    grants = [f"{_listed(sorted(scope.operations))} at {_listed(scope.rps)}" for scope in scopes[:LISTED_MAX]]
    granted = "; ".join(grants) + _more(len(scopes) - LISTED_MAX) if grants else "nothing"
    return f"The token is narrowed and does not grant {operation} here; it grants {granted}."


def _listed(texts: Sequence[str]) -> str:
    if not texts:
        return "nothing"
    return ", ".join(_cut(text) for text in texts[:LISTED_MAX]) + _more(len(texts) - LISTED_MAX)


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def _shown(value: Any) -> str:
    """A value as JSON, cut; what is no JSON (claims are) by its Python form."""
    return _cut(json.dumps(value, ensure_ascii=False, default=repr))


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_CHARS_MAX else text[: VALUE_CHARS_MAX - 3] + "..."

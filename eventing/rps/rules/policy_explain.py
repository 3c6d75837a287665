"""Explanations in words of a principal's rights at an RP: the same decision as Descriptor.allows. Pure.

They contain claims of the bearer and values of the policy, each cut to VALUE_CHARS_MAX, but never a token's text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from eventing.access.rules.policy import Policy, PolicyRule
from eventing.access.rules.policy_issuers import ANYONE, DOMAIN, PEER
from eventing.access.rules.policy_predicates import MISSING, Predicate
from eventing.core.principals import Principal, Scope
from eventing.core.shapes import Count, Shape, doc
from eventing.rps.rules.descriptor import AT_A_REPLICA, Descriptor

VALUE_CHARS_MAX = 64  # characters shown of a claim's or a predicate's value
LISTED_MAX = 5  # members shown of a list


class RuleFinding(Shape):
    """An evaluated rule, and whether it matched."""

    rule: Annotated[Count, doc("Number of the rule.")]
    issuer: str
    matches: bool
    why: Annotated[str, doc("The reason, one sentence.")]


class PolicyExplanationAnswer(Shape):
    """Decision of a policy about one bearer and one operation."""

    allowed: bool
    decided_by: Annotated[str, doc("rule N, no rule, administrator, creator, scopes, restriction, expiry or token.")]
    reason: Annotated[str, doc("One sentence.")]
    rules: Annotated[
        list[RuleFinding],
        doc("The rules up to the deciding one; empty if the policy was not evaluated, or is not visible to you."),
    ]


def explain(descriptor: Descriptor, principal: Principal, operation: str, *, now: float) -> PolicyExplanationAnswer:
    """Decide whether `principal` may do `operation` at the RP at `now` (Unix seconds), and explain what decides."""
    if principal.expires_at <= now:
        return PolicyExplanationAnswer(False, "expiry", "The token has expired; get a new one.", [])
    if not _scopes_grant(principal.scopes, operation, descriptor):
        return PolicyExplanationAnswer(False, "scopes", _scopes_said(principal.scopes or (), operation), [])
    if not principal.permits(operation, descriptor.id, descriptor.name):
        return PolicyExplanationAnswer(
            False,
            "restriction",
            f"A condition of the delegated token does not hold now for {operation} here.",
            [],
        )
    if descriptor.created_by(principal):
        return PolicyExplanationAnswer(
            True, "creator", "The bearer created this rendezvous point and may do everything here.", []
        )
    if descriptor.home and descriptor.administered_by(principal) and operation in AT_A_REPLICA:
        reason = f"The token administers this domain, which holds a replica of an RP of {descriptor.home}'s."
        return PolicyExplanationAnswer(True, "administrator", reason, [])
    if not descriptor.home and descriptor.administered_by(principal):
        return PolicyExplanationAnswer(
            True, "administrator", "The token administers this domain, which allows everything.", []
        )
    # The rules describe bearers as the domain that created the RP sees them.
    authority = descriptor.authority
    seen_as = replace(principal, local=principal.issuer == authority) if authority else principal
    return _by_policy(descriptor.policy, principal, operation, seen_as)


def _by_policy(policy: Policy, principal: Principal, operation: str, seen_as: Principal) -> PolicyExplanationAnswer:
    decisive = policy.decide(principal)
    seen = policy.rules if decisive is None else policy.rules[: decisive.number]
    findings = [_finding(rule, seen_as, matches=rule is decisive) for rule in seen]
    if decisive is None:
        count = len(policy.rules)
        reason = (
            f"None of the policy's {count} rules matches the bearer; an operation that no rule allows is refused."
            if count
            else "The policy has no rules: only the creator and administrators may do anything here."
        )
        return PolicyExplanationAnswer(False, "no rule", reason, findings)
    reason = f"Rule {decisive.number} is the first that matches the bearer, and it"
    if operation in decisive.allow:
        return PolicyExplanationAnswer(True, f"rule {decisive.number}", f"{reason} allows {operation}.", findings)
    allowed = f"allows {', '.join(sorted(decisive.allow))} only" if decisive.allow else "allows nothing"
    return PolicyExplanationAnswer(
        False,
        f"rule {decisive.number}",
        f"{reason} {allowed}: {operation} is refused, whatever rules follow.",
        findings,
    )


def _finding(rule: PolicyRule, principal: Principal, *, matches: bool) -> RuleFinding:
    if matches:
        about = "all its predicates hold" if rule.predicates else "it has no predicates"
        why = (
            f"The rule's issuer is the bearer's, and {about}."
            if rule.issuer != ANYONE
            else f"The rule is for anyone, and {about}."
        )
    else:
        why = _why_not(rule, principal)
    return RuleFinding(rule.number, rule.issuer, matches, why)


def _why_not(rule: PolicyRule, principal: Principal) -> str:
    if rule.issuer != ANYONE:
        if principal.anonymous:
            return "The bearer has no token."
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
    """Explain in one sentence why a predicate does not hold."""
    claim = f"Claim {predicate.claim}"
    if actual is MISSING:
        return f"{claim} is missing."
    if predicate.test == "exists":
        return f"{claim} is present, and should not be."
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
    """Format a value as JSON, cut; values that are not JSON by their Python form."""
    return _cut(json.dumps(value, ensure_ascii=False, default=repr))


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_CHARS_MAX else text[: VALUE_CHARS_MAX - 3] + "..."

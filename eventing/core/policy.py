"""Who may do what at an RP: an ordered list of rules, first match wins, no match refuses. Pure, no per-client state.

A rule reads *issuer + claim predicates -> operations*. For now the issuer is `domain` (this domain's own tokens); the
language is the one that foreign issuers will use too. As JSON:

    [{"issuer": "domain", "claims": {"sub": {"in": ["ann", "ben"]}}, "allow": ["publish", "subscribe"]},
     {"issuer": "domain", "allow": ["describe", "subscribe", "history"]}]

A claim predicate is one of `{"equals": value}`, `{"in": [values]}`, `{"prefix": "text"}`, `{"exists": true|false}`;
all predicates of a rule must hold. The RP's creator and the domain's administrators may always do everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventing.core.errors import InvalidRequest
from eventing.core.principals import Principal

OPERATIONS = ("describe", "publish", "subscribe", "history", "administer")
RULES_MAX = 1000
PREDICATES_MAX = 32
VALUES_MAX = 1000
TEXT_CHARS_MAX = 1024
_TESTS = ("equals", "in", "prefix", "exists")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a policy, compiled: predicates as (claim, test, value)."""

    predicates: tuple[tuple[str, str, Any], ...]
    allow: frozenset[str]

    def matches(self, claims: Mapping[str, Any]) -> bool:
        """Whether every predicate holds for `claims`."""
        return all(_holds(claims.get(claim, _MISSING), test, value) for claim, test, value in self.predicates)


@dataclass(frozen=True, slots=True)
class Policy:
    """A compiled policy; make one with `compile_policy`, once per descriptor version."""

    rules: tuple[Rule, ...]

    def allows(self, principal: Principal, operation: str) -> bool:
        """Whether the first rule that matches `principal` lists `operation`."""
        for rule in self.rules:
            if rule.matches(principal.claims):
                return operation in rule.allow
        return False


OPEN_TO_DOMAIN = [{"issuer": "domain", "allow": ["describe", "publish", "subscribe", "history"]}]
ADMINISTRATORS_ONLY: list[dict[str, Any]] = []


def compile_policy(document: Any) -> Policy:
    """Compile a policy document. Raises InvalidRequest naming the rule that is wrong; nothing is ignored."""
    if not isinstance(document, Sequence) or isinstance(document, str):
        raise InvalidRequest("policy is a list of rules.")
    if len(document) > RULES_MAX:
        raise InvalidRequest(f"policy has at most {RULES_MAX} rules.")
    return Policy(tuple(_compile_rule(number, rule) for number, rule in enumerate(document, 1)))


def _compile_rule(number: int, rule: Any) -> Rule:
    if not isinstance(rule, Mapping) or set(rule) - {"issuer", "claims", "allow"}:
        raise InvalidRequest(f"policy rule {number}: a rule has the members issuer, claims and allow only.")
    if rule.get("issuer") != "domain":
        raise InvalidRequest(f'policy rule {number}: issuer must be "domain".')
    allow = rule.get("allow")
    if not isinstance(allow, Sequence) or isinstance(allow, str) or not all(op in OPERATIONS for op in allow):
        raise InvalidRequest(f"policy rule {number}: allow is a list of {', '.join(OPERATIONS)}.")
    claims = rule.get("claims", {})
    if not isinstance(claims, Mapping) or len(claims) > PREDICATES_MAX:
        raise InvalidRequest(f"policy rule {number}: claims is an object of at most {PREDICATES_MAX} predicates.")
    return Rule(tuple(_compile_predicate(number, claim, test) for claim, test in claims.items()), frozenset(allow))


def _compile_predicate(number: int, claim: str, predicate: Any) -> tuple[str, str, Any]:
    if not isinstance(predicate, Mapping) or len(predicate) != 1:
        raise InvalidRequest(f"policy rule {number}: claim {claim} takes exactly one of {', '.join(_TESTS)}.")
    ((test, value),) = predicate.items()
    if test == "equals" and isinstance(value, str | int | bool):
        return claim, test, value
    if (
        test == "in"
        and isinstance(value, list)
        and len(value) <= VALUES_MAX
        and all(isinstance(v, str | int) for v in value)
    ):
        return claim, test, frozenset((type(v), v) for v in value)  # in Python True == 1, here it is not
    if test == "prefix" and isinstance(value, str) and len(value) <= TEXT_CHARS_MAX:
        return claim, test, value
    if test == "exists" and isinstance(value, bool):
        return claim, test, value
    raise InvalidRequest(f"policy rule {number}: claim {claim} has a predicate that is not understood.")


def _holds(actual: Any, test: str, value: Any) -> bool:
    if test == "exists":
        return (actual is not _MISSING) is value
    if actual is _MISSING:
        return False
    if test == "equals":
        return type(actual) is type(value) and actual == value
    if test == "in":
        return isinstance(actual, str | int) and (type(actual), actual) in value
    return isinstance(actual, str) and actual.startswith(value)

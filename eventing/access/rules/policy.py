"""Access policies of RPs: an ordered list of rules, first match wins, no match refuses. Pure, without per-client state.

A rule reads *issuer + claim predicates -> operations*. As JSON:

    [{"issuer": "domain", "claims": {"sub": {"in": ["ann", "ben"]}}, "allow": ["publish", "subscribe"]},
     {"issuer": "https://id.example.org", "claims": {"age": {"range": {"min": 18}}}, "allow": ["subscribe"]},
     {"issuer": "anyone", "allow": ["describe"]}]

| issuer | the rule applies to |
|---|---|
| `domain` | bearers of this domain's own tokens |
| `peer:NAME` | bearers of tokens of the peer domain NAME |
| `https://...` | bearers of tokens of that OIDC issuer, by the keys it publishes itself or those at the rule's `jwks` address |
| `anyone` | everybody, with or without a token |

Predicates are defined in access/rules/policy_predicates.py; all of a rule must hold. The first rule whose issuer and
predicates match decides, also if it does not list the operation. The RP's creator and the domain's administrators may
always do everything (rps/rules/descriptor.py). docs/policy.md describes policies for users.

A principal is compared only with the rules of its own issuer and those for anyone: rules of other issuers cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from eventing.access.rules.policy_issuers import (
    ADDRESS_CHARS_MAX,
    ANYONE,
    DOMAIN,
    PEER,
    is_address,
    is_foreign_issuer,
    is_peer,
)
from eventing.access.rules.policy_predicates import Predicate, compile_predicate
from eventing.core.container import memoized
from eventing.core.errors import InvalidRequest
from eventing.core.principals import OPERATIONS, Principal

# Compact JSON; a request body (rest/parsers.py) has the same bound.
POLICY_BYTES_MAX = 64 * 1024  # bound: bytes of a policy; the policy is refused
RULES_MAX = 1000  # bound: rules of a policy; the policy is refused
# A token has at most 64 claims (access/rules/tokens.py).
PREDICATES_MAX = 32  # bound: predicates of a rule; the policy is refused
# Each issuer costs the domain periodic fetches of its keys.
ISSUERS_MAX = 64  # bound: OIDC issuers of a policy; the policy is refused
CACHED = 1024  # bound: compiled policies that equal policies share; the least recently used policy is compiled again
# bound: bytes of a policy that is shared; a larger policy is compiled for its descriptor alone
CACHED_BYTES_MAX = (
    2048  # longer ones are compiled for each descriptor, so that strangers' policies cannot fill the cache
)

OPEN_TO_DOMAIN = [{"issuer": "domain", "allow": ["describe", "publish", "subscribe", "history"]}]
ADMINISTRATORS_ONLY: list[dict[str, Any]] = []


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One line of a policy, compiled. `number` counts from 1; `jwks` is empty if the rule states none."""

    number: int
    issuer: str
    jwks: str
    predicates: tuple[Predicate, ...]
    allow: frozenset[str]

    def matches(self, claims: Mapping[str, Any]) -> bool:
        """Return True if every predicate holds for `claims`; their issuer is checked elsewhere."""
        for predicate in self.predicates:  # noqa: SIM110 - the hot path: half the time of all(...)
            if not predicate.holds(claims):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Policy:
    """A compiled policy, made by `compile_policy`.

    Attributes:
        rules: all rules, in order.
        issuers: OIDC issuers in the rules, each as (issuer, its JWKS address or empty).
    """

    rules: tuple[PolicyRule, ...]
    issuers: frozenset[tuple[str, str]]
    _domain: tuple[PolicyRule, ...] = field(repr=False)
    _anyone: tuple[PolicyRule, ...] = field(repr=False)
    _foreign: Mapping[str, tuple[PolicyRule, ...]] = field(repr=False)

    def allows(self, principal: Principal, operation: str) -> bool:
        """Return True if the first rule that matches `principal` lists `operation`."""
        rule = self.decide(principal)
        return rule is not None and operation in rule.allow

    def seen_from(self, domain: str, home: str) -> Policy:
        """Translate the policy of an RP that `home` created for evaluation at `domain`.

        The same rules apply to the same bearers: `domain` means bearers of the home's tokens, who are foreign here, and
        `peer:DOMAIN` means bearers of this domain's tokens. Rules for anyone and of OIDC issuers stay unchanged. At the
        home the policy is unchanged.
        """
        if domain == home:
            return self
        foreign = {issuer: rules for issuer, rules in self._foreign.items() if issuer not in (domain, home)}
        if self._domain:
            foreign[home] = self._domain
        own = self._foreign.get(domain, ())
        return Policy(self.rules, self.issuers, own, self._anyone, MappingProxyType(foreign))

    def decide(self, principal: Principal) -> PolicyRule | None:
        """Return the first rule that matches `principal`, whatever it allows; None if none does, which refuses."""
        claims = principal.claims
        own = None
        for rule in self.rules_of(principal):
            if rule.matches(claims):
                own = rule
                break
        for rule in self._anyone:
            if own is not None and own.number < rule.number:
                break
            if rule.matches(claims):
                return rule
        return own

    def rules_of(self, principal: Principal) -> tuple[PolicyRule, ...]:
        """Return the rules for the principal's issuer, without those for anyone."""
        if principal.anonymous:
            return ()
        if principal.local:
            return self._domain
        rules = self._foreign.get(principal.issuer, ())
        # Tokens signed by the issuer's own keys match. Keys from elsewhere count only if this policy names their
        # address.
        return rules if rules and principal.keys_from in ("", rules[0].jwks) else ()


def compile_policy(document: Any) -> Policy:
    """Compile a policy document. Equal short documents share one cached Policy.

    Raises InvalidRequest naming the invalid rule; nothing is ignored.
    """
    if not isinstance(document, Sequence) or isinstance(document, str | bytes):
        raise InvalidRequest("policy is a list of rules.")
    if len(document) > RULES_MAX:
        raise InvalidRequest(
            f"policy has at most {RULES_MAX} rules, not {len(document)}; a rule about a claim covers any number of people."
        )
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):
        raise InvalidRequest("policy is a list of rules, in JSON only: finite numbers and valid text.") from None
    if size > POLICY_BYTES_MAX:
        raise InvalidRequest(f"policy has at most {POLICY_BYTES_MAX} bytes as JSON, not {size}.")
    return _shared(text) if size <= CACHED_BYTES_MAX else _compiled(text)


def _compiled(text: str) -> Policy:
    rules = tuple(_compile_rule(number, rule) for number, rule in enumerate(json.loads(text), 1))
    foreign: dict[str, list[PolicyRule]] = {}
    for rule in rules:
        if rule.issuer not in (DOMAIN, ANYONE):
            foreign.setdefault(rule.issuer.removeprefix(PEER), []).append(rule)
    return Policy(
        rules,
        _issuers(rules),
        tuple(rule for rule in rules if rule.issuer == DOMAIN),
        tuple(rule for rule in rules if rule.issuer == ANYONE),
        MappingProxyType({issuer: tuple(group) for issuer, group in foreign.items()}),
    )


_shared = memoized(maxsize=CACHED)(_compiled)


def _issuers(rules: Sequence[PolicyRule]) -> frozenset[tuple[str, str]]:
    """Collect the OIDC issuers, each with one source of keys; two sources for one issuer are refused."""
    found: dict[str, str] = {}
    for rule in rules:
        if is_foreign_issuer(rule.issuer) and found.setdefault(rule.issuer, rule.jwks) != rule.jwks:
            raise InvalidRequest(
                f"policy rule {rule.number}: state the same jwks in every rule of issuer {rule.issuer}, or in none."
            )
    if len(found) > ISSUERS_MAX:
        raise InvalidRequest(f"policy names at most {ISSUERS_MAX} OIDC issuers, not {len(found)}.")
    return frozenset(found.items())


def _compile_rule(number: int, rule: Any) -> PolicyRule:
    where = f"policy rule {number}"
    if not isinstance(rule, Mapping) or set(rule) - {"issuer", "jwks", "claims", "allow"}:
        raise InvalidRequest(f"{where}: a rule has the members issuer, jwks, claims and allow only.")
    issuer = rule.get("issuer")
    if not isinstance(issuer, str) or not (issuer in (DOMAIN, ANYONE) or is_peer(issuer) or is_foreign_issuer(issuer)):
        raise InvalidRequest(
            f'{where}: issuer is "domain", "anyone", "peer:NAME" or the https address of an OIDC issuer,'
            f" of at most {ADDRESS_CHARS_MAX} characters, without query or fragment."
        )
    jwks = rule.get("jwks", "")
    if "jwks" in rule and not (isinstance(jwks, str) and is_address(jwks) and is_foreign_issuer(issuer)):
        raise InvalidRequest(f"{where}: jwks is an https address, in rules of an OIDC issuer only.")
    allow = rule.get("allow")
    if not isinstance(allow, list) or not all(operation in OPERATIONS for operation in allow):
        raise InvalidRequest(f"{where}: allow is a list of {', '.join(OPERATIONS)}.")
    claims = rule.get("claims", {})
    if not isinstance(claims, Mapping) or len(claims) > PREDICATES_MAX:
        raise InvalidRequest(f"{where}: claims is an object of at most {PREDICATES_MAX} predicates.")
    try:
        predicates = tuple(compile_predicate(claim, predicate) for claim, predicate in claims.items())
    except ValueError as error:
        raise InvalidRequest(f"{where}: {error}") from None
    return PolicyRule(number, issuer, jwks, predicates, frozenset(allow))

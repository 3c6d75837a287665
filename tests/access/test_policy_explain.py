"""Explanations agree with the decision, and evaluation with a reference written from the documentation alone."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventing.access.rules.policy import compile_policy
from eventing.core.events.ack_level import Ack
from eventing.core.events.history import HistoryBounds
from eventing.core.principals import ANONYMOUS, OPERATIONS, Principal, Scope
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.rules.policy_explain import PolicyExplanationAnswer, explain

ID, KEYS = "https://id.example.org", "https://keys.example.org/jwks"
RP, NAME = "a" * 26, "/localhost/sensors/roof/"
NOW = 1000.0


class Only:
    """A restriction that permits one operation."""

    def __init__(self, operation: str) -> None:
        self.operation = operation

    def permits(self, operation: str, rp: str, name: str) -> bool:
        return operation == self.operation and (rp, name) == (RP, NAME)


def descriptor(document: Any, creator: str = "zoe") -> Descriptor:
    policy = compile_policy(document)
    return Descriptor(RP, creator, 1, policy, Ack.parse("stored"), HistoryBounds(1, 1), float("inf"), NAME)


def local(subject: str = "ann", *, scopes: tuple[Scope, ...] | None = None, **claims: Any) -> Principal:
    claims = {"iss": "localhost", "sub": subject, **claims}
    return Principal("localhost", subject, claims.get("admin") is True, NOW + 60, claims, scopes)


def asked(document: Any, who: Principal, operation: str = "publish", creator: str = "zoe") -> PolicyExplanationAnswer:
    rp = descriptor(document, creator)
    explanation = explain(rp, who, operation, now=NOW)
    assert explanation.allowed is rp.allows(who, operation)
    assert explanation.reason.endswith(".")
    assert all(finding.why.endswith(".") for finding in explanation.rules)
    return explanation


def whys(explanation: PolicyExplanationAnswer) -> list[str]:
    return [finding.why for finding in explanation.rules]


# An evaluator written from docs/policy.md without looking at access/rules/policy.py: slow, plain, and the judge of it.


def reference_allows(document: list[dict[str, Any]], who: Principal, operation: str) -> bool:
    for rule in document:
        if reference_issuer(rule, who) and all(
            reference_predicate(who.claims, claim, *next(iter(predicate.items())))
            for claim, predicate in rule.get("claims", {}).items()
        ):
            return operation in rule["allow"]
    return False


def reference_issuer(rule: dict[str, Any], who: Principal) -> bool:
    if rule["issuer"] == "anyone":
        return True
    if who.issuer == "":
        return False
    if rule["issuer"] == "domain":
        return who.local
    named = rule["issuer"][5:] if rule["issuer"].startswith("peer:") else rule["issuer"]
    return not who.local and named == who.issuer and (who.keys_from == "" or rule.get("jwks") == who.keys_from)


def reference_predicate(claims: Any, claim: str, test: str, value: Any) -> bool:
    names = claim.split("/")[1:] if claim.startswith("/") else [claim]
    for name in names:
        if not isinstance(claims, dict) or name not in claims:
            return test == "exists" and value is False
        claims = claims[name]

    def same(left: Any, right: Any) -> bool:
        return json.dumps(left) == json.dumps(right)  # in JSON 1, 1.0, true and "1" are written differently

    if test == "exists":
        return value is True
    if test == "equals":
        return same(claims, value)
    if test == "in":
        return any(same(claims, one) for one in value)
    if test == "prefix":
        return isinstance(claims, str) and claims[: len(value)] == value
    if test == "audience":
        return any(same(one, value) for one in (claims if isinstance(claims, list) else [claims]))
    assert test == "range"
    if isinstance(claims, bool) or not isinstance(claims, int | float):
        return False
    return bool(value.get("min", claims) <= claims <= value.get("max", claims))


# Few names and values, so that rules and bearers meet often.

values = st.sampled_from(["", "a", "ab", "1", "true", 0, 1, 2, True, False])
claim_values = values | st.sampled_from(
    [1.0, 1.5, -1, None, [], ["a"], ["a", "b"], [1], [True], {"r": ["a"]}, {"r": 1}, {}]
)
claim_names = st.sampled_from(["x", "y", "sub", "iss", "/x/r", "/y", "x.r"])
claims = st.dictionaries(st.sampled_from(["x", "y", "sub", "iss", "admin", "x.r", "/y"]), claim_values, max_size=4)
numbers = st.sampled_from([-1, 0, 0.5, 1, 1.5, 2])
ranges = st.one_of(
    st.builds(lambda low: {"min": low}, numbers),
    st.builds(lambda high: {"max": high}, numbers),
    st.builds(lambda one, other: {"min": min(one, other), "max": max(one, other)}, numbers, numbers),
)
predicates = st.one_of(
    st.builds(lambda v: {"equals": v}, values),
    st.builds(lambda v: {"in": v}, st.lists(values, max_size=3)),
    st.builds(lambda v: {"prefix": v}, st.sampled_from(["", "a", "ab"])),
    st.builds(lambda v: {"exists": v}, st.booleans()),
    st.builds(lambda v: {"range": v}, ranges),
    st.builds(lambda v: {"audience": v}, st.sampled_from(["a", "b", "1"])),
)
issuers = st.sampled_from(
    [{"issuer": i} for i in ("domain", "anyone", "peer:b.example", "peer:domain", ID)]
    + [{"issuer": "https://other.example", "jwks": KEYS}]
)
rules = st.builds(
    lambda issuer, claims, allow: {**issuer, "claims": claims, "allow": allow},
    issuers,
    st.dictionaries(claim_names, predicates, max_size=2),
    st.lists(st.sampled_from(OPERATIONS), max_size=4),
)
policies = st.lists(rules, max_size=6)
scopes = st.none() | st.lists(
    st.builds(
        Scope,
        st.sampled_from([("*",), (RP,), (NAME,), ("/localhost/*",), ("/elsewhere/*",), ()]),
        st.frozensets(st.sampled_from(OPERATIONS)),
    ),
    max_size=2,
).map(tuple)
bearers = st.just(ANONYMOUS) | st.builds(
    Principal,
    st.sampled_from(["localhost", "domain", "anyone", "b.example", ID, "https://other.example"]),
    st.sampled_from(["ann", "zoe", "root"]),
    st.booleans(),
    st.just(NOW + 60),
    claims,
    scopes,
    st.booleans(),
    restriction=st.none() | st.sampled_from(OPERATIONS).map(Only),
    keys_from=st.sampled_from(["", KEYS, "https://evil.example/keys"]),
)


@settings(max_examples=200)
@given(policies, bearers, st.sampled_from(OPERATIONS))
def test_evaluation_equals_the_reference(document: list[dict[str, Any]], who: Principal, operation: str) -> None:
    assert compile_policy(document).allows(who, operation) == reference_allows(document, who, operation)


@given(policies, bearers, st.sampled_from(OPERATIONS), st.sampled_from(["", "zoe", f"{ID}#ann"]))
def test_explanation_agrees_with_the_decision_and_with_the_reference(
    document: list[dict[str, Any]], who: Principal, operation: str, creator: str
) -> None:
    explanation = asked(document, who, operation, creator)
    matching = [finding.rule for finding in explanation.rules if finding.matches]
    assert [finding.rule for finding in explanation.rules] == list(range(1, len(explanation.rules) + 1))
    if explanation.decided_by.startswith("rule "):
        assert matching == [len(explanation.rules)] == [int(explanation.decided_by.removeprefix("rule "))]
        assert explanation.allowed is reference_allows(document, who, operation)
    elif explanation.decided_by == "no rule":
        assert not explanation.allowed
        assert (matching, len(explanation.rules)) == ([], len(document))
    else:
        assert explanation.decided_by in ("scopes", "restriction", "administrator", "creator")
        assert explanation.rules == []


@given(policies, bearers)
def test_foreign_admin_claims_never_count(document: list[dict[str, Any]], who: Principal) -> None:
    attacker = dataclasses.replace(who, admin=True, local=False, claims={**who.claims, "admin": True})
    rp = descriptor(document, creator="zoe")
    for operation in OPERATIONS:
        assert not rp.allows(attacker, operation) or reference_allows(document, attacker, operation)


def test_attack_foreign_bearer_with_the_creators_subject_is_not_the_creator() -> None:
    creator = Principal(ID, "zoe", False, NOW + 60, {"sub": "zoe"}, local=False)
    assert asked([], local("zoe")).decided_by == "creator"
    assert asked([], creator).decided_by == "no rule"
    assert asked([], creator, creator=f"{ID}#zoe").decided_by == "creator"
    assert asked([], dataclasses.replace(creator, keys_from=KEYS), creator=f"{ID}#zoe").decided_by == "no rule"
    assert asked([], ANONYMOUS, creator="#").decided_by == "no rule"


def test_what_decides_before_the_policy_is_named() -> None:
    document = [{"issuer": "anyone", "allow": list(OPERATIONS)}]
    expired = dataclasses.replace(local(), expires_at=NOW)
    assert explain(descriptor(document), expired, "publish", now=NOW).decided_by == "expiry"
    narrow = asked(document, local(scopes=(Scope(("/localhost/other/*",), frozenset({"publish", "history"})),)))
    assert narrow.decided_by == "scopes"
    assert narrow.reason == (
        "The token is narrowed and does not grant publish here; it grants history, publish at /localhost/other/*."
    )
    assert asked(document, local(scopes=())).reason.endswith("it grants nothing.")
    assert asked(document, dataclasses.replace(local(), restriction=Only("history"))).decided_by == "restriction"
    assert asked(document, local(admin=True), "administer").decided_by == "administrator"
    assert asked(document, local(admin=True, scopes=())).decided_by == "scopes"


def test_first_failing_predicate_says_why() -> None:
    document = [
        {"issuer": ID, "allow": ["publish"]},
        {"issuer": "peer:b.example", "allow": ["publish"]},
        {"issuer": "domain", "claims": {"sub": {"equals": "ann"}, "team": {"equals": "red"}}, "allow": []},
        {"issuer": "domain", "claims": {"age": {"range": {"min": 18, "max": 65}}}, "allow": []},
        {"issuer": "anyone", "claims": {"age": {"equals": "17"}}, "allow": []},
        {"issuer": "domain", "claims": {"sub": {"in": [str(n) for n in range(7)]}}, "allow": []},
        {"issuer": "domain", "claims": {"sub": {"prefix": "b"}}, "allow": []},
        {"issuer": "domain", "claims": {"sub": {"exists": False}}, "allow": []},
        {"issuer": "domain", "claims": {"/realm/roles": {"audience": "editor"}}, "allow": []},
        {"issuer": "domain", "claims": {"age": {"range": {"max": 3}}}, "allow": []},
        {"issuer": "domain", "claims": {"sub": {"in": []}}, "allow": []},
        {"issuer": "domain", "claims": {"age": {"equals": 17}}, "allow": ["publish", "describe"]},
        {"issuer": "anyone", "allow": []},
    ]
    explanation = asked(document, local(age=17, realm={"roles": ["reader"]}), "history")
    assert whys(explanation) == [
        "The token is of this domain.",
        "The token is of this domain.",
        "Claim team is missing.",
        "Claim age is 17, not a number of at least 18 and of at most 65.",
        'Claim age is 17, not "17" (a text).',
        'Claim sub is "ann" (a text), not one of "0", "1", "2", "3", "4" and 2 more.',
        'Claim sub is "ann" (a text), which does not begin with "b".',
        "Claim sub is present, and should not be.",
        'Claim /realm/roles is ["reader"] (a list), which neither is nor lists "editor".',
        "Claim age is 17, not a number of at most 3.",
        'Claim sub is "ann" (a text), not one of none.',
        "The rule's issuer is the bearer's, and all its predicates hold.",
    ]
    assert (explanation.allowed, explanation.decided_by) == (False, "rule 12")
    assert explanation.reason == (
        "Rule 12 is the first that matches the bearer, and it allows describe, publish only: "
        "history is refused, whatever rules follow."
    )
    assert asked(document, local(age=17), "publish").reason == (
        "Rule 12 is the first that matches the bearer, and it allows publish."
    )


def test_issuers_say_why() -> None:
    document = [
        {"issuer": "domain", "allow": []},
        {"issuer": "peer:b.example", "allow": []},
        {"issuer": ID, "jwks": KEYS, "claims": {"age": {"exists": True}}, "allow": []},
        {"issuer": "https://other.example", "allow": []},
    ]
    bearer = Principal(ID, "ann", False, NOW + 60, {}, local=False)
    assert whys(asked(document, bearer)) == [
        f'The token is of "{ID}", not of this domain.',
        f'The token is of "{ID}".',
        "Claim age is missing.",
        f'The token is of "{ID}".',
    ]
    forged = dataclasses.replace(bearer, keys_from="https://evil.example/keys")
    assert whys(asked(document, forged))[2] == (
        "The token was signed with keys from an address that this policy does not name."
    )
    assert whys(asked(document, ANONYMOUS)) == ["The bearer has no token."] * 4
    assert asked(document, ANONYMOUS).reason == (
        "None of the policy's 4 rules matches the bearer; an operation that no rule allows is refused."
    )
    assert asked([], ANONYMOUS).reason == (
        "The policy has no rules: only the creator and administrators may do anything here."
    )
    assert whys(asked([{"issuer": "anyone", "allow": ["publish"]}], ANONYMOUS)) == [
        "The rule is for anyone, and it has no predicates."
    ]


@pytest.mark.parametrize("value", ["x" * 5000, ["y" * 5000], {"z": list(range(5000))}, float("nan"), object()])
def test_long_and_strange_claims_are_told_in_few_characters(value: Any) -> None:
    document = [{"issuer": "domain", "claims": {"c": {"equals": "w" * 1000}}, "allow": []}]
    (why,) = whys(asked(document, local(c=value)))
    assert len(why) < 200

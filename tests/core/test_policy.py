"""Policies: the first rule that matches decides, no rule refuses, and nothing in a policy is silently ignored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import InvalidRequest
from eventing.core.policy import (
    ADMINISTRATORS_ONLY,
    OPEN_TO_DOMAIN,
    OPERATIONS,
    PREDICATES_MAX,
    RULES_MAX,
    TEXT_CHARS_MAX,
    VALUES_MAX,
    Principal,
    compile_policy,
)


def principal(**claims: Any) -> Principal:
    return Principal("localhost", claims.get("sub", "ann"), False, 0, claims)


def allows(document: Any, operation: str = "publish", **claims: Any) -> bool:
    return compile_policy(document).allows(principal(**claims), operation)


def rule(*allow: str, **claims: Any) -> dict[str, Any]:
    return {"issuer": "domain", "claims": claims, "allow": list(allow)}


def test_open_policy_allows_everything_but_administration() -> None:
    assert [operation for operation in OPERATIONS if not allows(OPEN_TO_DOMAIN, operation)] == ["administer"]


def test_policy_without_rules_refuses_everything() -> None:
    assert not any(allows(ADMINISTRATORS_ONLY, operation) for operation in OPERATIONS)


def test_first_rule_that_matches_decides() -> None:
    document = [rule(sub={"equals": "eve"}), rule("publish")]
    assert allows(document, sub="ann")
    assert not allows(document, sub="eve")


def test_all_predicates_of_a_rule_must_hold() -> None:
    document = [rule("publish", sub={"equals": "ann"}, group={"in": ["a", "b"]})]
    assert allows(document, sub="ann", group="b")
    assert not allows(document, sub="ann", group="c")
    assert not allows(document, sub="ann")
    assert not allows(document, sub="ben", group="a")


@pytest.mark.parametrize(
    ("predicate", "holds", "fails"),
    [
        ({"equals": "x"}, ["x"], ["X", "xx", 1, None, ["x"], {}]),
        ({"equals": 1}, [1], [True, "1", 1.0, 2]),
        ({"equals": True}, [True], [1, "true", False]),
        ({"in": ["x", 1]}, ["x", 1], ["y", 2, True, 1.0, None, ["x"], {"x": 1}]),
        ({"in": []}, [], ["", 0]),
        ({"prefix": "x/"}, ["x/", "x/y"], ["x", "y/x/", 1, ["x/"]]),
        ({"prefix": ""}, ["", "x"], [1, None]),
        ({"exists": True}, ["x", None, False, 0], []),
        ({"exists": False}, [], ["x", None, False, 0]),
    ],
)
def test_predicate_holds_for_its_values_and_their_types_only(
    predicate: dict[str, Any], holds: list[Any], fails: list[Any]
) -> None:
    document = [rule("publish", claim=predicate)]
    assert [value for value in holds if not allows(document, claim=value)] == []
    assert [value for value in fails if allows(document, claim=value)] == []


def test_missing_claim_holds_for_its_absence_only() -> None:
    assert allows([rule("publish", claim={"exists": False})])
    for predicate in ({"exists": True}, {"equals": "x"}, {"in": ["x"]}, {"prefix": ""}):
        assert not allows([rule("publish", claim=predicate)])


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (None, "list of rules"),
        ("x", "list of rules"),
        ({}, "list of rules"),
        ([None], "rule 1"),
        ([rule("publish"), {}], "rule 2: issuer"),
        ([{"issuer": "domain"}], "rule 1: allow"),
        ([{"issuer": "domain", "allow": "publish"}], "rule 1: allow"),
        ([{"issuer": "domain", "allow": ["fly"]}], "rule 1: allow"),
        ([{"issuer": "domain", "allow": [["publish"]]}], "rule 1: allow"),
        ([{"issuer": "peer", "allow": []}], "rule 1: issuer"),
        ([{"issuer": "domain", "allow": [], "deny": []}], "rule 1: a rule has"),
        ([{"issuer": "domain", "allow": [], "claims": []}], "rule 1: claims"),
        ([rule(**{f"c{n}": {"exists": True} for n in range(PREDICATES_MAX + 1)})], "rule 1: claims"),
        ([rule()] * (RULES_MAX + 1), "at most"),
    ],
)
def test_malformed_policy_is_refused_with_the_rule(document: Any, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        compile_policy(document)


@pytest.mark.parametrize(
    "predicate",
    [
        None,
        "x",
        {},
        {"equals": "a", "prefix": "b"},
        {"equals": None},
        {"equals": 1.5},
        {"equals": []},
        {"in": "ab"},
        {"in": [None]},
        {"in": [[]]},
        {"in": ["x"] * (VALUES_MAX + 1)},
        {"prefix": 1},
        {"prefix": "x" * (TEXT_CHARS_MAX + 1)},
        {"exists": "yes"},
        {"matches": ".*"},
    ],
)
def test_malformed_predicate_is_refused_with_its_claim(predicate: Any) -> None:
    with pytest.raises(InvalidRequest, match="rule 1: claim group"):
        compile_policy([rule(group=predicate)])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.text() | st.sampled_from(["issuer", "allow", "claims", "equals", "in", "prefix", "exists"]), inner
        )
    ),
    max_leaves=20,
)


@given(json_values, st.dictionaries(st.text(), json_values))
def test_arbitrary_documents_are_compiled_or_refused(document: Any, claims: dict[str, Any]) -> None:
    try:
        policy = compile_policy(document)
    except InvalidRequest:
        return
    assert policy.allows(Principal("localhost", "ann", False, 0, claims), "publish") in (True, False)


@given(st.dictionaries(st.sampled_from("abc"), json_values))
def test_arbitrary_claims_are_only_compared(claims: dict[str, Any]) -> None:
    document = [rule("publish", a={"in": ["x", 1]}, b={"prefix": "x"}, c={"equals": True})]
    assert compile_policy(document).allows(Principal("localhost", "ann", False, 0, claims), "publish") in (True, False)

"""Policies: the first rule that matches decides, no rule refuses, and nothing in a policy is silently ignored."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.access.rules.policy import (
    ADMINISTRATORS_ONLY,
    CACHED_BYTES_MAX,
    ISSUERS_MAX,
    OPEN_TO_DOMAIN,
    POLICY_BYTES_MAX,
    PREDICATES_MAX,
    RULES_MAX,
    compile_policy,
)
from eventing.access.rules.policy_issuers import ADDRESS_CHARS_MAX
from eventing.access.rules.policy_predicates import CLAIM_CHARS_MAX, PATH_PARTS_MAX, TESTS, TEXT_CHARS_MAX, VALUES_MAX
from eventing.core.errors import InvalidRequest
from eventing.core.principals import ANONYMOUS, OPERATIONS, Principal

ID = "https://id.example.org"
DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "policy.md").read_text()
KEYS = "https://keys.example.org/jwks.json"
NAN, INFINITY = math.nan, math.inf


def principal(**claims: Any) -> Principal:
    return Principal("localhost", claims.get("sub", "ann"), False, 0, claims)


def allows(document: Any, operation: str = "publish", **claims: Any) -> bool:
    return compile_policy(document).allows(principal(**claims), operation)


def test_rules_are_equal_by_what_they_say_not_by_what_python_holds_to_be_equal() -> None:
    for one, other in (({"equals": 1}, {"equals": True}), ({"in": [0]}, {"in": [False]})):
        rules = [[{"issuer": "domain", "claims": {"level": predicate}, "allow": []}] for predicate in (one, other)]
        assert compile_policy(rules[0]) != compile_policy(rules[1])
        assert compile_policy(rules[0]) == compile_policy([dict(rules[0][0])])


def foreign(issuer: str = ID, keys_from: str = "", **claims: Any) -> Principal:
    return Principal(issuer, "ann", False, 0, claims, local=False, keys_from=keys_from)


def of(issuer: str, *allow: str, jwks: str | None = None, **claims: Any) -> dict[str, Any]:
    return {
        "issuer": issuer,
        "claims": claims,
        "allow": list(allow or ("publish",)),
        **({} if jwks is None else {"jwks": jwks}),
    }


def admits(document: Any, *bearers: Principal) -> list[bool]:
    policy = compile_policy(document)
    return [policy.allows(bearer, "publish") for bearer in bearers]


def rule(*allow: str, **claims: Any) -> dict[str, Any]:
    return {"issuer": "domain", "claims": claims, "allow": list(allow)}


def test_open_policy_allows_everything_but_administration_and_replicas() -> None:
    assert [operation for operation in OPERATIONS if not allows(OPEN_TO_DOMAIN, operation)] == [
        "administer",
        "replicate",
    ]


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
        ({"equals": False}, [False], [0, None, "", []]),
        ({"in": [True, "1"]}, [True, "1"], [1, 1.0, False, "true"]),
        (
            {"range": {"min": 18}},
            [18, 18.0, 10**400],
            [17, 17.999, "18", True, None, [18], {}, NAN, INFINITY, -INFINITY],
        ),
        ({"range": {"max": 65}}, [65, 65.0, 0, -(10**400)], [66, 65.001, "1", False, NAN, INFINITY, -INFINITY, [1]]),
        ({"range": {"min": 0, "max": 1}}, [0, 1, 0.5, -0.0, 1.0], [True, False, -1, 2, 1.0000001, None]),
        ({"range": {"min": 0.5, "max": 0.5}}, [0.5], [0, 1, "0.5", True]),
        (
            {"audience": "x"},
            ["x", ["x"], ["a", "x"], [1, None, ["y"], "x"]],
            ["X", "xx", ["xx"], [["x"]], {"x": 1}, []],
        ),
        ({"audience": "1"}, ["1", ["1"]], [1, True, [1], [True]]),
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
    for predicate in (
        {"exists": True}, {"equals": "x"}, {"in": ["x"]}, {"prefix": ""}, {"range": {"min": 0}}, {"audience": "x"},
    ):  # fmt: skip
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
        (b"[]", "list of rules"),
        ([{"issuer": "domain", "allow": [], "claims": {"a": {"equals": "\ud800"}}}], "JSON only"),
        ([{"issuer": "domain", "allow": [], "claims": {"a": {"range": {"min": NAN}}}}], "JSON only"),
        ([{"issuer": "domain", "allow": {"publish"}}], "JSON only"),
        ([of("domain", jwks=KEYS)], "rule 1: jwks"),
        ([of("anyone", jwks=KEYS)], "rule 1: jwks"),
        ([of("peer:b.example", jwks=KEYS)], "rule 1: jwks"),
        ([of(ID, jwks="")], "rule 1: jwks"),
        ([of(ID, jwks="http://keys.example.org/")], "rule 1: jwks"),
        ([{**of(ID), "jwks": None}], "rule 1: jwks"),
        ([of(ID), of(ID, jwks=KEYS)], "rule 2: state the same jwks"),
        ([of(f"https://id{n}.example.org") for n in range(ISSUERS_MAX + 1)], f"at most {ISSUERS_MAX} OIDC issuers"),
        ([rule(**{"x" * (CLAIM_CHARS_MAX + 1): {"exists": True}})], "rule 1: claim x.* longer"),
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
        {"equals": "x" * (TEXT_CHARS_MAX + 1)},
        {"in": ["x" * (TEXT_CHARS_MAX + 1)]},
        {"in": [1.5]},
        {"range": {}},
        {"range": []},
        {"range": {"min": None}},
        {"range": {"min": True}},
        {"range": {"min": "1"}},
        {"range": {"min": 2, "max": 1}},
        {"range": {"min": 1, "step": 1}},
        {"audience": ""},
        {"audience": ["x"]},
        {"audience": "x" * (TEXT_CHARS_MAX + 1)},
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


LOCAL = principal(sub="ann")


@pytest.mark.parametrize(
    ("issuer", "admitted"),
    [
        ("domain", [True, False, False, False]),
        ("peer:b.example", [False, True, False, False]),
        (ID, [False, False, True, False]),
        ("anyone", [True, True, True, True]),
        ("peer:localhost", [False, False, False, False]),
        ("https://b.example", [False, False, False, False]),
        (f"{ID}/", [False, False, False, False]),
    ],
)
def test_rule_is_about_its_issuer_only(issuer: str, admitted: list[bool]) -> None:
    assert admits([of(issuer)], LOCAL, foreign("b.example"), foreign(ID), ANONYMOUS) == admitted


@pytest.mark.parametrize("issuer", ["localhost", "domain", "anyone", ""])
def test_attack_foreign_token_that_names_itself_as_this_domain_is_no_bearer_of_this_domain(issuer: str) -> None:
    attacker = foreign(issuer, iss="localhost", sub="ann", admin=True)
    assert admits([of("domain")], attacker, replace(attacker, admin=True)) == [False, False]


@pytest.mark.parametrize("issuer", ["localhost", "domain", "anyone", ID])
def test_attack_token_of_this_domain_never_matches_a_foreign_rule_whatever_it_claims(issuer: str) -> None:
    attacker = Principal(issuer, "ann", False, 0, {"iss": ID, "sub": "ann"})
    rules = [of(ID), of("peer:localhost"), of("peer:domain"), of("peer:anyone")]
    assert admits(rules, attacker, replace(attacker, keys_from=KEYS)) == [False, False]


def test_attack_token_signed_by_keys_of_an_address_from_another_policy_is_not_the_issuers() -> None:
    """Whoever may write a policy may name a JWKS address of their own; it must be worth nothing in other policies."""
    genuine, forged = foreign(ID), foreign(ID, keys_from="https://evil.example/keys")
    assert admits([of(ID)], genuine, forged) == [True, False]
    assert admits([of(ID, jwks=KEYS)], genuine, forged, foreign(ID, keys_from=KEYS)) == [True, False, True]
    assert admits([of("peer:b.example")], foreign("b.example"), foreign("b.example", keys_from=KEYS)) == [True, False]
    assert len({bearer.identity for bearer in (genuine, forged, foreign(ID, keys_from=KEYS))}) == 3


def test_stranger_without_token_matches_rules_for_anyone_only() -> None:
    document = [of("domain"), of("peer:b.example"), of(ID), of("anyone", "describe")]
    policy = compile_policy(document)
    assert [operation for operation in OPERATIONS if policy.allows(ANONYMOUS, operation)] == ["describe"]


def test_rule_for_anyone_with_predicates_asks_everybodys_claims() -> None:
    document = [of("anyone", team={"equals": "red"})]
    assert admits(document, principal(team="red"), foreign(ID, team="red"), foreign(ID), ANONYMOUS) == [
        True,
        True,
        False,
        False,
    ]


def test_order_holds_between_rules_of_an_issuer_and_those_for_anyone() -> None:
    eve: dict[str, Any] = {"sub": {"equals": "eve"}}
    assert admits([of("anyone", "describe", **eve), of(ID)], foreign(sub="eve"), foreign(sub="ann")) == [False, True]
    assert admits([of(ID, "describe", **eve), of("anyone")], foreign(sub="eve"), foreign(sub="ann")) == [False, True]
    assert admits([of("anyone", "describe"), of(ID), of("domain")], foreign(), LOCAL) == [False, False]


@pytest.mark.parametrize(
    "issuer",
    [
        "https://a.example", "https://a.example/", "https://a.example:8443/realms/x", "https://a.example/~x;v=1/%20",
        "https://[2001:db8::1]/", "http://localhost:9000", "http://127.0.0.1:1/x", "http://127.8.0.1", "http://[::1]:80",
        "peer:b", "peer:b.example",
    ],
)  # fmt: skip
def test_issuer_is_an_https_address_or_one_of_this_machine_or_a_peer(issuer: str) -> None:
    assert compile_policy([of(issuer)]).rules[0].issuer == issuer


@pytest.mark.parametrize(
    "issuer",
    [
        "", "Domain", "Anyone", "peer:", "peer:B.example", "peer:https://b.example", "peer:b.example/", "b.example",
        "http://a.example", "http://127.0.0.1.evil.example", "http://localhost.evil.example", "http://10.0.0.1",
        "http://localhost@evil.example", "https://user:secret@a.example", "https://a.example?x=1", "https://a.example/#x",
        "https://a.example|x", "https://", "https:///x", "https://a.example:0", "https://a.example:65536", "https://a.example:x",
        "https://a.example/ x", "https://a.example\n", "\thttps://a.example", "https://a.example\\x", "ftp://a.example",
        "HTTPS://a.example", "https://\u0430.example", "https://a.example/" + "x" * 255, "https://-a.example",
        None, 1, True, [], ["domain"], {},
    ],
)  # fmt: skip
def test_issuer_of_another_form_is_refused(issuer: Any) -> None:
    with pytest.raises(InvalidRequest, match="rule 1: issuer is"):
        compile_policy([{"issuer": issuer, "allow": ["publish"]}])


def test_policy_tells_the_issuers_whose_keys_are_needed() -> None:
    document = [
        of("domain"), of("anyone"), of("peer:b.example"), of(ID), of(ID), of("https://other.example", jwks=KEYS),
    ]  # fmt: skip
    assert compile_policy(document).issuers == {(ID, ""), ("https://other.example", KEYS)}
    assert compile_policy(OPEN_TO_DOMAIN).issuers == frozenset()


def test_pointer_leads_into_nested_claims_and_a_name_with_dots_is_a_name() -> None:
    nested: dict[str, Any] = {"realm_access": {"roles": ["editor", "reader"], "level": 3, "a/b~c": True}}
    for claim, predicate, holds in [
        ("/realm_access/roles", {"audience": "editor"}, True),
        ("/realm_access/roles", {"audience": "admin"}, False),
        ("/realm_access/roles", {"equals": "editor"}, False),
        ("/realm_access/roles", {"in": ["editor"]}, False),
        ("/realm_access/level", {"range": {"min": 3}}, True),
        ("/realm_access/a~1b~0c", {"equals": True}, True),
        ("/realm_access", {"exists": True}, True),
        ("/realm_access/none", {"exists": False}, True),
        ("/realm_access/roles/0", {"exists": True}, False),
        ("/realm_access/roles/editor", {"exists": True}, False),
        ("realm_access.roles", {"exists": True}, False),
        ("realm_access/roles", {"exists": True}, False),
    ]:
        assert allows([rule("publish", **{claim: predicate})], **nested) is holds, claim
    for claim, name in (("a.b", "a.b"), ("https://example.org/team", "https://example.org/team"), ("/~1x", "/x")):
        claims: dict[str, Any] = {name: 1}
        assert allows([rule("publish", **{claim: {"equals": 1}})], **claims), claim
    assert not allows([rule("publish", **{"a.b": {"equals": 1}})], a={"b": 1})


@pytest.mark.parametrize("claim", ["/", "//", "/a//b", "/a/", "/~", "/a~2", "/~01~", "/a" * (PATH_PARTS_MAX + 1)])
def test_pointer_of_another_form_is_refused(claim: str) -> None:
    with pytest.raises(InvalidRequest, match="rule 1: claim /"):
        compile_policy([rule(**{claim: {"exists": True}})])


def test_attack_policy_of_10_000_rules_is_refused_with_one_sentence_before_any_is_looked_at() -> None:
    class Bomb(Mapping[str, Any]):
        """A rule that must not be touched."""

        def __getitem__(self, name: str) -> Any:
            raise AssertionError

        def __iter__(self) -> Any:
            raise AssertionError

        def __len__(self) -> int:
            raise AssertionError

    with pytest.raises(InvalidRequest) as refusal:
        compile_policy([Bomb()] * 10_000)
    assert refusal.value.detail == (
        f"policy has at most {RULES_MAX} rules, not 10000; a rule about a claim covers any number of people."
    )


def test_attack_policy_of_too_many_bytes_or_levels_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=f"at most {POLICY_BYTES_MAX} bytes"):
        compile_policy([rule(a={"in": ["x" * 1000] * 70})])
    with pytest.raises(InvalidRequest, match=f"at most {POLICY_BYTES_MAX} bytes"):
        compile_policy([rule(a={"equals": "\u00e9" * 1000}) for _ in range(33)])
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidRequest, match="JSON only"):
        compile_policy([deep])


def test_policy_at_its_bounds_is_compiled() -> None:
    assert len(compile_policy([{"issuer": "domain", "allow": []}] * RULES_MAX).rules) == RULES_MAX
    many_rules = [rule("publish", n={"equals": n}) for n in range(800)]
    assert allows(many_rules, n=799)
    assert not allows(many_rules, n=800)
    assert allows([rule("publish", n={"in": list(range(VALUES_MAX))})], n=VALUES_MAX - 1)
    many = {f"c{n}": {"exists": False} for n in range(PREDICATES_MAX)}
    assert allows([rule("publish", **many)])
    issuers = [f"https://id{n}.example.org" for n in range(ISSUERS_MAX)]
    assert len(compile_policy([of(issuer) for issuer in issuers]).issuers) == ISSUERS_MAX
    assert allows([rule("publish", **{"/a" * PATH_PARTS_MAX: {"exists": False}})])


class CountingClaims(dict[str, Any]):
    """Claims that count how often they are asked."""

    asked = 0

    def get(self, *arguments: Any) -> Any:
        self.asked += 1
        return super().get(*arguments)


def test_rules_of_other_issuers_cost_nothing() -> None:
    def asked(document: Any) -> int:
        claims = CountingClaims(sub="ann", n=-1)
        assert compile_policy(document).allows(Principal(ID, "ann", False, 0, claims, local=False), "publish")
        return claims.asked

    mine = [of(ID, "describe", n={"equals": 0}), of(ID, n={"equals": -1})]
    others = [of("domain", n={"equals": n}) for n in range(200)]
    others += [of(f"peer:p{n}", n={"equals": -1}) for n in range(200)]
    others += [of(f"https://id{n % 50}.example.org", n={"equals": -1}) for n in range(200)]
    assert asked(mine) == asked(others + mine) == asked(mine + others) == 2


def test_rules_for_anyone_after_the_one_that_matched_are_not_looked_at() -> None:
    claims = CountingClaims(sub="ann")
    document = [of(ID), *(of("anyone", n={"equals": n}) for n in range(500))]
    assert compile_policy(document).allows(Principal(ID, "ann", False, 0, claims, local=False), "publish")
    assert claims.asked == 0


def test_equal_short_policies_share_one_and_long_ones_are_not_kept() -> None:
    assert compile_policy(list(OPEN_TO_DOMAIN)) is compile_policy([dict(rule) for rule in OPEN_TO_DOMAIN])
    long = [rule("publish", sub={"in": ["x" * 1000] * (CACHED_BYTES_MAX // 1000 + 1)})]
    assert compile_policy(long) is not compile_policy(long)
    assert compile_policy(long) == compile_policy(long)


def test_compiled_policy_does_not_change_with_its_document() -> None:
    document = [rule("publish", sub={"in": ["ann"]})]
    policy = compile_policy(document)
    document[0]["claims"]["sub"]["in"].append("ben")
    document[0]["allow"].append("administer")
    assert not policy.allows(principal(sub="ben"), "publish")
    assert not policy.allows(principal(sub="ann"), "administer")
    assert not compile_policy([rule("publish", sub={"in": ["ann"]})]).allows(principal(sub="ann"), "administer")


def test_documented_language_is_the_one_that_is_compiled() -> None:
    examples = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)]
    assert len(examples) == 6
    compiled = [compile_policy(example) for example in examples]
    used = {predicate.test for policy in compiled for rule in policy.rules for predicate in rule.predicates}
    assert used >= set(TESTS) - {"exists"}
    language = DOCUMENT.partition("## The language")[2].partition("## ")[0]
    assert all(f'{{"{test}":' in language for test in TESTS)
    assert f"OPERATION   {', '.join(OPERATIONS)}" in language
    assert language.count("\n") < 50  # one screen


def test_documented_bounds_are_those_of_the_code() -> None:
    bounds = DOCUMENT.partition("## Bounds")[2].partition("## ")[0]
    assert [int(number) for number in re.findall(r"^\| .* \| (\d+) \|$", bounds, re.MULTILINE)] == [
        RULES_MAX,
        POLICY_BYTES_MAX,
        ISSUERS_MAX,
        PREDICATES_MAX,
        VALUES_MAX,
        TEXT_CHARS_MAX,
        CLAIM_CHARS_MAX,
        PATH_PARTS_MAX,
        ADDRESS_CHARS_MAX,
    ]

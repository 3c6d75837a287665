"""POST /api/v1/rps/REFERENCE/policy/explain: who may ask, what is answered, and that policies refuse and admit over REST."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from rest_framework.test import APIClient

from eventing.access.rules.policy import RULES_MAX
from eventing.access.rules.tokens import sign
from eventing.access.selectors.keys import signing_key
from eventing.access.services.tokens import token_create
from eventing.core.errors import Unavailable
from eventing.core.principals import OPERATIONS
from tests.access.issuer_server import IssuerServer
from tests.planes import problem_code

pytestmark = pytest.mark.usefixtures("stores")

RPS = "/api/v1/rps"
ID = "https://id.example.org"
ADULTS = {"issuer": ID, "claims": {"age": {"range": {"min": 18}}}, "allow": ["subscribe"]}
TEAM = {"issuer": "domain", "claims": {"sub": {"prefix": "team-"}}, "allow": ["describe", "publish"]}
ClientOf = Callable[..., APIClient]


def new_rp(api: APIClient, policy: Any, **asked: Any) -> str:
    response = api.post(RPS, {"policy": policy, **asked}, format="json")
    assert response.status_code == 201, response.content
    return str(response.json()["id"])


def explain(api: APIClient, rp: str, operation: str, **bearer: Any) -> dict[str, Any]:
    response = api.post(f"{RPS}/{rp}/policy/explain", {"operation": operation, **bearer}, format="json")
    assert response.status_code == 200, response.content
    assert response["Cache-Control"] == "no-store"
    document: dict[str, Any] = response.json()
    return document


def bearer_of(token: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def decided(answer: dict[str, Any]) -> tuple[bool, str]:
    return answer["allowed"], answer["decided_by"]


def test_creator_asks_about_anybodys_token(api: APIClient) -> None:
    rp = new_rp(api, [ADULTS, TEAM])
    answer = explain(api, rp, "publish", token=token_create(subject="team-roof").token)
    assert answer == {
        "allowed": True,
        "decided_by": "rule 2",
        "reason": "Rule 2 is the first that matches the bearer, and it allows publish.",
        "rules": [
            {"rule": 1, "issuer": ID, "matches": False, "why": "The token is of this domain."},
            {
                "rule": 2,
                "issuer": "domain",
                "matches": True,
                "why": "The rule's issuer is the bearer's, and all its predicates hold.",
            },
        ],
    }
    token = token_create(subject="team-roof", operations=["history"]).token
    assert decided(explain(api, rp, "publish", token=token)) == (False, "scopes")
    assert decided(explain(api, rp, "history", token=token)) == (False, "rule 2")
    assert decided(explain(api, rp, "publish", token=token_create(subject="eve").token)) == (False, "no rule")
    assert decided(explain(api, rp, "publish", token=token_create(subject="ann").token)) == (True, "creator")
    root = token_create(subject="root", admin=True).token
    assert decided(explain(api, rp, "replicate", token=root)) == (True, "administrator")


def test_an_unsaved_policy_is_explained_to_those_who_may_save_it(api: APIClient) -> None:
    rp = new_rp(api, [TEAM])
    draft = [{"issuer": "anyone", "allow": ["subscribe"]}]
    assert decided(explain(api, rp, "subscribe")) == (False, "no rule")
    assert decided(explain(api, rp, "subscribe", policy=draft)) == (True, "rule 1")
    assert decided(explain(api, rp, "subscribe")) == (False, "no rule")  # nothing was saved
    wrong = {"operation": "subscribe", "policy": [*draft, {"issuer": "nobody", "allow": []}]}
    answer = api.post(f"{RPS}/{rp}/policy/explain", wrong, format="json")
    assert answer.status_code == 400
    assert "policy rule 2: issuer" in answer.json()["detail"]
    token = token_create(subject="team-roof").token  # explains its own decision, and no policy of its own making
    asked: dict[str, Any] = {"operation": "subscribe", "token": token}
    assert bearer_of(token).post(f"{RPS}/{rp}/policy/explain", asked, format="json").status_code == 200
    asked["policy"] = draft
    assert bearer_of(token).post(f"{RPS}/{rp}/policy/explain", asked, format="json").status_code == 403


def test_explanation_says_what_the_domain_then_does(api: APIClient, client_of: ClientOf) -> None:
    rp = new_rp(api, [TEAM, {"issuer": "domain", "claims": {"sub": {"in": ["ben", "eve"]}}, "allow": ["describe"]}])
    for subject in ("team-roof", "ben", "carl"):
        token = token_create(subject=subject).token
        seen = bearer_of(token).get(f"{RPS}/{rp}").status_code
        assert seen == (200 if explain(api, rp, "describe", token=token)["allowed"] else 403)


def test_made_up_claims_are_explained_as_if_their_issuer_had_signed_them(api: APIClient) -> None:
    rp = new_rp(api, [ADULTS, TEAM])
    assert decided(explain(api, rp, "subscribe", claims={"iss": ID, "sub": "x", "age": 18})) == (True, "rule 1")
    adult = {"iss": ID, "age": 18}
    assert decided(explain(api, rp, "subscribe", claims=adult)) == (True, "rule 1")
    assert decided(explain(api, rp, "subscribe", claims={**adult, "ops": ["history"]})) == (False, "scopes")
    assert decided(explain(api, rp, "subscribe", claims={**adult, "aud": ["other", "localhost"]})) == (True, "rule 1")
    assert decided(explain(api, rp, "subscribe", claims={**adult, "aud": "other"})) == (False, "token")
    young = explain(api, rp, "subscribe", claims={"iss": ID, "sub": "x", "age": 17, "admin": True})
    assert decided(young) == (False, "no rule")
    assert young["rules"][0]["why"] == "Claim age is 17, not a number of at least 18."
    of_ours = {"iss": "localhost", "sub": "team-x"}
    assert decided(explain(api, rp, "publish", claims=of_ours)) == (True, "rule 2")
    assert decided(explain(api, rp, "publish", claims={**of_ours, "ops": ["history"]})) == (False, "scopes")
    assert decided(explain(api, rp, "publish", claims={**of_ours, "admin": True})) == (True, "administrator")
    assert decided(explain(api, rp, "publish", claims={**of_ours, "exp": 1})) == (False, "token")
    assert decided(explain(api, rp, "publish", claims={**of_ours, "admin": "yes"})) == (False, "token")
    assert decided(explain(api, rp, "publish", claims={"iss": "localhost"})) == (False, "no rule")


def test_without_token_and_claims_it_is_about_a_stranger(api: APIClient) -> None:
    rp = new_rp(api, [TEAM, {"issuer": "anyone", "allow": ["describe"]}])
    assert decided(explain(api, rp, "describe")) == (True, "rule 2")
    assert decided(explain(api, rp, "publish", token=None, claims=None)) == (False, "rule 2")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"exp": -5}, "expired"),
        ({"nbf": 600}, "future"),
        ({"aud": "elsewhere"}, "not for localhost"),
    ],
)
def test_token_that_is_not_good_is_the_answer_and_not_an_error(
    api: APIClient, changed: dict[str, Any], says: str
) -> None:
    rp = new_rp(api, [TEAM])
    stated = {name: time.time() + value if isinstance(value, int) else value for name, value in changed.items()}
    claims = {"iss": "localhost", "aud": "localhost", "sub": "team-x", "exp": time.time() + 60, **stated}
    key = signing_key()
    assert key is not None
    answer = explain(api, rp, "publish", token=sign(claims, key))
    assert decided(answer) == (False, "token")
    assert says in answer["reason"]
    assert answer["rules"] == []


@pytest.mark.parametrize("change", [lambda token: token[:-8] + "AAAAAAAA", lambda token: "x", lambda token: "a.b.c"])
def test_explanation_never_echoes_a_token(api: APIClient, change: Callable[[str], str]) -> None:
    rp = new_rp(api, [TEAM])
    good = token_create(subject="team-x").token
    for token in (good, change(good)):
        answer = explain(api, rp, "publish", token=token)
        parts = [part for part in token.split(".") if len(part) > 3]
        assert not [part for part in parts if part in json.dumps(answer)]


def test_only_who_administers_may_ask_about_others(api: APIClient, client_of: ClientOf) -> None:
    rp = new_rp(api, [TEAM, {"issuer": "domain", "claims": {"sub": {"equals": "deputy"}}, "allow": ["administer"]}])
    token = token_create(subject="team-roof").token
    for asker, may in [
        (client_of("ben"), False),
        (client_of("team-door"), False),
        (client_of("ann", operations=["describe", "publish"]), False),
        (client_of("root", admin=True), True),
        (client_of("deputy"), True),
        (api, True),
    ]:
        for bearer in ({"token": token}, {"claims": {"iss": ID}}, {}):
            response = asker.post(f"{RPS}/{rp}/policy/explain", {"operation": "publish", **bearer}, format="json")
            assert response.status_code == (200 if may else 403), (response.content, bearer)
            if not may:
                assert problem_code(response) == "forbidden"
    for policy in ([TEAM], [TEAM, {"issuer": "anyone", "allow": ["describe", "administer"]}]):
        assert api.patch(f"{RPS}/{rp}", {"policy": policy}, format="json").status_code == 200
        response = APIClient().post(f"{RPS}/{rp}/policy/explain", {"operation": "publish"}, format="json")
        assert problem_code(response) == "unauthenticated"


def test_everybody_may_ask_about_the_token_they_ask_with(api: APIClient) -> None:
    rp = new_rp(api, [TEAM, {"issuer": "domain", "claims": {"sub": {"in": ["carl"]}}, "allow": ["publish"]}])
    member, stranger = token_create(subject="team-x").token, token_create(subject="eve").token
    assert len(explain(bearer_of(member), rp, "publish", token=member)["rules"]) == 1
    answer = explain(bearer_of(stranger), rp, "publish", token=stranger)
    assert decided(answer) == (False, "no rule")
    assert answer["rules"] == []  # whoever may not see the policy is not told it rule by rule
    assert "carl" not in json.dumps(answer)
    other = bearer_of(stranger).post(
        f"{RPS}/{rp}/policy/explain", {"operation": "publish", "token": member}, format="json"
    )
    assert problem_code(other) == "forbidden"


def test_token_of_another_is_not_verified_before_the_asker_may_ask(
    api: APIClient, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verified(token: str) -> Any:
        raise Unavailable("The issuer does not answer.")

    rp, ben = new_rp(api, [TEAM]), client_of("ben")
    monkeypatch.setattr("eventing.rps.api.policy.verified", verified)
    asked = {"operation": "publish", "token": "some"}
    assert problem_code(ben.post(f"{RPS}/{rp}/policy/explain", asked, format="json")) == "forbidden"
    assert problem_code(api.post(f"{RPS}/{rp}/policy/explain", asked, format="json")) == "unavailable"


def test_rp_is_found_by_name_and_administrative_ones_too(api: APIClient, client_of: ClientOf) -> None:
    rp = new_rp(api, [TEAM], name="a/b")
    claims = {"iss": "localhost", "sub": "team-x"}
    assert explain(api, "%2Flocalhost%2Fa%2Fb%2F", "publish", claims=claims)["allowed"]
    assert decided(explain(api, f"{rp}.admin", "subscribe", claims=claims)) == (False, "no rule")
    assert decided(explain(api, f"{rp}.admin", "subscribe", claims={"iss": "localhost", "sub": "ann"})) == (
        True,
        "creator",
    )
    assert explain(client_of("root", admin=True), "domain.admin", "history")["reason"].startswith("The policy has no")
    missing = api.post(f"{RPS}/{'a' * 26}/policy/explain", {"operation": "publish"}, format="json")
    assert problem_code(missing) == "not-found"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "operation"),
        ({"operation": "fly"}, "operation"),
        ({"operation": ["publish"]}, "operation"),
        ({"operation": "publish", "token": 5}, "token"),
        ({"operation": "publish", "token": ""}, "token"),
        ({"operation": "publish", "token": "x" * 8193}, "token"),
        ({"operation": "publish", "claims": []}, "claims"),
        ({"operation": "publish", "claims": {}}, "claims"),
        ({"operation": "publish", "claims": {"iss": 5}}, "claims"),
        ({"operation": "publish", "claims": {"iss": ""}}, "claims"),
        ({"operation": "publish", "claims": {"iss": ID, "sub": 5}}, "claims"),
        ({"operation": "publish", "claims": {"iss": ID, **{f"c{n}": 1 for n in range(64)}}}, "claims"),
        ({"operation": "publish", "claims": {"iss": ID}, "token": "x"}, "not both"),
        ({"operation": "publish", "more": 1}, "more"),
        ([], "body"),
    ],
)
def test_question_of_another_form_is_refused(api: APIClient, body: Any, says: str) -> None:
    rp = new_rp(api, [TEAM])
    response = api.post(f"{RPS}/{rp}/policy/explain", body, format="json")
    assert problem_code(response) == "invalid-request"
    assert says in response.json()["detail"].lower()


def test_answer_is_of_the_described_form(api: APIClient) -> None:
    document = APIClient().get("/api/v1/schema").json()
    operation = document["paths"][f"{RPS}/{{reference}}/policy/explain"]["post"]
    assert operation["operationId"] == "rps_policy_explain"
    schema = {"$ref": "#/components/schemas/PolicyExplanation", "components": document["components"]}
    answer = explain(api, new_rp(api, [ADULTS, TEAM]), "publish")
    jsonschema.Draft202012Validator(schema).validate(answer)


GOOD = [
    {"issuer": "anyone", "allow": ["describe"]},
    {"issuer": "peer:b.example", "allow": ["replicate"]},
    {"issuer": ID, "jwks": f"{ID}/keys?x=1", "claims": {"/realm_access/roles": {"audience": "editor"}}, "allow": list(OPERATIONS)},
    {"issuer": "domain", "claims": {"a": {"range": {"min": 0.5, "max": 3}}, "b": {"in": ["x", 1, True]}}, "allow": []},
]  # fmt: skip
BAD = [
    {"issuer": "everyone", "allow": ["describe"]},
    {"issuer": "http://id.example.org", "allow": []},
    {"issuer": f"{ID}?x", "allow": []},
    {"issuer": ID, "jwks": "http://id.example.org", "allow": []},
    {"issuer": "domain", "claims": {"a": {"range": {}}}, "allow": []},
    {"issuer": "domain", "claims": {"a": {"range": {"min": "1"}}}, "allow": []},
    {"issuer": "domain", "claims": {"a": {"audience": []}}, "allow": []},
    {"issuer": "domain", "claims": {"a": {"like": "x"}}, "allow": []},
    {"issuer": "domain", "allow": ["fly"]},
]


@pytest.mark.parametrize("rule", GOOD + BAD, ids=json.dumps)
def test_description_of_policies_agrees_with_what_is_taken(api: APIClient, rule: dict[str, Any]) -> None:
    document = APIClient().get("/api/v1/schema").json()
    schema = document["components"]["schemas"]["RendezvousPointCreation"]["properties"]["policy"]
    described = jsonschema.Draft202012Validator({**schema, "components": document["components"]}).is_valid([rule])
    assert described is (rule in GOOD)
    assert api.post(RPS, {"policy": [rule]}, format="json").status_code == (201 if rule in GOOD else 400)


def test_attack_policy_of_10_000_rules_is_refused_with_one_sentence(api: APIClient) -> None:
    response = api.post(RPS, {"policy": [{"issuer": "anyone", "allow": []}] * 10_000}, format="json")
    assert problem_code(response) == "too-large"
    rp = new_rp(api, [TEAM])
    short = json.dumps({"policy": [{}] * 10_000}, separators=(",", ":"))
    response = api.patch(f"{RPS}/{rp}", short, content_type="application/json")
    assert problem_code(response) == "invalid-request"
    assert response.json()["detail"].startswith(f"policy has at most {RULES_MAX} rules, not 10000")
    assert api.get(f"{RPS}/{rp}").json()["policy"] == [TEAM]


def test_real_token_of_a_foreign_issuer_is_explained_and_admitted_alike(
    api: APIClient, configure: Callable[..., None]
) -> None:
    configure(allow_private_issuers=True)
    with IssuerServer() as issuer:
        named = {"issuer": issuer.url, "claims": {"age": {"range": {"min": 18}}}, "allow": ["describe"]}
        rp = new_rp(api, [named, {**named, "claims": {"/realm/roles": {"audience": "editor"}}}])
        for token, allowed, by in [
            (issuer.token("a", age=18), True, "rule 1"),
            (issuer.token("b", age=17), False, "no rule"),
            (issuer.token("b", age=True), False, "no rule"),
            (issuer.token("c", realm={"roles": ["reader", "editor"]}), True, "rule 2"),
            (issuer.token("ann", admin=True), False, "no rule"),  # nor is it the creator, who has the same subject here
        ]:
            assert decided(explain(api, rp, "describe", token=token)) == (allowed, by)
            assert decided(explain(bearer_of(token), rp, "describe", token=token)) == (allowed, by)
            assert bearer_of(token).get(f"{RPS}/{rp}").status_code == (200 if allowed else 403)

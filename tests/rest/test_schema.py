"""The OpenAPI description is complete, well formed, and true to what is answered."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml
from drf_spectacular.drainage import GENERATOR_STATS
from rest_framework.test import APIClient

from eventing.conf import config
from eventing.core.errors import problem_types
from eventing.rest.problems import FINDINGS_MAX
from tests.planes import problem_code
from tests.rest.test_access_matrix import endpoints

pytestmark = pytest.mark.usefixtures("stores")

METHODS = ("get", "post", "put", "patch", "delete")
NOT_DESCRIBED = {  # itself, its sibling, and what is not there
    ("GET", "/api/v1/schema"),
    ("GET", "/api/v1/asyncapi"),
    ("GET", "/api/v1/"),
    ("POST", "/api/v1/"),
}
BINARY = {"type": "string", "format": "binary"}
SOAP = "/ws-eventing"  # which WSDL describes


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The description, as anybody gets it."""
    found: dict[str, Any] = APIClient().get("/api/v1/schema").json()
    return found


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [item[method] for item in document["paths"].values() for method in METHODS if method in item]


def check(document: dict[str, Any], name: str, instance: Any) -> None:
    """Whether `instance` is of the component called `name`."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(instance)


def test_it_is_generated_without_a_warning(document: dict[str, Any]) -> None:
    assert not GENERATOR_STATS, "two components have one name, or an answer has no shape"


def test_it_is_openapi_3_1_and_describes_everything(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    described = {(name.upper(), path) for path, item in document["paths"].items() for name in METHODS if name in item}
    offered = {(method, path) for method, path in endpoints() if path.startswith("/api/v1/") and "*" not in path}
    offered = {(method, path) for method, path in offered if SOAP not in path}
    assert described == offered - NOT_DESCRIBED
    ids = [operation["operationId"] for operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert {"rps_create", "rps_publish", "rps_pull", "rps_stream", "subscriptions_ack", "subscriptions_pull"} <= set(
        ids
    )


def test_every_operation_has_a_summary_a_description_of_each_answer_and_a_problem(document: dict[str, Any]) -> None:
    for operation in operations(document):
        assert operation["summary"]
        assert operation["security"]
        assert operation["responses"]["default"] == {"$ref": "#/components/responses/Problem"}
        assert all(answer.get("description") or "$ref" in answer for answer in operation["responses"].values())


def test_every_body_has_an_example_that_is_valid(document: dict[str, Any]) -> None:
    for operation in operations(document):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            examples = [media["example"]] if "example" in media else [e["value"] for e in media["examples"].values()]
            assert examples
            schema = {**media.get("schema", {}), "components": document["components"]}
            for example in examples:
                jsonschema.Draft202012Validator(schema).validate(example)


def test_every_operation_has_an_example_of_each_answer_and_of_each_parameter_of_its_path(
    document: dict[str, Any],
) -> None:
    for operation in operations(document):
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                for example in parameter["schema"]["examples"]:
                    jsonschema.Draft202012Validator(parameter["schema"]).validate(example)
        answers = [*operation["responses"].values(), document["components"]["responses"]["Problem"]]
        for media_type, media in [pair for answer in answers for pair in answer.get("content", {}).items()]:
            if media.get("schema") == BINARY:
                continue
            example = media["example"]
            if media_type.endswith("json"):
                schema = {**media["schema"], "components": document["components"]}
                jsonschema.Draft202012Validator(schema).validate(example)
            else:
                assert isinstance(example, str)
                assert example


def test_the_document_names_its_server_its_subjects_and_no_port_in_the_cookie(document: dict[str, Any]) -> None:
    assert [server["url"] for server in document["servers"]] == [config().base_url]
    used = {tag for operation in operations(document) for tag in operation["tags"]}
    described = {tag["name"] for tag in document["tags"] if tag["description"] and tag["x-displayName"]}
    assert used == described
    assert document["components"]["securitySchemes"]["session"]["name"] == "herald_session"
    schemes = {name for operation in operations(document) for entry in operation["security"] for name in entry}
    assert schemes == set(document["components"]["securitySchemes"])


def test_the_types_of_problems_are_those_of_the_protocol(document: dict[str, Any]) -> None:
    problem = document["components"]["schemas"]["Problem"]["properties"]
    assert problem["type"]["enum"] == problem_types()
    assert "urn:herald:problem:not-found" in problem["type"]["enum"]


def test_all_faults_of_a_body_are_answered_at_once(document: dict[str, Any], api: APIClient) -> None:
    body = {
        "name": "a//b",
        "lease_s": 0,
        "history": {"max_events": "5", "colour": 1},
        "policy": [{"issuer": "domain", "allow": ["fly"]}],
        "watch": "none",
        "a/b": 1,
    }
    problem = api.post("/api/v1/rps", body, format="json").json()
    check(document, "Problem", problem)
    found = {error["pointer"]: error["detail"] for error in problem["errors"]}
    assert set(found) == {"/name", "/lease_s", "/history/max_events", "/history/colour", "/policy", "/watch", "/a~1b"}
    assert found["/history/colour"] == "Unknown member."
    assert "6 more faults" in problem["detail"]
    assert problem["detail"].startswith("a/b: Unknown member.")


def test_the_faults_that_are_listed_are_bounded(api: APIClient) -> None:
    problem = api.post("/api/v1/rps", {f"m{n}": n for n in range(500)}, format="json").json()
    assert 1 < len(problem["errors"]) <= FINDINGS_MAX


def test_asyncapi_is_served_with_the_addresses_of_this_domain() -> None:
    answer = APIClient().get("/api/v1/asyncapi")
    assert answer["Access-Control-Allow-Origin"] == "*"
    served = answer.json()
    assert served["servers"]["websocket"]["host"] == config().base_url.partition("//")[2]
    assert set(served["channels"]) == {"herald", "cloudevents", "stream", "endpoint", "callback"}
    as_yaml = APIClient().get("/api/v1/asyncapi", {"format": "yaml"})
    assert as_yaml["Content-Type"] == "application/yaml"
    assert yaml.safe_load(as_yaml.content) == served
    assert problem_code(APIClient().get("/api/v1/asyncapi", {"format": "xml"})) == "invalid-request"


def test_every_array_says_what_its_items_are(document: dict[str, Any]) -> None:
    """A generator of clients drops a schema with one that does not, and all that refers to it."""

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            if value.get("type") == "array":
                assert {"items", "prefixItems", "unevaluatedItems"} & set(value), path
            for name, member in value.items():
                walk(member, f"{path}/{name}")
        elif isinstance(value, list):
            for index, member in enumerate(value):
                walk(member, f"{path}/{index}")

    walk(document["components"], "")
    walk(document["paths"], "")


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(reference := value.get("$ref"), str):
                target: Any = document
                for part in reference.removeprefix("#/").split("/"):
                    target = target[part]
            for member in value.values():
                walk(member)
        elif isinstance(value, list):
            for member in value:
                walk(member)

    walk(document)
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_answers_are_of_the_described_form(document: dict[str, Any], api: APIClient, client_of: Any) -> None:
    rp = api.post("/api/v1/rps", {"name": "a", "history": {"max_age_s": 60}}, format="json").json()
    check(document, "RendezvousPoint", rp)
    check(document, "RendezvousPoint", api.get(f"/api/v1/rps/{rp['id']}.admin").json())
    check(document, "RendezvousPointPage", api.get("/api/v1/rps").json())
    subscription = api.post(f"/api/v1/rps/{rp['id']}/subscriptions").json()
    check(document, "Subscription", subscription)
    check(document, "SubscriptionPage", api.get(f"/api/v1/rps/{rp['id']}/subscriptions").json())
    check(document, "Renewal", api.post(f"/api/v1/rps/{rp['id']}/renew").json())
    check(document, "Renewal", api.post(f"/api/v1/subscriptions/{subscription['id']}/renew").json())
    check(document, "Problem", api.get("/api/v1/rps/nowhere").json())
    token = client_of("root", admin=True).post("/api/v1/tokens", {"subject": "x"}, format="json").json()
    check(document, "Token", token)

"""The OpenAPI description is complete, well formed, and true to what is answered."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from rest_framework.test import APIClient

from tests.rest.test_access_matrix import endpoints

pytestmark = pytest.mark.usefixtures("stores")

METHODS = ("get", "post", "put", "patch", "delete")
NOT_DESCRIBED = {("GET", "/api/v1/schema"), ("GET", "/api/v1/"), ("POST", "/api/v1/")}  # itself, and what is not there
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

"""The whole REST surface: who may in, what is offered where, and that every refusal is a problem document."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.test import Client
from rest_framework.test import APIClient

from eventing.access.rules import tokens
from eventing.access.selectors.keys import verification_keys
from eventing.access.services.tokens import token_create
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Scope
from eventing.rps.api import rendezvous_points as views
from tests.planes import problem_code

pytestmark = pytest.mark.usefixtures("stores")

ClientOf = Callable[..., APIClient]
PATHS = [
    "/api/v1/rps",
    f"/api/v1/rps/{'a' * 26}",
    f"/api/v1/rps/{'a' * 26}/renew",
    f"/api/v1/rps/{'a' * 26}/subscriptions",
    f"/api/v1/subscriptions/sub_{'a' * 26}",
    f"/api/v1/subscriptions/sub_{'a' * 26}/renew",
    "/api/v1/tokens",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic eDp5", "Bearer x.y.z", "Bearer ä", "Bearer " + "x" * 10_000]
)
def test_without_a_good_token_nothing_is_answered(path: str, header: str | None) -> None:
    headers = {} if header is None else {"HTTP_AUTHORIZATION": header}
    for method in ("get", "post", "patch", "delete"):
        response = getattr(APIClient(), method)(path, **headers)
        assert problem_code(response) == "unauthenticated"
        assert response["WWW-Authenticate"] == 'Bearer realm="localhost"'


def test_a_token_may_stand_in_the_query() -> None:
    token = token_create(subject="ann").token
    assert APIClient().get("/api/v1/rps", {"access_token": token}).status_code == 200
    assert problem_code(APIClient().get("/api/v1/rps", {"access_token": "x"})) == "unauthenticated"


def test_a_console_session_is_its_user_and_needs_the_csrf_token() -> None:
    user = User.objects.create_user("carl")
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(user)
    assert browser.get("/api/v1/rps").status_code == 200
    assert problem_code(browser.post("/api/v1/rps")) == "forbidden"
    relaxed = Client()
    relaxed.force_login(user)
    made = relaxed.post("/api/v1/rps", {}, content_type="application/json")
    assert made.json()["creator"] == "carl"
    assert problem_code(relaxed.get(f"/api/v1/rps/{DOMAIN_ADMIN}")) == "forbidden"
    User.objects.update(is_staff=True, is_superuser=True)
    assert relaxed.get(f"/api/v1/rps/{DOMAIN_ADMIN}").status_code == 200
    User.objects.update(is_active=False)
    assert problem_code(relaxed.get("/api/v1/rps")) == "unauthenticated"


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/api/v1/rps", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]),
        (f"/api/v1/rps/{'a' * 26}", ["PUT", "POST", "OPTIONS"]),
        (f"/api/v1/rps/{'a' * 26}/renew", ["GET", "PUT", "DELETE"]),
        (f"/api/v1/rps/{'a' * 26}/subscriptions", ["PATCH", "DELETE"]),
        (f"/api/v1/subscriptions/sub_{'a' * 26}", ["PUT", "POST"]),
        ("/api/v1/tokens", ["PUT", "DELETE"]),
        ("/api/v1/schema", ["POST", "OPTIONS"]),
        ("/.well-known/herald", ["POST", "OPTIONS"]),
        ("/.well-known/jwks.json", ["PUT"]),
    ],
)
def test_another_method_is_refused_with_what_is_offered(api: APIClient, path: str, refused: list[str]) -> None:
    for method in refused:
        response = api.generic(method, path)
        assert problem_code(response) == "method-not-allowed"
        assert response["Allow"]
        assert method not in response["Allow"].split(", ")


@pytest.mark.parametrize(
    "path",
    ["/api", "/api/", "/api/v2/rps", "/api/v1", "/api/v1/", "/api/v1/rp", "/api/v1/rps/", "/api/v1/subscription",
     "/api/v1/subscriptions/", "/api/v1/subscriptions/a/b/c", "/api/v1/x%00", "/api/v1/x%0Ay", "/api/v1/%ff"],
)  # fmt: skip
def test_an_unknown_path_is_a_problem_document(api: APIClient, path: str) -> None:
    for response in (api.get(path), Client(enforce_csrf_checks=True).post(path), APIClient().get(path)):
        assert problem_code(response) == "not-found"


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "*/*;q=0", "nonsense", ""])
def test_the_answer_is_json_whatever_is_accepted(api: APIClient, accept: str) -> None:
    response = api.get("/api/v1/rps?format=xml", headers={"Accept": accept})
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")


def test_a_chunked_body_is_read() -> None:
    token = token_create(subject="ann").token
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/api/v1/rps",
        "query_string": b"",
        "headers": [
            (b"transfer-encoding", b"chunked"),
            (b"content-type", b"application/json"),
            (b"authorization", f"Bearer {token}".encode()),
        ],
    }

    async def ask() -> list[dict[str, Any]]:
        exchange = ApplicationCommunicator(get_asgi_application(), scope)
        await exchange.send_input({"type": "http.request", "body": b'{"title":', "more_body": True})
        await exchange.send_input({"type": "http.request", "body": b' "chunked"}', "more_body": False})
        return [await exchange.receive_output(10), await exchange.receive_output(10)]

    begin, rest = async_to_sync(ask)()
    assert begin["status"] == 201
    assert json.loads(rest["body"])["title"] == "chunked"


def test_a_fault_of_ours_is_a_problem_document_without_the_traceback(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of("ann")
    client.raise_request_exception = False
    monkeypatch.setattr(views, "rendezvous_points_page", lambda **_: 1 / 0)
    response = client.get("/api/v1/rps")
    assert problem_code(response) == "internal"
    assert b"Zero" not in response.content


def test_administrators_sign_tokens_and_nobody_else(client_of: ClientOf) -> None:
    root = client_of("root", admin=True)
    response = root.post("/api/v1/tokens", {"subject": "ann", "lease_s": 60, "ops": ["publish"]}, format="json")
    assert response.status_code == 201
    assert response["Cache-Control"] == "no-store"
    signed = response.json()
    assert (signed["subject"], signed["admin"], signed["ops"], signed["granted_s"]) == ("ann", False, ["publish"], 60)
    who = tokens.verify(signed["token"], verification_keys(), issuer="localhost", audience="localhost", now=time.time())
    assert who.scopes == (Scope(("*",), frozenset({"publish"})),)
    for refused in (client_of("ann"), client_of("root", admin=True, operations=["administer"])):
        assert problem_code(refused.post("/api/v1/tokens", {"subject": "x"}, format="json")) == "forbidden"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"subject": ""},
        {"subject": 5},
        {"subject": None},
        {"subject": "x" * 256},
        {"subject": "x", "admin": "yes"},
        {"subject": "x", "admin": 1},
        {"subject": "x", "admin": None},
        {"subject": "x", "lease_s": 0},
        {"subject": "x", "ops": "publish"},
        {"subject": "x", "ops": [1]},
        {"subject": "x", "ops": ["fly"]},
        {"subject": "x", "ops": [["publish"]]},
        {"subject": "x", "ops": ["publish"] * 7},  # there are six
        {"subject": "x", "extra": 1},
    ],
)
def test_a_token_request_of_another_form_is_refused(client_of: ClientOf, body: Any) -> None:
    response = client_of("root", admin=True).post("/api/v1/tokens", body, format="json")
    assert problem_code(response) == "invalid-request"


def test_the_domain_says_who_it_is_without_a_token() -> None:
    token_create(subject="x")
    herald = APIClient().get("/.well-known/herald").json()
    assert (herald["domain"], herald["versions"]) == ("localhost", ["herald.v1"])
    assert herald["endpoints"]["websocket"] == "ws://127.0.0.1:8000/ws"
    jwks = APIClient().get("/.well-known/jwks.json").json()
    assert jwks["keys"] == herald["keys"]
    assert set(jwks["keys"][0]) == {"kty", "crv", "x", "kid", "use", "alg", "nbf"}
    assert APIClient().head("/.well-known/herald").status_code == 200

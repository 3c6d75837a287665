"""Fixtures of the control plane's tests: a real database, a real Redis, principals, and clients of the REST interface."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from eventing.access.services.tokens import token_create
from eventing.core.principals import Principal, Scope
from eventing.log import control
from eventing.rps.services.rendezvous_points import rendezvous_point_create


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> None:
    """Every test here has both planes; what follows a commit really follows it. Redis is emptied, as the database is."""
    control.client().flushdb()


def principal(subject: str, *, admin: bool = False, ops: list[str] | None = None) -> Principal:
    """Whoever holds a token of this domain."""
    claims = {"iss": "localhost", "sub": subject}
    scopes = None if ops is None else (Scope(("*",), frozenset(ops)),)
    return Principal("localhost", subject, admin, time.time() + 3600, claims, scopes)


@pytest.fixture
def ann() -> Principal:
    """Somebody who creates."""
    return principal("ann")


@pytest.fixture
def ben() -> Principal:
    """Somebody else."""
    return principal("ben")


@pytest.fixture
def root() -> Principal:
    """An administrator of the domain."""
    return principal("root", admin=True)


@pytest.fixture
def new_rp(ann: Principal) -> Callable[..., Any]:
    """Makes RPs of ann."""
    return lambda **asked: rendezvous_point_create(**{"principal": ann, **asked})


@pytest.fixture
def configure(settings: Any) -> Callable[..., None]:
    """Changes settings for one test."""

    def change(**values: Any) -> None:
        settings.HERALD = dataclasses.replace(settings.HERALD, **values)

    return change


@pytest.fixture
def client_of() -> Callable[..., APIClient]:
    """A client of the REST interface with a token of its own."""

    def client(subject: str, *, admin: bool = False, operations: list[str] | None = None) -> APIClient:
        token = token_create(subject=subject, admin=admin, operations=operations).token
        made = APIClient(raise_request_exception=True)
        made.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        return made

    return client


@pytest.fixture
def api(client_of: Callable[..., APIClient]) -> APIClient:
    """Ann's client."""
    return client_of("ann")


def events_at(rp: str) -> list[dict[str, Any]]:
    """All events in the log of `rp`, in order; none if there is no log."""
    if control.log_state(rp) is None:
        return []
    return [json.loads(body) for body in control.read(rp, 1, 1000, 1 << 20).events]


def types_at(rp: str) -> list[str]:
    """The types of all events in the log of `rp`, without the common prefix."""
    return [event["type"].removeprefix("io.herald.") for event in events_at(rp)]


def problem_code(response: Any) -> str:
    """The code of a problem document, which the answer must be."""
    assert response["Content-Type"] == "application/problem+json"
    document = json.loads(response.content)
    assert document["status"] == response.status_code
    assert document["title"]
    assert document["detail"]
    return str(document["type"]).removeprefix("urn:herald:problem:")

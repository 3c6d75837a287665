"""Tests on both planes, a real database and a real Redis: fixtures, principals, clients of the REST interface, and what is in logs."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from eventing.access.services.keys import ensure_domain_key
from eventing.access.services.tokens import token_create
from eventing.core.errors import ApplicationError
from eventing.core.events.cloudevents import Event
from eventing.core.principals import Principal, Scope
from eventing.log import control
from eventing.peering.services.domain_documents import own_document
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store.client import client as redis_client


@pytest.fixture
def stores(transactional_db: None, redis_url: str) -> None:
    """Empty both planes; what follows a commit really follows it."""
    redis_client().flushdb()


@pytest.fixture
def planes(stores: None) -> None:
    """SQL with the domain's key and document, and an empty Redis."""
    ensure_domain_key()
    own_document()


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
def client_of(stores: None) -> Callable[..., APIClient]:
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


def events_made(count: int, begin: int = 0) -> list[Event]:
    """Small events with ids from `begin`."""
    body = b'{"specversion":"1.0","id":"%d","source":"/t","type":"t"}'
    return [Event(source="/t", id=str(n), type="t", body=body % n) for n in range(begin, begin + count)]


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Results of `work(0..count-1)`, run at once on connections of their own; a refusal is its result."""

    def run(number: int) -> Any:
        try:
            return work(number)
        except ApplicationError as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))

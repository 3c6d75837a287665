"""The doors to the planes: the rooms `store` and `log` to Redis; models, selectors and services to SQL."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

import pytest
import redis.asyncio

from tests.house import files, modules

REDIS_ROOMS = (
    "eventing/store/",
    "eventing/log/",
    "portal/supervisor/redis_server.py",
    "client/",
    "spark/",
    "bench/",
    "demo/",
    "examples/",
)
"""Rooms that send commands, and trees that are no part of the server."""
HANDED_ON = {"aclose", "close"}
"""Whoever made a client closes it."""
COMMANDS = {name for name in dir(redis.asyncio.Redis) if not name.startswith("_")} - HANDED_ON


def redis_calls(tree: ast.AST) -> list[str]:
    """Calls of Redis' commands on what is named a client, Redis, or a pipeline."""
    calls = [
        node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    return [ast.unparse(one) for one in calls if one.attr in COMMANDS and _is_client(one.value)]


def _is_client(value: ast.expr) -> bool:
    text = ast.unparse(value).removesuffix("()")
    return text.rpartition(".")[2].lstrip("_") in {"redis", "client", "redis_client", "own_client", "pipeline"}


@pytest.mark.parametrize(
    "source",
    [
        "gateway.redis.ping()",
        "control.client().hset(a, b)",
        "self._client.get(k)",
        "pipeline.hget(k)",
        "client.eval(s)",
    ],
)
def test_a_command_is_found_whatever_it_is_sent_by(source: str) -> None:
    assert redis_calls(ast.parse(source))


@pytest.mark.parametrize(
    "source", ["await self.redis.aclose()", "lease.acquire(gateway.redis)", "row.delete()", "found.get(1)"]
)
def test_a_client_may_be_handed_on_and_closed(source: str) -> None:
    assert not redis_calls(ast.parse(f"async def f():\n  {source}"))


def test_commands_are_sent_to_redis_by_the_store_and_the_log_only() -> None:
    parsed = modules([name for name in files() if not name.startswith(REDIS_ROOMS)])
    assert {name: calls for name, tree in parsed if (calls := redis_calls(tree))} == {}


ORM_ROOMS = {"models", "selectors", "services"}
ORM_ELSEWHERE = {
    "eventing/rest/idempotency_records.py": "the service of the one table of REST's plumbing",
    "eventing/sql/": "locks and pages, by which services and selectors make their queries",
    "portal/apps.py": "makes the groups of roles after a migration, by the models of that migration",
    "client/": "no part of the server",
    "spark/": "never imports Django",
    "bench/": "no part of the server",
    "demo/": "no part of the server",
}
"""Places outside models, selectors and services that use the ORM, with the reason."""
ORM_METHODS = {
    "save",
    "refresh_from_db",
    "bulk_create",
    "bulk_update",
    "select_for_update",
    "get_or_create",
    "update_or_create",
}
NO_ROWS = ("session", "form")
"""Ends of expressions that have a method `save` and are no row of a table of ours."""


def orm_uses(tree: ast.AST) -> list[str]:
    """Managers of models, and calls that only rows and queries have."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    managers = [node for node in nodes if node.attr == "objects" and _is_model(node.value)]
    calls = [node for node in nodes if node.attr in ORM_METHODS and not ast.unparse(node.value).endswith(NO_ROWS)]
    return list(map(ast.unparse, managers + calls))


def _is_model(value: ast.expr) -> bool:
    name = ast.unparse(value.func if isinstance(value, ast.Call) else value).rpartition(".")[2]
    return name[:1].isupper() or name in {"get_model", "get_user_model"}


@pytest.mark.parametrize(
    "source",
    [
        "Peer.objects.filter(a=1)",
        "models.Peer.objects",
        "get_user_model().objects",
        "row.save()",
        "rows.select_for_update()",
    ],
)
def test_a_use_of_the_orm_is_found(source: str) -> None:
    assert orm_uses(ast.parse(source))


@pytest.mark.parametrize(
    "source", ["_container.objects[a]", "request.session.save()", "form.save()", "found.filter(1)"]
)
def test_what_only_looks_like_the_orm_is_not(source: str) -> None:
    assert not orm_uses(ast.parse(source))


def test_the_orm_is_used_by_models_selectors_and_services_only() -> None:
    names = [
        name
        for name in files()
        if not name.startswith(tuple(ORM_ELSEWHERE)) and not ORM_ROOMS & set(PurePosixPath(name).with_suffix("").parts)
    ]
    assert {name: uses for name, tree in modules(names) if (uses := orm_uses(tree))} == {}

"""A delegated token on a running gateway: made once, narrowed offline, and held to it by every surface, also while connected."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from herald.delegation import delegate, inspect

from tests.gateway.client import Client
from tests.gateway.server import PLAIN, LiveGateway, Prepared, event

pytestmark = pytest.mark.processes
READ_ONLY = ["subscribe", "history", "describe"]


@pytest.fixture(scope="module")
def live_gateway(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """A running edge for this module."""
    with LiveGateway(tmp_path_factory.mktemp("delegation") / "var", prepared) as running:
        yield running
        assert "Traceback" not in running.log


@pytest.fixture(scope="module")
def rp(live_gateway: LiveGateway) -> str:
    return live_gateway.create_rp(name="weather")


@pytest.fixture(scope="module")
def other(live_gateway: LiveGateway) -> str:
    return live_gateway.create_rp(name="other")


def bearing(live_gateway: LiveGateway, token: str) -> httpx.Client:
    """A client that shows this token; the caller closes it."""
    return httpx.Client(base_url=live_gateway.url(), headers={"Authorization": f"Bearer {token}"}, **PLAIN)


def biscuit(live_gateway: LiveGateway, subject: str = "ann", **claims: Any) -> str:
    with live_gateway.http(subject, **claims) as http:
        answer = http.post("/api/v1/tokens/biscuit")
    assert answer.status_code == 201, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json()["subject"] == subject
    return str(answer.json()["token"])


def publish(http: httpx.Client, rp: str) -> int:
    return http.post(f"/api/v1/rps/{rp}/events", json={"celsius": 21}).status_code


def read(http: httpx.Client, rp: str) -> int:
    return http.get(f"/api/v1/rps/{rp}/events").status_code


def code(answer: httpx.Response) -> str:
    return str(answer.json()["type"]).removeprefix("urn:herald:problem:")


def test_a_token_narrowed_offline_is_held_to_it(live_gateway: LiveGateway, rp: str, other: str) -> None:
    whole = biscuit(live_gateway)
    narrowed = delegate(whole, rps=["weather"], operations=READ_ONLY, for_s=3600)
    with bearing(live_gateway, whole) as http:
        assert (publish(http, rp), publish(http, other), read(http, other)) == (201, 201, 200)
    with bearing(live_gateway, narrowed) as http:
        assert (read(http, rp), read(http, "/localhost/weather/")) == (200, 200)
        assert http.get(f"/api/v1/rps/{rp}").status_code == 200
        assert (publish(http, rp), read(http, other)) == (403, 403)
        assert http.get(f"/api/v1/rps/{other}").status_code in (403, 404)
        assert http.post("/api/v1/rps", json={}).status_code == 403
    without_header = httpx.get(
        f"{live_gateway.url()}/api/v1/rps/{rp}/events", params={"access_token": narrowed}, **PLAIN
    )
    assert without_header.status_code == 200


async def test_it_subscribes_over_websocket_and_publishes_nothing(
    live_gateway: LiveGateway, rp: str, other: str
) -> None:
    narrowed = delegate(biscuit(live_gateway), rps=[rp], operations=READ_ONLY, for_s=3600)
    async with Client(live_gateway, token=narrowed) as client:
        await client.ok("subscribe", rp=rp, begin="now")
        assert await client.refused("publish", rp=rp, event=event("e1")) == "forbidden"
        assert await client.refused("subscribe", rp=other, begin="now") == "forbidden"
        live_gateway.publish(rp, prefix="live")
        assert (await client.frame())["event"]["id"] == "live-1"


async def test_the_live_session_is_closed_when_its_time_ends(live_gateway: LiveGateway, rp: str) -> None:
    narrowed = delegate(biscuit(live_gateway), rps=[rp], operations=READ_ONLY, for_s=6)
    ends = inspect(narrowed).expires_at
    assert ends is not None
    async with Client(live_gateway, token=narrowed) as client:
        await client.ok("subscribe", rp=rp, begin="now")
        assert (await client.closed())[0] == 4100
        assert 0 <= time.time() - ends < 15
    with bearing(live_gateway, narrowed) as http:
        assert code(http.get(f"/api/v1/rps/{rp}/events")) == "unauthenticated"


async def test_attack_used_on_after_the_token_it_was_made_from_is_revoked(live_gateway: LiveGateway, rp: str) -> None:
    narrowed = delegate(biscuit(live_gateway, "ben", jti="bens-token"), rps=[rp], operations=READ_ONLY)
    bystander = delegate(biscuit(live_gateway, "ben", jti="another"), rps=[rp], operations=READ_ONLY)
    async with Client(live_gateway, token=narrowed) as client, Client(live_gateway, token=bystander) as untouched:
        await client.ok("subscribe", rp=rp, begin="now")
        await untouched.ok("subscribe", rp=rp, begin="now")
        revoked = await asyncio.to_thread(
            live_gateway.admin.post, "/api/v1/revocations", json={"kind": "token", "value": "bens-token"}
        )
        assert revoked.status_code == 201, revoked.text
        assert (await client.closed(5.0))[0] == 4101
        await untouched.ok("ping")
    with bearing(live_gateway, narrowed) as http:
        assert code(http.get(f"/api/v1/rps/{rp}/events")) == "token-revoked"


def test_a_narrowed_token_makes_an_equally_narrowed_biscuit(live_gateway: LiveGateway, rp: str, other: str) -> None:
    scopes = [{"rps": [rp], "ops": ["describe", "history", "subscribe"]}]
    with bearing(live_gateway, biscuit(live_gateway, scopes=scopes)) as http:
        assert (read(http, rp), publish(http, rp), read(http, other)) == (200, 403, 403)


def test_attack_a_delegated_token_made_anew_without_its_narrowing(live_gateway: LiveGateway) -> None:
    """Whatever signs tokens here refuses a delegated one, also one that was narrowed in time only."""
    for asked in ({"for_s": 3600}, {"operations": ["administer"]}):
        with bearing(live_gateway, delegate(biscuit(live_gateway, admin=True), **asked)) as http:
            assert code(http.post("/api/v1/tokens/biscuit")) == "forbidden"
            assert code(http.post("/api/v1/tokens", json={"subject": "ann", "admin": True})) == "forbidden"


def test_a_biscuit_that_nobody_narrowed_is_as_good_as_its_token(live_gateway: LiveGateway) -> None:
    with bearing(live_gateway, biscuit(live_gateway, admin=True)) as http:
        again = http.post("/api/v1/tokens/biscuit")
        assert inspect(again.json()["token"]).claims == inspect(biscuit_of(http)).claims
        assert http.get("/api/v1/rps/domain.admin").status_code == 200


def biscuit_of(http: httpx.Client) -> str:
    return str(http.headers["Authorization"]).removeprefix("Bearer ")


def test_without_a_good_token_no_biscuit_is_made(live_gateway: LiveGateway) -> None:
    for headers in ({}, {"Authorization": "Bearer biscuit:x:AAAA"}, {"Authorization": "Bearer biscuit:"}):
        assert (
            code(httpx.post(f"{live_gateway.url()}/api/v1/tokens/biscuit", headers=headers, **PLAIN))
            == "unauthenticated"
        )


def test_a_biscuit_is_not_made_of_what_leaves_no_room_to_narrow_it(live_gateway: LiveGateway) -> None:
    with live_gateway.http(padding="x" * 5000) as http:
        assert code(http.post("/api/v1/tokens/biscuit")) == "invalid-request"
    with live_gateway.http() as http:
        assert code(http.post("/api/v1/tokens/biscuit", json={"subject": "root"})) == "invalid-request"


def test_the_command_gets_one_and_narrows_it(live_gateway: LiveGateway, rp: str) -> None:
    def herald(*arguments: str, token: str) -> str:
        made = subprocess.run(
            [sys.executable, "-c", "from herald.commands import main; main()", "token", *arguments],
            env={**os.environ, "HERALD_URL": live_gateway.url(), "HERALD_TOKEN": token},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    whole = herald("biscuit", token=live_gateway.token())
    narrowed = herald("delegate", "--rp", "weather", "--ops", "history", "--for", "1h", token=whole)
    with bearing(live_gateway, narrowed) as http:
        assert (read(http, rp), publish(http, rp)) == (200, 403)

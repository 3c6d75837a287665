"""Foreign bearers, strangers and rotated keys on two running gateways: "every citizen and nobody else"."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from herald.commands import cli
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from demo.harness.servers import wait_for
from tests.access.issuer_server import DISCOVERY, JWKS, IssuerServer, SigningKey
from tests.gateway.client import Client
from tests.gateway.server import PLAIN, LiveGateway, Prepared, event

pytestmark = pytest.mark.processes
EVERYTHING = ["describe", "publish", "subscribe", "history"]


@pytest.fixture(scope="module")
def country() -> Iterator[IssuerServer]:
    """The issuer whose citizens are admitted."""
    with IssuerServer() as running:
        yield running


@pytest.fixture(scope="module")
def live_gateway(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """Two gateways of one domain, with no policy that opens anything yet."""
    folder = tmp_path_factory.mktemp("citizens")
    with LiveGateway(folder / "var", prepared, gateways=2, allow_private_issuers=1, request_timeout_s=5) as running:
        yield running
        assert "Traceback" not in running.log


def citizens_of(country: IssuerServer, **more: Any) -> dict[str, Any]:
    """The one rule, whether it admits ten people or 280 million."""
    return {"issuer": country.url, "claims": {"citizen": {"equals": True}}, "allow": EVERYTHING, **more}


def status(
    live_gateway: LiveGateway, token: str | None, method: str, path: str, *, gateway: int = 0, **options: Any
) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = httpx.request(method, live_gateway.url(gateway) + path, headers=headers, **options, **PLAIN)
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")
    return answer.status_code


def outcomes(live_gateway: LiveGateway, token: str | None, rp: str, *, gateway: int = 0) -> tuple[int, int, int]:
    """The answers to publishing, reading and describing."""
    return (
        status(live_gateway, token, "POST", f"/api/v1/rps/{rp}/events", gateway=gateway, json={"a": 1}),
        status(live_gateway, token, "GET", f"/api/v1/rps/{rp}/events", gateway=gateway),
        status(live_gateway, token, "GET", f"/api/v1/rps/{rp}", gateway=gateway),
    )


def detail(live_gateway: LiveGateway, token: str, rp: str) -> str:
    """Why a bearer is refused."""
    headers = {"Authorization": f"Bearer {token}"}
    return str(httpx.get(f"{live_gateway.url()}/api/v1/rps/{rp}/events", headers=headers, **PLAIN).json()["detail"])


def admitted(live_gateway: LiveGateway, token: str | None, rp: str, *, gateway: int = 0) -> None:
    """A policy that was just written is announced: wait until the gateway has heard of it."""
    wait_for(
        lambda: status(live_gateway, token, "GET", f"/api/v1/rps/{rp}/events", gateway=gateway) == 200,
        about="a citizen is in",
    )


async def test_a_domain_that_opens_nothing_refuses_strangers_at_the_door(live_gateway: LiveGateway) -> None:
    """First in this module: no policy admits anyone yet."""
    rp = live_gateway.create_rp()
    assert outcomes(live_gateway, None, rp) == (401, 401, 401)
    with pytest.raises(InvalidStatus) as refused:
        await connect(live_gateway.ws_url(), proxy=None)
    assert refused.value.response.status_code == 401


async def test_every_citizen_and_nobody_else(live_gateway: LiveGateway, country: IssuerServer) -> None:
    rp = live_gateway.create_rp(policy=[citizens_of(country)])
    other_rp = live_gateway.create_rp()
    citizen = country.token("citizen-1", citizen=True)
    for gateway in (0, 1):
        admitted(live_gateway, citizen, rp, gateway=gateway)
        assert outcomes(live_gateway, citizen, rp, gateway=gateway) == (201, 200, 200)
    async with (
        Client(live_gateway, token=country.token("citizen-2", citizen=True), gateway=0) as reader,
        Client(live_gateway, token=country.token("citizen-3", citizen=True), gateway=1) as writer,
    ):
        await reader.ok("subscribe", rp=rp)
        await writer.ok("publish", rp=rp, event=event("from-another-gateway"))
        assert (await reader.events(1))[0]["event"]["id"] == "from-another-gateway"
        assert await writer.refused("publish", rp=other_rp, event=event("x")) == "forbidden"
        assert await writer.refused("subscribe", rp=other_rp) == "forbidden"
        assert await writer.refused("subscribe", rp=f"{rp}.admin") == "forbidden"
    with IssuerServer() as elsewhere:
        nobody = {
            "a citizen of another country": (elsewhere.token("citizen-1", citizen=True), 401),
            "a resident without the claim": (country.token("resident"), 403),
            "one whose claim says no": (country.token("expat", citizen=False), 403),
            "one whose claim is not quite true": (country.token("forger", citizen="true"), 403),
            "a bearer of this domain's own token": (live_gateway.token("clerk", citizen=True), 403),
            "somebody who signs for the country": (SigningKey("k1").sign(country.claims("x", citizen=True)), 401),
            "somebody who calls this domain the issuer": (country.token("x", iss="localhost", citizen=True), 401),
            "a citizen with a token for another domain": (country.token("x", aud="other.example", citizen=True), 401),
            "a citizen whose token has ended": (country.token("x", exp=time.time() - 1, citizen=True), 401),
            "nobody": (None, 401),
        }
        for who, (token, expected) in nobody.items():
            for gateway in (0, 1):
                assert outcomes(live_gateway, token, rp, gateway=gateway) == (expected,) * 3, who
        assert elsewhere.asked(DISCOVERY) == 0, "who is not named is not asked"
    assert outcomes(live_gateway, citizen, other_rp) == (403, 403, 403), "the rule is of one rendezvous point"
    assert country.asked(JWKS) == 2, "once by each gateway"


def test_a_foreign_administrator_administers_nothing_here(live_gateway: LiveGateway, country: IssuerServer) -> None:
    rp = live_gateway.create_rp(policy=[citizens_of(country)])
    token = country.token("minister", citizen=True, admin=True, ops=["administer", "publish", "describe", "history"])
    admitted(live_gateway, token, rp)
    assert status(live_gateway, token, "PATCH", f"/api/v1/rps/{rp}", json={"title": "mine"}) == 403
    assert status(live_gateway, token, "DELETE", f"/api/v1/rps/{rp}") == 403
    assert status(live_gateway, token, "POST", "/api/v1/rps", json={}) == 403
    assert status(live_gateway, token, "POST", "/api/v1/tokens", json={"subject": "x"}) == 403
    assert status(live_gateway, token, "GET", "/api/v1/keys") == 403
    assert status(live_gateway, token, "POST", f"/api/v1/rps/{rp}/events", json={}) == 201
    narrowed = country.token("clerk", citizen=True, ops=["history"])
    assert outcomes(live_gateway, narrowed, rp) == (403, 200, 403)


def test_a_foreign_bearers_subscription_is_theirs_alone(live_gateway: LiveGateway, country: IssuerServer) -> None:
    rp = live_gateway.create_rp(policy=[citizens_of(country)])
    token = country.token("citizen-1", citizen=True)
    admitted(live_gateway, token, rp)
    headers = {"Authorization": f"Bearer {token}"}
    made = httpx.post(f"{live_gateway.url()}/api/v1/rps/{rp}/subscriptions", json={}, headers=headers, **PLAIN)
    assert made.status_code == 201, made.text
    mine = f"/api/v1/subscriptions/{made.json()['id']}"
    assert status(live_gateway, token, "GET", f"{mine}/events") == 200
    assert status(live_gateway, country.token("citizen-2", citizen=True), "GET", f"{mine}/events") == 404
    assert status(live_gateway, live_gateway.token("citizen-1"), "GET", f"{mine}/events") == 404, (
        "of the same name, here"
    )


def test_keys_named_in_somebody_elses_policy_open_nothing_else(
    live_gateway: LiveGateway, country: IssuerServer
) -> None:
    """Mallory may name his own keys for the country in his own policy: they count there and nowhere else."""
    rp = live_gateway.create_rp(policy=[citizens_of(country)])
    with IssuerServer() as mallory:
        mallory.keys = [SigningKey("m1")]
        mallory.publish()
        own = live_gateway.create_rp(policy=[citizens_of(country, jwks=mallory.url + JWKS)])
        forged = mallory.keys[0].sign(country.claims("citizen-1", citizen=True))
        admitted(live_gateway, forged, own)
        assert outcomes(live_gateway, forged, rp) == (403, 403, 403)
        assert status(live_gateway, country.token("citizen-1", citizen=True), "GET", f"/api/v1/rps/{rp}/events") == 200


def test_an_issuer_is_asked_no_more_when_no_policy_names_it(live_gateway: LiveGateway) -> None:
    with IssuerServer() as gone:
        rp, kept = (
            live_gateway.create_rp(policy=[citizens_of(gone)]),
            live_gateway.create_rp(policy=[citizens_of(gone)]),
        )
        admitted(live_gateway, gone.token(citizen=True), rp)
        live_gateway.admin.delete(f"/api/v1/rps/{rp}").raise_for_status()
        assert status(live_gateway, gone.token("a", citizen=True), "GET", f"/api/v1/rps/{kept}/events") == 200
        live_gateway.admin.patch(f"/api/v1/rps/{kept}", json={"policy": []}).raise_for_status()
        wait_for(
            lambda: status(live_gateway, gone.token("b", citizen=True), "GET", f"/api/v1/rps/{kept}/events") == 401,
            about="the issuer is forgotten",
        )


def test_an_issuer_that_does_not_answer_is_no_failure_of_ours_and_holds_up_nobody(live_gateway: LiveGateway) -> None:
    with IssuerServer() as slow:
        rp = live_gateway.create_rp(policy=[citizens_of(slow)])
        slow.held.clear()
        statuses: list[int] = []
        wait_for(lambda: "not for" in detail(live_gateway, slow.token(aud="x"), rp), about="it is named")

        def ask(path: str) -> None:
            statuses.append(status(live_gateway, slow.token(citizen=True), "GET", path))

        waiting = [
            threading.Thread(target=ask, args=(path,))
            for path in [f"/api/v1/rps/{rp}/events"] * 8 + [f"/api/v1/rps/{rp}"] * 8
        ]
        for thread in waiting:
            thread.start()
        wait_for(lambda: slow.asked(DISCOVERY) == 1, about="it is asked")
        began = time.monotonic()
        assert outcomes(live_gateway, live_gateway.token(), rp) == (403, 403, 403)
        assert status(live_gateway, live_gateway.token("root", admin=True), "GET", f"/api/v1/rps/{rp}/events") == 200
        assert time.monotonic() - began < 15, "others are served, and do not wait for it"
        slow.answer(DISCOVERY, b"", status=500)
        slow.held.set()
        for thread in waiting:
            thread.join()
        assert statuses == [503] * 16
        assert slow.asked(DISCOVERY) == 1


# Strangers


async def test_anyone_is_admitted_where_a_policy_says_so_and_told_nothing_elsewhere(live_gateway: LiveGateway) -> None:
    closed = live_gateway.create_rp(name="closed")
    rp = live_gateway.create_rp(policy=[{"issuer": "anyone", "allow": ["describe", "subscribe", "history"]}])
    admitted(live_gateway, None, rp)
    assert outcomes(live_gateway, None, rp) == (401, 200, 200)
    assert outcomes(live_gateway, live_gateway.token("somebody"), rp) == (403, 200, 200)
    for reference in (closed, "a" * 26, "closed"):
        assert status(live_gateway, None, "GET", f"/api/v1/rps/{reference}/events") == 401
        assert status(live_gateway, None, "GET", f"/api/v1/rps/{reference}") == 401
    for method, path in (
        ("GET", "/api/v1/rps"),
        ("POST", "/api/v1/rps"),
        ("PATCH", f"/api/v1/rps/{rp}"),
        ("DELETE", f"/api/v1/rps/{rp}"),
        ("POST", f"/api/v1/rps/{rp}/subscriptions"),
        ("POST", "/api/v1/tokens"),
        ("GET", "/api/v1/keys"),
    ):
        body: dict[str, Any] = {} if method == "GET" or method == "DELETE" else {"json": {}}
        assert status(live_gateway, None, method, path, **body) == 401, (method, path)
    assert status(live_gateway, "abc", "GET", f"/api/v1/rps/{rp}/events") == 401, "a bad token is not no token"
    async with connect(live_gateway.ws_url(), proxy=None) as ws:
        for op, expected in (("subscribe", "ok"), ("publish", "error")):
            await ws.send(
                json.dumps({"op": op, "id": op, "rp": rp, **({"event": event("x")} if op == "publish" else {})})
            )
            answer = json.loads(await asyncio.wait_for(ws.recv(), 30))
            assert answer["op"] == expected, answer
        assert answer["type"] == "urn:herald:problem:unauthenticated"
        await asyncio.to_thread(live_gateway.publish, rp)
        assert json.loads(await asyncio.wait_for(ws.recv(), 30))["op"] == "event"


async def test_a_domain_may_refuse_strangers_connections(tmp_path: Path, prepared: Prepared) -> None:
    with LiveGateway(tmp_path / "var", prepared, anonymous_sessions=0) as closed:
        rp = closed.create_rp(policy=[{"issuer": "anyone", "allow": EVERYTHING}])
        admitted(closed, None, rp)
        assert status(closed, None, "GET", f"/api/v1/rps/{rp}/stream") == 401
        with pytest.raises(InvalidStatus) as refused:
            await connect(closed.ws_url(), proxy=None)
        assert refused.value.response.status_code == 401


# Keys of this domain


def test_tokens_of_before_during_and_after_a_rotation_verify_on_all_gateways_without_a_pause(
    live_gateway: LiveGateway,
) -> None:
    """Publishing goes on through a rotation, on both gateways, with tokens made at every moment of it."""
    rp = live_gateway.create_rp()
    over = threading.Event()
    counts: dict[int, int] = {}
    kids: set[str] = set()

    def publish(gateway: int) -> None:
        """Alternately with the oldest token and with one that was just signed by the other gateway."""
        oldest = None
        while not over.is_set():
            made = live_gateway.admin.post(f"{live_gateway.url(1 - gateway)}/api/v1/tokens", json={"subject": "ann"})
            assert made.status_code == 201, made.text
            token = made.json()["token"]
            kids.add(_header(token)["kid"])
            oldest = oldest or token
            for one in (oldest, token):
                answer = status(live_gateway, one, "POST", f"/api/v1/rps/{rp}/events", gateway=gateway, json={"a": 1})
                counts[answer] = counts.get(answer, 0) + 1

    before = {key["kid"]: key for key in live_gateway.admin.get("/api/v1/keys").json()["items"]}
    assert [key["state"] for key in before.values()] == ["signing"]
    publishers = [threading.Thread(target=publish, args=(gateway,)) for gateway in (0, 1)]
    for thread in publishers:
        thread.start()
    try:
        wait_for(lambda: counts.get(201, 0) > 5, about="both publish")
        rotated = live_gateway.admin.post("/api/v1/keys/rotate", json={"signs_after_s": 1})
        assert rotated.status_code == 201, rotated.text
        assert rotated.json()["state"] == "published"
        assert live_gateway.admin.post("/api/v1/keys/rotate", json={}).status_code == 409
        published = httpx.get(live_gateway.url(1) + "/.well-known/jwks.json", **PLAIN)
        assert rotated.json()["kid"] in {key["kid"] for key in published.json()["keys"]}, "before it signs"
        assert "max-age" in published.headers["cache-control"]
        wait_for(lambda: len(kids) == 2, about="the new key signs")
        so_far = counts[201]
        wait_for(lambda: counts[201] > so_far + 8, about="both publish with it")
    finally:
        over.set()
        for thread in publishers:
            thread.join()
    assert set(counts) == {201}, counts
    states = {
        key["kid"]: (key["state"], key["not_after"]) for key in live_gateway.admin.get("/api/v1/keys").json()["items"]
    }
    (old,) = before
    assert states[rotated.json()["kid"]] == ("signing", None)
    assert states[old][0] == "verifying"
    assert states[old][1] is not None


def test_the_command_lists_and_rotates_keys_and_asks_for_scopes(
    live_gateway: LiveGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("herald.commands.token.find_home", lambda: None)  # as on another machine than the server

    def herald(*arguments: str, code: int = 0) -> Any:
        options = ["--url", live_gateway.url(), "--token", live_gateway.token("root", admin=True), "--json"]
        result = CliRunner().invoke(cli, [*arguments, *options])
        assert result.exit_code == code, result.output
        return [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]

    assert "signing" in {key["state"] for key in herald("key", "list")}
    (rotated,) = herald("key", "rotate", "--signs-after-s", "86400")
    assert rotated["state"] == "published"
    herald("key", "rotate", code=1)
    (retired,) = herald("key", "retire", rotated["kid"], "--reason", "not needed")
    assert (retired["kid"], retired["state"]) == (rotated["kid"], "retired")
    (issued,) = herald(
        "token", "create", "--subject", "roof", "--scope", "a,b/*=publish,history", "--scope", "c=publish"
    )
    assert issued["scopes"] == [
        {"rps": ["/localhost/a/", "/localhost/b/*"], "ops": ["history", "publish"]},
        {"rps": ["/localhost/c/"], "ops": ["publish"]},
    ]
    herald("token", "create", "--scope", "nothing", code=2)


async def test_a_retired_key_ends_its_tokens_and_sessions_on_all_gateways_and_another_signs(
    live_gateway: LiveGateway,
) -> None:
    """Last in this module: the key that signs the tests' own tokens is the one whose secret is out."""
    rp = live_gateway.create_rp()
    stolen = live_gateway.token("thief", admin=True)
    fresh = live_gateway.admin.post("/api/v1/tokens", json={"subject": "root", "admin": True}).json()["token"]
    victim = _header(stolen)["kid"]
    assert _header(fresh)["kid"] != victim, "rotated before"
    async with (
        Client(live_gateway, token=stolen, gateway=1) as thief,
        Client(live_gateway, token=fresh, gateway=1) as honest,
    ):
        await thief.ok("subscribe", rp=rp)
        headers = {"Authorization": f"Bearer {fresh}"}
        began = time.monotonic()
        async with httpx.AsyncClient(base_url=live_gateway.url(), headers=headers, **PLAIN) as http:
            retired = await http.post(f"/api/v1/keys/{victim}/retire", json={"reason": "stolen"})
        assert (retired.status_code, retired.json()["state"]) == (200, "retired")
        assert await thief.closed() == (4101, "token-revoked")
        assert time.monotonic() - began < 15
        await honest.ok("ping")
        for gateway in (0, 1):
            assert outcomes(live_gateway, stolen, rp, gateway=gateway) == (401, 401, 401)
            assert outcomes(live_gateway, live_gateway.token("new", admin=True), rp, gateway=gateway) == (401, 401, 401)
            assert outcomes(live_gateway, fresh, rp, gateway=gateway) == (201, 200, 200)
            kids = {key["kid"] for key in published(live_gateway, gateway)}
            assert _header(fresh)["kid"] in kids
            assert victim not in kids


def published(live_gateway: LiveGateway, gateway: int) -> list[dict[str, Any]]:
    """The keys as the world sees them."""
    keys: list[dict[str, Any]] = httpx.get(live_gateway.url(gateway) + "/.well-known/jwks.json", **PLAIN).json()["keys"]
    return keys


def _header(token: str) -> dict[str, Any]:
    head = token.split(".")[0]
    members: dict[str, Any] = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    return members

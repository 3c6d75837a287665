"""Tokens and policies on every binding: who is let in, and who is let go when that changes."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest
from joserfc.jwk import OKPKey
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from eventing.access.rules import tokens
from tests.gateway.client import Client
from tests.gateway.server import PLAIN, STRUCTURED, LiveGateway, event


def get(live_gateway: LiveGateway, path: str, **headers: str) -> httpx.Response:
    return httpx.get(live_gateway.url() + path, headers=headers, **PLAIN)


def bad_tokens(live_gateway: LiveGateway) -> dict[str, str]:
    """What is no token of this domain, by what is wrong with it."""
    good = live_gateway.token()
    stranger = OKPKey.generate_key("Ed25519")
    claims = {"iss": "localhost", "aud": "localhost", "sub": "x", "exp": time.time() + 60}
    return {
        "expired": live_gateway.token(lease_s=-1),
        "without an end": live_gateway.token(exp=None),
        "of another domain": live_gateway.token(iss="other.example"),
        "for another domain": live_gateway.token(aud="other.example"),
        "without a subject": live_gateway.token(sub=None),
        "from the future": live_gateway.token(iat=time.time() + 3600, nbf=time.time() + 3600),
        "altered": good[:-6] + ("AAAAAA" if good[-6:] != "AAAAAA" else "BBBBBB"),
        "of an unknown key": tokens.sign(claims, {**stranger.as_dict(private=True), "kid": "unknown"}),
        "unsigned": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.",
        "no JWT": "abc",
        "empty parts": "..",
        "too long": "a" * 9000,
    }


BAD = (
    *("expired", "without an end", "of another domain", "for another domain", "without a subject", "from the future"),
    *("altered", "of an unknown key", "unsigned", "no JWT", "empty parts", "too long"),
)


@pytest.mark.parametrize("wrong", BAD)
async def test_a_bad_token_is_refused_on_every_binding(live_gateway: LiveGateway, rp: str, wrong: str) -> None:
    token = bad_tokens(live_gateway)[wrong]
    authorization = {"Authorization": f"Bearer {token}"}
    for path in ("events", "stream"):
        answer = get(live_gateway, f"/api/v1/rps/{rp}/{path}", **authorization)
        assert (answer.status_code, answer.json()["type"]) == (401, "urn:herald:problem:unauthenticated"), path
        assert answer.headers["www-authenticate"].startswith("Bearer")
    async with httpx.AsyncClient(base_url=live_gateway.url(), headers=authorization, **PLAIN) as http:
        assert (await http.post(f"/api/v1/rps/{rp}/events", content="{}")).status_code == 401
    with pytest.raises(InvalidStatus) as caught:
        await connect(live_gateway.ws_url(), additional_headers=authorization, proxy=None)
    refusal = (caught.value.response.status_code, json.loads(caught.value.response.body or b"")["type"])
    if wrong == "too long":  # for a line of a WebSocket handshake, already
        assert refusal == (400, "urn:herald:problem:invalid-request")
    else:
        assert refusal == (401, "urn:herald:problem:unauthenticated")


@pytest.mark.parametrize("authorization", ["", "Bearer", "Token x", "Basic abc", "bearer\u00ff x"])
def test_without_a_token_nothing_is_told(live_gateway: LiveGateway, rp: str, authorization: str) -> None:
    headers = {"Authorization": authorization.encode("latin-1")} if authorization else {}
    for reference in (rp, "a" * 26):  # that an RP does not exist is not told either
        answer = httpx.get(f"{live_gateway.url()}/api/v1/rps/{reference}/events", headers=headers, **PLAIN)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["type"]) == (401, "urn:herald:problem:unauthenticated")


def test_a_token_in_the_query_is_as_good(live_gateway: LiveGateway, rp: str) -> None:
    answer = httpx.get(
        f"{live_gateway.url()}/api/v1/rps/{rp}/events", params={"access_token": live_gateway.token()}, **PLAIN
    )
    assert answer.status_code == 200


def test_health_needs_no_token(live_gateway: LiveGateway) -> None:
    assert get(live_gateway, "/livez").status_code == 200
    ready = get(live_gateway, "/readyz")
    assert ready.status_code == 503, "no worker runs here"
    assert ready.json()["checks"]["redis"] == "ok"
    assert ready.json()["checks"]["workers"] != "ok"


async def test_a_session_ends_with_its_token_within_five_seconds(live_gateway: LiveGateway, rp: str) -> None:
    began = time.monotonic()
    async with Client(live_gateway, lease_s=5.0) as client:
        await client.ok("subscribe", rp=rp)
        assert await client.closed() == (4100, "token-expired")
        assert 4.0 <= time.monotonic() - began < 20  # ten on a machine that does nothing else
        assert await client.frame() == {"op": "closing", "reason": "token-expired", "retry": False}


@pytest.mark.parametrize(
    ("ops", "publish", "subscribe", "history"),
    [
        (["publish"], True, False, False),
        (["subscribe"], False, True, False),
        (["subscribe", "history"], False, True, True),
        ([], False, False, False),
    ],
)
async def test_a_token_narrowed_to_operations_does_no_others(
    live_gateway: LiveGateway, rp: str, ops: list[str], publish: bool, subscribe: bool, history: bool
) -> None:
    async with Client(live_gateway, ops=ops) as client:
        for expected, op, members in (
            (publish, "publish", {"event": event("a")}),
            (history, "subscribe", {"begin": "earliest"}),
            (subscribe and not history, "subscribe", {"begin": "now"}),
        ):
            answer = await client.ask(op, rp=rp, **members)
            if expected:
                assert answer["op"] == "ok", answer
            else:
                assert answer["type"] in ("urn:herald:problem:forbidden", "urn:herald:problem:conflict"), answer
    with live_gateway.http(ops=ops) as http:
        answer_http = http.get(f"/api/v1/rps/{rp}/events")
        assert answer_http.status_code == (200 if history else 403)


async def test_a_token_narrowed_to_rps_does_nothing_at_others(live_gateway: LiveGateway) -> None:
    inside, outside = live_gateway.create_rp(name="narrow/inside"), live_gateway.create_rp(name="wide/outside")
    scopes = [{"rps": ["/localhost/narrow/*"], "ops": ["publish", "subscribe"]}, {"rps": [outside], "ops": ["history"]}]
    async with Client(live_gateway, scopes=scopes) as client:
        await client.ok("publish", rp=inside, event=event("a"))
        await client.ok("subscribe", rp="narrow/inside")
        assert await client.refused("publish", rp=outside, event=event("a")) == "forbidden"
        assert await client.refused("subscribe", rp=outside) == "forbidden"
    with live_gateway.http(scopes=scopes) as http:
        assert http.get(f"/api/v1/rps/{outside}/events").status_code == 200
        assert http.get(f"/api/v1/rps/{inside}/events").status_code == 403
        assert http.get(f"/api/v1/rps/{inside}").status_code == 403
        assert http.post("/api/v1/rps", json={}).status_code == 403, "it is for two rendezvous points"
    with live_gateway.http("root", admin=True, scopes=scopes) as http:
        assert http.get(f"/api/v1/rps/{inside}/events").status_code == 403, "an administrator's too"
        assert http.post("/api/v1/tokens", json={"subject": "x"}).status_code == 403


async def test_a_policy_says_who_may_do_what(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(
        policy=[
            {"issuer": "domain", "claims": {"sub": {"equals": "ann"}}, "allow": ["publish"]},
            {"issuer": "domain", "claims": {"team": {"in": ["roof", "cellar"]}}, "allow": ["subscribe"]},
        ]
    )
    async with Client(live_gateway, subject="ann") as ann, Client(live_gateway, subject="ben", team="roof") as ben:
        await ann.ok("publish", rp=rp, event=event("a"))
        assert await ann.refused("subscribe", rp=rp) == "forbidden"
        assert await ben.refused("publish", rp=rp, event=event("b")) == "forbidden"
        assert await ben.refused("subscribe", rp=rp, begin="earliest") == "forbidden"
        await ben.ok("subscribe", rp=rp)
        await ann.ok("publish", rp=rp, event=event("c"))
        assert (await ben.events(1))[0]["event"]["id"] == "c"
    async with Client(live_gateway, subject="eve", team="attic") as eve:
        assert await eve.refused("subscribe", rp=rp) == "forbidden"


async def test_a_policy_narrowed_while_subscribed_ends_the_readings_it_no_longer_allows(
    live_gateway: LiveGateway,
) -> None:
    rp, other = live_gateway.create_rp(), live_gateway.create_rp()
    async with Client(live_gateway, subject="ann") as ann, Client(live_gateway, subject="ben") as ben:
        for client in (ann, ben):
            await client.ok("subscribe", rp=rp, id="my-subscription")
            await client.ok("subscribe", rp=other)
        only_ann = [{"issuer": "domain", "claims": {"sub": {"equals": "ann"}}, "allow": ["subscribe"]}]
        live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"policy": only_ann}).raise_for_status()
        frame = await ben.frame(5)
        assert (frame["op"], frame["type"]) == ("error", "urn:herald:problem:forbidden")
        assert (frame["id"], frame["rp"]) == ("my-subscription", rp)
        live_gateway.publish(rp, 1)
        live_gateway.publish(other, 1)
        assert [one["rp"] for one in await ben.events(1)] == [other]
        assert [one["rp"] for one in await ann.events(2)] == [rp, other]
        assert await ben.refused("subscribe", rp=rp) == "forbidden"


async def test_a_policy_narrowed_is_in_force_for_publishers_at_once(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    async with Client(live_gateway) as client:
        await client.ok("publish", rp=rp, event=event("a"))
        live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"policy": []}).raise_for_status()
        answers = [(await client.ask("publish", rp=rp, event=event(f"b{number}")))["op"] for number in range(100)]
        assert answers[-1] == "error"
        assert answers.count("ok") < 50, "a change is announced, not waited for"


async def test_an_rp_deleted_while_subscribed_ends_its_readings_only(live_gateway: LiveGateway) -> None:
    rp, other = live_gateway.create_rp(), live_gateway.create_rp()
    async with Client(live_gateway) as client:
        await client.ok("subscribe", rp=rp, id="s1")
        await client.ok("subscribe", rp=other)
        live_gateway.admin.delete(f"/api/v1/rps/{rp}").raise_for_status()
        frame = await client.frame(5)
        assert (frame["op"], frame["id"], frame["rp"]) == ("error", "s1", rp)
        assert frame["type"] in ("urn:herald:problem:not-found", "urn:herald:problem:gone")
        assert await client.refused("publish", rp=rp, event=event("a")) in ("not-found", "gone")
        live_gateway.publish(other, 1)
        await client.events(1)
        await client.ok("ping")


async def test_an_rp_whose_lease_has_ended_is_gone(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(lease_s=4)
    async with Client(live_gateway) as client:
        await client.ok("publish", rp=rp, event=event("a"))
        until = time.time() + 30
        while (answer := await client.ask("publish", rp=rp, event=event("b")))["op"] == "ok":
            assert time.time() < until
        assert answer["type"] == "urn:herald:problem:gone"
        assert await client.refused("subscribe", rp=rp) == "gone"
    with live_gateway.http() as http:
        assert http.get(f"/api/v1/rps/{rp}/events").status_code == 410


# Administrative RPs


async def events_of(client: Client, rp: str) -> list[dict[str, Any]]:
    answer = await client.ok("subscribe", rp=rp, begin="earliest")
    assert answer["recovered"]
    return [frame["event"] for frame in await client.events(1)]


async def test_an_administrative_rp_is_read_by_creator_and_administrators_only(live_gateway: LiveGateway) -> None:
    with live_gateway.http("ann") as http:
        rp = http.post("/api/v1/rps", json={}).json()["id"]
    async with (
        Client(live_gateway, subject="ann") as creator,
        Client(live_gateway, admin=True) as admin,
        Client(live_gateway) as other,
    ):
        for client in (creator, admin):
            assert (await events_of(client, f"{rp}.admin"))[0]["type"] == "io.herald.rp.created"
        assert await other.refused("subscribe", rp=f"{rp}.admin") == "forbidden"
        assert await creator.refused("subscribe", rp="domain.admin") == "forbidden"
        assert (await events_of(admin, "domain.admin"))[0]["type"].startswith("io.herald.")
    with live_gateway.http() as http:
        for action in ("events", "stream"):
            assert http.get(f"/api/v1/rps/{rp}.admin/{action}").status_code == 403


async def test_nobody_but_the_domain_publishes_at_an_administrative_rp(live_gateway: LiveGateway, rp: str) -> None:
    async with Client(live_gateway, subject="root", admin=True) as client:
        for reference in (f"{rp}.admin", "domain.admin"):
            assert await client.refused("publish", rp=reference, event=event("a")) == "forbidden"
            answer = live_gateway.admin.post(
                f"/api/v1/rps/{reference}/events", content=json.dumps(event("a")), headers=STRUCTURED
            )
            assert (answer.status_code, answer.json()["type"]) == (403, "urn:herald:problem:forbidden")


async def test_the_administrative_rp_of_a_deleted_rp_ends_too(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    async with Client(live_gateway, subject="root", admin=True) as client:
        await client.ok("subscribe", rp=f"{rp}.admin")
        live_gateway.admin.delete(f"/api/v1/rps/{rp}").raise_for_status()
        frames = [await client.frame(5)]
        while frames[-1]["op"] == "event":
            frames.append(await client.frame(5))
        assert frames[-1]["op"] == "error"
        assert frames[-1]["rp"] == f"{rp}.admin"

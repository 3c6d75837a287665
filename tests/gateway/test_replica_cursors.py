"""Cursors of a replica are good at every other one, by every binding; clients are sent there when this one goes.

Two rendezvous points of one edge stand for two replicas of one: each is given the other's events as foreign runs, in
another order. A cursor names feeds, not rendezvous points, so that nothing tells the two cases apart.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.test import override_settings
from websockets.asyncio.client import connect

from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.log import control
from eventing.log.federated_bulk import Incoming
from tests.gateway.client import Client
from tests.gateway.server import PLAIN, STRUCTURED, LiveGateway, Prepared, event, ids_of
from tests.log.runs import receive_run
from tests.replication.own_logs import backup, put_back

pytestmark = pytest.mark.processes

OTHER = ["https://b.example", "https://c.example/herald"]


class Replicas:
    """Two replicas, X and Y, of one RP, and what each has of the other."""

    def __init__(self, live_gateway: LiveGateway, **asked: Any) -> None:
        self.live_gateway = live_gateway
        self.x, self.y = live_gateway.create_rp(**asked), live_gateway.create_rp(**asked)
        self.feeds = {rp: Feed("localhost", self._document(rp)["epoch"]).key for rp in (self.x, self.y)}
        self._held: dict[tuple[str, str], int] = {}

    def _document(self, rp: str) -> Any:
        return self.live_gateway.admin.get(f"/api/v1/rps/{rp}").json()

    def publish(self, rp: str, *ids: str) -> None:
        for event_id in ids:
            self.live_gateway.admin.post(
                f"/api/v1/rps/{rp}/events", json=event(event_id), headers=STRUCTURED
            ).raise_for_status()

    def carry(self, to: str, *ids: str, feed: str = "", skipped: int = 0) -> None:
        """The other's events come to a replica as one run; `skipped` before them never do."""
        feed = feed or self.feeds[self.y if to == self.x else self.x]
        first = self._held.get((to, feed), 0) + skipped + 1
        bodies = [json.dumps(event(event_id)).encode() for event_id in ids]
        digests = [os.urandom(12) for _ in ids]
        run = (feed, first, first + len(ids) - 1, bodies, digests, b"seal", b"", ("other.example",), first - 1)
        with override_settings(HERALD=self.live_gateway.config):
            assert receive_run(Incoming(to, *run)).kind == "new"
        self._held[to, feed] = first + len(ids) - 1

    def vector(self, **sequences: int) -> dict[str, int]:
        return {self.feeds[getattr(self, name)]: sequence for name, sequence in sequences.items()}


@pytest.fixture
def replicas(live_gateway: LiveGateway) -> Replicas:
    """X has x1 x2 y1 y2; Y has y1 x1 y2, and x2 is still on its way there."""
    made = Replicas(live_gateway)
    made.publish(made.x, "x1", "x2")
    made.carry(made.x, "y1", "y2")
    made.publish(made.y, "y1")
    made.carry(made.y, "x1")
    made.publish(made.y, "y2")
    return made


async def test_event_frames_carry_the_vector_where_there_are_foreign_events(replicas: Replicas, client: Client) -> None:
    ok = await client.ok("subscribe", rp=replicas.y, begin="earliest")
    assert Cursor.parse(ok["cursor"]).vector == replicas.vector(y=0)
    frames = await client.events(3)
    assert [Cursor.parse(frame["cursor"]).vector for frame in frames] == [
        replicas.vector(y=1),
        replicas.vector(x=1, y=1),
        replicas.vector(x=1, y=2),
    ]
    replicas.carry(replicas.y, "x2")
    (live,) = await client.events(1)
    assert Cursor.parse(live["cursor"]) == Cursor(live["epoch"], live["offset"], replicas.vector(x=2, y=2))


async def test_frames_of_an_rp_without_foreign_events_are_as_ever(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    await client.ok("subscribe", rp=rp)
    live_gateway.publish(rp, 1)
    (frame,) = await client.events(1)
    assert frame["cursor"] == f"{frame['epoch']}:1"
    assert client.texts[0].startswith(f'{{"op":"event","rp":"{rp}","epoch":"{frame["epoch"]}","offset":1,"cursor":')


async def test_herald_reader_moves_and_what_is_on_its_way_is_not_doubled(replicas: Replicas, client: Client) -> None:
    await client.ok("subscribe", rp=replicas.x, begin="earliest")
    cursor = (await client.events(4))[2]["cursor"]  # x1 x2 y1
    ok = await client.ok("subscribe", rp=replicas.y, begin=cursor)
    assert ok["recovered"] is True
    (frame,) = await client.events(1)
    assert frame["event"]["id"] == "y2"
    replicas.carry(replicas.y, "x2")  # has been read at X
    covered = await client.frame()
    assert (covered["op"], covered["from"], covered["to"]) == ("covered", 4, 4)
    assert Cursor.parse(covered["cursor"]).vector == replicas.vector(x=2, y=2)
    replicas.publish(replicas.y, "y3")
    (frame,) = await client.events(1)
    assert (frame["event"]["id"], frame["offset"]) == ("y3", 5)
    await client.quiet()


async def test_cursor_taken_while_ahead_of_the_replica_remembers_what_is_ahead(
    replicas: Replicas, client: Client
) -> None:
    await client.ok("subscribe", rp=replicas.x, begin="earliest")
    cursor = (await client.events(4))[2]["cursor"]
    await client.ok("subscribe", rp=replicas.y, begin=cursor)
    cursor = (await client.events(1))[0]["cursor"]  # y2, of Y's log, with x2 that is not there yet
    await client.ok("unsubscribe", rp=replicas.y)
    replicas.carry(replicas.y, "x2", "x3")
    await client.ok("subscribe", rp=replicas.y, begin=cursor)
    covered = await client.frame()
    assert (covered["op"], covered["from"], covered["to"]) == ("covered", 4, 4)
    assert (await client.events(1))[0]["event"]["id"] == "x3"
    await client.quiet()


def test_pull_goes_on_at_the_other_replica(replicas: Replicas) -> None:
    get = replicas.live_gateway.admin.get
    page = get(f"/api/v1/rps/{replicas.x}/events", params={"limit": 3}).json()
    assert ids_of(page["events"]) == ["x1", "x2", "y1"]
    replicas.publish(replicas.x, "x3")
    page = get(f"/api/v1/rps/{replicas.y}/events", params={"after": page["cursor"]}).json()
    assert (ids_of(page["events"]), page["recovered"], page["offset"]) == (["y2"], True, 3)
    replicas.carry(replicas.y, "x2", "x3")
    replicas.publish(replicas.y, "y3")
    page = get(f"/api/v1/rps/{replicas.y}/events", params={"after": page["cursor"]}).json()
    assert (ids_of(page["events"]), page["offset"], "offsets" in page) == (["x3", "y3"], 6, False)
    back = get(f"/api/v1/rps/{replicas.x}/events", params={"after": page["cursor"]}).json()
    assert (back["events"], back["recovered"]) == ([], True)
    replicas.publish(replicas.x, "x4")
    page = get(f"/api/v1/rps/{replicas.x}/events", params={"after": back["cursor"]}).json()
    assert ids_of(page["events"]) == ["x4"]


def test_pull_tells_the_offsets_of_events_between_which_others_are_covered(replicas: Replicas) -> None:
    get = replicas.live_gateway.admin.get
    cursor = Cursor("zzz", 9, replicas.vector(x=1))
    page = get(f"/api/v1/rps/{replicas.y}/events", params={"after": str(cursor)}).json()
    assert (ids_of(page["events"]), page["offsets"], page["recovered"]) == (["y1", "y2"], [1, 3], True)


def test_stream_resumes_by_last_event_id_of_the_other_replica(replicas: Replicas) -> None:
    cursor = Cursor("zzz", 9, replicas.vector(x=2, y=1))
    with replicas.live_gateway.http() as http:
        headers = {"Last-Event-ID": str(cursor)}
        with http.stream("GET", f"/api/v1/rps/{replicas.y}/stream", headers=headers) as answer:
            lines = answer.iter_lines()
            first = next(line for line in lines if line.startswith("id: "))
            assert json.loads(next(lines).removeprefix("data: "))["id"] == "y2"
            assert Cursor.parse(first.removeprefix("id: ")).vector == replicas.vector(x=2, y=2)
            replicas.carry(replicas.y, "x2", "x3")
            ids = (line for line in lines if line.startswith("id: "))
            assert Cursor.parse(next(ids).removeprefix("id: ")).offset == 4  # covered: an id and no data
            assert next(lines) == ""
            assert Cursor.parse(next(ids).removeprefix("id: ")).vector == replicas.vector(x=3, y=2)


async def test_cloudevents_reader_begins_at_a_cursor_of_the_other_replica(replicas: Replicas) -> None:
    live_gateway, cursor = replicas.live_gateway, Cursor("zzz", 9, replicas.vector(x=2, y=1))
    url = live_gateway.ws_url(rp=replicas.y, **{"from": str(cursor)})
    headers = {"Authorization": f"Bearer {live_gateway.token()}"}
    protocols: Any = ["cloudevents.json"]
    async with connect(url, additional_headers=headers, subprotocols=protocols, proxy=None) as ws:
        assert json.loads(await ws.recv())["id"] == "y2"
        replicas.carry(replicas.y, "x2", "x3")
        assert json.loads(await ws.recv())["id"] == "x3"


def test_durable_subscription_is_acknowledged_with_a_cursor_of_the_other_replica(replicas: Replicas) -> None:
    admin = replicas.live_gateway.admin
    begin = str(Cursor("zzz", 9, replicas.vector(y=1)))
    made = admin.post(f"/api/v1/rps/{replicas.y}/subscriptions", json={"from": begin}).json()
    assert Cursor.parse(made["cursor"]).offset == 1
    page = admin.get(made["links"]["events"]).json()
    assert ids_of(page["events"]) == ["x1", "y2"]

    def acknowledged(vector: dict[str, int]) -> int:
        answer = admin.post(made["links"]["ack"], json={"cursor": str(Cursor("zzz", 9, vector))})
        assert answer.status_code == 200, answer.text
        return Cursor.parse(answer.json()["cursor"]).offset

    assert acknowledged(replicas.vector(x=1, y=1)) == 2
    assert acknowledged(replicas.vector(y=2)) == 2  # x1, at 2, is not covered: nothing moves, and never back
    assert acknowledged(replicas.vector(x=7, y=2)) == 3
    assert admin.post(made["links"]["ack"], json={"cursor": page["cursor"]}).json()["cursor"].endswith(":3")
    assert admin.post(made["links"]["ack"], json={"cursor": "zzz:3"}).status_code == 400


def test_trimmed_history_is_told_by_feed_and_sequence_only_where_it_is_lacking(live_gateway: LiveGateway) -> None:
    replicas = Replicas(live_gateway, history={"max_events": 2})
    replicas.publish(replicas.x, "x1", "x2")
    replicas.carry(replicas.x, "y1", "y2", "y3")  # x1 x2 y1 are gone
    get = live_gateway.admin.get

    def after(vector: dict[str, int]) -> Any:
        return get(f"/api/v1/rps/{replicas.x}/events", params={"after": str(Cursor("zzz", 9, vector))}).json()

    page = after(replicas.vector(x=2, y=1))
    assert (ids_of(page["events"]), page["recovered"]) == (["y2", "y3"], True)
    page = after(replicas.vector(x=1, y=2))
    assert (ids_of(page["events"]), page["recovered"]) == (["y3"], False)
    assert page["gap"]["feeds"] == {replicas.feeds[replicas.x]: [2, 2]}
    assert (page["gap"]["from"], page["gap"]["to"]) == (
        3,
        3,
    )  # as many offsets as are lost, the last before the oldest held


async def test_hole_of_a_feed_is_told_live_replayed_and_pulled(replicas: Replicas, client: Client) -> None:
    await client.ok("subscribe", rp=replicas.y)
    replicas.carry(replicas.y, "x5", skipped=3)
    live = await client.frame()
    hole = {replicas.feeds[replicas.x]: [2, 4]}
    assert (live["op"], live["feeds"], live["from"], live["to"]) == ("gap", hole, 4, 3)
    assert (await client.events(1))[0]["event"]["id"] == "x5"
    await client.ok("unsubscribe", rp=replicas.y)
    begin = str(Cursor("zzz", 9, replicas.vector(x=1, y=2)))
    assert (await client.ok("subscribe", rp=replicas.y, begin=begin))["recovered"] is True
    assert (await client.frame())["feeds"] == hole
    assert (await client.events(1))[0]["event"]["id"] == "x5"
    page = replicas.live_gateway.admin.get(f"/api/v1/rps/{replicas.y}/events", params={"after": begin}).json()
    assert (ids_of(page["events"]), page["recovered"], page["gap"]["feeds"]) == (["x5"], False, hole)
    passed = str(Cursor("zzz", 9, replicas.vector(x=4, y=2)))
    page = replicas.live_gateway.admin.get(f"/api/v1/rps/{replicas.y}/events", params={"after": passed}).json()
    assert (ids_of(page["events"]), page["recovered"]) == (["x5"], True)


async def test_forged_cursor_that_claims_more_than_was_published_is_not_believed(
    replicas: Replicas, client: Client
) -> None:
    begin = str(Cursor("zzz", 9, replicas.vector(x=1, y=2**53 - 1)))
    ok = await client.ok("subscribe", rp=replicas.y, begin=begin)
    assert ok["recovered"] is False
    gap = await client.frame()
    assert (gap["op"], gap["from"], gap["to"]) == ("gap", 1, 0)
    assert [frame["event"]["id"] for frame in await client.events(1)] == ["y1"]
    assert (await client.frame())["op"] == "covered", "what it says of other feeds may be true: x1 is not given"
    assert [frame["event"]["id"] for frame in await client.events(1)] == ["y2"]


async def test_forged_cursor_with_as_many_feeds_as_there_may_be_only_hurts_its_bearer(
    replicas: Replicas, client: Client
) -> None:
    feeds = {f"{number:016d}".translate(str.maketrans("0189", "abcd")): 2**53 - 1 for number in range(60)}
    begin = str(Cursor("zzz", 9, {**feeds, **replicas.vector(y=2)}))
    await client.ok("subscribe", rp=replicas.y, begin=begin)
    assert (await client.events(1))[0]["event"]["id"] == "x1"
    assert (await client.frame())["op"] == "covered"
    replicas.publish(replicas.y, "y3")
    assert (await client.events(1))[0]["event"]["id"] == "y3"
    assert (
        await client.refused("subscribe", rp=replicas.x, begin=begin + ".zzzzzzzzzzzzzzz7=1" * 60) == "invalid-cursor"
    )


# Redirects


def _insert(live_gateway: LiveGateway, table: str, **columns: Any) -> None:
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    with closing(sqlite3.connect(live_gateway.config.data_path / "herald.sqlite3", timeout=60)) as database, database:
        database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(columns.values()))


def _later(**lapse: float) -> str:
    return (datetime.now(UTC) + timedelta(**lapse)).strftime("%Y-%m-%d %H:%M:%S.%f")


def _ended(live_gateway: LiveGateway, rp: str, name: str = "") -> None:
    """What is kept of a replica that this domain has left."""
    times = {"next_try_at": _later(days=1), "ended_at": _later(), "until": _later(days=1)}
    members = {"home": "b.example", "name": name, "reason": "left", "tries": 0, "pending": "[]"}
    _insert(live_gateway, "eventing_replicaend", rp=rp, urls=json.dumps(OTHER), **members, **times)


@pytest.fixture
def left(live_gateway: LiveGateway) -> str:
    """An RP whose replica here has ended; the other domains serve it."""
    rp = "left" + os.urandom(11).hex().translate(str.maketrans("0189", "abcd"))
    _ended(live_gateway, rp, name=f"/b.example/{rp}/")
    return rp


def test_http_is_sent_on_by_307_without_the_token(live_gateway: LiveGateway, left: str) -> None:
    with live_gateway.http() as http:
        token = live_gateway.token()
        query = {"after": f"abc:1~{'a' * 16}=1", "limit": "5", "access_token": token}
        for reference in (left, f"%2Fb.example%2F{left}%2F"):
            answer = http.get(f"/api/v1/rps/{reference}/events", params=query)
            assert answer.status_code == 307, answer.text
            location = httpx.URL(answer.headers["location"])
            assert (location.host, location.path) == ("b.example", f"/api/v1/rps/{left}/events")
            assert dict(location.params) == {"after": query["after"], "limit": "5"}
            assert answer.json()["type"] == "urn:herald:problem:moved"
            assert answer.json()["to"] == OTHER
        answer = http.post(f"/api/v1/rps/{left}/events", json=event("e"), headers=STRUCTURED)
        assert (answer.status_code, answer.headers["location"]) == (307, f"{OTHER[0]}/api/v1/rps/{left}/events")
        assert http.get(f"/api/v1/rps/{left}/stream").status_code == 307


def test_stranger_without_a_token_is_not_told_where_an_rp_has_moved(live_gateway: LiveGateway, left: str) -> None:
    answer = httpx.get(f"{live_gateway.url()}/api/v1/rps/{left}/events", **PLAIN)
    assert answer.status_code == 401
    assert "b.example" not in answer.text
    assert "location" not in answer.headers


async def test_websocket_is_sent_on_by_a_redirect_frame_before_the_error(left: str, client: Client) -> None:
    assert await client.refused("subscribe", rp=left) == "moved"
    assert await client.frame() == {"op": "redirect", "rp": left, "to": OTHER}


async def test_readers_of_a_replica_that_ends_are_sent_on(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    async with Client(live_gateway) as client:
        await client.ok("subscribe", id=7, rp=rp)
        with live_gateway.http() as http, http.stream("GET", f"/api/v1/rps/{rp}/stream") as stream:
            lines = stream.iter_lines()
            next(lines)
            _ended(live_gateway, rp)
            assert live_gateway.admin.delete(f"/api/v1/rps/{rp}").status_code == 204
            assert await client.frame() == {"op": "redirect", "rp": rp, "to": OTHER}
            error = await client.frame()
            assert (error["id"], error["type"]) == (7, "urn:herald:problem:moved")
            said = list(lines)
            assert "event: redirect" in said
            assert json.loads(said[said.index("event: redirect") + 1].removeprefix("data: "))["to"] == OTHER


@pytest.fixture(scope="module")
def own_edge(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """An edge that the last tests kill and stop."""
    with LiveGateway(tmp_path_factory.mktemp("replicas") / "var", prepared) as running:
        yield running


async def test_restarted_gateway_goes_on_with_the_vector(own_edge: LiveGateway) -> None:
    live_gateway = own_edge
    replicas = Replicas(live_gateway)
    replicas.carry(replicas.x, "y1", "y2")
    async with Client(live_gateway) as client:
        await client.ok("subscribe", rp=replicas.x, begin="earliest")
        cursor = (await client.events(1))[0]["cursor"]
    live_gateway.kill_gateway()
    replicas.carry(replicas.x, "y3")
    live_gateway.start_gateway()
    async with Client(live_gateway) as client:
        assert (await client.ok("subscribe", rp=replicas.x, begin=cursor))["recovered"] is True
        frames = await client.events(2)
        assert [frame["event"]["id"] for frame in frames] == ["y2", "y3"]
        assert Cursor.parse(frames[-1]["cursor"]).vector == replicas.vector(x=0, y=3)
        live_gateway.kill_redis()
        live_gateway.start_redis()
        replicas.carry(replicas.x, "y4")
        assert (await client.events(1))[0]["event"]["id"] == "y4"


async def test_cursor_from_before_the_log_was_put_back_is_good_for_other_origins_feeds(own_edge: LiveGateway) -> None:
    live_gateway = own_edge
    replicas = Replicas(live_gateway)
    x, feed = replicas.x, replicas.feeds[replicas.y]
    replicas.publish(x, "x1")
    replicas.carry(x, "y1", "y2")
    with override_settings(HERALD=live_gateway.config):
        saved = backup(x)
    replicas.carry(x, "y3")
    replicas.publish(x, "x2", "x3")

    def pull(after: str) -> Any:
        return live_gateway.admin.get(f"/api/v1/rps/{x}/events", params={"after": after}).json()

    page = live_gateway.admin.get(f"/api/v1/rps/{x}/events", params={"limit": 4}).json()
    one = page["cursor"]  # y3 is the last one here
    other = pull(one)["cursor"]
    live_gateway.kill_gateway()
    with override_settings(HERALD=live_gateway.config):
        put_back(x, saved)
    replicas._held[x, feed] = 2
    replicas.carry(x, "y3", "y4")
    live_gateway.start_gateway()
    page = pull(other)  # with x1 to x3, of which the log has x1 only
    assert (ids_of(page["events"]), page["recovered"]) == (["x1", "y4"], False)
    replicas.publish(x, "x2 of another life")
    again = pull(page["cursor"])
    assert (ids_of(again["events"]), again["recovered"]) == (["x2 of another life"], True)
    live_gateway.kill_gateway()
    with override_settings(HERALD=live_gateway.config):
        put_back(x, saved)
    live_gateway.start_gateway()
    replicas.publish(x, "x2 of another life")
    replicas._held[x, feed] = 2
    replicas.carry(x, "y3", "y4")
    page = pull(one)  # its offset is held, by another event
    assert (ids_of(page["events"]), page["recovered"]) == (["x2 of another life", "y4"], True)


async def test_gateway_that_stops_sends_its_readers_to_the_other_replicas(own_edge: LiveGateway) -> None:
    live_gateway = own_edge
    rp, alone = live_gateway.create_rp(), live_gateway.create_rp()
    state = {"state": "live", "detail": "", "told": "", "term": 0, "changed_at": _later()}
    lease = {"granted_s": 3600, "warn_at": _later(hours=1), "expires_at": _later(hours=1)}
    _insert(live_gateway, "eventing_replicalink", rp_id=rp, peer="b.example", **state, **lease)
    admission = {"statement": b"", "issued_at_ms": 1, "asked_at_ms": 1, "expires_at": _later(hours=1), "revoked": False}
    for domain, url in zip(("b.example", "c.example"), OTHER, strict=True):
        _insert(live_gateway, "eventing_replicaadmission", rp_id=rp, domain=domain, url=url, **admission)
    with override_settings(HERALD=live_gateway.config):
        control.announce_change(rp)
    async with Client(live_gateway) as client:
        await client.ok("subscribe", rp=alone)
        ok = await client.ok("subscribe", rp=rp)
        own = Feed("localhost", ok["epoch"]).key
        assert ok["cursor"] == f"{ok['epoch']}:0~{own}=0"  # a reader can leave before any foreign event has come
        live_gateway.publish(rp, 1)
        assert (await client.events(1))[0]["cursor"] == f"{ok['epoch']}:1~{own}=1"
        live_gateway.terminate_gateway()
        redirect = await client.frame()
        assert {**redirect, "to": sorted(redirect["to"])} == {"op": "redirect", "rp": rp, "to": OTHER}
        assert (await client.frame())["op"] == "closing"
        assert (await client.closed())[0] == 4000

"""`herald bridge websub` against a hub that is not ours, flask-websub's: a process, a domain and a foreign hub on loopback."""

from __future__ import annotations

import base64
import hashlib
import hmac
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from celery import Celery
from flask import Flask, Response, request
from flask_websub.hub import Hub, SQLite3HubStorage
from herald.websub import HubRefused, HubTopic, ask_hub, discover

from demo.harness.servers import Domain, wait_for
from tests.subscriptions.push.owner import Owner
from tests.subscriptions.push.websub.subscribers import Served

pytestmark = pytest.mark.processes

ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom">
<link rel="hub" href="/hub"/><link href="/feed" rel="self"/><entry><link rel="hub" href="/entry"/></entry><title>{}</title></feed>"""


class ForeignHub(Served):
    """flask-websub's hub, and the feed that it distributes."""

    def __init__(self, folder: Path) -> None:
        app = Flask("hub")
        app.config.update(PUBLISH_SUPPORTED=True, HUB_MIN_LEASE_SECONDS=1)
        celery = Celery("hub", broker="memory://")
        celery.conf.task_always_eager = True
        self.hub = Hub(SQLite3HubStorage(str(folder / "hub")), celery, BACKOFF_BASE=0.01)
        app.register_blueprint(self.hub.build_blueprint(url_prefix="/hub"))
        self.title = "first"
        self.links = True

        @app.route("/feed")
        def feed() -> Response:
            links = f'<{self.url}/hub>; rel="hub", <{self.url}/feed>; rel="self"'
            return Response(
                ATOM.format(self.title), mimetype="application/atom+xml", headers={"Link": links} if self.links else {}
            )

        @app.route("/rss")
        def rss() -> Response:
            links = f'<atom:link rel="self" href="{self.url}/feed"/><atom:link rel="hub" href="hub"/>'
            return Response(f"<rss><channel>{links}</channel></rss>", mimetype="application/rss+xml")

        @app.route("/moved", methods=["GET", "POST"])
        def moved() -> Response:
            to = "hub" if request.method == "POST" else "feed"
            return Response(status=int(request.args["status"]), headers={"Location": f"{self.url}/{to}"})

        @app.route("/page")
        def page() -> str:
            return f"<html><head><title>&amp;</title><link rel='alternate self' href='{self.url}/feed'><link rel=HUB href=hub></head><body><link rel=hub href=no>"

        super().__init__(app)

    def publish(self, title: str) -> None:
        """Change the feed, and ping the hub."""
        self.title = title
        ping = {"hub.mode": "publish", "hub.topic": f"{self.url}/feed"}
        assert httpx.post(f"{self.url}/hub", data=ping, trust_env=False, timeout=60).status_code == 202

    def callbacks(self) -> list[tuple[str, str]]:
        """Return callback and secret of each subscription that has not expired."""
        return [(row[0], row[1]) for row in self.hub.storage.get_callbacks(f"{self.url}/feed")]


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[ForeignHub]:
    """A foreign hub."""
    with ForeignHub(tmp_path) as running:
        yield running


def bridge(domain: Domain, owner: Owner, address: str, *more: str) -> subprocess.Popen[str]:
    """Start the command."""
    command = [str(Path(sys.executable).parent / "herald"), "bridge", "websub", address, owner.rp, *more]
    environment = {**domain.env, "HERALD_URL": domain.url, "HERALD_TOKEN": owner.token}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def events(owner: Owner) -> list[dict[str, Any]]:
    """Return the events of the RP."""
    return list(owner.http.get(f"/api/v1/rps/{owner.rp}/events").raise_for_status().json()["events"])


def test_a_foreign_feed_is_published_the_subscription_renewed_and_ended(
    pushing: Domain, owner: Owner, foreign: ForeignHub
) -> None:
    running = bridge(pushing, owner, f"{foreign.url}/feed", "--lease-s", "4")

    def published() -> bool:
        foreign.publish("second")  # once more, if the lease was over before a busy machine renewed it
        return len(events(owner)) == 1

    try:
        wait_for(foreign.callbacks, about="the foreign hub has verified the subscription")
        wait_for(published, every_s=0.5, about="the content is an event")
        foreign.publish("second")
        (callback, secret), *_ = wait_for(foreign.callbacks, about="the subscription is renewed")
        forged = httpx.post(
            callback, content=b"forged", headers={"X-Hub-Signature": "sha256=00"}, trust_env=False, timeout=60
        )
        assert forged.status_code == 403
        assert httpx.post(callback, content=b"unsigned", trust_env=False, timeout=60).status_code == 403
        granted = {"hub.mode": "subscribe", "hub.topic": "https://other.example/", "hub.challenge": "c"}
        assert httpx.get(callback, params=granted, trust_env=False, timeout=60).status_code == 404
        legacy = f"sha1={hmac.new(secret.encode(), b'old', hashlib.sha1).hexdigest()}"
        headers = {"X-Hub-Signature": legacy, "Content-Type": "text/plain"}
        assert httpx.post(callback, content=b"old", headers=headers, trust_env=False, timeout=60).status_code == 201
        first, *others = events(owner)
        assert [one["data"] for one in others if one.get("data") == "old"] == ["old"]
        assert first["source"] == f"{foreign.url}/feed"
        assert b"second" in base64.b64decode(first["data_base64"]), "Atom is no text to CloudEvents"
        assert len(others) <= 2, "equal content within a minute is one event"
        lines: list[str] = []
        assert running.stdout is not None
        while len(lines) < 3:
            lines.append(running.stdout.readline())
        assert all(line.startswith("subscribed") and line.endswith("for 4 s\n") for line in lines), "renewed twice"
        running.send_signal(signal.SIGINT)
        assert running.stdout.read().startswith("ended")
        assert running.wait(60) == 0
        assert foreign.callbacks() == []
        assert owner.http.get(f"/api/v1/rps/{owner.rp}/intakes").json()["items"] == []
    finally:
        running.kill()
        running.wait()


@pytest.mark.long
def test_a_denial_and_an_address_without_a_hub_are_told(pushing: Domain, owner: Owner, foreign: ForeignHub) -> None:
    foreign.hub.register_validator(lambda *_: "not today")
    for address, says in ((f"{foreign.url}/feed", "not today"), (f"{foreign.url}/missing", "cannot be read")):
        running = bridge(pushing, owner, address)
        output, _ = running.communicate(timeout=180)
        assert running.returncode == 1
        assert says in output
    assert owner.http.get(f"/api/v1/rps/{owner.rp}/intakes").json()["items"] == []


async def test_a_hub_is_discovered_in_fields_in_feeds_and_in_pages(foreign: ForeignHub) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        expected = (f"{foreign.url}/hub", f"{foreign.url}/feed")
        for page in ("feed", "page", "rss", "moved?status=302", "moved?status=301"):
            assert await discover(http, f"{foreign.url}/{page}") == expected
        foreign.links = False
        assert await discover(http, f"{foreign.url}/feed") == expected


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_hub_that_moved_is_asked_where_it_is(foreign: ForeignHub, status: int) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        to = HubTopic(f"{foreign.url}/moved?status={status}", f"{foreign.url}/feed")
        await ask_hub(http, to, "subscribe", "http://127.0.0.1:9/", secret="s" * 20)
        foreign.hub.register_validator(lambda *_: "no")
        with pytest.raises(HubRefused, match="400"):
            await ask_hub(http, HubTopic(to.hub, ""), "wrong", "http://127.0.0.1:9/")


def test_ctrl_c_before_the_hub_has_verified_leaves_nothing_behind(pushing: Domain, owner: Owner) -> None:
    app = Flask("mute")

    @app.route("/", methods=["GET", "POST"])
    def page() -> Response:
        return Response(status=202 if request.method == "POST" else 200, headers={"Link": '</>; rel="hub"'})

    def intakes() -> list[dict[str, Any]]:
        return list(owner.http.get(f"/api/v1/rps/{owner.rp}/intakes").json()["items"])

    with Served(app) as mute:
        running = bridge(pushing, owner, mute.url)
        try:
            wait_for(intakes, about="the intake is made")
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 0
            assert intakes() == []
        finally:
            running.kill()
            running.wait()

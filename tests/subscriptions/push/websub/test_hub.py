"""The WebSub hub of a running domain: flask-websub's subscriber is served, and bad subscribers cost their bounds."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from flask_websub.subscriber import discover

from demo.harness.servers import ROOT, Domain, free_port, wait_for
from eventing.core.config import Config
from eventing.store.hub_requests import SOURCE_MAX
from tests.subscriptions.push.websub.subscribers import ForeignSubscriber, ScriptedSubscriber, TlsFront

pytestmark = pytest.mark.processes

OPEN = [{"issuer": "anyone", "allow": ["describe", "subscribe", "history"]}]


@pytest.fixture
def scripted() -> Iterator[ScriptedSubscriber]:
    """A subscriber that answers as it is told."""
    with ScriptedSubscriber() as running:
        yield running


class Publisher:
    """The owner of an RP to which anybody may subscribe."""

    def __init__(self, domain: Domain, policy: Any = OPEN) -> None:
        self.domain = domain
        self.hub = f"{domain.url}/websub/hub"
        self.token = domain.token(admin=True, subject=f"publisher-{os.urandom(4).hex()}")
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(base_url=domain.url, headers=headers, timeout=60, trust_env=False)
        self.rp = self.http.post("/api/v1/rps", json={"policy": policy}).raise_for_status().json()["id"]
        self.topic = f"{domain.url}/websub/topics/{self.rp}"

    def publish(self, data: Any) -> None:
        """Publish an event with these data."""
        event = {"specversion": "1.0", "id": os.urandom(8).hex(), "source": "/t", "type": "t", "data": data}
        kind = {"Content-Type": "application/cloudevents+json"}
        self.http.post(f"/api/v1/rps/{self.rp}/events", content=json.dumps(event), headers=kind).raise_for_status()

    def subscriptions(self) -> list[dict[str, Any]]:
        """Return the subscriptions at the RP."""
        return list(self.http.get(f"/api/v1/rps/{self.rp}/subscriptions").raise_for_status().json()["items"])

    def told(self) -> list[str]:
        """Return the types of the administrative events of the RP."""
        path = f"/api/v1/rps/{self.rp}.admin/events"
        return [one["type"] for one in self.http.get(path).raise_for_status().json()["events"]]

    def asks(self, callback: str, mode: str = "subscribe", **more: str) -> httpx.Response:
        """Send a request to the hub without a token."""
        stated = {"hub.mode": mode, "hub.topic": self.topic, "hub.callback": callback}
        stated |= {f"hub.{name}": value for name, value in more.items()}
        return httpx.post(self.hub, data=stated, trust_env=False, timeout=60)

    def subscribed(self, scripted: ScriptedSubscriber, path: str, **more: str) -> dict[str, Any]:
        """Subscribe a callback, and wait for the subscription."""
        assert self.asks(f"{scripted.url}/{path}", **more).status_code == 202
        wait_for(self.subscriptions, about="the subscription is verified")
        return self.subscriptions()[0]


@pytest.fixture
def publisher(pushing: Domain) -> Publisher:
    """A publisher."""
    return Publisher(pushing)


def test_flask_websub_discovers_subscribes_receives_signed_content_and_unsubscribes(
    publisher: Publisher, tmp_path: Path, served: Path
) -> None:
    publisher.publish("before")
    with ForeignSubscriber(tmp_path) as foreign, TlsFront(served, publisher.domain.port) as tls:
        for page in (
            publisher.topic,
            f"{publisher.domain.url}/api/v1/rps/{publisher.rp}/events",
            f"{publisher.domain.url}/api/v1/rps/{publisher.rp}",
        ):
            found = discover(page)
            assert found == {"hub_url": publisher.hub, "topic_url": publisher.topic}
        callback_id = foreign.subscribe(
            topic_url=publisher.topic,
            hub_url=f"{tls.url}/websub/hub",
            secret="a secret with é",
            lease_seconds=10**9,
            requests_opts={"verify": str(served)},
        )
        wait_for(lambda: foreign.of("subscribe"), about="the intent is verified")
        assert foreign.subscriber.storage[callback_id]["lease_seconds"] == Config().lease_s_max
        wait_for(publisher.subscriptions, about="the subscription exists")
        publisher.publish("after")
        wait_for(lambda: foreign.of("content"), about="content with a good signature arrives")
        content = foreign.of("content")[0][2]
        assert json.loads(content)["data"] == "after"
        read = httpx.get(publisher.topic, trust_env=False, timeout=60)
        assert read.content == content, "the content of the topic is what was distributed"
        assert read.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
        foreign.subscriber.storage[callback_id] = {
            **foreign.subscriber.storage[callback_id],
            "hub_url": publisher.hub,
            "secret": None,
        }
        foreign.unsubscribe(callback_id)
        wait_for(lambda: foreign.of("unsubscribe"), about="the intent is verified")
        wait_for(lambda: not publisher.subscriptions(), about="the subscription has ended")


def test_flask_websub_is_told_of_a_denial(publisher: Publisher, tmp_path: Path) -> None:
    closed = Publisher(publisher.domain, policy=[])
    with ForeignSubscriber(tmp_path) as foreign:
        for topic in (closed.topic, f"{publisher.topic[:-26]}{'a' * 26}", "https://elsewhere.example/feed"):
            foreign.subscribe(topic_url=topic, hub_url=publisher.hub)
            wait_for(lambda: foreign.of("denied"), about="it is denied")
            assert foreign.heard.pop()[:2] == ("denied", topic)
    assert closed.subscriptions() == []


def test_content_has_the_type_of_the_topic_its_links_and_a_signature(
    publisher: Publisher, scripted: ScriptedSubscriber
) -> None:
    row = publisher.subscribed(scripted, "cb?x=1", secret="s" * 199, lease_seconds="600")
    assert row["lease"]["granted_s"] == 600
    assert row["deliver"]["mode"] == "websub"
    rotation = {"secret": "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"}
    assert publisher.http.post(f"/api/v1/subscriptions/{row['id']}/endpoint/secret", json=rotation).status_code == 409
    path, query = scripted.gets[0]
    assert (path, query["x"], query["hub.mode"], query["hub.topic"]) == ("cb", ["1"], ["subscribe"], [publisher.topic])
    assert query["hub.lease_seconds"] == ["600"]
    publisher.publish({"n": 1})
    wait_for(lambda: scripted.posts, about="content arrives")
    _, headers, body = scripted.posts[0]
    assert headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert headers["link"] == f'<{publisher.hub}>; rel="hub", <{publisher.topic}>; rel="self"'
    expected = hmac.new(b"s" * 199, body, hashlib.sha256).hexdigest()
    assert headers["x-hub-signature"] == f"sha256={expected}"


@pytest.mark.parametrize(
    "how", ["another text", 302, *(pytest.param(one, marks=pytest.mark.long) for one in ("", 307, 404, 410, 500))]
)
def test_a_wrong_answer_to_the_verification_makes_no_subscription_and_is_not_asked_again(
    publisher: Publisher, scripted: ScriptedSubscriber, how: Any
) -> None:
    scripted.answer["cb"] = how
    assert publisher.asks(f"{scripted.url}/cb").status_code == 202
    wait_for(lambda: scripted.modes("cb"), about="the intent is asked for")
    assert publisher.asks(f"{scripted.url}/good").status_code == 202
    wait_for(publisher.subscriptions, about="a later request is settled")
    assert len(publisher.subscriptions()) == 1
    assert (scripted.modes("cb"), scripted.modes("elsewhere")) == (["subscribe"], [])


def test_a_repeated_request_replaces_secret_and_lease_only_once_it_is_verified(
    publisher: Publisher, scripted: ScriptedSubscriber
) -> None:
    first = publisher.subscribed(scripted, "cb", secret="one", lease_seconds="600")
    scripted.answer["cb"] = "no"
    publisher.asks(f"{scripted.url}/cb", secret="two", lease_seconds="900")
    wait_for(lambda: len(scripted.modes("cb")) == 2, about="the second is asked for")
    scripted.answer["cb"] = "echo"
    publisher.publish(1)
    wait_for(lambda: scripted.posts, about="content arrives")
    _, headers, body = scripted.posts[0]
    assert headers["x-hub-signature"] == f"sha256={hmac.new(b'one', body, hashlib.sha256).hexdigest()}"
    publisher.asks(f"{scripted.url}/cb", lease_seconds="900")
    wait_for(lambda: publisher.subscriptions()[0]["lease"]["granted_s"] == 900, about="the third replaces the first")
    assert [one["id"] for one in publisher.subscriptions()] == [first["id"]]

    def unsigned() -> bool:
        publisher.publish(2)
        return any("x-hub-signature" not in headers for _, headers, _ in list(scripted.posts))

    wait_for(unsigned, about="the deliverer has dropped the secret")


def test_who_may_not_subscribe_cannot_end_the_subscription_of_another_by_a_denial(
    publisher: Publisher, scripted: ScriptedSubscriber
) -> None:
    private = Publisher(publisher.domain, policy=[])
    headers = {"Authorization": f"Bearer {private.token}"}
    stated = {"hub.mode": "subscribe", "hub.topic": private.topic, "hub.callback": f"{scripted.url}/cb"}
    assert httpx.post(private.hub, data=stated, headers=headers, trust_env=False, timeout=60).status_code == 202
    wait_for(private.subscriptions, about="the token allows it")
    assert private.asks(f"{scripted.url}/cb").status_code == 202
    private.asks(f"{scripted.url}/other")
    wait_for(lambda: scripted.modes("other"), about="a later request is settled")
    assert (scripted.modes("cb"), scripted.modes("other")) == (["subscribe"], ["denied"])
    assert len(private.subscriptions()) == 1


@pytest.mark.parametrize("what", ["rps", "subscriptions"])
def test_a_subscription_that_others_end_before_its_lease_is_denied(
    publisher: Publisher, scripted: ScriptedSubscriber, what: str
) -> None:
    row = publisher.subscribed(scripted, "cb")
    publisher.http.delete(f"/api/v1/{what}/{row['id'] if what == 'subscriptions' else publisher.rp}").raise_for_status()
    wait_for(lambda: "denied" in scripted.modes("cb"), about="the subscriber is notified")
    stated = scripted.gets[-1][1]
    assert stated["hub.topic"] == [publisher.topic]
    assert stated["hub.reason"][0].endswith("has ended." if what == "rps" else "was deleted.")


def test_a_failing_callback_keeps_its_subscription_and_410_ends_the_deliveries(
    publisher: Publisher, scripted: ScriptedSubscriber
) -> None:
    row = publisher.subscribed(scripted, "cb")
    scripted.answer["cb"] = 503
    publisher.publish(1)
    wait_for(lambda: len(scripted.posts) >= 2, about="it is tried again")
    scripted.answer["cb"] = 410
    state = lambda: publisher.http.get(f"/api/v1/subscriptions/{row['id']}/endpoint").json()["state"]  # noqa: E731
    wait_for(lambda: state() == "gone", about="it is gone")
    scripted.answer["cb"] = "echo"
    publisher.asks(f"{scripted.url}/cb")
    wait_for(lambda: state() == "active", about="the same subscriber is back")
    publisher.publish(2)
    wait_for(lambda: b'"data":2' in scripted.bodies("cb")[-1].replace(b" ", b""), about="content arrives again")


def test_a_subscription_that_ends_while_its_callback_fails_gets_nothing_more(
    publisher: Publisher, scripted: ScriptedSubscriber
) -> None:
    publisher.subscribed(scripted, "cb")
    scripted.answer["cb"] = 503
    publisher.publish(1)
    wait_for(lambda: scripted.posts, about="a delivery fails")
    scripted.answer["cb"] = "echo"
    publisher.asks(f"{scripted.url}/cb", "unsubscribe")
    wait_for(lambda: not publisher.subscriptions(), about="the subscription has ended")
    count = len(scripted.posts)
    publisher.subscribed(scripted, "later")
    publisher.publish(2)
    wait_for(lambda: scripted.bodies("later"), about="another subscriber gets the next")
    after = scripted.bodies("cb")[count:]
    assert len(after) <= 1, "an attempt that was under way"
    assert not any(b'"data": 2' in body for body in after)


@pytest.mark.long
def test_the_end_of_the_lease_ends_the_deliveries(publisher: Publisher, scripted: ScriptedSubscriber) -> None:
    assert publisher.asks(f"{scripted.url}/cb", lease_seconds="1").status_code == 202
    wait_for(lambda: "io.herald.subscription.deleted" in publisher.told(), about="the lease has ended")
    assert publisher.subscriptions() == []
    publisher.subscribed(scripted, "later")
    publisher.publish(1)
    wait_for(lambda: scripted.bodies("later"), about="another subscriber gets the event")
    assert scripted.bodies("cb") == []


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"callback": "ftp://a/"}, "hub.callback"),
        ({"callback": "http://169.254.169.254/latest"}, "hub.callback"),
        ({"callback": "http://0x7f.1/"}, "hub.callback"),
        ({"secret": "s" * 200}, "hub.secret"),
        ({"lease_seconds": "0"}, "hub.lease_seconds"),
        ({"mode": "renew"}, "hub.mode"),
    ],
)
def test_a_malformed_request_is_refused_in_plain_text(publisher: Publisher, stated: dict[str, str], says: str) -> None:
    whole = {"mode": "subscribe", "topic": publisher.topic, "callback": "http://127.0.0.1:9/", **stated}
    answer = httpx.post(
        publisher.hub, data={f"hub.{name}": value for name, value in whole.items()}, trust_env=False, timeout=60
    )
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert says in answer.text
    repeated = f"hub.mode=subscribe&hub.mode=unsubscribe&hub.topic={publisher.topic}"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert httpx.post(publisher.hub, content=repeated, headers=kind, trust_env=False, timeout=60).status_code == 400


def test_a_ping_about_a_topic_of_the_domain_is_taken_and_any_other_is_refused(publisher: Publisher) -> None:
    for name in ("hub.url", "hub.topic"):
        answer = httpx.post(
            publisher.hub, data={"hub.mode": "publish", name: publisher.topic}, trust_env=False, timeout=60
        )
        assert answer.status_code == 202
    answer = httpx.post(
        publisher.hub, data={"hub.mode": "publish", "hub.url": "https://a.example/"}, trust_env=False, timeout=60
    )
    assert answer.status_code == 400


def test_a_topic_without_readable_content_has_its_links(publisher: Publisher) -> None:
    for policy in (OPEN, [{"issuer": "anyone", "allow": ["subscribe"]}]):
        some = Publisher(publisher.domain, policy=policy)
        if policy is not OPEN:
            some.publish(1)
        answer = httpx.get(some.topic, trust_env=False, timeout=60)
        assert (answer.status_code, answer.content) == (204, b"")
        assert 'rel="hub"' in answer.headers["link"]
    closed = Publisher(publisher.domain, policy=[])
    assert httpx.get(closed.topic, trust_env=False, timeout=60).status_code == 401
    assert closed.http.get(f"/websub/topics/{closed.rp}").status_code == 204


def test_a_flood_of_requests_costs_a_bounded_number_of_calls(
    publisher: Publisher, scripted: ScriptedSubscriber
) -> None:
    flood = Publisher(publisher.domain, policy=[])
    token = flood.domain.token(subject=f"flood-{os.urandom(4).hex()}")
    headers = {"Authorization": f"Bearer {token}"}
    statuses = []
    with httpx.Client(trust_env=False, timeout=60, headers=headers) as client:
        for number in range(SOURCE_MAX + 20):
            stated = {"hub.mode": "subscribe", "hub.topic": flood.topic, "hub.callback": f"{scripted.url}/f{number}"}
            statuses.append(client.post(flood.hub, data=stated))
    assert [one.status_code for one in statuses] == [202] * SOURCE_MAX + [429] * 20
    assert statuses[-1].headers["retry-after"] == "60"
    wait_for(lambda: len(scripted.gets) == SOURCE_MAX, about="each taken request is settled by one call")
    assert {query["hub.mode"][0] for _, query in scripted.gets} == {"denied"}


def receiver_of_the_docs(folder: Path, language: str, name: str) -> Path:
    """Write the receiver in docs/how-to/websub.md into a file."""
    text = (ROOT / "docs/how-to/websub.md").read_text().split(f"```{language}\n")[1].split("```")[0]
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("language", "name", "program"),
    [
        ("python", "receiver.py", sys.executable),
        pytest.param("javascript", "receiver.mjs", shutil.which("node"), marks=pytest.mark.long),
    ],
)
def test_the_receivers_of_the_documents_receive(
    publisher: Publisher, tmp_path: Path, language: str, name: str, program: str | None
) -> None:
    if program is None:
        pytest.skip("there is no such interpreter")
    port = free_port()
    callback = f"http://127.0.0.1:{port}/hook/x1"
    command = [program, str(receiver_of_the_docs(tmp_path, language, name)), publisher.hub, publisher.topic]
    with subprocess.Popen([*command, callback, "a secret", str(port)], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "subscribed\n"
            wait_for(publisher.subscriptions, about="the subscription exists")
            publisher.publish({"celsius": 21})
            assert running.stdout.readline().replace(" ", "") == 't{"celsius":21}\n'
            assert httpx.post(callback, content=b"{}", trust_env=False, timeout=60).status_code == 403
            assert (
                httpx.get(callback, params={"hub.mode": "unsubscribe"}, trust_env=False, timeout=60).status_code == 404
            )
        finally:
            running.kill()

"""A subscriber that is not ours, flask-websub, is understood, verified, notified and told of a denial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flask_websub.utils
import pytest
import requests
from flask import Flask
from flask.testing import FlaskClient
from flask_websub.subscriber import SQLite3SubscriberStorage, SQLite3TempSubscriberStorage, Subscriber

from eventing.subscriptions.push.websub.callbacks import denial_url, is_verified, verification_url
from eventing.subscriptions.push.websub.distribution import METHODS, distribution_fields
from eventing.subscriptions.push.websub.requests import SubscriptionWish, UnsubscriptionWish, read_hub_request

HUB, TOPIC, SECRET = "https://herald.example/websub", "https://herald.example/rps/a?b=1&c=2", "a secret with é"


class Foreign:
    """The subscriber's application; `sent` is the last request that it sent to the hub, prepared as it goes over the wire."""

    def __init__(self, folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        app = Flask("subscriber")
        app.config["SERVER_NAME"] = "sub.example"
        storage = SQLite3SubscriberStorage(str(folder / "subscriptions"))
        self.subscriber = Subscriber(storage, SQLite3TempSubscriberStorage(str(folder / "requested")))
        app.register_blueprint(self.subscriber.build_blueprint(url_prefix="/callbacks"))
        self.heard: list[tuple[Any, ...]] = []
        self.subscriber.add_listener(lambda *about: self.heard.append(("content", *about)))
        self.subscriber.add_error_handler(lambda *about: self.heard.append(("denied", *about)))
        self.app = app
        self.sent: requests.PreparedRequest
        monkeypatch.setattr(flask_websub.utils.requests, "request", self._request)

    def _request(self, method: str, url: str, *, data: Any, timeout: float) -> requests.Response:
        self.sent = requests.Request(method, url, data=data).prepare()
        answer = requests.Response()
        answer.status_code = 202
        return answer

    @property
    def browser(self) -> FlaskClient:
        return self.app.test_client()

    def hub_reads(self) -> Any:
        sent = self.sent.body
        body = sent if isinstance(sent, bytes) else str(sent).encode()
        return read_hub_request(str(self.sent.headers["Content-Type"]), body)


@pytest.fixture
def foreign(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Foreign]:
    made = Foreign(tmp_path, monkeypatch)
    with made.app.app_context():
        yield made


def test_it_subscribes_is_verified_receives_signed_content_and_unsubscribes(foreign: Foreign) -> None:
    callback_id = foreign.subscriber.subscribe(topic_url=TOPIC, hub_url=HUB, secret=SECRET, lease_seconds=3600)
    wish = foreign.hub_reads()
    assert isinstance(wish, SubscriptionWish)
    assert (wish.topic, wish.lease_s, wish.secret) == (TOPIC, 3600, SECRET)
    answer = foreign.browser.get(verification_url(wish.callback, "subscribe", wish.topic, "challenge", 1800))
    assert is_verified(answer.status_code, answer.data, "challenge")
    assert foreign.subscriber.storage[callback_id]["lease_seconds"] == 1800
    for method in METHODS:
        body = f'{{"specversion": "1.0", "id": "{method}"}}'.encode()
        fields = distribution_fields(
            hub=HUB, topic=TOPIC, content_type="application/json", body=body, secret=SECRET.encode(), method=method
        )
        assert foreign.browser.post(wish.callback, data=body, headers=dict(fields)).status_code == 200
        assert foreign.heard.pop() == ("content", TOPIC, callback_id, body)
        foreign.browser.post(wish.callback, data=body + b" ", headers=dict(fields))
        assert not foreign.heard, "altered content is not accepted"
    foreign.subscriber.unsubscribe(callback_id)
    wish = foreign.hub_reads()
    assert isinstance(wish, UnsubscriptionWish)
    answer = foreign.browser.get(verification_url(wish.callback, "unsubscribe", wish.topic, "other", 0))
    assert is_verified(answer.status_code, answer.data, "other")


def test_it_is_told_of_a_denial_and_confirms_nothing_that_it_did_not_ask_for(foreign: Foreign) -> None:
    callback_id = foreign.subscriber.subscribe(topic_url=TOPIC, hub_url=HUB)
    wish = foreign.hub_reads()
    answer = foreign.browser.get(
        verification_url(wish.callback, "subscribe", "https://other.example/", "challenge", 60)
    )
    assert not is_verified(answer.status_code, answer.data, "challenge")
    foreign.subscriber.subscribe(topic_url=TOPIC, hub_url=HUB)
    wish = foreign.hub_reads()
    assert foreign.browser.get(denial_url(wish.callback, TOPIC, "The policy does not allow it.")).status_code == 200
    kind, topic, denied, reason = foreign.heard.pop()
    assert (kind, topic, reason) == ("denied", TOPIC, "The policy does not allow it.")
    assert denied != callback_id

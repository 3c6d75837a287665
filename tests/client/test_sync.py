"""The thin sync face: the same client from a program without asyncio."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from herald import Gap, Problem
from herald.sync import Client

from tests.client.fake_gateway import FakeGateway


def test_publish_and_read_without_asyncio(threaded_gateway: FakeGateway, tmp_path: Path) -> None:
    with Client(threaded_gateway.url) as client:
        with client.subscribe("r", state=tmp_path / "state") as subscription:
            assert client.publish("r", 1).offset == 1
            assert [one.offset for one in client.publish_many("r", [2, 3])] == [2, 3]
            items = [next(subscription), next(subscription)]
            assert [item.data for item in items if not isinstance(item, Gap)] == [1, 2]
        with client.subscribe("r", state=tmp_path / "state") as subscription:
            assert next(subscription).cursor == "a:3"


def test_errors_are_the_same(threaded_gateway: FakeGateway) -> None:
    threaded_gateway.refusals = [{"type": "urn:herald:problem:forbidden", "title": "Operation not permitted"}]
    with Client(threaded_gateway.url) as client, pytest.raises(Problem):
        client.subscribe("r")


def test_closing_ends_the_thread(threaded_gateway: FakeGateway) -> None:
    client = Client(threaded_gateway.url)
    client.close()
    client.close()
    assert not any(thread.name == "herald-client" for thread in threading.enumerate())


def test_an_address_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="not the address of a domain"):
        Client("localhost:8000")
    assert not any(thread.name == "herald-client" for thread in threading.enumerate())

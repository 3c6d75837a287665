"""What the client's tests share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tests.client.fake_gateway import FakeGateway
from tests.client.hostile import Hostile


@pytest.fixture
def threaded_gateway() -> Iterator[FakeGateway]:
    """The scripted peer on a loop of its own thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    fake = FakeGateway()
    asyncio.run_coroutine_threadsafe(fake.start(), loop).result(30)
    yield fake
    asyncio.run_coroutine_threadsafe(fake.stop(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(30)
    loop.close()


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    """A server that answers whatever it is told to."""
    with Hostile() as server:
        yield server

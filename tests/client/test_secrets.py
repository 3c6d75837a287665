"""A token is nowhere but in the request that shows it: in no log, whatever its level, and in no error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import herald.sync
import pytest
from herald import Client, HeraldError

from tests.client.fake_gateway import FakeGateway
from tests.client.hostile import Hostile

TOKEN = "eyJhbGciOiJFZERTQSJ9.s3cr3t-and-never-seen.signature"


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What all loggers say while every one of them says everything."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.name} {logging.Formatter().format(record)} {record.args!r} {vars(record)!r}")

    root, keep = logging.getLogger(), Keep(logging.DEBUG)
    names = [name for name in logging.root.manager.loggerDict if isinstance(logging.getLogger(name), logging.Logger)]
    before = {name: (logging.getLogger(name).level, logging.getLogger(name).disabled) for name in names}
    level = root.level
    root.addHandler(keep)
    root.setLevel(logging.DEBUG)
    for name in names:
        logging.getLogger(name).disabled = False
        logging.getLogger(name).setLevel(logging.NOTSET)
    yield lines
    root.removeHandler(keep)
    root.setLevel(level)
    for name, (old, disabled) in before.items():
        logging.getLogger(name).setLevel(old)
        logging.getLogger(name).disabled = disabled


def test_no_log_at_any_level_holds_the_token(
    threaded_gateway: FakeGateway, hostile: Hostile, logged: list[str]
) -> None:
    async def use() -> None:
        async with Client([threaded_gateway.url, hostile.url], token=TOKEN) as client:
            await client.publish("r", 1)
            async with client.subscribe("r", from_="earliest") as reading:
                await anext(reading)
        async with Client(hostile.url, token=TOKEN, first_patience_s=0) as client:
            await client.rps.get("r")
            [row async for row in client.audit_export()]
            with pytest.raises(HeraldError) as refused:
                await client.publish("r", 1)  # it answers the handshake with 200
            assert TOKEN not in f"{refused.value!r} {refused.value}"
        threaded_gateway.refuse_handshakes = [(401, {"type": "urn:herald:problem:unauthenticated"}, None)]
        async with Client(threaded_gateway.url, token=TOKEN, first_patience_s=0) as client:
            with pytest.raises(HeraldError):
                await client.publish("r", 1)
        async with Client("http://127.0.0.1:1", token=TOKEN, first_patience_s=0) as client:
            with pytest.raises(HeraldError):
                await client.publish("r", 1)
            with pytest.raises(HeraldError):
                await client.about()

    asyncio.run(use())
    with herald.sync.Client(threaded_gateway.url, token=TOKEN) as client:
        client.publish("r", 2)
    assert TOKEN in threaded_gateway.handshakes, "the token was shown"
    assert any("websockets.client" in line for line in logged), "the transport's logger says something still"
    assert any("Authorization" in line for line in logged), "the header is there, and masked"
    assert [line[:300] for line in logged if "s3cr3t" in line and not line.startswith("websockets.server ")] == []


def test_a_client_and_its_parts_do_not_show_the_token() -> None:
    async def shown() -> str:
        async with Client("http://127.0.0.1:1", token=TOKEN) as client:
            return " ".join(map(repr, (client, client._credentials, client._rest, client._rest._http.headers)))

    assert "s3cr3t" not in asyncio.run(shown())

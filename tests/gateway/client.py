"""WebSocket clients for tests: one that speaks herald.v1 by hand, and one that resumes and checks what it is promised."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.gateway.server import LiveGateway

ANSWER_WITHIN_S = 60.0


class Client:
    """One herald.v1 connection: `ask` for operations, `events` and `frame` for what comes by itself."""

    def __init__(
        self,
        live_gateway: LiveGateway,
        *,
        token: str | None = None,
        gateway: int = 0,
        query: dict[str, str] | None = None,
        **claims: Any,
    ) -> None:
        self._live_gateway = live_gateway
        self._query = query or {}
        self._token = token or live_gateway.token(**{"subject": "tester", **claims})
        self._gateway = gateway
        self._ids = itertools.count(1)
        self._answers: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self._reader: asyncio.Task[None] | None = None
        self.frames: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.texts: list[str] = []
        self.ws: ClientConnection

    async def __aenter__(self) -> Self:
        self.ws = await connect(
            self._live_gateway.ws_url(self._gateway, **self._query),
            additional_headers={"Authorization": f"Bearer {self._token}"},
            subprotocols=["herald.v1"],  # type: ignore[list-item]
            compression=None,
            max_size=None,
            max_queue=None,
            ping_interval=None,
            open_timeout=ANSWER_WITHIN_S,
            proxy=None,
        )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.ws.close()
        assert self._reader is not None
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for text in self.ws:
                assert isinstance(text, str)
                frame = json.loads(text)
                waiting = self._answers.pop(frame.get("id"), None) if frame["op"] in ("ok", "error") else None
                if waiting is not None:
                    waiting.set_result(frame)
                else:
                    self.texts.append(text)
                    self.frames.put_nowait(frame)
        except ConnectionClosed:
            pass
        finally:
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(ConnectionError("closed"))

    async def send(self, op: str, **members: Any) -> asyncio.Future[dict[str, Any]]:
        """Send an operation; the future is its answer."""
        members = {"from" if name == "begin" else name: value for name, value in members.items()}
        op_id = members.pop("id", None) or next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[op_id] = answer
        await self.ws.send(json.dumps({"op": op, "id": op_id, **members}))
        return answer

    async def ask(self, op: str, **members: Any) -> dict[str, Any]:
        """The answer to an operation, ok or error. `begin` is sent as `from`."""
        return await asyncio.wait_for(await self.send(op, **members), ANSWER_WITHIN_S)

    async def ok(self, op: str, **members: Any) -> dict[str, Any]:
        """The answer, which must be ok."""
        answer = await self.ask(op, **members)
        assert answer["op"] == "ok", answer
        return answer

    async def refused(self, op: str, **members: Any) -> str:
        """The code of the error that must be the answer."""
        answer = await self.ask(op, **members)
        assert answer["op"] == "error", answer
        assert answer["title"]
        assert answer["detail"]
        return str(answer["type"]).removeprefix("urn:herald:problem:")

    async def frame(self, within_s: float = ANSWER_WITHIN_S) -> dict[str, Any]:
        """The next frame that is no answer."""
        return await asyncio.wait_for(self.frames.get(), within_s)

    async def events(self, count: int, within_s: float = ANSWER_WITHIN_S) -> list[dict[str, Any]]:
        """The next `count` frames, which must be events. Where servers are fenced, a restarted one continues logs in a new epoch."""
        frames: list[dict[str, Any]] = []
        async with asyncio.timeout(within_s):
            while len(frames) < count:
                frame = await self.frames.get()
                if frame["op"] != "continued" or self._live_gateway.cluster is None:
                    frames.append(frame)
        assert all(frame["op"] == "event" for frame in frames), frames
        return frames

    async def closed(self, within_s: float = ANSWER_WITHIN_S) -> tuple[int | None, str | None]:
        """Close code and reason, once the server has closed."""
        await asyncio.wait_for(self.ws.wait_closed(), within_s)
        return self.ws.close_code, self.ws.close_reason

    async def quiet(self) -> None:
        """Nothing has come by itself up to now: a ping's answer follows whatever was sent before it."""
        await self.ok("ping")
        assert self.frames.empty(), self.frames.get_nowait()


class ResumingReader:
    """Follows an RP over reconnections from its last cursor, and checks every promise of a resume: offsets contiguous
    within an epoch, each resume recovered, nothing twice."""

    def __init__(self, live_gateway: LiveGateway, rp: str, *, gateway: int = 0) -> None:
        self._live_gateway = live_gateway
        self._rp = rp
        self._gateway = gateway
        self._task: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()
        self.cursor: str | None = None
        self.offset = 0
        self.ids: list[str] = []
        self._seen: set[str] = set()
        self.connections = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow())
        await asyncio.wait_for(self._begun.wait(), ANSWER_WITHIN_S)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def wait_until_has(self, ids: set[str], within_s: float = 90.0) -> None:
        """Return when all of `ids` have come; fails with what is missing."""
        assert self._task is not None
        try:
            async with asyncio.timeout(within_s):
                while not ids <= self._seen:
                    if self._task.done():
                        self._task.result()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            missing = sorted(ids - self._seen)
            raise AssertionError(f"{len(missing)} acknowledged events did not come, as {missing[:5]}") from None

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(OSError, ConnectionClosed, InvalidHandshake, TimeoutError, EOFError):
                await self._follow_once()
            await asyncio.sleep(0.05)

    async def _follow_once(self) -> None:
        async with connect(
            self._live_gateway.ws_url(self._gateway),
            additional_headers={"Authorization": f"Bearer {self._live_gateway.token()}"},
            compression=None,
            max_size=None,
            max_queue=None,
            open_timeout=ANSWER_WITHIN_S,
            proxy=None,
        ) as ws:
            self.connections += 1
            begin = self.cursor or "earliest"
            await ws.send(json.dumps({"op": "subscribe", "id": 1, "rp": self._rp, "from": begin}))
            async for text in ws:
                self._take(json.loads(text))

    def _take(self, frame: dict[str, Any]) -> None:
        if frame["op"] == "event":
            assert frame["offset"] == self.offset + 1, f"{frame['offset']} after {self.offset}"
            self.offset = frame["offset"]
            self.cursor = frame["cursor"]
            event_id = frame["event"]["id"]
            assert event_id not in self._seen, f"{event_id} came twice"
            self.ids.append(event_id)
            self._seen.add(event_id)
        elif frame["op"] == "ok":
            assert frame["recovered"] is True, frame
            assert frame["offset"] == self.offset, frame
            self.cursor = frame["cursor"]
            self._begun.set()
        elif frame["op"] == "error":
            assert "retry_after_s" in frame, frame  # may only be one that passes
            raise ConnectionResetError
        elif frame["op"] == "continued":
            assert frame["offset"] == self.offset, frame
            self.cursor = frame["cursor"]
        else:
            assert frame["op"] == "closing", frame

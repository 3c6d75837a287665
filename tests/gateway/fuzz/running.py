"""Sends the fuzzer's inputs to a gateway over connections that are used again, and looks at what becomes of each.

After each input a request (or an operation) of ours is sent on the same connection: its answer shows that the input was dealt
with and that the connection goes on. Where it does not come, the input has swallowed it, and the connection is ended.

A finding is: a status of 500 or above that is not documented (503 with a problem document), an internal error over WebSocket,
an end of the process, a connection that neither answers nor ends, a traceback in the log, memory that grows beyond its bound.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.gateway.fuzz.inputs import KINDS, Input, Target, made
from tests.gateway.raw import CLOSE, FIN, TEXT, client_frame
from tests.gateway.server import LiveGateway

WORKERS = 32
SHARES = {"websocket": 60, "http": 25, "endpoint": 15}
"""Of a hundred inputs."""

SWALLOWED_S = {"websocket": 0.3, "http": 0.3, "endpoint": 5.0}
"""Seconds without an answer to what was sent behind the input. What is sent to an endpoint is whole: it swallows nothing."""

USES_MAX = 25  # inputs of one WebSocket connection: refusals by the hundred would have it paused
ENDED_S = 20.0  # for the server to close a connection that the client has ended; a finding beyond it
READ_BYTES = 256 * 1024
ANSWERS_BYTES_MAX = 8 * 1024 * 1024  # of one input, kept for looking at
LOG_EVERY = 500  # inputs between two looks at the log and the memory
GROWTH_BYTES_MAX = 400 * 1024 * 1024
FINDINGS_MAX = 20
SHOWN_LINES = 8  # of a traceback, its last
_ERROR = re.compile(r" (ERROR|CRITICAL) |^Traceback")
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [A-Z]")
_PROBLEM_503 = re.compile(rb"urn:herald:problem:(unavailable|ack-unavailable)")
_UNDOCUMENTED = re.compile(rb'"type":"urn:herald:problem:internal"')


@dataclass(frozen=True)
class Finding:
    """What must not happen, and the numbers of the inputs that it may be due to."""

    what: str
    kind: str
    first: int
    last: int
    sent: bytes = b""


@dataclass
class Report:
    """What became of the inputs."""

    inputs: int = 0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0


class Fuzzer:
    """See the module.

    Args:
        live_gateway: a running gateway.
        target: what the inputs refer to.
        seed: of all inputs.
        progress: called with the report now and then.
    """

    def __init__(
        self, live_gateway: LiveGateway, target: Target, seed: int, progress: Callable[[Report], None]
    ) -> None:
        self._live_gateway = live_gateway
        self._target = target
        self._seed = seed
        self._progress = progress
        self._log_at = len(live_gateway.log)
        self._looked_at = 0
        self._memory = 0
        self.report = Report()

    async def run(self, numbers: Iterable[tuple[int, str]]) -> Report:
        """Send the inputs with these numbers and kinds."""
        began = time.monotonic()
        left = iter(numbers)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WORKERS):
                tasks.create_task(self._work(left))
        self._check()
        self.report.seconds = time.monotonic() - began
        return self.report

    async def _work(self, left: Iterable[tuple[int, str]]) -> None:
        connections = {
            "http": _Connection(self._live_gateway),
            "websocket": _Connection(self._live_gateway, websocket=True),
        }
        for number, kind in left:
            if len(self.report.findings) >= FINDINGS_MAX:
                break
            one = made(self._target, self._seed, number, kind)
            connection = connections["websocket" if kind == "websocket" else "http"]
            try:
                outcome, wrong = await connection.send(one, number, self._target)
            except OSError as error:
                outcome, wrong = "no connection", f"The gateway cannot be connected to: {error!r}."
            if wrong:
                self._found(Finding(wrong, kind, number, number, b"".join(one.parts)))
            self.report.inputs += 1
            self.report.outcomes[kind, outcome] += 1
            if self.report.inputs % LOG_EVERY == 0:
                self._check()
        for connection in connections.values():
            await connection.end()

    def _found(self, finding: Finding) -> None:
        self.report.findings.append(finding)

    def _check(self) -> None:
        """Look at the process, its memory and its log since the last time."""
        numbers = (max(0, self._looked_at - WORKERS), self.report.inputs + WORKERS)
        self._looked_at = self.report.inputs
        with self._live_gateway.log_path.open("rb") as file:
            file.seek(self._log_at)
            new = file.read()
        self._log_at += len(new)
        for text in errors_of(new.decode(errors="replace")):
            self._found(Finding(text, "log", *numbers))
        process = self._live_gateway.gateway_process()
        memory = process.memory_info().rss if process.is_running() and process.status() != "zombie" else 0
        if not memory:
            self._found(Finding("The gateway has ended.", "process", *numbers))
        self._memory = self._memory or memory
        if memory - self._memory > GROWTH_BYTES_MAX:
            self._found(Finding(f"The gateway has grown from {self._memory} to {memory} bytes.", "memory", *numbers))
            self._memory = memory
        self._progress(self.report)


class _Connection:
    """A connection that is used until it ends."""

    def __init__(self, live_gateway: LiveGateway, *, websocket: bool = False) -> None:
        self._live_gateway = live_gateway
        self._websocket = websocket
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._uses = 0

    async def send(self, one: Input, number: int, target: Target) -> tuple[str, str]:
        """Send an input. Returns its outcome, and what is wrong with it, if anything."""
        self._uses += 1
        if self._websocket and self._uses > USES_MAX:
            await self.end()
        if self._reader is None:
            await self._open(target)
        marker = b"fz-%d-" % number
        probe = self._probe(marker.decode())
        try:
            for part in one.parts[:-1]:
                self._write(part)
                await asyncio.sleep(0)
            self._write(one.parts[-1] + probe)
            answers, ended = await self._answers(marker, SWALLOWED_S[one.kind])
        except OSError:
            answers, ended = b"", True
        if marker in answers:
            return self._judged(answers, "answered")
        outcome = "closed"
        if not ended:
            outcome = "swallowed what followed"
            try:
                ended, rest = await self._finish()
            except OSError:
                ended, rest = True, b""
            answers += rest
            if not ended:
                await self.end()
                return outcome, f"The connection neither answered nor ended within {ENDED_S:g} s."
        await self.end()
        return self._judged(answers, outcome)

    def _probe(self, marker: str) -> bytes:
        if self._websocket:
            return client_frame(b'{"op":"ping","id":"%s"}' % marker.encode(), FIN | TEXT)
        return f"GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: {marker}\r\n\r\n".encode()

    async def _open(self, target: Target) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._live_gateway.port(), limit=2**26)
        if self._websocket:
            fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            fields += f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: Bearer {target.tokens[0]}\r\n\r\n"
            self._write(f"GET /ws HTTP/1.1\r\nHost: x\r\n{fields}".encode())
            answer = await self._reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 101"), answer

    def _write(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)

    async def _answers(self, marker: bytes, patience_s: float) -> tuple[bytes, bool]:
        """What is answered up to the marker, and whether the connection has ended."""
        come = bytearray()
        assert self._reader is not None
        try:
            async with asyncio.timeout(patience_s) as patience:
                while marker not in come and len(come) < ANSWERS_BYTES_MAX:
                    data = await self._reader.read(READ_BYTES)
                    if not data:
                        return bytes(come), True
                    come += data
                    patience.reschedule(asyncio.get_running_loop().time() + patience_s)
        except TimeoutError:
            pass
        return bytes(come), False

    async def _finish(self) -> tuple[bool, bytes]:
        """End our side, and read on until the server has ended its own: whether it did, and what it said."""
        assert self._reader is not None
        assert self._writer is not None
        come = bytearray()
        try:
            async with asyncio.timeout(ENDED_S):
                self._writer.write_eof()
                while len(come) < ANSWERS_BYTES_MAX and (data := await self._reader.read(READ_BYTES)):
                    come += data
        except TimeoutError:
            return False, bytes(come)
        return True, bytes(come)

    def _judged(self, answers: bytes, outcome: str) -> tuple[str, str]:
        if self._websocket:
            wrong = "The session was closed for an internal error." if _close_code(answers) == 1011 else ""
            return outcome, wrong or ("An internal error was answered." if _UNDOCUMENTED.search(answers) else "")
        statuses = [int(status) for status in _STATUS.findall(answers)]
        own = statuses[:-1] if outcome == "answered" else statuses
        for status in own:
            if status >= 500 and not (status == 503 and _PROBLEM_503.search(answers)):
                return str(status), f"Status {status}: {answers[-600:]!r}"
        return (f"{outcome}: {max(own)}" if own else outcome), ""

    async def end(self) -> None:
        """Close."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None
        self._uses = 0


def errors_of(log: str) -> set[str]:
    """The errors in lines of a log: each its own line, without the time, and the end of its traceback."""
    lines = log.splitlines()
    found = set()
    for at, line in enumerate(lines):
        if _ERROR.search(line):
            behind = itertools.takewhile(lambda further: further.startswith("  "), lines[at + 1 :])
            found.add("\n".join([line.partition(" ERROR ")[2] or line, *list(behind)[-SHOWN_LINES:]]))
    return found


def _close_code(frames: bytes) -> int:
    """The code of the close frame at the end of what the server has sent; 0 for none."""
    at = 0
    while at + 2 <= len(frames):
        size, begin = frames[at + 1], at + 2
        if size > 125:
            wide = 2 if size == 126 else 8
            size, begin = int.from_bytes(frames[begin : begin + wide], "big"), begin + wide
        if frames[at] == FIN | CLOSE:
            return int.from_bytes(frames[begin : begin + 2], "big")
        at = begin + size
    return 0


def kinds(first: int, count: int) -> Iterable[tuple[int, str]]:
    """The numbers of `count` inputs from `first` on, and the kind of each."""
    pattern = [kind for kind in KINDS for _ in range(SHARES[kind])]
    for number in range(first, first + count):
        yield number, pattern[(number * 37) % len(pattern)]

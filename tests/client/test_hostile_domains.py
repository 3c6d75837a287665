"""Whatever a server answers, a command ends with one clear line and a documented exit code, never with a traceback.

The documents are made of the words that commands look for, read from their syntax trees, with values of every kind, so that
reading goes on past the first member. Seeds are fixed; HERALD_FUZZ_ROUNDS=N makes N rounds of each command.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import herald
import pytest
from click.testing import CliRunner, Result
from herald.backoff import Backoff
from herald.commands import cli
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from tests.client.hostile import Hostile

ROUNDS = int(os.environ.get("HERALD_FUZZ_ROUNDS", "1"))
DOCUMENTED = {0, 1, 2, 3}
EVIL = "a\x1b[2J\x9b31m\u202e\u2028\nherald: b"
FOLDER = Path(herald.__file__).parent

COMMANDS = [
    "rp create x", "rp list", "rp show r", "rp update r --title t", "rp renew r", "rp pause r", "rp resume r",
    "rp trim r --before all --yes", "rp watch r", "rp watch r --lag-events 5", "rp delete r --reason x",
    "sub-durable create r", "sub-durable list", "sub-durable show s", "sub-durable pull s", "sub-durable pull s --ack",
    "sub-durable pull s --data-only", "sub-durable ack s c", "sub-durable renew s", "sub-durable delete s",
    "token biscuit", "token list", "token revoke --id j", "token revoke --lift 1", "key list", "key rotate", "key retire k",
    "session list", "session disconnect s", "lease list", "lease renew rp r", "lease renew subscription s",
    "lease renew replica r", "lease renew peer p", "alarm list", "alarm ack 1", "alarm rules",
    "peer list", "peer show p", "peer add http://p --yes", "peer add http://p", "peer approve p --yes", "peer trust p --push",
    "peer suspend p", "peer resume p", "peer retry p", "peer replay p r", "peer renew p", "peer links p", "peer remove p",
    "peer document", "policy explain t r publish", "audit", "audit --export -", "report run access", "report list",
    "report show 1", "report download 1 t", "report cancel 1", f"replica join {'a' * 26}", "replica list", "replica list r",
    "replica leave r", "replica invite r p", "proof r 1", "path r 1", "path r e:1 --ask", "misbehaviour list", "misbehaviour lift d",
    "misbehaviour evidence", "misbehaviour evidence d", "admin snapshot", "admin snapshot r", "admin names", "doctor --remote",
]  # fmt: skip
SOCKETS = ["pub r x", "pub r x --json", "sub r", "sub r --json", "sub r --data-only", "sub-durable attach s"]


def words() -> list[str]:
    """The names of members that the client looks for in what a domain answers."""
    found = set()
    for module in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            inside: list[ast.AST] = []
            if isinstance(node, ast.Subscript):
                inside = [node.slice]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                inside = list(node.args[:1])
            found |= {
                one.value
                for one in inside
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isidentifier()
            }
    return sorted(found)


WORDS = words()
NESTED = (0.0, 0.005, 0.06)  # of the members of a document, by the levels below it: those that are documents
LISTS = {"items", "events", "rules", "watch", "audience", "holders", "seals", "rps", "results", "replicas", "to"}


class Maker:
    """Makes documents of every kind but the right one."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def scalar(self) -> Any:
        return self.random.choice(
            [None, True, False, 0, -1, 7, 10**400, 1.5, -0.0, float("inf"), "", "e:1", EVIL, "2026-11-23T00:00:00Z",
             "2026-11-23", "\ud800", "active", "done", "asked", [], {}, "x" * 300]
        )  # fmt: skip

    def value(self, depth: int, name: str = "") -> Any:
        if name in LISTS and self.random.random() < 0.8:
            return [self.value(depth - 1) for _ in range(self.random.randrange(3))]
        kind = self.random.random()
        if depth > 0 and kind < NESTED[min(depth, len(NESTED) - 1)]:
            return self.document(depth - 1)
        if depth > 0 and kind > 0.95:
            return [self.value(depth - 1) for _ in range(self.random.randrange(3))]
        return self.scalar()

    def document(self, depth: int = 2) -> dict[str, Any]:
        left_out = self.random.choice([0.0, 0.02, 0.3])
        return {word: self.value(depth, word) for word in WORDS if self.random.random() >= left_out}

    def listing(self) -> dict[str, Any]:
        """A page whose items are of the wrong kinds only inside."""
        page = self.document()
        return {**page, "items": [self.document(1) for _ in range(2)], "next": None}

    def text(self) -> bytes:
        return json.dumps(self.random.choice([self.document, self.listing, self.scalar])()).encode()

    def answer(self, _path: str = "") -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        status = self.random.choice([200, 200, 200, 200, 201, 204, 400, 401, 403, 404, 409, 500])
        headers = {
            "Content-Type": self.random.choice(["application/json", "text/html; charset=utf-7", "x", "text/plain"])
        }
        body = self.text().replace(b"Infinity", self.random.choice([b"1e999", b"1e999", b"NaN"]))
        broken = self.random.random()
        if broken < 0.05:
            body = body[: self.random.randrange(len(body) + 1)]
        elif broken < 0.1:
            body = body.replace(b"a", b"\xff\xc0")
        elif broken < 0.15:
            body = b"<!doctype html><title>It works!</title>" + EVIL.encode()
        elif broken < 0.2:
            body = self.random.choice([b"", b"[" * 100_000, b"null", b"[]", b'"x"', b"\xef\xbb\xbf{}", b"9" * 5000])
        elif broken < 0.23:
            headers["Content-Encoding"] = self.random.choice(["gzip", "deflate"])
        elif broken < 0.26:
            headers["Retry-After"] = self.random.choice(["0", "-1", "x", "9" * 400, "Mon, 23 Nov 2026 99:00:00 GMT"])
        return (status, headers, b"" if status == 204 else body)

    def frame(self, asked: dict[str, Any]) -> str | bytes:
        """A frame in answer to `asked`."""
        op = self.random.choice(["ok", "ok", "event", "gap", "error", "covered", "redirect", "closing", "x"])
        frame = {**self.document(1), "op": op}
        if self.random.random() < 0.8:
            frame["id"] = asked.get("id")
        if self.random.random() < 0.7:
            frame.update(rp="r", epoch="a", offset=self.random.choice([1, 2, "x", None]))
        if self.random.random() < 0.3:
            frame["event"] = self.value(2)
        text = json.dumps(frame).replace("Infinity", self.random.choice(["1e999", "NaN"]))
        broken = self.random.random()
        if broken < 0.05:
            return text[: len(text) // 2]
        return text.encode() if broken < 0.1 else text


def ended_well(result: Result, what: str) -> None:
    """One clear line where the command failed; nothing that commands a terminal in what people read."""
    assert result.exception is None or isinstance(result.exception, SystemExit), f"{what}: {result.exception!r}"
    assert result.exit_code in DOCUMENTED, f"{what}: {result.exit_code}\n{result.output}"
    assert "Traceback" not in result.stderr, f"{what}: {result.stderr}"
    for line in result.stderr.split("\n"):
        assert line.isprintable(), f"{what}: {line!r}"
    if result.exit_code in (1, 3) and "doctor" not in what:
        last = result.stderr.rstrip("\n").split("\n")[-1]
        assert last.startswith("herald: "), f"{what}: {result.stderr!r}"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for: the server only gets worse."""

    def at_once(self: Backoff, _: float | None = None) -> float:
        self.failures += 1
        return 0.0

    monkeypatch.setattr(Backoff, "next", at_once)
    monkeypatch.setattr("herald.rest.PATIENCE_S_MAX", 0.0)
    monkeypatch.setattr("herald.commands.report.POLL_S", 0.001)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("impatient")
def test_no_answer_ends_a_command_with_a_traceback(hostile: Hostile, command: str) -> None:
    clean = {name: None for name in os.environ if name.startswith("HERALD_")}
    for number in range(ROUNDS):
        maker = Maker(f"{command} {number}")
        left = [60]

        def answer(path: str, maker: Maker = maker, left: list[int] = left) -> tuple[int, dict[str, str], bytes]:
            left[0] -= 1  # a list that goes on for ever is ended
            return maker.answer(path) if left[0] > 0 else (404, {}, b"{}")

        hostile.answer = answer
        hostile.cut_bytes = maker.random.choice([0, 0, 0, 0, 0, 5])
        arguments = [*command.split(), "--url", hostile.url, "--token", "t", *(["--json"] if number % 4 == 3 else [])]
        ended_well(CliRunner().invoke(cli, arguments, env=clean, input="y\n"), f"{command} {number}")


def test_an_answer_without_end_is_given_up(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("herald.rest.ANSWER_BYTES_MAX", 100_000)
    hostile.body = b'{"items": [' + b" " * 200_000 + b"]}"
    for status in (200, 500):
        hostile.status = status
        result = CliRunner().invoke(cli, ["rp", "list", "--url", hostile.url, "--token", "t"])
        assert result.exit_code == 1
        assert "more than 100000 bytes" in result.stderr
        ended_well(result, "rp list")


def test_a_page_that_is_its_own_next_one_is_given_up(hostile: Hostile) -> None:
    gateways = {"asked": 1, "answered": 1}
    hostile.body = json.dumps({"items": [], "next": "c", "gateways": gateways}).encode()
    for command in ("rp list", "lease list", "session list", "peer links p", "audit", "alarm list", "replica list"):
        hostile.requests.clear()
        result = CliRunner().invoke(cli, [*command.split(), "--url", hostile.url, "--token", "t"])
        assert (result.exit_code, len(hostile.requests)) == (1, 2), command


def test_nan_is_no_json(hostile: Hostile) -> None:
    hostile.body = b'{"items": NaN}'
    result = CliRunner().invoke(cli, ["rp", "list", "--url", hostile.url, "--token", "t"])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "cannot be read" in result.stderr


def test_a_token_that_no_header_can_carry_is_used_wrongly(hostile: Hostile) -> None:
    for command in ("rp list", "pub r x", "admin names"):
        result = CliRunner().invoke(cli, [*command.split(), "--url", hostile.url, "--token", "t\u00e9\u2028"])
        assert result.exit_code == 2, (command, result.output)
        ended_well(result, command)


def test_an_unexpected_error_can_be_seen_whole(hostile: Hostile) -> None:
    hostile.body = b'{"items": [], "next": null}'
    arguments = ["session", "list", "--url", hostile.url, "--token", "t"]
    assert "gateways" in CliRunner().invoke(cli, arguments).stderr
    seen = CliRunner().invoke(cli, arguments, env={"HERALD_TRACEBACK": "1"})
    assert isinstance(seen.exception, KeyError)


# ---- over a WebSocket ----


@pytest.fixture
def gateway() -> Iterator[tuple[str, list[Maker]]]:
    """A gateway that answers each frame with what the maker in the list makes."""
    makers: list[Maker] = []

    async def talk(connection: ServerConnection) -> None:
        maker = makers[0]
        try:
            while True:
                async with asyncio.timeout(0.1):
                    asked = json.loads(await connection.recv())
                for _ in range(maker.random.randrange(1, 4)):
                    await connection.send(maker.frame(asked))
        except TimeoutError:  # whatever the client waits for now
            await connection.close(maker.random.choice([4104, 4104, 1011]), "no \x1b[2J")
        except ConnectionClosed:
            pass

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen() -> Any:
        return await serve(talk, "127.0.0.1", 0, subprotocols=[Subprotocol("herald.v1")], close_timeout=0.2)

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(30)
    yield f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}", makers

    async def close() -> None:
        server.close()
        await server.wait_closed()

    asyncio.run_coroutine_threadsafe(close(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(30)
    loop.close()


@pytest.mark.parametrize("command", SOCKETS)
@pytest.mark.usefixtures("impatient")
def test_no_frame_ends_a_command_with_a_traceback(gateway: tuple[str, list[Maker]], command: str) -> None:
    url, makers = gateway
    clean = {name: None for name in os.environ if name.startswith("HERALD_")}
    for number in range(ROUNDS):
        makers[:] = [Maker(f"{command} {number}")]
        arguments = [*command.split(), "--url", url, "--token", "t"]
        result = CliRunner().invoke(cli, arguments, env=clean)
        ended_well(result, f"{command} {number}")


@pytest.mark.usefixtures("impatient")
def test_a_gateway_that_is_never_understood_is_given_up(gateway: tuple[str, list[Maker]]) -> None:
    url, makers = gateway
    makers[:] = [Maker("x")]
    makers[0].frame = lambda asked: "{"  # type: ignore[method-assign]
    for command in ("sub r", "pub r x", "sub-durable attach s"):
        result = CliRunner().invoke(cli, [*command.split(), "--url", url])
        assert result.exit_code == 1
        assert "cannot be read" in result.stderr.rstrip("\n").rsplit("\n", maxsplit=1)[-1]

"""What commands print: nothing foreign commands a terminal, and data goes into files and pipes byte by byte."""

from __future__ import annotations

import ast
import base64
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import herald.commands
import pytest
from click.testing import CliRunner
from herald.commands import cli
from herald.commands.output import dump

from tests.client.fake_gateway import FakeGateway
from tests.client.hostile import Hostile

HERALD = [sys.executable, "-c", "from herald.commands import main; main()"]
WAIT_S = 60.0
# Moves and colours (ESC, and CSI of C1), titles (OSC), a notification channel, backspaces, a carriage return, DEL, bidirectional marks, a
# separator of lines, a byte order mark, a surrogate, and last a line that is none.
EVIL = "a\x1b[2J\x9b31m\x1b]0;x\x07\x08\r\x7f\u202e\u2066\u200f\u2028\ufeff\nherald: b"
DOOR = "output.py"


@contextmanager
def terminal() -> Iterator[tuple[int, Callable[[], str]]]:
    """The end of a terminal that a program writes to, and a function that closes it and tells what was shown."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                return
            if not chunk:
                return
            shown.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()

    def told() -> str:
        os.close(theirs)
        reader.join(WAIT_S)
        return shown.decode().replace("\r\n", "\n")

    yield theirs, told
    os.close(ours)


def on_a_terminal(*arguments: str, stderr_too: bool = True) -> tuple[str, int]:
    """What the command shows on a terminal, and its exit code."""
    code: Any = 0
    with terminal() as (descriptor, told):
        with (
            open(descriptor, "w", encoding="utf-8", closefd=False) as stream,
            Path(os.devnull).open("w") as nowhere,
            redirect_stdout(stream),
            redirect_stderr(stream if stderr_too else nowhere),
            patch.dict(os.environ, {name: "" for name in os.environ if name.startswith("HERALD_")} | {"NO_COLOR": "1"}),
        ):
            try:
                cli.main(arguments, prog_name="herald")
            except SystemExit as end:
                code = end.code
        return told(), code


def piped(*arguments: str) -> bytes:
    clean = {name: None for name in os.environ if name.startswith("HERALD_")}
    result = CliRunner().invoke(cli, arguments, env=clean)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def harmless(text: str) -> bool:
    """Whether a terminal only shows the text."""
    return all(line.isprintable() for line in text.split("\n"))


def filled(gateway: FakeGateway, **members: Any) -> list[str]:
    event = {"specversion": "1.0", "id": "1", "source": EVIL, "type": EVIL, "time": EVIL, **members}
    gateway.log("r").events.append(event)
    return ["sub", "r", "--from", "earliest", "--count", "1", "--url", gateway.url]


# ---- events ----


def test_data_is_escaped_on_a_terminal_and_as_it_is_in_a_pipe(threaded_gateway: FakeGateway) -> None:
    arguments = [*filled(threaded_gateway, data=EVIL), "--data-only"]
    shown, code = on_a_terminal(*arguments)
    assert code == 0
    assert harmless(shown)
    assert "\\x1b[2J\\x9b31m" in shown
    assert piped(*arguments) == EVIL.encode() + b"\n"


def test_bytes_are_escaped_on_a_terminal_and_as_they_are_in_a_pipe(threaded_gateway: FakeGateway) -> None:
    raw = EVIL.encode() + b"\xff\x9b31m"
    arguments = [*filled(threaded_gateway, data_base64=base64.b64encode(raw).decode()), "--data-only"]
    shown, _ = on_a_terminal(*arguments)
    assert harmless(shown)
    assert "\\xff" in shown
    assert piped(*arguments) == raw + b"\n"


@pytest.mark.parametrize("option", ["--json", "--data-only"])
def test_json_on_a_terminal_is_escaped_as_json_escapes_and_the_same_document(
    threaded_gateway: FakeGateway, option: str
) -> None:
    data = {"text": EVIL, EVIL: 1, "beyond": "\U000e0001", "alone": "\ud800"}
    arguments = [*filled(threaded_gateway, data=data), option]
    shown, _ = on_a_terminal(*arguments, stderr_too=False)
    assert harmless(shown)
    in_pipe = piped(*arguments)
    assert "\u202e".encode() in in_pipe, "into a pipe it goes as it is"
    found, also = json.loads(shown), json.loads(in_pipe)
    assert found == also
    assert (found["event"]["data"] if option == "--json" else found) == data


def test_a_line_for_people_is_one_line_everywhere(threaded_gateway: FakeGateway) -> None:
    arguments = filled(threaded_gateway, data=EVIL)
    shown, _ = on_a_terminal(*arguments)
    assert harmless(shown)
    assert shown.count("\n") == 1
    assert piped(*arguments).decode() == shown


def test_numbers_that_no_double_holds_stay_json(threaded_gateway: FakeGateway) -> None:
    infinite = float("inf")
    assert json.loads(dump({"a": [infinite, -infinite, 1.5]})) == {"a": [10**309, -(10**309), 1.5]}


# ---- answers ----


@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize(
    "arguments", [["rp", "list"], ["rp", "show", "r"], ["sub", "r"], ["pub", "r", "x"], ["doctor", "--remote"]]
)
def test_a_domains_problem_is_one_harmless_line(hostile: Hostile, arguments: list[str], status: int) -> None:
    hostile.status = status
    problem = {"type": "urn:herald:problem:forbidden", "title": EVIL, "detail": EVIL * 1000, "retry_after_s": 1e999}
    hostile.body = json.dumps(problem).replace("Infinity", "1e999").encode()
    shown, code = on_a_terminal(*arguments, "--url", hostile.url)
    assert code == 1
    assert harmless(shown)
    assert shown.count("\n") == 1
    assert shown.startswith("herald: ")
    assert len(shown) < 10_000


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (["rp", "list"], {"items": [{"id": EVIL, "name": EVIL, "lease": {"expires_at": EVIL}}]}),
        (["rp", "show", "r"], {"id": EVIL, "name": EVIL, "policy": [EVIL], "ack": EVIL}),
        (["key", "list"], {"items": [{"kid": EVIL, "state": EVIL, "not_before": EVIL, "not_after": EVIL}]}),
        (["admin", "names"], {"id": EVIL, "name": EVIL, "title": EVIL, "cursor": EVIL}),
        (["sub-durable", "show", "s"], {"id": EVIL, "rp": EVIL, "deliver": EVIL, "shared": {"holders": [EVIL]}}),
        (["sub-durable", "pull", "s"], {"events": [{"type": EVIL, "data": EVIL}], "epoch": EVIL, "offset": 1, "cursor": EVIL}),
        (["policy", "explain", "t", "r", "publish"], {"decided_by": EVIL, "rules": [{"rule": 1, "why": EVIL}]}),
        (["token", "biscuit"], {"token": EVIL}),
        (["peer", "document"], {"domain": EVIL, "document": EVIL}),
        (["rp", "pause", "r"], {"id": EVIL, "name": EVIL}),
        (["token", "revoke", "--id", "x"], {"id": EVIL, "before": EVIL}),
        (["audit", "--export", "-"], {"reason": EVIL}),
        (["report", "download", "1", "t"], {"reason": EVIL}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_no_answer_commands_a_terminal(hostile: Hostile, arguments: list[str], body: Any) -> None:
    hostile.body = json.dumps(body, ensure_ascii=False).encode() + b"\n"
    shown, code = on_a_terminal(*arguments, "--url", hostile.url, "--token", "t")
    assert harmless(shown), shown
    assert "\nherald: b" not in shown, "no foreign text pretends to be a line of its own"
    assert code in (0, 1, 2)


def test_a_download_is_escaped_on_a_terminal_and_as_it_is_in_a_pipe(hostile: Hostile) -> None:
    hostile.body = f"name\r\n{EVIL}\r\n".encode()
    hostile.chunk_bytes = 3
    arguments = ["report", "download", "1", "t", "--url", hostile.url]
    shown, code = on_a_terminal(*arguments)
    assert (harmless(shown), code) == (True, 0)
    assert piped(*arguments) == hostile.body


def test_a_command_of_its_own_process_escapes_on_a_terminal_too(threaded_gateway: FakeGateway) -> None:
    """Warnings of the library as well: a frame that is not understood, and an acknowledgement refused in evil words."""
    threaded_gateway.acked["s"] = ("r", 0)
    filled(threaded_gateway, data=EVIL)
    threaded_gateway.refuse_acks = {"type": "urn:herald:problem:forbidden", "title": EVIL}
    with (
        terminal() as (descriptor, told),
        subprocess.Popen(
            [*HERALD, "sub-durable", "attach", "s", "--count", "1", "--url", threaded_gateway.url],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            env={**os.environ, "PYTHONUTF8": "1"},
        ) as process,
    ):
        assert process.wait(WAIT_S) == 0
        shown = told()
    assert harmless(shown)
    assert "herald: The last acknowledgement of s is uncertain: a\\x1b[2J" in shown


def test_what_is_wrong_with_a_files_text_is_harmless(tmp_path: Path) -> None:
    file = tmp_path / "a\x1b[2Jb.json"
    file.write_text("no json")
    shown, code = on_a_terminal("rp", "create", "--policy", str(file), "--url", "http://127.0.0.1:1")
    assert code == 2
    assert harmless(shown)


# ---- the door ----


def calls(path: Path) -> list[str]:
    """What in a module prints, or could: calls that print, and the streams themselves."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        name = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""
        if name in ("print", "sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__", "os.write", "input"):
            found.append(f"{path.name}:{node.lineno} {name}")  # type: ignore[attr-defined] # expressions have lines
        if name.startswith("click.") and name.split(".")[1] in (
            "echo", "secho", "confirm", "prompt", "echo_via_pager", "pause", "style", "get_text_stream",
            "get_binary_stream", "progressbar", "edit", "launch", "clear", "termui",
        ):  # fmt: skip
            found.append(f"{path.name}:{node.lineno} {name}")  # type: ignore[attr-defined]
        if isinstance(node, ast.ImportFrom) and node.module in ("click", "sys", "logging", "rich"):
            found.append(f"{path.name}:{node.lineno} from {node.module}")
    return found


def test_no_command_prints_around_the_door() -> None:
    """By the syntax tree of every module of commands."""
    folder = Path(next(iter(herald.commands.__path__)))
    modules = sorted(folder.rglob("*.py"))
    assert len(modules) > 25
    assert calls(folder / DOOR), "the test sees what prints"
    assert [call for module in modules if module.name != DOOR for call in calls(module)] == []


def test_the_library_prints_nothing() -> None:
    folder = Path(next(iter(herald.commands.__path__))).parent
    assert [call for module in sorted(folder.glob("*.py")) for call in calls(module)] == []

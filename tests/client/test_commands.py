"""The herald command without a server: what it prints, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import herald as herald_package
import pytest
from click.testing import CliRunner, Result
from herald.commands import cli
from herald.commands.home import find_home, server
from herald.commands.pub import parse
from herald.commands.reading import line

from tests.client.fake_gateway import FakeGateway
from tests.client.hostile import Hostile

HERALD = [sys.executable, "-c", "from herald.commands import main; main()"]
NOWHERE = "http://127.0.0.1:1"


def herald(*arguments: str, input: str | None = None, **env: str) -> Result:
    clean = {name: None for name in os.environ if name.startswith("HERALD_")}
    return CliRunner().invoke(cli, arguments, input=input, env={**clean, **env})


ALL = [
    ["rp", "create"], ["rp", "list"], ["rp", "show"], ["rp", "update"], ["rp", "renew"], ["rp", "delete"], ["pub"], ["sub"],
    ["sub-durable", "create"], ["sub-durable", "show"], ["sub-durable", "pull"], ["sub-durable", "ack"],
    ["sub-durable", "attach"], ["sub-durable", "renew"], ["sub-durable", "delete"],
    ["hook", "create"], ["hook", "list"], ["hook", "show"], ["hook", "test"], ["hook", "replay"], ["hook", "pause"], ["hook", "resume"],
    ["hook", "rotate"], ["hook", "listen"], ["token", "create"], ["token", "biscuit"], ["token", "delegate"], ["token", "inspect"], ["token", "revoke"], ["doctor"],
    ["rp", "reliability"], ["rp", "pause"], ["rp", "resume"], ["rp", "trim"], ["session", "list"], ["session", "disconnect"], ["peer", "retry"],
    ["peer", "replay"], ["overlay", "status"], ["overlay", "found"], ["overlay", "join"], ["overlay", "leave"], ["overlay", "links"],
    ["overlay", "map"], ["overlay", "explain"], ["plan", "show"], ["plan", "explain"], ["plan", "apply"], ["plan", "reject"],
    ["plan", "off"], ["plan", "set"], ["plan", "next"], ["plan", "routes"], ["plan", "invitations"], ["monitor"], ["replay"], ["proof"], ["path"], ["misbehaviour", "list"], ["misbehaviour", "lift"],
    ["misbehaviour", "evidence"], ["lease", "list"], ["lease", "renew"], ["intake", "create"], ["bridge", "websub"], ["intake", "list"], ["intake", "rotate"], ["intake", "delete"], ["sub-durable", "list"], ["peer", "renew"], ["peer", "links"],
    ["admin", "snapshot"], ["admin", "names"], ["login"], ["top"], ["bench", "pub"], ["bench", "sub"], ["rp", "info"], ["profile", "list"], ["profile", "add"], ["profile", "use"], ["profile", "remove"], ["context", "list"], ["completion"], ["rp", "change"], ["alarm", "acknowledge"], ["alarm", "ack"], ["alarm", "mute"], ["alarm", "unmute"], ["contact-point", "list"], ["contact-point", "create"], ["contact-point", "change"], ["contact-point", "test"], ["contact-point", "delete"],
    ["peer", "change"], ["peer", "trust"], ["plan", "approve"],
]  # fmt: skip


def test_migrate_is_a_command_of_the_servers_machine_and_of_no_domain() -> None:
    result = herald("migrate", "--help")
    assert result.exit_code == 0
    assert "server's machine" in result.output
    assert "--url" not in result.output


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_every_command_takes_url_token_and_json_and_explains_itself(command: list[str]) -> None:
    result = herald(*command, "--help")
    assert result.exit_code == 0
    for option in ("--url", "--token", "--json"):
        assert option in result.output


@pytest.mark.parametrize(
    "command",
    [
        ["rp", "list"], ["rp", "show", "r"], ["pub", "r", "x"], ["sub", "r"], ["sub-durable", "attach", "s"], ["monitor"],
        ["doctor", "--remote"], ["sub-durable", "pull", "s"], ["hook", "show", "s"], ["lease", "list"], ["lease", "renew", "rp", "r"], ["intake", "list", "r"], ["admin", "names"],
        ["overlay", "status"], ["overlay", "join", "b.example"], ["overlay", "map"], ["overlay", "explain", "b.example"],
        ["login"], ["top"], ["bench", "pub", "r"], ["bench", "sub", "r"], ["rp", "info", "r"],
        ["plan", "show"], ["plan", "apply", "1"], ["plan", "off"], ["plan", "set", "--mode", "apply"], ["plan", "next"], ["plan", "routes", "r"], ["plan", "routes", "--mode", "off"], ["plan", "invitations"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_nobody_there_is_exit_code_3_and_one_line_that_says_what_to_do(command: list[str]) -> None:
    result = herald(*command, "--url", NOWHERE)
    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert NOWHERE in result.stderr
    assert "make run" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["nonsense"], ["sub"], ["pub", "r", "x", "--lines"], ["pub", "r", "--lines", "--count", "2"], ["rp", "update", "r"],
        ["pub", "r", "x", "--id", "1", "--count", "2"], ["sub", "a", "b", "--from", "e:1"], ["sub", "r", "--url", "localhost:8000"],
        ["pub", "r", "no json", "--event"], ["pub", "r", '{"specversion":"1.0"}', "--event"],
        ["session", "disconnect"], ["session", "disconnect", "a", "--rp", "b"], ["rp", "trim", "r"],
        ["lease", "renew", "r"], ["lease", "list", "--within", "soon"], ["misbehaviour", "evidence", "--save", "f"],
        ["token", "create", "--ops", "fly"], ["rp", "create", "--lease-s", "0"], ["sub-durable", "pull", "s", "--limit", "0"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_use_is_exit_code_2(command: list[str]) -> None:
    assert herald(*command).exit_code == 2


def test_a_refusal_is_exit_code_1_and_says_what_to_do(threaded_gateway: FakeGateway) -> None:
    threaded_gateway.refuse_handshakes = [(401, {"type": "urn:herald:problem:unauthenticated", "title": "No"}, None)]
    result = herald("sub", "r", HERALD_URL=threaded_gateway.url)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "export HERALD_TOKEN=$(herald token create)" in result.stderr


def test_the_address_comes_from_the_environment() -> None:
    assert "127.0.0.1:7" in herald("sub", "r", HERALD_PORT="7").stderr
    assert "127.0.0.1:9" in herald("sub", "r", HERALD_PORT="7", HERALD_URL="http://127.0.0.1:9").stderr


# ---- pub ----


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a": 1}', {"a": 1}), (b"12", 12), (b"hello", "hello"), (b'"hello"', "hello"), (b"NaN", "NaN"), (b"", ""),
        (b"\xff\x00", b"\xff\x00"), ("grüße".encode(), "grüße"), (b"{broken", "{broken"), (b"[" * 99999, "[" * 99999),
    ],
)  # fmt: skip
def test_data_is_json_if_it_is_json_else_text_else_bytes(raw: bytes, value: Any) -> None:
    assert parse(raw, as_text=False) == value


def test_data_stays_text_if_asked() -> None:
    assert parse(b"12", as_text=True) == "12"


def test_pub_publishes_and_prints_the_confirmation(threaded_gateway: FakeGateway) -> None:
    result = herald("pub", "r", '{"a":1}', "--type", "t", "--id", "7", "--source", "/s", "--url", threaded_gateway.url)
    assert result.exit_code == 0, result.output
    assert result.stdout == "published r offset 1, id 7\n"
    again = herald("pub", "r", '{"a":1}', "--id", "7", "--source", "/s", "--url", threaded_gateway.url, "--json")
    assert json.loads(again.stdout) == {
        "rp": "r", "epoch": "a", "offset": 1, "duplicate": True, "id": "7", "source": "/s",
    }  # fmt: skip
    (stored,) = threaded_gateway.log("r").events
    assert (stored["data"], stored["type"], stored["datacontenttype"]) == ({"a": 1}, "t", "application/json")


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ('{"a": 1,}', "line 1, column 9"), ("{a: 1}", "line 1, column 2"), ('[1,\n 2', "line 2, column 3"),
        (' {"a": NaN}', "NaN is not JSON"), ("[" * 99999, "recursion"),
    ],
    ids=range(5),
)  # fmt: skip
def test_pub_warns_of_data_that_begins_as_json_and_is_none(
    threaded_gateway: FakeGateway, data: str, where: str
) -> None:
    result = herald("pub", "r", "--url", threaded_gateway.url, input=data)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("published r offset 1, id ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("herald: The data begins like JSON but is not valid JSON (")
    assert where in result.stderr
    assert threaded_gateway.log("r").events[0]["data"] == data


@pytest.mark.parametrize("arguments", [["{", "--text"], ["text {"], ['{"a": 1}'], ["[]"], ['"{"'], ["12"]])
def test_pub_does_not_warn_of_text_that_is_meant(threaded_gateway: FakeGateway, arguments: list[str]) -> None:
    assert herald("pub", "r", *arguments, "--url", threaded_gateway.url).stderr == ""


def test_pub_warns_once_of_many_lines(threaded_gateway: FakeGateway) -> None:
    result = herald("pub", "r", "--lines", "--url", threaded_gateway.url, input="{x\n{y\n[z\n")
    assert threaded_gateway.log("r").end == 3
    assert result.stderr.count("herald: ") == 1


def test_pub_lines_publishes_each_line_in_order(threaded_gateway: FakeGateway) -> None:
    lines = "".join(f"line {number}\n" for number in range(500))
    result = herald("pub", "r", "--lines", "--url", threaded_gateway.url, input=lines + "\nlast")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("published 501 events to r")
    data = [event["data"] for event in threaded_gateway.log("r").events]
    assert data == [*(f"line {number}" for number in range(500)), "last"]


def test_pub_publishes_a_file_and_a_count(threaded_gateway: FakeGateway, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\x00\xff")
    result = herald("pub", "r", "--file", str(tmp_path / "x.bin"), "--count", "3", "--url", threaded_gateway.url)
    assert result.exit_code == 0, result.output
    assert [event["data_base64"] for event in threaded_gateway.log("r").events] == ["AP8="] * 3


def test_pub_keeps_to_the_rate(threaded_gateway: FakeGateway) -> None:
    begun = time.monotonic()
    herald("pub", "r", "x", "--count", "5", "--rate", "50", "--url", threaded_gateway.url)
    assert time.monotonic() - begun >= 4 / 50


def test_pub_keeps_publishing_lines_from_a_pipe_that_stays_open(threaded_gateway: FakeGateway) -> None:
    command = [*HERALD, "pub", "r", "--lines", "--url", threaded_gateway.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"first\n")
        process.stdin.flush()
        _until(lambda: threaded_gateway.log("r").end == 1)
        process.stdin.write(b"second\n")
        process.stdin.close()
        assert process.wait(60) == 0
    assert threaded_gateway.log("r").end == 2


# ---- sub ----


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _filled(gateway: FakeGateway, *data: Any) -> None:
    for item in data:
        event = {"specversion": "1.0", "id": str(item), "source": "/s", "type": "t", "time": "2026-01-01T00:00:00Z"}
        gateway.log("r").events.append({**event, "data": item})


def test_sub_prints_a_line_per_event(threaded_gateway: FakeGateway) -> None:
    _filled(threaded_gateway, {"a": 1}, "text\x1b[2J\n")
    result = herald("sub", "r", "--from", "earliest", "--count", "2", "--url", threaded_gateway.url)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        '2026-01-01T00:00:00Z  r  1  t  {"a":1}',
        "2026-01-01T00:00:00Z  r  2  t  text\\x1b[2J\\n",
    ]


def test_sub_prints_json_lines(threaded_gateway: FakeGateway) -> None:
    _filled(threaded_gateway, 1, 2)
    result = herald("sub", "r", "--from", "earliest", "--count", "2", "--json", "--url", threaded_gateway.url)
    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["offset"], first["cursor"], first["event"]["data"]) == (1, "a:1", 1)
    assert second["offset"] == 2


def test_sub_prints_only_the_data(threaded_gateway: FakeGateway) -> None:
    _filled(threaded_gateway, {"a": 1}, "text")
    result = herald("sub", "r", "--from", "earliest", "--count", "2", "--data-only", "--url", threaded_gateway.url)
    assert result.stdout == '{"a":1}\ntext\n'


def test_sub_says_a_gap_on_stderr(threaded_gateway: FakeGateway) -> None:
    _filled(threaded_gateway, 1, 2, 3)
    threaded_gateway.log("r").first = 3
    arguments = ["sub", "r", "--from", "a:0", "--count", "1", "--url", threaded_gateway.url]
    result = herald(*arguments)
    assert "offsets 1 to 2 are missing" in result.stderr
    gap = json.loads(herald(*arguments, "--json").stderr)["gap"]
    assert (gap["from"], gap["to"]) == (1, 2)


def test_sub_goes_on_from_its_state_file(threaded_gateway: FakeGateway, tmp_path: Path) -> None:
    _filled(threaded_gateway, 1, 2, 3)
    arguments = [
        "sub",
        "r",
        "--from",
        "earliest",
        "--state",
        str(tmp_path / "s"),
        "--data-only",
        "--url",
        threaded_gateway.url,
    ]
    assert herald(*arguments, "--count", "2").stdout == "1\n2\n"
    assert herald(*arguments, "--count", "1").stdout == "3\n"


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_sub_prints_the_place_and_how_to_go_on(threaded_gateway: FakeGateway, signal_number: int) -> None:
    _filled(threaded_gateway, 1)
    command = [*HERALD, "sub", "r", "--from", "earliest", "--url", threaded_gateway.url]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background inherit to ignore it
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal_number)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.strip() == "stopped at a:1. To resume: herald sub r --from a:1"


def test_a_reader_of_the_output_may_leave(threaded_gateway: FakeGateway) -> None:
    _filled(threaded_gateway, *range(5000))
    command = [*HERALD, "sub", "r", "--from", "earliest", "--url", threaded_gateway.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_a_line_shows_binary_data_by_its_size() -> None:
    event = {"time": "t", "type": "x", "data_base64": "AAAA", "datacontenttype": "image/png"}
    assert line(event, "r", "1") == "t  r  1  x  (3 bytes of image/png)"


def test_pull_names_the_rendezvous_point_of_a_gap(hostile: Hostile) -> None:
    gap = {"epoch": "a", "from": 1, "to": 9}
    page = {"events": [], "epoch": "a", "offset": 9, "cursor": "a:9", "recovered": False, "gap": gap}
    described = {"id": "s", "rp": "q" * 26, "lease": {"granted_s": 60, "expires_at": ""}}

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, json.dumps(page if path.split("?")[0].endswith("/events") else described).encode()

    hostile.answer = answer
    said = herald("sub-durable", "pull", "s", "--url", hostile.url).stderr
    assert said == f"gap: the history of {'q' * 26} was trimmed: offsets 1 to 9 are missing\n"
    assert (
        json.loads(herald("sub-durable", "pull", "s", "--json", "--url", hostile.url).stderr)["gap"]["rp"] == "q" * 26
    )


# ---- the server's folder ----


def test_the_home_is_where_the_environment_says_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERALD_HOME", str(tmp_path))
    assert find_home() is None
    (tmp_path / "portal").mkdir()
    (tmp_path / "manage.py").touch()
    assert find_home() == tmp_path


def test_an_installed_server_is_used_only_where_the_data_of_a_domain_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere it would make a new domain, and sign a token that no running one takes."""
    for variable in ("HERALD_HOME", "HERALD_DATA_DIR", "HERALD_SECRET_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(herald_package, "__file__", str(tmp_path / "lib" / "site-packages" / "herald" / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    assert find_home() is None
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "secret_key").touch()
    assert find_home() is None  # the data of a domain, and no server
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "herald-server").touch()
    assert find_home() == tmp_path
    assert server(tmp_path) == [str(tmp_path / "bin" / "herald-server")]
    (tmp_path / "var").rename(tmp_path / "data")
    assert find_home() is None
    monkeypatch.setenv("HERALD_DATA_DIR", str(tmp_path / "data"))
    assert find_home() == tmp_path


def test_token_create_passes_everything_on_and_prints_only_what_the_server_printed(tmp_path: Path) -> None:
    (tmp_path / "portal").mkdir()
    (tmp_path / "manage.py").write_text("import sys; print(' '.join(sys.argv[1:]))")
    command = [
        *HERALD,
        "token",
        "create",
        "--admin",
        "--subject",
        "ann",
        "--lease-s",
        "60",
        "--ops",
        "publish, subscribe",
    ]
    done = subprocess.run(
        command, env={**os.environ, "HERALD_HOME": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "token_create --admin --subject ann --lease-s 60 --ops publish,subscribe\n"
    assert done.stderr == ""


def test_token_create_that_fails_is_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "portal").mkdir()
    (tmp_path / "manage.py").write_text("raise SystemExit(5)")
    assert herald("token", "create", HERALD_HOME=str(tmp_path)).exit_code == 1


def test_token_create_without_the_servers_folder_says_what_it_needs(tmp_path: Path) -> None:
    result = herald("token", "create", HERALD_HOME=str(tmp_path))
    assert result.exit_code == 2
    assert "HERALD_HOME" in result.stderr


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["backup", "a.tar", "--force", "--without-records"], "backup --without-records --force -- {cwd}/a.tar"),
        (["backup", "--check", "--json", "/b/a.tar"], "backup --check --json -- /b/a.tar"),
        (["backup", "-"], "backup -- -"),
        (["restore", "a.tar", "--replace"], "restore --replace -- {cwd}/a.tar"),
        (["restore", "--", "--json"], "restore -- {cwd}/--json"),
    ],
)
def test_backup_and_restore_run_in_the_servers_folder_with_the_file_of_the_current_one(
    tmp_path: Path, given: list[str], passed: str
) -> None:
    (tmp_path / "portal").mkdir()
    (tmp_path / "manage.py").write_text("import sys; print(' '.join(sys.argv[1:])); sys.exit(1)")
    (cwd := tmp_path / "elsewhere").mkdir()
    env = {**os.environ, "HERALD_HOME": str(tmp_path)}
    done = subprocess.run([*HERALD, *given], env=env, cwd=cwd, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, passed.format(cwd=cwd) + "\n")


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_backup_and_restore_without_the_servers_folder_say_what_they_need(tmp_path: Path, command: str) -> None:
    result = herald(command, "a.tar", HERALD_HOME=str(tmp_path))
    assert result.exit_code == 2
    assert "HERALD_HOME" in result.stderr

"""Lists of the command: a header and colours on terminals only, columns to choose, empty states, pages."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from herald.commands import cli

from tests.client.hostile import Hostile
from tests.client.test_output import EVIL, harmless, terminal

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
RP = {
    "id": "a" * 26,
    "name": "/b.example/weather/",
    "title": "",
    "offset": 12345,
    "lease": {"granted_s": 60, "expires_at": "2026-11-24T02:50:00.123456Z"},
}
PAUSED = {**RP, "id": "c" * 26, "name": None, "paused": {"at": "t", "by": "ann", "reason": ""}}


def herald(*arguments: str, **env: str) -> Result:
    clean = {name: None for name in os.environ if name.startswith("HERALD_") or name == "NO_COLOR"}
    return CliRunner().invoke(cli, arguments, env={**clean, **env})


def shown(*arguments: str, **env: str) -> str:
    """What a command of a process of its own shows on a terminal."""
    import subprocess

    clean = {name: value for name, value in os.environ.items() if not name.startswith("HERALD_") and name != "NO_COLOR"}
    with terminal() as (descriptor, told):
        command = [sys.executable, "-c", "from herald.commands import main; main()", *arguments]
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            check=False,
            timeout=60,
            env={**clean, "TERM": "xterm", **env},
        )
        return told()


def page(hostile: Hostile, *items: Any) -> list[str]:
    hostile.body = json.dumps({"items": items, "next": None}).encode()
    return ["rp", "list", "--url", hostile.url]


def test_a_list_begins_with_names_and_has_no_header_in_a_pipe(hostile: Hostile) -> None:
    result = herald(*page(hostile, RP, PAUSED))
    first, second = result.stdout.splitlines()
    assert first.split() == ["/b.example/weather/", "12345", "open", "2026-11-24T02:50:00Z", "a" * 26]
    assert second.split()[::2] == ["-", "paused", "c" * 26], "every column has a text, for programs"
    assert "\x1b" not in result.stdout


def test_a_terminal_gets_a_header_and_colours_that_mean_something(hostile: Hostile) -> None:
    text = shown(*page(hostile, RP, PAUSED))
    head, first, second = text.splitlines()
    assert COLOUR.sub("", head).split() == ["NAME", "EVENTS", "STATE", "ENDS", "ID"]
    assert "\x1b" not in first
    assert "12,345" in first
    assert "\x1b[33mpaused\x1b[0m" in second
    plain = [COLOUR.sub("", line) for line in text.splitlines()]
    assert len({line.index("2026-") for line in plain[1:]} | {plain[0].index("ENDS")}) == 1, "columns are aligned"


@pytest.mark.parametrize(
    ("more", "env"), [(["--color", "never"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})], ids=str
)
def test_colours_can_be_refused(hostile: Hostile, more: list[str], env: dict[str, str]) -> None:
    text = shown(*page(hostile, PAUSED), *more, **env)
    assert "paused" in text
    assert "\x1b" not in text


def test_colours_can_be_wanted_in_a_pipe(hostile: Hostile) -> None:
    assert "\x1b[33mpaused" in herald(*page(hostile, PAUSED), "--color", "always").stdout


def test_foreign_text_in_a_coloured_list_commands_no_terminal(hostile: Hostile) -> None:
    text = shown(*page(hostile, {**PAUSED, "id": EVIL, "name": EVIL, "lease": {"expires_at": EVIL}}))
    assert harmless(COLOUR.sub("", text))
    assert text.count("\n") == 2


def test_columns_are_chosen_by_name(hostile: Hostile) -> None:
    arguments = page(hostile, RP)
    assert herald(*arguments, "--columns", "id,name").stdout.split() == ["a" * 26, "/b.example/weather/"]
    assert len(herald(*arguments, "--columns", "all").stdout.split()) == 10
    refused = herald(*arguments, "--columns", "id,nam")
    assert refused.exit_code == 2
    assert "There is no column nam. Columns: name, events, " in refused.stderr


def test_json_is_the_answer_whatever_the_columns(hostile: Hostile) -> None:
    assert json.loads(herald(*page(hostile, RP), "--json", "--columns", "id").stdout) == RP


@pytest.mark.parametrize(
    "command",
    [["rp", "list"], ["sub-durable", "list"], ["session", "list"], ["lease", "list"], ["alarm", "list"], ["hook", "list"], ["intake", "list", "r"],
     ["peer", "list"], ["peer", "links", "b"], ["overlay", "links"], ["overlay", "map"], ["misbehaviour", "list"], ["misbehaviour", "evidence"],
     ["audit"], ["report", "list"], ["replica", "list"], ["key", "list"]],
    ids=" ".join,
)  # fmt: skip
def test_an_empty_list_is_one_sentence_on_stderr(hostile: Hostile, command: list[str]) -> None:
    answer: dict[str, Any] = {
        "items": [],
        "next": None,
        "complete": True,
        "gateways": {"asked": 1, "answered": 1},
        "engine": {"state": "on"},
        "links": [],
    }
    hostile.body = json.dumps(answer).encode()
    result = herald(*command, "--url", hostile.url)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (0, "", 1), result.output
    assert result.stderr.strip()
    assert herald(*command, "--url", hostile.url, "--json").output == ""


def test_a_long_list_is_paged_where_somebody_can_turn_pages(hostile: Hostile, tmp_path: Path) -> None:
    """Both ends are a terminal: the pager of PAGER gets the list, header included; otherwise nothing is paged."""
    import subprocess

    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\n")
    pager.chmod(0o755)
    arguments = page(hostile, *({**RP, "name": f"/b.example/{number}/"} for number in range(200)))
    assert shown(*arguments, PAGER=str(pager)).count("\n") == 201
    assert not (tmp_path / "paged").exists(), "standard input is no terminal"
    with terminal() as (descriptor, told):
        command = [sys.executable, "-c", "from herald.commands import main; main()", *arguments]
        environment = {**os.environ, "TERM": "xterm", "PAGER": str(pager)}
        subprocess.run(
            command, stdin=descriptor, stdout=descriptor, stderr=descriptor, check=True, timeout=60, env=environment
        )
        assert told() == ""
    paged = (tmp_path / "paged").read_text().splitlines()
    assert len(paged) == 201
    assert "NAME" in paged[0]


@pytest.mark.parametrize(
    ("command", "meant"),
    [(["publsh"], "'pub'"), (["rp", "crate"], "'create'"), (["rp", "rm"], "'delete'"), (["peer", "rm"], "'remove'"), (["consume"], "'sub'"), (["alarm", "lst"], "'list'")],
    ids=str,
)  # fmt: skip
def test_an_unknown_command_names_what_may_be_meant(command: list[str], meant: str) -> None:
    result = herald(*command)
    assert result.exit_code == 2
    assert f"Did you mean {meant}?" in result.stderr


@pytest.mark.parametrize(
    ("former", "verb"),
    [(["rp", "update"], "change"), (["peer", "trust"], "change"), (["plan", "apply"], "approve"), (["alarm", "ack"], "acknowledge")],
    ids=str,
)  # fmt: skip
def test_former_verbs_are_understood_and_not_listed(former: list[str], verb: str) -> None:
    assert herald(*former, "--help").exit_code == 0
    listed = herald(former[0], "--help").output
    assert f"\n  {verb} " in listed
    assert f"\n  {former[1]} " not in listed


# ---- policies ----


def sent(hostile: Hostile, *arguments: str, policy: list[Any] | None = None, input: str | None = None) -> list[Any]:
    """The policy that the domain is asked to have, and the conditions."""
    hostile.body = json.dumps({**RP, "policy": policy or []}).encode()
    result = CliRunner().invoke(cli, [*arguments, "--url", hostile.url, "--token", "t"], input=input)
    assert result.exit_code == 0, result.output
    stated: list[Any] = json.loads(hostile.bodies[-1])["policy"]
    return stated


def test_allow_adds_to_the_default_policy_of_a_new_rendezvous_point(hostile: Hostile) -> None:
    stated = sent(hostile, "rp", "create", "weather", "--allow", "peer:b.example=publish,subscribe,replicate")
    assert stated == [
        {"issuer": "domain", "allow": ["describe", "publish", "subscribe", "history"]},
        {"issuer": "peer:b.example", "allow": ["publish", "subscribe", "replicate"]},
    ]


def test_allow_takes_the_place_of_a_rule_and_stands_before_those_for_anyone(hostile: Hostile) -> None:
    policy = [
        {"issuer": "peer:b.example", "claims": {"sub": {"equals": "eve"}}, "allow": []},
        {"issuer": "domain", "allow": ["describe"]},
        {"issuer": "anyone", "allow": ["subscribe"]},
    ]
    arguments = ["rp", "change", "weather", "--allow", "peer:b.example=subscribe", "--allow", "domain=publish"]
    assert sent(hostile, *arguments, policy=policy) == [
        policy[0],
        {"issuer": "domain", "allow": ["publish"]},
        {"issuer": "peer:b.example", "allow": ["subscribe"]},
        policy[2],
    ]
    assert sent(hostile, "rp", "change", "weather", "--allow", "domain=", policy=policy)[1] == {
        "issuer": "domain",
        "allow": [],
    }


def test_a_policy_is_read_from_standard_input(hostile: Hostile) -> None:
    rules = [{"issuer": "anyone", "allow": ["subscribe"]}]
    assert sent(hostile, "rp", "change", "weather", "--policy", "-", input=json.dumps(rules)) == rules


@pytest.mark.parametrize("text", ["b.example=publish", "peer:b.example", "=publish", "domain=fly", "http://x=publish"])
def test_a_rule_that_is_none_is_refused_before_anything_is_asked(text: str) -> None:
    assert herald("rp", "create", "weather", "--allow", text, "--url", "http://127.0.0.1:1").exit_code == 2

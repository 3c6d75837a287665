"""A token is narrowed by its holder alone: no request reaches any server, and what cannot work is refused at once."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner, Result
from herald import InputError
from herald.commands import cli
from herald.delegation import BLOCKS_MAX, TOKEN_CHARS_MAX, delegate, inspect
from joserfc.jwk import OKPKey

from eventing.access.rules import tokens
from eventing.access.services.delegation import sign_biscuit
from eventing.access.verification.biscuits import verify_biscuit
from eventing.core.principals import Principal

NOW = 1_800_000_000
_KEY = OKPKey.generate_key("Ed25519")
PRIVATE = {**_KEY.as_dict(private=True), "kid": _KEY.thumbprint()}
KEYS = {_KEY.thumbprint(): _KEY.as_dict(private=False)}
CLAIMS: dict[str, Any] = {"iss": "example.org", "aud": "example.org", "sub": "ann", "exp": NOW + 7200, "jti": "j1"}
TOKEN = sign_biscuit(CLAIMS, PRIVATE)
LASTING = sign_biscuit({**CLAIMS, "exp": int(time.time()) + 7200}, PRIVATE)
RP = "a" * 26


def verify(token: str, now: float = NOW) -> Principal:
    return verify_biscuit(token, KEYS, now, issuer="example.org", audience="example.org")


def herald(*arguments: str, input: str | None = None, **env: str) -> Result:
    clean = {name: None for name in os.environ if name.startswith("HERALD_")}
    return CliRunner().invoke(cli, ["token", *arguments], input=input, env={**clean, **env})


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a socket fails."""

    def refuse(*arguments: Any, **more: Any) -> NoReturn:
        raise AssertionError("a socket was opened")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.mark.usefixtures("no_network")
def test_a_holder_narrows_a_token_to_one_rp_read_only_for_an_hour_without_asking_anybody() -> None:
    result = herald("delegate", LASTING, "--rp", RP, "--ops", "subscribe,history,describe", "--for", "1h")
    assert result.exit_code == 0, result.output
    narrowed = verify(result.stdout.strip(), now=time.time())
    for operation in ("subscribe", "history", "describe"):
        assert narrowed.permits(operation, RP)
        assert not narrowed.permits(operation, "b" * 26)
    for operation in ("publish", "administer"):
        assert not narrowed.permits(operation, RP)
    assert 3590 < narrowed.expires_at - time.time() <= 3600
    assert verify(LASTING, now=time.time()).permits("publish", "b" * 26)


def test_the_command_needs_no_server_process_and_no_settings() -> None:
    """In a process of its own, with an address at which nobody is."""
    made = subprocess.run(
        [sys.executable, "-c", "from herald.commands import main; main()", "token", "delegate", "-", "--for", "60s"],
        input=LASTING,
        env={**os.environ, "HERALD_URL": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert made.stdout.startswith(LASTING.rpartition(":")[0])
    assert verify(made.stdout.strip(), now=time.time()).expires_at <= time.time() + 60


def test_names_are_put_under_the_tokens_domain() -> None:
    narrowed = verify(delegate(TOKEN, rps=["weather", "news/*", "/example.org/a/b"]))
    assert narrowed.permits("publish", RP, "/example.org/weather/")
    assert narrowed.permits("publish", RP, "/example.org/news/today/")
    assert narrowed.permits("publish", RP, "/example.org/a/b/")
    assert not narrowed.permits("publish", RP, "/example.org/weather/berlin/")
    assert not narrowed.permits("publish", RP, "/example.com/weather/")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "Give what"),
        ({"operations": ["fly"]}, "no operation fly"),
        ({"rps": ["a b"]}, "neither an id"),
        ({"rps": ['x") or rp("y']}, "neither an id"),
        ({"rps": ["/example.org/" + "x" * 300]}, "neither an id"),
        ({"rps": ["*"]}, "neither an id"),
        ({"rps": ["/*"]}, "neither an id"),
        ({"rps": [f"rp{number}" for number in range(65)]}, "at most 64"),
        ({"rps": [f"{number:064}/{number:064}" for number in range(60)]}, "longer than"),
    ],
)
def test_what_no_domain_would_take_is_not_made(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        delegate(TOKEN, **asked)


def test_a_token_is_delegated_as_often_as_a_domain_takes() -> None:
    token = TOKEN
    for _ in range(BLOCKS_MAX - 1):
        token = delegate(token, operations=["subscribe"])
    assert verify(token).permits("subscribe", RP)
    assert len(token) < TOKEN_CHARS_MAX
    with pytest.raises(InputError, match="Delegate an earlier one"):
        delegate(token, operations=["subscribe"])


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("x", "not a Biscuit"),
        ("biscuit:x:y:z", "not a Biscuit"),
        (tokens.sign(CLAIMS, PRIVATE), "herald token biscuit"),
        ("biscuit:" + "A" * 43 + ":" + TOKEN.split(":")[2], "does not contain the key"),
        (TOKEN[:-20], "damaged"),
        (TOKEN[:-5] + ("AAAAA" if not TOKEN.endswith("AAAAA") else "BBBBB"), "damaged"),
        ("biscuit:k:!!", "not a Biscuit"),
        ("biscuit:k:AAAA", "damaged"),
    ],
)
def test_what_is_no_good_biscuit_is_refused_with_what_to_do(token: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        delegate(token, operations=["subscribe"])


def test_attack_a_key_of_the_forgers_carried_under_the_domains_name() -> None:
    """The key that a token carries must hash to the key's id: nobody can be shown a chain of another key under it."""
    forger = OKPKey.generate_key("Ed25519")
    forged = sign_biscuit(CLAIMS, {**forger.as_dict(private=True), "kid": PRIVATE["kid"]})
    with pytest.raises(InputError, match="does not contain the key"):
        inspect(forged)
    named = sign_biscuit(
        {**CLAIMS, "sub": f'x");\nkey("{PRIVATE["x"]}'}, {**forger.as_dict(private=True), "kid": PRIVATE["kid"]}
    )
    with pytest.raises(InputError):
        inspect(named)


@pytest.mark.usefixtures("no_network")
def test_a_token_is_inspected_without_asking_anybody() -> None:
    narrowed = delegate(delegate(TOKEN, operations=["publish", "subscribe"]), rps=["weather"], for_s=60, now=NOW)
    found = inspect(narrowed)
    assert (found.kind, found.key_id, found.chained) == ("biscuit", PRIVATE["kid"], True)
    assert found.claims == CLAIMS
    assert found.checks == (
        ('check if operation("publish") or operation("subscribe");',),
        (
            'check if rp_name("/example.org/weather/");',
            f"check if time($time), $time <= {datetime.fromtimestamp(NOW + 60, UTC):%Y-%m-%dT%H:%M:%SZ};",
        ),
    )
    assert found.expires_at == NOW + 60
    shown = herald("inspect", narrowed)
    assert shown.exit_code == 0
    for part in (
        "Biscuit of example.org for ann",
        str(PRIVATE["kid"]),
        "j1",
        'block 1     check if operation("publish")',
    ):
        assert part in shown.stdout


def test_a_jwt_is_inspected_too_and_said_to_be_unverified() -> None:
    jwt = tokens.sign({**CLAIMS, "admin": True, "exp": 10**18}, PRIVATE)
    shown = herald("inspect", jwt)
    assert "JWT of example.org for ann, an administrator" in shown.stdout
    assert "not verified" in shown.stdout
    document = json.loads(herald("inspect", "--json", "--token", jwt).stdout)
    assert (document["kind"], document["chained"], document["claims"]["sub"]) == ("jwt", None, "ann")


def test_attack_a_token_that_commands_the_terminal_it_is_shown_on() -> None:
    jwt = tokens.sign({**CLAIMS, "sub": "\x1b]0;owned\x07", "\x1b[2J": "\x1b[1m"}, PRIVATE)
    for token in (jwt, sign_biscuit({**CLAIMS, "sub": "\x1b[2J\nBiscuit of", "\x1b[2J": "\x1b[1m"}, PRIVATE)):
        shown = herald("inspect", token)
        assert shown.exit_code == 0
        assert "\x1b" not in shown.stdout
        assert "\x07" not in shown.stdout


@pytest.mark.parametrize("text", ["", "x", "a.b", "a.b.c", "e30.e30", "W10.W10.x", "." * 3, "ä.ö.ü"])
def test_what_is_no_token_is_said_to_be_none(text: str) -> None:
    with pytest.raises(InputError):
        inspect(text)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["delegate"], "HERALD_TOKEN"),
        (["inspect"], "HERALD_TOKEN"),
        (["delegate", LASTING, "--for", "soon"], "90s, 10m, 1h"),
        (["delegate", LASTING, "--for", "0"], "90s, 10m, 1h"),
        (["delegate", LASTING, "--ops", "fly"], "use one or several of"),
        (["delegate", LASTING, "--ops", "publish", "--rp", "*"], "neither an id"),
    ],
)
def test_used_wrongly_the_command_says_what_to_do(arguments: list[str], says: str) -> None:
    result = herald(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert says in result.stderr


def test_the_token_may_come_from_the_environment_or_the_input() -> None:
    for result in (
        herald("delegate", "--for", "60", HERALD_TOKEN=LASTING),
        herald("delegate", "-", "--for", "1m", input=LASTING + "\n"),
    ):
        assert verify(result.stdout.strip(), now=time.time()).expires_at <= time.time() + 60
    document = json.loads(herald("delegate", "--json", "--rp", "weather", "--token", LASTING).stdout)
    assert verify(document["token"], now=time.time()).permits("publish", RP, "/example.org/weather/")
    assert document["checks"] == [['check if rp_name("/example.org/weather/");']]

"""Profiles: kept by name for their owner only, used where neither the command line nor the environment says otherwise."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from herald.commands import cli

from tests.client.hostile import Hostile

A, B = "http://127.0.0.1:1", "http://127.0.0.1:2"


class Home:
    """Somebody's folder of settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "herald" / "profiles.json"

    def herald(self, *arguments: str, input: str | None = None, **env: str) -> Result:
        clean = {name: None for name in os.environ if name.startswith("HERALD_")}
        env = {"XDG_CONFIG_HOME": str(self.folder), **env}
        return CliRunner().invoke(cli, arguments, input=input, env={**clean, **env})

    def does(self, *arguments: str, input: str | None = None, **env: str) -> str:
        result = self.herald(*arguments, input=input, **env)
        assert result.exit_code == 0, result.output
        return result.stdout

    def goes_to(self, *arguments: str, **env: str) -> str:
        """The address that a command tries."""
        result = self.herald("rp", "list", *arguments, **env)
        assert result.exit_code == 3, result.output
        return result.stderr.split()[4].rstrip(":")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "config")


def test_a_profile_is_kept_used_changed_and_removed(home: Home) -> None:
    home.does("profile", "add", "one", "--url", A, "--token", "-", input="secret\n")
    home.does("profile", "add", "two", "--url", B)
    listed = [json.loads(line) for line in home.does("profile", "list", "--json").splitlines()]
    assert listed == [
        {"name": "one", "used": True, "url": [A], "token": True},
        {"name": "two", "used": False, "url": [B], "token": False},
    ]
    assert "secret" not in home.does("context", "list", "--columns", "all"), "no token on a screen"
    assert home.goes_to() == A
    home.does("profile", "use", "two")
    assert home.goes_to() == B
    home.does("profile", "remove", "two", "--yes")
    assert home.goes_to() == "http://127.0.0.1:8000"
    assert "There is no profile 'two'. Profiles: one." in home.herald("rp", "list", "--profile", "two").stderr


def test_only_its_owner_can_read_the_file(home: Home) -> None:
    home.does("profile", "add", "one", "--url", A, "--token", "secret")
    assert stat.S_IMODE(home.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.file.parent.stat().st_mode) == 0o700
    home.file.chmod(0o640)
    refused = home.herald("rp", "list")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"chmod 600 {home.file}" in refused.stderr


def test_the_environment_wins_over_profiles_and_the_command_line_over_both(home: Home) -> None:
    home.does("profile", "add", "one", "--url", A)
    assert home.goes_to(HERALD_URL=B) == B
    assert home.goes_to(HERALD_PORT="3") == "http://127.0.0.1:3"
    home.does("profile", "add", "other", "--url", "http://127.0.0.1:4")
    assert home.goes_to(HERALD_CLIENT_PROFILE="other") == "http://127.0.0.1:4"
    assert home.goes_to(HERALD_CLIENT_PROFILE="other", HERALD_URL=B) == B
    assert home.goes_to("--profile", "one", HERALD_URL=B) == A
    assert home.goes_to("--url", "http://127.0.0.1:5", HERALD_URL=B) == "http://127.0.0.1:5"


def test_a_profiles_token_goes_to_its_addresses_only(home: Home, hostile: Hostile) -> None:
    hostile.body = b'{"items": []}'
    home.does("profile", "add", "one", "--url", hostile.url, "--token", "secret")

    def token(*arguments: str, **env: str) -> str | None:
        home.does("rp", "list", *arguments, **env)
        return hostile.requests[-1][2].get("Authorization")

    assert token() == "Bearer secret"
    assert token(HERALD_TOKEN="other") == "Bearer other"
    assert token("--profile", "one", HERALD_TOKEN="other") == "Bearer secret"
    home.does("profile", "add", "one", "--url", A, "--token", "secret")
    assert token("--url", hostile.url) is None
    assert token(HERALD_URL=hostile.url) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"profiles": []}', '{"profiles": {"a": {}}}', '{"profiles": {"a": {"url": [1]}}}', "[" * 99999], ids=range(7)
)  # fmt: skip
def test_a_file_that_is_none_is_named(home: Home, text: str) -> None:
    home.file.parent.mkdir(parents=True)
    home.file.write_text(text)
    home.file.chmod(0o600)
    refused = home.herald("rp", "list")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert str(home.file) in refused.stderr


def test_a_folder_that_cannot_be_made_is_named(home: Home) -> None:
    refused = home.herald("profile", "add", "one", "--url", A, XDG_CONFIG_HOME=os.devnull)
    assert refused.exit_code == 2
    assert "cannot be written" in refused.stderr


@pytest.mark.parametrize(
    "arguments", [["add", "a b", "--url", A], ["add", "a"], ["add", "a", "--url", A, "--token", "-"]]
)
def test_what_is_no_profile_is_refused(home: Home, arguments: list[str]) -> None:
    assert home.herald("profile", *arguments, input="").exit_code == 2
    assert not home.file.exists()

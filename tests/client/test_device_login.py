"""`herald login` against domains that answer anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from herald.commands import cli

from tests.client.hostile import Hostile

CODES = {
    "device_code": "d", "user_code": "BCDF-GHJK", "verification_uri": "http://x/login/device", "expires_in": 600, "interval": 0,
    "verification_uri_complete": "http://x/login/device?code=BCDF-GHJK",
}  # fmt: skip
TOKEN = {"access_token": "secret", "token_type": "Bearer", "expires_in": 3600, "domain": "b.example", "subject": "ann"}


def login(hostile: Hostile, home: Path, *arguments: str) -> Result:
    clean = {name: None for name in os.environ if name.startswith("HERALD_")}
    return CliRunner().invoke(cli, ["login", hostile.url, *arguments], env={**clean, "XDG_CONFIG_HOME": str(home)})


def answers(hostile: Hostile, *polls: tuple[int, object]) -> None:
    """The codes, then these answers to polls."""
    left = list(polls)

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        status, body = (200, CODES) if path.endswith("/codes") else left.pop(0)
        return status, {}, json.dumps(body).encode()

    hostile.answer = answer


def test_it_waits_for_the_approval_and_keeps_the_token(hostile: Hostile, tmp_path: Path) -> None:
    answers(hostile, (400, {"error": "authorization_pending"}), (200, TOKEN))
    result = login(hostile, tmp_path)
    assert result.exit_code == 0, result.output
    assert "Open http://x/login/device?code=BCDF-GHJK\nand approve the code BCDF-GHJK within 10 min." in result.stderr
    assert result.stdout == "logged in at b.example as ann, for 60 min. Profile b.example is used from now on.\n"
    kept = json.loads((tmp_path / "herald" / "profiles.json").read_text())
    assert kept == {"use": "b.example", "profiles": {"b.example": {"url": [hostile.url], "token": "secret"}}}
    assert "secret" not in result.output


@pytest.mark.parametrize(("error", "said"), [("access_denied", "was refused"), ("expired_token", "in time")])
def test_a_login_that_is_not_approved_is_exit_code_1(hostile: Hostile, tmp_path: Path, error: str, said: str) -> None:
    answers(hostile, (400, {"error": error}))
    result = login(hostile, tmp_path)
    assert (result.exit_code, said in result.stderr) == (1, True)
    assert not (tmp_path / "herald").exists()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, {}, "its version is older"), (200, [], "cannot be read"), (200, {**CODES, "device_code": 5}, "cannot be read"),
        (200, {**CODES, "expires_in": "soon"}, "cannot be read"), (429, {"type": "urn:herald:problem:rate-limited", "detail": "Too many."}, "Too many."),
    ],
    ids=range(5),
)  # fmt: skip
def test_a_domain_that_gives_no_codes_is_one_line(
    hostile: Hostile, tmp_path: Path, status: int, body: object, said: str
) -> None:
    hostile.status, hostile.body = status, json.dumps(body).encode()
    result = login(hostile, tmp_path)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.output
    assert said in result.stderr

"""Options of the server's command line that are read before the settings: --data-dir and --env-file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from demo.harness.servers import ROOT
from portal.command_line import environment_of


def test_an_environment_file_is_read_as_systemd_reads_it() -> None:
    text = "# a comment\n; another\n\nHERALD_DOMAIN=example.org\n HERALD_PORT = 1\n"
    with pytest.raises(ValueError, match="line 5 is not NAME=VALUE"):
        list(environment_of(text))
    text = 'HERALD_DOMAIN=example.org\nHERALD_TITLE="two words"\nHERALD_KEY=\'a"b\'\nHERALD_EMPTY=\nHERALD_URL=postgres://a:b=c@d/e?f=g\n'
    assert dict(environment_of(text)) == {
        "HERALD_DOMAIN": "example.org",
        "HERALD_TITLE": "two words",
        "HERALD_KEY": 'a"b',
        "HERALD_EMPTY": "",
        "HERALD_URL": "postgres://a:b=c@d/e?f=g",
    }


@pytest.mark.parametrize("line", ["HERALD_DOMAIN", "1A=b", 'A="b" c', "A=b\\", 'A="b\\"c"', "export A=b"])
def test_a_line_that_systemd_would_read_otherwise_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="line 1 is not NAME=VALUE"):
        list(environment_of(line))


@pytest.mark.processes
def test_data_dir_and_env_file_hold_for_one_command_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "herald.env").write_text("HERALD_DOMAIN=file.example\nHERALD_PORT=8123\nHERALD_DATA_DIR=/nonexistent\n")
    options = ["--env-file", str(tmp_path / "herald.env"), "doctor", "--data-dir", str(tmp_path / "data"), "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HERALD_", "DJANGO_"))}
    done = subprocess.run(
        [sys.executable, "manage.py", *options],
        cwd=ROOT,
        env={**environment, "HERALD_DOMAIN": "environment.example"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = {item["name"]: item["value"] for item in json.loads(done.stdout)["settings"]}
    assert found["HERALD_DATA_DIR"] == str(tmp_path / "data")
    assert found["HERALD_PORT"] == "8123"
    assert found["HERALD_DOMAIN"] == "environment.example"


@pytest.mark.processes
def test_a_file_of_settings_that_is_not_there_is_one_sentence() -> None:
    command = [sys.executable, "manage.py", "doctor", "--env-file", "/nonexistent/herald.env"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert (
        done.stderr
        == "The file of settings cannot be read: [Errno 2] No such file or directory: '/nonexistent/herald.env'\n"
    )

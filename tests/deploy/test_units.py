"""The systemd units: systemd itself finds nothing wrong with them, they fit the settings, and they confine what they start."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from demo.harness.servers import ROOT
from deploy.tree import HOME
from eventing.core.config import Config

UNITS = ROOT / "deploy" / "systemd"
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(
    ANALYZE is None, reason="systemd-analyze is not installed (Debian: apt install systemd)"
)
EXPOSURE_MAX = 2.5  # of 10: systemd's own judgement of what the service may do; an unconfined one has 9.6


def unit(name: str) -> configparser.ConfigParser:
    """A unit's sections; a name that comes twice keeps its last value."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / name)
    return parser


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units in a folder, with a program that is there in the place of the server's."""
    for path in UNITS.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace(f"{HOME}/bin/herald-server run", "/bin/true"))
    return tmp_path


@needs_systemd
def test_systemd_finds_nothing_wrong(units: Path) -> None:
    assert ANALYZE
    command = [ANALYZE, "verify", "--man=no", str(units / "herald.service"), str(units / "herald.socket")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "herald" in line]
    assert (done.returncode, ours) == (0, [])


@needs_systemd
def test_a_mistake_in_a_unit_is_found(units: Path) -> None:
    assert ANALYZE
    file = units / "herald.service"
    file.write_text(file.read_text().replace("ProtectHome=yes", "ProtectHome=perhaps"))
    done = subprocess.run(
        [ANALYZE, "verify", "--man=no", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "perhaps" in done.stderr


@needs_systemd
def test_the_service_is_confined(units: Path) -> None:
    assert ANALYZE
    command = [ANALYZE, "security", "--offline=true", str(units / "herald.service")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    exposure = re.search(r"Overall exposure level for herald.service: ([\d.]+)", done.stdout)
    assert exposure, done.stdout + done.stderr
    assert float(exposure[1]) <= EXPOSURE_MAX


def test_the_socket_listens_where_the_settings_say_by_default() -> None:
    assert unit("herald.socket")["Socket"]["ListenStream"] == f"{Config().host}:{Config().port}"


def test_the_service_keeps_its_data_where_systemd_makes_the_folder() -> None:
    service = unit("herald.service")["Service"]
    assert "HERALD_DATA_DIR=/var/lib/herald" in service["Environment"].split()
    assert service["WorkingDirectory"] == f"/var/lib/{service['StateDirectory']}" == "/var/lib/herald"
    assert service["ProtectSystem"] == "strict"


def test_the_service_may_hold_as_many_sessions_as_the_settings_allow() -> None:
    assert int(unit("herald.service")["Service"]["LimitNOFILE"]) > Config().sessions_max

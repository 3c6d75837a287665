"""The wheel of the server: everything that runs is in it, and it runs a whole domain in an empty folder, without the source tree."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from demo.harness.servers import READY_WITHIN_S, ROOT, STOPPED_WITHIN_S, free_port, wait_for
from deploy import wheels as wheels_module
from deploy.wheels import MOVED, SERVER_PACKAGES
from portal.documentation.sources import DocumentSources
from portal.supervisor.parent_watchdog import death_signal
from tests.deploy.conftest import clean_environment

pytestmark = [pytest.mark.processes, pytest.mark.long]


@dataclass(frozen=True)
class Installed:
    """A domain that runs from the wheel: the folder it was started in, its port, and where its commands are."""

    folder: Path
    port: int
    bin: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def variables(self) -> dict[str, str]:
        return clean_environment(HERALD_PORT=str(self.port), HERALD_PUSH="0")

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in the domain's folder."""
        name, *arguments = command
        return subprocess.run(
            [self.bin / name, *arguments],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=180,
            check=check,
        )

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False


@pytest.fixture(scope="module")
def installed(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """A domain of `herald-server run` in an empty folder; that it stops in order is part of the fixture."""
    domain = Installed(tmp_path_factory.mktemp("empty"), free_port(), environment)
    with (domain.folder / "output").open("wb") as output:
        server = subprocess.Popen(
            [domain.bin / "herald-server", "run"],
            cwd=domain.folder,
            env=domain.variables,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=death_signal(signal.SIGTERM),
        )
        try:
            wait_for(
                lambda: server.poll() is not None or domain.is_ready(), READY_WITHIN_S, about="the domain is ready"
            )
            assert server.poll() is None, (domain.folder / "output").read_text()
            yield domain
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(STOPPED_WITHIN_S) == 0


def test_every_file_that_the_server_reads_is_in_the_wheel(wheels: list[Path]) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", *SERVER_PACKAGES, *MOVED], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    moved = [(f"{source}/", f"{target}/") for source, target in MOVED.items()]
    wanted = {
        next((target + name.removeprefix(source) for source, target in moved if name.startswith(source)), name)
        for name in tracked
        if not name.startswith(("portal/web/", "client/js/test/"))
    }
    packed = set(zipfile.ZipFile(wheels[1]).namelist())
    assert not wanted - packed
    built = json.loads(wheels_module.CONSOLE_MANIFEST.read_text())
    assert built
    assert {f"portal/static/portal/dist/{name}" for name in built.values()} <= packed
    assert not {name for name in packed if name.split("/")[0] in {"tests", "demo", "bench", "deploy", "manage.py"}}


def test_every_document_that_the_domain_shows_is_in_the_wheel(wheels: list[Path]) -> None:
    shown = {f"{wheels_module.DOCUMENTS}/{name}" for name in DocumentSources(ROOT).by_name}
    assert not shown - set(zipfile.ZipFile(wheels[1]).namelist())


def test_the_wheel_requires_what_the_lock_names(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[1]) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = packed.read(name).decode()
    required = set(re.findall(r"^Requires-Dist: (\S+==\S+)$", metadata, re.MULTILINE))
    locked = set(re.findall(r"^(\S+==\S+)$", (ROOT / "requirements" / "run.txt").read_text(), re.MULTILINE))
    assert locked - required == {line for line in locked if line.startswith("setuptools==")}
    assert required - locked == {f"herald-client=={wheels_module.version(ROOT / 'client')}"}
    assert re.search(r"^Requires-Dist: pyspark==\S+; extra == .reports.$", metadata, re.MULTILINE)
    assert re.search(r"^Requires-Dist: daphne==\S+; extra == .runserver.$", metadata, re.MULTILINE)
    assert not any(line.startswith("daphne") for line in required)


def test_the_first_commands_it_prints_publish_and_read_an_event(installed: Installed) -> None:
    output = installed.folder / "output"
    wait_for(lambda: "Ctrl-C stops" in output.read_text(), about="its summary is printed after it is ready")
    printed = output.read_text().split("Next, in another terminal:\n")[1].split("\n\n")[0]
    assert ".venv" not in printed
    script = "set -e\n" + printed + " --count 1\n"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=installed.folder,
        env=installed.variables,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Hello, world" in done.stdout


def test_its_data_is_in_the_folder_it_was_started_in(installed: Installed) -> None:
    assert (installed.folder / "var" / "herald.sqlite3").is_file()
    assert (installed.folder / "var" / "redis").is_dir()


def test_pages_scripts_and_the_browsers_client_are_served(installed: Installed) -> None:
    with httpx.Client(base_url=installed.url, trust_env=False, timeout=60) as client:
        page = client.get("/login")
        assert page.status_code == 200
        assert "herald-server login_link" in page.text
        files = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text))
        assert any("/dist/" in name for name in files)
        for name in files | {"/static/js/herald.js"}:
            assert client.get(name).status_code == 200, name
        for name in ("/docs/protocol", "/docs/client/", "/api/docs", "/api/v1/asyncapi"):
            assert client.get(name).status_code == 200, name


def test_management_commands_work_without_the_source_tree(installed: Installed) -> None:
    found = json.loads(installed.run("herald-server", "doctor", "--json").stdout)
    assert found["healthy"]
    assert found["state"] == "running"
    assert {"packages": "ok", "console": "ok"}.items() <= {
        item["subject"]: item["grade"] for item in found["findings"]
    }.items()
    assert installed.run("herald-server", "migrate", "--check").returncode == 0
    assert "/login/once/" in installed.run("herald-server", "login_link").stdout
    assert installed.run("herald-server", "--version").stdout == f"Herald {wheels_module.version()}\n"
    assert "crash-half" in installed.run("herald-server", "simulate").stdout


def test_a_token_is_signed_only_where_a_domain_is(installed: Installed, tmp_path: Path) -> None:
    assert installed.run("herald", "token", "create").stdout.count(".") == 2
    elsewhere = Installed(tmp_path, installed.port, installed.bin).run("herald", "token", "create", check=False)
    assert elsewhere.returncode == 2
    assert "HERALD_DATA_DIR" in elsewhere.stderr
    assert not (tmp_path / "var").exists()

"""The Debian package in a system of its own: installed, started, upgraded with its data and settings, removed, purged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from demo.harness.servers import STOPPED_WITHIN_S, free_port, wait_for
from deploy import deb, tree
from deploy.image import SUITES, debian_sources
from tests.deploy.balancers import answers

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long,
    pytest.mark.soak,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed"),
]
ENTER = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
"""Shell: in a mount namespace of its own, so that nothing stays mounted however it ends."""
LINTIAN_ACCEPTED = (
    "embedded-library",  # wheels bring their libraries: that is what makes the package independent of the release's versions
    "shared-library-lacks-prerequisites",
    "python-module-in-wrong-location",
    "no-manual-page",
    "dir-or-file-in-usr-local",
    "bad-distribution-in-changes-file",
    "wrong-path-for-interpreter",  # the virtual environment's own interpreter
)


@pytest.fixture(scope="module")
def packages(server: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The package, and a later revision of it."""
    folder = tmp_path_factory.mktemp("packages")
    return [deb.build(folder, server, revision=revision, level=0) for revision in (1, 2)]


@dataclass(frozen=True)
class System:
    """A Debian system in a folder."""

    root: Path

    def command(self, *arguments: str) -> list[str]:
        return ["unshare", "--mount", "--", "sh", "-c", ENTER, str(self.root), *arguments]

    def run(self, *arguments: str, check: bool = True) -> str:
        """Run a command in it; return its output."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            self.command(*arguments), env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout

    def install(self, package: Path) -> None:
        shutil.copy(package, self.root / "tmp")
        self.run("dpkg", "--install", f"/tmp/{package.name}")

    @contextmanager
    def running(self, port: int) -> Iterator[str]:
        """Run the server as the service does; yields its address, and stops it in order."""
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "HERALD_PORT": str(port),
            "HERALD_PUSH": "0",
        }
        with (self.root / "tmp" / "output").open("ab") as output:
            process = subprocess.Popen(
                self.command("/usr/bin/herald-server", "run"),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(lambda: process.poll() is not None or answers(f"{url}/readyz"), 120, about="the server is ready")
            assert process.poll() is None, (self.root / "tmp" / "output").read_text()
            yield url
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOPPED_WITHIN_S) == 0

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.root / path.lstrip("/"))


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> System:
    """A minimal Debian of the release that the package fits."""
    if os.geteuid() != 0:
        pytest.skip("needs root: packages are installed in a system of their own")
    if shutil.which("mmdebstrap") is None:
        pytest.skip("mmdebstrap is not installed (Debian: apt install mmdebstrap)")
    root = tmp_path_factory.mktemp("system") / "root"
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--format=directory", "--include=python3,libstdc++6"]
    subprocess.run([*command, SUITES[tree.PYTHON], str(root), *debian_sources()], check=True)
    return System(root)


def test_installed_started_upgraded_removed_and_purged(system: System, packages: list[Path]) -> None:
    port = free_port()
    system.install(packages[0])
    assert system.run("stat", "-c", "%U:%G %a", "/var/lib/herald", "/etc/herald/herald.env").split("\n")[:2] == [
        "herald:herald 700",
        "root:herald 640",
    ]
    settings = system.root / "etc/herald/herald.env"
    settings.write_text("HERALD_DOMAIN=deb.example\n")
    with system.running(port) as url:
        token = system.run("/usr/bin/herald-server", "token_create", "--admin").strip()
        with httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=20
        ) as client:
            assert client.post("/api/v1/rps", json={"name": "kept"}).status_code == 201
            assert client.post("/api/v1/rps/kept%2F/events", json={"number": 1}).status_code == 201
    owner = (system.root / "var/lib/herald").stat().st_uid
    assert owner != 0
    assert {path.stat().st_uid for path in (system.root / "var/lib/herald").rglob("*")} == {owner}

    system.install(packages[1])
    assert settings.read_text() == "HERALD_DOMAIN=deb.example\n"
    with system.running(port) as url, httpx.Client(base_url=url, trust_env=False, timeout=20) as client:
        head = {"Authorization": f"Bearer {token}"}
        page = client.get("/api/v1/rps/kept%2F/events", params={"after": "earliest"}, headers=head)
        assert [event["data"] for event in page.json()["events"]] == [{"number": 1}]

    system.run("dpkg", "--remove", "herald")
    assert not system.exists("/usr/bin/herald-server")
    assert system.exists("/var/lib/herald/herald.sqlite3")
    assert system.exists("/etc/herald/herald.env")
    system.run("dpkg", "--purge", "herald")
    for path in (
        "/var/lib/herald",
        "/usr/lib/herald",
        "/etc/herald",
        "/lib/systemd/system/herald.service",
        "/usr/bin/herald",
    ):
        assert not system.exists(path), path
    assert system.run("getent", "passwd", "herald", check=False) == ""


@pytest.mark.skipif(shutil.which("lintian") is None, reason="lintian is not installed (Debian: apt install lintian)")
def test_lintian_finds_no_error(packages: list[Path]) -> None:
    command = [
        "lintian",
        "--fail-on",
        "error",
        "--allow-root",
        "--suppress-tags",
        ",".join(LINTIAN_ACCEPTED),
        str(packages[0]),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout

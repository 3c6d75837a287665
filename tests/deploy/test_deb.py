"""The Debian package in a system of its own: installed, started, upgraded with its data and settings, removed, purged."""

from __future__ import annotations

import os
import re
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
from deploy import deb, tree, wheels
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
UPGRADE = "99.0.0-1"
CHANGED_BY_DPKG = re.compile(
    r"var/lib/dpkg/|var/log/|var/cache/|var/lib/systemd/deb-systemd-helper|tmp/|dev/|proc/|etc/(?:passwd|group|shadow|gshadow|subuid|subgid)-?$"
)
"""What the installation of any package changes; users are compared apart."""
UNITS = "/etc/systemd/system"


@pytest.fixture(scope="module")
def packages(server: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The package, and one with a higher version."""
    folder = tmp_path_factory.mktemp("packages")
    return [deb.build(folder, server, number=number, level=0) for number in (None, UPGRADE)]


@dataclass(frozen=True)
class System:
    """A Debian system in a folder."""

    root: Path

    def command(self, *arguments: str) -> list[str]:
        return ["unshare", "--mount", "--", "sh", "-c", ENTER, str(self.root), *arguments]

    def run(self, *arguments: str, check: bool = True) -> str:
        """Run a command in it; return its output."""
        done = self.done(*arguments)
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout

    def done(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it, whatever its exit code is."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run(
            self.command(*arguments), env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    def status(self) -> str:
        """What dpkg says of the package, such as `installed`."""
        return self.done("dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", "herald").stdout

    def files(self) -> set[str]:
        """All paths that no package manager keeps for itself."""
        names = (str(path.relative_to(self.root)) for path in self.root.rglob("*"))
        return {name for name in names if not CHANGED_BY_DPKG.match(name)}

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


@pytest.fixture
def clean(system: System) -> Iterator[System]:
    """The system without the package, which nothing of it is left in after the test and its purge."""
    before, users = system.files(), system.run("getent", "passwd") + system.run("getent", "group")
    yield system
    system.run("dpkg", "--purge", "herald")
    assert system.files() - before == set()
    assert system.run("getent", "passwd") + system.run("getent", "group") == users


def test_installed_started_upgraded_removed_and_purged(clean: System, packages: list[Path]) -> None:
    system, port = clean, free_port()
    system.install(packages[0])
    assert system.run("stat", "-c", "%U:%G %a", "/var/lib/herald", "/etc/herald/herald.env").split("\n")[:2] == [
        "herald:herald 700",
        "root:herald 640",
    ]
    assert system.exists(f"{UNITS}/multi-user.target.wants/herald.service")
    assert not system.exists(f"{UNITS}/sockets.target.wants/herald.socket")
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
    assert system.status() == f"installed {UPGRADE}"
    assert settings.read_text() == "HERALD_DOMAIN=deb.example\n"
    with system.running(port) as url, httpx.Client(base_url=url, trust_env=False, timeout=20) as client:
        head = {"Authorization": f"Bearer {token}"}
        page = client.get("/api/v1/rps/kept%2F/events", params={"after": "earliest"}, headers=head)
        assert [event["data"] for event in page.json()["events"]] == [{"number": 1}]

    # As an administrator enables it (systemctl is not in this system): the link is gone after the purge as well.
    (system.root / UNITS.lstrip("/") / "sockets.target.wants").mkdir()
    (system.root / UNITS.lstrip("/") / "sockets.target.wants/herald.socket").symlink_to(
        "/lib/systemd/system/herald.socket"
    )
    system.run("dpkg", "--remove", "herald")
    for path in ("/usr/bin/herald-server", "/usr/bin/herald", "/usr/lib/herald", "/lib/systemd/system/herald.service"):
        assert not system.exists(path), path
    assert (system.root / UNITS.lstrip("/") / "herald.service").readlink() == Path("/dev/null")
    assert system.exists("/var/lib/herald/herald.sqlite3")
    assert settings.read_text() == "HERALD_DOMAIN=deb.example\n"
    assert system.run("getent", "passwd", "herald")

    system.install(packages[1])  # on the data that were kept
    assert not system.exists(f"{UNITS}/herald.service")
    with system.running(port) as url, httpx.Client(base_url=url, trust_env=False, timeout=20) as client:
        assert client.get("/api/v1/rps/kept%2F", headers=head).status_code == 200
    system.run("dpkg", "--remove", "herald")


def test_what_failed_halfway_is_repeated_or_undone(clean: System, packages: list[Path]) -> None:
    system = clean
    # The user cannot be made: the package is half-configured, and a later attempt completes it.
    useradd = system.root / "usr/sbin/useradd"
    useradd.rename(useradd.with_name("useradd.away"))
    shutil.copy(packages[0], system.root / "tmp")
    assert system.done("dpkg", "--install", f"/tmp/{packages[0].name}").returncode != 0
    assert system.status().startswith("half-configured")
    system.run("dpkg", "--remove", "herald")  # may be removed in this state too
    assert system.done("dpkg", "--install", f"/tmp/{packages[0].name}").returncode != 0
    useradd.with_name("useradd.away").rename(useradd)
    system.run("dpkg", "--configure", "--pending")
    assert system.status().startswith("installed")

    # Every script may run twice, and without the file of settings, which an administrator may remove.
    (system.root / "etc/herald/herald.env").unlink()
    for script, argument in (("postinst", "configure"), ("prerm", "upgrade"), ("postinst", "abort-upgrade")):
        for _ in range(2):
            system.run(f"/var/lib/dpkg/info/herald.{script}", argument, UPGRADE)

    # An upgrade that dpkg has to give up: the installed version is whole, and configured.
    broken = conflicting(packages[1], system.root / "tmp")
    assert "trying to overwrite" in system.done("dpkg", "--install", f"/tmp/{broken.name}").stderr
    assert system.status() == f"installed {deb.version()}"
    with system.running(free_port()):
        assert system.run("/usr/bin/herald-server", "--version").strip() == f"Herald {wheels.version()}"
    for _ in range(2):
        system.run("/var/lib/dpkg/info/herald.prerm", "remove")
    system.run("dpkg", "--remove", "herald")
    for argument in ("remove", "purge", "purge"):
        system.run("/var/lib/dpkg/info/herald.postrm", argument)


def conflicting(package: Path, into: Path) -> Path:
    """Return a copy of the package that has a file of another package too."""
    root, copy = into / "conflicting", into / f"conflicting-{package.name}"
    subprocess.run(["dpkg-deb", "--raw-extract", str(package), str(root)], check=True)
    (root / "usr/bin/env").touch()
    subprocess.run(["dpkg-deb", "--build", "-Znone", str(root), str(copy)], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(root)
    return copy


@pytest.mark.skipif(shutil.which("lintian") is None, reason="lintian is not installed (Debian: apt install lintian)")
def test_lintian_finds_no_error_and_no_warning(packages: list[Path]) -> None:
    """What is accepted is in deploy/debian/lintian-overrides, with its reason."""
    command = ["lintian", "--fail-on", "error,warning", "--allow-root", str(packages[0])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout

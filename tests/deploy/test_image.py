"""The image, built without a registry from Debian's packages and the wheels, runs by runc until /readyz: unprivileged, its root read-only."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from demo.harness.servers import STOPPED_WITHIN_S, free_port, wait_for
from deploy import image
from deploy.tree import HOME
from portal.supervisor.parent_watchdog import death_signal
from tests.deploy.balancers import answers
from tests.deploy.bundles import bundle, unpack
from tests.deploy.test_tree import LOAD_ALL

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long,
    pytest.mark.soak,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        shutil.which("mmdebstrap") is None, reason="mmdebstrap is not installed (Debian: apt install mmdebstrap)"
    ),
]
ARCHIVE_BYTES_MAX = 100 * 1024**2
UNPACKED_BYTES_MAX = 250 * 1024**2
BLOCK_BYTES = 4096


@pytest.fixture(scope="module")
def archive(server: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image, built once."""
    return image.build(tmp_path_factory.mktemp("image"), server)


@pytest.fixture(scope="module")
def container(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image as a bundle of runc, without its configuration."""
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "rootfs").mkdir()
    return folder


@dataclass(frozen=True)
class Container:
    """A running container of the image: its address, its files, and how a command runs in it."""

    url: str
    root: Path
    exec: tuple[str, ...]

    def run(self, *command: str) -> str:
        """Run a command of the server in it, as the documents tell operators; return its output."""
        program = f"{HOME}/bin/{command[0]}"
        done = subprocess.run(
            [*self.exec, program, *command[1:]], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def running(archive: Path, container: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A running container of the image; that it stops in order is part of the fixture."""
    tmp_path = tmp_path_factory.mktemp("running")
    if os.geteuid() != 0:
        pytest.skip("needs root: the container has users of its own")
    runc = shutil.which("runc")
    if runc is None:
        pytest.skip("runc is not installed (Debian: apt install runc)")
    config = unpack(archive, container / "rootfs")
    data, port, name = tmp_path / "data", free_port(), f"herald-test-{os.getpid()}"
    data.mkdir(mode=0o700)
    bundle(container, config, data, {"HERALD_PORT": str(port), "HERALD_HOST": "127.0.0.1"})
    output = tmp_path / "output"
    with output.open("wb") as written:
        process = subprocess.Popen(
            [runc, "--root", str(tmp_path / "runc"), "run", "--bundle", str(container), name],
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            preexec_fn=death_signal(signal.SIGTERM),
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: process.poll() is not None or answers(f"{url}/readyz"), 120, about="the container is ready")
        assert process.poll() is None, output.read_text()
        yield Container(url, container / "rootfs", (runc, "--root", str(tmp_path / "runc"), "exec", name))
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOPPED_WITHIN_S) == 0, output.read_text()
    finally:
        subprocess.run(
            [runc, "--root", str(tmp_path / "runc"), "delete", "--force", name], capture_output=True, check=False
        )


def test_the_image_is_small(archive: Path, running: Container) -> None:
    assert archive.stat().st_size <= ARCHIVE_BYTES_MAX
    found = [path.lstat() for path in running.root.rglob("*")]
    unpacked = sum(-(-state.st_size // BLOCK_BYTES) * BLOCK_BYTES for state in found if not stat.S_ISLNK(state.st_mode))
    assert unpacked <= UNPACKED_BYTES_MAX


def test_the_container_runs_unprivileged_with_a_read_only_root(running: Container) -> None:
    assert answers(f"{running.url}/login")
    root = running.root
    assert not (root / "bin/sh").exists()
    owned = {path.lstat().st_uid for path in root.rglob("*")}
    assert owned == {0, image.USER}
    assert [path for path in root.rglob("*") if path.lstat().st_uid == image.USER] == [root / image.DATA.lstrip("/")]
    assert not any(
        path.lstat().st_mode & 0o6000 for path in root.rglob("*") if path.is_file() and not path.is_symlink()
    )


def test_nothing_that_a_domain_uses_is_missing_in_the_image(running: Container) -> None:
    token = running.run("herald-server", "token_create", "--admin").strip()
    with httpx.Client(
        base_url=running.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=20
    ) as client:
        assert client.post("/api/v1/rps", json={"name": "image"}).status_code == 201
        assert client.post("/api/v1/rps/image%2F/events", json={"number": 1}).status_code == 201
        page = client.get("/api/v1/rps/image%2F/events", params={"after": "earliest"})
        assert [event["data"] for event in page.json()["events"]] == [{"number": 1}]
        for path in ("/api/v1/schema", "/docs/", "/docs/installing", "/docs/screens/account.png", "/metrics"):
            assert client.get(path).status_code == 200, path
    findings = running.run("herald-server", "doctor")
    assert not re.findall(r"^(?:FAIL|WARN).*(?:packages|database|redis).*$", findings, re.MULTILINE | re.IGNORECASE)
    assert running.run("herald", "--version").strip()


def test_every_module_of_the_server_loads_in_the_image_and_so_does_what_writes_records(running: Container) -> None:
    running.run("python", "-c", LOAD_ALL)

"""The image, built without a registry from Debian's packages and the wheels, runs by runc until /readyz: unprivileged, its root read-only."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.harness.servers import STOPPED_WITHIN_S, free_port, wait_for
from deploy import image
from portal.supervisor.parent_watchdog import death_signal
from tests.deploy.balancers import answers
from tests.deploy.bundles import bundle, unpack

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long,
    pytest.mark.soak,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        shutil.which("mmdebstrap") is None, reason="mmdebstrap is not installed (Debian: apt install mmdebstrap)"
    ),
]
ARCHIVE_BYTES_MAX = 250 * 1024**2


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


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def test_the_image_is_small(archive: Path) -> None:
    assert archive.stat().st_size <= ARCHIVE_BYTES_MAX


@pytest.fixture
def address(archive: Path, container: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a running container of the image; that it stops in order is part of the fixture."""
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
        yield url
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOPPED_WITHIN_S) == 0, output.read_text()
    finally:
        subprocess.run(
            [runc, "--root", str(tmp_path / "runc"), "delete", "--force", name], capture_output=True, check=False
        )


def test_the_container_runs_unprivileged_with_a_read_only_root(address: str, container: Path) -> None:
    assert answers(f"{address}/login")
    root = container / "rootfs"
    assert not (root / "bin/sh").exists()
    owned = {path.lstat().st_uid for path in root.rglob("*")}
    assert owned == {0, image.USER}
    assert [path for path in root.rglob("*") if path.lstat().st_uid == image.USER] == [root / image.DATA.lstrip("/")]
    assert not any(
        path.lstat().st_mode & 0o6000 for path in root.rglob("*") if path.is_file() and not path.is_symlink()
    )

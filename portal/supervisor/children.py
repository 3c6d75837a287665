"""Processes of a domain: the children, their command lines and stop timeouts."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from eventing.core.config import Config
from portal.supervisor.child import ChildSpec
from portal.supervisor.output import is_redis_warning, is_warning

# A domain stops within 10 s: all but Redis side by side, then Redis; together 7.2 s, so that a machine which is busy has
# something left to kill those that are late and to end the supervisor. An idle worker takes 2.5 s (Celery's pool looks
# around once a second), a gateway 0.2 s, or portal.gateway.GRACEFUL_STOP_S when clients do not go.
BEAT_STOP_S = 6.0
WORKER_STOP_S = 6.0
GATEWAY_STOP_S = 6.0
REDIS_STOP_S = 1.2


def redis(command: list[str], probe: Callable[[], bool]) -> ChildSpec:
    """Return the embedded Redis, which receives SIGTERM when the supervisor dies, to close its file cleanly."""
    return ChildSpec(
        name="redis",
        command=command,
        working_folder=Path("/"),
        environment=dict(os.environ),
        stop_within_s=REDIS_STOP_S,
        death_signal=signal.SIGTERM,
        probe=probe,
        is_warning=is_redis_warning,
    )


def gateways(config: Config, listen_fd: int) -> list[ChildSpec]:
    """The gateway processes; all accept from the one listening socket `listen_fd`."""
    names = ["gateway"] if config.gateways == 1 else [f"gateway-{number}" for number in range(1, config.gateways + 1)]
    command = ["-m", "portal.gateway", "--fd", str(listen_fd)]
    return [_python(name, command, config, GATEWAY_STOP_S, pass_fds=(listen_fd,)) for name in names]


def workers(config: Config) -> list[ChildSpec]:
    """The processes behind the gateways: worker, forwarder, deliverer and beat; without the deliverer where nothing is pushed,
    without worker and beat where there are no workers."""
    delivering = [deliverer(config)] if config.push else []
    if not config.workers:
        return [forwarder(config), *delivering]
    return [worker(config), forwarder(config), *delivering, beat(config)]


def worker(config: Config) -> ChildSpec:
    """The Celery worker with its pool of config.workers processes."""
    return _python("worker", ["-m", "portal.supervisor.celery_child", "worker"], config, WORKER_STOP_S)


def forwarder(config: Config) -> ChildSpec:
    """The Celery worker that forwards to peers, with config.forwarders threads."""
    return _python("forwarder", ["-m", "portal.supervisor.celery_child", "forwarder"], config, WORKER_STOP_S)


def deliverer(config: Config) -> ChildSpec:
    """The process that delivers to endpoints of subscribers."""
    return _python("deliverer", ["-m", "portal.deliverer"], config, WORKER_STOP_S)


def beat(config: Config) -> ChildSpec:
    """Celery's clock, which sends the periodic tasks."""
    return _python("beat", ["-m", "portal.supervisor.celery_child", "beat"], config, BEAT_STOP_S)


def _python(
    name: str, arguments: list[str], config: Config, stop_within_s: float, pass_fds: tuple[int, ...] = ()
) -> ChildSpec:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "HERALD_DATA_DIR": str(config.data_path),  # absolute: children work in the source tree
        "PYTHONUNBUFFERED": "1",
        "HERALD_PROCESS": name,  # what log lines and metrics call it
    }
    return ChildSpec(
        name=name,
        command=[sys.executable, *arguments],
        working_folder=settings.BASE_DIR,
        environment=environment,
        stop_within_s=stop_within_s,
        pass_fds=pass_fds,
        is_warning=is_warning,
    )

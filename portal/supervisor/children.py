"""Processes of a domain: the children, their command lines and stop timeouts."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from eventing.core.config import Config
from portal.supervisor.child import ChildSpec
from portal.supervisor.output import is_redis_warning, is_warning

# A domain stops within 10 s: all but Redis side by side, then Redis; together 7.2 s, so that a machine which is busy has
# something left to kill those that are late and to end the supervisor. An idle worker takes 2.5 s (Celery's pool looks
# around once a second), a gateway 0.2 s, or portal.gateway.GRACEFUL_STOP_S when clients do not go. A gateway that closes its sessions
# over time has HERALD_DRAIN_LEAD_S and HERALD_DRAIN_S, and DRAIN_MARGIN_S, before that.
WORKER_STOP_S = 6.0
GATEWAY_STOP_S = 6.0
REDIS_STOP_S = 1.2
DRAIN_MARGIN_S = 4.0
"""For the first requests of connections that were just accepted, and for a machine that is busy."""
DEAD_AFTER_S = 30.0  # bound: seconds without a proof of work from a child; the child is killed and started again
SMALL_ARENAS_MAX = "2"


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
    return [replace(_gateway(name, command, config, listen_fd), is_exchanged_beside=True) for name in names]


def small_domain(config: Config, listen_fd: int) -> ChildSpec:
    """The one process of a small domain. Its threads share two arenas of the C library's allocator instead of one each. There is one at
    a time: its forwarder expects to be the only one, and memory is scarce."""
    command = ["-m", "portal.small_domain", "--fd", str(listen_fd)]
    spec = _gateway("domain", command, config, listen_fd)
    return replace(spec, environment={**spec.environment, "MALLOC_ARENA_MAX": SMALL_ARENAS_MAX})


def _gateway(name: str, command: list[str], config: Config, listen_fd: int) -> ChildSpec:
    spec = _python(name, command, config, GATEWAY_STOP_S, pass_fds=(listen_fd,))
    drain_s = config.drain_lead_s + config.drain_s + DRAIN_MARGIN_S
    return replace(spec, stop_signal=signal.SIGINT, drain_s=drain_s)


def workers(config: Config) -> list[ChildSpec]:
    """The processes behind the gateways: worker, forwarder and deliverer; without the deliverer where nothing is pushed, without the worker
    where there are no workers."""
    delivering = [deliverer(config)] if config.push else []
    if not config.workers:
        return [forwarder(config), *delivering]
    return [worker(config), forwarder(config), *delivering]


def worker(config: Config) -> ChildSpec:
    """The Celery worker with its pool of config.workers processes."""
    return _behind("worker", ["-m", "portal.supervisor.celery_child", "worker"], config)


def forwarder(config: Config) -> ChildSpec:
    """The Celery worker that forwards to peers, with config.forwarders threads."""
    return _behind("forwarder", ["-m", "portal.supervisor.celery_child", "forwarder"], config)


def deliverer(config: Config) -> ChildSpec:
    """The process that delivers to endpoints of subscribers."""
    return _behind("deliverer", ["-m", "portal.deliverer"], config)


def _behind(name: str, arguments: list[str], config: Config) -> ChildSpec:
    """A process behind the gateways, which proves that its work continues."""
    return replace(_python(name, arguments, config, WORKER_STOP_S), dead_after_s=DEAD_AFTER_S)


def _python(
    name: str, arguments: list[str], config: Config, stop_within_s: float, pass_fds: tuple[int, ...] = ()
) -> ChildSpec:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "HERALD_DATA_DIR": str(config.data_path),  # absolute: children work in the source tree
        "PYTHONUNBUFFERED": "1",
        "HERALD_PROCESS": name,  # what log lines and metrics call it
        "HERALD_PROFILE": "small" if config.is_small else "standard",  # chosen once, for all processes
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

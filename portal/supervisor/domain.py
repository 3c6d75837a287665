"""A whole domain from start to stop: the steps of `manage.py run` in order (life cycle: see the package)."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from django.db import connections

from eventing.core.config import Config, unknown_setting, unknown_settings
from eventing.telemetry import folder as metrics_folder
from portal.bundle import HOW_TO_BUILD, NOT_BUILT, manifest
from portal.security import refusal, warnings
from portal.supervisor import children, data_folder, redis_server
from portal.supervisor.child import Child, ChildSpec
from portal.supervisor.errors import StartError
from portal.supervisor.java import java_found
from portal.supervisor.listening import listen
from portal.supervisor.preparation import login_url, prepare_database, prepare_identity
from portal.supervisor.process_group import ProcessGroup, StopAsked
from portal.supervisor.reporting import reporter
from portal.supervisor.terminal import Terminal

START_WITHIN_S = 60.0
"""A gateway, worker or beat that is not ready by then counts as failed. Usual: 2 to 4 s."""

LOADING_NOTE_EVERY_S = 5.0
REPORTER_STOP_S = 1.5
"""After all but Redis has stopped, a report's process that was asked to end gets this long before it is killed."""

_LOG_PREFIX = re.compile(r"^(\d+:[XCSM] .{10,40} [#*.-] |[\d-]+ [\d:,]+ (?=\w+ ))")


class Supervisor:
    """Runs one domain in the foreground."""

    def __init__(self, config: Config, terminal: Terminal) -> None:
        self._config, self._terminal = config, terminal
        self._path = config.data_path
        self._state = "starting"
        self._login: str | None = None
        self._group = ProcessGroup(self._path / "logs", terminal, self._write_table)

    def run(self) -> int:
        """Start, watch, stop. Returns the exit code: 0 when stopped by the operator, 1 when it could not start."""
        os.umask(0o077)  # what the domain writes is its own: keys, sessions, events
        try:
            data_folder.prepare(self._path)
            self._refuse_weakness()
            with data_folder.locked(self._path):
                for leftover in data_folder.stop_leftovers(self._path):
                    self._terminal.note("before", f"stopped a left-over {leftover} of an earlier run")
                with listen(self._config) as listener, self._group.signals_caught():
                    self._run(listener)
        except StartError as error:
            errors = type(self._terminal)(sys.stderr)
            errors.line(errors.paint("Herald did not start. ", "failed") + str(error))
            return 1
        return 0

    def _refuse_weakness(self) -> None:
        """Refuse the start of an exposed domain with guessable or readable secrets. Raises StartError."""
        reason = refusal(self._config)
        if reason is not None:
            raise StartError(reason)
        for weakness in warnings(self._config):
            self._terminal.note("security", f"{weakness.says} {weakness.do}")

    def _run(self, listener: socket.socket) -> None:
        try:
            self._start(listener)
            self._state = "running"
            self._write_table()
            self._announce()
            self._group.watch()
        except StopAsked:
            pass
        finally:
            self._stop(listener)

    def _start(self, listener: socket.socket) -> None:
        begun = time.monotonic()
        metrics_folder.clear(self._path)
        self._terminal.line(self._terminal.paint(f"Herald, domain {self._config.domain}", "bold"))
        self._warn_of_settings()
        if not manifest():
            self._terminal.note("console", f"{NOT_BUILT} {HOW_TO_BUILD}.")
        self._start_redis()
        self._terminal.state("database", "ready", prepare_database())
        prepare_identity()
        self._login = login_url(self._config)
        connections.close_all()
        others = [*children.gateways(self._config, listener.fileno()), *children.workers(self._config)]
        started = [self._add(spec) for spec in others]
        for child in started:
            self._wait_ready(child, START_WITHIN_S)
            about = f"{self._config.base_url}" if child.spec.name.startswith("gateway") else ""
            self._terminal.state(child.spec.name, "ready", about)
        self._terminal.state("reports", *self._reports())
        self._terminal.line(self._terminal.paint(f"  up in {time.monotonic() - begun:.1f} s", "dim"))

    def _reports(self) -> tuple[str, str]:
        """Return whether reports are made here, and the reason if not."""
        if self._config.reports == "off":
            return "off", "HERALD_REPORTS=off"
        java = java_found()
        if java.good and find_spec("pyspark") is None:
            return "off", "PySpark is not installed (requirements/reports.txt); everything else runs"
        return "ready" if java.good else "off", java.sentence()

    def _start_redis(self) -> None:
        config = self._config
        if config.redis_url:
            version = redis_server.external_version(config)
            self._terminal.state("redis", "ready", f"{version}, at HERALD_REDIS_URL")
            return
        server = redis_server.find_server()
        redis_server.prepare_socket(config)
        leftover = redis_server.stop_leftover(config)
        if leftover is not None:
            self._terminal.note("redis", f"stopped a left-over server (pid {leftover}) of an earlier run")
        client = redis_server.connect(config)
        child = self._add(children.redis(redis_server.command(server, config), lambda: redis_server.is_up(client)))
        waited_s = 0.0
        while not self._wait_ready(child, LOADING_NOTE_EVERY_S, required=False):
            waited_s += LOADING_NOTE_EVERY_S
            self._terminal.note("redis", f"is loading its data ({waited_s:.0f} s)")
        client.close()
        self._terminal.state(
            "redis", "ready", f"{server.version_text}, embedded, every write fsynced before it is acknowledged"
        )

    def _add(self, spec: ChildSpec) -> Child:
        try:
            return self._group.add(spec)
        except OSError as error:
            raise StartError(f"The program for {spec.name} ({spec.command[0]}) cannot be started: {error}.") from None

    def _wait_ready(self, child: Child, within_s: float, *, required: bool = True) -> bool:
        if self._group.wait_until(lambda: child.ready, within_s):
            return True
        if self._group.failed:
            failed, how = self._group.failed[0]
            reason = failed.last_warning if failed.spec.name == "redis" else ""  # a traceback's reason is its last line
            said = _LOG_PREFIX.sub("", reason or failed.last_line)
            raise StartError(
                f"{failed.spec.name} ended at once ({how}): {said} (full output: {_short(failed.log.path)})"
            )
        if required:
            raise StartError(
                f"{child.spec.name} was not ready within {within_s:.0f} s; output: {_short(child.log.path)}"
            )
        return False

    def _announce(self) -> None:
        line, paint = self._terminal.line, self._terminal.paint
        line()
        line(f"  Portal    {paint(self._config.base_url + '/', 'bold')}")
        if self._login and self._terminal.tells_secrets:
            line(f"  Log in    {paint(self._login, 'bold')}")
            line("            (works once, within one hour; .venv/bin/python manage.py login_link creates another)")
        line()
        line("  Next, in another terminal:")
        for command in next_commands(self._config):
            line(f"    {command}")
        line()
        line(
            f"  Data is in {_short(self._path)}/, logs in {_short(self._path / 'logs')}/. Ctrl-C stops everything and loses nothing."
        )
        self._warn_of_settings()

    def _warn_of_settings(self) -> None:
        """Print the HERALD_ variables that are no settings: before the start, in case it fails, and as the last
        lines."""
        for name in unknown_settings(os.environ):
            said = f"{unknown_setting(name)} All settings: manage.py doctor, docs/settings.md."
            self._terminal.note("settings", self._terminal.paint(said, "warning"))

    def _stop(self, listener: socket.socket) -> None:
        self._state = "stopping"
        self._write_table()
        listener.close()  # else connections would queue unanswered
        if self._group.stop_asked:
            self._terminal.line(
                f"Stopping {', '.join(child.spec.name for child in reversed(self._group.children))} ..."
            )
        reporter.ask_to_stop(self._path)
        for together in _stopped_together(self._group.children):
            if any(child.spec.name == "redis" for child in together):
                reporter.stop(self._path, REPORTER_STOP_S)  # it releases its run in Redis
            self._group.stop(together)
        reporter.stop(self._path, REPORTER_STOP_S)
        self._group.close()
        data_folder.remove_table(self._path)
        if self._group.stop_asked:
            self._terminal.line("Stopped. Everything acknowledged is on disk.")

    def _write_table(self) -> None:
        pids = {child.spec.name: child.pid for child in self._group.children if child.pid is not None}
        data_folder.write_table(self._path, self._state, self._config.base_url, pids)


def _stopped_together(children: Sequence[Child]) -> Iterator[list[Child]]:
    """Return the order of stopping: beat first, then tasks and sessions together; Redis stays until the last has ended.

    A task that beat still sends meanwhile waits in Redis for the next start.
    """
    for is_redis in (False, True):
        yield [child for child in reversed(children) if (child.spec.name == "redis") == is_redis]


def next_commands(config: Config) -> list[str]:
    """Return the first commands to try, in one terminal; a test runs them unchanged."""
    stated = {"HERALD_DOMAIN": config.domain, "HERALD_PORT": str(config.port), "HERALD_DATA_DIR": str(config.data_path)}
    same_domain = [f"{name}={shlex.quote(value)}" for name, value in stated.items() if os.environ.get(name)]
    name = f"/{config.domain}/hello/"
    return [
        *([f"export {' '.join(same_domain)}"] if same_domain else []),
        "export HERALD_TOKEN=$(.venv/bin/herald token create)",
        f".venv/bin/herald rp create {name}",
        f".venv/bin/herald pub {name} 'Hello, world'",
        f".venv/bin/herald sub {name} --from earliest",
    ]


def _short(path: Path) -> str:
    """Return the path relative to the working folder where possible."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)

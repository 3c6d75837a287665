"""A whole domain from start to stop: the steps of `manage.py run` in order (life cycle: see the package)."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from eventing.core.config import Config, unknown_setting, unknown_settings
from eventing.telemetry import folder as metrics_folder
from portal.bundle import HOW_TO_BUILD, NOT_BUILT, manifest
from portal.installation import client_command, server_command
from portal.security import refusal, warnings
from portal.supervisor import children, data_folder, redis_server
from portal.supervisor.child import Child, ChildSpec
from portal.supervisor.errors import StartError
from portal.supervisor.exchange import Exchange
from portal.supervisor.java import java_found
from portal.supervisor.listening import listen
from portal.supervisor.process_group import ProcessGroup, StopAsked
from portal.supervisor.reporting import reporter
from portal.supervisor.service_manager import ServiceManager
from portal.supervisor.terminal import Terminal

START_WITHIN_S = 60.0
"""A gateway or worker that is not ready by then counts as failed. Usual: 2 to 4 s."""

LOADING_NOTE_EVERY_S = 5.0
STOP_S = 10.0
"""A domain stops within this time (children.py), once its sessions are closed."""
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
        self._manager = ServiceManager()
        # With an embedded Redis the domain ends with this supervisor: its readers would wait for nothing.
        self._group = ProcessGroup(self._path / "logs", terminal, self._write_table, drains=bool(config.redis_url))

    def run(self) -> int:
        """Start, watch, stop. Returns the exit code: 0 when stopped by the operator, 1 when it could not start."""
        os.umask(0o077)  # what the domain writes is its own: keys, sessions, events
        try:
            data_folder.prepare(self._path)
            self._refuse_weakness()
            with data_folder.locked(self._path):
                data_folder.require_whole(self._path)
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
            self._manager.notify("READY=1")
            while not self._group.stop_asked:
                self._group.watch()
                if self._group.exchange_asked:
                    self._exchange()
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
        if self._config.broker_url:
            self._terminal.state("broker", *redis_server.broker_state(self._config))
        if self._config.is_one_process:
            self._start_small(listener)
        else:
            self._start_processes(listener)
        self._terminal.state("reports", *self._reports())
        self._terminal.line(self._terminal.paint(f"  up in {time.monotonic() - begun:.1f} s", "dim"))

    def _start_small(self, listener: socket.socket) -> None:
        """Start the one process of a small domain. It prepares the database itself, so that the supervisor does not load what that needs."""
        child = self._add(children.small_domain(self._config, listener.fileno()))
        self._wait_ready(child, START_WITHIN_S)
        said = json.loads(child.ready_text)
        self._login = said["login"]
        self._terminal.state("database", "ready", said["database"])
        self._terminal.state(child.spec.name, "ready", self._config.base_url)

    def _start_processes(self, listener: socket.socket) -> None:
        from eventing.sql.threads import connections_end
        from portal.supervisor.preparation import login_url, prepare_database, prepare_identity

        self._terminal.state("database", "ready", prepare_database(self._config.migrate))
        prepare_identity()
        self._login = login_url(self._config)
        connections_end()
        others = [*children.gateways(self._config, listener.fileno()), *children.workers(self._config)]
        started = [self._add(spec) for spec in others]
        for child in started:
            self._wait_ready(child, START_WITHIN_S)
            about = f"{self._config.base_url}" if child.spec.name.startswith("gateway") else ""
            self._terminal.state(child.spec.name, "ready", about)

    def _exchange(self) -> None:
        """Exchange the processes for new ones (SIGHUP). Raises StopAsked."""
        self._group.exchange_asked = False
        self._terminal.line("Exchanging the processes, gateways first ...")
        self._manager.notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        done = Exchange(self._group, self._terminal, START_WITHIN_S).run()
        self._terminal.line(
            "Exchanged." if done else "The exchange has ended early; what was not exchanged runs as before."
        )
        self._manager.notify("READY=1")

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
            redis_server.require_whole()
            self._terminal.state("redis", "ready", f"{version}, at HERALD_REDIS_URL")
            return
        server = redis_server.find_server()
        redis_server.prepare_socket(config)
        leftover = redis_server.stop_leftover(config)
        if leftover is not None:
            self._terminal.note("redis", f"stopped a left-over server (pid {leftover}) of an earlier run")
        child = self._add(children.redis(redis_server.command(server, config), lambda: redis_server.has_loaded(config)))
        waited_s = 0.0
        while not self._wait_ready(child, LOADING_NOTE_EVERY_S, required=False):
            waited_s += LOADING_NOTE_EVERY_S
            self._terminal.note("redis", f"is loading its data ({waited_s:.0f} s)")
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
            line(f"            (works once, within one hour; {server_command()} login_link creates another)")
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
            said = f"{unknown_setting(name)} All settings: {server_command()} doctor, docs/settings.md."
            self._terminal.note("settings", self._terminal.paint(said, "warning"))

    def _stop(self, listener: socket.socket) -> None:
        self._state = "stopping"
        self._write_table()
        self._manager.notify(self._stopping_notice())
        listener.close()  # else connections would queue unanswered
        if self._group.stop_asked:
            self._terminal.line(
                f"Stopping {', '.join(child.spec.name for child in reversed(self._group.children))} ..."
            )
        reporter.ask_to_stop(self._path)
        if self._group.may_drain:
            gateways = [child for child in self._group.everyone if child.spec.drain_s]
            self._terminal.line("Sessions are closed over time; another signal closes them at once.")
            self._group.drain(gateways)
        for together in _stopped_together(self._group.everyone):
            if any(child.spec.name == "redis" for child in together):
                reporter.stop(self._path, REPORTER_STOP_S)  # it releases its run in Redis
            self._group.stop(together)
        reporter.stop(self._path, REPORTER_STOP_S)
        self._group.close()
        data_folder.remove_table(self._path)
        if self._group.stop_asked:
            self._terminal.line("Stopped. Everything acknowledged is on disk.")

    def _stopping_notice(self) -> str:
        """Return the notice to the service manager: the stop, and how long it may take where that is a setting of Herald."""
        if not self._group.may_drain:
            return "STOPPING=1"
        drain_s = max((child.spec.drain_s for child in self._group.everyone), default=0.0)
        return f"STOPPING=1\nEXTEND_TIMEOUT_USEC={round((drain_s + STOP_S) * 1e6)}"

    def _write_table(self) -> None:
        pids = {child.spec.name: child.pid for child in self._group.children if child.pid is not None}
        pids |= {f"{child.spec.name}, exchanged": child.pid for child in self._group.beside if child.pid is not None}
        data_folder.write_table(self._path, self._state, self._config.base_url, pids)


def _stopped_together(children: Sequence[Child]) -> Iterator[list[Child]]:
    """Return the order of stopping: tasks and sessions together; Redis stays until the last has ended."""
    for is_redis in (False, True):
        yield [child for child in reversed(children) if (child.spec.name == "redis") == is_redis]


def next_commands(config: Config) -> list[str]:
    """Return the first commands to try, in one terminal; a test runs them unchanged."""
    stated = {"HERALD_DOMAIN": config.domain, "HERALD_PORT": str(config.port), "HERALD_DATA_DIR": str(config.data_path)}
    same_domain = [f"{name}={shlex.quote(value)}" for name, value in stated.items() if os.environ.get(name)]
    name, herald = f"/{config.domain}/hello/", client_command()
    return [
        *([f"export {' '.join(same_domain)}"] if same_domain else []),
        f"export HERALD_TOKEN=$({herald} token create)",
        f"{herald} rp create {name}",
        f"{herald} pub {name} 'Hello, world'",
        f"{herald} sub {name} --from earliest",
    ]


def _short(path: Path) -> str:
    """Return the path relative to the working folder where possible."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)

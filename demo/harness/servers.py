"""A whole domain as processes, as with `make run`, in a folder and on a port of its own.

    with Domain(tmp_path / "var") as domain:
        httpx.get(domain.url + "/livez")
        domain.kill("redis")          # SIGKILL; the supervisor starts it again
        domain.restart()              # Ctrl-C, then a second start on the same data

Every wait has a bound, and of a domain that does not start the output is shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import psutil

from eventing.access.rules import tokens
from portal.supervisor.parent_watchdog import death_signal

ROOT = Path(__file__).resolve().parents[2]
READY_WITHIN_S = 90.0
STOPPED_WITHIN_S = 30.0
LOG_LINES_SHOWN = 40
LOOK_S, LOOK_S_MAX = 0.02, 0.1
_PORT_TRIES = 5
_PLAIN: Mapping[str, Any] = {"trust_env": False, "verify": False}
"""Plain HTTP on loopback: to read the certificates of the web takes longer than a request, and a start is waited for by many."""

T = TypeVar("T")


def wait_for(condition: Callable[[], T], within_s: float = 60.0, *, every_s: float | None = None, about: str = "") -> T:
    """Return the result of `condition` as soon as it is true. Fails the test after `within_s`.

    Args:
        every_s: time between two looks; None: from LOOK_S to LOOK_S_MAX, the longer it takes.
    """
    began = time.monotonic()
    while not (value := condition()):
        time.sleep(_look_again_s(began, within_s, every_s, about or condition))
    return value


def _look_again_s(began: float, within_s: float, every_s: float | None, about: object) -> float:
    waited_s = time.monotonic() - began
    if waited_s > within_s:
        raise AssertionError(f"not within {within_s:g} s: {about}")
    return max(LOOK_S, min(LOOK_S_MAX, waited_s / 20)) if every_s is None else every_s


async def eventually(
    condition: Callable[[], Awaitable[T]], within_s: float = 60.0, *, every_s: float | None = None, about: str = ""
) -> T:
    """Wait as `wait_for` does, for conditions that are awaited."""
    began = time.monotonic()
    while True:
        value = await condition()
        if value:
            return value
        await asyncio.sleep(_look_again_s(began, within_s, every_s, about or condition))


def as_at_a_terminal(prepare: Callable[[], None]) -> Callable[[], None]:
    """Return a `preexec_fn` that does what `prepare` does, and takes hangups and Ctrl-C, which the parent of this process may ignore:
    nohup, a script that put it into the background.
    """

    def begin() -> None:
        prepare()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return begin


_PORTS = range(12_000, 32_000)
"""Ports below those that a system gives to connections and to servers that leave the choice to it."""
_reserved: list[socket.socket] = []


def free_port() -> int:
    """Return a free TCP port of loopback, which this function returns to no other process of this machine while this one runs:
    a server may be stopped, and started at it again.

    A process that does not ask here may still take it: Domain then tries another.
    """
    while True:
        port = random.choice(_PORTS)
        if _reserve(port) and _is_free(port):
            return port


def _reserve(port: int) -> bool:
    """Keep a port from others who ask, by an abstract unix socket that ends with this process; False if another one has it."""
    if sys.platform != "linux":
        return True
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0herald-port-{port}")
    except OSError:
        mark.close()
        return False
    _reserved.append(mark)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def manage(
    *arguments: str, env: Mapping[str, str], timeout_s: float = 180.0, root: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run `manage.py ARGUMENTS` of the source tree at `root` to its end."""
    return subprocess.run(
        [sys.executable, root / "manage.py", *arguments],
        env=dict(env),
        cwd=root,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def program(folder: Path, name: str, script: str) -> Path:
    """Make an executable shell script of this name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


class Domain:
    """One domain, that is to be ready within `ready_within_s` of its start. `settings` are HERALD_* by their field names: Domain(folder, gateways=2, tick_ms=0).

    `seed` is a migrated database without keys (Prepared.migrated): the first start then has nothing to migrate, which
    saves a second of it. `root` is the source tree that is run.
    """

    ready_within_s = READY_WITHIN_S

    def __init__(
        self,
        data_dir: Path,
        *,
        seed: Path | None = None,
        extra_env: Mapping[str, str] | None = None,
        root: Path = ROOT,
        **settings: Any,
    ) -> None:
        self.data_dir = data_dir
        self._root = root
        self._seed = seed
        self.name = str(settings.get("domain", "localhost"))
        # Few tests need a deliverer, which takes a second of each start; and the machine is not what is tested.
        stated = {"push": 0, "profile": "standard", **settings}
        self._settings = {f"HERALD_{name.upper()}": str(value) for name, value in stated.items()}
        self._extra_env = dict(extra_env or {})
        self.port = int(settings.get("port", 0)) or free_port()
        self._port_is_given = "port" in settings
        self._process: subprocess.Popen[bytes] | None = None
        self.output_path = data_dir.parent / f"{data_dir.name}.out"

    # -- where it is ------------------------------------------------------------------------------------------------

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of the domain's processes and of commands that belong to it."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("HERALD_") and name != "DJANGO_SETTINGS_MODULE"
        }
        own = {"HERALD_DATA_DIR": str(self.data_dir), "HERALD_PORT": str(self.port)}
        own["PYTHONPATH"] = str(self._root / "client")
        return {**inherited, **own, **self._settings, **self._extra_env}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    @property
    def output(self) -> str:
        """Return everything that `manage.py run` has printed, over all its starts."""
        return self.output_path.read_text(errors="replace") if self.output_path.exists() else ""

    @property
    def table(self) -> dict[str, Any]:
        """Return the supervisor's processes.json; empty when nothing runs."""
        try:
            table: dict[str, Any] = json.loads((self.data_dir / "processes.json").read_text())
        except (OSError, ValueError):
            return {}
        return table

    @property
    def pids(self) -> dict[str, int]:
        """Return the pid by name: redis, gateway (gateway-1 ... with several), worker, forwarder."""
        return {name: identity["pid"] for name, identity in self.table.get("processes", {}).items()}

    @property
    def supervisor(self) -> subprocess.Popen[bytes]:
        """Return the process of `manage.py run`."""
        assert self._process is not None, "the domain was not started"
        return self._process

    # -- start and stop ---------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it and wait until /readyz answers that everything is up."""
        for attempt in range(1, _PORT_TRIES + 1):
            self.spawn()
            if self._wait_ready():
                return self
            if "is taken by" not in self.output or self._port_is_given or attempt == _PORT_TRIES:
                raise AssertionError(f"the domain did not start:\n{self.logs()}")
            self.port = free_port()
        raise AssertionError("unreachable")

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start `manage.py run` without waiting. It dies with the thread that called this."""
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        self._plant()
        with self.output_path.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, self._root / "manage.py", "run"],
                env=self.env,
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the tests' terminal ends them in order, not under them
                preexec_fn=as_at_a_terminal(death_signal(signal.SIGTERM)),  # a killed test run leaves nothing behind
            )
        return self._process

    def wait_up(self) -> None:
        """Wait until it is ready after `spawn`; if another process took its port, it is started anew on another."""
        if not self._wait_ready():
            self.kill_everything()
            assert "is taken by" in self.output, self.logs()
            self.port = free_port()
            self.start()

    @property
    def is_running(self) -> bool:
        """Return whether `manage.py run` was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=10.0, **_PLAIN).status_code == 200
        except httpx.HTTPError:
            return False

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send Ctrl-C; return the exit code. Fails when a process is left after STOPPED_WITHIN_S."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            return self._process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill_everything()
            raise AssertionError(f"the domain did not stop within {STOPPED_WITHIN_S:g} s:\n{self.logs()}") from None
        finally:
            self._process = None

    def restart(self) -> Self:
        """Stop it in order, and start it on the same data and port."""
        self.stop()
        return self.start()

    # -- faults -----------------------------------------------------------------------------------------------------

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to one process of the domain; return its pid."""
        pid = self.pids[name]
        os.kill(pid, number)
        return pid

    @contextlib.contextmanager
    def away(self, name: str) -> Iterator[int]:
        """Kill one process, and have the supervisor start it again only when the block has ended; yields its pid."""
        self.supervisor.send_signal(signal.SIGSTOP)
        try:
            yield self.kill(name)
        finally:
            self.supervisor.send_signal(signal.SIGCONT)

    def wait_replaced(self, name: str, pid: int, within_s: float = 60.0) -> int:
        """Wait until the supervisor has started `name` again; returns the new pid."""
        return wait_for(
            lambda: new if (new := self.pids.get(name, pid)) != pid else 0, within_s, about=f"{name} runs again"
        )

    def kill_everything(self) -> None:
        """Send SIGKILL to the supervisor and everything it started."""
        processes = [psutil.Process(pid) for pid in self.pids.values() if psutil.pid_exists(pid)]
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(psutil.Error):
                processes += psutil.Process(self._process.pid).children(recursive=True)
            self._process.kill()
            self._process.wait()
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()

    # -- use --------------------------------------------------------------------------------------------------------

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `manage.py ARGUMENTS` in this domain's environment."""
        return manage(*arguments, env=self.env, root=self._root)

    @property
    def signing_key(self) -> dict[str, Any]:
        """Return the present private signing key, as its operator could read it."""
        # SQLite's time has whole seconds: a key of this very second would be of the future.
        with closing(sqlite3.connect(self.data_dir / "herald.sqlite3", timeout=60)) as database:
            row = database.execute(
                "SELECT private_jwk, kid FROM eventing_domainkey WHERE not_before <= datetime('now', '+1 second') "
                "AND (not_after IS NULL OR not_after > datetime('now')) ORDER BY not_before DESC"
            ).fetchone()
        assert row is not None, "the domain has no key yet"
        return {**json.loads(row[0]), "kid": row[1]}

    def token(self, *, admin: bool = False, subject: str = "tester", lease_s: int = 3600, **claims: Any) -> str:
        """Return a token of this domain, signed here: `manage.py token_create` takes a second."""
        now = int(time.time())
        stated = {"iss": self.name, "aud": self.name, "sub": subject, "iat": now, "exp": now + lease_s, **claims}
        return tokens.sign({**stated, **({"admin": True} if admin else {})}, self.signing_key)

    def http(self, **token: Any) -> httpx.Client:
        """Return a client with a token (arguments as of `token`); the caller closes it."""
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token(**token)}"}, timeout=60.0, **_PLAIN
        )

    def logs(self) -> str:
        """Return its output and the ends of its log files, for a failure's report."""
        parts = [f"--- {self.output_path}\n{self.output}"]
        for path in sorted((self.data_dir / "logs").glob("*.log")) if (self.data_dir / "logs").is_dir() else []:
            lines = path.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
            parts.append(f"--- {path.name}\n" + "\n".join(lines))
        return "\n".join(parts)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self.kill_everything()

    def _plant(self) -> None:
        if self._seed is not None and not self.data_dir.exists():
            self.data_dir.mkdir(mode=0o700)
            shutil.copyfile(self._seed, self.data_dir / "herald.sqlite3")
            (self.data_dir / "herald.sqlite3").chmod(0o600)

    def _wait_ready(self) -> bool:
        deadline = time.monotonic() + self.ready_within_s
        while time.monotonic() < deadline:
            if self.supervisor.poll() is not None:
                return False
            if self.table.get("state") == "running" and self.is_ready():
                return True
            time.sleep(0.05)
        self.kill_everything()
        return False

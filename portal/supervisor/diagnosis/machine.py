"""Checks of the machine and the installation: Python, locked packages, disk, files, clock, Java, port."""

from __future__ import annotations

import datetime
import re
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec

import httpx

from eventing.core.config import Config, unknown_setting, unknown_settings
from portal.installation import DISTRIBUTION, from_source, run_command
from portal.machine_size import machine_size
from portal.supervisor.data_folder import is_locked, read_table, unwritable
from portal.supervisor.diagnosis.findings import DiagnosisFinding, fail, ok, warn
from portal.supervisor.java import java_found
from portal.supervisor.listening import port_owner

PYTHON_MIN = (3, 11)

FREE_BYTES_FAIL = 64 * 1024**2
FREE_BYTES_WARN = 1024**3
"""The append-only file is rewritten beside the old one: it needs room for both."""

FILES_BESIDE_SESSIONS = 256
"""Open files of a gateway that are not sessions: Redis, database, logs, listening socket; with room to spare."""

ANSWER_WITHIN_S = 3.0
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)")
_BUILT = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)


def settings_findings(env: Mapping[str, str]) -> list[DiagnosisFinding]:
    """Check for HERALD_ variables that are no settings."""
    unknown = unknown_settings(env)
    return [warn("settings", unknown_setting(name), "Correct its spelling, or remove it.") for name in unknown] or [
        ok("settings", "every HERALD_ variable is a known setting")
    ]


def profile_finding(config: Config, env: Mapping[str, str]) -> DiagnosisFinding:
    """Name the profile in use, and the reason for it."""
    profile = "small" if config.is_small else "standard"
    if env.get("HERALD_PROFILE", "") in ("", "auto"):
        return ok("profile", f"{profile}, chosen for this machine: {machine_size().shown()}")
    return ok("profile", f"{profile}, as HERALD_PROFILE states; this machine has {machine_size().shown()}")


def python_findings(lock: Sequence[str]) -> list[DiagnosisFinding]:
    """Python, and the installed packages against the lines of locked requirements."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < PYTHON_MIN:
        found = [
            fail(
                "python",
                f"Python {version} is too old.",
                "Install Python 3.11 or newer, remove .venv, and run make run.",
            )
        ]
    else:
        found = [ok("python", f"Python {version}")]
    differing = []
    for name, wanted in _pins(lock):
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed = "missing"
        if installed != wanted:
            differing.append(f"{name} {installed} (locked: {wanted})")
    if differing:
        return [
            *found,
            warn(
                "packages",
                f"Not as locked: {', '.join(differing)}.",
                f"Run: {_install('-r requirements/run.txt', DISTRIBUTION)}",
            ),
        ]
    return [*found, ok("packages", f"all as locked in {'requirements/run.txt' if from_source() else DISTRIBUTION}")]


def data_folder_finding(config: Config) -> DiagnosisFinding:
    """Check that the data folder is writable and has free space."""
    path = config.data_path
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
        free = shutil.disk_usage(path).free
    except OSError as error:
        return fail("data folder", unwritable(path, error), "Correct it before the next start.")
    says = f"{path}, {free / 1024**3:.1f} GiB free"
    if free < FREE_BYTES_FAIL:
        return fail("data folder", says, "Free some space: publishing stops when the disk is full.")
    if free < FREE_BYTES_WARN:
        return warn("data folder", says, "Free some space: Redis needs room to rewrite its file.")
    return ok("data folder", says)


def file_limit_finding(config: Config) -> DiagnosisFinding:
    """Check that a gateway may hold HERALD_SESSIONS_MAX sessions."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= config.sessions_max + FILES_BESIDE_SESSIONS:
        return ok("open files", f"up to {hard}, enough for HERALD_SESSIONS_MAX={config.sessions_max}")
    return warn(
        "open files",
        f"A process may open {hard} files, so a gateway holds at most about {max(0, hard - FILES_BESIDE_SESSIONS)} sessions, "
        f"not HERALD_SESSIONS_MAX={config.sessions_max}.",
        f"Raise the hard limit (ulimit -Hn {config.sessions_max + FILES_BESIDE_SESSIONS}), or lower HERALD_SESSIONS_MAX.",
    )


def clock_finding() -> DiagnosisFinding:
    """Leases and tokens live by the clock; a machine without a battery starts in the past."""
    now = datetime.datetime.now(datetime.UTC)
    if now < _BUILT:
        return fail(
            "clock",
            f"The clock shows {now:%Y-%m-%d}, which is in the past.",
            "Set the clock (timedatectl set-ntp true); all tokens would be rejected.",
        )
    return ok("clock", f"{now:%Y-%m-%d %H:%M:%S} UTC")


def reports_finding(config: Config) -> DiagnosisFinding:
    """Check whether reports can be made: the setting, Java and PySpark."""
    if config.reports == "off":
        return ok("reports", "off (HERALD_REPORTS)")
    java = java_found()
    if java.good and find_spec("pyspark") is None:
        return warn(
            "reports",
            f"Java {java.major} is installed ({java.path}) but PySpark is not: no reports are created.",
            f"Install it: {_install('-r requirements/reports.txt', f'{DISTRIBUTION}[reports]')}",
        )
    if java.good:
        return ok("reports", f"available: Java {java.major} ({java.path}), PySpark {metadata.version('pyspark')}")
    return warn(
        "reports",
        f"No reports are created: {java.sentence()}.",
        "Install Java 17 or newer (Debian: openjdk-17-jre-headless) if you want reports.",
    )


def gateway_finding(config: Config) -> DiagnosisFinding:
    """Check that the domain responds on its port, or that the port is free."""
    ours = is_locked(config.data_path)
    host = "127.0.0.1" if config.host == "0.0.0.0" else config.host  # noqa: S104 - compared, not bound
    try:
        answer = httpx.get(
            f"http://{f'[{host}]' if ':' in host else host}:{config.port}/readyz",
            timeout=ANSWER_WITHIN_S,
            trust_env=False,
        )
    except httpx.ConnectError:
        return _nobody_answers(config, ours)
    except (httpx.HTTPError, httpx.InvalidURL):
        if ours:
            return fail(
                "gateway",
                "The domain runs, but its gateway does not answer.",
                "Look at logs/gateway.log in the data folder.",
            )
        return _taken(config)
    if not ours:
        return _taken(config)
    if answer.status_code == 200:
        return ok("gateway", f"this domain responds at {config.base_url} and is ready")
    return fail(
        "gateway",
        f"This domain responds, but is not ready (/readyz: {answer.status_code}).",
        "Look at the other findings and at the logs in the data folder.",
    )


def running_state(config: Config) -> str:
    """Return the state reported by the supervisor: `running`, `starting` or `stopping`; else `stopped`."""
    return str(read_table(config.data_path).get("state", "starting")) if is_locked(config.data_path) else "stopped"


def _nobody_answers(config: Config, ours: bool) -> DiagnosisFinding:
    if ours:
        return fail(
            "gateway",
            f"The domain runs, but nothing listens on port {config.port}.",
            "Was it started with another HERALD_PORT? Set the same here.",
        )
    with socket.socket(socket.AF_INET6 if ":" in config.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.host, config.port))
        except OSError as error:
            return fail(
                "gateway",
                f"Port {config.port} on {config.host} cannot be opened ({error.strerror or error}).",
                "Choose others with HERALD_HOST and HERALD_PORT.",
            )
    return ok("gateway", f"not running; port {config.port} is free ({run_command()} starts it)")


def _taken(config: Config) -> DiagnosisFinding:
    return fail(
        "gateway",
        f"Port {config.port} is taken by {port_owner(config.port)}, and no domain runs on this data folder.",
        "Stop that program, or choose another HERALD_PORT.",
    )


def _pins(lock: Sequence[str]) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in map(_PIN.match, lock) if found]


def _install(in_source: str, installed: str) -> str:
    """Return the command that installs packages: what `pip install` takes in a source tree, and elsewhere."""
    return f".venv/bin/pip install {in_source}" if from_source() else f"{sys.executable} -m pip install '{installed}'"

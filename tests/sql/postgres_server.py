"""A PostgreSQL and a pgbouncer of a test's own, on unix sockets in a folder that is removed afterwards.

PostgreSQL refuses root: where tests run as root, the servers run as the user postgres, whom the Debian package makes.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from demo.harness.servers import wait_for

OWNER = "postgres"
PGBOUNCER_PORT = 6432
STOP_S = 30.0


def programs() -> Path | None:
    """Return the folder of the newest PostgreSQL's programs; None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: int(one.parts[-3]))
    return found[-1].parent if found else None


def _as_owner() -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    return {"user": OWNER, "group": pwd.getpwnam(OWNER).pw_gid, "extra_groups": []}


class PostgresServer:
    """PostgreSQL with the database `postgres`. Use it as a context manager.

    Args:
        options: settings of the server, by name.
    """

    def __init__(self, **options: object) -> None:
        found = programs()
        if found is None:
            pytest.skip("PostgreSQL is not installed")
        self._programs = found
        self._options = {"fsync": "off", "listen_addresses": "", **options}
        self.folder = Path(tempfile.mkdtemp(prefix="herald-postgres-", dir="/tmp"))
        self._process: subprocess.Popen[bytes] | None = None
        if os.getuid() == 0:
            shutil.chown(self.folder, OWNER)
        self._run(
            "initdb",
            "-D",
            str(self.folder / "data"),
            "-A",
            "trust",
            "-U",
            OWNER,
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "-N",
        )

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments], cwd="/", stdout=subprocess.DEVNULL, check=True, **_as_owner()
        )

    @property
    def url(self) -> str:
        """Address in the form of HERALD_DATABASE_URL."""
        return f"postgres://{OWNER}@/postgres?host={quote(str(self.folder))}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """Return a connection of the test's own, in autocommit; the caller closes it."""
        return psycopg.connect(host=str(self.folder), user=OWNER, dbname=database, autocommit=True)

    def start(self) -> None:
        """Start, and wait until it answers."""
        settings = {**self._options, "unix_socket_directories": str(self.folder)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *options],
                cwd="/",
                stdout=log,
                stderr=log,
                **_as_owner(),
            )
        wait_for(self._answers, about="PostgreSQL answers")

    def stop(self) -> None:
        """End all connections and stop."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # "fast": does not wait for clients
            self._process.wait(STOP_S)
            self._process = None

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def clients(self, application: str = "") -> int:
        """Count the connections of clients, without this one."""
        with self.connect() as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                " AND (%s = '' OR application_name = %s)",
                [application, application],
            ).fetchone()
        assert row is not None
        return int(row[0])

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def pgbouncer(server: PostgresServer, user: str = OWNER, **settings: object) -> Iterator[str]:
    """Run a pgbouncer in transaction mode before `server`; yields its address in the form of HERALD_DATABASE_URL.

    Args:
        user: as whom it connects to the server.
    """
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    folder = server.folder / "pgbouncer"
    folder.mkdir()
    stated = {
        "listen_addr": "",
        "listen_port": PGBOUNCER_PORT,
        "unix_socket_dir": folder,
        "auth_type": "any",
        "pool_mode": "transaction",
        "default_pool_size": 10,
        "max_client_conn": 500,
        "logfile": folder / "log",
        **settings,
    }
    lines = [
        "[databases]",
        f"* = host={server.folder} user={user}",
        "[pgbouncer]",
        *(f"{k} = {v}" for k, v in stated.items()),
    ]
    (folder / "pgbouncer.ini").write_text("\n".join(lines) + "\n")
    if os.getuid() == 0:
        for path in (folder, folder / "pgbouncer.ini"):
            shutil.chown(path, OWNER)
    process = subprocess.Popen(
        [program, "-q", str(folder / "pgbouncer.ini")], cwd="/", stderr=subprocess.DEVNULL, **_as_owner()
    )
    try:
        wait_for(lambda: (folder / f".s.PGSQL.{PGBOUNCER_PORT}").exists(), about="pgbouncer listens")
        yield f"postgres://{OWNER}@:{PGBOUNCER_PORT}/postgres?host={quote(str(folder))}"
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_S)

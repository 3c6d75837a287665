"""A start that cannot work is refused with one clear sentence and an exit code, never with a traceback."""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from demo.harness.servers import Domain, manage, program
from eventing.core.config import Config
from portal.supervisor import data_folder
from portal.supervisor.domain import Supervisor
from portal.supervisor.errors import StartError
from portal.supervisor.java import Java, java_found, version_major
from portal.supervisor.terminal import Terminal
from tests.gateway.server import Prepared
from tests.store.redis_process import RedisProcess

pytestmark = pytest.mark.processes


def refused(domain: Domain, **changed: str) -> str:
    """What `manage.py run` says instead of starting: its last line, which must be alone in telling of the failure."""
    result = manage("run", env={**domain.env, **changed})
    said = result.stdout + result.stderr
    assert result.returncode != 0, said
    assert "Traceback" not in said
    sentence = said.strip().splitlines()[-1]
    assert sentence.startswith("Herald did not start. ")
    return sentence


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    """One that is not running."""
    return Domain(tmp_path / "var")


def test_a_misspelled_setting_is_named_before_a_start_that_fails_for_another_reason(domain: Domain) -> None:
    result = manage("run", env={**domain.env, "HERALD_SESIONS_MAX": "5", "HERALD_REDIS_URL": "redis://127.0.0.1:1/0"})
    assert result.returncode == 1
    assert (
        "HERALD_SESIONS_MAX is no setting of Herald and has no effect. Did you mean HERALD_SESSIONS_MAX?"
        in result.stdout
    )


def test_a_misspelled_setting_is_the_last_that_a_start_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said first has scrolled away, or is above what people look for: the address."""
    monkeypatch.setenv("HERALD_SESIONS_MAX", "5")
    said = io.StringIO()
    Supervisor(Config.from_env(os.environ), Terminal(said))._announce()
    assert "Did you mean HERALD_SESSIONS_MAX?" in said.getvalue().strip().splitlines()[-1]


def test_a_data_folder_under_a_file(domain: Domain, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sentence = refused(domain, HERALD_DATA_DIR=str(tmp_path / "file" / "var"))
    assert "HERALD_DATA_DIR" in sentence
    assert "not a directory" in sentence


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; the next test covers it")
def test_a_read_only_data_folder(domain: Domain) -> None:
    domain.data_dir.mkdir()
    domain.data_dir.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "make it writable" in refused(domain)


def test_a_folder_that_denies_writing_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", denied)
    with pytest.raises(
        StartError, match=r"cannot be written \(permission denied\); make it writable, or set HERALD_DATA_DIR"
    ):
        data_folder.prepare(tmp_path / "var")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("HERALD_PORT", "eighty", "HERALD_PORT is 'eighty'; it must be a whole number"),
        ("HERALD_PORT", "70000", "from 1 to 65535"),
        ("HERALD_DOMAIN", "No Such Name", "HERALD_DOMAIN"),
        ("HERALD_SECRET_KEY", "short", "HERALD_SECRET_KEY is shorter than 32"),
        ("HERALD_DEV", "perhaps", "use 1 or 0"),
        ("HERALD_HOST", "192.0.2.1", "no address of this machine"),
        ("HERALD_HOST", "no.such.host.invalid", "no address of this machine"),
        ("HERALD_REDIS_URL", "redis://127.0.0.1:1/0", "does not answer"),
        ("HERALD_REDIS_URL", "nonsense", "HERALD_REDIS_URL cannot be read"),
        ("HERALD_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none", "The database does not answer"),
    ],
)
def test_a_setting_that_cannot_be(domain: Domain, name: str, value: str, expected: str) -> None:
    assert expected in refused(domain, **{name: value})


def test_a_bad_setting_is_one_line_for_every_command(domain: Domain) -> None:
    for command in ("doctor", "migrate"):
        result = manage(command, env={**domain.env, "HERALD_TICK_MS": "often"})
        assert result.returncode != 0
        assert (result.stdout + result.stderr).strip().count("\n") == 0
        assert "HERALD_TICK_MS" in result.stderr


def test_a_redis_that_cannot_start_says_why(domain: Domain, tmp_path: Path) -> None:
    program(
        tmp_path / "bin",
        "redis-server",
        'case "$1" in --version) echo "Redis server v=7.2.4 sha=0";; *) echo "cannot open its file"; exit 3;; esac',
    )
    sentence = refused(domain, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "redis ended at once (exit code 3): cannot open its file" in sentence
    assert "redis.log" in sentence


def test_a_too_old_redis_on_the_path_is_passed_over(domain: Domain, tmp_path: Path) -> None:
    program(tmp_path / "bin", "redis-server", 'echo "Redis server v=5.0.7 sha=0"')
    environment = {**domain.env, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    assert "starts the embedded 6.2" in manage("doctor", env=environment).stdout


def test_data_of_a_newer_redis_is_not_silently_started_empty(domain: Domain, tmp_path: Path) -> None:
    (domain.data_dir / "redis" / "appendonlydir").mkdir(parents=True)
    program(tmp_path / "bin", "redis-server", 'echo "Redis server v=6.2.1 sha=0"')
    assert "was written by Redis 7 or newer" in refused(domain, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def test_a_database_from_which_a_newer_version_took_something(domain: Domain, prepared: Prepared) -> None:
    domain.data_dir.mkdir()
    shutil.copyfile(prepared.migrated, domain.data_dir / "herald.sqlite3")
    with sqlite3.connect(domain.data_dir / "herald.sqlite3", timeout=60) as database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('eventing', '9999_from_the_future_contract', '2030-01-01')"
        )
    sentence = refused(domain)
    assert "was used by a newer Herald (it has eventing.9999_from_the_future_contract)" in sentence


def test_pending_migrations_where_starts_do_not_migrate(domain: Domain) -> None:
    sentence = refused(domain, HERALD_MIGRATE="never")
    assert "HERALD_MIGRATE is never; run manage.py migrate, then start." in sentence


def test_a_broker_that_is_a_node_of_a_cluster(domain: Domain, new_redis: Callable[..., RedisProcess]) -> None:
    node = new_redis(**{"cluster-enabled": "yes", "cluster-config-file": "nodes.conf"})
    assert "is a node of a cluster, which Celery cannot use" in refused(domain, HERALD_BROKER_URL=node.url)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2",
            "Java 11 found, 17 or newer is needed; everything else runs",
        ),
        ("echo 'java version \"1.8.0_392\"' >&2", "Java 8 found, 17 or newer is needed; everything else runs"),
        ("echo broken >&2; exit 1", "no Java 17 or newer found; everything else runs"),
        ("echo 'openjdk version \"17.0.15\" 2025-04-15' >&2", "Java 17"),
    ],
)
def test_the_java_found_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: str
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{program(tmp_path / 'bin', 'java', script).parent}:/usr/bin:/bin")
    assert java_found().sentence() == expected


def test_versions_of_java_as_they_are_printed() -> None:
    assert version_major('openjdk version "21" 2023-09-19') == 21
    assert version_major('openjdk version "24-ea" 2025-03-18') == 24
    assert version_major("Unrecognized option") is None
    assert Java(None, None).sentence().startswith("no Java 17")

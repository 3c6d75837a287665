"""Backups and restores: what was acknowledged before a backup is there after it, and no number is given twice."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings

from demo.harness.servers import ROOT, Domain, wait_for
from eventing.core.config import Config
from eventing.core.container import fresh_container
from eventing.core.events.history import HistoryBounds
from eventing.log import control
from eventing.store import keys
from eventing.store.client import client
from portal.supervisor import data_folder, redis_server
from portal.supervisor.backup import newest, restoring
from portal.supervisor.backup.checking import check
from portal.supervisor.backup.errors import BackupError
from portal.supervisor.backup.making import backup_make
from portal.supervisor.backup.places import RestoreFolders
from portal.supervisor.backup.progress import BackupProgress
from portal.supervisor.backup.restoring import backup_restore
from portal.supervisor.diagnosis.backups import backup_finding
from portal.supervisor.errors import StartError
from tests.gateway.server import Prepared
from tests.log.harness import make_event
from tests.store.redis_process import RedisProcess

pytestmark = pytest.mark.processes
EVENT = {"content-type": "application/cloudevents+json"}


class Place:
    """A data folder, and stores, into which and from which the functions of the commands work in this process."""

    def __init__(self, settings: Any, folder: Path, **stated: Any) -> None:
        self.config = Config(data_dir=str(folder), **stated)
        self.folder = folder
        self._settings = settings

    @contextmanager
    def used(self) -> Iterator[None]:
        """Have the code use this place's settings; what it sets for the process is put back."""
        before, self._settings.HERALD = self._settings.HERALD, self.config
        mask = os.umask(0o077)
        try:
            yield
        finally:
            os.umask(mask)
            self._settings.HERALD = before

    def backup(self, file: Path, *, replace: bool = False) -> dict[str, Any]:
        with self.used():
            return backup_make(
                self.config, str(file), records=True, replace=replace, progress=BackupProgress(quiet=True)
            )

    def restore(self, file: Path, *, replace: bool = False) -> dict[str, Any]:
        with self.used():
            return backup_restore(
                self.config, str(file), records=True, replace=replace, progress=BackupProgress(quiet=True)
            )

    @property
    def env(self) -> dict[str, str]:
        """The environment of commands that belong to it."""
        return Domain(self.folder).env

    @property
    def is_empty(self) -> bool:
        return RestoreFolders(self.config).occupied() == ""


@pytest.fixture
def at(settings: Any, tmp_path: Path) -> Callable[..., Place]:
    """Places below the test's folder, by name: nothing is there yet."""
    return lambda name, **stated: Place(settings, tmp_path / name, **stated)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Path]:
    """The folder of a domain that is stopped, with a log of 100 events, and `backup.tar` beside it."""
    with pytest.MonkeyPatch.context() as patch, fresh_container():
        folder = tmp_path_factory.mktemp("stopped") / "var"
        place = Place(_Settings(patch), folder)
        data_folder.prepare(folder)
        shutil.copyfile(prepared.migrated, folder / "herald.sqlite3")
        with place.used(), redis_server.running_alone(place.config):
            control.append("a" * 26, [make_event(str(n)) for n in range(100)], HistoryBounds(1000, 1 << 20))
        place.backup(folder.parent / "backup.tar")
        yield folder


class _Settings:
    """Django's settings as the fixture `settings` changes them, for a fixture of a module."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        object.__setattr__(self, "_patch", patch)

    def __getattr__(self, name: str) -> Any:
        return getattr(django_settings, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._patch.setattr(django_settings, name, value)


def archive_of(folder: Path) -> Path:
    return folder.parent / "backup.tar"


def done(domain: Domain, *arguments: str) -> dict[str, Any]:
    """What a command that succeeds prints with --json."""
    result = domain.manage(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(domain: Domain, *arguments: str) -> str:
    """What a command says that is refused, without a traceback."""
    result = domain.manage(*arguments)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr, result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("CommandError: ")
    return result.stderr


class Publishing:
    """A thread that publishes at an RP and remembers what was acknowledged, with its cursor."""

    def __init__(self, domain: Domain, rp: str) -> None:
        self.acknowledged: list[tuple[str, str]] = []
        self._domain, self._rp = domain, rp
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with self._domain.http(admin=True) as http:
            number = 0
            while not self._stopped.is_set():
                number += 1
                event = {"specversion": "1.0", "id": str(number), "source": "/t", "type": "t", "data": "x" * 200}
                answer = http.post(f"/api/v1/rps/{self._rp}/events", content=json.dumps(event), headers=EVENT)
                if answer.status_code == 201:
                    self.acknowledged.append((str(number), answer.json()["cursor"]))

    def __enter__(self) -> Publishing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()


def pulled(http: httpx.Client, of: str, **params: Any) -> dict[str, Any]:
    answer = http.get(f"/api/v1/{of}/events", params={"limit": 1000, **params})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.long
def test_a_domain_under_load_is_backed_up_and_continues_elsewhere(new_domain: Any, tmp_path: Path) -> None:
    domain = new_domain(records=1)
    file = tmp_path / "backup.tar"
    with domain.http(admin=True) as http:
        rps = [http.post("/api/v1/rps", json={}).json()["id"] for _ in range(3)]
        durable = http.post(f"/api/v1/rps/{rps[0]}/subscriptions", json={"from": "earliest"}).json()["id"]
        with Publishing(domain, rps[0]) as one, Publishing(domain, rps[1]) as two:
            wait_for(lambda: len(one.acknowledged) > 30 and len(two.acknowledged) > 30, about="events are published")
            acknowledged = {"cursor": one.acknowledged[9][1]}
            assert http.post(f"/api/v1/subscriptions/{durable}/ack", json=acknowledged).status_code == 200
            before = {rps[0]: list(one.acknowledged), rps[1]: list(two.acknowledged)}
            made = done(domain, "backup", str(file))
            behind = len(one.acknowledged)
            wait_for(lambda: len(one.acknowledged) > behind + 10, about="publishing went on")
        beyond = one.acknowledged[-1][1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("backup.tar*")] == ["backup.tar"]
    assert "the newest is 0 hours old" in backup_finding(Config(data_dir=str(domain.data_dir))).says
    domain.stop()

    other = new_domain(start=False, records=1)
    restored = done(other, "restore", str(file))
    assert restored["logs"] == made["logs"] >= 3
    other.start()
    with other.http(admin=True) as http:
        for rp, events in before.items():
            page = pulled(http, f"rps/{rp}")
            assert page["epoch"] != events[0][1].partition(":")[0]
            held = [event["id"] for event in page["events"]]
            assert held[: len(events)] == [name for name, _ in events], (
                "what was acknowledged before the backup is there"
            )
        name, cursor = before[rps[0]][-1]
        page = pulled(http, f"rps/{rps[0]}", after=cursor)
        assert page["recovered"], "a reader of before the backup goes on without a gap"
        assert name not in [event["id"] for event in page["events"]]
        assert not pulled(http, f"rps/{rps[0]}", after=beyond)["recovered"], "a reader of after the backup is told"
        page = pulled(http, f"subscriptions/{durable}")
        assert page["recovered"], "a durable subscription goes on"
        assert page["events"][0]["id"] == before[rps[0]][10][0]
        content = json.dumps({"specversion": "1.0", "id": "new", "source": "/t", "type": "t"})
        answer = http.post(f"/api/v1/rps/{rps[0]}/events", content=content, headers=EVENT)
        assert answer.json()["cursor"] not in {given for _, given in one.acknowledged}, "no position is given twice"
    assert other.manage("verify_chain").returncode == 0
    assert other.manage("audit_check").returncode == 0


def test_a_backup_holds_the_secret_key_and_nobody_else_can_read_it(stopped: Path) -> None:
    file = archive_of(stopped)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with tarfile.open(file) as listed:
        secret = listed.extractfile("secret_key")
        assert secret is not None
        assert secret.read().decode() == django_settings.SECRET_KEY


def test_what_was_backed_up_is_there_with_its_offsets_in_a_new_epoch(stopped: Path, at: Callable[..., Place]) -> None:
    place = at("other")
    restored = place.restore(archive_of(stopped))
    assert (restored["logs"], restored["events"]) == (1, 100)
    with place.used(), redis_server.running_alone(place.config):
        run = control.read("a" * 26, 1, 1000, 1 << 20)
        assert [event.decode() for event in run.events] == [str(n) for n in range(100)]
        assert len(control.lineage("a" * 26).ends) == 1
    assert place.backup(place.folder.parent / "again.tar")["rows"] == restored["rows"]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in place.folder.rglob("*")} == {0}


def test_a_file_is_replaced_only_when_told_and_a_damaged_one_changes_nothing(
    stopped: Path, at: Callable[..., Place], tmp_path: Path
) -> None:
    place, file = at("other"), tmp_path / "a.tar"
    place.restore(archive_of(stopped))
    place.backup(file)
    with pytest.raises(BackupError, match="exists; name another file, or replace it with --force"):
        place.backup(file)
    assert place.backup(file, replace=True)["rows"] > 0
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    third = at("third")
    with pytest.raises(BackupError, match="does not have the checksum"):
        third.restore(file)
    assert third.is_empty


def test_a_backup_goes_through_a_pipe_into_an_empty_folder_and_is_refused_by_a_full_one(
    stopped: Path, tmp_path: Path
) -> None:
    domain, other = Domain(stopped), Domain(tmp_path / "var")
    command = [sys.executable, str(ROOT / "manage.py")]
    with subprocess.Popen([*command, "backup", "-"], env=domain.env, cwd=ROOT, stdout=subprocess.PIPE) as made:
        restore = [*command, "restore", "--json", "-"]
        result = subprocess.run(
            restore, env=other.env, cwd=ROOT, stdin=made.stdout, capture_output=True, text=True, check=False
        )
    assert made.returncode == 0
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["events"] == 100
    assert (other.data_dir / "secret_key").read_text() == (stopped / "secret_key").read_text()
    assert "There is a domain already" in refused(other, "restore", str(archive_of(stopped)))


def test_a_folder_with_a_domain_is_put_aside_when_told(stopped: Path, at: Callable[..., Place]) -> None:
    place = at("other")
    place.restore(archive_of(stopped))
    (place.folder / "records").mkdir(exist_ok=True)
    (place.folder / "records" / "mine.parquet").write_text("mine")
    with pytest.raises(BackupError, match="There is a domain already"):
        place.restore(archive_of(stopped))
    aside = Path(place.restore(archive_of(stopped), replace=True)["aside"])
    assert (aside / "herald.sqlite3").is_file()
    assert (aside / "records" / "mine.parquet").read_text() == "mine"
    assert not (place.folder / "records" / "mine.parquet").exists()


def test_records_and_reports_are_in_a_backup(stopped: Path, at: Callable[..., Place], tmp_path: Path) -> None:
    place = at("other")
    place.restore(archive_of(stopped))
    for name in ("records/date=2026-11-24/hour=15/gw-1.parquet", "reports/load/_SUCCESS", "reports/load/.part.crc"):
        (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (place.folder / name).write_text(name)
    (place.folder / "records" / "link").symlink_to("/etc/passwd")
    place.backup(tmp_path / "a.tar")
    third = at("third")
    third.restore(tmp_path / "a.tar")
    files = {
        str(path.relative_to(third.folder))
        for name in ("records", "reports")
        for path in (third.folder / name).rglob("*")
        if path.is_file()
    }
    assert files == {"records/date=2026-11-24/hour=15/gw-1.parquet", "reports/load/_SUCCESS"}


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"domain": "other.test"}, "set HERALD_DOMAIN=localhost"),
        ({"database_url": "postgres://x@127.0.0.1:1/x"}, "unset HERALD_DATABASE_URL"),
        ({"secret_key": "another-key-of-more-than-thirty-two-characters"}, "HERALD_SECRET_KEY is another one"),
        ({"redis_url": "redis://127.0.0.1:1/0"}, "HERALD_REDIS_URL does not answer"),
    ],
)
def test_a_backup_that_does_not_fit_the_settings_is_refused(
    stopped: Path, at: Callable[..., Place], stated: dict[str, str], says: str
) -> None:
    place = at("other", **stated)
    with pytest.raises(BackupError, match=says):
        place.restore(archive_of(stopped))
    assert not (place.folder / "herald.sqlite3").exists()
    assert RestoreFolders(place.config).mark is None


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "INSERT INTO django_migrations (app, name, applied) VALUES ('eventing', '9999_later', '2030-01-01')",
            "made by a newer Herald .*eventing.9999_later",
        ),
        (
            "CREATE TRIGGER x AFTER INSERT ON eventing_auditentry BEGIN DELETE FROM eventing_domainkey; END",
            "has a trigger .'x'. that Herald never makes",
        ),
        ("CREATE VIEW v AS SELECT 1", "has a view"),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "has a table .'f'. that"),
    ],
)
def test_a_database_that_this_version_did_not_make_is_refused(
    stopped: Path, at: Callable[..., Place], tmp_path: Path, statement: str, says: str
) -> None:
    altered = at("altered")
    altered.restore(archive_of(stopped))
    with closing(sqlite3.connect(altered.folder / "herald.sqlite3")) as database, database:
        database.execute(statement)
    altered.backup(tmp_path / "altered.tar")
    place = at("other")
    with pytest.raises(BackupError, match=says):
        place.restore(tmp_path / "altered.tar")
    assert place.is_empty


def killed_when(env: Mapping[str, str], arguments: list[str], moment: Callable[[], Any]) -> None:
    """Start a command, and kill it with SIGKILL as soon as `moment()`, or when it is over."""
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    process = subprocess.Popen(command, env=dict(env), cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: moment() or process.poll() is not None, every_s=0.001, about="the moment to kill")
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
@pytest.mark.parametrize("moment", ["part", "folder"])
def test_a_backup_that_is_killed_leaves_nothing_that_looks_whole(
    stopped: Path, at: Callable[..., Place], tmp_path: Path, moment: str
) -> None:
    (files := tmp_path / "files").mkdir()
    place, file = at("other"), files / "killed.tar"
    place.restore(archive_of(stopped))
    moments: dict[str, Callable[[], Any]] = {
        "part": lambda: list(files.glob("*.part")),
        "folder": lambda: list(place.folder.glob("backup-*.tmp")),
    }
    killed_when(place.env, ["backup", str(file)], moments[moment])
    with contextlib.suppress(FileNotFoundError), file.open("rb") as content:  # it was faster
        check(content, BackupProgress(quiet=True))
    place.backup(file, replace=True)
    assert [path.name for path in files.iterdir()] == ["killed.tar"]
    assert not list(place.folder.glob("backup-*.tmp"))


@pytest.mark.long
@pytest.mark.parametrize(
    "moment", ["restore-unfinished", "herald.sqlite3", "redis/*.aof", "redis/*/*.aof", "before-restore-*"]
)
def test_a_restore_that_is_killed_refuses_the_start_and_the_next_one_begins_anew(
    stopped: Path, at: Callable[..., Place], moment: str
) -> None:
    place = at("other")
    replaced = moment.startswith("before")
    if replaced:
        place.restore(archive_of(stopped))
    flags = ["--replace"] if replaced else []
    killed_when(place.env, ["restore", *flags, str(archive_of(stopped))], lambda: list(place.folder.glob(moment)))
    whole = not (place.folder / data_folder.RESTORE_MARK).exists()
    if not whole:
        with pytest.raises(StartError, match="was not finished"):
            data_folder.require_whole(place.folder)
    assert place.restore(archive_of(stopped), replace=whole)["events"] == 100
    assert not (place.folder / data_folder.RESTORE_MARK).exists()
    if replaced:
        kept = [path for path in place.folder.glob("before-restore-*") if (path / "herald.sqlite3").exists()]
        assert kept, "what was there before is still there"


def test_a_restore_that_fails_puts_back_what_was_there(tmp_path: Path) -> None:
    places = RestoreFolders(Config(data_dir=str(tmp_path)))
    for name in ("herald.sqlite3", "redis/appendonly.aof", "records/a.parquet", "secret_key"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    aside = places.begin(aside=True)
    assert places.occupied() == ""
    (tmp_path / "herald.sqlite3").write_text("half")
    (tmp_path / "redis" / "appendonly.aof").write_text("half")
    (tmp_path / "secret_key").write_text("other")
    places.undo(aside)
    for name in ("herald.sqlite3", "redis/appendonly.aof", "records/a.parquet", "secret_key"):
        assert (tmp_path / name).read_text() == name
    assert places.mark is None


def test_a_mark_that_cannot_be_read_removes_nothing(tmp_path: Path) -> None:
    places = RestoreFolders(Config(data_dir=str(tmp_path)))
    (tmp_path / "herald.sqlite3").write_text("rows")
    (tmp_path / data_folder.RESTORE_MARK).write_text("{")
    with pytest.raises(BackupError, match="look through the folder"):
        places.clear_unfinished(places.mark or {})
    assert (tmp_path / "herald.sqlite3").read_text() == "rows"


def test_a_redis_elsewhere_is_emptied_only_when_told_and_refuses_starts_until_it_is_whole(
    stopped: Path, at: Callable[..., Place], new_redis: Callable[..., RedisProcess]
) -> None:
    url = new_redis().url
    place, again = at("other", redis_url=url), at("again", redis_url=url)
    assert place.restore(archive_of(stopped))["logs"] == 1
    with pytest.raises(BackupError, match="the Redis at HERALD_REDIS_URL"):
        again.restore(archive_of(stopped))
    with again.used():
        client().zadd(keys.GATEWAYS_KEY, {"gw": time.time() + 60})
    with pytest.raises(BackupError, match="stop the domain on every host first"):
        again.restore(archive_of(stopped), replace=True)
    with again.used():
        client().delete(keys.GATEWAYS_KEY)
        held = set(client().keys("herald:*"))
    again.restore(archive_of(stopped), replace=True)
    with again.used():
        assert set(client().keys("herald:*")) == held
        client().set(keys.RESTORING_KEY, "1")
        with pytest.raises(StartError, match="A restore into the Redis at HERALD_REDIS_URL was not finished"):
            redis_server.require_whole()
        client().delete(keys.RESTORING_KEY)


def test_a_restore_into_a_redis_that_fails_leaves_it_empty(
    stopped: Path, at: Callable[..., Place], new_redis: Callable[..., RedisProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = at("other", redis_url=new_redis().url)

    def failing(rp: str) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(restoring, "lineage_begin", failing)
        with pytest.raises(BackupError, match=r"The disk of the data folder .* is full"):
            place.restore(archive_of(stopped))
    assert place.is_empty
    with place.used():
        assert not client().keys("herald:*")
    assert place.restore(archive_of(stopped))["logs"] == 1


def test_the_age_of_the_newest_backup_is_a_warning_after_a_week(tmp_path: Path) -> None:
    config = Config(data_dir=str(tmp_path))
    assert backup_finding(config).grade == "ok"
    newest.note(tmp_path, time.time() - 3 * 86_400, 5000)
    assert backup_finding(config).says == "the newest is 3 days old, 4.9 KiB"
    newest.note(tmp_path, time.time() - 9 * 86_400, 5000)
    assert (backup_finding(config).grade, bool(backup_finding(config).do)) == ("warn", True)
    (tmp_path / newest.FILE).write_text("{}")
    assert backup_finding(config).grade == "ok"

"""`manage.py doctor`: lists all settings, checks the installation, says what each ack level means; running or not."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from demo.harness.servers import ROOT, Domain
from eventing.core.config import Config
from eventing.core.events.ack_level import Ack
from eventing.store.connection import Durability
from portal.supervisor.diagnosis.findings import Grade
from portal.supervisor.diagnosis.settings_table import masked_url, settings_in_use, settings_markdown
from portal.supervisor.diagnosis.stores import acknowledgements, replication

SECRET = "a-very-secret-key-of-more-than-32-characters"


def report(domain: Domain) -> dict[str, Any]:
    """Findings by subject, with the state and the exit code's word checked."""
    result = domain.manage("doctor", "--json")
    document = json.loads(result.stdout)
    assert result.returncode == (0 if document["healthy"] else 1)
    assert {setting["name"] for setting in document["settings"]} == {f"HERALD_{f.name.upper()}" for f in fields(Config)}
    return {finding["subject"]: finding for finding in document["findings"]} | {"state": document["state"]}


@pytest.mark.processes
def test_nothing_runs_and_that_is_healthy(tmp_path: Path) -> None:
    found = report(Domain(tmp_path / "var"))
    assert found["state"] == "stopped"
    assert "is free" in found["gateway"]["says"]
    assert "make run starts the embedded" in found["redis"]["says"]
    assert "fsynced" in found["ack stored"]["says"]
    assert "not created yet" in found["database"]["says"]
    assert all(f["grade"] != "fail" for f in found.values() if isinstance(f, dict))


@pytest.mark.processes
def test_a_running_domain_is_healthy(domain: Domain) -> None:
    found = report(domain)
    assert found["state"] == "running"
    assert "is ready" in found["gateway"]["says"]
    assert "fsync before every answer" in found["persistence"]["says"]
    assert "up to date" in found["database"]["says"]
    assert "signs" in found["keys"]["says"]
    assert found["packages"]["grade"] == "ok"


@pytest.mark.processes
def test_every_grade_that_is_not_ok_says_what_to_do(tmp_path: Path) -> None:
    domain = Domain(tmp_path / "var", sesions_max=5, redis_url="redis://:hunter2@127.0.0.1:1/0", secret_key=SECRET)
    result = domain.manage("doctor")
    assert result.returncode == 1
    assert "HERALD_SESIONS_MAX is no setting of Herald" in result.stdout
    assert "does not answer" in result.stdout
    assert "hunter2" not in result.stdout + result.stderr
    assert SECRET not in result.stdout
    assert all(
        finding["do"] for finding in report(domain).values() if isinstance(finding, dict) and finding["grade"] != "ok"
    )


def test_settings_show_value_unit_and_origin_and_never_a_secret() -> None:
    env = {"HERALD_PORT": "9000", "HERALD_SECRET_KEY": SECRET, "HERALD_REDIS_URL": "redis://user:hunter2@example.org/0"}
    table = {setting.name: setting for setting in settings_in_use(Config.from_env(env), env)}
    assert (table["HERALD_PORT"].value, table["HERALD_PORT"].unit, table["HERALD_PORT"].origin) == (
        "9000",
        "port",
        "environment",
    )
    assert table["HERALD_HOST"].origin == "default"
    assert set(table["HERALD_SECRET_KEY"].value) == {"*"}
    assert table["HERALD_REDIS_URL"].value == "redis://user:********@example.org/0"
    assert masked_url("redis://example.org/0") == "redis://example.org/0"
    own = "sentinel_user=u&sentinel_password=hunter3&db=1"
    assert masked_url(f"redis+sentinel://:hunter2@a,b/one?{own}") == (
        "redis+sentinel://:********@a,b/one?sentinel_user=u&sentinel_password=********&db=1"
    )
    assert masked_url("redis://example.org/0?password=hunter2") == "redis://example.org/0?password=********"


@pytest.mark.parametrize(
    ("found", "stored", "expected"),
    [
        (Durability((6, 2), always=True, waitaof=False, replicas=0), Grade.OK, "survives a crash and a power cut"),
        (Durability((7, 2), always=False, waitaof=True, replicas=2), Grade.OK, "WAITAOF"),
        (Durability((7, 0), always=False, waitaof=False, replicas=1), Grade.FAIL, "cannot promise it"),
    ],
)
def test_each_ack_level_is_explained_for_the_redis_in_use(found: Durability, stored: Grade, expected: str) -> None:
    levels = {finding.subject: finding for finding in acknowledgements(found)}
    assert levels["ack stored"].grade == stored
    assert expected in levels["ack stored"].says
    assert (f"n up to {found.replicas}" in levels["ack replicated:n"].says) == bool(found.replicas)


@pytest.mark.parametrize(
    ("connected", "known", "default", "warned"),
    [
        (0, 0, "stored", []),
        (2, 2, "stored", ["ack default"]),
        (2, 2, "replicated:2", ["ack default"]),
        (2, 2, "replicated:all", []),
        (1, 2, "replicated:all", ["replicas"]),
        (0, 1, "stored", ["replicas", "ack default"]),
    ],
)
def test_replicas_are_of_use_only_with_a_level_that_waits_for_them(
    connected: int, known: int, default: str, warned: list[str]
) -> None:
    found = Durability((7, 2), always=True, waitaof=True, replicas=connected, replicas_known=known)
    findings = replication(found, Ack.parse(default))
    assert [finding.subject for finding in findings] == warned
    assert all(finding.grade == Grade.WARN for finding in findings)


def test_the_settings_page_is_current() -> None:
    page = ROOT / "docs" / "settings.md"
    assert page.read_text() == settings_markdown(), (
        "run: .venv/bin/python manage.py doctor --settings-markdown > docs/settings.md"
    )

"""One Spark session for the test process; its start takes seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark.java import java_check
from spark.problems import Problem
from spark.session import Engine, start


def need_java() -> None:
    """Skip where reports cannot run; in CI they must."""
    try:
        java_check()
    except Problem as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with one core, one shuffle partition and no user interface."""
    need_java()
    made = start(Engine("local[1]", "512m", str(tmp_path_factory.mktemp("spark-work")), small=True), "tests")
    made.conf.set("spark.sql.shuffle.partitions", "1")
    yield made
    made.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for records, of a name that a pattern would misread."""
    made = tmp_path / "re[c]ords {a,b} *"
    made.mkdir()
    return made

"""One Spark session for all tests that need one; its start takes seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.finalizer import ThreadSafeFinalizer  # type: ignore[import-untyped]

from spark.java import java_check
from spark.problems import JobProblem
from spark.session import Engine, fit, start
from tests.spark.frames import Frames


def need_java() -> None:
    """Skip where reports cannot run; in CI they must."""
    try:
        java_check()
    except JobProblem as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with one core, one shuffle partition and no user interface; it listens on loopback only.

    A file whose tests use it is listed in tests/scheduling.py: one Java serves all of them.
    """
    need_java()
    made = start(Engine("local[1]", "512m", str(tmp_path_factory.mktemp("spark-work")), small=True), "tests")
    fit(made, 0)
    yield made
    made.stop()
    # A later collection of garbage would ask Java to release objects of this session, amid another test, and log the failure where Java
    # has ended. To format a traceback within a parse of Python breaks that parse.
    ThreadSafeFinalizer.clear_finalizers(clear_all=True)


@pytest.fixture
def frames(engine: Any) -> Frames:
    """Frames of literal rows."""
    return Frames(engine)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for records, of a name that a pattern would misread."""
    made = tmp_path / "re[c]ords {a,b} *"
    made.mkdir()
    return made

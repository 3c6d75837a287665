"""What packages leave out of the installed requirements is nothing that the server loads."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from demo.harness.servers import ROOT
from deploy import tree
from tests.deploy.conftest import clean_environment

pytestmark = [pytest.mark.processes, pytest.mark.long]

LOAD_ALL = """
import importlib, json, os, pkgutil, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
django.setup()
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.dataset, pyarrow.fs
pq.write_table(pa.table({"n": [1, 2]}), pa.BufferOutputStream(), compression="zstd")
pyarrow.fs.S3FileSystem(region="local", anonymous=True)
for top in ("admin_rp", "eventing", "portal", "workers", "herald"):
    for found in pkgutil.walk_packages(importlib.import_module(top).__path__, f"{top}."):
        if found.name.rpartition(".")[2] not in ("__main__", "asgi", "runserver"):
            importlib.import_module(found.name)
print(json.dumps([module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)]))
"""
"""Python: load every module of the server, and what it loads late; prints the files of all modules."""


OPTIONAL = ("_distutils_hack/", "pyarrow/_substrait.")
"""Loaded where they are installed: setuptools' own .pth file, and a module that pyarrow tries."""


def test_no_module_that_the_server_loads_is_left_out(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOAD_ALL],
        cwd=ROOT,
        env=clean_environment(HERALD_DATA_DIR=str(tmp_path / "var")),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    installed = Path(sysconfig.get_path("purelib"))
    files = [Path(name) for name in json.loads(done.stdout.splitlines()[-1])]
    loaded = {path.relative_to(installed) for path in files if path.is_relative_to(installed)}
    site = tmp_path / "site"
    for name in loaded:
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).touch()
    assert len(loaded) > 500
    tree.leave_out(site)
    missing = {str(name) for name in loaded if not (site / name).exists()}
    assert {name for name in missing if not name.startswith(OPTIONAL)} == set()


def test_what_is_left_out_is_gone(tmp_path: Path) -> None:
    kept = ("django/conf/locale/__init__.py", "django/conf/locale/en/formats.py", "pyarrow/lib.so", "psycopg/sql.py")
    gone = (
        "django/conf/locale/de/formats.py",
        "django/contrib/gis/apps.py",
        "setuptools/__init__.py",
        "psycopg/sql.pyi",
    )
    for name in (*kept, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    tree.leave_out(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == set(kept)

"""The wheels, built once for all tests of packages, and a virtual environment in which they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from deploy import tree
from deploy.wheels import build


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the wheels of client and server."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def server(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the server's folder, with all it requires; needs a package registry, or pip's cache."""
    folder = tmp_path_factory.mktemp("tree") / "herald"
    tree.make(folder, wheels)
    return folder


@pytest.fixture(scope="session")
def environment(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of commands of a fresh virtual environment with the wheels; their requirements are those of these tests."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", *wheels], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # A path from a .pth file comes last, and .pth files within it count for nothing: the client installed there for tests is not found.
    (site / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def clean_environment(**variables: str) -> dict[str, str]:
    """Return the environment of these tests without anything that says where Herald is, and with `variables`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERALD_", "DJANGO_", "PYTHON"))}
    return {**kept, **variables}

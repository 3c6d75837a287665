"""The wheels: herald-client, and herald-gateway with the server, its pages and its built console.

    python -m deploy.wheels [FOLDER]        # dist/ by default

The server's folders are copied beside deploy/wheel/pyproject.toml first: the wheel gets nothing of an earlier build, `templates` and
`client/js` lie inside the package `portal`, and each locked requirement is stated with its version (docs/decisions/0108).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SERVER_PACKAGES = ("admin_rp", "eventing", "portal", "spark", "workers")
MOVED = {"templates": "portal/templates", "client/js": "portal/static/js"}
"""Folders of the source tree that are inside a package in the wheel (portal/settings.py)."""
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "node_modules", "test")
LEFT_OUT_TOP = {"portal": ("web",)}
"""Folders of a package that nothing needs when the server runs: the console is bundled of its sources."""
CONSOLE_MANIFEST = ROOT / "portal" / "static" / "portal" / "dist" / "manifest.json"
EXTRAS = ("reports", "runserver")
"""Locked requirements that the wheel states as extras."""
NOT_REQUIRED = ("setuptools",)  # builds the client in a source tree

DOCUMENTS = "portal/documents"
DOCUMENT_FOLDERS = ("docs", "examples")
"""Folders whose files the domain shows at /docs/ (portal/documentation/sources.py)."""
DOCUMENT_FILES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "bench/results/console.md",
    "bench/results/latest.md",
    "bench/results/push.md",
    "bench/results/spark.md",
    "client/README.md",
    "client/js/README.md",
    "portal/web/README.md",
    "spark/README.md",
)
"""Documents outside of these folders; a test compares them with those that are shown."""

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==\S+$")


def build(into: Path) -> list[Path]:
    """Build both wheels into the folder; return their paths, client first. Raises BuildError."""
    if not CONSOLE_MANIFEST.is_file():
        raise BuildError("The console is not built. Run: make .venv/.console-built")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="herald-wheels-") as work:
        client, server = Path(work) / "client", Path(work) / "server"
        shutil.copytree(
            ROOT / "client", client, ignore=shutil.ignore_patterns("js", "__pycache__", "*.egg-info", "build")
        )
        _stage_server(server)
        return [_wheel(source, into) for source in (client, server)]


class BuildError(Exception):
    """A wheel could not be built; the text states what to do."""


def version(project: Path = ROOT / "deploy" / "wheel") -> str:
    """Return the version in a project's pyproject.toml."""
    stated: str = tomllib.loads((project / "pyproject.toml").read_text())["project"]["version"]
    return stated


def requirements() -> list[str]:
    """Return what the server's wheel requires: the client of the same tree, and all of requirements/run.txt."""
    return [f"herald-client=={version(ROOT / 'client')}", *_pins("run")]


def epoch() -> str:
    """Return the time that files of a package bear, in seconds: SOURCE_DATE_EPOCH, else the time of the commit; the same tree makes
    the same package."""
    if stated := os.environ.get("SOURCE_DATE_EPOCH"):
        return stated
    asked = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return asked.stdout.strip() or str(int(CONSOLE_MANIFEST.stat().st_mtime))


def _stage_server(stage: Path) -> None:
    for name in SERVER_PACKAGES:
        shutil.copytree(ROOT / name, stage / name, ignore=LEFT_OUT)
        for folder in LEFT_OUT_TOP.get(name, ()):
            shutil.rmtree(stage / name / folder)
    for source, target in MOVED.items():
        shutil.copytree(ROOT / source, stage / target, ignore=LEFT_OUT)
    _stage_documents(stage / DOCUMENTS)
    for path in (
        ROOT / "deploy" / "wheel" / "pyproject.toml",
        ROOT / "deploy" / "wheel" / "README.md",
        ROOT / "LICENSE",
    ):
        shutil.copy(path, stage)
    (stage / "requirements.txt").write_text("\n".join(requirements()) + "\n")
    for extra in EXTRAS:
        (stage / f"{extra}.txt").write_text("\n".join(_pins(extra)) + "\n")


def _stage_documents(stage: Path) -> None:
    """Copy the documents of the release, by their paths in the source tree."""
    for name in DOCUMENT_FOLDERS:
        shutil.copytree(ROOT / name, stage / name, ignore=LEFT_OUT)
    for name in DOCUMENT_FILES:
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, stage / name)


def _pins(name: str) -> Iterator[str]:
    for line in (ROOT / "requirements" / f"{name}.txt").read_text().splitlines():
        found = _PIN.match(line)
        if found and found[1] not in NOT_REQUIRED:
            yield line


def _wheel(source: Path, into: Path) -> Path:
    """Build one wheel without a package index; the build tool is the one of this environment."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    command += [
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--no-cache-dir",
        "--wheel-dir",
        str(into / ".new"),
        str(source),
    ]
    try:
        subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": epoch()}, check=True)
        (built,) = (into / ".new").glob("*.whl")
        return built.rename(into / built.name)
    except subprocess.CalledProcessError:
        raise BuildError(f"The wheel of {source.name} could not be built; see the messages above.") from None
    finally:
        shutil.rmtree(into / ".new", ignore_errors=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the wheels and print their paths."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.wheels", description="Build the wheels of client and server."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=DIST, help="where the wheels go (default: dist)")
    try:
        for wheel in build(parser.parse_args(arguments).folder.resolve()):
            print(wheel)
    except BuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

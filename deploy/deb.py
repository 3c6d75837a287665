"""The Debian package: the server below /usr/lib/herald, its units, its user, its settings in /etc/herald/herald.env.

    python -m deploy.deb [FOLDER]           # dist/ by default; needs dpkg-deb

It fits the Debian release whose python3 has the minor version of the Python that runs this, on this machine's architecture.
"""

from __future__ import annotations

import argparse
import datetime
import email.utils
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy import tree, wheels
from deploy.wheels import DIST, ROOT, BuildError

SOURCES = ROOT / "deploy" / "debian"
DOCUMENTS = "usr/share/doc/herald"
MAINTAINER = "The Herald maintainers <maintainers@herald.example>"
DESCRIPTION = """Description: federated event-notification gateway with an admin portal
 Publishers send events to rendezvous points, subscribers are notified over
 WebSocket, Server-Sent Events or HTTP. Every event is stored in order, on
 disk, before its publisher is answered. Domains carry each other's events.
 .
 This package has all Python packages it needs, and a Redis of its own.
"""


def build(into: Path, server: Path | None = None, *, number: str | None = None, level: int = 6) -> Path:
    """Build the package of the server's folder (deploy/tree.py), made first where none is given; return its path.

    `number`: Debian's version, by default the release's with revision 1. `level`: of the compression, 0 to 9. Raises BuildError.
    """
    if shutil.which("dpkg-deb") is None:
        raise BuildError("dpkg-deb is missing. Build the package on Debian or Ubuntu.")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="herald-deb-") as work:
        root = Path(work) / "root"
        number = number or version()
        tree.place(root, server)
        _add_files(root, number)
        _add_control(root, number)
        package = into / f"herald_{number}_{architecture()}.deb"
        compression = ["-Zxz", f"-z{level}"] if level else ["-Znone"]
        command = ["dpkg-deb", "--root-owner-group", *compression, "--build", str(root), str(package)]
        if subprocess.run(
            command, env={**os.environ, "SOURCE_DATE_EPOCH": wheels.epoch()}, stdout=subprocess.DEVNULL, check=False
        ).returncode:
            raise BuildError("dpkg-deb refused the package; see the messages above.")
        return package


def version() -> str:
    """Return the package's version in Debian: the release's, with the first revision."""
    return f"{wheels.version()}-1"


def architecture() -> str:
    """Return Debian's name of this machine's architecture."""
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def _add_files(root: Path, number: str) -> None:
    """Add all files beside the server itself."""
    for source, target, mode in (
        (SOURCES / "herald-server", "usr/bin/herald-server", 0o755),
        (SOURCES / "herald.env", "etc/herald/herald.env", 0o640),
        (ROOT / "deploy" / "systemd" / "herald.service", "lib/systemd/system/herald.service", 0o644),
        (ROOT / "deploy" / "systemd" / "herald.socket", "lib/systemd/system/herald.socket", 0o644),
        (SOURCES / "copyright", f"{DOCUMENTS}/copyright", 0o644),
        (SOURCES / "lintian-overrides", "usr/share/lintian/overrides/herald", 0o644),
        (ROOT / "docs" / "installing.md", f"{DOCUMENTS}/README.md", 0o644),
    ):
        path = root / target
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
        path.chmod(mode)
    (root / "usr/bin/herald").symlink_to("../lib/herald/bin/herald")
    for text, target in (
        ((ROOT / "CHANGELOG.md").read_bytes(), f"{DOCUMENTS}/changelog.gz"),
        (_debian_changelog(number), f"{DOCUMENTS}/changelog.Debian.gz"),
        ((SOURCES / "herald.1").read_bytes(), "usr/share/man/man1/herald.1.gz"),
        ((SOURCES / "herald-server.8").read_bytes(), "usr/share/man/man8/herald-server.8.gz"),
    ):
        path = root / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text, 9, mtime=0))
        path.chmod(0o644)
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]:
        folder.chmod(0o755)


def _debian_changelog(number: str) -> bytes:
    """Return the one entry of the package's own changelog, which names the release's."""
    made = email.utils.format_datetime(datetime.datetime.fromtimestamp(int(wheels.epoch()), datetime.UTC))
    return (
        f"herald ({number}) stable; urgency=medium\n\n  * Release {wheels.version()}: /{DOCUMENTS}/changelog.gz\n\n"
        f" -- {MAINTAINER}  {made}\n"
    ).encode()


def _add_control(root: Path, version: str) -> None:
    control = root / "DEBIAN"
    control.mkdir(mode=0o755)
    files = sorted(
        path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and control not in path.parents
    )
    major, minor = sys.version_info[:2]
    (control / "control").write_text(
        f"Package: herald\nVersion: {version}\nArchitecture: {architecture()}\nSection: net\nPriority: optional\n"
        f"Maintainer: {MAINTAINER}\n"
        f"Installed-Size: {sum(path.stat().st_size for path in files) // 1024}\n"
        f"Depends: python3 (>= {major}.{minor}), python3 (<< {major}.{minor + 1}), libc6, libgcc-s1, libstdc++6, passwd\n"
        "Recommends: ca-certificates\nSuggests: openjdk-17-jre-headless, haproxy | nginx\n" + DESCRIPTION
    )
    (control / "conffiles").write_text("/etc/herald/herald.env\n")
    sums = (
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(root)}\n"
        for path in files
    )
    (control / "md5sums").write_text("".join(sums))
    for name in ("postinst", "prerm", "postrm"):
        shutil.copyfile(SOURCES / name, control / name)
        (control / name).chmod(0o755)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the package and print its path."""
    parser = argparse.ArgumentParser(prog="python -m deploy.deb", description="Build the Debian package.")
    parser.add_argument("folder", nargs="?", type=Path, default=DIST, help="where the package goes (default: dist)")
    try:
        print(build(parser.parse_args(arguments).folder.resolve()))
    except BuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

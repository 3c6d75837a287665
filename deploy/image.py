"""The container image, made without a container registry or a daemon: files of a few Debian packages, and the server beside them.

    python -m deploy.image [FOLDER]        # dist/ by default; needs mmdebstrap and the right to make namespaces, or root

The image has no shell, no package manager and no compiler; it runs as an unprivileged user and writes to /var/lib/herald and /tmp only.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy import oci, tree, wheels
from deploy.deb import architecture
from deploy.wheels import DIST, BuildError

SUITES = {"python3.11": "bookworm", "python3.13": "trixie"}
"""Debian's release by its Python."""
PACKAGES = ("libstdc++6", "ca-certificates", "tzdata", "netbase", "libpython3-stdlib", "zlib1g", "libuuid1")
NEVER_USED = (
    "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "usr/share/info", "usr/share/perl5", "usr/share/bash-completion",
    "usr/share/zoneinfo/right", "usr/share/zoneinfo/posix", "usr/lib/*/perl*", "usr/bin/dpkg*", "usr/bin/debconf*", "usr/bin/update-alternatives", "usr/bin/c_rehash", "usr/bin/tar", "usr/sbin/*", "usr/bin/perl*", "usr/lib/*/gconv", "var/lib/apt", "var/cache",
    "var/lib/dpkg", "var/log/*", "usr/lib/python3*/pydoc_data", "usr/lib/python3*/lib2to3", "usr/lib/python3*/ensurepip", "usr/lib/python3*/idlelib",
    "usr/share/python3/debpython", "etc/apt", "usr/lib/apt", "dev/*", "usr/lib/python3*/test", "usr/share/pixmaps", "usr/share/applications",
    "usr/bin/openssl", "usr/lib/*/krb5", "usr/lib/herald/lib/python3*/site-packages/portal/static/portal/dist/*.map", "usr/share/gcc", "usr/share/gdb",
    "usr/lib/python3*/turtle*", "usr/lib/python3*/tkinter", "usr/lib/python3*/distutils", "usr/lib/python3*/lib-dynload/_test*",
    # modules of Python for terminals, NIS and DBM, and the libraries that only these and removed programs load
    *(f"usr/lib/python3*/lib-dynload/{name}.*" for name in ("readline", "_curses", "_curses_panel", "nis", "_dbm")),
    *(f"usr/lib/*/lib{name}[.-]*" for name in (
        "mvec", "db", "readline", "history", "ncursesw", "formw", "menuw", "panelw", "tic", "tinfo", "nsl", "tirpc", "gssapi_krb5", "krb5",
        "krb5support", "k5crypto", "com_err", "keyutils", "selinux", "pcre2-8", "acl", "zstd", "md", "thread_db", "c_malloc_debug",
    )),
)  # fmt: skip
USER = 10001
"""Number of the user that runs the server: beyond the users of any host, so that it owns nothing there."""
DATA = "/var/lib/herald"
CONFIG: dict[str, Any] = {
    "User": f"{USER}:{USER}",
    "Entrypoint": [f"{tree.HOME}/bin/herald-server"],
    "Cmd": ["run"],
    "WorkingDir": DATA,
    "Env": [
        f"PATH={tree.HOME}/bin:/usr/bin",
        "LANG=C.UTF-8",
        f"HERALD_DATA_DIR={DATA}",
        "HERALD_HOST=0.0.0.0",
        "HERALD_LOG_FORMAT=json",
        "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
    ],
    "ExposedPorts": {"8000/tcp": {}},
    "Volumes": {DATA: {}},
    "StopSignal": "SIGTERM",
}


def build(into: Path, server: Path | None = None) -> Path:
    """Build the image of the server's folder (deploy/tree.py), made first where none is given; return the archive. Raises BuildError."""
    if shutil.which("mmdebstrap") is None:
        raise BuildError(
            "mmdebstrap is missing. Install it (Debian: apt install mmdebstrap), or use deploy/container/Containerfile."
        )
    into.mkdir(parents=True, exist_ok=True)
    seconds = int(wheels.epoch())
    with tempfile.TemporaryDirectory(prefix="herald-image-") as work:
        root = Path(work) / "root"
        _extract(root)
        tree.place(root, server)
        _complete(root)
        archive = into / f"herald-{wheels.version()}-{architecture()}.oci.tar"
        created = datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        labels = {
            "org.opencontainers.image.title": "Herald",
            "org.opencontainers.image.version": wheels.version(),
            "org.opencontainers.image.licenses": "Apache-2.0",
        }
        oci.write(
            oci.Image(
                root=root,
                name=f"herald:{wheels.version()}",
                created=created,
                seconds=seconds,
                architecture=architecture(),
                config={**CONFIG, "Labels": labels},
                owners={DATA: (USER, USER)},
            ),
            archive,
        )
        return archive


def _extract(root: Path) -> None:
    """Unpack the files of Debian's packages; none of their scripts is run."""
    suite = SUITES.get(tree.PYTHON)
    if suite is None:
        raise BuildError(f"No release of Debian has {tree.PYTHON}; build with {' or '.join(SUITES)}.")
    packages = ",".join((*PACKAGES, f"{tree.PYTHON}-minimal", f"lib{tree.PYTHON}-stdlib"))
    command = ["mmdebstrap", "--quiet", "--variant=extract", "--format=directory", f"--include={packages}"]
    command += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", suite, str(root), *debian_sources()]
    if subprocess.run(command, check=False).returncode:
        raise BuildError("mmdebstrap could not unpack Debian's packages; see the messages above.")


def debian_sources() -> list[str]:
    """Return where this machine gets Debian's packages from; mmdebstrap's own choice where it states nothing."""
    stated = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.sources"))]
    return [
        str(path) for path in stated if path.is_file() and re.search(r"^(deb |Types:)", path.read_text(), re.MULTILINE)
    ]


def _complete(root: Path) -> None:
    """Remove what the server never opens, and make what the packages' scripts would have made: users, certificates, bytecode."""
    for pattern in NEVER_USED:
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (root / "etc/passwd").write_text(
        f"root:x:0:0:root:/:/nonexistent\nherald:x:{USER}:{USER}:Herald:{DATA}:/nonexistent\n"
    )
    (root / "etc/group").write_text(f"root:x:0:\nherald:x:{USER}:\n")
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    certificates = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    (root / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
    (root / "etc/ssl/certs/ca-certificates.crt").write_text("".join(path.read_text() for path in certificates))
    (root / DATA.lstrip("/")).mkdir(parents=True, mode=0o700)
    (root / DATA.lstrip("/")).chmod(0o700)
    for folder in ("tmp", "proc", "sys", "dev", "run"):
        (root / folder).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    _compile(root)


def _compile(root: Path) -> None:
    """Compile all modules to bytecode; of those that are not Herald's own, only the bytecode stays (docs/decisions/0135)."""
    site = root / tree.HOME.relative_to("/") / "lib" / tree.PYTHON / "site-packages"
    own = [site / name for name in (*wheels.SERVER_PACKAGES, "herald")]
    others = [root / "usr/lib" / tree.PYTHON, *(path for path in site.iterdir() if path not in own)]
    # Compiled by content, not by time: every file bears one time in the image.
    command = [sys.executable, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", str(root), "-p", "/"]
    for more, paths in (([], own), (["-b"], others)):
        compiled = [str(path) for path in paths if path.is_dir() or path.suffix == ".py"]
        subprocess.run([*command, *more, *compiled], check=False, stdout=subprocess.DEVNULL)
    for folder in others:
        for module in [folder] if folder.is_file() else list(folder.rglob("*.py")):
            if module.suffix == ".py" and module.with_suffix(".pyc").is_file():
                module.unlink()


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the image and print its path."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.image", description="Build the container image as an OCI archive."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=DIST, help="where the archive goes (default: dist)")
    try:
        print(build(parser.parse_args(arguments).folder.resolve()))
    except BuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

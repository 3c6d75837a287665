"""A release in dist/release: wheels, Debian package, image, chart, bill of materials, checksums, and their signature.

    python -m deploy.release [--key KEY.pem]

The key is an Ed25519 private key in a PEM file (`openssl genpkey -algorithm ed25519 -out KEY.pem`); SHA256SUMS is signed with it, and so
is all that it lists. What this machine cannot build is named and left out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from deploy import deb, image, tree, wheels
from deploy.wheels import DIST, ROOT, BuildError

FOLDER = DIST / "release"
SUMS = "SHA256SUMS"
VERIFY = """\
  openssl pkeyutl -verify -pubin -inkey herald-release.pub.pem -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig
  sha256sum --check SHA256SUMS"""


def build(into: Path, key: Path | None = None) -> list[str]:
    """Build all of it into an empty folder; return what is missing for a release, as sentences. Raises BuildError."""
    signing = None if key is None else private_key(key)  # before minutes of building
    into.mkdir(parents=True, exist_ok=True)
    if any(into.iterdir()):
        raise BuildError(f"{into} is not empty; a release begins with nothing of an earlier one.")
    print("Building: wheels, and the folder of the server with all it requires", flush=True)
    made = wheels.build(into)
    missing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="herald-release-") as work:
        server = Path(work) / "herald"
        tree.make(server, made)
        steps: tuple[tuple[str, Callable[[], object]], ...] = (
            ("Debian package", lambda: deb.build(into, server)),
            ("image", lambda: image.build(into, server)),
            ("chart", lambda: chart(into)),
            ("bill of materials", lambda: bill_of_materials(into, server)),
        )
        for name, step in steps:
            print(f"Building: {name}", flush=True)
            try:
                step()
            except BuildError as error:
                missing.append(str(error))
    seal(into, signing)
    if signing is None:
        missing.append("SHA256SUMS is not signed: no --key was given.")
    return [*missing, *_not_stated()]


def unreleased(changelog: str) -> bool:
    """Return whether the changelog has changes without a version."""
    section = changelog.partition("## Unreleased")[2].partition("\n## ")[0]
    return "\n- " in section


def _not_stated() -> list[str]:
    """Return what keeps the version number from naming this tree."""
    found = []
    if unreleased((ROOT / "CHANGELOG.md").read_text()):
        found.append(
            f"The changelog has changes under Unreleased that {wheels.version()} would contain without saying so."
        )
    asked = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False)
    if asked.stdout.strip():
        found.append("The source tree has changes that are not committed: nobody else can build this again.")
    return found


def seal(folder: Path, signing: Ed25519PrivateKey | None) -> None:
    """Write the checksums of all files in the folder, and their signature where there is a key."""
    sums = folder / SUMS
    sums.write_text(checksums(folder))
    if signing is not None:
        (folder / f"{SUMS}.sig").write_bytes(signing.sign(sums.read_bytes()))


def chart(into: Path) -> Path:
    """Package the Helm chart. Raises BuildError."""
    try:
        import helm_python
    except ImportError:
        raise BuildError(
            "The chart is not packaged: helm-python-sdk is missing (make .venv/.release-installed)."
        ) from None
    try:
        return Path(helm_python.package(str(ROOT / "deploy" / "helm" / "herald"), destination=str(into)))
    except helm_python.HelmError as error:
        raise BuildError(f"Helm refused the chart: {error}") from None


def bill_of_materials(into: Path, server: Path) -> Path:
    """Write a CycloneDX bill of all Python packages in the server's folder, with their licences. Raises BuildError."""
    program = Path(sys.executable).with_name("cyclonedx-py")
    if not program.is_file():
        raise BuildError("There is no bill of materials: cyclonedx-bom is missing (make .venv/.release-installed).")
    bill = into / f"herald-{wheels.version()}.cdx.json"
    with tempfile.TemporaryDirectory(prefix="herald-bill-") as work:
        venv.create(work, with_pip=False, symlinks=True)
        (site,) = Path(work).glob("lib/python*/site-packages")
        (found,) = server.glob("lib/python*/site-packages")
        (site / "server.pth").write_text(f"{found}\n")
        project = ROOT / "deploy" / "wheel" / "pyproject.toml"
        command = [str(program), "environment", f"{work}/bin/python", "--pyproject", str(project)]
        options = ["--mc-type", "application", "--output-reproducible", "--output-file", str(bill)]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": wheels.epoch()}
        if subprocess.run([*command, *options], env=environment, check=False).returncode:
            raise BuildError("The bill of materials could not be made; see the messages above.")
    return bill


def checksums(folder: Path) -> str:
    """Return what `sha256sum` prints for all files in the folder, but for checksums and signatures."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(SUMS))
    return "".join(f"{_sha256(path)}  {path.name}\n" for path in files)


def private_key(path: Path) -> Ed25519PrivateKey:
    """Read the key that signs releases. Raises BuildError."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BuildError(f"The key {path} cannot be read ({error}); it must be an unencrypted PEM file.") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BuildError(f"{path} is no Ed25519 key; make one: openssl genpkey -algorithm ed25519 -out {path}")
    return key


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> None:
    """Build a release; exit code 1 when something is missing in it."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description="Build, list and sign a release.")
    parser.add_argument("--key", type=Path, help="PEM file with the Ed25519 private key that signs SHA256SUMS")
    options = parser.parse_args(arguments)
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        missing = build(FOLDER, options.key)
    except BuildError as error:
        sys.exit(str(error))
    for path in sorted(FOLDER.iterdir()):
        print(f"{path.stat().st_size / 1024**2:8.1f} MiB  {path.relative_to(ROOT)}")
    if missing:
        sys.exit("\n".join(["This is not a whole release:", *(f"  {sentence}" for sentence in missing)]))
    print(f"Signed. To verify, in the folder:\n{VERIFY}")


if __name__ == "__main__":
    main()

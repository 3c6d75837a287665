"""Checksums and signature of a release are verified by other programs than those that made them; a bad key is refused at once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from demo.harness.servers import ROOT
from deploy import release
from deploy.wheels import BuildError, version


def pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def verified(folder: Path, public: Path) -> bool:
    """Whether the two commands of docs/installing.md accept the release."""
    sums = subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, capture_output=True, check=False
    )
    command = [
        "openssl",
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        str(public),
        "-rawin",
        "-in",
        "SHA256SUMS",
        "-sigfile",
        "SHA256SUMS.sig",
    ]
    signature = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return sums.returncode == 0 and signature.returncode == 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_release_is_verified_by_sha256sum_and_openssl_and_a_change_is_found(tmp_path: Path) -> None:
    key, folder, public = Ed25519PrivateKey.generate(), tmp_path / "release", tmp_path / "key.pub.pem"
    (tmp_path / "key.pem").write_bytes(pem(key))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    folder.mkdir()
    (folder / "one.whl").write_bytes(b"one")
    (folder / "two.deb").write_bytes(b"two")
    release.seal(folder, release.private_key(tmp_path / "key.pem"))
    assert verified(folder, public)
    (folder / "two.deb").write_bytes(b"too")
    assert not verified(folder, public)
    (folder / "SHA256SUMS").write_text(release.checksums(folder))
    assert not verified(folder, public)


def test_a_key_that_cannot_sign_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    other = tmp_path / "rsa.pem"
    other.write_bytes(
        generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    with pytest.raises(BuildError, match="is no Ed25519 key"):
        release.build(tmp_path / "out", other)
    (tmp_path / "text.pem").write_text("no key")
    with pytest.raises(BuildError, match="cannot be read"):
        release.build(tmp_path / "out", tmp_path / "text.pem")
    with pytest.raises(BuildError, match="cannot be read"):
        release.build(tmp_path / "out", tmp_path / "missing.pem")
    assert not (tmp_path / "out").exists()


def test_a_release_begins_in_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "old.whl").touch()
    with pytest.raises(BuildError, match="is not empty"):
        release.build(tmp_path)


def test_changes_without_a_version_are_found_in_the_changelog() -> None:
    released = "# Changelog\n\n## Unreleased\n\n## 1.0.0\n\n### Added\n\n- One.\n"
    assert not release.unreleased(released)
    assert release.unreleased(released.replace("## Unreleased\n", "## Unreleased\n\n### Fixed\n\n- Two.\n"))


def test_the_commands_that_a_release_prints_are_those_of_the_documents() -> None:
    text = (ROOT / "docs" / "installing.md").read_text()
    assert all(line.strip() in text for line in release.VERIFY.splitlines())


def test_every_deliverable_states_one_version() -> None:
    chart = (ROOT / "deploy/helm/herald/Chart.yaml").read_text()
    assert f'version: {version()}\nappVersion: "{version()}"' in chart
    assert f"herald:{version()}" in (ROOT / "deploy/container/Containerfile").read_text()
    assert version() == version(ROOT / "client")
    assert f"## {version()}" in (ROOT / "CHANGELOG.md").read_text()

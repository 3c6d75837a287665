"""A certificate of 127.0.0.1, for servers of the tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certificate_made(folder: Path) -> tuple[Path, Path]:
    """Make a certificate that is its own authority. Returns its file and its key's."""
    folder.mkdir(exist_ok=True)
    made, key = folder / "cert.pem", folder / "key.pem"
    how = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    command = ["openssl", "req", "-x509", *how.split(), "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made, key

"""An OCI image archive of one layer, written from a folder: the layout of the OCI image specification 1.1, in one tar file.

The same folder and the same time make the same bytes: entries are sorted, belong to root, and bear one time.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
GZIP_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Image:
    """Contents of the archive. `owners`: (uid, gid) of paths that are not root's, by their path in the image."""

    root: Path
    name: str
    created: str
    seconds: int
    architecture: str
    config: dict[str, Any]
    owners: dict[str, tuple[int, int]] = field(default_factory=dict)


def write(image: Image, archive: Path) -> None:
    """Write the archive, which `skopeo copy oci-archive:...`, `podman load` and `docker load` (25 or newer) read."""
    layer = _layer(image)
    compressed = gzip.compress(layer, GZIP_LEVEL, mtime=0)
    config = {
        "created": image.created,
        "architecture": image.architecture,
        "os": "linux",
        "config": image.config,
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        "history": [{"created": image.created, "created_by": "python -m deploy.image"}],
    }
    blobs = [compressed, _json(config)]
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _descriptor(CONFIG, blobs[1]),
            "layers": [_descriptor(LAYER, compressed)],
        }
    )
    named = {**_descriptor(MANIFEST, manifest), "annotations": {"org.opencontainers.image.ref.name": image.name}}
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}), image.seconds)
        _add(tar, "index.json", _json({"schemaVersion": 2, "manifests": [named]}), image.seconds)
        for blob in (*blobs, manifest):
            _add(tar, f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}", blob, image.seconds)


def _layer(image: Image) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(image.root.rglob("*")):
            name = str(path.relative_to(image.root))
            entry = tar.gettarinfo(path, name)
            entry.uid, entry.gid = image.owners.get(f"/{name}", (0, 0))
            entry.uname = entry.gname = ""
            entry.mtime = image.seconds
            if entry.isreg():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            elif entry.isdir() or entry.issym() or entry.islnk():
                tar.addfile(entry)
    return written.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, seconds: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(content), seconds, 0o644
    tar.addfile(entry, io.BytesIO(content))


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()

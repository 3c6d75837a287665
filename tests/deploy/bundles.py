"""An OCI image archive as runc takes it: unpacked, with a configuration that keeps what the image and its documents promise."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import resource
import tarfile
from pathlib import Path
from typing import Any


def unpack(archive: Path, root: Path) -> dict[str, Any]:
    """Unpack the layers below `root`; return the image's configuration. Fails where a blob is not what its descriptor states."""
    with tarfile.open(archive) as tar:

        def member(name: str) -> bytes:
            file = tar.extractfile(name)
            assert file is not None
            return file.read()

        def blob(descriptor: dict[str, Any]) -> bytes:
            content = member("blobs/" + descriptor["digest"].replace(":", "/"))
            assert f"sha256:{hashlib.sha256(content).hexdigest()}" == descriptor["digest"]
            assert len(content) == descriptor["size"]
            return content

        assert json.loads(member("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
        manifest = json.loads(blob(json.loads(member("index.json"))["manifests"][0]))
        config: dict[str, Any] = json.loads(blob(manifest["config"]))
        for layer, stated in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
            content = gzip.decompress(blob(layer))
            assert f"sha256:{hashlib.sha256(content).hexdigest()}" == stated
            with tarfile.open(fileobj=io.BytesIO(content)) as files:
                # Owners and devices as the image states them; Pythons before 3.11.4 have no other way.
                files.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
                files.extractall(root)
        return config


def bundle(folder: Path, config: dict[str, Any], data: Path, variables: dict[str, str]) -> None:
    """Write config.json of a container that shares the host's network: root read-only, no capability, `data` as the volume."""
    stated = config["config"]
    uid, gid = map(int, stated["User"].split(":"))
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    hidden = ["nosuid", "nodev", "noexec"]
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {
            "destination": "/dev",
            "type": "tmpfs",
            "source": "tmpfs",
            "options": ["nosuid", "strictatime", "mode=755", "size=65536k"],
        },
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": [*hidden, "mode=1777", "size=65536k"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": [*hidden, "mode=1777", "size=65536k"]},
        {
            "destination": next(iter(stated["Volumes"])),
            "type": "bind",
            "source": str(data),
            "options": ["bind", "rw", *hidden],
        },
    ]
    document = {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": uid, "gid": gid},
            "args": [*stated["Entrypoint"], *stated["Cmd"]],
            "env": [*stated["Env"], *(f"{name}={value}" for name, value in variables.items())],
            "cwd": stated["WorkingDir"],
            "capabilities": {},
            "noNewPrivileges": True,
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": files, "soft": files}],
        },
        "root": {"path": "rootfs", "readonly": True},
        "mounts": mounts,
        "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}]},
    }
    (folder / "config.json").write_text(json.dumps(document))
    os.chown(data, uid, gid)

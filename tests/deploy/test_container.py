"""Containerfile and compose file say the same as the image that is built without a registry, and confine the container as documented."""

from __future__ import annotations

import io
import json
import re
import tarfile
from pathlib import Path

import yaml

from demo.harness.servers import ROOT
from deploy import oci
from deploy.image import CONFIG, DATA, USER
from deploy.wheels import version
from tests.deploy.bundles import unpack

CONTAINERFILE = (ROOT / "deploy" / "container" / "Containerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "deploy" / "container" / "compose.yaml").read_text())


def stated(instruction: str) -> str:
    found = re.search(rf"^{instruction} ((?:.*\\\n)*.*)$", CONTAINERFILE, re.MULTILINE)
    assert found, instruction
    return found[1].replace("\\\n", " ")


def test_the_containerfile_makes_the_same_container_as_the_released_image() -> None:
    assert stated("USER") == CONFIG["User"]
    assert json.loads(stated("ENTRYPOINT")) == CONFIG["Entrypoint"]
    assert json.loads(stated("CMD")) == CONFIG["Cmd"]
    assert stated("WORKDIR") == CONFIG["WorkingDir"]
    assert [stated("VOLUME")] == list(CONFIG["Volumes"]) == [DATA]
    assert stated("STOPSIGNAL") == CONFIG["StopSignal"]
    ours = {item for item in CONFIG["Env"] if item.startswith("HERALD_")}
    assert ours == {item for item in stated("ENV").split() if item.startswith("HERALD_")}
    assert f"--uid {USER} " in CONTAINERFILE


def test_the_compose_file_runs_it_confined_on_loopback() -> None:
    service = COMPOSE["services"]["herald"]
    assert service["image"] == f"herald:{version()}"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["volumes"] == [f"data:{DATA}"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    build = service["build"]
    folder = ROOT / "deploy" / "container" / build["context"]
    assert folder.resolve() == ROOT / "dist"
    assert (folder.resolve() / build["dockerfile"]).resolve() == ROOT / "deploy" / "container" / "Containerfile"


def test_an_archive_is_written_the_same_from_the_same_folder_and_unpacks_to_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "var/lib/herald").mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    (root / "program").write_text("#!/bin/true\n")
    (root / "program").chmod(0o755)
    image = oci.Image(
        root=root,
        name="herald:1",
        created="2026-01-01T00:00:00Z",
        seconds=1,
        architecture="amd64",
        config=CONFIG,
        owners={DATA: (USER, USER)},
    )
    oci.write(image, tmp_path / "one.tar")
    (root / "program").touch()
    oci.write(image, tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    config = unpack(tmp_path / "one.tar", tmp_path / "unpacked")
    assert config["config"] == CONFIG
    assert (tmp_path / "unpacked/bin").readlink() == Path("usr/bin")
    assert (tmp_path / "unpacked/program").stat().st_mode & 0o777 == 0o755
    with tarfile.open(tmp_path / "one.tar") as tar:
        layers = [name for name in tar.getnames() if name.startswith("blobs/")]
        owners = {}
        for name in layers:
            file = tar.extractfile(name)
            assert file is not None
            content = file.read()
            if content[:2] == b"\x1f\x8b":
                with tarfile.open(fileobj=io.BytesIO(content)) as layer:
                    owners = {entry.name: (entry.uid, entry.gid, entry.mtime) for entry in layer}
    assert owners["var/lib/herald"] == (USER, USER, 1)
    assert owners["program"] == (0, 0, 1)

"""Locations: folders on this machine, on a shared filesystem or in an object store, with one small interface.

A location is a path (`var/reports`), or an address that pyarrow understands (`s3://bucket/reports?region=eu-central-1`, `gs://...`,
`hdfs://host/reports`, `file:///...`). With a local master Spark reads and writes copies (staging.py); on a cluster it needs the
connector of the object store on its class path.

What is local is listed, read and removed without Arrow: a domain asks for its reports now and then, and Arrow would take 50 MiB of a
process that otherwise never loads it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from spark.problems import JobProblem

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
_GLOB = re.compile(r"([\\{}\[\]*?])")
_TEMPORARY = ".tmp"


@dataclass(frozen=True)
class StoredFile:
    """A file or folder in a location."""

    path: str
    name: str
    is_file: bool
    size: int
    modified_at: float
    """Unix seconds; 0 if the store does not state it."""


@dataclass(frozen=True)
class Location:
    """A folder. `address` is as given."""

    address: str

    @cached_property
    def _filesystem(self) -> tuple[Any, str]:
        from pyarrow import fs

        match = _ADDRESS.fullmatch(self.address)
        if match is None or match[1] == "file":
            return fs.LocalFileSystem(), self.root
        scheme = {"s3a": "s3", "s3n": "s3"}.get(match[1], match[1])
        try:
            found, root = fs.FileSystem.from_uri(f"{scheme}://{match[2]}")
        except (ValueError, OSError, NotImplementedError) as error:
            raise JobProblem(f"{self.address} cannot be used: {error}") from None
        return found, root.rstrip("/")

    @property
    def filesystem(self) -> Any:
        """Return pyarrow's filesystem of it."""
        return self._filesystem[0]

    @property
    def root(self) -> str:
        """Return its path within the filesystem."""
        if not self.is_local:
            return str(self._filesystem[1])
        match = _ADDRESS.fullmatch(self.address)
        return str(Path(self.address if match is None else match[2]).absolute())

    @property
    def is_local(self) -> bool:
        """Return whether it is a local path, possibly on a shared filesystem."""
        match = _ADDRESS.fullmatch(self.address)
        return match is None or match[1] == "file"

    def inside(self, name: str) -> Location:
        """Return a folder in it, with the same options of the address."""
        path, mark, options = self.address.partition("?") if self._is_address else (self.address, "", "")
        return Location(f"{path.rstrip('/')}/{name}{mark}{options}")

    @property
    def _is_address(self) -> bool:
        return _ADDRESS.fullmatch(self.address) is not None

    def path(self, *parts: str) -> str:
        """Return the path of an entry in it."""
        return "/".join((self.root, *parts))

    def spark(self, path: str) -> str:
        """Return a path within it for Spark. Characters that Spark would take for a pattern are escaped."""
        escaped = _GLOB.sub(r"\\\1", path)
        if self.is_local:
            return f"file://{escaped}"
        return f"{self.address.partition('://')[0]}://{escaped}"

    def entries(self, path: str, recursive: bool = False) -> list[StoredFile]:
        """Return the content of a folder, by path; empty if there is no such folder. Raises OSError."""
        if self.is_local:
            return sorted(_local_entries(path, recursive), key=lambda entry: entry.path)
        from pyarrow import fs

        found = self.filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=recursive))
        entries = [
            StoredFile(
                info.path,
                info.base_name,
                info.type == fs.FileType.File,
                info.size or 0,
                (info.mtime_ns or 0) / 1e9,
            )
            for info in found
        ]
        return sorted(entries, key=lambda entry: entry.path)

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a small file; None if there is none."""
        try:
            if self.is_local:
                return Path(path).read_bytes()
            with self.filesystem.open_input_file(path) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def read_json(self, path: str) -> Any:
        """Return the content of a small JSON file; None if there is none or if it is not JSON."""
        raw = self.read(path)
        try:
            return None if raw is None else json.loads(raw)
        except ValueError:
            return None

    def write(self, path: str, content: bytes) -> None:
        """Replace a small file as a whole: readers see the old one or the new one. Raises OSError."""
        if self.is_local:
            target = Path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f"{target.name}.{os.getpid()}{_TEMPORARY}")
            try:
                with temporary.open("wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                temporary.rename(target)
            finally:
                temporary.unlink(missing_ok=True)
            return
        with self.filesystem.open_output_stream(path) as stream:  # an object store shows an object when it is closed
            stream.write(content)

    def remove_folder(self, path: str) -> None:
        """Remove a folder of a job with its content, if it exists."""
        try:
            if self.is_local:
                shutil.rmtree(path)
            else:
                self.filesystem.delete_dir(path)
        except FileNotFoundError:
            return


def _local_entries(folder: str, recursive: bool) -> Iterator[StoredFile]:
    """Yield the content of a folder of this machine; what is removed meanwhile is left out."""
    try:
        paths = list(Path(folder).iterdir())
    except FileNotFoundError:
        return
    for path in paths:
        try:
            found = path.stat()
        except FileNotFoundError:
            continue
        is_file = stat.S_ISREG(found.st_mode)
        yield StoredFile(str(path), path.name, is_file, found.st_size if is_file else 0, found.st_mtime)
        if recursive and stat.S_ISDIR(found.st_mode):
            yield from _local_entries(str(path), recursive)

"""The file of a backup: a tar of plain files, read and written from the beginning to the end.

`tar tf FILE` lists it. What tar can have besides plain files (links, devices, sparse files, extended headers) is not
written and is refused: a member has one header of 512 bytes with name, size and checksum, then its content. Names are
those of this module; sizes are bounded by the header before anything of the content is read. Nothing is compressed.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from portal.supervisor.backup.contents import (
    DOCUMENT_BYTES_MAX,
    HEAD,
    MANIFEST,
    Head,
    Manifest,
    Section,
    decode,
    encode,
    require_format,
)
from portal.supervisor.backup.errors import BackupError

BLOCK = tarfile.BLOCKSIZE
CHUNK_BYTES = 1024 * 1024
PIECE_BYTES = 8 * 1024 * 1024  # of a stream of unknown length, which is written as several members
NAME_CHARS_MAX = 200  # bound: characters of a member's name; a file of a longer name is left out
PLAIN_BYTES_MAX = 8**11 - 1  # size that a POSIX tar header can state; GNU tar states larger ones in another form
PIECE_BYTES_MAX = 1024**3  # bound: bytes of one piece of the data plane; the file is refused
SECRET_BYTES_MAX = 4096  # bound: bytes of the secret key; the file is refused
MEMBER_BYTES_MAX = 2**50  # bound: bytes of one member; the file is refused
DATABASE, SECRET, DATA_PLANE, TABLES = "database.sqlite3", "secret_key", "data-plane", "tables"
FILES = ("records", "reports")
"""Sections of files as they lie in the data folder."""

_NAME = re.compile(
    rf"{HEAD}|{MANIFEST}|{DATABASE}|{SECRET}|{DATA_PLANE}/[0-9]{{6}}|{TABLES}/[a-z0-9_]{{1,63}}/[0-9]{{6}}"
    rf"|(?:{'|'.join(FILES)})(?:/[A-Za-z0-9_=-][A-Za-z0-9_=.-]*)+",
    re.ASCII,
)
_BYTES_MAX = {
    HEAD: DOCUMENT_BYTES_MAX,
    MANIFEST: DOCUMENT_BYTES_MAX,
    SECRET: SECRET_BYTES_MAX,
    DATA_PLANE: PIECE_BYTES_MAX,
}
_DAMAGED = "Take another backup, or fetch this file again."


def allowed(name: str) -> bool:
    """Return whether a member may have this name: a relative path without any way out of its folder."""
    return len(name) <= NAME_CHARS_MAX and _NAME.fullmatch(name) is not None


@dataclass(slots=True)
class _Digests:
    """Sections of the members that were read or written so far."""

    members: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    hashes: dict[str, hashlib._Hash] = field(default_factory=dict)

    def add(self, name: str, size: int, digest: bytes) -> None:
        section = name.partition("/")[0]
        self.members[section] = self.members.get(section, 0) + 1
        self.sizes[section] = self.sizes.get(section, 0) + size
        self.hashes.setdefault(section, hashlib.sha256()).update(f"{name}\n{size}\n".encode() + digest)

    def sections(self) -> dict[str, Section]:
        return {
            name: Section(count, self.sizes[name], self.hashes[name].hexdigest())
            for name, count in self.members.items()
        }


class ArchiveWriter:
    """Writes a backup; `head` first, `finish` last."""

    def __init__(self, file: BinaryIO, head: Head) -> None:
        self._file = file
        self._digests = _Digests()
        self.written = 0
        self.content(HEAD, encode(head))

    def content(self, name: str, content: bytes) -> None:
        """Write a member."""
        self.stream(name, len(content), [content])

    def stream(self, name: str, size: int, chunks: Iterable[bytes]) -> None:
        """Write a member of `size` bytes. Chunks beyond it are left out; if there are fewer, it is filled with zeros."""
        if not allowed(name):
            raise ValueError(f"no member of a backup: {name}")
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, 0o600
        self._write(info.tobuf(tarfile.USTAR_FORMAT if size <= PLAIN_BYTES_MAX else tarfile.GNU_FORMAT))
        digest = hashlib.sha256()
        left = size
        for chunk in chunks:
            part = chunk[:left]
            digest.update(part)
            self._write(part)
            left -= len(part)
            if not left:
                break
        while left:  # a file that became shorter while it was read
            part = bytes(min(left, CHUNK_BYTES))
            digest.update(part)
            self._write(part)
            left -= len(part)
        self._write(bytes(-size % BLOCK))
        self._digests.add(name, size, digest.digest())

    def pieces(self, prefix: str, chunks: Iterable[bytes], after: Callable[[], None] = lambda: None) -> int:
        """Write chunks as members PREFIX/000000 and so on, none of which divides a chunk; return their number.

        Args:
            after: called after each piece.
        """
        number = size = 0
        waiting: list[bytes] = []
        for chunk in chunks:
            waiting.append(chunk)
            size += len(chunk)
            if size >= PIECE_BYTES:
                self.content(f"{prefix}/{number:06d}", b"".join(waiting))
                number, size, waiting = number + 1, 0, []
                after()
        if waiting:
            self.content(f"{prefix}/{number:06d}", b"".join(waiting))
            number += 1
        return number

    def finish(self, **counts: int | float | str) -> Manifest:
        """Write the manifest and the end; return the manifest."""
        manifest = Manifest(sections=self._digests.sections(), **counts)  # type: ignore[arg-type]
        self.content(MANIFEST, encode(manifest))
        self._write(bytes(2 * BLOCK))
        return manifest

    def _write(self, content: bytes) -> None:
        self._file.write(content)
        self.written += len(content)


class ArchiveMember:
    """A member that is being read; what is not read of it is read by the archive."""

    def __init__(self, archive: ArchiveReader, name: str, size: int) -> None:
        self.name, self.size, self.left = name, size, size
        self._archive = archive
        self._digest = hashlib.sha256()
        self._ended = False

    @property
    def section(self) -> str:
        """Its first name."""
        return self.name.partition("/")[0]

    def chunks(self) -> Iterator[bytes]:
        """Read what is left of it."""
        while self.left:
            chunk = self._archive.read(min(self.left, CHUNK_BYTES))
            self.left -= len(chunk)
            self._digest.update(chunk)
            yield chunk

    def content(self) -> bytes:
        """Read all of it."""
        return b"".join(self.chunks())

    def end(self) -> bytes:
        """Read it to its end; return its digest."""
        for _ in self.chunks():
            pass
        if not self._ended:
            self._ended = True
            self._archive.read(-self.size % BLOCK)
        return self._digest.digest()


class ArchiveReader:
    """Reads a backup: `head` is there at once, `manifest` after all members were read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digests = _Digests()
        self.manifest: Manifest | None = None
        first = self._next()
        if first is None or first.name != HEAD:
            raise BackupError("The file is not a backup of Herald, or damaged: its first member is not backup.json.")
        content = first.content()
        require_format(content)
        self.head = decode(Head, content)
        self._digests.add(first.name, first.size, first.end())

    def members(self) -> Iterator[ArchiveMember]:
        """Yield every member but the documents. Raises BackupError for a file that is damaged or not whole."""
        while (member := self._next()) is not None:
            if member.name == MANIFEST:
                self._end(member)
                return
            if member.name == HEAD:
                raise BackupError(f"The file is damaged: it has two heads. {_DAMAGED}")
            yield member
            self._digests.add(member.name, member.size, member.end())
        raise BackupError(f"The file is not whole: it ends without a manifest. {_DAMAGED}")

    def _end(self, member: ArchiveMember) -> None:
        self.manifest = decode(Manifest, member.content())
        member.end()
        found = self._digests.sections()
        for name in sorted(found.keys() | self.manifest.sections.keys()):
            if found.get(name) != self.manifest.sections.get(name):
                raise BackupError(f"The file is damaged: {name} does not have the checksum of the manifest. {_DAMAGED}")
        if self.read(2 * BLOCK) != bytes(2 * BLOCK):
            raise BackupError(f"The file is damaged: its end is missing. {_DAMAGED}")

    def read(self, size: int) -> bytes:
        """Read exactly `size` bytes."""
        parts: list[bytes] = []
        while size:
            part = self._file.read(size)
            if not part:
                raise BackupError(f"The file is not whole: it ends within a member. {_DAMAGED}")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _next(self) -> ArchiveMember | None:
        block = self.read(BLOCK)
        if block == bytes(BLOCK):
            return None
        try:
            info = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError, ValueError):
            raise BackupError(
                f"The file is not a backup of Herald, or damaged: a header is malformed. {_DAMAGED}"
            ) from None
        name = info.name
        if info.type != tarfile.REGTYPE or info.linkname or not allowed(name):
            raise BackupError("The file has a member that no backup of Herald has; it was not made by herald backup.")
        if not 0 <= info.size <= _BYTES_MAX.get(name.partition("/")[0], MEMBER_BYTES_MAX):
            raise BackupError(f"The file is damaged: its member {name} is larger than one can be. {_DAMAGED}")
        return ArchiveMember(self, name, info.size)

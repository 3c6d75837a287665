"""The file of a backup: what was written is read, and nothing else is taken for a backup."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.supervisor.backup import archive, contents
from portal.supervisor.backup.archive import ArchiveReader, ArchiveWriter
from portal.supervisor.backup.contents import Head
from portal.supervisor.backup.errors import BackupError

HEAD = Head(
    format=contents.FORMAT,
    version="1.0.0",
    domain="a.test",
    began_at="2026-11-24T00:00:00+00:00",
    database="sqlite",
    migrations=["eventing.0001_first"],
    redis="7.0.0",
    settings={},
    tables={},
)
COUNTS: dict[str, Any] = {"ended_at": "2026-11-24T00:00:01+00:00", "seconds": 1.0, "logs": 1, "events": 2, "rows": 3}


def written(members: dict[str, bytes], head: Head = HEAD) -> bytes:
    file = io.BytesIO()
    writer = ArchiveWriter(file, head)
    for name, content in members.items():
        writer.content(name, content)
    writer.finish(**COUNTS)
    return file.getvalue()


def read(content: bytes) -> dict[str, bytes]:
    return {member.name: member.content() for member in ArchiveReader(io.BytesIO(content)).members()}


def with_header(info: tarfile.TarInfo, content: bytes = b"") -> bytes:
    """A backup in which the database is followed by a member with this header."""
    file = io.BytesIO()
    writer = ArchiveWriter(file, HEAD)
    writer.content(archive.DATABASE, b"rows")
    file.write(info.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % archive.BLOCK))
    writer.finish(**COUNTS)
    return file.getvalue()


MEMBERS = {
    "database.sqlite3": b"x" * 2000,
    "data-plane/000000": b"",
    "secret_key": b"s" * 64,
    "records/date=2026-11-24/a.parquet": b"p",
}


def test_what_was_written_is_read_and_tar_lists_it() -> None:
    content = written(MEMBERS)
    assert read(content) == MEMBERS
    with tarfile.open(fileobj=io.BytesIO(content)) as listed:
        assert listed.getnames() == ["backup.json", *MEMBERS, "manifest.json"]
        assert {member.mode for member in listed.getmembers()} == {0o600}


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(max_examples=150)
def test_one_changed_bit_anywhere_is_noticed_or_changes_nothing_that_is_read(at: int, bit: int) -> None:
    content = bytearray(written(MEMBERS))
    content[at % len(content)] ^= 1 << bit
    with contextlib.suppress(BackupError):
        assert read(bytes(content)) == MEMBERS  # in the padding of a member or a part of a header that says nothing


@given(size=st.integers(0, 10_000))
def test_a_file_that_ends_early_is_no_backup(size: int) -> None:
    content = written(MEMBERS)
    with pytest.raises(BackupError):
        read(content[: min(size, len(content) - 1)])


@given(content=st.binary(max_size=3000))
def test_other_files_are_refused_with_a_sentence(content: bytes) -> None:
    with pytest.raises(BackupError):
        read(content)


@pytest.mark.parametrize(
    "name",
    [
        "../secret_key", "/etc/passwd", "records/../../x", "records/.ssh", "records//x", "records/x\n", "secret_key/x", "herald.sqlite3",
        "tables/a/b", "tables/A/000000", "records", "records/" + "a" * 200, "processes.json", "records/x/",
    ],
)  # fmt: skip
def test_a_name_that_no_backup_has_is_refused(name: str) -> None:
    assert not archive.allowed(name)
    with pytest.raises(ValueError, match="no member"):
        written({name: b""})
    with pytest.raises(BackupError):
        read(with_header(tarfile.TarInfo(name)))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE]
)  # fmt: skip
def test_links_devices_folders_and_extended_headers_are_refused(kind: bytes) -> None:
    info = tarfile.TarInfo("records/a")
    info.type, info.linkname = kind, "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
    with pytest.raises(BackupError, match="no backup of Herald has"):
        read(with_header(info))


@pytest.mark.parametrize(
    ("name", "size"), [("secret_key", 10**6), ("data-plane/000000", 2**31), ("manifest.json", 2**31)]
)
def test_a_size_that_no_member_has_is_refused_before_it_is_read(name: str, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = size
    with pytest.raises(BackupError, match="larger than one can be"):
        read(with_header(info))


def test_a_backup_of_a_later_format_names_it() -> None:
    later = contents.encode(HEAD).replace(b'"format": 1', b'"format": 7')
    file = io.BytesIO()
    info = tarfile.TarInfo("backup.json")
    info.size = len(later)
    file.write(info.tobuf(tarfile.USTAR_FORMAT) + later + bytes(-len(later) % archive.BLOCK))
    with pytest.raises(BackupError, match="format 7, and this version reads formats up to 1"):
        ArchiveReader(io.BytesIO(file.getvalue()))


def test_a_long_stream_is_written_in_pieces_and_nothing_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "PIECE_BYTES", 10)
    file = io.BytesIO()
    writer = ArchiveWriter(file, HEAD)
    assert writer.pieces("data-plane", [b"abc"] * 9) == 3
    writer.finish(**COUNTS)
    assert set(read(file.getvalue()).values()) == {b"abcabcabcabc", b"abc"}


def test_a_file_that_shrinks_while_it_is_read_leaves_the_archive_whole() -> None:
    file = io.BytesIO()
    writer = ArchiveWriter(file, HEAD)
    writer.stream("records/a", 6, [b"ab"])
    writer.stream("records/b", 2, [b"abc", b"d"])
    writer.finish(**COUNTS)
    assert read(file.getvalue()) == {"records/a": b"ab\0\0\0\0", "records/b": b"ab"}


@pytest.mark.parametrize(
    "altered",
    [
        {"version": "1.0\x1b[2J"},
        {"domain": ""},
        {"began_at": "yesterday"},
        {"began_at": "2026-11-24T00:00:00"},
        {"migrations": ["a\nb"]},
        {"settings": {"HERALD_X\x07": "1"}},
        {"tables": {"a": "b"}},
    ],
)
def test_a_head_with_texts_that_herald_does_not_write_is_refused(altered: dict[str, Any]) -> None:
    content = json.dumps({**json.loads(contents.encode(HEAD)), **altered}).encode()
    with pytest.raises(BackupError, match="malformed"):
        contents.decode(Head, content)

"""The two documents of a backup: `backup.json`, its first member, and `manifest.json`, its last."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from eventing.core.decoding import Undecodable, json_reader
from portal.supervisor.backup.errors import BackupError

FORMAT = 1
"""Number of the format. A later one is refused by this version; earlier ones are read."""

DOCUMENT_BYTES_MAX = 1024 * 1024  # bound: bytes of a backup's document; the file is refused
HEAD, MANIFEST = "backup.json", "manifest.json"
_TEXT = re.compile(r"[\w.:+-]{1,200}", re.ASCII)
T = TypeVar("T", bound=msgspec.Struct)


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that must be known before anything is restored.

    Attributes:
        version: of Herald.
        began_at: RFC 3339 time.
        database: `sqlite` or `postgresql`.
        migrations: those applied to the database, as `app.name`.
        redis: version of the server that serialized the logs.
        settings: those stated in the environment, without addresses and passwords of stores.
        tables: of PostgreSQL, columns by table; empty for SQLite.
    """

    format: int
    version: str
    domain: str
    began_at: str
    database: str
    migrations: list[str]
    redis: str
    settings: dict[str, str]
    tables: dict[str, list[str]]

    def __post_init__(self) -> None:
        """Refuse texts that Herald does not write: they are shown to people."""
        stated = (self.version, self.domain, self.began_at, self.redis, *self.migrations, *self.settings)
        if not all(_TEXT.fullmatch(one) for one in stated):
            raise ValueError("a name in it is malformed")
        if datetime.fromisoformat(self.began_at).tzinfo is None:
            raise ValueError("its time has no zone")


class Section(msgspec.Struct, frozen=True):
    """Members below one name: their number, bytes, and a SHA-256 over the name, size and SHA-256 of each."""

    members: int
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that the file is whole."""

    ended_at: str
    seconds: float
    logs: int
    events: int
    rows: int
    sections: dict[str, Section]


def encode(document: msgspec.Struct) -> bytes:
    """Encode a document as JSON for people, too."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def decode(kind: type[T], content: bytes) -> T:
    """Decode a document. Raises BackupError."""
    try:
        return json_reader(kind)(content)
    except Undecodable as error:
        raise BackupError(
            f"The file is not a backup of Herald, or damaged: a document in it is malformed ({error})."
        ) from None


def require_format(content: bytes) -> None:
    """Raise BackupError unless the first document is of a format that is known here."""
    found: Any = None
    with contextlib.suppress(Undecodable):
        found = json_reader(dict[str, Any])(content).get("format")
    if type(found) is not int or found < 1:
        raise BackupError("The file is not a backup of Herald, or damaged: its first document states no format.")
    if found > FORMAT:
        raise BackupError(
            f"The backup has format {found}, and this version reads formats up to {FORMAT}; restore it with the version "
            "that made it, or a newer one."
        )

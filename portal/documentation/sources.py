"""The files that are shown, and their addresses. Only what is listed here is ever read: addresses are looked up, never joined.

`docs/protocol.md` is at /docs/protocol, `docs/simulation/README.md` at /docs/simulation/, a picture at its own name. Documents
of other folders are at their own paths: `client/README.md` at /docs/client/.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from django.conf import settings
from django.urls import reverse

from eventing.core.container import per_process

FOLDER = "docs/"
EXAMPLES = "examples/"
ELSEWHERE = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "bench/results/console.md",
    "bench/results/latest.md",
    "bench/results/push.md",
    "bench/results/spark.md",
    "client/README.md",
    "client/js/README.md",
    "portal/web/README.md",
    "spark/README.md",
)
"""Documents outside of folders that are shown whole."""
INTRODUCTION = "introduction"
_TEXT = "text/plain; charset=utf-8"
KINDS = {
    ".md": "text/markdown",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".yaml": _TEXT,
    ".yml": _TEXT,
    "": _TEXT,
}
"""Media types by suffix of documents. Other files are not shown."""
PROGRAMS = frozenset({".py", ".mjs", ".js", ".jsx", ".html", ".go", ".mod", ".java", ".md"})
"""Suffixes of examples, which are shown as text."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file: its path in the source tree, and its address below /docs/."""

    name: str
    address: str

    @property
    def path(self) -> Path:
        """Path of the file."""
        return Path(settings.DOCUMENTS) / self.name

    @property
    def link(self) -> str:
        """Path of its page on this domain."""
        return reverse("portal:documents") + quote(self.address)

    @property
    def is_page(self) -> bool:
        """Return whether it is rendered; other files are sent as they are."""
        return self.name.endswith(".md")

    @property
    def media_type(self) -> str:
        """Media type of the file."""
        return KINDS.get(PurePosixPath(self.name).suffix, _TEXT)


class DocumentSources:
    """All files by address and by path in the source tree.

    Args:
        root: the source tree.
    """

    def __init__(self, root: Path) -> None:
        names = [*_files(root, FOLDER, KINDS), *_files(root, EXAMPLES, PROGRAMS)]
        names += [name for name in ELSEWHERE if (root / name).is_file()]
        self.by_name: Mapping[str, Source] = {name: Source(name, address_of(name)) for name in names}
        self.by_address: Mapping[str, Source] = {source.address: source for source in self.by_name.values()}

    @property
    def pages(self) -> list[Source]:
        """Documents, in the order of their paths."""
        return [source for source in self.by_name.values() if source.is_page]


def _files(root: Path, folder: str, suffixes: Container[str]) -> list[str]:
    """Paths of the files of a folder and those below it; links to elsewhere and installed packages are left out."""
    return [
        str(path.relative_to(root))
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in suffixes and path.is_file() and not path.is_symlink() and "node_modules" not in path.parts
    ]


def address_of(name: str) -> str:
    """The address of a file below /docs/."""
    if name == "README.md":
        return INTRODUCTION
    inside = name.removeprefix(FOLDER)
    return inside.removesuffix("README.md") if inside.endswith("README.md") else inside.removesuffix(".md")


@per_process
def sources() -> DocumentSources:
    """The files of this release."""
    return DocumentSources(Path(settings.DOCUMENTS))

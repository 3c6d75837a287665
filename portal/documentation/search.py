"""Search in the documents: all words must be there, in any case; titles count most, then headings, then how often.

The texts are searched as they are written: rendering all of them would take seconds of the process that serves events.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eventing.core.container import per_process
from portal.documentation.sources import Source, sources

QUERY_CHARS_MAX = 100  # bound: characters of a search in the documents; the rest is left out
WORDS_MAX = 8  # bound: words of a search in the documents; the rest is left out
FOUND_MAX = 30  # bound: documents that a search lists; the rest is left out
EXCERPT_CHARS = 200
TITLE_WEIGHT, HEADING_WEIGHT, COUNTED_MAX = 50, 8, 10
_MARKS = re.compile(r"[`*|#>]|\]\([^)]*\)|\[|<[^>]*>")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_HEADINGS = re.compile(r"^##+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DocumentHit:
    """A document with all words; `excerpt` is the first line with one of them."""

    source: Source
    title: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Text:
    """A document as it is searched; all but title and text in lower case."""

    source: Source
    title: str
    text: str
    lowered: str
    headings: str

    def weight(self, words: list[str]) -> int:
        """Weigh it for a search for `words`; 0 without one of them."""
        if not all(word in self.lowered for word in words):
            return 0
        title = self.title.lower()
        return sum(
            TITLE_WEIGHT * (word in title)
            + HEADING_WEIGHT * (word in self.headings)
            + min(self.lowered.count(word), COUNTED_MAX)
            for word in words
        )


def search(query: str) -> list[DocumentHit]:
    """Find documents, the best first."""
    words = query[:QUERY_CHARS_MAX].lower().split()[:WORDS_MAX]
    if not words:
        return []
    weighed = [(text.weight(words), text) for text in _texts()]
    ranked = sorted((pair for pair in weighed if pair[0]), key=lambda pair: (-pair[0], pair[1].title))
    return [DocumentHit(text.source, text.title, _excerpt(text.text, words)) for _, text in ranked[:FOUND_MAX]]


def _excerpt(text: str, words: list[str]) -> str:
    lines = [_MARKS.sub("", line).strip() for line in text.splitlines() if not line.startswith("#")]
    line = next((line for line in lines if any(word in line.lower() for word in words)), "")
    at = next((line.lower().find(word) for word in words if word in line.lower()), 0)
    start = max(0, at - EXCERPT_CHARS // 2)
    return (
        ("…" if start else "")
        + line[start : start + EXCERPT_CHARS]
        + ("…" if len(line) > start + EXCERPT_CHARS else "")
    )


@per_process
def _texts() -> list[Text]:
    return [_text(source, source.path.read_text()) for source in sources().pages]


def _text(source: Source, text: str) -> Text:
    title = _TITLE.search(text)
    headings = " ".join(_HEADINGS.findall(text)).lower()
    return Text(source, _MARKS.sub("", title[1]) if title else source.name, text, text.lower(), headings)

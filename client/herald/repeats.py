"""Events that a publisher's retry at another replica has put into the log twice: subscribers see them once.

A publisher whose domain went away before it answered publishes the same event, with the same id, at another replica. If
the first domain had stored it, it is there twice, once in each domain's feed. Which feed an event is of shows in its
cursor: its vector differs from that of the event before in that feed alone. Only a repetition in *another* feed is such
a retry; within one feed the domain has its own window for repeated ids, and what it lets pass is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WINDOW = 10_000  # events of one subscription remembered, about 1 MB; a retry comes within seconds, 5 minutes at most


class Repeats:
    """The last events of one subscription. Not for subscriptions whose cursors have no vector: make none for them."""

    __slots__ = ("_feeds", "_vector")

    def __init__(self) -> None:
        self._feeds: dict[int, str] = {}  # by a hash of source and id: strings of thousands would be too much
        self._vector: frozenset[str] = frozenset()

    def stand(self, cursor: str) -> None:
        """The reader stands at `cursor`, without having been given an event."""
        self._vector = frozenset(_vector(cursor))

    def repeated(self, cursor: str, event: Mapping[str, Any]) -> bool:
        """Whether the event, which stands right before `cursor`, was given before, out of another feed."""
        vector = _vector(cursor)
        grown = [part for part in vector if part not in self._vector]
        self._vector = frozenset(vector)
        feed = grown[0].partition("=")[0] if len(grown) == 1 else ""
        key = hash(repr((event.get("source"), event.get("id"))))  # whatever they are
        before = self._feeds.get(key)
        if before and feed and before != feed:
            return True
        self._feeds[key] = feed
        if len(self._feeds) > WINDOW:
            del self._feeds[next(iter(self._feeds))]
        return False


def _vector(cursor: str) -> list[str]:
    return cursor.partition("~")[2].split(".")

"""Repeated events: a publisher's retry at another replica may put an event into the log twice; subscribers see it once.

A publisher that got no answer publishes the same event, with the same id, at another replica. If the first domain had
stored it, it is stored twice, once in each domain's feed. The cursor shows an event's feed: its vector differs from
that of the event before in that feed alone. Only a repetition in *another* feed is such a retry; within one feed the
domain has its own deduplication window, and what it lets pass is delivered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WINDOW = 10_000  # events of one subscription remembered, about 1 MB; a retry follows within seconds, 5 minutes at most


class RepeatDetector:
    """The last events of one subscription. Only for subscriptions whose cursors have a vector."""

    __slots__ = ("_feeds", "_vector")

    def __init__(self) -> None:
        self._feeds: dict[int, str] = {}  # by a hash of source and id: thousands of strings would take too much memory
        self._vector: frozenset[str] = frozenset()

    def stand(self, cursor: str) -> None:
        """Record the reader's position without an event."""
        self._vector = frozenset(_vector(cursor))

    def repeated(self, cursor: str, event: Mapping[str, Any]) -> bool:
        """Return whether the event, which is right before `cursor`, was delivered before from another feed."""
        vector = _vector(cursor)
        grown = [part for part in vector if part not in self._vector]
        self._vector = frozenset(vector)
        feed = grown[0].partition("=")[0] if len(grown) == 1 else ""
        key = hash(repr((event.get("source"), event.get("id"))))  # of any type
        before = self._feeds.get(key)
        if before and feed and before != feed:
            return True
        self._feeds[key] = feed
        if len(self._feeds) > WINDOW:
            del self._feeds[next(iter(self._feeds))]
        return False


def _vector(cursor: str) -> list[str]:
    return cursor.partition("~")[2].split(".")

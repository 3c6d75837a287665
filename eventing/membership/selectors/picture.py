"""Reads of what the process of the overlay shows: the picture, and what is known of single domains."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.membership.shapes import OverlayPicture, OverlayScore, OverlaySuspicion, SeenDomains
from eventing.store.errors import RedisError
from eventing.store.overlay_pictures import picture_stored, picture_watched, seen_stored
from eventing.store.overlay_queues import overlay_look

_picture = msgpack_reader(OverlayPicture)
_seen = msgpack_reader(SeenDomains)


def picture_read() -> OverlayPicture | None:
    """Return the picture; None if no process shows one."""
    try:
        stored = picture_stored()
        return None if stored is None else _picture(stored)
    except (RedisError, Undecodable):
        return None


def picture_looked_at() -> OverlayPicture | None:
    """Return the picture for a person or a program that looks at it: from now on it is made every few seconds."""
    with suppress(RedisError):
        if picture_watched():
            overlay_look()
    return picture_read()


class KnownNow(msgspec.Struct):
    """Picture and single domains, as answers about domains and links need them together.

    Attributes:
        suspected: suspicions by domain.
    """

    picture: OverlayPicture | None
    seen: SeenDomains
    suspected: Mapping[str, OverlaySuspicion]

    def scores_of(self, peer: str) -> list[OverlayScore]:
        """Return the scores of a domain."""
        return [] if self.picture is None else [one for one in self.picture.scores if one.peer == peer]


def known_now(*, watching: bool = True) -> KnownNow:
    """Return what the process of the overlay shows; all is empty where none runs.

    Args:
        watching: for somebody who keeps looking, so that it is made every few seconds.
    """
    picture = picture_looked_at() if watching else picture_read()
    suspected = {} if picture is None else {one.domain: one for one in picture.suspected}
    return KnownNow(picture, _seen_read(), suspected)


def _seen_read() -> SeenDomains:
    try:
        stored = seen_stored()
        return SeenDomains({}, {}) if stored is None else _seen(stored)
    except (RedisError, Undecodable):
        return SeenDomains({}, {})

"""Reads of the proofs of equivocation: all, one, and what a peer has not been told of yet."""

from __future__ import annotations

import re
from typing import NamedTuple

from eventing.core.decoding import msgpack_reader
from eventing.core.errors import InvalidCursor, NotFound
from eventing.core.signing import Signed
from eventing.peering.models import Evidence, EvidenceSpread
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of

PENDING_MAX = 16  # proofs of one exchange: at most 16 KiB
_SERIAL = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_signed = msgpack_reader(Signed)


class Pending(NamedTuple):
    """A proof to tell a peer of; `id` is what `evidence_spread` is told afterwards."""

    id: int
    one: Signed
    other: Signed


def evidence_pending(peer: str, limit: int = PENDING_MAX) -> list[Pending]:
    """The next proofs, oldest first, that `peer` was not told of and did not bring itself."""
    through = EvidenceSpread.objects.filter(peer=peer).values_list("through", flat=True).first() or 0
    rows = Evidence.objects.filter(id__gt=through).exclude(carrier=peer).order_by("id")[:limit]
    return [Pending(row.id, *seals_of(row)) for row in rows]


def feed_forked(rp: str, origin: str, epoch: str) -> bool:
    """Whether a proof is kept that the origin told two stories of this feed."""
    return Evidence.objects.filter(origin=origin, rp=rp, epoch=epoch).exists()


def seals_of(row: Evidence) -> tuple[Signed, Signed]:
    """The two seals of a proof."""
    return _signed(bytes(row.one)), _signed(bytes(row.other))


def evidence_page(
    *, origin: str | None = None, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> Page[Evidence]:
    """The proofs that are kept, newest first; with `origin` only those against that domain. Raises InvalidCursor."""
    rows = Evidence.objects.order_by("-id")
    if origin is not None:
        rows = rows.filter(origin=origin)
    if cursor is not None:
        key = key_of("evidence", cursor)
        if not _SERIAL.fullmatch(key):
            raise InvalidCursor("Use the `next` of the page before, with the same filters.")
        rows = rows.filter(id__lt=int(key))
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of("evidence", str(found[-1].id)) if more else None)


def evidence_get(digest: str) -> Evidence:
    """One proof. Raises NotFound."""
    row = Evidence.objects.filter(digest=digest).first() if _DIGEST.fullmatch(digest) else None
    if row is None:
        raise NotFound("No such proof is kept here.")
    return row

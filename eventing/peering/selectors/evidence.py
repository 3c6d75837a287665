"""Reads of proofs of equivocation: all, one, and those that a peer has not received."""

from __future__ import annotations

import re
from typing import NamedTuple

from eventing.core.decoding import msgpack_reader
from eventing.core.errors import NotFound
from eventing.core.signing import Signed
from eventing.peering.models import Evidence, EvidenceSpread
from eventing.sql.pages import LIMIT_DEFAULT, Page, page_newest
from eventing.sql.remembered import remembered

PENDING_MAX = 16  # proofs of one exchange: at most 16 KiB
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_signed = msgpack_reader(Signed)


class PendingProof(NamedTuple):
    """A proof to send to a peer; its `id` is passed to `evidence_spread` afterwards."""

    id: int
    one: Signed
    other: Signed


def evidence_pending(peer: str, limit: int = PENDING_MAX) -> list[PendingProof]:
    """Return the next proofs, oldest first, that `peer` has neither received nor delivered."""
    if not _is_any():
        return []
    through = EvidenceSpread.objects.filter(peer=peer).values_list("through", flat=True).first() or 0
    rows = Evidence.objects.filter(id__gt=through).exclude(carrier=peer).order_by("id")[:limit]
    return [PendingProof(row.id, *seals_of(row)) for row in rows]


@remembered
def _is_any() -> bool:
    return Evidence.objects.exists()


def feed_forked(rp: str, origin: str, epoch: str) -> bool:
    """Return whether a proof is stored that the origin equivocated in this feed."""
    return Evidence.objects.filter(origin=origin, rp=rp, epoch=epoch).exists()


def seals_of(row: Evidence) -> tuple[Signed, Signed]:
    """Return the two seals of a proof."""
    return _signed(bytes(row.one)), _signed(bytes(row.other))


def evidence_page(
    *, origin: str | None = None, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> Page[Evidence]:
    """Return a page of the stored proofs, newest first; with `origin` only those against that domain. Raises
    InvalidCursor.
    """
    rows = Evidence.objects.order_by("-id")
    if origin is not None:
        rows = rows.filter(origin=origin)
    return page_newest(rows, "evidence", cursor=cursor, limit=limit)


def evidence_get(digest: str) -> Evidence:
    """Return one proof. Raises NotFound."""
    row = Evidence.objects.filter(digest=digest).first() if _DIGEST.fullmatch(digest) else None
    if row is None:
        raise NotFound("No proof with this digest is stored here.")
    return row

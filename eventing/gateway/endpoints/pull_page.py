"""Content of one answer of a pull: of a run of the log, the events that the reader lacks.

Only a reader from another replica already has some of them; for all others a page is a run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from eventing.core.events.cursors import Cursor
from eventing.core.events.positions import OffsetGap, Start
from eventing.core.events.vectors import merged
from eventing.gateway.delivery.frames import gap_members
from eventing.gateway.delivery.start_positions import feed_positions_of, vector_of
from eventing.log.scripts import LogRun


class PullPage(NamedTuple):
    """Part of the log for one reader.

    Attributes:
        events: events, without those that the reader has from another replica.
        offsets: offsets of the events.
        end: position after them, and after events that the reader already has.
        gap: lost events of a feed before the first of them.
    """

    events: list[bytes]
    offsets: list[int]
    end: Cursor
    gap: OffsetGap | None = None


def page_of(start: Start, run: LogRun) -> PullPage:
    """Select the events of `run` that a reader at `start` lacks, up to the next hole of a feed.

    A run that does not continue `start` (history was trimmed meanwhile) gives an empty page there.
    """
    if start.held is None:
        offsets = list(range(run.first, run.first + len(run.events)))
        return PullPage(run.events, offsets, Cursor(start.epoch, offsets[-1] if offsets else start.next - 1))
    if run.state.epoch != start.epoch or run.first != start.next or not run.events:
        return PullPage([], [], start.cursor)
    held, last, gap = merged(vector_of(run), start.held), start.next - 1, None
    page = PullPage([], [], start.cursor)
    for offset, ((feed, sequence), body) in enumerate(
        zip(feed_positions_of(run, len(run.events)), run.events, strict=True), run.first
    ):
        had = held.get(feed, 0)
        if sequence > had + 1:
            if page.events or start.gap is not None:
                break  # the next answer reports the loss
            gap = OffsetGap(start.epoch, offset, offset - 1, {feed: (had + 1, sequence - 1)})
        if sequence > had:
            held[feed] = sequence
            page.events.append(body)
            page.offsets.append(offset)
        last = offset
    return page._replace(end=Cursor(start.epoch, last, held), gap=gap)


def document(start: Start, page: PullPage) -> bytes:
    """Make the answer, which contains the events byte for byte."""
    gap = start.gap or page.gap
    rest: dict[str, Any] = {
        "cursor": str(page.end),
        "recovered": start.recovered and gap is None,
        "epoch": start.epoch,
        "offset": page.end.offset,
    }
    if page.offsets and page.offsets[0] != page.end.offset - len(page.offsets) + 1:
        rest["offsets"] = page.offsets  # the reader already has those between them
    if gap is not None:
        rest["gap"] = gap_members("", gap)
        del rest["gap"]["rp"]
    return b'{"events":[' + b",".join(page.events) + b"]," + msgspec.json.encode(rest)[1:]

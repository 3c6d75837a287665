"""Timescale debugger: events of several RPs on a time axis, with the endpoints of its script for past events and for
one event in full.

Live events reach the page over its WebSocket. The endpoints need the operation `history` at the RP.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from time import time
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.core.decoding import json_reader
from eventing.core.errors import InvalidCursor, InvalidRequest, NotFound
from eventing.core.events.cursors import OFFSET_MAX, Cursor
from eventing.core.events.positions import TIME_MS_MAX
from eventing.core.ids import is_admin
from eventing.core.names import NAME_CHARS_MAX
from eventing.core.roles import oversees
from eventing.core.timestamps import timestamp
from eventing.log.control import offset_at
from eventing.log.ranges import ENTRIES_MAX, LogEntry, LogRange, range_after, range_before
from eventing.log.scripts import NoLog
from eventing.replication.locations import replica_locations
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get, rp_kept
from eventing.rps.services.permission import require
from portal.console.pages import words
from portal.console.pages.access import current_user, endpoint, page, principal_of

LANES_MAX = 6
"""RPs side by side: what a screen has room for; each may hold 5,000 events in the browser."""

PREVIEW_CHARS = 160
TEXT_CHARS_MAX = 256
"""Of an attribute in lists; the event itself has it whole."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)


class _Envelope(msgspec.Struct):
    """Members of an event that a list shows."""

    id: str
    source: str
    type: str
    subject: str | None = None
    time: str | None = None
    datacontenttype: str | None = None
    data: msgspec.Raw = msgspec.Raw()
    data_base64: str | None = None


_envelope = json_reader(_Envelope)


@page
@require_GET
def timescale(request: HttpRequest) -> HttpResponse:
    """Show the page: `?rp=` (an id or a name, several times), `?event=` (an offset of the first), `?at=` (an instant)
    are its script's."""
    principal = principal_of(current_user(request))
    references = [text[:NAME_CHARS_MAX] for text in request.GET.getlist("rp") if text][:LANES_MAX]
    context = {"references": references, "lanes_max": LANES_MAX, "may_oversee": oversees(principal)}
    return render(request, "portal/timescale.html", context)


@endpoint
@require_GET
def past(request: HttpRequest) -> JsonResponse:
    """Answer a page of the history of the RP `?rp=`: the newest, or those `?before=OFFSET`, `?after=OFFSET`, around
    `?at=MILLISECONDS`.

    {"rp", "label", "now", "may_publish", "epoch", "first", "next", "events": [{"offset", "at", "feed", "sequence", "size",
    "id", "source", "type", "subject", "time", "preview"}, ...]}: `at` is when it was stored, `now` when this was answered, Unix
    milliseconds; `first` to `next` - 1 are held. At most ENTRIES_MAX events and 2 MiB of them.
    """
    descriptor = _readable(request)
    limit = min(_number(request, "limit", OFFSET_MAX) or ENTRIES_MAX, ENTRIES_MAX)
    try:
        found = _range(request, descriptor.id, limit)
    except NoLog:
        found = LogRange("", 1, 1, [])
    return JsonResponse(
        {
            "rp": descriptor.id,
            "label": _label(descriptor),
            "now": int(time() * 1000),
            "may_publish": _may_publish(request, descriptor),
            "epoch": found.epoch,
            "first": found.first,
            "next": found.next,
            "events": [_shown(entry) for entry in found.entries],
        }
    )


@endpoint
@require_GET
def event(request: HttpRequest) -> JsonResponse:
    """Answer one event in full, at `?offset=` of the RP `?rp=` (in `?epoch=`, where that is given).

    {"rp", "epoch", "offset", "cursor", "stored_at", "bytes" (base64, exact), "feed", "sequence", "origin", "sealed",
    "carriers", "domains"}, the last two as in eventing.replication.locations; null and empty for administrative RPs.
    """
    descriptor = _readable(request)
    offset = _number(request, "offset", OFFSET_MAX)
    if not offset:
        raise InvalidRequest("The parameter offset is missing: give a number of at least 1.")
    found, entry = _entry(descriptor.id, offset)
    epoch = request.GET.get("epoch")
    if epoch and epoch != found.epoch:
        raise InvalidCursor(
            f"The log's epoch is {found.epoch}, but the event belongs to {epoch[:26]}.", epoch=found.epoch
        )
    return JsonResponse(
        {
            "rp": descriptor.id,
            "epoch": found.epoch,
            "offset": offset,
            "cursor": str(Cursor(found.epoch, offset)),
            "stored_at": timestamp(datetime.fromtimestamp(entry.stored_ms / 1000, UTC)),
            "bytes": base64.b64encode(entry.body).decode(),
            **_replica_locations(descriptor.id, found.epoch, entry),
        }
    )


def _readable(request: HttpRequest) -> Descriptor:
    descriptor = descriptor_get(request.GET.get("rp", "")[:NAME_CHARS_MAX])
    require(descriptor, principal_of(current_user(request)), "history")
    return descriptor


def _may_publish(request: HttpRequest, descriptor: Descriptor) -> bool:
    """Return whether the user may publish; only the domain itself publishes at an administrative RP."""
    return not is_admin(descriptor.id) and descriptor.allows(principal_of(current_user(request)), "publish")


def _range(request: HttpRequest, rp: str, limit: int) -> LogRange:
    after, before = (_number(request, name, OFFSET_MAX) for name in ("after", "before"))
    moment = _number(request, "at", TIME_MS_MAX)
    if sum(one is not None for one in (after, before, moment)) > 1:
        raise InvalidRequest("Give one of after, before and at.")
    if after is not None:
        return range_after(rp, after, limit)
    if moment is not None:
        return range_after(rp, max(0, offset_at(rp, moment).offset - 1 - limit // 2), limit)
    return range_before(rp, before, limit)


def _entry(rp: str, offset: int) -> tuple[LogRange, LogEntry]:
    try:
        found = range_after(rp, offset - 1, 1)
    except NoLog:
        raise NotFound("No event has this offset.") from None
    if not found.entries or found.entries[0].offset != offset:
        raise NotFound(f"Event #{offset} is not in the history, which holds #{found.first} to #{found.next - 1}.")
    return found, found.entries[0]


def _replica_locations(rp: str, epoch: str, entry: LogEntry) -> dict[str, Any]:
    if is_admin(rp):
        none = {"feed": None, "sequence": None, "origin": None, "sealed": False}
        return {**none, "carriers": [], "domains": []}
    return replica_locations(rendezvous_point_get(rp), epoch, entry)


def _label(descriptor: Descriptor) -> str:
    if is_admin(descriptor.id):
        return descriptor.id
    row = rp_kept(descriptor.id)
    return words.label(row) if row else descriptor.id


def _shown(entry: LogEntry) -> dict[str, Any]:
    about = _envelope(entry.body)
    return {
        "offset": entry.offset,
        "at": entry.stored_ms,
        "feed": entry.feed_key,
        "sequence": entry.sequence,
        "size": len(entry.body),
        "id": about.id[:TEXT_CHARS_MAX],
        "source": about.source[:TEXT_CHARS_MAX],
        "type": about.type[:TEXT_CHARS_MAX],
        "subject": about.subject and about.subject[:TEXT_CHARS_MAX],
        "time": about.time,
        "preview": _preview(about),
    }


def _preview(about: _Envelope) -> str:
    if about.data_base64 is not None:
        count = len(about.data_base64) * 3 // 4 - about.data_base64[-2:].count("=")
        return f"{words.size(count)} of {about.datacontenttype or 'binary data'}"[:PREVIEW_CHARS]
    return bytes(about.data)[: 4 * PREVIEW_CHARS].decode(errors="ignore")[:PREVIEW_CHARS]


def _number(request: HttpRequest, name: str, high: int) -> int | None:
    text = request.GET.get(name)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or int(text) > high:
        raise InvalidRequest(f"{name} is a number from 0 to {high}.")
    return int(text)

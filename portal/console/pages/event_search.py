"""Endpoints for the list of events of an RP's page: search in its history, and export as JSON lines. Both need the operation `history`."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET

from eventing.core.errors import InvalidRequest
from eventing.core.events.cursors import OFFSET_MAX
from eventing.core.events.positions import TIME_MS_MAX
from eventing.core.names import NAME_CHARS_MAX
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require
from portal.console.event_search import FILTER_CHARS_MAX, EventFilter, document, export, search
from portal.console.pages.access import current_user, endpoint, principal_of

_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)


@endpoint
@require_GET
def events(request: HttpRequest, reference: str) -> HttpResponse:
    """Answer a part of the search: `?type=`, `?source=`, `?subject=`, `?text=` (parts), `?since=`, `?until=` (Unix milliseconds),
    `?before=` (an offset: the `back_to` of the answer before); see event_search.document."""
    descriptor = _readable(request, reference)
    return JsonResponse(document(search(descriptor.id, _wanted(request), _number(request, "before", OFFSET_MAX))))


@endpoint
@require_GET
def download(request: HttpRequest, reference: str) -> StreamingHttpResponse:
    """Answer the events that match, as JSON lines, the oldest first: of the newest EXPORT_EVENTS_MAX."""
    descriptor = _readable(request, reference)
    lines = export(descriptor.id, _wanted(request))
    response = StreamingHttpResponse(lines, content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="{descriptor.id}.jsonl"'
    response["Cache-Control"] = "no-store"
    return response


def _readable(request: HttpRequest, reference: str) -> Descriptor:
    descriptor = descriptor_get(reference[:NAME_CHARS_MAX])
    require(descriptor, principal_of(current_user(request)), "history")
    return descriptor


def _wanted(request: HttpRequest) -> EventFilter:
    texts = {name: request.GET.get(name, "").strip() for name in ("type", "source", "subject", "text")}
    for name, text in texts.items():
        if len(text) > FILTER_CHARS_MAX:
            raise InvalidRequest(f"{name} has at most {FILTER_CHARS_MAX} characters.")
    since, until = (_number(request, name, TIME_MS_MAX) for name in ("since", "until"))
    return EventFilter(**texts, since_ms=since, until_ms=until)


def _number(request: HttpRequest, name: str, high: int) -> int | None:
    text = request.GET.get(name)
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or int(text) > high:
        raise InvalidRequest(f"{name} is a number from 0 to {high}.")
    return int(text)

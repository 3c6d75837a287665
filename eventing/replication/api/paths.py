"""/api/v1/rps/{id}/path: the domains that one event passed."""

from __future__ import annotations

import re

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.errors import Forbidden, InvalidRequest
from eventing.core.events.cursors import OFFSET_MAX, Cursor
from eventing.core.events.feeds import KEY_PATTERN
from eventing.core.roles import oversees
from eventing.replication.api.proofs import EVENT, OFFSET
from eventing.replication.paths.asking import ASKED_MAX, path_ask, path_shown
from eventing.replication.paths.places import KnownPath, path_at, path_of
from eventing.replication.shapes import EventPathAnswer
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require

_NUMBER = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
FEED = OpenApiParameter(
    "feed", {"type": "string", "pattern": "^[a-z2-7]{16}$"}, description="With `sequence`: key of the event's feed."
)
SEQUENCE = OpenApiParameter(
    "sequence", {"type": "integer", "minimum": 1, "maximum": OFFSET_MAX}, description="The event's place in that feed."
)
ASK = OpenApiParameter(
    "ask",
    {"type": "string", "enum": ["true", "false"]},
    description=f"Ask the domains that these events are exchanged with, at most {ASKED_MAX}, for what they know.",
)


class EventPathView(View):
    """The path of one event."""

    @extend_schema(
        operation_id="rps_path",
        summary="Show the path of one event",
        description="The domains that carried the event here, as they stated, and for each participant whether it holds "
        "the event by its last version vector. With `ask` the domains that these events are exchanged with are asked "
        "how the event came to them: one question each, answered within 3 s, never passed on. Nothing of it is proved "
        "(`/proof` is the proof of origin). Requires the operation `history`, and `ask` the role administrator, operator "
        "or viewer.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, EVENT, OFFSET, FEED, SEQUENCE, ASK],
        responses={200: EventPathAnswer},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Return the path."""
        row = rendezvous_point_get(reference)
        require(descriptor_of(row), self.principal, "history")
        ask = self._ask()
        known = self._known(row.id)
        return Response(path_shown(row, known, path_ask(row.id, known) if ask else None))

    def _ask(self) -> bool:
        text = self.query("ask") or "false"
        if text not in ("true", "false"):
            raise InvalidRequest("ask is true or false.")
        if text == "true" and not oversees(self.principal):
            raise Forbidden("Asking other domains requires the role administrator, operator or viewer.")
        return text == "true"

    def _known(self, rp: str) -> KnownPath:
        cursor, offset, feed, sequence = (self.query(name) for name in ("cursor", "offset", "feed", "sequence"))
        if [cursor is None, offset is None, feed is None and sequence is None].count(False) != 1:
            raise InvalidRequest("Give the event's cursor, or its offset, or its feed and sequence.")
        if cursor is not None:
            return path_at(rp, Cursor.parse(cursor))
        if offset is not None:
            return path_at(rp, _number("offset", offset))
        if feed is None or not KEY_PATTERN.fullmatch(feed):
            raise InvalidRequest("feed must be the key of a feed: 16 characters.")
        return path_of(rp, feed, _number("sequence", sequence))


def _number(name: str, text: str | None) -> int:
    if text is None or not _NUMBER.fullmatch(text) or int(text) > OFFSET_MAX:
        raise InvalidRequest(f"{name} must be a number from 1 to {OFFSET_MAX}.")
    return int(text)

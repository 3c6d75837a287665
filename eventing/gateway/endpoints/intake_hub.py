"""GET /hooks/{token} of an intake for a WebSub topic: a hub verifies the subscription or denies it; without `hub.mode` the owner is
answered what the hub stated last.
"""

from __future__ import annotations

import time

from eventing.core.decoding import Undecodable
from eventing.core.errors import MethodNotAllowed, Unavailable
from eventing.gateway import http
from eventing.gateway.gateway import Gateway
from eventing.intakes.rules.formats import WEBSUB
from eventing.intakes.rules.websub import HubNote, decode_note, encode_note, hub_note
from eventing.intakes.selectors.intakes import IntakeState
from eventing.store.errors import RedisError
from eventing.store.hub_notes import hub_note_read, hub_note_write


async def hub_confirmed(gateway: Gateway, scope: http.Scope, send: http.Send, found: IntakeState) -> None:
    """Answer a GET. Raises MethodNotAllowed for other formats, NotFound, InvalidRequest, Unavailable."""
    if found.format != WEBSUB:
        raise MethodNotAllowed("Webhooks are sent here by POST.", allow=["POST", "OPTIONS"])
    query = http.query(scope)
    try:
        if "hub.mode" not in query:
            await http.answer_json(send, 200, _last(await hub_note_read(gateway.redis, found.id), found.source))
            return
        note, challenge = hub_note(query, found.source, time.time())
        await hub_note_write(gateway.redis, found.id, encode_note(note))
    except (RedisError, OSError):
        raise Unavailable(
            "The domain's data plane is not responding. Try again in a moment.", retry_after_s=2
        ) from None
    if note.state == "subscribed":
        gateway.uses.intake(found)
    await http.answer(send, 200, challenge.encode(), [(b"content-type", b"text/plain; charset=utf-8")])


def _last(data: bytes | None, topic: str) -> HubNote:
    try:
        return decode_note(data) if data else HubNote(topic)
    except Undecodable:  # written by another version
        return HubNote(topic)

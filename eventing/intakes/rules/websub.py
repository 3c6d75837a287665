"""The subscriber's part of WebSub at an intake: verification of intent, and denial (sections 5.2 and 5.3). Pure.

The address of the intake is known to its owner and to the hub only, so a request with the right topic is one that the owner caused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from eventing.core.decoding import json_reader
from eventing.core.errors import InvalidRequest, NotFound

CHALLENGE_CHARS_MAX = 1024  # bound: characters of hub.challenge; the verification is refused
REASON_CHARS_MAX = 500  # bound: characters kept of hub.reason; the rest is discarded
STATES = {"subscribe": "subscribed", "unsubscribe": "ended", "denied": "denied"}
_LEASE = re.compile(r"[0-9]{1,10}", re.ASCII)


class HubNote(msgspec.Struct, frozen=True):
    """The last request of a hub to an intake.

    Attributes:
        state: `subscribed`, `ended` or `denied`; empty: there was none.
        at: Unix seconds.
        lease_s: granted lease, from `at`.
    """

    topic: str
    state: str = ""
    at: float = 0.0
    lease_s: int = 0
    reason: str = ""


encode_note = msgspec.json.Encoder().encode
decode_note = json_reader(HubNote)


def hub_note(query: Mapping[str, str], topic: str, now: float) -> tuple[HubNote, str]:
    """Return what a hub states, and the challenge to be answered; empty for a denial.

    Args:
        query: parameters of the request, `hub.mode` among them.
        topic: of the intake.
        now: Unix seconds.

    Raises NotFound for another topic, as the Recommendation requires, InvalidRequest.
    """
    mode, challenge = query["hub.mode"], query.get("hub.challenge", "")
    if mode not in STATES:
        raise InvalidRequest("hub.mode is subscribe, unsubscribe or denied.")
    if query.get("hub.topic") != topic:
        raise NotFound("This intake is for another topic.")
    if mode == "denied":
        return HubNote(topic, STATES[mode], now, reason=query.get("hub.reason", "")[:REASON_CHARS_MAX]), ""
    if not 0 < len(challenge) <= CHALLENGE_CHARS_MAX:
        raise InvalidRequest(f"hub.challenge has 1 to {CHALLENGE_CHARS_MAX} characters.")
    lease = query.get("hub.lease_seconds", "")
    if mode == "subscribe" and _LEASE.fullmatch(lease) is None:
        raise InvalidRequest("hub.lease_seconds is a number of seconds.")
    return HubNote(topic, STATES[mode], now, lease_s=int(lease) if mode == "subscribe" else 0), challenge

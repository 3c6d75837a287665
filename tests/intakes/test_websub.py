"""An intake confirms a hub's request about its own topic, and no other."""

from __future__ import annotations

import pytest

from eventing.core.errors import InvalidRequest, NotFound, SignatureInvalid
from eventing.intakes.rules.formats import WEBSUB
from eventing.intakes.rules.signatures import verify
from eventing.intakes.rules.websub import CHALLENGE_CHARS_MAX, HubNote, decode_note, encode_note, hub_note

TOPIC = "https://blog.example/feed"
GOOD = {"hub.mode": "subscribe", "hub.topic": TOPIC, "hub.challenge": "c", "hub.lease_seconds": "600"}


def test_a_verification_of_the_topic_is_answered_with_its_challenge_and_noted() -> None:
    note, challenge = hub_note(GOOD, TOPIC, 5.0)
    assert (challenge, note) == ("c", HubNote(TOPIC, "subscribed", 5.0, 600))
    assert decode_note(encode_note(note)) == note
    note, challenge = hub_note({**GOOD, "hub.mode": "unsubscribe"}, TOPIC, 5.0)
    assert (challenge, note.state) == ("c", "ended")


def test_a_denial_is_noted_with_its_reason_within_its_bound() -> None:
    stated = {"hub.mode": "denied", "hub.topic": TOPIC, "hub.reason": "r" * 1000}
    note, challenge = hub_note(stated, TOPIC, 5.0)
    assert (challenge, note.state, len(note.reason)) == ("", "denied", 500)


@pytest.mark.parametrize("mode", ["subscribe", "unsubscribe", "denied"])
def test_another_topic_is_not_found(mode: str) -> None:
    with pytest.raises(NotFound):
        hub_note({**GOOD, "hub.mode": mode, "hub.topic": TOPIC + "/"}, TOPIC, 5.0)


@pytest.mark.parametrize(
    "stated",
    [
        {"hub.mode": "publish"},
        {"hub.challenge": ""},
        {"hub.challenge": "c" * (CHALLENGE_CHARS_MAX + 1)},
        {"hub.lease_seconds": ""},
        {"hub.lease_seconds": "-1"},
        {"hub.lease_seconds": "9" * 11},
    ],
)
def test_a_malformed_verification_is_refused(stated: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        hub_note({**GOOD, **stated}, TOPIC, 5.0)


@pytest.mark.parametrize("stated", ["", "sha256", "md5=00", "sha256=00", "SHA256=00"])
def test_content_without_a_good_signature_is_refused(stated: str) -> None:
    with pytest.raises(SignatureInvalid):
        verify(WEBSUB, ["s" * 16], {"x-hub-signature": stated}, b"content", now=5.0)

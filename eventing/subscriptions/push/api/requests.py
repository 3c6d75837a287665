"""Bodies of requests about endpoints."""

from __future__ import annotations

from rest_framework import serializers

from eventing.core.events.cursors import POSITION_CHARS_MAX
from eventing.rest.fields import StrictInteger, StrictObject, StrictString
from eventing.subscriptions.push.services.endpoints import KEEP_S_MAX
from eventing.subscriptions.push.services.replays import IDS_MAX


class SecretRotationSerializer(StrictObject):
    """Another secret."""

    secret = StrictString(
        max_length=128, help_text="`whsec_` and the Base64 form of 24 to 64 random bytes. Never shown."
    )
    keep_s = StrictInteger(
        required=False,
        min_value=0,
        max_value=KEEP_S_MAX,
        help_text="Seconds for which the present secret signs too. The default is a day.",
    )


class PushReplaySerializer(StrictObject):
    """Events that are to be sent again: dead letters, or those between two cursors."""

    dead_letters = serializers.ListField(
        child=StrictInteger(),
        required=False,
        min_length=1,
        max_length=IDS_MAX,
        help_text="Ids of dead letters. Without any member: all of the subscription.",
    )
    after = StrictString(
        required=False, max_length=POSITION_CHARS_MAX, help_text="Cursor after which events are sent again."
    )
    until = StrictString(
        required=False, max_length=POSITION_CHARS_MAX, help_text="Cursor of the last event that is sent again."
    )

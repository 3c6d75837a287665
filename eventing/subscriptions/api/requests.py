"""Bodies of requests about durable subscriptions. Bounds that depend on settings are the services'; here is the form."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventing.core.events.cursors import CURSOR_CHARS_MAX
from eventing.rest.documents import CURSOR_PATTERN
from eventing.rest.fields import Integer, Members, Text
from eventing.rest.requests import LEASE_HELP, HistoryRequest
from eventing.subscriptions.rules.shared_subscriptions import REPLICAS_MAX


class DeliverRequest(Members):
    """How a subscription's events reach the subscriber."""

    mode = serializers.ChoiceField(choices=["pull"])


class SubscriptionChange(Members):
    """What can be changed of a subscription; absent members stay."""

    history = HistoryRequest(required=False, allow_null=True)
    deliver = DeliverRequest(required=False, allow_null=True)


@extend_schema_field({"type": "string", "pattern": f"^(now|earliest|last|{CURSOR_PATTERN})$"})
class Begin(Text):
    """Where reading begins; the service reads it."""


class SubscriptionCreation(SubscriptionChange):
    """A new durable subscription; every member has a default."""

    lease_s = Integer(required=False, allow_null=True, help_text=LEASE_HELP)
    replicas = Integer(
        required=False,
        min_value=1,
        max_value=REPLICAS_MAX,
        help_text="How many domains hold it, this one among them: one delivers, the others take over when it falls silent.",
    )

    def get_fields(self) -> dict[str, Any]:
        """With `from`, which Python cannot name."""
        begin = Begin(
            required=False,
            min_length=1,
            max_length=CURSOR_CHARS_MAX,
            help_text="Where reading begins: now (the default), earliest, last, or a cursor.",
        )
        return {**super().get_fields(), "from": begin}

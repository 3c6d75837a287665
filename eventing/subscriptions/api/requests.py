"""Bodies of requests about durable subscriptions. Services check bounds that depend on settings."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field

from eventing.core.events.cursors import CURSOR_CHARS_MAX
from eventing.rest.documents import BEGIN_PATTERN
from eventing.rest.fields import (
    LEASE_HELP,
    HistoryRequestSerializer,
    StrictInteger,
    StrictObject,
    StrictString,
)
from eventing.subscriptions.push.api.deliver_requests import DeliverRequestSerializer
from eventing.subscriptions.rules.shared_subscriptions import REPLICAS_MAX


class SubscriptionChangeSerializer(StrictObject):
    """A change of a subscription; absent members stay as they are."""

    history = HistoryRequestSerializer(required=False, allow_null=True)
    deliver = DeliverRequestSerializer(required=False, allow_null=True)


@extend_schema_field({"type": "string", "pattern": BEGIN_PATTERN})
class Begin(StrictString):
    """The place where reading begins; the service validates it."""


class SubscriptionCreationSerializer(SubscriptionChangeSerializer):
    """A new durable subscription; every member has a default."""

    lease_s = StrictInteger(required=False, allow_null=True, help_text=LEASE_HELP)
    replicas = StrictInteger(
        required=False,
        min_value=1,
        max_value=REPLICAS_MAX,
        help_text="Number of domains that hold the subscription, this one included: one delivers, the others take "
        "over if it fails.",
    )

    def get_fields(self) -> dict[str, Any]:
        """Return the fields with `from`, a keyword of Python."""
        begin = Begin(
            required=False,
            min_length=1,
            max_length=CURSOR_CHARS_MAX,
            help_text="Where reading begins: `now` (the default), `earliest`, `last`, a cursor, or `time:` with a time by RFC "
            "3339: the first event stored then or later.",
        )
        return {**super().get_fields(), "from": begin}

"""Bodies of requests. Bounds that depend on settings are the services'; here is the form."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventing.access.rules.tokens import PATTERN_CHARS_MAX, PATTERNS_MAX, SCOPES_MAX, SUBJECT_CHARS_MAX
from eventing.core.events.cursors import CURSOR_CHARS_MAX
from eventing.core.events.history import AGE_S_MAX
from eventing.core.names import NAME_CHARS_MAX
from eventing.rest.documents import CURSOR_PATTERN
from eventing.rest.fields import (
    ACK_PATTERN,
    AudienceField,
    Integer,
    Members,
    Operations,
    PolicyField,
    Text,
    Truth,
    WatchField,
)
from eventing.rps.models import ACK_CHARS_MAX, TITLE_CHARS_MAX
from eventing.subscriptions.rules.shared_subscriptions import REPLICAS_MAX

NAME_HELP = "Hierarchical name under this domain, /authority/a/b/; without leading slash it is put under the domain."
NAME_PATTERN = r"^/?[A-Za-z0-9._~-]{1,64}(/[A-Za-z0-9._~-]{1,64}){0,15}/?$"
LEASE_HELP = "Seconds asked for; null or absent: the domain's default. The domain may grant less and says so."


class HistoryRequest(Members):
    """Bounds of a history; what is absent or null takes the default."""

    max_events = Integer(required=False, allow_null=True, help_text="Most events kept.")
    max_bytes = Integer(required=False, allow_null=True, help_text="Most bytes kept; reserved of the domain's quota.")
    max_age_s = Integer(
        required=False, allow_null=True, help_text=f"Seconds events are shown, at most {AGE_S_MAX}; null: no bound."
    )


class RendezvousPointChange(Members):
    """What can be changed of an RP; absent members stay."""

    name = Text(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=NAME_CHARS_MAX,
        validators=[RegexValidator(NAME_PATTERN, "Each part is 1 to 64 letters, digits or . _ ~ - characters.")],
        help_text=NAME_HELP,
    )
    title = Text(required=False, allow_blank=True, max_length=TITLE_CHARS_MAX)
    history = HistoryRequest(required=False, allow_null=True)
    policy = PolicyField(required=False, allow_null=True)
    ack = Text(
        required=False,
        max_length=ACK_CHARS_MAX,
        validators=[RegexValidator(ACK_PATTERN, "Use accepted, stored or replicated:n.")],
        help_text="How durable an event is when its publisher is answered: accepted, stored (the default), replicated:n.",
    )
    renew_on_use = Truth(
        required=False,
        help_text="Whether publishing and reading renew the lease (the default), for as long as was asked last.",
    )
    audience = AudienceField(required=False, allow_null=True)
    watch = WatchField(required=False, allow_null=True)


class RendezvousPointCreation(RendezvousPointChange):
    """A new RP; every member has a default."""

    lease_s = Integer(required=False, allow_null=True, help_text=LEASE_HELP)


class LeaseRequest(Members):
    """A renewal."""

    lease_s = Integer(required=False, allow_null=True, help_text=LEASE_HELP)


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


class Pattern(Text):
    """A pattern of RPs; the service reads it."""


class ScopeRequest(Members):
    """RPs and what may be done there."""

    rps = serializers.ListField(
        child=Pattern(min_length=1, max_length=PATTERN_CHARS_MAX),
        min_length=1,
        max_length=PATTERNS_MAX,
        help_text="Patterns: an id, a name /authority/a/b/, all names under one /authority/a/*, or * for all.",
    )
    ops = Operations(min_length=1)


class TokenCreation(Members):
    """A token of this domain, for administrators to hand out."""

    subject = Text(min_length=1, max_length=SUBJECT_CHARS_MAX, help_text="Who it speaks for.")
    admin = Truth(required=False, default=False, help_text="Whether it administers the domain.")
    lease_s = Integer(required=False, allow_null=True, help_text=LEASE_HELP)
    ops = Operations(required=False, allow_null=True, help_text="Operations it is narrowed to; null or absent: all.")
    scopes = serializers.ListField(
        child=ScopeRequest(),
        required=False,
        allow_null=True,
        max_length=SCOPES_MAX,
        help_text="Rendezvous points and operations it is narrowed to; null or absent: all.",
    )
    audience = Text(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=SUBJECT_CHARS_MAX,
        help_text="Whom it is for; null or absent: this domain. A token for another is not accepted here.",
    )

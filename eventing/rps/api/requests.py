"""Request bodies for rendezvous points. Bounds that depend on settings are checked by the services; here is the form."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field

from eventing.access.api.fields import POLICY_SCHEMA, PolicyField
from eventing.core.events.ack_level import REPLICAS_MAX
from eventing.core.names import NAME_CHARS_MAX
from eventing.rest.fields import (
    LEASE_HELP,
    HistoryRequestSerializer,
    JsonDocument,
    StrictBoolean,
    StrictInteger,
    StrictNumber,
    StrictObject,
    StrictString,
)
from eventing.rps.models import ACK_CHARS_MAX, TITLE_CHARS_MAX
from eventing.rps.rules import watches
from eventing.rps.rules.audience import (
    AT_LEAST_MAX,
    AUDIENCES_MAX,
    FLAG,
    LABEL_CHARS_MAX,
    LINE_PATTERN,
    REFUSE,
    parse_audience,
)
from eventing.rps.rules.reliability import RELIABILITY_MAX, RELIABILITY_MIN

AUDIENCE_SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "Readers that must be connected in this domain while events are published here. null: none.",
    "maxItems": AUDIENCES_MAX,
    "items": {
        "type": "object",
        "properties": {
            "label": {"type": "string", "minLength": 1, "maxLength": LABEL_CHARS_MAX, "pattern": LINE_PATTERN},
            "at_least": {"type": "integer", "minimum": 1, "maximum": AT_LEAST_MAX, "description": "Readings."},
            "issuer": POLICY_SCHEMA["items"]["properties"]["issuer"],
            "claims": POLICY_SCHEMA["items"]["properties"]["claims"],
            "publishing": {
                "type": "string",
                "enum": [REFUSE, FLAG],
                "default": REFUSE,
                "description": "While the audience is incomplete: refuse publishes, or accept them and raise an alarm.",
            },
        },
        "required": ["label", "at_least"],
        "additionalProperties": False,
    },
}
ACK_PATTERN = rf"^(accepted|stored|replicated:(all|[1-9]|1[0-{REPLICAS_MAX - 10}]))$"


@extend_schema_field(AUDIENCE_SCHEMA)
class AudienceField(JsonDocument):
    """Audiences, parsed by rps/rules/audience.py."""

    def check(self, data: Any) -> None:
        """Check the audiences. Raises InvalidRequest."""
        parse_audience(data)


@extend_schema_field({**watches.schema(), "description": "Watch rules of the rendezvous point. null: none."})
class WatchField(JsonDocument):
    """Watch rules of an RP, parsed by rps/rules/watches.py."""

    def check(self, data: Any) -> None:
        """Check the rules. Raises InvalidRequest."""
        watches.parse_rules(data)


NAME_HELP = "Hierarchical name under this domain, /authority/a/b/; without leading slash it is placed under the domain."
NAME_PATTERN = r"^/?[A-Za-z0-9._~-]{1,64}(/[A-Za-z0-9._~-]{1,64}){0,15}/?$"


class RendezvousPointChangeSerializer(StrictObject):
    """Changes of an RP; absent members stay."""

    name = StrictString(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=NAME_CHARS_MAX,
        validators=[RegexValidator(NAME_PATTERN, "Each part is 1 to 64 letters, digits or . _ ~ - characters.")],
        help_text=NAME_HELP,
    )
    title = StrictString(required=False, allow_blank=True, max_length=TITLE_CHARS_MAX)
    history = HistoryRequestSerializer(required=False, allow_null=True)
    policy = PolicyField(required=False, allow_null=True)
    ack = StrictString(
        required=False,
        max_length=ACK_CHARS_MAX,
        validators=[RegexValidator(ACK_PATTERN, "Use accepted, stored, replicated:n or replicated:all.")],
        help_text="Durability of an event when its publisher receives the answer: accepted, stored, replicated:n, replicated:all. Absent: the domain's default.",
    )
    renew_on_use = StrictBoolean(
        required=False,
        help_text="Whether publishing and reading renew the lease (the default), by the duration requested last.",
    )
    reliability = StrictNumber(
        required=False,
        allow_null=True,
        min_value=RELIABILITY_MIN,
        max_value=RELIABILITY_MAX,
        help_text="Target share of events that arrive at every participant in time. null: no target (the default).",
    )
    audience = AudienceField(required=False, allow_null=True)
    watch = WatchField(required=False, allow_null=True)


class RendezvousPointCreationSerializer(RendezvousPointChangeSerializer):
    """A new RP; every member has a default."""

    lease_s = StrictInteger(required=False, allow_null=True, help_text=LEASE_HELP)

"""Fields of rendezvous points: ack level, audiences, watch rules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field

from eventing.access.api.fields import POLICY_SCHEMA
from eventing.core.events.ack_level import REPLICAS_MAX
from eventing.rest.fields import JsonDocument
from eventing.rps.rules import watches
from eventing.rps.rules.audience import AT_LEAST_MAX, AUDIENCES_MAX, FLAG, LABEL_CHARS_MAX, LINE_PATTERN, REFUSE

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
ACK_PATTERN = rf"^(accepted|stored|replicated:([1-9]|1[0-{REPLICAS_MAX - 10}]))$"


@extend_schema_field(AUDIENCE_SCHEMA)
class AudienceField(JsonDocument):
    """Audiences, parsed by rps/rules/audience.py."""


@extend_schema_field({**watches.schema(), "description": "Watch rules of the rendezvous point. null: none."})
class WatchField(JsonDocument):
    """Watch rules of an RP, parsed by rps/rules/watches.py."""

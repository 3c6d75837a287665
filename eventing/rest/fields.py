"""Serializer fields that take exactly the JSON types they describe, and objects that refuse members they do not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventing.access.rules.policy import PREDICATES_MAX, RULES_MAX
from eventing.access.rules.policy_issuers import ADDRESS_CHARS_MAX
from eventing.access.rules.policy_predicates import CLAIM_CHARS_MAX, TEXT_CHARS_MAX, VALUES_MAX
from eventing.core.principals import OPERATIONS
from eventing.core.strict_json import INTEGER_MAX
from eventing.rps.rules import watches
from eventing.rps.rules.audience import AT_LEAST_MAX, AUDIENCES_MAX, FLAG, LABEL_CHARS_MAX, LINE_PATTERN, REFUSE
from eventing.rps.rules.descriptor import REPLICAS_MAX

UNKNOWN_CHARS_MAX = 64


class Members(serializers.Serializer[Any]):
    """A JSON object with known members only."""

    def to_internal_value(self, data: Any) -> Any:
        """As usual, after refusing unknown members by name."""
        if isinstance(data, Mapping):
            unknown = [name for name in data if name not in self.fields]
            if unknown:
                raise serializers.ValidationError(
                    {name[:UNKNOWN_CHARS_MAX]: "This member is not known here." for name in unknown[:10]}
                )
        return super().to_internal_value(data)


class Integer(serializers.IntegerField):
    """A JSON integer (also written 5.0), at least 1; not a string, not true."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": 1, "max_value": INTEGER_MAX, **kwargs})

    def to_internal_value(self, data: Any) -> int:
        """The integer."""
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        if type(data) is not int:
            self.fail("invalid")
        return data


class Text(serializers.CharField):
    """A JSON string, kept as it is."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **kwargs})

    def to_internal_value(self, data: Any) -> str:
        """The string."""
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class Truth(serializers.BooleanField):
    """A JSON true or false."""

    def to_internal_value(self, data: Any) -> bool:
        """The value."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


_INTEGER = {"type": "integer", "minimum": -INTEGER_MAX, "maximum": INTEGER_MAX}
_VALUE = {"anyOf": [{"type": "string", "maxLength": TEXT_CHARS_MAX}, _INTEGER, {"type": "boolean"}]}
_RANGE = {
    "type": "object",
    "description": "Both ends included; min is no more than max.",
    "properties": {"min": {"type": "number"}, "max": {"type": "number"}},
    "minProperties": 1,
    "additionalProperties": False,
}
_PREDICATE = {
    "oneOf": [
        {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}
        for name, schema in {
            "equals": _VALUE,
            "in": {"type": "array", "items": _VALUE, "maxItems": VALUES_MAX},
            "prefix": {"type": "string", "maxLength": TEXT_CHARS_MAX},
            "exists": {"type": "boolean"},
            "range": _RANGE,
            "audience": {"type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX},
        }.items()
    ]
}
_ADDRESS = r"https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?"
POLICY_SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "Ordered rules; the first that matches decides, none refuses. null: open to all of the domain.",
    "maxItems": RULES_MAX,
    "items": {
        "type": "object",
        "properties": {
            "issuer": {
                "description": "domain, anyone, peer:NAME, or the https address of an OIDC issuer.",
                "anyOf": [
                    {"type": "string", "enum": ["domain", "anyone"]},
                    {"type": "string", "pattern": r"^peer:[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"},
                    {"type": "string", "pattern": rf"^{_ADDRESS}$", "maxLength": ADDRESS_CHARS_MAX},
                ],
            },
            "jwks": {
                "type": "string",
                "pattern": rf"^{_ADDRESS}(\?[a-z0-9=&]*)?$",
                "maxLength": ADDRESS_CHARS_MAX,
                "description": "Where the OIDC issuer's keys are, if it does not say so itself. The same in all its rules.",
            },
            "claims": {
                "type": "object",
                "description": "By name, or by a JSON pointer such as /realm_access/roles; all predicates must hold.",
                "maxProperties": PREDICATES_MAX,
                "propertyNames": {"maxLength": CLAIM_CHARS_MAX},
                "additionalProperties": _PREDICATE,
            },
            "allow": {"type": "array", "items": {"type": "string", "enum": list(OPERATIONS)}},
        },
        "required": ["issuer", "allow"],
        "additionalProperties": False,
    },
}
AUDIENCE_SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "Who must be reading in this domain while events are published here. null: nobody.",
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
                "description": "While it is broken: refuse publishes, or take them and raise an alarm.",
            },
        },
        "required": ["label", "at_least"],
        "additionalProperties": False,
    },
}
ACK_PATTERN = rf"^(accepted|stored|replicated:([1-9]|1[0-{REPLICAS_MAX - 10}]))$"


@extend_schema_field(POLICY_SCHEMA)
class PolicyField(serializers.Field[Any, Any, Any, Any]):
    """A policy document; the service compiles it and says what is wrong."""

    def to_internal_value(self, data: Any) -> Any:
        """The document as it is."""
        return data

    def to_representation(self, value: Any) -> Any:
        """The document as it is."""
        return value


class Document(serializers.Field[Any, Any, Any, Any]):
    """JSON that a service reads, and says what is wrong with."""

    def to_internal_value(self, data: Any) -> Any:
        """The document as it is."""
        return data

    def to_representation(self, value: Any) -> Any:
        """The document as it is."""
        return value


@extend_schema_field(AUDIENCE_SCHEMA)
class AudienceField(Document):
    """Audiences; rps/rules/audience.py reads them."""


@extend_schema_field({**watches.schema(), "description": "What is watched here. null: nothing."})
class WatchField(Document):
    """Watch rules of an RP; rps/rules/watches.py reads them."""


@extend_schema_field(watches.schema(domain=True))
class DomainWatchField(Document):
    """Watch rules of the domain."""


@extend_schema_field(
    {"type": "array", "items": {"type": "string", "enum": list(OPERATIONS)}, "maxItems": len(OPERATIONS)}
)
class Operations(serializers.ListField):
    """A list of operations, each once."""

    child = serializers.ChoiceField(choices=OPERATIONS)

    def to_internal_value(self, data: Any) -> list[Any]:
        """The list; ChoiceField would take a number for its text."""
        if not isinstance(data, list) or not all(isinstance(item, str) for item in data):
            raise serializers.ValidationError(f"This is a list of {', '.join(OPERATIONS)}.")
        if len(data) > len(OPERATIONS):
            raise serializers.ValidationError("There are fewer operations.")
        return super().to_internal_value(data)

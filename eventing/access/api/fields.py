"""Fields of policies, operations and scopes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventing.access.rules.policy import PREDICATES_MAX, RULES_MAX, compile_policy
from eventing.access.rules.policy_issuers import ADDRESS_CHARS_MAX
from eventing.access.rules.policy_predicates import CLAIM_CHARS_MAX, TEXT_CHARS_MAX, VALUES_MAX
from eventing.core.principals import OPERATIONS
from eventing.core.strict_json import INTEGER_MAX
from eventing.rest.fields import JsonDocument

_INTEGER = {"type": "integer", "minimum": -INTEGER_MAX, "maximum": INTEGER_MAX}
_VALUE = {"anyOf": [{"type": "string", "maxLength": TEXT_CHARS_MAX}, _INTEGER, {"type": "boolean"}]}
_RANGE = {
    "type": "object",
    "description": "Both ends included; min must not exceed max.",
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
    "description": "Ordered rules; the first that matches decides, no match refuses. null: open to all of the domain.",
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
                "description": "Address of the OIDC issuer's keys, if its discovery document does not state it. The same in all rules of the issuer.",
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


@extend_schema_field(POLICY_SCHEMA)
class PolicyField(JsonDocument):
    """A policy document, which the service compiles."""

    def check(self, data: Any) -> None:
        """Check the policy. Raises InvalidRequest."""
        compile_policy(data)


@extend_schema_field(
    {"type": "array", "items": {"type": "string", "enum": list(OPERATIONS)}, "maxItems": len(OPERATIONS)}
)
class Operations(serializers.ListField):
    """A list of distinct operations."""

    child = serializers.ChoiceField(choices=OPERATIONS)

    def to_internal_value(self, data: Any) -> list[Any]:
        """Convert to a list; ChoiceField would accept a number for its text."""
        if not isinstance(data, list) or not all(isinstance(item, str) for item in data):
            raise serializers.ValidationError(f"Send a list of {', '.join(OPERATIONS)}.")
        if len(data) > len(OPERATIONS):
            raise serializers.ValidationError("The list has more members than there are operations.")
        return super().to_internal_value(data)

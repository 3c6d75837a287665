"""Serializer fields that accept exactly the documented JSON types, objects that refuse unknown members, and request
bodies that several subjects accept. Bounds that depend on settings are checked by the services; here is the form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from eventing.core.errors import InvalidRequest
from eventing.core.events.history import AGE_S_MAX
from eventing.core.strict_json import INTEGER_MAX

UNKNOWN_CHARS_MAX = 64
UNKNOWN_MAX = 10


class StrictObject(serializers.Serializer[Any]):
    """A JSON object with known members only."""

    def to_internal_value(self, data: Any) -> Any:
        """Convert as DRF does; unknown members are reported by name, beside all other faults."""
        unknown = [name for name in data if name not in self.fields] if isinstance(data, Mapping) else []
        found: dict[str, Any] = {name[:UNKNOWN_CHARS_MAX]: ["Unknown member."] for name in unknown[:UNKNOWN_MAX]}
        try:
            converted = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not found or not isinstance(error.detail, dict):
                raise
            raise serializers.ValidationError({**found, **error.detail}) from None
        if found:
            raise serializers.ValidationError(found)
        return converted


class StrictInteger(serializers.IntegerField):
    """A JSON integer (also written 5.0), at least 1; not a string, not true."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": 1, "max_value": INTEGER_MAX, **kwargs})

    def to_internal_value(self, data: Any) -> int:
        """Convert to an integer."""
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        if type(data) is not int:
            self.fail("invalid")
        return data


class StrictNumber(serializers.FloatField):
    """A JSON number; not a string, not true."""

    def to_internal_value(self, data: Any) -> float:
        """Convert to a float."""
        if type(data) not in (int, float):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictString(serializers.CharField):
    """A JSON string, unchanged."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **kwargs})

    def to_internal_value(self, data: Any) -> str:
        """Convert to a string."""
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class StrictBoolean(serializers.BooleanField):
    """A JSON true or false."""

    def to_internal_value(self, data: Any) -> bool:
        """Convert to a boolean."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class JsonDocument(serializers.Field[Any, Any, Any, Any]):
    """JSON that a service reads and validates. A subclass whose rules need no state checks them here as well, so that its
    faults are reported beside those of other members.
    """

    def check(self, data: Any) -> None:
        """Check the document. Raises InvalidRequest."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the document unchanged."""
        try:
            self.check(data)
        except InvalidRequest as error:
            raise serializers.ValidationError(error.detail) from None
        return data

    def to_representation(self, value: Any) -> Any:
        """Return the document unchanged."""
        return value


LEASE_HELP = "Requested duration in seconds; null or absent: the domain's default. The granted duration may be shorter and is in the answer."


class NothingSerializer(StrictObject):
    """An empty request body."""


class HistoryRequestSerializer(StrictObject):
    """Bounds of a history; members that are absent or null take the default."""

    max_events = StrictInteger(required=False, allow_null=True, help_text="Most events kept.")
    max_bytes = StrictInteger(
        required=False, allow_null=True, help_text="Most bytes kept; reserved from the domain's quota."
    )
    max_age_s = StrictInteger(
        required=False,
        allow_null=True,
        help_text=f"Seconds for which events are returned, at most {AGE_S_MAX}; null: no bound.",
    )


class LeaseRequestSerializer(StrictObject):
    """A renewal."""

    lease_s = StrictInteger(required=False, allow_null=True, help_text=LEASE_HELP)

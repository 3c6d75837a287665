"""Serializer fields that take exactly the JSON types they describe, and objects that refuse members they do not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from eventing.core.strict_json import INTEGER_MAX

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


class Document(serializers.Field[Any, Any, Any, Any]):
    """JSON that a service reads, and says what is wrong with."""

    def to_internal_value(self, data: Any) -> Any:
        """The document as it is."""
        return data

    def to_representation(self, value: Any) -> Any:
        """The document as it is."""
        return value

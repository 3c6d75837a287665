"""Bodies of requests about intakes. Services check bounds that depend on settings."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from eventing.intakes.models import SOURCE_CHARS_MAX, TITLE_CHARS_MAX
from eventing.intakes.rules.formats import HEADER_CHARS_MAX, NAMES, SECRET_CHARS_MAX, SECRET_CHARS_MIN
from eventing.rest.fields import LEASE_HELP, StrictInteger, StrictObject, StrictString


class IntakeChangeSerializer(StrictObject):
    """A change of an intake; absent members stay as they are."""

    title = StrictString(required=False, allow_blank=True, max_length=TITLE_CHARS_MAX)
    secret = StrictString(
        required=False,
        allow_null=True,
        min_length=SECRET_CHARS_MIN,
        max_length=SECRET_CHARS_MAX,
        help_text="Secret with which the sender signs, or that it sends; never shown again. null: none, where the format "
        "needs none. The secret before is accepted for a day more.",
    )
    timestamp_header = StrictString(
        required=False,
        allow_blank=True,
        max_length=HEADER_CHARS_MAX,
        help_text="Of `grafana`: the header with the signature's time, as configured there; empty: none.",
    )


class IntakeCreationSerializer(IntakeChangeSerializer):
    """A new intake; every member has a default."""

    lease_s = StrictInteger(required=False, allow_null=True, help_text=LEASE_HELP)

    def get_fields(self) -> dict[str, Any]:
        """Return the fields with `format` and `source`, which are names of a field's own."""
        kind = serializers.ChoiceField(choices=list(NAMES), required=False, help_text="Default: `plain`.")
        source = StrictString(
            required=False,
            allow_null=True,
            min_length=1,
            max_length=SOURCE_CHARS_MAX,
            help_text="`source` of events whose sender states none, a URI-reference; default: `/DOMAIN/intakes/ID`.",
        )
        return {**super().get_fields(), "format": kind, "source": source}
